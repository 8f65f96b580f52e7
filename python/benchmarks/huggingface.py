#!/usr/bin/env python3
"""How fast is the model of google/reformer-enwik8, with random weights, in
transformers and here?

    python3 python/benchmarks/huggingface.py train [--length 65536]
    python3 python/benchmarks/huggingface.py generate [--length 8192]

train: forward and backward of one sequence on a GPU, seconds and peak memory:
transformers in float32 and bfloat16, and `reformer bench train` of the imported
model with our attention, whole steps with the optimizer's. generate: tokens a
second after a prompt of so many bytes, on a CPU. One line of JSON each; needs
torch, transformers and --program.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import transformers

CONFIG = dict(
    attn_layers=["local", "local", "lsh", "local"] * 3, hidden_size=1024,
    feed_forward_size=4096, num_attention_heads=8, attention_head_size=128,
    local_attn_chunk_length=128, lsh_attn_chunk_length=256, num_buckets=512,
    num_hashes=4, axial_pos_shape=[128, 512], axial_pos_embds_dim=[256, 768],
    vocab_size=258, max_position_embeddings=65536, is_decoder=True,
    hidden_act="relu", hidden_dropout_prob=0.0, pad_token_id=0, eos_token_id=2,
    lsh_attention_probs_dropout_prob=0.0,
    local_attention_probs_dropout_prob=0.0, tie_word_embeddings=False)


def report(what, **more):
    print(json.dumps({"bench": "huggingface", "what": what,
                      "torch": torch.__version__,
                      "transformers": transformers.__version__, **more}),
          flush=True)


def make():
    torch.manual_seed(0)
    return transformers.ReformerModelWithLMHead(
        transformers.ReformerConfig(**CONFIG))


def program(given, *arguments):
    done = subprocess.run([str(given.program), *map(str, arguments)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return done.stdout


def their_steps(given, dtype):
    model = make().cuda().train()
    tokens = torch.randint(2, 258, (1, given.length), device="cuda")
    times = []
    torch.cuda.reset_peak_memory_stats()
    for _ in range(given.repeats + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            loss = model(tokens, labels=tokens).loss
        loss.backward()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        model.zero_grad(set_to_none=True)
    report("transformers, forward and backward", dtype=str(dtype),
           length=given.length, step_s=statistics.median(times[1:]),
           peak_gib=torch.cuda.max_memory_allocated() / 2**30,
           device_name=torch.cuda.get_device_name())
    del model, loss
    torch.cuda.empty_cache()


def train(given):
    for dtype in (torch.float32, torch.bfloat16):
        try:
            their_steps(given, dtype)
        except (RuntimeError, torch.OutOfMemoryError) as error:
            report("transformers, forward and backward", dtype=str(dtype),
                   length=given.length, fault=str(error).splitlines()[0])
    for attention in ("ours", "theirs"):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            make().save_pretrained(folder / "theirs")
            program(given, "import", folder / "theirs", "--out",
                    folder / "ours", "--attention", attention, "--length",
                    given.length)
            for precision in ("bfloat16", "float32"):
                done = subprocess.run(
                    [str(given.program), "bench", "train", "--config",
                     str(folder / "ours" / "config.json"), "--batch", "1",
                     "--length", str(given.length), "--device", "cuda",
                     "--json", "--set", f"train.precision={precision}",
                     "--set", "train.optimizer=adafactor"],
                    capture_output=True,
                    text=True)
                if done.returncode != 0:
                    report("reformer bench train", attention=attention,
                           precision=precision, fault=done.stderr.strip())
                    continue
                report("reformer bench train", attention=attention,
                       precision=precision,
                       row=json.loads(done.stdout.splitlines()[-1]))


def generate(given):
    if given.threads:
        torch.set_num_threads(given.threads)
    text = (b"Attention is all that is asked here, and bytes are letters. "
            * (given.length // 40))[:given.length]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = make().eval()
        model.save_pretrained(folder / "theirs")
        (folder / "prompt").write_bytes(text)
        for attention in ("ours", "theirs"):
            out = folder / attention / "run"
            program(given, "import", folder / "theirs", "--out", out,
                    "--attention", attention)
            rows = []  # what a token takes is the difference of two lengths
            for count in (4, 4 + given.tokens):
                begin = time.perf_counter()
                made = json.loads(program(
                    given, "generate", out, "--prompt-file",
                    folder / "prompt", "--length", count, "--temperature", 0,
                    "--device", "cpu", "--json", "--threads", given.threads))
                rows.append((time.perf_counter() - begin, made["tokens"]))
            seconds = rows[1][0] - rows[0][0]
            report("reformer generate", attention=attention,
                   length=given.length, tokens=rows[1][1] - rows[0][1],
                   tokens_per_s=(rows[1][1] - rows[0][1]) / seconds,
                   prompt_s=rows[0][0])
        tokens = torch.tensor([[0] + [byte + 2 for byte in text]])
        times = []
        for count in (1, 1 + given.their_tokens):
            begin = time.perf_counter()
            model.generate(tokens, attention_mask=torch.ones_like(tokens),
                           do_sample=False, max_new_tokens=count,
                           use_cache=True, eos_token_id=None)
            times.append(time.perf_counter() - begin)
        report("transformers generate", length=given.length,
               tokens=given.their_tokens,
               tokens_per_s=given.their_tokens / (times[1] - times[0]),
               prompt_s=times[0])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "generate"])
    parser.add_argument("--length", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--their-tokens", type=int, default=8)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--program", type=pathlib.Path,
                        default=pathlib.Path("build/reformer"))
    given = parser.parse_args()
    if given.length is None:
        given.length = 65536 if given.what == "train" else 8192
    if not given.program.is_file():
        sys.exit(f"{given.program}: no such program; build it with `make`")
    {"train": train, "generate": generate}[given.what](given)


if __name__ == "__main__":
    main()
