"""eval_test.py PROGRAM: `reformer eval` and `export` of a trained model."""
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below
SETTINGS = [word for setting in (
    "train.steps=40", "train.warmup=5", "train.batch=2", "train.length=256",
    "train.learning_rate=0.01", "model.layers=2", "model.d_model=16",
    "model.d_ff=16", "model.heads=2", "model.d_head=8", "lsh.chunk_length=8",
    "lsh.n_buckets=0", "lsh.rounds=1", "lsh.local_window=0",
    "lsh.more_rounds=union")
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
        text = cls.text = cls.folder / "text"
        text.write_bytes(bytes(
            noise.randrange(256) if i % 8 == 0 else 97 + i % 8
            for i in range(40000)))
        cls.model = cls.folder / "run"
        made = reformer("train", "text", "--data", text, "--out", cls.model,
                        "--threads", 1, *SETTINGS, "--set",
                        "model.positions=learned", "--set",
                        "lsh.hashed_heads=all")
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def rows(self, folder, *arguments):
        found = reformer("eval", folder, "--threads", 1, "--json", *arguments)
        self.assertEqual(found.returncode, 0, found.stderr)
        return [json.loads(line) for line in found.stdout.splitlines()]

    def loss(self, folder, *arguments):
        [row] = self.rows(folder, *arguments)
        return row["loss"]

    def test_evaluates_with_other_rounds(self):
        one, eight = self.rows(self.model, "--rounds", "1,8")
        self.assertEqual((one["rounds"], eight["rounds"]), (1, 8))
        self.assertNotEqual(one["loss"], eight["loss"])

    def test_more_rounds_may_be_taken_in_groups(self):
        groups = ("--set", "lsh.more_rounds=groups")
        one, eight = self.rows(self.model, "--rounds", "1,8")
        same, other = self.rows(self.model, "--rounds", "1,8", *groups)
        self.assertEqual(same["loss"], one["loss"])
        self.assertNotEqual(other["loss"], eight["loss"])
        # As many rounds as the model is said to have are one group.
        [union] = self.rows(self.model, "--set", "lsh.rounds=8", *groups)
        self.assertEqual(union["loss"], eight["loss"])

    def test_evaluates_with_other_settings(self):
        [eight] = self.rows(self.model, "--rounds", "8")
        [same] = self.rows(self.model, "--set", "lsh.rounds=8")
        self.assertEqual(same.pop("set"), ["lsh.rounds=8"])
        self.assertEqual(same, eight)
        [full] = self.rows(self.model, "--set", "model.attention=full_shared_qk")
        self.assertNotEqual(full["loss"], eight["loss"])
        self.assertIn("lsh.round'", self.refused(
            self.model, "--set", "lsh.round=8"))
        self.assertIn("model.heads", self.refused(
            self.model, "--set", "model.heads=0"))
        wider = reformer("eval", self.model, "--set", "model.d_ff=17")
        self.assertEqual((wider.returncode, wider.stdout), (1, ""))
        self.assertIn("checkpoint: this config has parameter", wider.stderr)

    def refused(self, *arguments):
        """What is said at once, in one line."""
        run = reformer("eval", *arguments)
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        return run.stderr

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

    def test_repeats_are_measured_beside_first_occurrences(self):
        rows = self.rows(self.model, "--recall", "128,65,100", "--rounds",
                         "1,4")
        self.assertEqual([(r["rounds"], r["distance"]) for r in rows],
                         [(1, 128), (1, 65), (1, 100),
                          (4, 128), (4, 65), (4, 100)])
        for row in rows:
            self.assertEqual(row["metric"], "bits per byte")
            for name in "repeat", "first", "no_copy":
                self.assertTrue(0 < row[name] < 9, row)
            self.assertEqual(
                len({row["repeat"], row["first"], row["no_copy"]}), 3, row)
        # 7 sequences of 256 bytes of the 2,000: of 128 the last 64 of each.
        self.assertEqual(rows[0]["tokens"], 7 * (128 - 64))
        [few] = self.rows(self.model, "--recall", 128, "--batches", 2)
        self.assertEqual(few["tokens"], 2 * 2 * (128 - 64))
        other = self.rows(self.model, "--recall", 128, "--split", "test")
        self.assertNotEqual(other[0]["repeat"], rows[0]["repeat"])
        short = self.rows(self.model, "--recall", 65, "--length", "130,0")
        self.assertEqual([row["length"] for row in short], [130, 256])

    def test_repeats_are_a_table(self):
        run = reformer("eval", self.model, "--recall", "65,128")
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stdout.splitlines()
        self.assertEqual(lines[1], "256 positions, 1 round: bits per byte")
        self.assertEqual(lines[2].split(),
                         "distance repeat first occurrence no copy".split())
        rows = self.rows(self.model, "--recall", "65,128")
        for line, row in zip(lines[3:], rows, strict=True):
            self.assertEqual(line.split(), [
                str(row["distance"]),
                *(f"{row[name]:.4f}"
                  for name in ("repeat", "first", "no_copy"))])

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is missing")
    def test_draws_repeats(self):
        png = self.folder / "recall.png"
        run = reformer("eval", self.model, "--recall", "65,128", "--batches",
                       1, "--png", png)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertGreater(png.stat().st_size, 2000)

    def test_distances_that_do_not_fit_are_refused(self):
        for distances in "129", "128,129", "64":
            self.assertIn("distances from 65 to 128, half of a sequence of 256",
                          self.refused(self.model, "--recall", distances))
        self.assertIn("half of a sequence of 200", self.refused(
            self.model, "--recall", 128, "--length", "256,200"))
        few = self.folder / "few"
        few.write_bytes(b"abcdefgh" * 600)  # 240 of them to validate
        run = reformer("eval", self.model, "--recall", 128, "--data", few,
                       "--json")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("a whole sequence of 256 bytes is required", run.stderr)

    def test_repeats_are_of_text_and_nothing_else(self):
        other = self.folder / "duplication"
        made = reformer("train", "duplication-small", "--out", other,
                        "--set", "train.steps=1", "--threads", 1)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("--recall: a model of text is required, task.name is "
                      "duplication", self.refused(other, "--recall", 65))
        both = reformer("eval", self.model, "--recall", 65, "--by-position")
        self.assertEqual(both.returncode, 2)
        self.assertIn("--recall", both.stderr)

    def test_recall_is_counted_by_distance(self):
        run = self.folder / "recall"
        made = reformer("train", "recall", "--out", run, "--threads", 1,
                        *SETTINGS, "--set", "train.steps=3", "--set",
                        "train.warmup=1", "--set", "train.evaluate_batches=1")
        self.assertEqual(made.returncode, 0, made.stderr)
        whole, longer = self.rows(run, "--batches", 2, "--length", "0,1000")
        for row, slots, sequences in (whole, 64, 4), (longer, 250, 2):
            found = row["distances"]
            self.assertEqual(found[0]["begin"], 4)  # a key of 3 and its value
            for octave, after in zip(found, found[1:]):
                self.assertEqual(octave["end"], 2 * octave["begin"])
                self.assertEqual(octave["end"], after["begin"])
            self.assertGreaterEqual(found[-1]["end"], 2 * slots)
            tokens = sum(octave["tokens"] for octave in found)
            self.assertEqual(tokens, sequences * (2 * slots // 5))
            for name in "loss", "accuracy":
                mean = sum(octave[name] * octave["tokens"]
                           for octave in found) / tokens
                self.assertAlmostEqual(mean, row[name], places=6)
        said = reformer("eval", run, "--threads", 1, "--batches", 2)
        self.assertEqual(said.returncode, 0, said.stderr)
        lines = said.stdout.splitlines()
        self.assertTrue(lines[1].startswith("length 256, rounds 1: loss"))
        self.assertEqual(lines[2:], [
            f"  distances {o['begin']} to {o['end'] - 1}: accuracy "
            f"{100 * o['accuracy']:.2f}% of {o['tokens']} tokens"
            for o in whole["distances"]])
        prompt = reformer("generate", run, "--prompt", "70 66 127 5 70 66 127",
                          "--length", 1)
        self.assertEqual(prompt.returncode, 0, prompt.stderr)
        self.assertRegex(prompt.stdout, r"^\d+ ?$")

    def test_an_evaluation_that_is_interrupted_says_so(self):
        with subprocess.Popen(
                [PROGRAM, "eval", str(self.model), "--threads", "1", "--length",
                 "16", "--rounds", "64,65,66,67,68,69,70,71,72"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True) as run:
            for line in run.stderr:
                if "evaluating with" in line:
                    break
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=60)
            self.assertEqual(run.returncode, 128 + signal.SIGINT)

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
                         ["config.json", "model.safetensors", "state.json"])
        # No path of this machine goes with it.
        for file in exact.iterdir():
            self.assertNotIn(str(self.folder).encode(), file.read_bytes())
        whole = self.loss(self.model)
        self.assertEqual(self.loss(exact, "--data", self.text), whole)
        run = reformer("export", self.model, "--out", small)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertLess((small / "model.safetensors").stat().st_size,
                        0.8 * (exact / "model.safetensors").stat().st_size)
        rounded = self.loss(small, "--data", self.text)
        self.assertAlmostEqual(rounded, whole, delta=0.02)
        self.assertNotEqual(rounded, whole)
        info = reformer("info", exact)
        self.assertEqual(info.returncode, 0, info.stderr)
        self.assertIn("parameters", info.stdout)
        again = reformer("export", self.model, "--out", small)
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists already", again.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
