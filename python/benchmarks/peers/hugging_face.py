#!/usr/bin/env python3
"""How fast does Hugging Face's Reformer train on a CPU?

    python3 python/benchmarks/peers/hugging_face.py [--threads 2]
    python3 python/benchmarks/peers/hugging_face.py --layers 3 --d-model 512 --d-ff 2048 \\
        --heads 8 --length 16384 --batch 1 --vocabulary 256 --repeats 1

Whole training steps of ReformerModelWithLMHead in float32 with torch's
Adafactor: LSH attention in every layer, learned positions, no dropout, its own
choice of buckets. Needs torch and transformers. Prints one line of JSON with
the keys of `reformer bench train --json` as far as they mean the same. The
defaults are the paper's duplication model, 8 sequences of 1,024 tokens.
"""
import argparse
import json
import resource
import statistics
import time

import torch
import transformers


def options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--d-model", type=int, default=256)
    parser.add_argument("--d-ff", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--d-head", type=int, default=64)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--chunk-length", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


def model_of(given):
    config = transformers.ReformerConfig(
        attn_layers=["lsh"] * given.layers,
        hidden_size=given.d_model,
        feed_forward_size=given.d_ff,
        num_attention_heads=given.heads,
        attention_head_size=given.d_head,
        num_hashes=given.rounds,
        lsh_attn_chunk_length=given.chunk_length,
        lsh_num_chunks_before=1,
        lsh_num_chunks_after=0,
        num_buckets=None,
        axial_pos_embds=False,
        max_position_embeddings=given.length,
        vocab_size=given.vocabulary,
        hidden_dropout_prob=0.0,
        lsh_attention_probs_dropout_prob=0.0,
        is_decoder=True,
        use_cache=False)
    return transformers.ReformerModelWithLMHead(config).train()


def main():
    given = options()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    model = model_of(given)
    optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-3)
    tokens = torch.randint(given.vocabulary, (given.batch, given.length))

    def step():
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()

    for _ in range(given.warmup):
        step()
    times = []
    for _ in range(given.repeats):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    step_s = statistics.median(times)
    print(json.dumps({
        "bench": "train", "program": "hugging_face.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": "cpu", "dtype": "float32", "threads": given.threads,
        "layers": given.layers, "d_model": given.d_model,
        "d_ff": given.d_ff, "heads": given.heads, "d_head": given.d_head,
        "attention": "lsh", "length": given.length, "batch": given.batch,
        "rounds": given.rounds, "chunk_length": given.chunk_length,
        "optimizer": "adafactor",
        "parameters": sum(p.numel() for p in model.parameters()),
        "step_s": step_s,
        "tokens_per_s": given.batch * given.length / step_s,
        # Of the process, its libraries included.
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
