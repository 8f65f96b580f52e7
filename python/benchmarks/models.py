#!/usr/bin/env python3
"""How fast do others' models train, and ours beside them?

    python3 python/benchmarks/models.py [CASE...] [--program build/reformer]

Whole training steps, a line of JSON for each program, one after the other in
processes of their own. On a CPU: Hugging Face's Reformer (peers/hugging_face.py)
on the paper's duplication task, and with 3 layers 512/2048 on 16K tokens. On a
GPU: an ordinary decoder with exact attention (peers/exact_decoder.py), 12 layers
1024/4096, on 16 sequences of 4K tokens, one of 64K and one of 256K. Without CASE
those of this machine are measured.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import torch

from rows import add_program, machine, report, run_json, say

PEERS = pathlib.Path(__file__).resolve().parent / "peers"

THREE_LAYERS = ["--layers", 3, "--d-model", 512, "--d-ff", 2048, "--heads", 8,
                "--length", 16384, "--batch", 1, "--vocabulary", 256]
TWELVE_LAYERS = [f"--set={setting}" for setting in (
    "model.layers=12", "model.d_model=1024", "model.d_ff=4096",
    "model.heads=8", "model.positions=axial", "model.axial_shape=2048,2048",
    "model.axial_dims=512,512", "train.optimizer=adafactor")]


def of_gpu(length, batch, repeats):
    sizes = ["--length", length, "--batch", batch, "--repeats", repeats]
    return ("cuda", "exact_decoder.py", sizes, TWELVE_LAYERS + sizes)


# Device, peer, its options, those of `reformer bench train`.
CASES = {
    "duplication": ("cpu", "hugging_face.py", [],
                    ["--config", "duplication", "--batch", 8, "--length", 1024,
                     "--set=train.optimizer=adafactor"]),
    "16k": ("cpu", "hugging_face.py", THREE_LAYERS + ["--repeats", 1],
            ["--length", 16384, "--batch", 1,
             "--set=train.optimizer=adafactor"]),
    "16x4k": of_gpu(4096, 16, 5),
    "64k": of_gpu(65536, 1, 3),
    "256k": of_gpu(262144, 1, 1),
}


def their_row(given, device, peer, options):
    threads = ["--threads", given.threads] if device == "cpu" else []
    done = subprocess.run([sys.executable, PEERS / peer,
                           *map(str, options + threads)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "no word").splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


def our_row(given, device, options):
    threads = ["--threads", given.threads] if device == "cpu" else []
    return run_json(given.program, "bench", "train", "--device", device,
                    *options, *threads)


def measure(given, name):
    device, peer, theirs, ours = CASES[name]
    for what, row_of in (
            (peer, lambda: their_row(given, device, peer, theirs)),
            ("reformer bench train", lambda: our_row(given, device, ours))):
        try:
            row = row_of()
        except RuntimeError as error:
            say(f"{name}, {what}: {error}")
            continue
        report("model", what, case=name, length=row["length"],
               batch=row["batch"], step_s=row["step_s"],
               tokens_per_s=row["tokens_per_s"],
               peak_gib=(row["peak_bytes"] or 0) / 2**30, **machine(device))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", choices=[*CASES, []])
    parser.add_argument("--threads", type=int,
                        default=torch.get_num_threads())
    add_program(parser)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    here = "cuda" if torch.cuda.is_available() else "cpu"
    for name in given.case or [name for name, (device, *_) in CASES.items()
                               if device == here]:
        measure(given, name)


if __name__ == "__main__":
    main()
