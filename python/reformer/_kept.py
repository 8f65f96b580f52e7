"""Buckets that a layer keeps from its forward pass for the one in which its
input is rebuilt: a bucket hashed from a rebuilt input may differ by rounding,
and the gradient would be that of another function."""
from __future__ import annotations

import contextlib
from threading import local
from typing import Callable, Iterator, Optional

from torch import Tensor


class _State(local):
    recorded: Optional[list[Tensor]] = None
    replayed: Optional[Iterator[Tensor]] = None


_state = _State()


@contextlib.contextmanager
def recording(tape: list[Tensor]) -> Iterator[None]:
    """What is hashed within is appended to the tape."""
    before = _state.recorded, _state.replayed
    _state.recorded, _state.replayed = tape, None
    try:
        yield
    finally:
        _state.recorded, _state.replayed = before


@contextlib.contextmanager
def replaying(tape: list[Tensor]) -> Iterator[None]:
    """Within, nothing is hashed: the tape's buckets are used in their order."""
    before = _state.recorded, _state.replayed
    _state.recorded, _state.replayed = None, iter(tape)
    try:
        yield
    finally:
        _state.recorded, _state.replayed = before


def buckets(hash_now: Callable[[], Tensor]) -> Optional[Tensor]:
    """Those of the tape, or new ones for it; None where there is no tape."""
    if _state.replayed is not None:
        return next(_state.replayed)
    if _state.recorded is None:
        return None
    _state.recorded.append(hash_now())
    return _state.recorded[-1]
