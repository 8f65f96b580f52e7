"""Attention as functions of tensors; differentiable in queries and values.

All of them take ``[batch, heads, length, d_head]`` of float32 or float64 on a
CPU, d_head from 8 to 256; on CUDA of float32 or bfloat16, d_head a multiple of
8 up to 128, length up to 2**23, up to 64 rounds. Half precision that a device
has no kernel for is computed in float32 and returned as it came. Any strides,
any autocast. Second derivatives are not available. Wrong shapes and options
raise ValueError.
"""
from __future__ import annotations

from typing import Literal, Optional

import torch
from torch import Tensor

from . import _library  # noqa: F401  the operators are there

Window = Literal["trailing", "chunk"]


def lsh_attention(qk: Tensor, v: Tensor, rounds: int = 4,
                  chunk_length: int = 128, local_window: int = 0,
                  causal: bool = True, mask: Optional[Tensor] = None,
                  seed: int = 0, *, n_buckets: int = 0,
                  window: Window = "trailing", successor_heads: int = 0,
                  buckets: Optional[Tensor] = None) -> Tensor:
    """LSH attention, all of it (the paper's Sec. 2 and Appendix A).

    Queries and keys are shared: keys are ``qk / |qk|``, scores ``qk_i . k_j``
    without a factor of ``1 / sqrt(d_head)``, and a position sees itself only
    where it sees nobody else. Each round hashes qk into buckets, sorts by
    bucket, and lets a query see its bucket within the window; one softmax goes
    over the union of all rounds, each pair once.

    Args:
        qk: shared queries and keys, ``[batch, heads, length, d_head]``.
        v: values, likewise.
        rounds: independent hash rounds.
        chunk_length: sorted positions of a chunk.
        local_window: so many last positions are seen in any case.
        causal: attend to the past only.
        mask: ``[batch, length]`` bool, True where real; padded positions are
            seen by nobody, and their rows are 0.
        seed: of the hashes: the same seed, the same hashes, whatever the
            device. Draw another for each step of training, and each layer.
        n_buckets: of a round, even; 0: by the length.
        window: ``"trailing"``, the last chunk_length places of the bucket:
            exactly causal; or ``"chunk"``, the paper's: the query's own chunk
            and the one before.
        successor_heads: in so many first heads a key offers the value of the
            position after it: what came next the last time.
        buckets: what :func:`lsh_buckets` returned, to be used in place of
            hashing; rounds and seed are then not read.

    Returns:
        ``[batch, heads, length, d_head]``, laid out in memory as qk is.
    """
    return torch.ops.reformer.lsh_attention(
        qk, v, rounds=rounds, chunk_length=chunk_length, n_buckets=n_buckets,
        local_window=local_window, window=window, causal=causal,
        successor_heads=successor_heads, seed=seed, mask=mask, buckets=buckets)


def lsh_buckets(qk: Tensor, rounds: int = 4, chunk_length: int = 128,
                n_buckets: int = 0, seed: int = 0) -> Tensor:
    """The buckets that :func:`lsh_attention` hashes into.

    Returns ``[batch, heads, rounds, length]`` uint16, without a gradient. A
    layer whose input is computed a second time in the backward pass hands them
    over: a bucket of a rebuilt input may differ by rounding.
    """
    with torch.no_grad():
        wide = qk.detach()
        if qk.dtype == torch.float16 or (qk.dtype == torch.bfloat16
                                         and not qk.is_cuda):
            wide = wide.float()
        return torch.ops.reformer.lsh_buckets(wide, rounds, chunk_length,
                                              n_buckets, seed)


def local_attention(qk: Tensor, v: Tensor, chunk_length: int = 128,
                    causal: bool = True, mask: Optional[Tensor] = None, *,
                    window: Window = "chunk",
                    successor_heads: int = 0) -> Tensor:
    """Attention to nearby positions, keys shared as in :func:`lsh_attention`.

    Each position sees its own chunk of positions and the one before, or with
    ``window="trailing"`` the last chunk_length positions (on either side where
    not causal). Padded positions are left out before chunks are counted.
    """
    return torch.ops.reformer.local_attention(
        qk, v, chunk_length=chunk_length, window=window, causal=causal,
        successor_heads=successor_heads, mask=mask)


def interval_attention(q: Tensor, k: Optional[Tensor], v: Tensor,
                       order: Tensor, place: Tensor, interval: Tensor,
                       mask: Optional[Tensor] = None, *,
                       successor_heads: int = 0) -> tuple[Tensor, Tensor]:
    """The one operation behind them: positions in some order, and for every
    query an interval of that order, in each of several rounds.

    Args:
        q, v: ``[batch, heads, length, d_head]``.
        k: likewise: scores are ``q . k / sqrt(d_head)`` and self is a key like
            any other; or None: shared with q, as in :func:`lsh_attention`.
        order: ``[batch or 1, heads or 1, rounds, length]`` int32, a permutation
            of the positions in each round.
        place: ``[..., length, rounds]`` int32, its inverse.
        interval: ``[..., length, rounds, 2]`` int32: begin and end, in places,
            of what each query sees. On CUDA neither may decrease from place to
            place.
        mask: ``[batch, length]`` bool; padded positions must lie in nobody's
            interval.

    Returns:
        The softmax over the union of the intervals, each pair once, applied to
        the values, ``[batch, heads, length, d_head]``, and the log of its
        denominator, ``[batch, heads, length]``, which carries no gradient.
    """
    return torch.ops.reformer.interval_attention(
        q, k, v, order, place, interval, mask=mask,
        successor_heads=successor_heads)
