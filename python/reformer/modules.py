"""Layers with parameters."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor, nn

from . import _kept
from .functional import Window, lsh_attention, lsh_buckets

_MOST_SEEDS = 2**62


class LSHAttention(nn.Module):
    """Multi-head LSH attention with its projections.

    Shared queries and keys, values and an output, without biases: what the C++
    models have between their layer norm and their residual sum.

    Args:
        d_model: width of inputs and outputs.
        heads: attention heads.
        d_head: width of a head; None: d_model / heads.
        rehash: in training mode draw new hashes for every call, from torch's
            CPU generator; in evaluation, or where False, ``seed`` is used.
            Under torch.compile the draw breaks the graph, unless
            ``torch._dynamo.config.capture_scalar_outputs`` is set.
        seed: see above; give each layer its own.
        The others are those of :func:`reformer.lsh_attention`. ``n_buckets`` of
        0 follows the length of each input: give the number for inputs of
        different lengths that should hash alike.
    """

    def __init__(self, d_model: int, heads: int, d_head: Optional[int] = None,
                 *, rounds: int = 4, chunk_length: int = 128,
                 n_buckets: int = 0, local_window: int = 0,
                 window: Window = "trailing", causal: bool = True,
                 successor_heads: int = 0, rehash: bool = True, seed: int = 0,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if d_head is None:
            if d_model % heads != 0:
                raise ValueError(
                    "LSHAttention: d_model must be a multiple of heads where "
                    f"d_head is not given, got {d_model} and {heads}")
            d_head = d_model // heads
        self.heads, self.d_head = heads, d_head
        self.rounds, self.chunk_length = rounds, chunk_length
        self.n_buckets, self.local_window = n_buckets, local_window
        self.window, self.causal = window, causal
        self.successor_heads = successor_heads
        self.rehash, self.seed = rehash, seed
        made = {"bias": False, "device": device, "dtype": dtype}
        self.qk = nn.Linear(d_model, heads * d_head, **made)
        self.v = nn.Linear(d_model, heads * d_head, **made)
        self.output = nn.Linear(heads * d_head, d_model, **made)
        for matrix in (self.qk, self.v, self.output):
            nn.init.xavier_uniform_(matrix.weight)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, self.d_head)).transpose(1, 2)

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        """x ``[batch, length, d_model]``, mask ``[batch, length]`` bool, True
        where real; returns ``[batch, length, d_model]``."""
        if x.dim() != 3 or x.shape[2] != self.qk.in_features:
            raise ValueError(
                "LSHAttention: x must be [batch, length, d_model = "
                f"{self.qk.in_features}], got sizes {list(x.shape)}")
        qk, v = self._split(self.qk(x)), self._split(self.v(x))
        seed = self.seed
        if self.training and self.rehash:
            seed = int(torch.randint(_MOST_SEEDS, ()))
        hashes = {"rounds": self.rounds, "chunk_length": self.chunk_length,
                  "n_buckets": self.n_buckets, "seed": seed}
        buckets = None
        if _kept.active():
            buckets = _kept.buckets(lambda: lsh_buckets(qk, **hashes))
        attended = lsh_attention(
            qk, v, local_window=self.local_window, window=self.window,
            causal=self.causal, successor_heads=self.successor_heads,
            mask=mask, buckets=buckets, **hashes)
        return self.output(attended.transpose(1, 2).flatten(2))

    def extra_repr(self) -> str:
        return (f"heads={self.heads}, d_head={self.d_head}, "
                f"rounds={self.rounds}, chunk_length={self.chunk_length}, "
                f"causal={self.causal}")
