"""average_test.py PROGRAM: `reformer average` writes a model that the other
commands take, or one sentence."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below
FOLDER = None


def reformer(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          text=True, timeout=120)


def setUpModule():
    global FOLDER
    FOLDER = tempfile.TemporaryDirectory()
    sets = [word for setting in (
        "train.steps=4", "train.warmup=1", "train.batch=1", "train.length=64",
        "model.layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=2",
        "model.d_head=8", "lsh.chunk_length=8", "train.checkpoint_every=1",
        "train.keep=3") for word in ("--set", setting)]
    run = reformer("train", "duplication", "--out", path("run"), "--threads", 1,
                   *sets)
    assert run.returncode == 0, run.stderr


def tearDownModule():
    FOLDER.cleanup()


def path(name):
    return pathlib.Path(FOLDER.name) / name


class Average(unittest.TestCase):
    def test_the_mean_is_a_model_for_all_commands(self):
        run = reformer("average", path("run"), "--last", 3, "--out",
                       path("mean"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("the mean of 3 checkpoints, the newest of step 4",
                      run.stdout)
        for command in (["info", path("mean")],
                        ["generate", path("mean"), "--prompt", "1 2",
                         "--length", 2],
                        ["eval", path("mean"), "--batches", 1]):
            run = reformer(*command)
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_several_folders_are_averaged_as_they_are(self):
        steps = sorted(path("run").glob("step-*"))
        self.assertEqual(len(steps), 3)
        run = reformer("average", *steps[:2], "--out", path("two"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("the mean of 2 checkpoints", run.stdout)
        self.assertEqual(
            json.loads((path("two") / "state.json").read_text())["step"], 3)

    def refused(self, *arguments):
        run = reformer("average", *arguments)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(run.stdout, "")
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        return run.stderr

    def test_what_cannot_be_is_one_sentence(self):
        out = path("none")
        self.assertIn("holds 3 checkpoints, not 5",
                      self.refused(path("run"), "--out", out))
        self.assertIn("no such folder",
                      self.refused(path("nothing"), "--out", out))
        self.assertIn("--last is of one run",
                      self.refused(path("run"), path("run"), "--last", 2,
                                   "--out", out))
        self.assertFalse(out.exists())
        out.mkdir()
        self.assertIn("exists already",
                      self.refused(path("run"), "--last", 1, "--out", out))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
