#!/usr/bin/env python3
"""How well would training scale? The table of docs/scaling.md: from a measured
time of a step, counted bytes and given speeds of links, by the formula there.

    bench/scaling.py
"""
LAYERS, WIDTH, PARAMETERS = 12, 1024, 141_411_584  # bench/results/scale-h200
SECONDS_A_TOKEN = 0.233850929875 / 65536  # one H200, whole steps, likewise
BACKWARD = 2 / 3  # of a step: what gradients can hide behind
GRADIENT_BYTES = 4
EXCHANGED = 3 + 6  # numbers a position, width and layer, forward and backward
EXCHANGED_BYTES = 2  # bfloat16
NVLINK, INFINIBAND = 450e9, 50e9  # bytes a second a GPU, each way, as sold
MACHINE = 8  # GPUs


def exchanged_bytes(tokens, sharing, width=WIDTH, layers=LAYERS,
                    number=EXCHANGED_BYTES):
    """What a rank sends between positions and heads, a step of a sequence."""
    return (EXCHANGED * tokens / sharing * width * number * layers *
            (sharing - 1) / sharing)


def gradient_bytes(ranks, parameters=PARAMETERS):
    """What a rank sends of gradients and their sums, a step."""
    return 2 * GRADIENT_BYTES * parameters * (ranks - 1) / ranks


def step(tokens, gpus, sharing):
    """Seconds: computing, exchanging, gradients that nothing hides."""
    computing = SECONDS_A_TOKEN * tokens / sharing
    link = NVLINK if gpus <= MACHINE else INFINIBAND
    return (computing, exchanged_bytes(tokens, sharing) / NVLINK,
            max(0, gradient_bytes(gpus) / link - BACKWARD * computing))


def main():
    print("| tokens a sequence | GPUs | sharing a sequence | computing, s | "
          "exchanging, s | gradients in sight, s | efficiency |")
    print("| --- " * 7 + "|")
    for name, tokens in (("64K", 1 << 16), ("1M", 1 << 20), ("16M", 1 << 24)):
        for gpus in 8, 64, 1024:
            for sharing in (1, 8) if tokens < 1 << 24 else (8,):
                computing, exchanging, gradients = step(tokens, gpus, sharing)
                whole = computing + exchanging + gradients
                print(f"| {name} | {gpus:,} | {sharing} | {computing:.3f} | "
                      f"{exchanging:.3f} | {gradients:.3f} | "
                      f"{computing / whole:.2f} |")


if __name__ == "__main__":
    main()
