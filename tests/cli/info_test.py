"""info_test.py PROGRAM: what `reformer info` says of a config or a run."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = None  # set below

KEYS = ("device parameters peak_bytes peak_part ranks rank_peak_bytes "
        "working_bytes tokens_per_step "
        "flops_per_step steps keys_per_query positions longest_input n_buckets "
        "config").split()


def info(*arguments):
    return subprocess.run([PROGRAM, "info", *arguments], capture_output=True,
                          text=True, timeout=120)


def json_of(*arguments):
    run = info(*arguments, "--json")
    assert run.returncode == 0, run.stderr
    [line] = run.stdout.splitlines()
    return json.loads(line)


class InfoTest(unittest.TestCase):
    def test_one_object_with_exactly_these_keys_in_order(self):
        self.assertEqual(list(json_of("text")), KEYS)

    def test_totals_are_the_sums_of_their_parts(self):
        result = json_of("text")
        for name in "parameters", "peak_bytes", "flops_per_step":
            parts = dict(result[name])
            self.assertEqual(parts.pop("total"), sum(parts.values()), name)
            self.assertGreater(sum(parts.values()), 0)

    def test_one_is_not_several(self):
        head = info("duplication", "--set", "model.heads=1", "--set",
                    "lsh.rounds=1").stdout
        self.assertIn(", 1 head of ", head)
        self.assertIn("; 1 hash round of ", head)

    def test_settings_arrive(self):
        before = json_of("text")
        after = json_of("text", "--set", "train.batch=3", "--set",
                        "model.positions=sinusoid", "--set",
                        "model.attention=full")
        self.assertEqual(after["tokens_per_step"],
                         3 * before["tokens_per_step"])
        self.assertEqual(after["longest_input"], 0)
        self.assertEqual(after["parameters"]["positions"], 0)
        self.assertEqual(after["config"]["model"]["positions"], "sinusoid")
        self.assertNotIn("n_buckets", after)

    def test_a_name_a_file_and_a_run_s_folder_are_the_same(self):
        by_name = json_of("duplication")
        file = PROJECT / "configs" / "duplication.json"
        self.assertEqual(json_of(str(file)), by_name)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps(by_name["config"]))
            self.assertEqual(json_of(folder), by_name)

    def test_a_gpu_s_memory_is_predicted_where_there_is_none(self):
        here = json_of("text", "--device", "cpu")
        there = json_of("text", "--device", "cuda")
        self.assertEqual((here["device"], there["device"]), ("cpu", "cuda"))
        self.assertEqual(here["parameters"], there["parameters"])
        # bfloat16 in place of float32, but for statistics and fp32 sums.
        self.assertLess(there["working_bytes"]["attention"],
                        here["working_bytes"]["attention"])
        deep = ("--device", "cuda", "--set", "model.layers=12", "--set",
                "model.block=reversible")
        visiting = json_of("text", *deep, "--set", "train.parameters=host")
        resident = json_of("text", *deep)
        self.assertLess(visiting["peak_bytes"]["parameters"],
                        resident["peak_bytes"]["parameters"] / 2)
        self.assertEqual(visiting["peak_bytes"]["streams"],
                         resident["peak_bytes"]["streams"])

    def test_stored_blocks_are_set_beside_reversible_ones(self):
        reversible, stored = "model.block=reversible", "model.block=stored"
        lines = info("text", "--set", reversible).stdout.splitlines()
        [line] = [line for line in lines if "if stored" in line]
        total = json_of("text", "--set", stored)["peak_bytes"]["total"]
        self.assertIn(f"{total / 2**20:.1f} MiB", line)
        for others in [stored], [reversible, "train.parameters=host"]:
            sets = [word for other in others for word in ("--set", other)]
            self.assertNotIn("if stored", info("text", *sets).stdout)

    def test_the_table_goes_to_stdout_without_json(self):
        run = info("text")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for words in "parameters", "optimizer state", "tokens", "GFLOP":
            self.assertIn(words, run.stdout)

    def test_a_rank_has_its_part_of_sequences_and_state(self):
        sizes = ["--set", "train.batch=4", "--set", "train.length=4096",
                 "--set", "train.optimizer=adamw", "--set",
                 "train.sample_length=0"]
        alone = json_of("text", *sizes)
        self.assertEqual(alone["rank_peak_bytes"],
                         alone["peak_bytes"]["total"])
        kept = sum(alone["peak_bytes"][part] for part in
                   ("parameters", "gradients", "optimizer_state"))
        ranks = json_of("text", *sizes, "--ranks", "4")
        self.assertEqual(ranks["ranks"], 4)
        shared = json_of("text", *sizes, "--set", "train.sequence_parallel=4")
        self.assertEqual(shared["ranks"], 4)
        for found in ranks, shared:
            activations = found["rank_peak_bytes"] - kept
            share = activations / (alone["rank_peak_bytes"] - kept)
            self.assertGreater(share, 0.2)
            self.assertLess(share, 0.4)
        sharded = json_of("text", *sizes, "--ranks", "4", "--set",
                          "train.shard_optimizer=true")
        state = alone["peak_bytes"]["optimizer_state"]
        self.assertEqual(ranks["rank_peak_bytes"] - sharded["rank_peak_bytes"],
                         state - state // 4)

    def test_hours_are_all_arithmetic_by_the_speed(self):
        given = ("wmt14-en-de-base", "--tflops", "100")
        result = json_of(*given)
        flops = result["flops_per_step"]["total"] * result["steps"]
        self.assertAlmostEqual(result["hours"], flops / 100e12 / 3600)
        self.assertIn(f"{result['hours']:.1f} hours", info(*given).stdout)

    def test_mistakes_are_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            for arguments, words in (
                    ([], "a CONFIG is required"),
                    (["txt"], "text"),
                    ([folder], "config.json"),
                    (["text", "--set", "model.layer=2"], "model.layers"),
                    (["text", "--set", "model.layers=0"], "model.layers"),
                    (["text", "--tflops", "0"],
                     "--tflops: a number above 0 is required, got '0'"),
                    (["text", "--tflops", "x"],
                     "--tflops: a number above 0 is required, got 'x'")):
                run = info(*arguments)
                self.assertEqual(run.stdout, "")
                self.assertNotEqual(run.returncode, 0)
                self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
                self.assertIn(words, run.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
