"""cli_test.py PROGRAM: what `reformer` prints, where, and with which status."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = None  # set below

ATTENTION_KEYS = (
    "bench device dtype batch heads d_head length rounds chunk_length "
    "n_buckets window local_window data forward_s backward_s exact_forward_s "
    "exact_backward_s keys_per_query overflow extra_bytes").split()
TINY = ["--heads", "2", "--d-head", "8", "--chunk", "16", "--repeats", "1"]


def reformer(*arguments, **settings):
    return subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, timeout=120, **settings)


def attention(*arguments):
    return reformer("bench", "attention", *TINY, *arguments)


class HelpTest(unittest.TestCase):
    def test_version_is_the_one_of_the_header(self):
        header = (PROJECT / "reformer/version.h").read_text()
        version = re.search(r'define REFORMER_VERSION "(.+)"', header)[1]
        self.assertEqual(reformer("--version").stdout, f"reformer {version}\n")

    def test_help_goes_to_stdout(self):
        for command in [], ["bench"], ["bench", "attention"], ["bench", "peak"]:
            run = reformer(*command, "--help")
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertIn(" ".join(["Usage: reformer", *command]), run.stdout)

    def test_help_of_a_command_is_a_command_too(self):
        for command in [], ["train"], ["bench"], ["bench", "attention"]:
            run = reformer("help", *command)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertEqual(run.stdout, reformer(*command, "--help").stdout)
        run = reformer("help", "trian")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("unknown command trian; did you mean train?", run.stderr)


class JsonTest(unittest.TestCase):
    def results(self, *arguments):
        run = attention("--json", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def test_every_line_is_an_object_with_exactly_these_keys_in_order(self):
        results = self.results("--length", "33,64", "--rounds", "1,2")
        for result in results:
            self.assertEqual(list(result), ATTENTION_KEYS)
        self.assertEqual([(r["length"], r["rounds"]) for r in results],
                         [(33, 1), (33, 2), (64, 1), (64, 2)])

    def test_options_arrive(self):
        [result] = self.results(
            "--length", "100", "--rounds", "3", "--batch", "2", "--window",
            "chunk", "--local-window", "5", "--data", "clustered", "--device",
            "cpu", "--threads", "1", "--seed", "7")
        expected = {
            "bench": "attention", "device": "cpu", "dtype": "float32",
            "batch": 2, "heads": 2, "d_head": 8, "length": 100, "rounds": 3,
            "chunk_length": 16, "n_buckets": 12, "window": "chunk",
            "local_window": 5, "data": "clustered"}
        self.assertEqual({key: result[key] for key in expected}, expected)

    def test_everything_is_measured(self):
        [result] = self.results("--length", "100", "--rounds", "1")
        for key in ATTENTION_KEYS[-7:]:
            self.assertIsInstance(result[key], (int, float), key)
        for key in "forward_s", "backward_s", "keys_per_query", "extra_bytes":
            self.assertGreater(result[key], 0, key)
        self.assertTrue(0 <= result["overflow"] <= 1)

    def test_exact_attention_is_null_beyond_its_limit(self):
        short, long = self.results("--length", "16,17", "--rounds", "1",
                                   "--exact-up-to", "16")
        for key in "exact_forward_s", "exact_backward_s":
            self.assertGreater(short[key], 0)
            self.assertIsNone(long[key])

    def test_the_same_seed_counts_the_same(self):
        counted = [[result["keys_per_query"], result["overflow"]]
                   for seed in "112"
                   for result in self.results("--length", "100", "--rounds",
                                              "2", "--seed", seed)]
        self.assertEqual(counted[0], counted[1])
        self.assertNotEqual(counted[0], counted[2])

    def test_more_rounds_and_a_local_window_bring_more_keys(self):
        def keys(*arguments):
            [result] = self.results("--length", "100", *arguments)
            return result["keys_per_query"]
        self.assertLess(keys("--rounds", "1"), keys("--rounds", "2"))
        self.assertLess(keys("--rounds", "1"),
                        keys("--rounds", "1", "--local-window", "9"))

    def test_clustered_data_overflow_more_than_random_data(self):
        def overflow(data):
            [result] = self.results(
                "--length", "1000", "--rounds", "1", "--d-head", "64",
                "--exact-up-to", "0", "--data", data)
            return result["overflow"]
        self.assertGreater(overflow("clustered"), 2 * overflow("random"))

    def test_peak_prints_objects_too(self):
        run = reformer("bench", "peak", *TINY, "--json", "--length", "64",
                       "--rounds", "1,2")
        for line in run.stdout.splitlines():
            result = json.loads(line)
            self.assertEqual(result["bench"], "peak")
            self.assertGreater(result["forward_share"], 0)
            self.assertGreater(result["backward_share"], 0)
        self.assertEqual(len(run.stdout.splitlines()), 2)


class TableTest(unittest.TestCase):
    def test_the_table_goes_to_stdout_and_progress_to_stderr(self):
        run = attention("--length", "33,64", "--rounds", "1")
        self.assertEqual(run.returncode, 0)
        self.assertIn("heads of 8", run.stdout)
        self.assertIn("\noverflow: pairs of a bucket ", run.stdout)
        self.assertRegex(run.stdout, r"\n +33 +1 .*x qk\n +64 +1 .*x qk\n$")
        self.assertIn("length 64: exact attention\n", run.stderr)
        self.assertNotIn("length 64", run.stdout)

    def test_a_reader_that_leaves_early_is_no_error(self):
        with subprocess.Popen(
                [PROGRAM, "bench", "attention", *TINY, "--length", "16,17,18"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            run.stdout.close()
            self.assertNotIn(b"reformer:", run.stderr.read())
            self.assertEqual(run.wait(), 0)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            run = subprocess.run(
                [PROGRAM, "bench", "attention", *TINY, "--length", "16"],
                stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("cannot write to standard output", run.stderr)


class MistakesTest(unittest.TestCase):
    def assert_refused(self, run, *words):
        self.assertIn(run.returncode, (1, 2), run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertTrue(run.stderr.startswith("reformer: "))
        for word in words:
            self.assertIn(word, run.stderr)

    def test_an_impossible_value_names_option_and_value(self):
        for option, value in [
                ("--length", "0"), ("--length", "2147483648"),
                ("--length", "64,x"), ("--length", "1.5"), ("--length", "-1"),
                ("--rounds", "0"), ("--heads", "0"), ("--batch", "0"),
                ("--d-head", "7"), ("--d-head", "257"), ("--chunk", "0"),
                ("--local-window", "-1"), ("--threads", "0"),
                ("--window", "sliding"), ("--data", "zeros"),
                ("--device", "tpu"), ("--device", "cuda:"),
                ("--device", "cuda:-1"), ("--device", "cuda:1x"),
                ("--exact-up-to", "-1")]:
            with self.subTest(option=option, value=value):
                wrong = value.split(",")[-1]
                self.assert_refused(attention(option, value), option,
                                    f"required, got '{wrong}'")

    def test_cuda_is_refused_with_the_remedy(self):
        for device in "cuda", "cuda:0", "cuda:7":
            self.assert_refused(attention("--device", device), "CUDA",
                                "--device cpu")

    def test_more_than_the_machine_s_memory_is_refused(self):
        self.assert_refused(attention("--length", "2147483647", "--batch",
                                      "1000000"), "out of memory", "GiB")

    def test_a_misspelt_name_gets_the_nearest(self):
        self.assert_refused(attention("--lenght", "64"), "--lenght",
                            "did you mean --length?")
        self.assert_refused(reformer("bench", "atention"), "atention",
                            "did you mean attention?")
        self.assert_refused(reformer("bnech"), "did you mean bench?")

    def test_without_a_command_there_is_help(self):
        for command in [], ["bench"], ["reproduce"]:
            run, helped = reformer(*command), reformer(*command, "--help")
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertEqual(run.stdout, helped.stdout)
            self.assertIn("Subcommands:", run.stdout)

    def test_settings_are_listed(self):
        run = reformer("settings")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for words in ("train.steps = 1000\n    a whole number. ",
                      "model.block = reversible\n    one of reversible, stored, "
                      "residual. "):
            self.assertIn(words, run.stdout)
        self.assertLessEqual(max(map(len, run.stdout.splitlines())), 80)
        one = reformer("settings", "lsh.rounds").stdout
        self.assertEqual(one.count(" = "), 1)
        some = reformer("settings", "task", "--json").stdout.splitlines()
        keys = [json.loads(line)["key"] for line in some]
        self.assertTrue(keys and all(key.startswith("task.") for key in keys))
        table = reformer("settings", "--markdown").stdout.splitlines()
        self.assertEqual(len(table), 2 + run.stdout.count(" = "))
        self.assert_refused(reformer("settings", "train.stpes"),
                            "train.stpes", "the nearest is train.steps")
        far = reformer("settings", "foo")
        self.assert_refused(far, "unknown setting 'foo'; without KEY all are")

    def test_what_is_missing_is_named(self):
        self.assert_refused(attention("--length"), "--length", "value")

    def test_what_a_sentence_names_does_not_command_the_terminal(self):
        run = reformer("info", "no\x1b[31m\nconfig")
        self.assert_refused(run, "no\ufffd[31m\ufffdconfig")
        self.assertNotIn("\x1b", run.stderr)

    def test_an_instruction_set_that_is_not_there_is_refused(self):
        self.assert_refused(
            reformer("bench", "attention", *TINY,
                     env={**os.environ, "REFORMER_CPU": "mmx"}),
            "REFORMER_CPU", "mmx")


class BenchScriptTest(unittest.TestCase):
    def run_script(self, folder, **environment):
        (pathlib.Path(folder) / "reformer").symlink_to(PROGRAM)
        run = subprocess.run(
            [PROJECT / "tools/bench.sh", folder, *TINY], capture_output=True,
            text=True, env={**os.environ, "REFORMER_BENCH_LENGTHS": "16,32",
                            "REFORMER_BENCH_ROUNDS": "1,2", **environment})
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = (pathlib.Path(folder) / "bench/attention.jsonl").read_text()
        self.assertEqual(lines.count("\n"), 4)
        return run.stdout

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is missing")
    def test_draws_a_plot(self):
        for limit in "16", "0":  # with exact attention and without
            with tempfile.TemporaryDirectory() as folder:
                said = self.run_script(folder, REFORMER_BENCH_EXACT_UP_TO=limit)
                plot = pathlib.Path(folder) / "bench/attention.png"
                self.assertIn(str(plot), said)
                self.assertEqual(plot.read_bytes()[1:4], b"PNG")

    def test_without_gnuplot_it_names_the_package(self):
        with tempfile.TemporaryDirectory() as folder, \
                tempfile.TemporaryDirectory() as tools:
            for tool in "bash", "dirname", "env", "mkdir", "mv", "sed", "nproc":
                (pathlib.Path(tools) / tool).symlink_to(shutil.which(tool))
            said = self.run_script(folder, PATH=tools)
            self.assertIn("gnuplot-nox", said)
            self.assertFalse((pathlib.Path(folder) / "bench/attention.png")
                             .exists())


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
