"""train_test.py PROGRAM: runs of `reformer train` as a user meets them: the
same bytes twice, stopped, killed, resumed, and mistakes."""
import json
import os
import pathlib
import pty
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None  # set below
KILLS = int(os.environ.get("REFORMER_KILLS", 2))  # 2, because it takes seconds
STEPS = 150 * KILLS
TINY = ["--threads", "1"] + [word for setting in (
    f"train.steps={STEPS}", "train.batch=2", "train.length=32",
    "train.log_every=1", "train.checkpoint_every=40", "train.evaluate_every=90",
    "train.warmup=5", "model.layers=2", "model.d_model=16", "model.d_ff=16",
    "model.heads=2", "model.d_head=8", "model.dropout=0.1",
    "lsh.chunk_length=8", "lsh.n_buckets=4",
    "model.successor_fraction=0.5") for word in ("--set", setting)]
BRIEF = ["--set", "train.steps=2", "--set", "train.warmup=1"]
BENCH_KEYS = (
    "bench device dtype layers encoder_layers d_model d_ff heads d_head "
    "attention block length batch rounds local_window optimizer clip offload "
    "parameters step_s tokens_per_s peak_bytes captured ranks rank_wait "
    "optimizer_bytes").split()


def reformer(*arguments, **settings):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          text=True, timeout=300, **settings)


def train(out, *arguments, config="duplication", **settings):
    return reformer("train", config, "--out", out, *TINY, *arguments,
                    **settings)


def resume(out, *arguments):
    return reformer("train", "--resume", "--out", out, "--threads", 1,
                    *arguments)


def tensors(file):
    """The bytes behind a safetensors header, which tells the step, too."""
    text = file.read_bytes()
    return text[8 + int.from_bytes(text[:8], "little"):]


def as_from_a_terminal():
    """Tests may run under nohup, which has its children ignore SIGHUP."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
            [PROGRAM, "train", "duplication", "--out", str(self.out()), *TINY],
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
                [PROGRAM, "train", "--resume", "--out", str(self.out()),
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
            os.execv(PROGRAM, [PROGRAM, "train", "duplication", "--out",
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
        command = [PROGRAM, "train", "duplication", "--out", str(self.out()),
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
                command = [PROGRAM, "train", "--resume", "--out",
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

    def test_other_threads_are_a_warning(self):
        process = self.started(step=50)
        process.kill()
        process.communicate()
        run = reformer("train", "--resume", "--out", self.out(), "--threads", 2)
        self.assertEqual(run.returncode, 0)
        self.assertIn("not bit for bit", run.stderr)

    def test_a_run_goes_on_when_nobody_reads_it(self):
        with subprocess.Popen(
                [PROGRAM, "train", "duplication", "--out", str(self.out()),
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
        self.assertIn("checkpoint: this config has", run.stderr)

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


class MistakesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.out = self.root / "run"
        self.text = self.root / "text"
        self.text.write_bytes(bytes(range(256)) * 8)

    def tearDown(self):
        self.folder.cleanup()

    def assert_refused(self, run, *words):
        self.assertIn(run.returncode, (1, 2), run.stderr)
        last = run.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("reformer: "), run.stderr)
        for word in words:
            self.assertIn(word, last)

    def assert_refused_before_any_work(self, run, *words):
        self.assert_refused(run, *words)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertFalse(self.out.exists())

    def test_settings(self):
        for setting, *words in (
                ("train.stpes=3", "train.stpes", "train.steps"),
                ("train.steps=many", "train.steps", "many"),
                ("train.steps=-1", "train.steps", "-1"),
                ("model.dropout=1.5", "model.dropout"),
                ("model.heads=3,4", "model.heads"),
                ("model.attention=lhs", "model.attention", "lhs"),
                ("lsh.n_buckets=7", "lsh.n_buckets", "7"),
                ("train.optimizer=sgd", "train.optimizer", "sgd",
                 "adafactor, adam, adamw, muon")):
            with self.subTest(setting=setting):
                self.assert_refused_before_any_work(
                    train(self.out, "--set", setting), *words)

    def test_configs(self):
        self.assert_refused_before_any_work(
            train(self.out, config="duplicatoin"), "duplicatoin")
        broken = self.root / "broken.json"
        broken.write_text('{"train": {"steps": 3')
        self.assert_refused_before_any_work(
            train(self.out, config=broken), "broken.json")

    def test_data(self):
        empty = self.root / "empty"
        empty.touch()
        short = self.root / "short"
        short.write_text("abc")
        folder = self.root / "folder"
        folder.mkdir()
        for data, *words in ((self.root / "missing", "missing"),
                             (empty, "empty"), (short, "short"),
                             (folder, "folder")):
            with self.subTest(data=data):
                self.assert_refused_before_any_work(
                    train(self.out, "--data", data, config="text"), *words)
        self.assert_refused_before_any_work(train(self.out, config="text"),
                                            "task.data")

    def test_a_run_is_never_overwritten(self):
        quick = ["--set", "train.steps=2"]
        self.assertEqual(train(self.out, *quick).returncode, 0)
        model = (self.out / "step-00000002/model.safetensors").read_bytes()
        self.assert_refused(train(self.out, *quick), str(self.out), "--resume")
        self.assert_refused(train(self.out, "--resume", *quick), "CONFIG")
        self.assert_refused(
            reformer("train", "--resume", "--out", self.out, "--set",
                     "model.layers=3"), "model.layers", "train.steps")
        self.assertEqual(
            (self.out / "step-00000002/model.safetensors").read_bytes(), model)

    def test_there_is_nothing_to_resume(self):
        self.assert_refused(resume(self.root / "nowhere"), "nowhere")
        self.assert_refused(resume(self.root), str(self.root))

    def test_a_damaged_checkpoint_is_named(self):
        run = train(self.out, "--set", "train.steps=4", "--set",
                    "train.checkpoint_every=2")
        self.assertEqual(run.returncode, 0)
        file = self.out / "step-00000004/model.safetensors"
        data = bytearray(file.read_bytes())
        data[-5] ^= 1
        file.write_bytes(data)
        self.assert_refused(resume(self.out), str(file), "step-00000004",
                            "step 2")
        self.assert_refused(
            reformer("eval", file.parent, "--threads", 1), str(file))

    def test_a_checkpoint_of_a_newer_program_is_not_to_be_moved(self):
        run = train(self.out, "--set", "train.steps=4", "--set",
                    "train.checkpoint_every=2")
        self.assertEqual(run.returncode, 0)
        (self.out / "step-00000004/state.json").write_text('{"format": 9}')
        run = resume(self.out)
        self.assert_refused(run, "step-00000004/state.json", "newer program")
        self.assertNotIn("step 2", run.stderr)

    def test_other_data_are_named_and_must_be_asked_for(self):
        run = train(self.out, "--data", self.text, *BRIEF, config="text")
        self.assertEqual(run.returncode, 0, run.stderr)
        copy = self.root / "copy"
        copy.write_bytes(self.text.read_bytes())
        more = ["--set", "train.steps=3"]
        run = resume(self.out, "--data", copy, *more)
        self.assertEqual(run.returncode, 0, run.stderr)
        text = bytearray(self.text.read_bytes())
        text[1000] ^= 1
        copy.write_bytes(text)
        more = ["--set", "train.steps=4"]
        self.assert_refused(resume(self.out, *more), "task.data",
                            "2048 bytes", "--allow-other-data")
        run = resume(self.out, "--allow-other-data", *more)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("note: the data are not those of the run", run.stderr)
        run = resume(self.out, "--set", "train.steps=5")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_refused(
            train(self.root / "new", "--allow-other-data", *BRIEF), "--resume")

    def test_descriptors_that_are_closed_take_no_file(self):
        for closed in "2>&-", "1>&-", "0<&- 1>&- 2>&-":
            with self.subTest(closed=closed):
                out = self.root / f"closed{len(closed)}{closed[0]}"
                run = subprocess.run(
                    ["sh", "-c", f'exec "$0" "$@" {closed}', PROGRAM, "train",
                     "duplication", "--out", out, *TINY, *BRIEF], timeout=300)
                self.assertEqual(run.returncode, 0)
                lines = (out / "metrics.jsonl").read_text().splitlines()
                self.assertEqual([json.loads(line)["step"] for line in lines],
                                 [1, 2, 2])
                self.assertEqual(resume(out).returncode, 0)

    def test_names_that_are_none_or_no_text(self):
        for command in (["train", "duplication", "--out", ""],
                        ["train", "text", "--out", self.out, "--data", ""],
                        ["eval", ""], ["export", "", "--out", self.out],
                        ["export", self.root, "--out", ""],
                        ["generate", ""]):
            with self.subTest(command=command):
                self.assert_refused_before_any_work(reformer(*command),
                                                    "a name is required")
        strange = os.path.join(os.fsencode(self.root), b"a\xff")
        with open(strange, "wb") as file:
            file.write(self.text.read_bytes())
        run = subprocess.run(
            [PROGRAM, "train", "text", "--data", strange, "--out", self.out,
             *TINY], capture_output=True)
        run.stderr = run.stderr.decode(errors="replace")
        self.assert_refused_before_any_work(run, "task.data", "UTF-8")
        self.assertNotIn("model", run.stderr)
        # A run's own folder may have any name.
        own = os.path.join(os.fsencode(self.root), b"run\xfe")
        for command in (["train", "duplication", "--out", own, *TINY, *BRIEF],
                        ["eval", own, "--json", "--threads", "1"]):
            run = subprocess.run([PROGRAM, *command], capture_output=True)
            self.assertEqual(run.returncode, 0, run.stderr)
        json.loads(run.stdout)

    def test_a_number_beyond_all_bounds(self):
        broken = self.root / "broken.json"
        broken.write_text('{"train": {"learning_rate": 1e400}}')
        self.assert_refused_before_any_work(
            train(self.out, config=broken), "broken.json", "1e400")
        self.assert_refused_before_any_work(
            train(self.out, "--set", "train.learning_rate=1e400"),
            "train.learning_rate", "1e400")

    def test_a_working_folder_that_is_gone(self):
        gone = self.root / "gone"
        gone.mkdir()
        run = train(self.out, cwd=gone, preexec_fn=gone.rmdir)
        self.assert_refused_before_any_work(run, "the working folder")

    def test_metrics_with_zeros_at_their_end_go_on(self):
        self.assertEqual(train(self.out, *BRIEF).returncode, 0)
        with open(self.out / "metrics.jsonl", "ab") as metrics:
            metrics.write(bytes(4096) + b"\n")
        run = resume(self.out, "--set", "train.steps=3")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("its last 4097 bytes", run.stderr)
        lines = (self.out / "metrics.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(line)["step"] for line in lines],
                         [1, 2, 2, 3, 3])

    def test_a_loss_that_is_not_finite_keeps_the_last_checkpoint(self):
        run = train(self.out, "--set", "train.optimizer=adamw", "--set",
                    "train.learning_rate=1e30", "--set",
                    "train.checkpoint_every=1")
        self.assert_refused(run, "not finite", "train.learning_rate")
        saved = sorted(self.out.glob("step-*"))
        self.assertTrue((saved[-1] / "model.safetensors").exists())
        self.assertFalse(list(self.out.glob("step-*/best")))
        run = reformer("eval", self.out, "--threads", 1)
        self.assert_refused(run, "not finite", "diverged")
        self.assertNotIn("nan", run.stdout)
        run = reformer("eval", self.out, "--threads", 1, "--by-position")
        self.assert_refused(run, "not finite", "diverged")

    def test_others_files_in_a_folder_are_not_removed(self):
        self.out.mkdir()
        theirs = self.out / ".tmp-thesis"
        theirs.write_text("...")
        self.assert_refused(train(self.out), str(self.out), ".tmp-thesis")
        self.assertEqual([entry.name for entry in self.out.iterdir()],
                         [".tmp-thesis"])

    def test_a_full_disk_loses_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
        self.assertEqual(
            train(self.out, "--set", "train.steps=1").returncode, 0)
        kept = self.out / "step-00000001/model.safetensors"
        self.assertGreater(kept.stat().st_size, 10000)
        out = self.root / "limited"
        run = train(out, "--set", "train.steps=3", "--set", "model.d_ff=600",
                    preexec_fn=limit)
        self.assert_refused(run, str(out), "File too large")

    def test_text_may_come_from_standard_input(self):
        with open(self.text) as text:
            run = train(self.out, "--data", "-", *BRIEF, config="text",
                        stdin=text)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_model_of_text_writes_after_each_evaluation(self):
        self.text.write_bytes(b"ab\x1b[2J\n" * 400)
        run = train(self.out, "--data", self.text, "--set",
                    "train.sample_length=40", "--set", "train.steps=20",
                    "--set", "train.evaluate_every=10", config="text")
        self.assertEqual(run.returncode, 0, run.stderr)
        for step in 10, 20:
            self.assertIn(f"step {step}: the model writes\n  | ", run.stdout)
        self.assertNotIn("\x1b", run.stdout)
        # For TensorBoard, too; and the weights do not depend on it.
        [events] = self.out.glob("events.out.tfevents.*")
        self.assertEqual(events.read_bytes().count(b"\x0a\x04text"), 2)
        other = self.root / "without"
        run = train(other, "--data", self.text, "--set", "train.steps=20",
                    "--set", "train.evaluate_every=10", "--set",
                    "train.sample_length=0", config="text")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("the model writes", run.stdout)
        name = "step-00000020/model.safetensors"
        self.assertTrue((self.out / name).read_bytes() ==
                        (other / name).read_bytes(), "bytes")

    def test_a_run_finds_its_text_from_any_folder(self):
        run = train(self.out, "--data", "text", *BRIEF, config="text",
                    cwd=self.root)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(reformer("eval", self.out, cwd="/").returncode, 0)


class BenchTest(unittest.TestCase):
    def test_every_length_is_a_line_with_exactly_these_keys(self):
        run = reformer("bench", "train", "--config", "duplication", "--length",
                       "32,64", "--batch", 2, "--repeats", 1, "--json", *TINY[:2])
        self.assertEqual(run.returncode, 0, run.stderr)
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual([row["length"] for row in rows], [32, 64])
        for row in rows:
            self.assertEqual(list(row), BENCH_KEYS)
            self.assertAlmostEqual(row["tokens_per_s"] * row["step_s"],
                                   2 * row["length"])
            self.assertGreater(row["peak_bytes"], 4 * row["parameters"])

    def test_of_translation_source_and_target_count(self):
        run = reformer("bench", "train", "--config", "translation-toy",
                       "--batch", 3, "--repeats", 1, "--json", *TINY[:2])
        self.assertEqual(run.returncode, 0, run.stderr)
        row = json.loads(run.stdout)
        self.assertEqual(row["batch"], 3)
        self.assertGreater(row["encoder_layers"], 0)
        self.assertAlmostEqual(row["tokens_per_s"] * row["step_s"],
                               2 * 3 * row["length"])

    def test_a_profile_needs_a_gpu(self):
        run = reformer("bench", "train", "--device", "cpu", "--profile")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"^reformer: .*--device cuda\n$")


class Table2Test(unittest.TestCase):
    def table2(self, out, steps):
        return reformer("reproduce", "table2", "--quick", "--steps", steps,
                        "--seeds", 2, "--out", out, "--device", "cpu")

    def test_every_cell_is_there_and_nothing_is_done_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "table2"
            run = self.table2(out, 1)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertRegex(run.stdout, r"lsh-4 +\d+\.\d \(  0\.8\)")
            lines = (out / "table2.jsonl").read_text()
            cells = [json.loads(line) for line in lines.splitlines()]
            self.assertEqual(
                [(cell["trained"], cell["evaluated"]) for cell in cells],
                [(trained, evaluated)
                 for trained in ("full", "lsh-4", "lsh-2", "lsh-1")
                 for evaluated in ("full", "lsh-8", "lsh-4", "lsh-2", "lsh-1")])
            for cell in cells:
                self.assertEqual(len(cell["seeds"]), 2)
                self.assertAlmostEqual(cell["accuracy"], sum(cell["seeds"]) / 2)
            self.assertTrue(any(cell["seeds"][0] != cell["seeds"][1]
                                for cell in cells))
            least = min(cells[0]["seeds"])
            self.assertRegex(run.stdout, rf"\n +{least:.1f} to \d+\.\d ")
            model = out / "trained-lsh-1/seed-1/step-00000001/model.safetensors"
            written = model.stat().st_mtime_ns
            self.assertEqual(self.table2(out, 1).returncode, 0)
            self.assertEqual((out / "table2.jsonl").read_text(), lines)
            self.assertEqual(model.stat().st_mtime_ns, written)
            again = self.table2(out, 2)
            self.assertEqual(again.returncode, 1)
            self.assertIn("other settings", again.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
