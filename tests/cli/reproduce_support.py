"""What the tests of `reformer reproduce` share: the smallest of settings, a
text, a stand-in for gnuplot, and how rows are read."""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below
STEPS = 6
EVALUATED = [2, 4, 6]
TINY = ["--quick", "--threads", "1", "--device", "cpu", "--steps", str(STEPS)]
TINY += [word for setting in (
    "model.layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=2",
    "train.length=32", "train.batch=2", "train.warmup=1", "train.log_every=1",
    "train.evaluate_every=2", "train.evaluate_batches=1",
    "train.checkpoint_every=2", "lsh.chunk_length=8")
    for word in ("--set", setting)]
# figure5 varies the layers itself.
TINY5 = [word for i, word in enumerate(TINY)
         if "model.layers=1" not in TINY[i:i + 2]]
ROUNDS = ["lsh-1", "lsh-2", "lsh-4", "lsh-8",
          "local+lsh-1", "local+lsh-2", "local+lsh-4"]

# Stands in for gnuplot: keeps the script, and writes the ends of a plot.
FAKE_GNUPLOT = r"""#!/bin/sh
cat >"$0.script"
printf '\211PNG\r\n\032\n IEND\256B`\202'
"""


def xxhash64(data):
    """XXH64 of more than 31 bytes, in hexadecimal."""
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F,
                          0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                          0x27D4EB2F165667C5)
    whole = 2**64 - 1

    def turned(x, n):
        return (x << n | (x & whole) >> (64 - n)) & whole

    def mixed(x, word):
        return turned((x + word * p2) & whole, 31) * p1 & whole

    def word(at, size=8):
        return int.from_bytes(data[at:at + size], "little")

    lanes = [(p1 + p2) & whole, p2, 0, -p1 & whole]
    end = len(data) // 32 * 32
    for at in range(0, end, 32):
        lanes = [mixed(x, word(at + 8 * i)) for i, x in enumerate(lanes)]
    x = sum(turned(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & whole
    for lane in lanes:
        x = ((x ^ mixed(0, lane)) * p1 + p4) & whole
    x += len(data)
    while end + 8 <= len(data):
        x = turned(x ^ mixed(0, word(end)), 27) * p1 + p4
        end += 8
    if end + 4 <= len(data):
        x = turned(x ^ word(end, 4) * p1, 23) * p2 + p3
        end += 4
    for byte in data[end:]:
        x = turned(x ^ byte * p5, 11) * p1
    for shift, factor in (33, p2), (29, p3), (32, 1):
        x = ((x & whole) ^ (x & whole) >> shift) * factor
    return f"{x:016x}"


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values))


class ReproduceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.text = cls.root / "text"
        cls.text.write_text("".join(f"{n * n % 97} and {n} " for n in range(900)))
        tools = cls.root / "tools"
        tools.mkdir()
        fake = tools / "gnuplot"
        fake.write_text(FAKE_GNUPLOT)
        fake.chmod(0o755)
        cls.script = tools / "gnuplot.script"
        cls.environment = {**os.environ,
                           "PATH": f"{tools}:{os.environ['PATH']}"}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def command(cls, figure, out, *arguments):
        return [PROGRAM, "reproduce", figure, "--out", str(out),
                *map(str, arguments)]

    @classmethod
    def reproduce(cls, figure, out, *arguments):
        return subprocess.run(cls.command(figure, out, *arguments), timeout=120,
                              capture_output=True, text=True,
                              env=cls.environment)

    @classmethod
    def done(cls, figure, out, *arguments):
        """stdout of a command that succeeds."""
        run = cls.reproduce(figure, out, *arguments)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def out(self):
        return self.root / self.id().split(".")[-1]

    def rows(self, out, figure, kind):
        lines = (out / f"{figure}.jsonl").read_text().splitlines()
        rows = list(map(json.loads, lines))
        self.assertEqual({row["figure"] for row in rows}, {figure})
        return [row for row in rows if row["row"] == kind]

    def assert_refused(self, run, message):
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertEqual(run.stderr, f"reformer: {message}\n")

    def known_curves(self, out, figure, values):
        """Has the runs of `out` say that {series: a value for each seed} are
        what they ended with."""
        for series, ends in values.items():
            for seed, end in enumerate(ends):
                (out / series / f"seed-{seed}" / "metrics.jsonl").write_text(
                    "".join(json.dumps({
                        "step": step, "validation/loss": 9,
                        "validation/bits per byte": end + STEPS - step}) + "\n"
                        for step in EVALUATED))
        return self.done(figure, out)


def program():
    return PROGRAM


def main():
    """What a test's file does when it is run: PROGRAM is its argument."""
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
