"""bench_test.py PROGRAM: the rows of `reformer bench train`."""
import json
import unittest

from train_support import TINY, main, reformer

BENCH_KEYS = (
    "bench device dtype layers encoder_layers d_model d_ff heads d_head "
    "attention block length batch rounds local_window optimizer clip offload "
    "parameters step_s tokens_per_s peak_bytes captured ranks rank_wait "
    "sent_bytes optimizer_bytes").split()


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


if __name__ == "__main__":
    main()
