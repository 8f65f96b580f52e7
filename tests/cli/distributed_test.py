"""distributed_test.py PROGRAM: runs of several ranks as launchers start them:
the same bytes twice, killed, hung, stopped, resumed on other numbers of ranks,
and mistakes."""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from distributed_support import (CLEAN, KILLS, MACHINE, STEPS, TIMEOUT, TINY,
                                 Run, as_mpirun, as_srun, as_torchrun, main,
                                 program, resume, tensors_of, train)


def connections(pid):
    """The inodes of its sockets."""
    found = []
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            name = os.readlink(link)
        except FileNotFoundError:  # closed meanwhile
            continue
        if name.startswith("socket:"):
            found.append(name[len("socket:["):-1])
    return found


def c10d_threads(pid):
    names = [task.read_text() for task in
             pathlib.Path(f"/proc/{pid}/task").glob("*/comm")]
    return [name for name in names if name.startswith(("pt_", "gloo"))]


def listening(pid):
    """The addresses at which it does, as Linux writes them."""
    own, found = connections(pid), []
    for table in "tcp", "tcp6":
        for line in pathlib.Path(f"/proc/net/{table}").read_text().split(
                "\n")[1:-1]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in own:
                found.append(fields[1].split(":")[0])
    return found


TINY_BENCH = MACHINE + ["--batch", "2"] + [
    word for setting in (
        "model.layers=1", "model.d_model=16", "model.heads=2",
        "model.attention=local", "lsh.chunk_length=8",
        f"distributed.timeout={TIMEOUT}") for word in ("--set", setting)]


def address_space(pid):
    """The most bytes that a process has mapped so far."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if "VmPeak" in line]
    return int(line.split()[1]) << 10


def restarted(rank, size, port):
    return dict(as_torchrun(rank, size, port), TORCHELASTIC_RESTART_COUNT=1)


def with_another_build_id(path):
    """A copy of the program, as if it were of another build."""
    program_bytes = pathlib.Path(program()).read_bytes()
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0"
    assert program_bytes.count(note) == 1
    at = program_bytes.index(note) + len(note)
    path.write_bytes(program_bytes[:at] + bytes(range(20)) +
                     program_bytes[at + 20:])
    path.chmod(0o755)
    return path


class DistributedTest(unittest.TestCase):
    """Most compare with one run of two ranks that nobody disturbed."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.whole = pathlib.Path(cls.folder.name) / "whole"
        cls.said = train(2, cls.whole).finish()
        assert [status for status, _, _ in cls.said] == [0, 0], cls.said

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def out(self):
        return pathlib.Path(self.folder.name) / self.id().split(".")[-1]

    def files(self, run, step=STEPS):
        return [(run / f"step-{step:08}" / name).read_bytes()
                for name in ("model.safetensors", "optimizer.safetensors")]

    def losses(self, run):
        lines = map(json.loads,
                    (run / "metrics.jsonl").read_text().splitlines())
        return [line["train/loss"] for line in lines if "train/loss" in line]

    def assert_finished(self, run):
        for status, said, told in run.finish():
            self.assertEqual(status, 0, told)

    def assert_same_as_whole(self, out):
        self.assertTrue(self.files(out) == self.files(self.whole), "bytes")
        self.assertEqual(self.losses(out), self.losses(self.whole))

    def assert_close_to_whole(self, out):
        found, expected = self.losses(out), self.losses(self.whole)
        self.assertEqual(len(found), len(expected))
        for step, (a, b) in enumerate(zip(found, expected)):
            self.assertAlmostEqual(a, b, delta=2e-3, msg=f"step {step + 1}")

    def test_only_the_first_rank_speaks_and_writes(self):
        (_, said, told), (_, others_said, others_told) = self.said
        self.assertIn(f"done after step {STEPS}", said)
        self.assertIn("2 ranks", told)
        self.assertEqual((others_said, others_told), ("", ""))
        lines = (self.whole / "metrics.jsonl").read_text().splitlines()
        self.assertIn("train/rank_wait", json.loads(lines[0]))

    def test_the_same_bytes_twice_under_any_launcher(self):
        for launcher in as_mpirun, as_srun:
            out = self.out().with_suffix("." + launcher.__name__)
            self.assert_finished(train(2, out, launcher=launcher))
            self.assert_same_as_whole(out)

    def test_other_numbers_of_ranks_follow_the_same_trajectory(self):
        for size in 1, 3:
            out = self.out().with_suffix(f".{size}")
            self.assert_finished(train(size, out))
            self.assert_close_to_whole(out)

    def test_a_plain_start_makes_no_connections(self):
        forever = [*TINY, "--set", "train.steps=100000"]
        plain = Run(1, lambda _: ["train", "duplication", "--out",
                                  self.out().with_suffix(".plain"), *forever],
                    launcher=lambda *_: {})
        ranks = Run(2, lambda _: ["train", "duplication", "--out", self.out(),
                                  *forever])
        try:
            for run in plain, ranks:
                run.wait_for(2)
            self.assertEqual(connections(plain.ranks[0].pid), [])
            self.assertEqual(c10d_threads(plain.ranks[0].pid), [])
            for rank in ranks.ranks:  # where both are found
                self.assertNotEqual(connections(rank.pid), [])
                self.assertNotEqual(c10d_threads(rank.pid), [])
        finally:
            for run in plain, ranks:
                run.ranks[0].send_signal(signal.SIGTERM)
                run.finish()

    def test_on_one_machine_others_cannot_reach_the_store(self):
        run = Run(1, lambda _: ["train", "duplication", "--out", self.out(),
                                *TINY], launcher=lambda rank, size, port:
                  as_torchrun(rank, 2, port))  # and waits for the other
        [first] = run.ranks
        try:
            while not (places := listening(first.pid)):
                self.assertIsNone(first.poll())
                time.sleep(0.05)
        finally:
            first.kill()
            first.communicate()
        self.assertEqual(places, ["0100007F"])  # 127.0.0.1

    def test_a_plain_start_is_one_rank(self):
        done = subprocess.run(
            [program(), "train", "duplication", "--out", self.out(), *TINY],
            env=CLEAN, capture_output=True, text=True, timeout=180)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("ranks", done.stderr)
        self.assert_close_to_whole(self.out())

    def test_a_sharded_optimizer_gives_the_same_checkpoints_in_parts(self):
        self.assert_finished(train(2, self.out(), "--set",
                                   "train.shard_optimizer=true"))
        self.assertEqual(self.losses(self.out()), self.losses(self.whole))
        for kind in "model", "optimizer":
            self.assertTrue(tensors_of(self.out(), kind) ==
                            tensors_of(self.whole, kind), kind)
        # Each rank wrote its own, and nobody gathered them.
        names = {path.name for path in
                 (self.out() / f"step-{STEPS:08}").iterdir()}
        self.assertTrue({f"{kind}-0000{part}-of-00002.safetensors"
                         for kind in ("model", "optimizer")
                         for part in (1, 2)} <= names, names)
        self.assertNotIn("optimizer.safetensors", names)
        exported = []
        for run in self.out(), self.whole:
            to = run.with_suffix(".exported")
            subprocess.run([program(), "export", run, "--out", to], check=True,
                           env=CLEAN, capture_output=True)
            exported.append((to / "model.safetensors").read_bytes())
        self.assertTrue(exported[0] == exported[1], "exported bytes")

    def test_a_rank_that_cannot_write_is_named_and_nothing_is_lost(self):
        run = train(2, self.out(), "--set", "train.shard_optimizer=true")
        run.wait_for(12)
        # The second one's files may not grow any longer.
        resource.prlimit(run.ranks[1].pid, resource.RLIMIT_FSIZE, (256, 256))
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertRegex(first[2], "reformer: rank 0: rank 1: .*of-00002.*"
                         "cannot write: File too large")
        self.assertEqual(second[2], "")
        self.assertEqual([path.name for path in self.out().glob(".tmp-*")], [])
        self.assert_finished(resume(2, self.out()))
        self.assertEqual(self.losses(self.out()), self.losses(self.whole))

    def test_runs_go_on_with_other_numbers_of_ranks(self):
        run = train(3, self.out(), "--set", "train.shard_optimizer=true")
        run.wait_for(5)
        run.ranks[2].send_signal(signal.SIGTERM)  # one is told, all stop
        for status, said, _ in run.finish():
            self.assertEqual(status, 128 + signal.SIGTERM)
        run = resume(1, self.out(), "--set", "train.steps=20")
        self.assert_finished(run)
        self.assert_finished(resume(2, self.out(), "--set",
                                    f"train.steps={STEPS}"))
        self.assert_close_to_whole(self.out())

    def test_killed_ranks_end_all_and_the_run_goes_on_bit_for_bit(self):
        source = random.Random(3)
        run = train(2, self.out())
        for kill in range(KILLS):
            run.wait_for((kill + 1) * 30 - source.randrange(15))
            victim = source.randrange(2)
            run.ranks[victim].kill()
            began = time.monotonic()
            result = run.finish(TIMEOUT + 60)
            self.assertLess(time.monotonic() - began, TIMEOUT + 10)
            self.assertEqual(result[victim][0], -signal.SIGKILL)
            status, _, told = result[1 - victim]
            self.assertEqual(status, 1)
            errors = [line for line in told.splitlines()
                      if line.startswith("reformer: ")]
            self.assertEqual(len(errors), 1, told)
            self.assertRegex(errors[0], f"rank {victim}.* was lost")
            run = resume(2, self.out())
        self.assert_finished(run)
        self.assert_same_as_whole(self.out())

    def test_torchruns_restart_goes_on(self):
        run = train(2, self.out())
        run.wait_for(15)
        run.ranks[1].kill()
        run.finish(TIMEOUT + 60)
        self.assert_finished(train(2, self.out(), launcher=restarted))
        self.assert_same_as_whole(self.out())

    def test_torchruns_restart_takes_over_no_other_run(self):
        shutil.copytree(self.whole, self.out())
        run = train(2, self.out(), "--set", "train.seed=7", "--set",
                    f"train.steps={STEPS + 10}", launcher=restarted)
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertIn("already holds a run", first[2])
        self.assertEqual(sorted(path.name for path in self.out().iterdir()),
                         sorted(path.name for path in self.whole.iterdir()))

    def test_a_rank_that_hangs_ends_all(self):
        run = train(2, self.out(), "--set", "distributed.timeout=10")
        run.wait_for(3)
        run.ranks[1].send_signal(signal.SIGSTOP)
        try:
            _, told = run.ranks[0].communicate(timeout=60)
        finally:
            run.ranks[1].send_signal(signal.SIGCONT)
        self.assertEqual(run.ranks[0].returncode, 1)
        self.assertRegex(told, "reformer: rank 0: rank 1 (was lost|hangs)")
        # It finds out when it comes to itself, or that it was long ago.
        _, (status, _, told) = run.finish(60)
        self.assertEqual(status, 1)
        self.assertRegex(told, "^reformer: rank 1: (rank 0.* was lost|"
                         "the store of the ranks .* has not answered .*)\n$")

    def test_a_rank_out_of_memory_says_so_and_ends_all(self):
        # What a process needs for steps of a few bytes, and 512 MiB: too little
        # for one whose streams have 256 MiB each.
        run = train(2, self.out().with_suffix(".small"), "--set",
                    "train.steps=100000", "--set", "train.evaluate_every=0")
        run.wait_for(5)
        needed = address_space(run.ranks[1].pid)
        run.ranks[0].send_signal(signal.SIGTERM)
        run.finish()
        settings = [word for setting in (
            "model.d_model=1024", "train.length=65536", "train.batch=2",
            "train.evaluate_every=0") for word in ("--set", setting)]
        run = train(2, self.out(), *settings,
                    last_ones_memory=needed + (512 << 20))
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertRegex(second[2], "^reformer: rank 1: out of memory: you "
                         "tried to allocate [0-9]+ bytes; try shorter or fewer "
                         "sequences\n$")
        self.assertNotIn("reformer: ", first[2])

    def test_a_rank_that_gives_up_says_why_and_ends_all(self):
        # The second one has no such file.
        data = self.out().with_suffix(".txt")
        data.write_bytes(bytes(range(32, 127)) * 200)
        run = Run(2, lambda rank: [
            "train", "text", "--out", self.out(), *TINY, "--data",
            data if rank == 0 else self.out() / "none"])
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertRegex(second[2], "reformer: rank 1: .*none")
        self.assertNotIn("reformer: ", first[2])

    def assert_differ(self, run, sentence):
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertRegex(first[2], "reformer: rank 0: ranks must be alike in " +
                         sentence)
        self.assertEqual(second[2], "")

    def test_ranks_that_differ_say_in_what(self):
        # Some of these say how ranks are to be connected.
        for setting, values in (("train.seed", (0, 1)),
                                ("train.sequence_parallel", (2, 1)),
                                ("distributed.backend", ("auto", "gloo"))):
            with self.subTest(setting=setting, values=values):
                run = Run(2, lambda rank: [
                    "train", "duplication", "--out", self.out(), *TINY, "--set",
                    f"{setting}={values[rank]}"])
                self.assert_differ(run, f"{setting}: rank 1 has {values[1]}, "
                                   f"rank 0 {values[0]}\n")

    def test_ranks_that_measure_other_steps_say_in_what(self):
        for values, sentence in (
                ((["--set", "model.d_ff=8"], ["--set", "model.d_ff=16"]),
                 "model.d_ff: rank 1 has 16, rank 0 8"),
                ((["--length", "16,32"], ["--length", "16,64"]),
                 "--length: rank 1 has 16,64, rank 0 16,32"),
                ((["--length", "16,32"],
                  ["--length", "16,32", "--set", "train.length=16"]),
                 "train.length: rank 1 has 16, rank 0 32"),
                ((["--repeats", "1"], ["--repeats", "2"]),
                 "--repeats: rank 1 has 2, rank 0 1"),
                ((["--threads", "1"], ["--threads", "2"]),
                 "threads: rank 1 has 2, rank 0 1")):
            with self.subTest(sentence):
                self.assert_differ(
                    Run(2, lambda rank: ["bench", "train", *TINY_BENCH,
                                         *values[rank]]), sentence)

    def test_ranks_of_different_builds_say_so(self):
        other = with_another_build_id(self.out())
        run = Run(2, lambda rank: ["train", "duplication", "--out",
                                   self.out().with_suffix(".run"), *TINY],
                  programs=[program(), other])
        self.assert_differ(run, "the program \\(its build id\\): rank 1 has "
                           "000102030405060708090a0b0c0d0e0f10111213, rank 0 "
                           "[0-9a-f]{40}\n")

    def test_ranks_with_other_data_say_so(self):
        files = [self.out().with_suffix(f".{rank}") for rank in (0, 1)]
        for rank, file in enumerate(files):
            file.write_bytes(bytes(range(32, 127)) * 200 + b"ab"[rank:rank + 1])
        run = Run(2, lambda rank: ["train", "text", "--out", self.out(), *TINY,
                                   "--data", files[rank]])
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertRegex(first[2], "ranks must be alike in the content of "
                         "task.data: rank 1 has [0-9a-f]+, rank 0 [0-9a-f]+")
        self.assertEqual(second[2], "")

    def test_a_loss_that_is_not_finite_ends_all(self):
        run = train(2, self.out(), "--set", "train.learning_rate=1e30",
                    "--set", "train.clip=0")
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertRegex(first[2], "reformer: rank 0: .*the loss is not finite "
                         "at step [0-9]+ on rank [01]; ")
        self.assertEqual(second[2], "")

    def test_ranks_that_do_not_come_are_named(self):
        run = Run(1, lambda _: ["train", "duplication", "--out", self.out(),
                                *TINY, "--set", "distributed.timeout=2"],
                  launcher=lambda rank, size, port: as_torchrun(rank, 3, port))
        ((status, _, told),) = run.finish(60)
        self.assertEqual(status, 1)
        self.assertIn("of 3 ranks these have not come within 2 s "
                      "(distributed.timeout): 1, 2", told)

    def test_fewer_sequences_than_ranks_are_refused(self):
        run = train(2, self.out(), "--set", "train.batch=1")
        first, second = run.finish(TIMEOUT + 60)
        self.assertEqual((first[0], second[0]), (1, 1))
        self.assertIn("train.batch: at least 2", first[2] + second[2])

    def test_sequence_parallel_ranks_follow_the_same_trajectory(self):
        self.assert_finished(train(2, self.out(), "--set",
                                   "train.sequence_parallel=2"))
        self.assert_close_to_whole(self.out())


if __name__ == "__main__":
    main()
