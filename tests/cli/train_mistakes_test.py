"""train_mistakes_test.py PROGRAM: what `reformer train` refuses, survives and
says of it."""
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import unittest

from train_support import BRIEF, TINY, main, program, reformer, resume, train


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
                ("train.block=stored", "train.block", "model.block"),
                ("help", "'help'", "`reformer settings` lists"),
                ("model.dropout=1.5", "model.dropout"),
                ("model.heads=3,4", "model.heads"),
                ("model.attention=lhs", "model.attention", "lhs"),
                ("lsh.n_buckets=7", "lsh.n_buckets", "7"),
                ("train.optimizer=sgd", "train.optimizer", "sgd",
                 "adafactor, adam, adamw, muon")):
            with self.subTest(setting=setting):
                self.assert_refused_before_any_work(
                    train(self.out, "--set", setting), *words)

    def test_the_folder_to_resume_is_named_by_out(self):
        run = reformer("train", "--resume", self.out)
        self.assert_refused_before_any_work(
            run, f"--out names the run: --resume --out {self.out}")

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
        again = train(self.out, *quick)
        self.assert_refused(again, str(self.out), "--resume")
        self.assertEqual(again.stdout, "")
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
                    ["sh", "-c", f'exec "$0" "$@" {closed}', program(), "train",
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
            [program(), "train", "text", "--data", strange, "--out", self.out,
             *TINY], capture_output=True)
        run.stderr = run.stderr.decode(errors="replace")
        self.assert_refused_before_any_work(run, "task.data", "UTF-8")
        self.assertNotIn("model", run.stderr)
        # A run's own folder may have any name.
        own = os.path.join(os.fsencode(self.root), b"run\xfe")
        for command in (["train", "duplication", "--out", own, *TINY, *BRIEF],
                        ["eval", own, "--json", "--threads", "1"]):
            run = subprocess.run([program(), *command], capture_output=True)
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


if __name__ == "__main__":
    main()
