"""distributed_launchers_test.py PROGRAM: runs of two ranks under the launchers
themselves, where they are."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from distributed_support import (CLEAN, STEPS, TINY, free_port, main, program,
                                 tensors_of, train)


class LauncherTest(unittest.TestCase):
    """The launchers themselves, where they are."""

    def run_with(self, *launcher):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "run"
            done = subprocess.run(
                [*launcher, program(), "train", "duplication", "--out", out,
                 *TINY, "--set", "train.steps=3"], env=CLEAN,
                capture_output=True, text=True, timeout=180)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("done after step 3", done.stdout)
            self.assertIn("2 ranks", done.stderr)
            self.assertTrue((out / "step-00000003/model.safetensors").exists())

    def test_mpirun(self):
        mpirun = shutil.which("mpirun")
        if mpirun is None:
            self.skipTest("no mpirun here (Debian: openmpi-bin)")
        self.run_with(mpirun, "--allow-run-as-root", "--oversubscribe", "-x",
                      f"MASTER_PORT={free_port()}", "-n", "2")

    def torchrun(self):
        found = shutil.which("torchrun")
        if found is None:
            self.skipTest("no torchrun here (it comes with PyTorch)")
        return [found, "--no-python", "--nproc-per-node", "2", "--master-port",
                str(free_port())]

    def test_torchrun(self):
        self.run_with(*self.torchrun())

    def test_torchrun_starts_killed_ranks_again_and_the_run_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            out, whole = (pathlib.Path(folder) / name
                          for name in ("killed", "whole"))
            for status, _, told in train(2, whole).finish():
                self.assertEqual(status, 0, told)
            launched = subprocess.Popen(
                [*self.torchrun(), "--max-restarts", "1", program(), "train",
                 "duplication", "--out", out, *TINY], env=CLEAN, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for line in launched.stderr:
                if line.startswith("step 15/"):
                    break
            children = pathlib.Path(
                f"/proc/{launched.pid}/task/{launched.pid}/children")
            ranks = [pid for pid in map(int, children.read_text().split())
                     if os.readlink(f"/proc/{pid}/exe") ==
                     os.path.realpath(program())]
            self.assertEqual(len(ranks), 2)
            os.kill(ranks[1], signal.SIGKILL)
            said, told = launched.communicate(timeout=180)
            self.assertEqual(launched.returncode, 0, told)
            self.assertIn(f"done after step {STEPS}", said)
            for kind in "model", "optimizer":
                self.assertTrue(tensors_of(out, kind) ==
                                tensors_of(whole, kind), kind)


if __name__ == "__main__":
    main()
