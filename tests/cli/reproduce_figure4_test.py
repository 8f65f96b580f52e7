"""reproduce_figure4_test.py PROGRAM: `reformer reproduce figure4`: rows,
statistics and resumption."""
import json
import shutil
import signal
import statistics
import subprocess

from reproduce_support import (EVALUATED, ROUNDS, STEPS, TINY, ReproduceTest,
                               main, program, standard_error, xxhash64)


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
                        ["--data", program()]):
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


if __name__ == "__main__":
    main()
