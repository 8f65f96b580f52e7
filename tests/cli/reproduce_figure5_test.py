"""reproduce_figure5_test.py PROGRAM: `reformer reproduce figure5`: depths, memory
and time by length."""
import json
import shutil
import statistics

from reproduce_support import EVALUATED, STEPS, TINY5, ReproduceTest, main


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
        (out / "costs.jsonl").write_text(json.dumps({**row, "batch": 0}) + "\n")
        self.assert_refused_with(self.reproduce("figure5", out),
                                 "batch: a whole number from 1 to ")

    def assert_refused_with(self, run, words):
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"\Areformer: .*\n\Z")
        self.assertIn(words, run.stderr)

    def test_other_lists_are_refused(self):
        run = self.reproduce("figure5", self.runs, *self.arguments, "--layers",
                             "1")
        self.assertEqual(run.returncode, 1)
        self.assertIn("was begun with other settings", run.stderr)


if __name__ == "__main__":
    main()
