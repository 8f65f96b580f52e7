"""train_test.py PROGRAM: runs of `reformer train` as a user meets them: the
same bytes twice, stopped, killed and resumed."""
import json
import os
import pathlib
import pty
import random
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from train_support import (KILLS, STEPS, TINY, main, program, reformer, resume,
                           train)


def tensors(file):
    """The bytes behind a safetensors header, which tells the step, too."""
    text = file.read_bytes()
    return text[8 + int.from_bytes(text[:8], "little"):]


def as_from_a_terminal():
    """Tests may run under nohup, which has its children ignore SIGHUP."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def no_file_beyond_4_kib():
    """Settings fit, a model does not."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


class RunsTest(unittest.TestCase):
    """Every test compares with one run that nobody disturbed."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.whole = pathlib.Path(cls.folder.name) / "whole"
        began = time.monotonic()
        run = train(cls.whole)
        cls.seconds = time.monotonic() - began
        assert run.returncode == 0, run.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def out(self):
        return pathlib.Path(self.folder.name) / self.id().split(".")[-1]

    def files(self, run):
        last = run / f"step-{STEPS:08}"
        return [(last / name).read_bytes()
                for name in ("model.safetensors", "optimizer.safetensors")]

    def losses(self, run):
        lines = map(json.loads, (run / "metrics.jsonl").read_text().split("\n")
                    [:-1])
        return [(line["step"], line["train/loss"]) for line in lines
                if "train/loss" in line]

    def evaluations(self, run):
        lines = map(json.loads, (run / "metrics.jsonl").read_text().split("\n")
                    [:-1])
        return [(line["step"], line["validation/loss"]) for line in lines
                if "validation/loss" in line]

    def assert_same_as_whole(self, run):
        # Not assertEqual: it would spend minutes on a comparison of the bytes.
        self.assertTrue(self.files(run) == self.files(self.whole), "bytes")
        self.assertTrue(self.losses(run) == self.losses(self.whole), "losses")
        self.assertEqual(self.evaluations(run), self.evaluations(self.whole))

    def started(self, step, before=as_from_a_terminal):
        """A new run that has done `step` steps."""
        process = subprocess.Popen(
            [program(), "train", "duplication", "--out", str(self.out()), *TINY],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=before)
        for line in process.stderr:
            if line.startswith(f"step {step}/"):
                break
        return process

    def test_training_twice_gives_the_same_bytes(self):
        self.assertEqual(train(self.out()).returncode, 0)
        self.assert_same_as_whole(self.out())

    def test_metrics_say_what_a_run_does_with_its_time(self):
        lines = [json.loads(line) for line in
                 (self.whole / "metrics.jsonl").read_text().splitlines()]
        lines = [line for line in lines if "train/loss" in line]
        self.assertTrue(lines)
        for line in lines:
            self.assertGreater(line["train/tokens_per_second"], 0)
            self.assertGreater(line["train/data_wait"], 0)
            self.assertLess(line["train/data_wait"], 1)

    def test_another_seed_gives_others(self):
        self.assertEqual(train(self.out(), "--set", "train.seed=1").returncode,
                         0)
        self.assertFalse(self.files(self.out()) == self.files(self.whole))

    def test_a_stopped_run_saves_and_goes_on_bit_for_bit(self):
        process = self.started(step=5)
        for sent in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process.send_signal(sent)
            if sent == signal.SIGHUP:  # from the shell, then from the system
                process.send_signal(sent)
            said, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + sent)
            self.assertRegex(said, r"stopped after step \d+ and saved")
            process = subprocess.Popen(
                [program(), "train", "--resume", "--out", str(self.out()),
                 "--threads", "1"], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
                preexec_fn=as_from_a_terminal)
            process.stderr.readline()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assert_same_as_whole(self.out())

    def test_a_wish_to_stop_that_comes_twice_is_one(self):
        process = self.started(step=5)
        # As timeout(1) does it, to the child and to its group. Stopped, so that
        # both come at once, however busy the machine is.
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate(timeout=60)
        self.assertIn(process.returncode, (128 + signal.SIGTERM,
                                           128 + signal.SIGINT))
        self.assertRegex(said, r"stopped after step \d+ and saved")

    def test_a_terminal_that_is_closed_is_a_wish_to_stop(self):
        try:
            child, terminal = pty.fork()
        except OSError as error:
            self.skipTest(f"no terminal to be had here: {error}")
        if child == 0:
            as_from_a_terminal()
            os.execv(program(), [program(), "train", "duplication", "--out",
                               str(self.out()), *TINY])
        said = b""
        while b"step 5/" not in said:
            said += os.read(terminal, 4096)
        os.close(terminal)
        status = os.waitpid(child, 0)[1]
        self.assertEqual(os.waitstatus_to_exitcode(status),
                         128 + signal.SIGHUP)
        saved = sorted(self.out().glob("step-*"))[-1].name
        self.assertGreaterEqual(saved, "step-00000005")
        self.assertEqual(resume(self.out()).returncode, 0)
        self.assert_same_as_whole(self.out())

    def test_under_nohup_a_run_stays_when_its_terminal_goes(self):
        process = self.started(step=5, before=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertIn(f"done after step {STEPS}", said)
        self.assert_same_as_whole(self.out())

    def test_the_second_run_in_a_folder_is_told_of_the_first(self):
        process = self.started(step=5)
        process.send_signal(signal.SIGSTOP)
        try:
            for second in resume(self.out()), train(self.out()):
                self.assertEqual(second.returncode, 1)
                self.assertRegex(
                    second.stderr.splitlines()[-1],
                    rf"{self.out()}: a run is going on in this folder: process "
                    rf"{process.pid} on \S+ since 20.* UTC; ")
        finally:
            process.kill()
            process.communicate()
        self.assertEqual(resume(self.out()).returncode, 0)
        self.assert_same_as_whole(self.out())
        self.assertFalse((self.out() / "run.lock").exists())

    def test_a_run_killed_at_random_moments_goes_on_bit_for_bit(self):
        """Up to REFORMER_KILLS times."""
        moments = random.Random(1)
        command = [program(), "train", "duplication", "--out", str(self.out()),
                   *TINY]
        killed = 0
        while True:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                process.wait(moments.uniform(0, 2 * self.seconds / KILLS)
                             if killed < KILLS else 300)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
            if (self.out() / "config.json").exists():
                command = [program(), "train", "--resume", "--out",
                           str(self.out()), "--threads", "1"]
        self.assertEqual(process.returncode, 0)
        self.assertGreater(killed, 0)
        self.assert_same_as_whole(self.out())

    def test_a_killed_run_goes_on_bit_for_bit(self):
        for step in 1, 60:  # before the first checkpoint, and after one
            with self.subTest(step=step):
                process = self.started(step)
                process.kill()
                process.communicate()
                self.assertEqual(resume(self.out()).returncode, 0)
                self.assert_same_as_whole(self.out())
                subprocess.run(["rm", "-r", self.out()], check=True)

    def test_a_run_goes_on_longer_and_in_host_memory(self):
        """Where parameters live and how long it takes may change."""
        begun = train(self.out(), "--set", "train.steps=100")
        self.assertEqual(begun.returncode, 0, begun.stderr)
        run = reformer("train", "--resume", "--out", self.out(), "--threads",
                       1, "--set", f"train.steps={STEPS}", "--set",
                       "train.offload=true")
        self.assertEqual(run.returncode, 0, run.stderr)
        # Step 100 was evaluated as the last one: losses are those of whole.
        self.assertTrue(self.files(self.out()) == self.files(self.whole))
        self.assertTrue(self.losses(self.out()) == self.losses(self.whole))

    def test_a_run_goes_on_at_another_rate(self):
        begun = train(self.out(), "--set", "train.steps=3", "--set",
                      "train.warmup=1")
        self.assertEqual(begun.returncode, 0, begun.stderr)
        first = self.out() / "step-00000003/model.safetensors"
        before = tensors(first)
        run = resume(self.out(), "--set", "train.steps=6", "--set",
                     "train.learning_rate=1e-30")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([step for step, _ in self.losses(self.out())],
                         list(range(1, 7)))
        last = self.out() / "step-00000006/model.safetensors"
        self.assertTrue(tensors(last) == before)
        run = resume(self.out(), "--set", "train.steps=7", "--set",
                     "train.learning_rate=0.01")
        self.assertEqual(run.returncode, 0, run.stderr)
        last = self.out() / "step-00000007/model.safetensors"
        self.assertFalse(tensors(last) == before)

    def test_a_run_ends_when_its_minutes_are_over(self):
        """60 nanoseconds are, after any step."""
        run = train(self.out(), "--set", "train.minutes=1e-9")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("done after step 1 in ", run.stdout)
        self.assertEqual([step for step, _ in self.evaluations(self.out())],
                         [1])
        self.assertTrue((self.out() / "step-00000001").exists())
        run = resume(self.out())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("done already, after step 1: nothing to do", run.stdout)
        run = resume(self.out(), "--set", "train.minutes=0", "--set",
                     "train.steps=4")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("done after step 4 in ", run.stdout)

    def test_other_threads_are_a_warning(self):
        process = self.started(step=50)
        process.kill()
        process.communicate()
        run = reformer("train", "--resume", "--out", self.out(), "--threads", 2)
        self.assertEqual(run.returncode, 0)
        self.assertIn("not bit for bit", run.stderr)

    def test_a_run_goes_on_when_nobody_reads_it(self):
        with subprocess.Popen(
                [program(), "train", "duplication", "--out", str(self.out()),
                 *TINY], stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL) as run:
            run.stdout.close()
            self.assertEqual(run.wait(), 0)
        self.assert_same_as_whole(self.out())

    def test_a_run_that_is_over_is_left_alone(self):
        before = {path: path.stat().st_mtime_ns
                  for path in self.whole.rglob("*")}
        run = resume(self.whole)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"done already, after step {STEPS}: nothing to do",
                      run.stdout)
        self.assertEqual({path: path.stat().st_mtime_ns
                          for path in self.whole.rglob("*")}, before)

    def test_a_new_run_begins_with_other_weights(self):
        first = train(self.out(), "--init", self.whole, "--set",
                      "train.steps=1", "--set", "train.learning_rate=1e-30")
        self.assertEqual(first.returncode, 0, first.stderr)
        weights = "step-00000001/model.safetensors"
        last = self.whole / "best/model.safetensors"
        self.assertTrue(tensors(self.out() / weights) == tensors(last))
        without_config = self.out().with_name("without")
        run = reformer("train", "--init", self.whole, "--out", without_config,
                       "--threads", 1, "--set", "train.steps=1", "--set",
                       "train.learning_rate=1e-30", "--set", "train.warmup=0")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(tensors(without_config / weights) == tensors(last))
        other = self.out().with_name("other")
        run = train(other, "--init", self.whole, "--set", "model.layers=1")
        self.assertEqual(run.returncode, 1)
        self.assertIn("--init: another model than the config's", run.stderr)
        self.assertIn("without a CONFIG", run.stderr)
        self.assertFalse(other.exists())

    def test_without_its_first_weights_there_is_no_run(self):
        """A fine-tuning run that ends before they are saved is begun again
        by the same command, and not gone on with from random ones."""
        words = (self.out(), "--init", self.whole, "--set", "train.steps=1",
                 "--set", "train.learning_rate=1e-30")
        run = train(*words, preexec_fn=no_file_beyond_4_kib)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("cannot write", run.stderr)
        self.assertTrue(self.out().exists())
        run = resume(self.out())
        self.assertEqual(run.returncode, 1)
        self.assertIn("holds no run", run.stderr)
        run = train(*words)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue((self.out() / "config.json").exists())
        for step in 0, 1:
            weights = f"step-{step:08}/model.safetensors"
            self.assertTrue(tensors(self.out() / weights) ==
                            tensors(self.whole / "best/model.safetensors"))

    def test_the_screen_says_what_is_about_to_happen(self):
        run = train(self.out(), "--set", "train.steps=3", "--set",
                    "train.warmup=1")
        self.assertEqual(run.returncode, 0, run.stderr)
        for words in ("  model   2 reversible layers (lsh), d_model 16",
                      " parameters\n  data    duplication, made up\n",
                      "  steps   3 of 64 tokens (2 sequences of 32)",
                      " MiB predicted, on ",
                      f"  writes  {self.out()} (all settings: config.json)\n"):
            self.assertIn(words, run.stdout)
        self.assertLess(run.stdout.count("\n"), 15)
        self.assertRegex(run.stderr, r"step 1/3  training loss \d")

    def test_the_folder_tells_what_was_run(self):
        config = json.loads((self.whole / "config.json").read_text())
        self.assertEqual(config["train"]["steps"], STEPS)
        self.assertEqual(config["model"]["d_model"], 16)
        self.assertTrue(list(self.whole.glob("events.out.tfevents.*")))


if __name__ == "__main__":
    main()
