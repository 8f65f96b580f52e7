#!/usr/bin/env python3
"""A small GPT-like model with LSH attention, in reversible blocks.

    python3 examples/python/small_gpt.py [--steps 60]

Each token is the one before plus 3, modulo 16. Needs the package: `pip install
.` in the root of the sources.
"""
import argparse

import torch
from torch import nn

import reformer


class SmallGpt(nn.Module):
    def __init__(self, vocabulary=16, width=64, heads=2, layers=2, length=256):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)

        def attention(seed):
            return nn.Sequential(
                nn.LayerNorm(width),
                reformer.LSHAttention(width, heads, chunk_length=32,
                                      local_window=16, seed=seed))

        def feed_forward():
            return nn.Sequential(nn.LayerNorm(width),
                                 nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

        self.blocks = reformer.ReversibleSequence(
            (attention(seed), feed_forward()) for seed in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(2 * width),
                                  nn.Linear(2 * width, vocabulary))

    def forward(self, tokens):  # [batch, length]
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        return self.head(torch.cat(self.blocks(x, x), dim=2))


def sequences(batch, length):
    first = torch.randint(16, (batch, 1))
    return (first + 3 * torch.arange(length)) % 16


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    torch.manual_seed(0)
    model = SmallGpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, given.steps + 1):
        tokens = sequences(8, 129)
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1),
                                           tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step}: loss {loss:.3f} nats")

    model.eval()
    text = sequences(1, 8)
    with torch.inference_mode():
        for _ in range(12):
            text = torch.cat([text, model(text)[:, -1:].argmax(2)], 1)
    print(*text[0].tolist())


if __name__ == "__main__":
    main()
