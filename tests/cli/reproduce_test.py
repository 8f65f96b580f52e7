"""reproduce_test.py PROGRAM: `reformer reproduce` in the smallest of
settings: figure 3, and what is refused."""
import json
import math
import os
import shutil
import subprocess

from reproduce_support import STEPS, TINY, TINY5, ReproduceTest, main


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


if __name__ == "__main__":
    main()
