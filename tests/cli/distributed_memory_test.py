"""distributed_memory_test.py PROGRAM: what ranks that share a sequence hold,
beside what `info` predicts."""
import json
import subprocess
import unittest

from distributed_support import Run, main, program


class MemoryTest(unittest.TestCase):
    """What a rank holds beyond parameters, their gradients and the optimizer's
    state, as `bench train` counts it."""
    SETTINGS = [word for setting in (
        "model.layers=2", "model.d_model=256", "model.d_ff=1024",
        "model.heads=8", "train.batch=1", "train.length=16384",
        "train.optimizer=adafactor", "model.dropout=0.1",
        "model.vocabulary=256", "task.alphabet=255")
        for word in ("--set", setting)]

    def peak(self, ranks):
        run = Run(ranks, lambda _: [
            "bench", "train", "--config", "duplication", "--json", "--repeats",
            "1", "--threads", "1", "--device", "cpu", *self.SETTINGS, "--set",
            f"train.sequence_parallel={ranks}"])
        rows = run.finish(400)
        self.assertEqual([row[0] for row in rows], [0] * ranks, rows)
        return json.loads(rows[0][1])["peak_bytes"]

    def predicted(self, ranks):
        said = subprocess.run(
            [program(), "info", "--json", "duplication", "--device", "cpu",
             "--threads", "1", *self.SETTINGS, "--set",
             f"train.sequence_parallel={ranks}"],
            check=True, capture_output=True, text=True).stdout
        return json.loads(said)

    def test_four_ranks_that_share_a_sequence_hold_a_quarter_each(self):
        predicted = {ranks: self.predicted(ranks) for ranks in (1, 4)}
        kept = sum(predicted[1]["peak_bytes"][part] for part in
                   ("parameters", "gradients", "optimizer_state"))
        held = {ranks: self.peak(ranks) for ranks in (1, 4)}
        for ranks in 1, 4:
            self.assertAlmostEqual(
                predicted[ranks]["rank_peak_bytes"] / held[ranks], 1,
                delta=0.1, msg=f"{ranks} ranks")
        # 0.262, and a hundredth for 3 MiB that may be on their way or have come.
        self.assertLess((held[4] - kept) / (held[1] - kept), 0.29)


if __name__ == "__main__":
    main()
