"""plot_test.py PROGRAM: what `reformer plot` draws, and what it says."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below

# Stands in for gnuplot: keeps the script, and writes the ends of a plot.
FAKE_GNUPLOT = r"""#!/bin/sh
cat >"$SCRIPT"
printf '\211PNG\r\n\032\n IEND\256B`\202'
"""


class PlotTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.script = self.root / "script"
        self.environment = {**os.environ, "SCRIPT": str(self.script)}

    def tearDown(self):
        self.folder.cleanup()

    def make_run(self, name, lines):
        folder = self.root / name
        folder.mkdir(parents=True)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "metrics.jsonl").write_text(text)
        return str(folder)

    def losses(self, name, values):
        return self.make_run(name, [{"step": step, "train/loss": value}
                                    for step, value in enumerate(values, 1)])

    def plot(self, *arguments):
        return subprocess.run([PROGRAM, "plot", *arguments], timeout=60,
                              capture_output=True, text=True,
                              env=self.environment)

    def use_fake_gnuplot(self):
        tools = self.root / "tools"
        tools.mkdir()
        fake = tools / "gnuplot"
        fake.write_text(FAKE_GNUPLOT)
        fake.chmod(0o755)
        self.environment["PATH"] = f"{tools}:{os.environ['PATH']}"

    def script_of(self, *arguments):
        run = self.plot(*arguments)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return self.script.read_text()


class DrawingTest(PlotTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is missing")

    def test_is_plot_png_in_the_first_folder(self):
        first = self.losses("first", [3, None, 2])
        second = self.losses("second", range(200, 0, -1))
        run = self.plot(first, second)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, f"plot is in {first}/plot.png\n")
        plot = pathlib.Path(first) / "plot.png"
        self.assertEqual(plot.read_bytes()[1:4], b"PNG")
        self.assertEqual(sorted(os.listdir(first)),
                         ["metrics.jsonl", "plot.png"])

    def test_is_svg_where_the_name_says_so(self):
        out = self.root / "it's.svg"
        run = self.plot(self.losses("run_{1}", [3, 2]), "--out", str(out))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("run_{1}", out.read_text())

    def test_holds_a_single_point_and_constants_and_gaps(self):
        for values in [0, 0], [None], [1e-40]:
            with self.subTest(values=values):
                run = self.plot(self.losses(str(values), values))
                self.assertEqual((run.returncode, run.stderr), (0, ""))


class AttackTest(PlotTest):
    """Names and numbers of strangers are drawn, and never run."""

    def setUp(self):
        super().setUp()
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is missing")
        self.here = self.root / "here"  # where commands leave their traces
        self.here.mkdir()

    def attacked(self, folder, lines, *arguments):
        folder = self.here / folder
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines))
        run = subprocess.run(
            [PROGRAM, "plot", str(folder.relative_to(self.here)), *arguments],
            cwd=self.here, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(folder)),
                         ["metrics.jsonl", "plot.png"])
        self.assertEqual(len(os.listdir(self.here)), 1)  # nobody left a file
        return run

    def test_a_metric_that_is_a_line_of_a_script(self):
        metric = "x\n!touch pwned\n"
        self.attacked("run", [{"step": 1, metric: 3}, {"step": 2, metric: 2}],
                      "--metric", metric)

    def test_a_metric_that_is_a_command_in_quotes(self):
        metric = "x'; system('touch pwned') #\"`touch pwned`\" @y $(touch pwned)"
        self.attacked("run", [{"step": 1, metric: 3}], "--metric", metric)

    def test_a_folder_that_is_a_line_of_a_script(self):
        self.attacked("x\n!touch pwned\n`touch pwned`",
                      [{"step": 1, "train/loss": 3}])

    def test_a_folder_that_is_a_pipe(self):
        self.attacked("|touch pwned; '", [{"step": 1, "train/loss": 3}])

    def test_numbers_as_large_as_they_come(self):
        self.attacked("run", [{"step": 1, "train/loss": 1e308},
                              {"step": 2, "train/loss": -1e308},
                              {"step": 2 ** 62, "train/loss": 5e-324}])

    def test_errors_stay_on_one_line(self):
        folder = self.make_run("run", [{"step": 1, "a\n\x1b[2Jb": 3}])
        run = self.plot(folder)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr, f"reformer: {folder}: no train/loss in "
                         "metrics.jsonl; it has a\ufffd\ufffd[2Jb\n")


# Stands in for the program that `make bench` times.
FAKE_BENCH = r"""#!/bin/sh
for length in 512 1024; do
  cat <<END
{"rounds": 1, "length": $length, "forward_s": 1, "backward_s": 1,
 "exact_forward_s": 2, "exact_backward_s": 1, "heads": 2, "d_head": 3,
 "batch": 1, "dtype": "a'\`touch pwned\`", "chunk_length": 64, "window": 1,
 "data": "b"}
END
done | tr '\n' ' ' | sed 's/} /}\n/g'
"""


class BenchTest(PlotTest):
    def test_neither_its_folder_nor_its_results_are_commands(self):
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is missing")
        build = self.root / "it's `touch pwned`"
        build.mkdir()
        (build / "reformer").write_text(FAKE_BENCH)
        (build / "reformer").chmod(0o755)
        script = pathlib.Path(__file__).parents[2] / "tools" / "bench.sh"
        run = subprocess.run(["bash", script, build], cwd=self.root, text=True,
                             capture_output=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        plot = build / "bench" / "attention.png"
        self.assertEqual(plot.read_bytes()[1:4], b"PNG")
        self.assertEqual(list(self.root.rglob("pwned")), [])


class ScriptTest(PlotTest):
    def setUp(self):
        super().setUp()
        self.use_fake_gnuplot()

    def test_shows_validation_where_there_is_one(self):
        with_validation = self.make_run("with", [
            {"step": 1, "train/loss": 3.5}, {"step": 2, "train/loss": 3.25},
            {"step": 2, "validation/loss": 3.75}])
        script = self.script_of(with_validation, self.losses("without", [4]))
        self.assertIn("1 3.5\n2 3.25\nEOD", script)
        self.assertIn("\n2 3.75\nEOD", script)
        self.assertEqual([label in script for label in (
            "'with'", "'with, validation'", "'without'",
            "'without, validation'")], [True, True, True, False])

    def test_draws_the_metric_asked_for(self):
        run = self.make_run("run", [{"step": 5, "train/loss": 3.5,
                                     "train/accuracy": 0.25}])
        script = self.script_of(run, "--metric", "train/accuracy")
        self.assertIn("5 0.25\nEOD", script)
        self.assertNotIn("3.5", script)

    def test_names_runs_by_folder_or_by_path_where_names_clash(self):
        one = self.losses("x/run", [1])
        other = self.losses("y/run", [1])
        self.assertIn(" title 'run'\n", self.script_of(one))
        self.assertIn(f" title '{other}'\n", self.script_of(one, other))

    def test_takes_a_logarithmic_axis_for_a_wide_range(self):
        self.assertIn("set logscale y",
                      self.script_of(self.losses("wide", [5, 0.1])))
        for name, values in ("narrow", [5, 1]), ("negative", [5, -0.1]):
            self.assertNotIn("set logscale",
                             self.script_of(self.losses(name, values)))

    def test_a_single_point_is_one(self):
        self.assertIn("with points ", self.script_of(self.losses("one", [3])))
        self.assertIn("with lines ", self.script_of(self.losses("two", [3, 2])))

    def test_the_file_has_the_same_name_in_all_commands(self):
        run = self.losses("run", [3, 2])
        for option in "--out", "--png":
            out = self.root / f"{option}.png"
            self.script_of(run, option, str(out))
            self.assertTrue(out.exists())

    def test_smooths_many_points(self):
        self.assertNotIn("raw", self.script_of(self.losses("few", [1] * 99)))
        script = self.script_of(self.losses("many", [1, 2] * 100))
        raw, mean = script.split("EOD\n")[1:4:2]
        self.assertIn("\n100 2\n", raw)
        self.assertRegex(mean, r"\n100 1\.[46]")


class MistakesTest(PlotTest):
    def assert_refused(self, run, message):
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr, f"reformer: {message}\n")

    def test_a_folder_without_metrics(self):
        self.assert_refused(
            self.plot(str(self.root)),
            f"cannot read {self.root}/metrics.jsonl: No such file or directory")

    def test_a_metric_that_is_not_there(self):
        run = self.losses("run", [1])
        self.assert_refused(
            self.plot(run, "--metric", "train/los"),
            f"{run}: no train/los in metrics.jsonl; it has train/loss")
        empty = self.losses("empty", [])
        self.assert_refused(
            self.plot(run, empty),
            f"{empty}: no train/loss in metrics.jsonl; it has nothing yet")

    def test_an_unknown_kind_of_plot(self):
        self.assert_refused(
            self.plot(self.losses("run", [1]), "--out", "x.gif"),
            "a plot's name must end in .png or .svg, got 'x.gif'")

    def test_a_folder_to_write_to_that_is_not_there(self):
        out = self.root / "no" / "x.png"
        self.assert_refused(
            self.plot(self.losses("run", [1]), "--out", str(out)),
            f"cannot write {out}: {self.root}/no is no folder")

    def test_no_gnuplot(self):
        self.environment["PATH"] = str(self.root)
        self.assert_refused(
            self.plot(self.losses("run", [1])),
            "gnuplot is missing; install it with: sudo apt-get install "
            "gnuplot-nox")

    def test_a_gnuplot_that_fails_leaves_the_old_plot(self):
        self.use_fake_gnuplot()
        run = self.losses("run", [1])
        plot = pathlib.Path(run) / "plot.png"
        plot.write_text("old")
        (self.root / "tools" / "gnuplot").write_text(
            "#!/bin/sh\nprintf 'plot x\\n     ^\\n  bad terminal\\n\\n' >&2\n"
            "exit 1\n")
        self.assert_refused(self.plot(run), "gnuplot failed: bad terminal")
        self.assertEqual(plot.read_text(), "old")
        self.assertEqual(sorted(os.listdir(run)),
                         ["metrics.jsonl", "plot.png"])


    def test_half_a_plot_leaves_the_old_one(self):
        self.use_fake_gnuplot()
        run = self.losses("run", [1])
        for name, half in (("plot.png", "\\211PNG\\r\\n\\032\\n IEN"),
                           ("plot.svg", "<svg></sv")):
            plot = pathlib.Path(run) / name
            plot.write_text("old")
            (self.root / "tools" / "gnuplot").write_text(
                f"#!/bin/sh\ncat >/dev/null\nprintf '{half}'\n")
            self.assert_refused(
                self.plot(run, "--out", str(plot)),
                f"gnuplot failed: what it drew for {plot} is no whole "
                "plot")
            self.assertEqual(plot.read_text(), "old")
            plot.unlink()
        self.assertEqual(os.listdir(run), ["metrics.jsonl"])

    def test_a_full_disk_leaves_the_old_plot(self):
        self.use_fake_gnuplot()
        run = self.losses("run", [1])
        plot = pathlib.Path(run) / "plot.png"
        plot.write_text("old")
        (self.root / "tools" / "gnuplot").write_text(
            FAKE_GNUPLOT.replace("IEND", "%100000sIEND"))

        def limit():  # files of 64 KB at most: as full as a disk gets
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        failed = subprocess.run([PROGRAM, "plot", run], capture_output=True,
                                text=True, env=self.environment,
                                preexec_fn=limit)
        self.assert_refused(failed,
                            f"{plot}: cannot write: File too large")
        self.assertEqual(plot.read_text(), "old")
        self.assertEqual(sorted(os.listdir(run)),
                         ["metrics.jsonl", "plot.png"])

    def test_empty_names(self):
        run = self.losses("run", [1])
        for arguments in [""], [run, "--out", ""], [run, "--metric", ""]:
            refused = self.plot(*arguments)
            self.assertEqual(refused.returncode, 2)
            self.assertRegex(refused.stderr,
                             r"\Areformer: .*a name is required.*\n\Z")

    def test_an_emptied_log(self):
        run = self.losses("run", [])
        self.assert_refused(
            self.plot(run),
            f"{run}: no train/loss in metrics.jsonl; it has nothing yet")


class AttentionTest(PlotTest):
    """What `plot --attention` draws of a small model."""

    def setUp(self):
        super().setUp()
        self.use_fake_gnuplot()

    def trained(self, name, *settings):
        sets = [word for setting in (
            "train.steps=2", "train.warmup=1", "train.batch=1",
            "train.length=64", "model.layers=2", "model.d_model=16",
            "model.d_ff=16", "model.heads=2", "model.d_head=8",
            "lsh.chunk_length=8", "lsh.n_buckets=8", *settings)
            for word in ("--set", setting)]
        run = subprocess.run(
            [PROGRAM, "train", "duplication", "--out", str(self.root / name),
             "--threads", "1", *sets], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return str(self.root / name)

    def matrix(self, script, name):
        block = script.split(f"${name} << EOD\n")[1].split("EOD")[0]
        return [[float(cell) for cell in row.split()]
                for row in block.splitlines()]

    def attended(self, matrix):
        return [(i, j) for i, row in enumerate(matrix)
                for j, weight in enumerate(row) if weight == weight]

    def test_every_row_is_a_softmax_over_the_past(self):
        script = self.script_of(self.trained("run"), "--attention", "--layer",
                                "2", "--head", "2")
        natural = self.matrix(script, "natural")
        self.assertEqual(len(natural), 64)
        attended = self.attended(natural)
        self.assertTrue(all(j < i for i, j in attended))
        for i in {i for i, _ in attended}:
            total = sum(w for w in natural[i] if w == w)
            self.assertAlmostEqual(total, 1, delta=0.01)

    def test_sorted_it_is_the_same_weights_along_the_diagonal(self):
        # With one round the sorted plot holds every pair of the other.
        script = self.script_of(self.trained("run", "lsh.rounds=1"),
                                "--attention")
        natural = self.matrix(script, "natural")
        by_bucket = self.matrix(script, "sorted")

        def weights(matrix):
            return sorted(w for row in matrix for w in row if w == w)
        self.assertEqual(weights(by_bucket), weights(natural))
        self.assertTrue(all(i - 16 < j < i
                            for i, j in self.attended(by_bucket)))
        self.assertFalse(all(i - 16 < j for i, j in self.attended(natural)))

    def test_a_successor_head_reads_what_comes_after_its_keys(self):
        run = self.trained("run", "lsh.rounds=1",
                           "model.successor_fraction=0.5")
        pairs = {}
        for head in "1", "2":  # the first one has successor values
            script = self.script_of(run, "--attention", "--head", head)
            natural = self.attended(self.matrix(script, "natural"))
            by_bucket = self.attended(self.matrix(script, "sorted"))
            self.assertEqual(len(natural), len(by_bucket))
            self.assertEqual("after the key" in script, head == "1")
            pairs[head] = natural
        self.assertTrue(all(1 <= j <= i for i, j in pairs["1"]))
        self.assertTrue(all(0 <= j < i for i, j in pairs["2"]))
        self.assertTrue(any(j == i for i, j in pairs["1"]))  # found i - 1

    def test_an_exported_model_attends_and_has_no_curves(self):
        run = self.trained("run")
        model = str(self.root / "model")
        exported = subprocess.run([PROGRAM, "export", run, "--out", model],
                                  capture_output=True, text=True)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        script = self.script_of(model, "--attention", "--threads", "1")
        self.assertEqual(len(self.matrix(script, "natural")), 64)
        refused = self.plot(model)
        self.assertEqual((refused.returncode, refused.stderr), (
            1, f"reformer: {model}: a model alone has no curves, its run has "
            "them; --attention draws what it attends to\n"))

    def test_a_round_shows_only_what_it_found(self):
        run = self.trained("run", "lsh.rounds=4")
        counts = []
        for number in "1", "2":
            script = self.script_of(run, "--attention", "--round", number)
            counts.append(len(self.attended(self.matrix(script, "sorted"))))
            union = len(self.attended(self.matrix(script, "natural")))
            self.assertLess(counts[-1], union)
        self.assertNotEqual(*counts)

    def test_what_is_not_there_is_named(self):
        run = self.trained("run", "model.attention=lsh,local")
        for arguments, word in ((["--layer", "3"], "--layer 3"),
                                (["--head", "3"], "--head 3"),
                                (["--round", "5"], "--round 5"),
                                (["--layer", "2"], "local")):
            refused = self.plot(run, "--attention", *arguments)
            self.assertEqual(refused.returncode, 1)
            self.assertRegex(refused.stderr, rf"^reformer: .*{word}.*\n$")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
