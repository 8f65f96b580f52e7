#!/usr/bin/env python3
"""How long does attention take from Python: ours, the C++ bench's, and others'?

    python3 python/benchmarks/attention.py [--length 65536] [--device cuda] ...

A line of JSON for each, in one run: `lsh_attention` of this package and
`reformer bench attention` (--program) in turn --pairs times, of which medians
count; torch's scaled_dot_product_attention; the LSHSelfAttention of transformers
and the one of reformer_pytorch, both without projections' share. What is not
installed is left out, with a word. Times are medians, of the stream on a GPU,
however far the host was ahead, as the C++ bench takes them; of what takes
seconds one pass after one that warms up. Peers of shared queries and keys hash
as ours do.
"""
import argparse
import math
import os
import signal
import statistics
import sys
import time

# Huge pages for tensors, as the program has them; read at the first tensor.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

import torch  # noqa: E402

import reformer  # noqa: E402

from rows import add_program, machine, report, run_json, say  # noqa: E402


def options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available()
                        else "cpu")
    parser.add_argument("--dtype", default=None,
                        help="bfloat16 on a GPU, float32 on a CPU")
    parser.add_argument("--length", type=int, default=65536)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--chunk-length", type=int, default=128)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--d-head", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--exact-up-to", type=int, default=16384,
                        help="0: never; on a GPU any length")
    parser.add_argument("--peers-up-to", type=int, default=65536)
    parser.add_argument("--pairs", type=int, default=3,
                        help="of the package and the C++ bench in turn")
    add_program(parser)
    given = parser.parse_args()
    if given.dtype is None:
        given.dtype = "bfloat16" if given.device == "cuda" else "float32"
    if given.threads:
        torch.set_num_threads(given.threads)
    return given


def marks(device):
    """A function that marks now; one that returns the seconds in between."""
    if device == "cpu":
        times = []
        return (lambda: times.append(time.perf_counter()),
                lambda: [b - a for a, b in zip(times, times[1:])])
    events = []

    def mark():
        events.append(torch.cuda.Event(enable_timing=True))
        events[-1].record()

    def seconds():
        events[-1].synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:])]

    return mark, seconds


SLOW = 4.0  # seconds of a pass that is not repeated


def measure(forward, inputs, d_output, device):
    """Median ms forward and backward; on a GPU the most MiB in between."""
    at_once = 8 if device == "cuda" else 1  # the host stays ahead
    enough = 0.5 if device == "cuda" else 2  # seconds: some 200 passes of ours
    inputs = [x.detach().requires_grad_() for x in inputs]

    def one(mark=lambda: None):
        mark()
        output = forward(*inputs)
        mark()
        torch.autograd.grad(output, inputs, d_output)
        mark()

    def warm():
        begin = time.perf_counter()
        one()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    slow = warm() > SLOW
    memory = {}
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        warm()
        memory["peak_mib"] = (torch.cuda.max_memory_allocated() - before) / 2**20
    elif not slow:
        warm()
    forward_s, backward_s = [], []
    begin = time.perf_counter()
    while not forward_s or not slow and (
            len(forward_s) < 3 or time.perf_counter() - begin < enough):
        passes = [marks(device) for _ in range(1 if slow else at_once)]
        for mark, _ in passes:
            one(mark)
        for _, seconds in passes:
            there, back = seconds()
            forward_s.append(there)
            backward_s.append(back)
    return {"forward_ms": 1e3 * statistics.median(forward_s),
            "backward_ms": 1e3 * statistics.median(backward_s), **memory}


def report_of(given, what, measured):
    report("attention", what, dtype=given.dtype, length=given.length,
           rounds=given.rounds, **measured, **machine(given.device))


def bench_program(given):
    row = run_json(
        given.program, "bench", "attention", "--exact-up-to", 0, "--device",
        given.device, "--dtype", given.dtype, "--length", given.length,
        "--rounds", given.rounds, "--heads", given.heads, "--d-head",
        given.d_head, "--chunk", given.chunk_length,
        *(["--threads", given.threads] if given.threads else []))
    return {"forward_ms": 1e3 * row["forward_s"],
            "backward_ms": 1e3 * row["backward_s"]}


def ours_in_turn(given, qk, v, d_output):
    step = iter(range(1 << 60))
    there = given.program.is_file()
    if not there:
        say(f"{given.program} is not there: without the C++ bench")
    python, cpp = [], []
    try:
        for _ in range(given.pairs if there else 1):
            python.append(measure(
                lambda qk, v: reformer.lsh_attention(
                    qk, v, rounds=given.rounds,
                    chunk_length=given.chunk_length, seed=next(step)),
                [qk, v], d_output, given.device))
            if there:
                cpp.append(bench_program(given))
    finally:  # whoever stops it has the pairs so far
        report_ours(given, python, cpp)


def report_ours(given, python, cpp):
    medians = [{key: statistics.median(row[key] for row in rows)
                for key in rows[0]} for rows in (python, cpp) if rows]
    names = ("reformer.lsh_attention (Python)", "reformer bench attention (C++)")
    for what, row in zip(names, medians):
        report_of(given, what, row)
    if cpp:
        ours, theirs = medians
        keys = {"forward": ["forward_ms"], "backward": ["backward_ms"],
                "": ["forward_ms", "backward_ms"]}
        report_of(given, "Python over C++", {
            f"{name}_ratio".lstrip("_"): sum(ours[key] for key in wanted)
            / sum(theirs[key] for key in wanted)
            for name, wanted in keys.items()} | {"pairs": len(cpp)})


def exact(given, qk, v, d_output):
    report_of(given, "scaled_dot_product_attention", measure(
        lambda q, v: torch.nn.functional.scaled_dot_product_attention(
            q, q, v, is_causal=True), [qk, v], d_output, given.device))


class Given(torch.nn.Module):
    """Returns `held`, whatever it is called with."""

    def forward(self, _):
        return self.held


def hugging_face(given, qk, v, d_output):
    try:
        from transformers import ReformerConfig
        from transformers.models.reformer import modeling_reformer
    except ImportError:
        return say("transformers is not installed: without it")
    width = given.heads * given.d_head
    buckets = 2 ** int(math.log2(2 * given.length / given.chunk_length))
    factor = 2 ** (int(math.log2(buckets)) // 2)
    config = ReformerConfig(
        is_decoder=True, hidden_size=width, num_attention_heads=given.heads,
        attention_head_size=given.d_head, num_hashes=given.rounds,
        lsh_attn_chunk_length=given.chunk_length,
        num_buckets=[factor, buckets // factor],
        lsh_attention_probs_dropout_prob=0.0)
    layer = modeling_reformer.LSHSelfAttention(config, layer_idx=0)
    layer.to(qk.device, qk.dtype)
    # Its projections become what they are given: attention alone is timed.
    layer.query_key, layer.value = Given(), Given()

    def forward(qk, v):
        layer.query_key.held, layer.value.held = qk, v
        return layer(qk).hidden_states

    def flat(x):
        return x.transpose(1, 2).flatten(2).contiguous()

    report_of(given, "transformers LSHSelfAttention", measure(
        forward, [flat(qk), flat(v)], flat(d_output), given.device))


def reformer_pytorch(given, qk, v, d_output):
    try:
        from reformer_pytorch.reformer_pytorch import LSHAttention
    except ImportError:
        return say("reformer_pytorch is not installed: without it")
    layer = LSHAttention(bucket_size=given.chunk_length // 2,
                         n_hashes=given.rounds, causal=True, dropout=0.0)

    def flat(x):
        return x.flatten(0, 1).contiguous()

    report_of(given, "reformer_pytorch LSHAttention", measure(
        lambda qk, v: layer(qk, v)[0], [flat(qk), flat(v)], flat(d_output),
        given.device))


def main():
    given = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # `timeout`
    dtype = getattr(torch, given.dtype)
    torch.manual_seed(0)
    qk, v, d_output = (
        torch.randn(1, given.heads, given.length, given.d_head,
                    device=given.device).to(dtype) for _ in range(3))
    ours_in_turn(given, qk, v, d_output)
    others = []
    if given.device == "cuda" or given.length <= given.exact_up_to:
        others += [exact]
    if given.length <= given.peers_up_to:
        others += [hugging_face, reformer_pytorch]
    for peer in others:
        try:
            peer(given, qk, v, d_output)
        except Exception as error:  # theirs; the others are still measured
            say(f"{peer.__name__}: {type(error).__name__}: "
                f"{(str(error) or 'no word').splitlines()[0]}")


if __name__ == "__main__":
    main()
