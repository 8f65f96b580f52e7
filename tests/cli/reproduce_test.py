"""reproduce_test.py PROGRAM: the experiments of `reformer reproduce figureN` in
the smallest of settings: rows, statistics, resumption, and mistakes."""
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below
STEPS = 6
EVALUATED = [2, 4, 6]
TINY = ["--quick", "--threads", "1", "--device", "cpu", "--steps", str(STEPS)]
TINY += [word for setting in (
    "model.layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=2",
    "train.length=32", "train.batch=2", "train.warmup=1", "train.log_every=1",
    "train.evaluate_every=2", "train.evaluate_batches=1",
    "train.checkpoint_every=2", "lsh.chunk_length=8")
    for word in ("--set", setting)]
# figure5 varies the layers itself.
TINY5 = [word for i, word in enumerate(TINY)
         if "model.layers=1" not in TINY[i:i + 2]]
ROUNDS = ["lsh-1", "lsh-2", "lsh-4", "lsh-8",
          "local+lsh-1", "local+lsh-2", "local+lsh-4"]

# Stands in for gnuplot: keeps the script, and writes the ends of a plot.
FAKE_GNUPLOT = r"""#!/bin/sh
cat >"$0.script"
printf '\211PNG\r\n\032\n IEND\256B`\202'
"""


def xxhash64(data):
    """XXH64 of more than 31 bytes, in hexadecimal."""
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F,
                          0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                          0x27D4EB2F165667C5)
    whole = 2**64 - 1

    def turned(x, n):
        return (x << n | (x & whole) >> (64 - n)) & whole

    def mixed(x, word):
        return turned((x + word * p2) & whole, 31) * p1 & whole

    def word(at, size=8):
        return int.from_bytes(data[at:at + size], "little")

    lanes = [(p1 + p2) & whole, p2, 0, -p1 & whole]
    end = len(data) // 32 * 32
    for at in range(0, end, 32):
        lanes = [mixed(x, word(at + 8 * i)) for i, x in enumerate(lanes)]
    x = sum(turned(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & whole
    for lane in lanes:
        x = ((x ^ mixed(0, lane)) * p1 + p4) & whole
    x += len(data)
    while end + 8 <= len(data):
        x = turned(x ^ mixed(0, word(end)), 27) * p1 + p4
        end += 8
    if end + 4 <= len(data):
        x = turned(x ^ word(end, 4) * p1, 23) * p2 + p3
        end += 4
    for byte in data[end:]:
        x = turned(x ^ byte * p5, 11) * p1
    for shift, factor in (33, p2), (29, p3), (32, 1):
        x = ((x & whole) ^ (x & whole) >> shift) * factor
    return f"{x:016x}"


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values))


class ReproduceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.text = cls.root / "text"
        cls.text.write_text("".join(f"{n * n % 97} and {n} " for n in range(900)))
        tools = cls.root / "tools"
        tools.mkdir()
        fake = tools / "gnuplot"
        fake.write_text(FAKE_GNUPLOT)
        fake.chmod(0o755)
        cls.script = tools / "gnuplot.script"
        cls.environment = {**os.environ,
                           "PATH": f"{tools}:{os.environ['PATH']}"}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def command(cls, figure, out, *arguments):
        return [PROGRAM, "reproduce", figure, "--out", str(out),
                *map(str, arguments)]

    @classmethod
    def reproduce(cls, figure, out, *arguments):
        return subprocess.run(cls.command(figure, out, *arguments), timeout=120,
                              capture_output=True, text=True,
                              env=cls.environment)

    @classmethod
    def done(cls, figure, out, *arguments):
        """stdout of a command that succeeds."""
        run = cls.reproduce(figure, out, *arguments)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def out(self):
        return self.root / self.id().split(".")[-1]

    def rows(self, out, figure, kind):
        lines = (out / f"{figure}.jsonl").read_text().splitlines()
        rows = list(map(json.loads, lines))
        self.assertEqual({row["figure"] for row in rows}, {figure})
        return [row for row in rows if row["row"] == kind]

    def assert_refused(self, run, message):
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertEqual(run.stderr, f"reformer: {message}\n")

    def known_curves(self, out, figure, values):
        """Has the runs of `out` say that {series: a value for each seed} are
        what they ended with."""
        for series, ends in values.items():
            for seed, end in enumerate(ends):
                (out / series / f"seed-{seed}" / "metrics.jsonl").write_text(
                    "".join(json.dumps({
                        "step": step, "validation/loss": 9,
                        "validation/bits per byte": end + STEPS - step}) + "\n"
                        for step in EVALUATED))
        return self.done(figure, out)


class Figure4Test(ReproduceTest):
    """Two seeds of all series, trained once; what needs other runs has its own
    folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.whole = cls.root / "whole"
        cls.arguments = [*TINY, "--data", cls.text, "--seeds", 2]
        cls.screen = cls.done("figure4", cls.whole, *cls.arguments)

    def finals(self, out, series, seeds=(0, 1)):
        points = {(row["series"], row["seed"], row["step"]): row["value"]
                  for row in self.rows(out, "figure4", "point")}
        return [points[series, seed, STEPS] for seed in seeds]

    def test_every_point_is_what_its_run_measured(self):
        points = self.rows(self.whole, "figure4", "point")
        self.assertEqual(
            [(row["series"], row["step"], row["seed"]) for row in points],
            [(series, step, seed) for series in ["full", *ROUNDS]
             for step in EVALUATED for seed in (0, 1)])
        for row in points:
            run = self.whole / row["series"] / f"seed-{row['seed']}"
            lines = map(json.loads,
                        (run / "metrics.jsonl").read_text().splitlines())
            self.assertEqual(row["metric"], "bits per byte")
            self.assertEqual([row["value"]], [
                line["validation/bits per byte"] for line in lines
                if line["step"] == row["step"] and "validation/loss" in line])
        # Different attentions and seeds are different runs.
        self.assertEqual(len({row["value"] for row in points
                              if row["step"] == STEPS}), 16)

    def test_runs_differ_in_what_the_figure_varies_and_in_the_seed(self):
        def settings(series, seed):
            path = self.whole / series / f"seed-{seed}" / "config.json"
            sections = json.loads(path.read_text())
            return {f"{section}.{key}": value
                    for section, keys in sections.items()
                    for key, value in keys.items()}

        def differences(one, other):
            return {key: other[key] for key in one if one[key] != other[key]}
        full = settings("full", 0)
        self.assertEqual(full["model.attention"], "full_shared_qk")
        self.assertEqual(differences(full, settings("full", 1)),
                         {"train.seed": 1})
        for series in ROUNDS:
            rounds = int(series[-1])
            expected = {"model.attention": "lsh"}
            if rounds != full["lsh.rounds"]:
                expected["lsh.rounds"] = rounds
            if series.startswith("local"):
                expected["lsh.local_window"] = full["lsh.chunk_length"]
            self.assertEqual(differences(full, settings(series, 0)), expected)

    def test_means_and_differences_are_pythons(self):
        means = {(row["series"], row["step"]): row
                 for row in self.rows(self.whole, "figure4", "mean")}
        differences = {(row["series"], row["step"]): row
                       for row in self.rows(self.whole, "figure4",
                                            "difference")}
        self.assertEqual(len(means), 8 * len(EVALUATED))
        self.assertEqual(len(differences), 7 * len(EVALUATED))
        full = self.finals(self.whole, "full")
        for series in ROUNDS:
            values = self.finals(self.whole, series)
            pairs = [value - other for value, other in zip(values, full)]
            for row, expected in ((means[series, STEPS], values),
                                  (differences[series, STEPS], pairs)):
                self.assertEqual(row["seeds"], 2)
                self.assertAlmostEqual(row["mean"], statistics.mean(expected),
                                       places=12)
                self.assertAlmostEqual(row["standard_error"],
                                       standard_error(expected), places=12)
            self.assertEqual(differences[series, STEPS]["against"], "full")

    def test_the_table_says_the_same(self):
        table = self.screen.split("after step 6;")[1].splitlines()
        lines = {line.split()[0]: line.split()[1:] for line in table[3:]
                 if line.split() and line.split()[0] in ["full", *ROUNDS]}
        self.assertEqual(list(lines), ["full", *ROUNDS])
        full = self.finals(self.whole, "full")
        for series in ROUNDS:
            values = self.finals(self.whole, series)
            pairs = [value - other for value, other in zip(values, full)]
            self.assertEqual(lines[series], [
                "2", f"{statistics.mean(values):.4f}",
                f"{standard_error(values):.4f}",
                f"{statistics.mean(pairs):+.4f}",
                f"{standard_error(pairs):.4f}"])
        self.assertEqual(len(lines["full"]), 3)

    def test_what_is_done_is_not_trained_again(self):
        numbers = (self.whole / "figure4.jsonl").read_text()
        model = self.whole / "lsh-8/seed-1/step-00000006/model.safetensors"
        written = model.stat().st_mtime_ns
        for arguments in self.arguments, []:
            screen = self.done("figure4", self.whole, *arguments)
            self.assertNotIn("training", screen)
            self.assertIn("plot is in", screen)
            self.assertEqual((self.whole / "figure4.jsonl").read_text(),
                             numbers)
            self.assertEqual(model.stat().st_mtime_ns, written)

    def test_a_last_evaluation_that_was_killed_is_done_again(self):
        out = self.out()
        shutil.copytree(self.whole, out, symlinks=True)
        run = out / "lsh-2/seed-1"
        metrics = run / "metrics.jsonl"
        lines = metrics.read_text().splitlines(keepends=True)
        self.assertIn("validation/loss", lines[-1])
        metrics.write_text("".join(lines[:-1]))
        state = run / f"step-{STEPS:08}/state.json"
        text = state.read_text().replace(f'"evaluated_step": {STEPS}',
                                         f'"evaluated_step": {EVALUATED[-2]}')
        text = text[:text.rindex('"checksum"')]
        state.write_text(f'{text}"checksum": "{xxhash64(text.encode())}"\n}}\n')
        screen = self.done("figure4", out, *self.arguments)
        self.assertEqual([line for line in screen.splitlines()
                          if line.startswith("training")],
                         [f"training lsh-2: {run}"])
        self.assertEqual((out / "figure4.jsonl").read_text(),
                         (self.whole / "figure4.jsonl").read_text())

    def test_other_settings_are_refused(self):
        for changed in (["--steps", 7], ["--set", "train.batch=1"],
                        ["--data", PROGRAM]):
            self.assert_refused(
                self.reproduce("figure4", self.whole, *self.arguments,
                               *changed),
                f"{self.whole}: was begun with other settings (its "
                "experiment.json has them); choose another --out, or give none "
                "to go on with its own")
        self.assert_refused(
            self.reproduce("figure3", self.whole, *self.arguments),
            f"{self.whole}: holds figure4, not figure3; choose another --out")

    def test_stopped_anywhere_it_goes_on_to_the_same_numbers(self):
        out = self.out()
        arguments = self.command("figure4", out, *self.arguments)
        stops = 0
        for run, step in ("full/seed-0", 3), ("lsh-4/seed-1", 1):
            process = subprocess.Popen(
                arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=self.environment)
            for line in process.stdout:
                if line.startswith("training") and run in line:
                    break
            for line in process.stderr:
                if line.startswith(f"step {step}/"):
                    break
            process.send_signal(signal.SIGINT)
            screen, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)
            self.assertFalse((out / "figure4.jsonl").exists())
            stops += "stopped and saved; go on with the same" in screen
        self.assertEqual(stops, 2)
        self.done("figure4", out, *self.arguments)
        self.assertEqual((out / "figure4.jsonl").read_text(),
                         (self.whole / "figure4.jsonl").read_text())


class Figure3Test(ReproduceTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = cls.root / "runs"
        cls.arguments = [*TINY, "--seeds", 2]
        cls.screen = cls.done("figure3", cls.runs, *cls.arguments)

    def copied(self):
        out = self.out()
        shutil.copytree(self.runs, out, symlinks=True)
        return out

    def test_quick_makes_a_text_of_its_own_and_says_so(self):
        text = self.runs / "synthetic.txt"
        self.assertIn(f"a synthetic text of 1 MiB, {text}\n", self.screen)
        self.assertEqual(len(text.read_bytes()), 1 << 20)
        self.assertRegex(text.read_text(), r"^[A-Z][a-z]+( [A-Za-z]+)+\. ")

    def test_each_comparison_is_one_switch(self):
        switches = {}
        for series in "regular", "shared-qk", "reversible", "successors":
            path = self.runs / series / "seed-0/config.json"
            model = json.loads(path.read_text())["model"]
            switches[series] = (model["attention"], model["block"],
                                model["successor_fraction"])
        self.assertEqual(switches, {
            "regular": ("full", "residual", 0),
            "shared-qk": ("full_shared_qk", "residual", 0),
            "reversible": ("full", "reversible", 0),
            "successors": ("full_shared_qk", "residual", 0.5)})

    def test_statistics_of_known_numbers(self):
        out = self.copied()
        self.done("figure3", out, "--seeds", 3)
        screen = self.known_curves(out, "figure3", {
            "regular": [1, 2, 4], "shared-qk": [1.5, 2.5, 4.5],
            "reversible": [2, 2, 7]})
        known = {  # series: mean, its error, difference, its error
            "regular": (7 / 3, math.sqrt(7) / 3),
            "shared-qk": (17 / 6, math.sqrt(7) / 3, 0.5, 0),
            "reversible": (11 / 3, 5 / 3, 4 / 3, math.sqrt(7) / 3)}
        for series, expected in known.items():
            rows = [row for kind in ("mean", "difference")
                    for row in self.rows(out, "figure3", kind)
                    if (row["series"], row["step"]) == (series, STEPS)]
            found = [row[key] for row in rows
                     for key in ("mean", "standard_error")]
            self.assertEqual([f"{number:.12f}" for number in found],
                             [f"{number:.12f}" for number in expected])
        self.assertRegex(screen, r"shared-qk +3 +2\.8333 +0\.8819 +\+0\.5000 "
                                 r"+0\.0000\n")
        # Drawn: a mean with its error bar, and a difference with its own.
        script = self.script.read_text()
        self.assertIn(f"\n6 {7 / 3:.15g} {math.sqrt(7) / 3:.15g}\n", script)
        self.assertIn("\n6 0.5 0\n", script)

    def test_more_seeds_leave_those_that_are_there(self):
        out = self.copied()
        before = self.rows(out, "figure3", "point")
        screen = self.done("figure3", out, *self.arguments, "--seeds", 3)
        after = self.rows(out, "figure3", "point")
        self.assertEqual([row for row in after if row["seed"] < 2], before)
        self.assertEqual(len(after), len(before) * 3 // 2)
        self.assertEqual(screen.count("training "), 4)

    def test_one_seed_has_no_standard_error(self):
        out = self.copied()
        screen = self.done("figure3", out, "--seeds", 1)
        rows = self.rows(out, "figure3", "difference")
        self.assertEqual({row["standard_error"] for row in rows}, {None})
        self.assertRegex(screen, r"reversible +1 +\d\.\d{4} +- +[+-]\d\.\d{4} "
                                 r"+-\n")

    def test_metrics_alone_are_drawn(self):
        out = self.copied()
        numbers = (out / "figure3.jsonl").read_text()
        for checkpoint in out.glob("*/*/step-*"):
            shutil.rmtree(checkpoint)
        (out / "synthetic.txt").unlink()
        self.done("figure3", out)
        self.assertEqual((out / "figure3.jsonl").read_text(), numbers)

    def test_an_emptied_log_is_named(self):
        # In place: a copy would be another run, on another synthetic text.
        run = self.runs / "shared-qk/seed-1"
        log = run / "metrics.jsonl"
        self.addCleanup(log.write_text, log.read_text())
        for text in ("", '{"step": 6, "train/loss": 3}\n'):
            log.write_text(text)
            refused = self.reproduce("figure3", self.runs)
            self.assertEqual(
                (refused.returncode, refused.stderr),
                (1, f"reformer: {run}/metrics.jsonl: holds no evaluation, "
                 "though the run is done; remove the folder to train it "
                 "again\n"))

    def test_another_metric_is_named(self):
        out = self.copied()
        run = out / "shared-qk/seed-1"
        log = run / "metrics.jsonl"
        log.write_text(log.read_text().replace("bits per byte", "bits\\n"))
        refused = self.reproduce("figure3", out)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"{run}/metrics.jsonl: was evaluated at other steps",
                      refused.stderr)

    def test_a_metric_that_is_a_line_of_a_script(self):
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is missing")
        out = self.copied()
        for log in out.glob("*/*/metrics.jsonl"):
            log.write_text(log.read_text().replace(
                "bits per byte", "'\\n!touch pwned\\n`touch pwned`"))
        run = subprocess.run(self.command("figure3", out), text=True, cwd=out,
                             capture_output=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertTrue((out / "figure3.png").exists())
        self.assertFalse((out / "pwned").exists())

    def test_every_number_of_its_settings_is_checked(self):
        out = self.copied()
        path = out / "experiment.json"
        good = json.loads(path.read_text())
        for key, value, said in (
                ("seeds", 0, "a whole number from 1 to 1000"),
                ("seeds", -1, "a whole number from 1 to 1000"),
                ("seeds", 1e30, "a whole number from 1 to 1000"),
                ("seeds", 2 ** 64 - 1, "a whole number from 1 to 1000"),
                ("seeds", 1001, "a whole number from 1 to 1000"),
                ("seeds", 2.5, "a whole number from 1 to 1000"),
                ("seeds", "2", "a whole number from 1 to 1000"),
                ("seeds", True, "a whole number from 1 to 1000"),
                ("seeds", None, "a whole number from 1 to 1000"),
                ("quick", 1, "is damaged"),
                ("lists", 3, "is damaged"),
                ("lists", {"layers": []}, "a list of whole numbers"),
                ("lists", {"layers": 1e30}, "a list of whole numbers"),
                ("lists", {"layers": [1e30]}, "a whole number from 0 to"),
                ("config", 3, "an object of settings"),
                ("config", {**good["config"], "train": {
                    **good["config"]["train"], "batch": 0}}, "train.batch"),
                ("config", {**good["config"], "train": {
                    **good["config"]["train"], "seed": 2 ** 63 - 1}},
                 "train.seed")):
            with self.subTest(key=key, value=value):
                path.write_text(json.dumps({**good, key: value}))
                run = self.reproduce("figure3", out)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertRegex(run.stderr, r"\Areformer: .*\n\Z")
                self.assertIn(said, run.stderr)

    def test_without_gnuplot_the_numbers_stay(self):
        out = self.copied()
        (out / "figure3.jsonl").unlink()
        run = subprocess.run(self.command("figure3", out), text=True,
                             capture_output=True,
                             env={**os.environ, "PATH": str(self.root)})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, "no plot: gnuplot is missing; install")
        self.assertTrue(self.rows(out, "figure3", "mean"))

    def test_the_plot_is_one(self):
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is missing")
        out = self.copied()
        run = subprocess.run(self.command("figure3", out), text=True,
                             capture_output=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual((out / "figure3.png").read_bytes()[1:4], b"PNG")


class MistakesTest(ReproduceTest):
    def test_no_text(self):
        self.assert_refused(
            self.reproduce("figure4", self.out()),
            "figure4 needs a text: --data PATH names it (--quick makes one of "
            "its own)")
        self.assertFalse(self.out().exists())

    def test_a_text_that_is_not_there_decides_nothing(self):
        run = self.reproduce("figure3", self.out(), *TINY, "--seeds", 1,
                             "--data", self.root / "no")
        self.assertEqual((run.returncode, run.stderr.count("\n")), (1, 1))
        self.assertIn(str(self.root / "no"), run.stderr)
        self.done("figure3", self.out(), *TINY, "--seeds", 1, "--data",
                  self.text)

    def test_what_cannot_be_read_again(self):
        self.assert_refused(
            self.reproduce("figure3", self.out(), "--data", "-"),
            "--data -: figure3 reads its text once a run, standard input can "
            "be read only once; give a file")

    def test_what_the_figure_varies(self):
        for figure, setting in (("figure3", "model.block=stored"),
                                ("figure4", "lsh.rounds=3"),
                                ("figure5", "model.layers=3")):
            self.assert_refused(
                self.reproduce(figure, self.out(), *TINY5, "--set", setting),
                f"--set {setting.split('=')[0]}: {figure} varies it; leave it "
                "out")

    def test_minutes(self):
        self.assert_refused(
            self.reproduce("figure4", self.out(), *TINY, "--set",
                           "train.minutes=1"),
            "--set train.minutes: figure4 compares runs after as many steps; "
            "use --steps")

    def test_a_damaged_folder(self):
        (self.out() / "full").mkdir(parents=True)
        damaged = self.out() / "experiment.json"
        damaged.write_text('{"experiment": "figure4"')
        self.assert_refused(
            self.reproduce("figure4", self.out(), *TINY),
            f"{damaged}: is damaged; remove it, and go on with the options "
            "that the folder was begun with")

    def test_lengths_that_leave_tokens_over(self):
        self.assert_refused(
            self.reproduce("figure5", self.out(), *TINY5, "--length", "32,24"),
            "--length 24: a divisor of the tokens of a step, 64, is required")


class Figure5Test(ReproduceTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = cls.root / "runs"
        cls.arguments = [*TINY5, "--seeds", 2, "--layers", "1,2", "--length",
                         "16,64", "--full-up-to", 16]
        cls.screen = cls.done("figure5", cls.runs, *cls.arguments)

    def test_depths_are_trained_and_compared(self):
        points = self.rows(self.runs, "figure5", "point")
        self.assertEqual(
            [(row["series"], row["step"], row["seed"]) for row in points],
            [(series, step, seed) for series in ("1-layers", "2-layers")
             for step in EVALUATED for seed in (0, 1)])
        last = self.rows(self.runs, "figure5", "difference")[-1]
        pairs = [b["value"] - a["value"] for a, b in zip(
            [row for row in points if row["series"] == "1-layers"],
            [row for row in points if row["series"] == "2-layers"])
            if b["step"] == STEPS]
        self.assertEqual((last["series"], last["against"]),
                         ("2-layers", "1-layers"))
        self.assertAlmostEqual(last["mean"], statistics.mean(pairs), places=12)

    def test_memory_by_depth(self):
        one, two = self.rows(self.runs, "figure5", "depth")
        self.assertEqual((one["layers"], two["layers"]), (1, 2))
        self.assertGreater(two["parameters"], one["parameters"])
        for row in one, two:
            self.assertEqual((row["length"], row["batch"]), (32, 2))
            self.assertGreater(row["peak_bytes"], row["rest_bytes"])
            self.assertGreater(row["rest_bytes"], 0)
        self.assertAlmostEqual(two["rest_bytes"] / one["rest_bytes"], 1,
                               delta=0.25)

    def test_time_by_length_at_as_many_tokens(self):
        rows = self.rows(self.runs, "figure5", "speed")
        lsh = ["lsh-1", "lsh-2", "lsh-4", "lsh-8"]
        self.assertEqual([(row["series"], row["length"]) for row in rows],
                         [(series, 16) for series in ["full", *lsh]] +
                         [(series, 64) for series in lsh])
        for row in rows:
            self.assertEqual(row["batch"] * row["length"], 64)
            self.assertGreater(row["step_s"], 0)
            self.assertAlmostEqual(row["us_per_token"],
                                   row["step_s"] * 1e6 / 64, places=6)
            self.assertIn("kernels", row["machine"])

    def test_rounds_and_lengths_may_be_chosen(self):
        out = self.out()
        self.done("figure5", out, *TINY5, "--seeds", 1, "--layers", "1",
                  "--length", "32", "--rounds", "3", "--full-up-to", 0)
        rows = self.rows(out, "figure5", "speed")
        self.assertEqual([(row["series"], row["length"]) for row in rows],
                         [("lsh-3", 32)])

    def test_what_is_measured_is_not_measured_again(self):
        costs = (self.runs / "costs.jsonl").read_text()
        numbers = (self.runs / "figure5.jsonl").read_text()
        for arguments in self.arguments, []:
            self.done("figure5", self.runs, *arguments)
            self.assertEqual((self.runs / "costs.jsonl").read_text(), costs)
            self.assertEqual((self.runs / "figure5.jsonl").read_text(),
                             numbers)
        first, *rest = costs.splitlines(keepends=True)
        (self.runs / "costs.jsonl").write_text("".join(rest))
        self.done("figure5", self.runs)
        again = (self.runs / "costs.jsonl").read_text().splitlines(
            keepends=True)
        self.assertEqual(again[:-1], rest)
        self.assertEqual(json.loads(again[-1])["series"],
                         json.loads(first)["series"])

    def test_numbers_of_its_files_are_checked(self):
        out = self.out()
        shutil.copytree(self.runs, out, symlinks=True)
        settings = (out / "experiment.json").read_text()
        for key, value in (("layers", 0), ("rounds", 1025), ("lengths", -1),
                           ("full_up_to", 1e30)):
            changed = json.loads(settings)
            changed["lists"][key] = [value]
            (out / "experiment.json").write_text(json.dumps(changed))
            self.assert_refused_with(self.reproduce("figure5", out),
                                     f"lists.{key}: a whole number from ")
        (out / "experiment.json").write_text(settings)
        row = json.loads((out / "costs.jsonl").read_text().splitlines()[0])
        for key, value in (("batch", 0), ("length", 1e30), ("layers", 2 ** 64),
                           ("peak_bytes", "x"), ("step_s", None)):
            (out / "costs.jsonl").write_text(
                json.dumps({**row, key: value}) + "\n")
            self.assert_refused_with(self.reproduce("figure5", out),
                                     "costs.jsonl, line 1: is no measurement")

    def assert_refused_with(self, run, words):
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"\Areformer: .*\n\Z")
        self.assertIn(words, run.stderr)

    def test_other_lists_are_refused(self):
        run = self.reproduce("figure5", self.runs, *self.arguments, "--layers",
                             "1")
        self.assertEqual(run.returncode, 1)
        self.assertIn("was begun with other settings", run.stderr)


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
            [PROGRAM, "reproduce", "table4", "--out", str(cls.out),
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
            [PROGRAM, "reproduce", "table4", "--out", str(self.out) + "-none",
             "--config", "duplication"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("model.encoder_layers", run.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
