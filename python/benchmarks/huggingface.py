#!/usr/bin/env python3
"""How fast is the model of google/reformer-enwik8, with random weights, in
transformers and here?

    python3 python/benchmarks/huggingface.py train [--length 65536]
    python3 python/benchmarks/huggingface.py generate [--length 8192]

train: one sequence on a GPU, seconds and peak memory: forward and backward by
transformers in float32, and `reformer bench train` of the imported model with
our attention, whole steps with the optimizer's: as it is, with its parameters
on the host, and with stored blocks. Then transformers in bfloat16, and ours in
float32 and with their attention. What is compared is in the first four rows.
generate: tokens a second after a prompt of so many bytes, on a CPU: the median
time between two tokens, in one pass each. A line of JSON for each; needs torch,
transformers and --program.
"""
import argparse
import pathlib
import statistics
import tempfile
import time

import torch
import transformers

from rows import add_program, machine, report, run, run_json, say

CONFIG = dict(
    attn_layers=["local", "local", "lsh", "local"] * 3, hidden_size=1024,
    feed_forward_size=4096, num_attention_heads=8, attention_head_size=128,
    local_attn_chunk_length=128, lsh_attn_chunk_length=256, num_buckets=512,
    num_hashes=4, axial_pos_shape=[128, 512], axial_pos_embds_dim=[256, 768],
    vocab_size=258, max_position_embeddings=65536, is_decoder=True,
    hidden_act="relu", hidden_dropout_prob=0.0, pad_token_id=0, eos_token_id=2,
    lsh_attention_probs_dropout_prob=0.0,
    local_attention_probs_dropout_prob=0.0, tie_word_embeddings=False)


def make():
    torch.manual_seed(0)
    return transformers.ReformerModelWithLMHead(
        transformers.ReformerConfig(**CONFIG))


def imported(given, folder, attention):
    out = folder / attention
    if out.exists():
        return out / "config.json"
    run(given.program, "import", folder / "saved", "--out", out,
        "--attention", attention, "--length", given.length)
    return out / "config.json"


# --- train -------------------------------------------------------------------


def their_steps(given, model, dtype):
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
    return {"step_s": statistics.median(times[1:]),
            "peak_gib": torch.cuda.max_memory_allocated() / 2**30}


def our_steps(given, config, precision, setting):
    settings = [f"--set={each}" for each in (
        f"train.precision={precision}", "train.optimizer=adafactor", setting)
        if each]
    row = run_json(given.program, "bench", "train", "--config", config,
                   "--batch", 1, "--length", given.length, "--device", "cuda",
                   "--repeats", given.repeats, *settings)
    return {"step_s": row["step_s"], "peak_gib": row["peak_bytes"] / 2**30}


OUR_ROWS = {  # what: attention, precision, setting
    "reformer": ("ours", "bfloat16", ""),
    "reformer, train.offload": ("ours", "bfloat16", "train.offload=true"),
    "reformer, stored": ("ours", "bfloat16", "model.block=stored"),
}
MORE_OF_OURS = {
    "reformer in float32": ("ours", "float32", ""),
    "reformer, their attention": ("theirs", "bfloat16", ""),
}


class Rows:
    """Reports each, beside the first."""

    def __init__(self, given):
        self.given, self.first = given, {}

    def add(self, what, precision, measure):
        try:
            row = measure()
        except Exception as error:  # the other rows are still measured
            row = {"fault": f"{type(error).__name__}: {error}".splitlines()[0]}
        self.first = self.first or row
        if "step_s" in self.first and "step_s" in row:
            row |= {"times_faster": self.first["step_s"] / row["step_s"],
                    "times_less_memory":
                        self.first["peak_gib"] / row["peak_gib"]}
        report("huggingface train", what, precision=precision,
               length=self.given.length, **row, **machine("cuda"))


def train(given, folder):
    model = make()
    model.save_pretrained(folder / "saved")
    rows = Rows(given)

    def theirs(name):
        model.cuda().train()
        rows.add("transformers", name, lambda: their_steps(
            given, model, getattr(torch, name)))
        model.cpu()
        torch.cuda.empty_cache()  # another process wants it

    def ours(wanted):
        for what, (attention, name, setting) in wanted.items():
            rows.add(what, name, lambda: our_steps(
                given, imported(given, folder, attention), name, setting))

    theirs("float32")
    ours(OUR_ROWS)
    theirs("bfloat16")
    ours(MORE_OF_OURS)


# --- generate ----------------------------------------------------------------


class Clock(transformers.StoppingCriteria):
    """When each token was there; stops nothing."""

    def __init__(self):
        self.times = [time.perf_counter()]

    def __call__(self, tokens, scores, **more):
        self.times.append(time.perf_counter())
        return torch.zeros(len(tokens), dtype=torch.bool)


def their_tokens(given, model):
    # The first token is the start's, as in training; the prompt is of bytes.
    tokens = torch.randint(2, 258, (1, given.length))
    tokens[0, 0] = 0
    clock = Clock()
    model.generate(tokens, attention_mask=torch.ones_like(tokens),
                   do_sample=False, max_new_tokens=given.their_tokens + 1,
                   use_cache=True, eos_token_id=None,
                   stopping_criteria=[clock])
    prompt_s, *token_s = [b - a for a, b in zip(clock.times, clock.times[1:])]
    return {"token_s": statistics.median(token_s), "prompt_s": prompt_s}


def our_tokens(given, config):
    row = run_json(given.program, "bench", "generate", "--config", config,
                   "--position", given.length, "--tokens", given.tokens,
                   "--device", "cpu", "--threads", given.threads)
    return {"token_s": row["token_s"], "prompt_s": row["read_s"]}


def generate(given, folder):
    if given.threads:
        torch.set_num_threads(given.threads)
    model = make().eval()
    model.save_pretrained(folder / "saved")
    rows = {}
    for attention in ("theirs", "ours"):
        rows[f"reformer, attention {attention}"] = our_tokens(
            given, imported(given, folder, attention))
    if given.their_tokens:
        rows["transformers"] = their_tokens(given, model)
    for what, row in rows.items():
        theirs = rows.get("transformers", row)
        report("huggingface generate", what, position=given.length,
               tokens_per_s=1 / row["token_s"], prompt_s=row["prompt_s"],
               times_faster=theirs["token_s"] / row["token_s"],
               **machine("cpu"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "generate"])
    parser.add_argument("--length", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--their-tokens", type=int, default=8,
                        help="0: without transformers")
    parser.add_argument("--threads", type=int, default=0)
    add_program(parser)
    given = parser.parse_args()
    if given.length is None:
        given.length = 65536 if given.what == "train" else 8192
    if not given.program.is_file():
        parser.error(f"{given.program}: no such program; build it with `make`")
    say(f"torch {torch.__version__}, transformers {transformers.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        {"train": train, "generate": generate}[given.what](
            given, pathlib.Path(folder))


if __name__ == "__main__":
    main()
