"""distributed_eval_test.py PROGRAM: `reformer eval` of several ranks prints what
one prints: batches divided, sequences shared, translations, mistakes."""
import json
import random
import signal
import subprocess

from distributed_support import (CLEAN, MACHINE, TIMEOUT, RanksTestCase, Run,
                                 as_mpirun, main, program)

SETTINGS = [word for setting in (
    "train.steps=3", "train.warmup=1", "train.batch=2", "train.length=160",
    "train.evaluate_every=0", "train.evaluate_batches=1",
    "train.sample_length=0", "model.layers=1", "model.d_model=16",
    "model.d_ff=16", "model.heads=2", "model.d_head=8", "lsh.chunk_length=8",
    f"distributed.timeout={TIMEOUT}") for word in ("--set", setting)]


class EvalOfRanksTest(RanksTestCase):
    """Of runs that one process trained."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        noise = random.Random(1)
        text = cls.path("bytes")
        text.write_bytes(bytes(
            noise.randrange(256) if i % 8 == 0 else 97 + i % 8
            for i in range(40000)))
        cls.make("text", *SETTINGS, "--data", text, "--set", "lsh.n_buckets=0")
        cls.make("recall", *SETTINGS)
        # Until it says something else of each line.
        cls.make("translation-toy", *SETTINGS, *[word for setting in (
            "train.steps=200", "train.warmup=20", "train.batch=64",
            "train.length=9", "model.layers=2", "model.d_model=64",
            "model.d_ff=128", "model.heads=4", "model.d_head=16")
            for word in ("--set", setting)])

    def start(self, size, name, *arguments, **settings):
        return Run(size, lambda _: ["eval", self.path(name), "--json",
                                    *MACHINE, *arguments], **settings)

    def rows(self, size, name, *arguments, **settings):
        """Of the first rank, after the others said nothing."""
        done = self.start(size, name, *arguments, **settings).finish()
        for status, _, told in done:
            self.assertEqual(status, 0, told)
        for _, said, told in done[1:]:
            self.assertEqual((said, told), ("", ""))
        rows = [json.loads(line) for line in done[0][1].splitlines()]
        for row in rows:
            self.assertEqual(row.pop("ranks", 1), size)
        return rows

    def alone(self, name, *arguments):
        done = subprocess.run(
            [program(), "eval", self.path(name), "--json", *MACHINE,
             *map(str, arguments)], env=CLEAN, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_same(self, found, expected, delta=1e-12):
        self.assertEqual(type(found), type(expected))
        if isinstance(found, float):
            self.assertAlmostEqual(found, expected, delta=delta)
        elif isinstance(found, list):
            self.assertEqual(len(found), len(expected))
            for pair in zip(found, expected):
                self.assert_same(*pair, delta)
        elif isinstance(found, dict):
            self.assertEqual(list(found), list(expected))
            for name in found:
                self.assert_same(found[name], expected[name], delta)
        else:
            self.assertEqual(found, expected)

    def assert_ranks_print_the_same(self, name, *arguments):
        expected = self.alone(name, *arguments)
        for size in 2, 3:
            self.assert_same(self.rows(size, name, *arguments), expected)

    def test_batches_need_not_divide(self):
        # Of 7 batches the third rank has two; of 2 it has none.
        for batches in 0, 2:
            self.assert_ranks_print_the_same("text", "--batches", batches,
                                             "--rounds", "1,2")
        self.assert_same(self.rows(1, "text", launcher=as_mpirun),
                         self.alone("text"))

    def test_losses_by_position(self):
        self.assert_ranks_print_the_same("text", "--by-position", "--length",
                                         "160,48")

    def test_losses_on_repeats(self):
        self.assert_ranks_print_the_same("text", "--recall", "65,80")
        # From all over the split, as one rank takes them.
        self.assert_ranks_print_the_same("text", "--recall", "65", "--batches",
                                         3)

    def test_accuracy_by_distance(self):
        self.assert_ranks_print_the_same("recall", "--batches", 4)

    def test_translations(self):
        self.assertGreater(self.alone("translation-toy")[0]["bleu"], 1)
        self.assert_ranks_print_the_same("translation-toy", "--beam", 2)

    def test_ranks_that_share_sequences(self):
        shared = ["--set", "train.sequence_parallel=2"]
        for size, name, *arguments in (
                [2, "text"], [4, "text", "--by-position"],
                [4, "text", "--recall", 65], [2, "recall", "--batches", 3]):
            self.assert_same(self.rows(size, name, *arguments, *shared),
                             self.alone(name, *arguments, *shared), delta=1e-5)
        odd = self.start(3, "text", *shared).finish(TIMEOUT + 60)
        self.assertEqual([status for status, _, _ in odd], [1, 1, 1])
        self.assertEqual([told for _, _, told in odd], [
            "reformer: rank 0: train.sequence_parallel: a divisor of the "
            "number of ranks, 3, is required, got 2\n", "", ""])

    def test_ranks_that_differ_say_in_what(self):
        run = Run(2, lambda rank: ["eval", self.path("text"), *MACHINE,
                                   "--rounds", 1 + rank])
        (first, _, told), (second, *others) = run.finish(TIMEOUT + 60)
        self.assertEqual((first, second, others), (1, 1, ["", ""]))
        self.assertIn("ranks must be alike in --rounds: rank 1 has 2, rank 0 1",
                      told)

    def test_a_rank_without_the_data_is_named_once(self):
        run = Run(2, lambda rank: ["eval", self.path("text"), *MACHINE, "--data",
                                   self.path("none" if rank else "bytes")])
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertRegex(second[2], "^reformer: rank 1: .*none")
        self.assertNotIn("reformer: ", first[2])

    def test_one_is_told_and_all_stop(self):
        run = self.start(2, "text", "--length", "16", "--rounds",
                         ",".join(map(str, range(64, 96))))
        for line in run.ranks[0].stderr:
            if "evaluating with" in line:
                break
        run.ranks[1].send_signal(signal.SIGTERM)
        for status, _, told in run.finish(60):
            self.assertEqual(status, 128 + signal.SIGTERM, told)

    def test_a_killed_rank_ends_all(self):
        run = self.start(2, "text", "--length", "16", "--rounds",
                         ",".join(map(str, range(64, 96))))
        for line in run.ranks[0].stderr:
            if "evaluating with" in line:
                break
        run.ranks[1].kill()
        (status, _, told), _ = run.finish(TIMEOUT + 60)
        self.assertEqual(status, 1)
        self.assertRegex(told, "reformer: rank 0: rank 1.* was lost")


if __name__ == "__main__":
    main()
