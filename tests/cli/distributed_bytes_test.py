"""distributed_bytes_test.py PROGRAM: what ranks send in a step, beside the
formulas of bench/scaling.py, from which docs/scaling.md predicts."""
import json
import pathlib
import sys
import unittest

from distributed_support import MACHINE, Run, main

sys.path.append(str(pathlib.Path(__file__).parents[2] / "bench"))
from scaling import exchanged_bytes, gradient_bytes  # noqa: E402

LAYERS, WIDTH, LENGTH = 3, 64, 1024
FLOAT32 = 4  # a CPU's numbers
SETTINGS = [word for setting in (
    f"model.layers={LAYERS}", f"model.d_model={WIDTH}", "model.d_ff=128",
    "model.heads=4", "model.d_head=16", "model.vocabulary=256", "task.alphabet=255",
    f"train.length={LENGTH}", "train.batch=4", "lsh.chunk_length=16",
    "lsh.n_buckets=16", "lsh.rounds=2") for word in ("--set", setting)]


class BytesTest(unittest.TestCase):
    def measured(self, ranks, *settings):
        run = Run(ranks, lambda _: [
            "bench", "train", "--config", "duplication", "--json", "--repeats",
            "1", *MACHINE, *SETTINGS, *settings])
        rows = run.finish(300)
        self.assertEqual([row[0] for row in rows], [0] * ranks, rows)
        return json.loads(rows[0][1])

    def test_gradients_take_what_the_formula_says(self):
        for ranks in 2, 3:
            row = self.measured(ranks)
            said = gradient_bytes(ranks, row["parameters"])
            self.assertAlmostEqual(row["sent_bytes"] / said, 1, delta=0.01,
                                   msg=f"{ranks} ranks")

    def test_shared_sequences_take_what_the_formulas_say(self):
        for ranks in 2, 4:
            row = self.measured(ranks, "--set",
                                f"train.sequence_parallel={ranks}")
            said = (gradient_bytes(ranks, row["parameters"]) + row["batch"] *
                    exchanged_bytes(LENGTH, ranks, WIDTH, LAYERS, FLOAT32))
            self.assertAlmostEqual(row["sent_bytes"] / said, 1, delta=0.01,
                                   msg=f"{ranks} ranks")

    def test_one_rank_sends_nothing(self):
        self.assertEqual(self.measured(1)["sent_bytes"], 0)


if __name__ == "__main__":
    main()
