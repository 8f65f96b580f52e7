"""Buckets that a layer keeps from its forward pass for the one in which its
input is rebuilt: a bucket hashed from a rebuilt input may differ by rounding,
and the gradient would be that of another function."""
from __future__ import annotations

import contextlib
from threading import local
from typing import Callable, Iterator, Optional

import torch
from torch import Tensor


class _State(local):
    active: bool = False  # one of the two is there; all that is traced of it
    recorded: Optional[list[Tensor]] = None
    replayed: Optional[Iterator[Tensor]] = None


_state = _State()


@contextlib.contextmanager
def _state_of(recorded: Optional[list[Tensor]],
              replayed: Optional[Iterator[Tensor]]) -> Iterator[None]:
    before = _state.active, _state.recorded, _state.replayed
    _state.active, _state.recorded, _state.replayed = True, recorded, replayed
    try:
        yield
    finally:
        _state.active, _state.recorded, _state.replayed = before


def recording(tape: list[Tensor]) -> contextlib.AbstractContextManager[None]:
    """What is hashed within is appended to the tape."""
    return _state_of(tape, None)


def replaying(tape: list[Tensor]) -> contextlib.AbstractContextManager[None]:
    """Within, nothing is hashed: the tape's buckets are used in their order."""
    return _state_of(None, iter(tape))


def active() -> bool:
    """Whether there is a tape."""
    return _state.active


@torch.compiler.disable
def buckets(hash_now: Callable[[], Tensor]) -> Tensor:
    """Those of the tape, or new ones for it."""
    if _state.replayed is not None:
        return next(_state.replayed)
    assert _state.recorded is not None
    _state.recorded.append(hash_now())
    return _state.recorded[-1]
