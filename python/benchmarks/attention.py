#!/usr/bin/env python3
"""How long does attention take from Python: ours, the C++ bench's, and others'?

    python3 python/benchmarks/attention.py [--length 65536] [--device cuda] ...

One line of JSON for each, in one run: `lsh_attention` of this package,
`reformer bench attention` (--program), torch's scaled_dot_product_attention,
the LSHSelfAttention of transformers and the one of reformer_pytorch, both
without projections' share: what is not installed is left out, with a word.
Times are medians, of the stream on a GPU, however far the host was ahead, as
the C++ bench takes them. Peers of shared queries and keys hash as ours do.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

# Huge pages for tensors, as the program has them; read at the first tensor.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

import torch  # noqa: E402

import reformer  # noqa: E402


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
    parser.add_argument("--program", type=pathlib.Path,
                        default=pathlib.Path("build/reformer"))
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


def measure(forward, inputs, d_output, device):
    """Median seconds forward and backward, and the most memory in between."""
    at_once = 8 if device == "cuda" else 1  # the host stays ahead
    inputs = [x.detach().requires_grad_() for x in inputs]

    def one(mark):
        mark()
        output = forward(*inputs)
        mark()
        torch.autograd.grad(output, inputs, d_output)
        mark()

    one(lambda: None)
    one(lambda: None)
    peak = None
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        one(lambda: None)
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
    forward_s, backward_s = [], []
    begin = time.perf_counter()
    while len(forward_s) < 3 or time.perf_counter() - begin < 2:
        passes = [marks(device) for _ in range(at_once)]
        for mark, _ in passes:
            one(mark)
        for _, seconds in passes:
            there, back = seconds()
            forward_s.append(there)
            backward_s.append(back)
    return {"forward_ms": 1e3 * statistics.median(forward_s),
            "backward_ms": 1e3 * statistics.median(backward_s),
            "measurements": len(forward_s), "peak_bytes": peak}


def report(given, what, **more):
    row = {"bench": "attention", "what": what, "torch": torch.__version__,
           "device": given.device, "dtype": given.dtype,
           "length": given.length, "heads": given.heads,
           "d_head": given.d_head, **more}
    if given.device == "cuda":
        row["device_name"] = torch.cuda.get_device_name()
    print(json.dumps(row), flush=True)
    return row


def say(sentence):
    print(sentence, file=sys.stderr, flush=True)


def bench_program(given):
    if not given.program.is_file():
        return say(f"{given.program} is not there: without the C++ bench")
    command = [str(given.program), "bench", "attention", "--json",
               "--exact-up-to", "0", "--device", given.device,
               "--dtype", given.dtype, "--length", str(given.length),
               "--rounds", str(given.rounds), "--heads", str(given.heads),
               "--d-head", str(given.d_head), "--chunk",
               str(given.chunk_length)]
    if given.threads:
        command += ["--threads", str(given.threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return say(f"the C++ bench: {done.stderr.strip()}")
    row = json.loads(done.stdout.splitlines()[-1])
    return report(given, "reformer bench attention (C++)",
                  rounds=given.rounds, cpp=row)


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
    held = {}
    layer.query_key = lambda x: held["qk"]
    layer.value = lambda x: held["v"]

    def forward(qk, v):
        held["qk"], held["v"] = qk, v
        return layer(qk).hidden_states

    def flat(x):
        return x.transpose(1, 2).flatten(2).contiguous()

    measured = measure(forward, [flat(qk), flat(v)], flat(d_output),
                       given.device)
    return report(given, "transformers LSHSelfAttention",
                  rounds=given.rounds, **measured)


def reformer_pytorch(given, qk, v, d_output):
    try:
        from reformer_pytorch.reformer_pytorch import LSHAttention
    except ImportError:
        return say("reformer_pytorch is not installed: without it")
    layer = LSHAttention(bucket_size=given.chunk_length // 2,
                         n_hashes=given.rounds, causal=True, dropout=0.0)

    def flat(x):
        return x.flatten(0, 1).contiguous()

    measured = measure(lambda qk, v: layer(qk, v)[0], [flat(qk), flat(v)],
                       flat(d_output), given.device)
    return report(given, "reformer_pytorch LSHAttention", rounds=given.rounds,
                  **measured)


def main():
    given = options()
    dtype = getattr(torch, given.dtype)
    torch.manual_seed(0)
    qk, v, d_output = (
        torch.randn(1, given.heads, given.length, given.d_head,
                    device=given.device).to(dtype) for _ in range(3))
    step = iter(range(1 << 60))
    ours = report(given, "reformer.lsh_attention (Python)",
                  rounds=given.rounds, **measure(
                      lambda qk, v: reformer.lsh_attention(
                          qk, v, rounds=given.rounds,
                          chunk_length=given.chunk_length, seed=next(step)),
                      [qk, v], d_output, given.device))
    cpp = bench_program(given)
    if cpp:
        there, back = (ours[f"{name}_ms"] / 1e3 / cpp["cpp"][f"{name}_s"]
                       for name in ("forward", "backward"))
        say(f"Python over C++: forward {there:.3f}, backward {back:.3f}")
    if given.device == "cuda" or given.length <= given.exact_up_to:
        report(given, "scaled_dot_product_attention", **measure(
            lambda q, v: torch.nn.functional.scaled_dot_product_attention(
                q, q, v, is_causal=True), [qk, v], d_output, given.device))
    if given.length <= given.peers_up_to:
        for peer in (hugging_face, reformer_pytorch):
            try:
                peer(given, qk, v, d_output)
            except (RuntimeError, torch.OutOfMemoryError) as error:
                say(f"{peer.__name__}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
