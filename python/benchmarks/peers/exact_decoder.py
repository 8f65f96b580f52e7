#!/usr/bin/env python3
"""How fast does an ordinary decoder with exact attention train, as a user of
PyTorch would write it?

    python3 python/benchmarks/peers/exact_decoder.py [--length 65536] [--batch 1] ...

Layer norm before each part, torch's scaled_dot_product_attention (cuDNN's on a
GPU), GELU, bf16 autocast on float32 parameters, activation checkpointing of
every block, the cross entropy in chunks of positions, fused AdamW. Sinusoid
positions, so that length adds no parameters. Needs torch alone. Prints one
line of JSON with the keys of `reformer bench train --json` as far as they
mean the same. The defaults are the 12 layers that docs/performance.md has.
"""
import argparse
import json
import math
import statistics
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint


def options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--d-model", type=int, default=1024)
    parser.add_argument("--d-ff", type=int, default=4096)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--length", type=int, default=65536)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--loss-chunk", type=int, default=8192,
                        help="positions the loss takes at once")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


class Block(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.heads = given.heads
        self.backends = ([SDPBackend.CUDNN_ATTENTION]
                         if given.device.startswith("cuda") else
                         [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])
        self.norm1 = nn.LayerNorm(given.d_model)
        self.qkv = nn.Linear(given.d_model, 3 * given.d_model, bias=False)
        self.out = nn.Linear(given.d_model, given.d_model, bias=False)
        self.norm2 = nn.LayerNorm(given.d_model)
        self.up = nn.Linear(given.d_model, given.d_ff)
        self.down = nn.Linear(given.d_ff, given.d_model)

    def attention(self, x):  # [batch, length, d_model]
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=-1))
        with sdpa_kernel(self.backends):
            o = functional.scaled_dot_product_attention(q, k, v,
                                                        is_causal=True)
        return self.out(o.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.chunk = given.loss_chunk
        self.embedding = nn.Embedding(given.vocabulary, given.d_model)
        self.blocks = nn.ModuleList(Block(given) for _ in range(given.layers))
        self.norm = nn.LayerNorm(given.d_model)
        self.head = nn.Linear(given.d_model, given.vocabulary, bias=False)
        self.register_buffer("positions", sinusoids(given.length,
                                                    given.d_model))

    def chunk_loss(self, x, targets):
        logits = self.head(self.norm(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1),
                                        targets.flatten(), reduction="sum")

    def forward(self, tokens):  # [batch, length + 1]: the mean cross entropy
        x = self.embedding(tokens[:, :-1]) + self.positions
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        targets = tokens[:, 1:]
        total = sum(checkpoint(self.chunk_loss, *part, use_reentrant=False)
                    for part in zip(x.split(self.chunk, 1),
                                    targets.split(self.chunk, 1)))
        return total / targets.numel()


def sinusoids(length, width):  # [length, width]
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
    angles = torch.arange(length)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def main():
    given = options()
    device = torch.device(given.device)
    on_gpu = device.type == "cuda"
    torch.manual_seed(0)
    model = Decoder(given).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=on_gpu)
    tokens = torch.randint(given.vocabulary, (given.batch, given.length + 1),
                           device=device)

    def synchronize():
        if on_gpu:
            torch.cuda.synchronize()

    def step():
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    for _ in range(given.warmup):
        step()
    times = []
    for _ in range(given.repeats):
        synchronize()
        begin = time.perf_counter()
        step()
        synchronize()
        times.append(time.perf_counter() - begin)
    step_s = statistics.median(times)
    print(json.dumps({
        "bench": "train", "program": "exact_decoder.py",
        "torch": torch.__version__, "device": device.type,
        "device_name": torch.cuda.get_device_name() if on_gpu else None,
        "dtype": "bfloat16", "layers": given.layers,
        "d_model": given.d_model, "d_ff": given.d_ff, "heads": given.heads,
        "d_head": given.d_model // given.heads, "attention": "full",
        "block": "checkpointed", "length": given.length,
        "batch": given.batch, "optimizer": "adamw",
        "parameters": sum(p.numel() for p in model.parameters()),
        "step_s": step_s,
        "tokens_per_s": given.batch * given.length / step_s,
        "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
    }))


if __name__ == "__main__":
    main()
