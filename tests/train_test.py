"""train_test.py PROGRAM: runs of `reformer train` as a user meets them: the
same bytes twice, stopped, killed, resumed, and mistakes."""
import json
import os
import pathlib
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
    "lsh.chunk_length=8", "lsh.n_buckets=4") for word in ("--set", setting)]
BRIEF = ["--set", "train.steps=2", "--set", "train.warmup=1"]
BENCH_KEYS = (
    "bench device dtype layers d_model d_ff heads d_head attention block "
    "length batch rounds local_window optimizer clip parameters_on parameters "
    "step_s tokens_per_s peak_bytes recorded").split()


def reformer(*arguments, **settings):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          text=True, timeout=300, **settings)


def train(out, *arguments, config="duplication", **settings):
    return reformer("train", config, "--out", out, *TINY, *arguments,
                    **settings)


def resume(out):
    return reformer("train", "--resume", "--out", out, "--threads", 1)


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

    def assert_same_as_whole(self, run):
        # Not assertEqual: it would spend minutes on a picture of the bytes.
        self.assertTrue(self.files(run) == self.files(self.whole), "bytes")
        self.assertTrue(self.losses(run) == self.losses(self.whole), "losses")

    def started(self, step):
        """A new run that has done `step` steps."""
        process = subprocess.Popen(
            [PROGRAM, "train", "duplication", "--out", str(self.out()), *TINY],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
        for sent in signal.SIGINT, signal.SIGTERM:
            process.send_signal(sent)
            said, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
            self.assertRegex(said, r"stopped after step \d+ and saved")
            process = subprocess.Popen(
                [PROGRAM, "train", "--resume", "--out", str(self.out()),
                 "--threads", "1"], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
            process.stderr.readline()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assert_same_as_whole(self.out())

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
                       "train.parameters=host")
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
                ("train.optimizer=sgd", "train.optimizer", "sgd")):
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

    def test_a_loss_that_is_not_finite_keeps_the_last_checkpoint(self):
        run = train(self.out, "--set", "train.optimizer=adamw", "--set",
                    "train.learning_rate=1e30", "--set",
                    "train.checkpoint_every=1")
        self.assert_refused(run, "not finite", "train.learning_rate")
        self.assertTrue(list(self.out.glob("step-*/model.safetensors")))

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

    def test_a_profile_needs_a_gpu(self):
        run = reformer("bench", "train", "--device", "cpu", "--profile")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"^reformer: .*--device cuda\n$")


class Table2Test(unittest.TestCase):
    def table2(self, out, steps):
        return reformer("reproduce", "table2", "--quick", "--steps", steps,
                        "--out", out, "--device", "cpu")

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
            model = out / "trained-lsh-1/step-00000001/model.safetensors"
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
