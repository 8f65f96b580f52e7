#!/usr/bin/env python3
"""Attention over 65,536 tokens on a CPU, forward and backward, and what exact
attention would have to hold.

    python3 examples/python/long_sequence.py [--length 65536]
"""
import argparse
import resource
import time

import torch

import reformer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=65536)
    length = parser.parse_args().length
    heads, d_head = 8, 64
    torch.manual_seed(0)
    qk, v = (torch.randn(1, heads, length, d_head, requires_grad=True)
             for _ in range(2))
    reformer.lsh_attention(qk[:, :, :128], v[:, :, :128])  # loads, wakes
    begin = time.perf_counter()
    output = reformer.lsh_attention(qk, v, rounds=4)
    middle = time.perf_counter()
    output.square().mean().backward()
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{length:,} tokens, {heads} heads of {d_head}, 4 rounds: "
          f"{middle - begin:.2f} s forward, {end - middle:.2f} s backward, "
          f"{peak:.1f} GiB of the process at its peak")
    print(f"the scores of exact attention would be "
          f"{heads * length**2 * 4 / 2**30:,.0f} GiB")


if __name__ == "__main__":
    main()
