"""reproduce_table4_test.py PROGRAM: `reformer reproduce table4` on made text."""
import json
import pathlib
import statistics
import subprocess
import tempfile
import unittest

from reproduce_support import main, program, standard_error


class Table4Test(unittest.TestCase):
    SETTINGS = ["--quick", "--seeds", "2", "--steps", "4", "--last", "2",
                "--threads", "1", "--device", "cpu", "--beam", "2"]
    SETTINGS += [word for setting in (
        "task.alphabet=6", "model.layers=1", "model.encoder_layers=1",
        "model.d_model=16", "model.d_ff=16", "model.heads=2",
        "train.length=4", "train.batch=2", "train.warmup=1",
        "train.evaluate_every=4", "train.checkpoint_every=1",
        "train.evaluate_batches=1") for word in ("--set", setting)]

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.folder.name) / "out"
        cls.run_ = cls.table4()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def table4(cls, *more):
        return subprocess.run(
            [program(), "reproduce", "table4", "--out", str(cls.out),
             *cls.SETTINGS, *more], capture_output=True, text=True, timeout=300)

    def rows(self):
        lines = (self.out / "table4.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def test_both_models_have_every_seed_and_a_standard_error(self):
        self.assertEqual(self.run_.returncode, 0, self.run_.stderr)
        rows = self.rows()
        self.assertEqual([row["model"] for row in rows],
                         ["plain", "reversible"])
        for row in rows:
            self.assertEqual(len(row["seeds"]), 2)
            self.assertAlmostEqual(row["bleu"], statistics.mean(row["seeds"]))
            self.assertAlmostEqual(row["standard_error"],
                                   standard_error(row["seeds"]))
            self.assertIn("tok:13a", row["signature"])
        self.assertIn("reversible - plain, seed by seed: ", self.run_.stdout)

    def test_models_differ_in_the_block_and_in_the_seed(self):
        for name, block in ("plain", "residual"), ("reversible", "reversible"):
            for seed in 0, 1:
                config = json.loads(
                    (self.out / name / f"seed-{seed}" / "config.json")
                    .read_text())
                self.assertEqual(config["model"]["block"], block)
                self.assertEqual(config["train"]["seed"], seed)

    def test_what_is_done_is_not_done_again(self):
        before = self.rows()
        run = self.table4()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("training the", run.stdout + run.stderr)
        self.assertNotIn("BLEU|", run.stdout)
        self.assertEqual(self.rows(), before)
        run = self.table4("--beam", "1")  # translated again, not trained
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("training the", run.stdout + run.stderr)
        self.assertIn("BLEU|", run.stdout)

    def test_what_is_no_translation_is_refused(self):
        run = subprocess.run(
            [program(), "reproduce", "table4", "--out", str(self.out) + "-none",
             "--config", "duplication"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("model.encoder_layers", run.stderr)


if __name__ == "__main__":
    main()
