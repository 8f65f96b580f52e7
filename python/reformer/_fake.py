"""Shapes and strides of what the operators return, for torch.compile and
torch.export, which trace without elements."""
from __future__ import annotations

import torch
from torch import Tensor

from . import _library  # noqa: F401  the operators are there

_ALIGNMENT = 16  # bytes, of vectors on CUDA


def _has_rows(x: Tensor) -> bool:
    """Whether the kernels read x as it is: otherwise they copy it."""
    if x.stride(3) != 1:
        return False
    if x.device.type != "cuda":
        return True
    return all(x.size(dim) == 1
               or x.stride(dim) * x.element_size() % _ALIGNMENT == 0
               for dim in range(3))


def _rows_like(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    if x.numel() == 0 or (_has_rows(x) and y.stride(3) == 1):
        return y
    return x.new_empty(x.shape)


def _rounds(like: Tensor, batch, heads, rounds, length):
    sizes = ((batch, heads, rounds, length), (batch, heads, length, rounds),
             (batch, heads, length, rounds, 2))
    return tuple(like.new_empty(size, dtype=torch.int32) for size in sizes)


@torch.library.register_fake("reformer::lsh_buckets")
def _(qk, rounds=4, chunk_length=128, n_buckets=0, seed=0):
    batch, heads, length, _ = qk.shape
    return qk.new_empty((batch, heads, rounds, length), dtype=torch.uint16)


@torch.library.register_fake("reformer::lsh_rounds")
def _(buckets, mask, chunk_length, n_buckets, local_window, window, causal):
    batch, heads, rounds, length = buckets.shape
    return _rounds(buckets, batch, heads, rounds + (1 if local_window > 0 else 0),
                   length)


@torch.library.register_fake("reformer::local_rounds")
def _(qk, mask, chunk_length, window, causal):
    batch = 1 if mask is None else qk.shape[0]
    return _rounds(qk, batch, 1, 1, qk.shape[2])


@torch.library.register_fake("reformer::interval_attention_forward")
def _(q, k, v, order, place, interval, mask, successor_heads, trusted):
    # q of a CPU comes here, too, with a v of the device meta.
    torch._check_value(v.device == q.device, lambda: (
        "interval_attention: v must be on the device of q, "
        f"{q.device}, got {v.device}"))
    statistics = torch.float32 if q.dtype == torch.bfloat16 else q.dtype
    return (_rows_like(q), q.new_empty(q.shape[:3], dtype=statistics),
            q.new_empty((*q.shape[:3], 2), dtype=statistics))


@torch.library.register_fake("reformer::interval_attention_backward")
def _(d_output, q, k, v, order, place, interval, mask, output, lse, softmax,
      successor_heads):
    d_k = q.new_empty((0,)) if k is None else _rows_like(k)
    return _rows_like(q), d_k, _rows_like(v)
