"""LSH attention and reversible layers (Kitaev et al. 2020) for PyTorch.

Functions on tensors [batch, heads, length, d_head]: :func:`lsh_attention`,
:func:`local_attention`, :func:`interval_attention`, :func:`lsh_buckets`; the
same are operators of ``torch.ops.reformer``. Modules: :class:`LSHAttention`,
:class:`ReversibleSequence`. Memory grows with the length, never with its
square.
"""
from . import _fake  # noqa: F401  loads the operators
from .functional import (interval_attention, local_attention, lsh_attention,
                         lsh_buckets)
from .modules import LSHAttention
from .reversible import ReversibleBlock, ReversibleSequence

__all__ = [
    "LSHAttention", "ReversibleBlock", "ReversibleSequence",
    "interval_attention", "local_attention", "lsh_attention", "lsh_buckets",
]
__version__ = "0.1.0"
