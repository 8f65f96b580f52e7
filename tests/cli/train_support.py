"""What the tests of `reformer train` share: the smallest of settings, and how the
program is run."""
import os
import subprocess
import sys
import unittest

PROGRAM = None  # set below
KILLS = int(os.environ.get("REFORMER_KILLS", 2))  # 2, because it takes seconds
STEPS = 150 * KILLS
TINY = ["--threads", "1"] + [word for setting in (
    f"train.steps={STEPS}", "train.batch=2", "train.length=32",
    "train.log_every=1", "train.checkpoint_every=40", "train.evaluate_every=90",
    "train.warmup=5", "model.layers=2", "model.d_model=16", "model.d_ff=16",
    "model.heads=2", "model.d_head=8", "model.dropout=0.1",
    "lsh.chunk_length=8", "lsh.n_buckets=4",
    "model.successor_fraction=0.5") for word in ("--set", setting)]
BRIEF = ["--set", "train.steps=2", "--set", "train.warmup=1"]


def program():
    return PROGRAM


def reformer(*arguments, **settings):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          text=True, timeout=300, **settings)


def train(out, *arguments, config="duplication", **settings):
    return reformer("train", config, "--out", out, *TINY, *arguments,
                    **settings)


def resume(out, *arguments):
    return reformer("train", "--resume", "--out", out, "--threads", 1,
                    *arguments)


def main():
    """What a test's file does when it is run: PROGRAM is its argument."""
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
