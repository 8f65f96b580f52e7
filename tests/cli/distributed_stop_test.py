"""distributed_stop_test.py PROGRAM: ranks that are told to stop, whose reader
has gone, or who make the same mistake, end together: with one status and one
sentence, or none."""
import gzip
import os
import signal
import time

from distributed_support import MACHINE, TIMEOUT, TINY, RanksTestCase, Run, main

STOPPED = 128 + signal.SIGTERM


def settings_of(**settings):
    return [word for name, value in settings.items()
            for word in ("--set", f"{name.replace('__', '.')}={value}")]


class RanksEndTogetherTest(RanksTestCase):
    """Of `eval`, and of `train` before its first step."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.path("bytes")
        text.write_bytes(bytes(range(32, 127)) * 400)
        small = settings_of(train__steps=2, train__warmup=1,
                            train__evaluate_every=0, train__sample_length=0,
                            model__layers=1, model__d_model=16, model__d_ff=16,
                            model__heads=2, model__d_head=8,
                            lsh__chunk_length=8, distributed__timeout=TIMEOUT)
        cls.make("text", "--data", text, *small, *settings_of(
            train__batch=2, train__length=160, lsh__n_buckets=0))
        cls.make("translation-toy", *small)

    def eval(self, size, name, *arguments):
        return Run(size, lambda _: ["eval", self.path(name), *MACHINE,
                                    *arguments])

    def wait_for(self, run, words):
        for line in run.ranks[0].stderr:
            if words in line:
                return
        raise AssertionError(f"'{words}' did not come")

    def assert_all_stop(self, run):
        for status, _, told in run.finish(60):
            self.assertEqual(status, STOPPED, told)
            self.assertNotIn("reformer: ", told)

    def assert_said_once(self, run, words, timeout=60):
        """Whichever rank says it."""
        began = time.monotonic()
        done = run.finish(timeout)
        self.assertLess(time.monotonic() - began, TIMEOUT)
        self.assertEqual({status for status, _, _ in done}, {1}, done)
        said = [line for _, _, told in done for line in told.splitlines()
                if line.startswith("reformer: ")]
        self.assertEqual(len(said), 1, done)
        self.assertRegex(said[0], words)

    def test_who_is_told_while_it_evaluates_stops_all(self):
        for victim in 0, 1:
            run = self.eval(2, "text", "--length", "16", "--rounds",
                            ",".join(map(str, range(64, 96))))
            self.wait_for(run, "evaluating with")
            run.ranks[victim].send_signal(signal.SIGTERM)
            self.assert_all_stop(run)

    def test_who_is_told_while_it_translates_stops_all(self):
        for victim in 0, 1:
            run = self.eval(2, "translation-toy", "--beam", 100)
            self.wait_for(run, "translating lines")
            run.ranks[victim].send_signal(signal.SIGTERM)
            self.assert_all_stop(run)

    def test_who_is_told_while_it_decodes_stops_all(self):
        # Each its own, or one would wait for what the other decodes.
        archives = [self.path(f"much{rank}.gz") for rank in (0, 1)]
        with gzip.open(archives[0], "wb", compresslevel=1) as file:
            for _ in range(64):
                file.write(bytes(range(32, 127)) * 50000)
        os.link(*archives)
        for command in (["eval", self.path("text")],
                        ["train", "text", "--out", self.path("none"), *TINY]):
            run = Run(2, lambda rank: [
                *command, *MACHINE, "--data", archives[rank], "--set",
                f"task.cache={self.path('cache')}"])
            self.wait_for(run, "decoding")
            run.ranks[0].send_signal(signal.SIGTERM)
            self.assert_all_stop(run)
            self.assertFalse(list(self.path("").glob("none/step-*")))

    def test_where_the_reader_has_gone_nobody_complains(self):
        run = self.eval(2, "text", "--length", "16", "--json", "--rounds",
                        ",".join(map(str, range(1, 96))))
        self.assertIn("loss", run.ranks[0].stdout.readline())
        run.ranks[0].stdout.close()
        told = [process.stderr.read() for process in run.ranks]
        for process in run.ranks:
            for stream in process.stdout, process.stderr:
                stream.close()
            self.assertEqual(process.wait(60), 0, told)
        self.assertNotIn("reformer: ", "".join(told))

    def test_a_picture_that_cannot_be_written_is_said_at_once(self):
        self.assert_said_once(
            self.eval(2, "text", "--recall", 65, "--png", "/nonexistent/x.png"),
            "^reformer: rank 0: .*/nonexistent")

    def test_a_mistake_of_all_is_said_once(self):
        self.assert_said_once(
            self.eval(3, "text", "--data", self.path("missing")), "missing")
        # Found when all figures are known: the first one says it.
        short = self.path("short")
        short.write_bytes(b"x" * 1000)
        self.assert_said_once(
            self.eval(3, "text", "--recall", 65, "--data", short),
            "^reformer: rank 0: recall: a whole sequence of 160")


if __name__ == "__main__":
    main()
