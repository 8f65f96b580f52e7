"""eval_test.py PROGRAM: `reformer eval` and `export` of a trained model."""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below
SETTINGS = [word for setting in (
    "train.steps=40", "train.warmup=5", "train.batch=2", "train.length=256",
    "train.learning_rate=0.01", "model.layers=2", "model.d_model=16",
    "model.d_ff=16", "model.heads=2", "model.d_head=8", "lsh.chunk_length=8",
    "lsh.n_buckets=0", "lsh.rounds=1", "lsh.local_window=0")
    for word in ("--set", setting)]


def reformer(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          text=True, timeout=300)


class EvalTest(unittest.TestCase):
    """Of one small model of a text of which every eighth byte is random."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        noise = random.Random(1)
        text = cls.folder / "text"
        text.write_bytes(bytes(
            noise.randrange(256) if i % 8 == 0 else 97 + i % 8
            for i in range(40000)))
        cls.model = cls.folder / "run"
        made = reformer("train", "text", "--data", text, "--out", cls.model,
                        "--threads", 1, *SETTINGS)
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def rows(self, folder, *arguments):
        found = reformer("eval", folder, "--threads", 1, "--json", *arguments)
        self.assertEqual(found.returncode, 0, found.stderr)
        return [json.loads(line) for line in found.stdout.splitlines()]

    def loss(self, folder):
        [row] = self.rows(folder)
        return row["loss"]

    def test_evaluates_with_other_rounds(self):
        one, eight = self.rows(self.model, "--rounds", "1,8")
        self.assertEqual((one["rounds"], eight["rounds"]), (1, 8))
        self.assertNotEqual(one["loss"], eight["loss"])

    def test_ranges_of_positions_hold_the_means_of_theirs(self):
        ranges = self.rows(self.model, "--by-position", "--batches", 3)
        self.assertEqual([(r["begin"], r["end"]) for r in ranges],
                         [(0, 64), (64, 128), (128, 256)])
        [whole] = self.rows(self.model, "--batches", 3)
        mean = sum(r["value"] * (r["end"] - r["begin"]) for r in ranges)
        self.assertAlmostEqual(mean / 256, whole["value"], places=5)

    def test_sequences_may_be_shorter_and_not_longer(self):
        both = self.rows(self.model, "--by-position", "--length", "64,0")
        self.assertEqual([(r["length"], r["begin"], r["end"]) for r in both],
                         [(64, 0, 64), (256, 0, 64), (256, 64, 128),
                          (256, 128, 256)])
        again = self.rows(self.model, "--by-position", "--length", "64,64,0,256")
        self.assertEqual(again, both)
        for lengths in "257", "64,257":
            run = reformer("eval", self.model, "--length", lengths)
            self.assertEqual((run.returncode, run.stdout), (1, ""))
            self.assertIn("at most 256", run.stderr)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is missing")
    def test_draws_a_curve_for_each_length(self):
        png = self.folder / "positions.png"
        run = reformer("eval", self.model, "--by-position", "--batches", 1,
                       "--length", "0,128", "--png", png)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertGreater(png.stat().st_size, 2000)
        self.assertIn("256 positions, 1 round\n", run.stdout)
        self.assertIn("128 positions, 1 round\n", run.stdout)

    def test_standard_input_is_read_once(self):
        run = reformer("eval", self.model, "--data", "-", "--length", "64,128")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("standard input can be read only once", run.stderr)

    def test_an_exported_model_is_the_model(self):
        exact, small = self.folder / "exact", self.folder / "small"
        run = reformer("export", self.model, "--out", exact, "--type",
                       "float32")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(f.name for f in exact.iterdir()),
                         ["model.safetensors", "state.json"])
        whole = self.loss(self.model)
        self.assertEqual(self.loss(exact), whole)
        run = reformer("export", self.model, "--out", small)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertLess((small / "model.safetensors").stat().st_size,
                        0.8 * (exact / "model.safetensors").stat().st_size)
        self.assertAlmostEqual(self.loss(small), whole, delta=0.02)
        self.assertNotEqual(self.loss(small), whole)
        again = reformer("export", self.model, "--out", small)
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists already", again.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
