"""Reversible layers (Gomez et al. 2017; the paper's Sec. 3): activations of no
layer are kept; the backward pass rebuilds the inputs from the outputs."""
from __future__ import annotations

import contextlib
from typing import Any, Iterable, Optional, Sequence

import torch
from torch import Tensor, nn

from . import _kept


class _Random:
    """The state of the random generators before a call, for dropout that is
    the same when the call is repeated."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._cpu = torch.get_rng_state()
        self._gpu = (torch.cuda.get_rng_state(device)
                     if device.type == "cuda" else None)

    @contextlib.contextmanager
    def again(self):
        gpus = [] if self._gpu is None else [self._device]
        with torch.random.fork_rng(devices=gpus):
            torch.set_rng_state(self._cpu)
            if self._gpu is not None:
                torch.cuda.set_rng_state(self._gpu, self._device)
            yield


class _Call:
    """One evaluation of f or g, which can be repeated as it was."""

    def __init__(self, module: nn.Module, arguments: dict[str, Any]) -> None:
        self._module, self._arguments = module, arguments
        self._buckets: list[Tensor] = []
        self._random: Optional[_Random] = None
        self._autocast: list[contextlib.AbstractContextManager] = []

    def first(self, x: Tensor) -> Tensor:
        device = x.device.type
        if self._module.training:
            self._random = _Random(x.device)
        self._autocast = [
            torch.autocast(kind, torch.get_autocast_dtype(kind),
                           enabled=torch.is_autocast_enabled(kind),
                           cache_enabled=torch.is_autocast_cache_enabled())
            for kind in {device, "cpu"}]
        with _kept.recording(self._buckets):
            y = self._module(x, **self._arguments)
        if y.shape != x.shape:
            raise ValueError(
                "ReversibleSequence: f and g must return the shape that they "
                f"are given, {tuple(x.shape)}, got {tuple(y.shape)} of "
                f"{type(self._module).__name__}")
        return y

    def again(self, x: Tensor) -> Tensor:
        with contextlib.ExitStack() as stack:
            for autocast in self._autocast:
                stack.enter_context(autocast)
            if self._random is not None:
                stack.enter_context(self._random.again())
            stack.enter_context(_kept.replaying(self._buckets))
            return self._module(x, **self._arguments)


class ReversibleBlock(nn.Module):
    """y1 = x1 + f(x2); y2 = x2 + g(y1), with any modules f and g that map
    ``[..., d_model]`` to the same shape."""

    def __init__(self, f: nn.Module, g: nn.Module) -> None:
        super().__init__()
        self.f, self.g = f, g


def _block(given: Any) -> ReversibleBlock:
    if isinstance(given, ReversibleBlock):
        return given
    if (isinstance(given, (tuple, list)) and len(given) == 2
            and all(isinstance(each, nn.Module) for each in given)):
        return ReversibleBlock(*given)
    raise TypeError("ReversibleSequence: blocks must be pairs (f, g) of "
                    f"modules or ReversibleBlock, got {type(given).__name__}")


def _parameters(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters() if p.requires_grad]


def _add_branch_gradients(call: _Call, parameters: Sequence[Tensor],
                          y: Tensor, x: Tensor, d_y: Tensor, d_x: Tensor,
                          sums: dict[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Reverses y += call(x): returns y before it, and d_x with what came
    through the call."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        added = call.again(leaf)
    gradients = torch.autograd.grad(
        added, (leaf, *parameters), d_y.to(added.dtype), allow_unused=True)
    for parameter, gradient in zip(parameters, gradients[1:]):
        if gradient is None:
            continue
        if parameter in sums:
            sums[parameter] = sums[parameter] + gradient
        else:
            sums[parameter] = gradient
    if gradients[0] is not None:
        d_x = d_x + gradients[0]
    return y - added.detach().to(y.dtype), d_x


class _Reversible(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x1, x2, blocks, arguments, *parameters):
        calls = []
        for block in blocks:
            f, g = _Call(block.f, arguments[0]), _Call(block.g, arguments[1])
            x1 = x1 + f.first(x2)
            x2 = x2 + g.first(x1)
            calls.append((f, g))
        ctx.calls, ctx.blocks = calls, blocks
        ctx.save_for_backward(x1.detach(), x2.detach(), *parameters)
        return x1, x2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d1, d2):
        y1, y2, *parameters = ctx.saved_tensors
        sums: dict[Tensor, Tensor] = {}
        for block, (f, g) in zip(reversed(ctx.blocks), reversed(ctx.calls)):
            y2, d1 = _add_branch_gradients(g, _parameters(block.g), y2, y1, d2,
                                           d1, sums)
            y1, d2 = _add_branch_gradients(f, _parameters(block.f), y1, y2, d1,
                                           d2, sums)
        return d1, d2, None, None, *(sums.get(p) for p in parameters)


# What a trace would keep of a tape is not there in the backward pass.
_apply = torch.compiler.disable(_Reversible.apply)


class ReversibleSequence(nn.Module):
    """Blocks y1 = x1 + f(x2), y2 = x2 + g(y1), one after the other, whose
    memory does not grow with their number.

    The forward pass keeps its two outputs and, of each
    :class:`reformer.LSHAttention` within, the buckets; the backward pass
    rebuilds every block's input from its output and evaluates f and g once
    more, with the same dropout, autocast and hashes. Rebuilt inputs equal the
    first ones but for rounding: compute in float32 or wider between blocks.
    Under ``torch.compile`` it runs as it is; compile each f and g instead
    (``block.f.compile()``).

    Args:
        blocks: pairs (f, g) of modules of your own that map
            ``[..., d_model]`` to the same shape, or :class:`ReversibleBlock`.
            They must be functions of their input and parameters alone (no
            batch norm in training).
    """

    def __init__(self, blocks: Iterable[Any]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_block(each) for each in blocks)

    def forward(self, x1: Tensor, x2: Tensor, *, f_arguments=None,
                g_arguments=None) -> tuple[Tensor, Tensor]:
        """Both streams ``[..., d_model]``; the arguments, by name, are handed
        to every f or g (a mask), and get no gradients. Returns both streams."""
        if x1.shape != x2.shape:
            raise ValueError(
                "ReversibleSequence: both streams must have the same shape, "
                f"got {tuple(x1.shape)} and {tuple(x2.shape)}")
        arguments = (f_arguments or {}, g_arguments or {})
        parameters = list(dict.fromkeys(_parameters(self)))
        return _apply(x1, x2, list(self.blocks), arguments, *parameters)
