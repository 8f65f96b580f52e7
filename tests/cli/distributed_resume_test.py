"""distributed_resume_test.py PROGRAM: ranks that go on from checkpoints, of
which one is damaged."""
import pathlib
import tempfile
import unittest

from distributed_support import TIMEOUT, main, resume, train


class DistributedResumeTest(unittest.TestCase):
    def test_older_checkpoints_stay_until_all_ranks_have_read(self):
        # The first rank does not read the part that is damaged, and would keep
        # one checkpoint.
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "run"
            settings = ["--set", "train.evaluate_every=0"]
            for status, _, told in train(
                    3, out, *settings, "--set", "train.shard_optimizer=true",
                    "--set", "train.steps=40").finish():
                self.assertEqual(status, 0, told)
            # What evaluations find best is kept anyway.
            older, newest = sorted(out.glob("step-*"))[-2:]
            for best in out.glob("step-*/best"):
                best.unlink()
            damaged = newest / "optimizer-00002-of-00003.safetensors"
            damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
            go_on = ["--set", "train.keep=1", "--set", "train.steps=50"]
            first, second = resume(2, out, *go_on).finish(TIMEOUT + 60)
            self.assertEqual((first[0], second[0]), (1, 1))
            self.assertNotIn("reformer: ", first[2])
            self.assertRegex(
                second[2], f"reformer: rank 1: {damaged}: damaged.*; move "
                f"{newest} aside .* to go on from step {int(older.name[5:])}")
            self.assertTrue(older.exists())
            newest.rename(newest.with_suffix(".damaged"))
            for status, _, told in resume(2, out, *go_on).finish():
                self.assertEqual(status, 0, told)
            self.assertTrue((out / "step-00000050").exists())
            self.assertFalse(older.exists())


if __name__ == "__main__":
    main()
