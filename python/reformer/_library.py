"""Loads the operators, once torch is there."""
import pathlib

import torch

_BUILT_FOR = "2.11"


def _load() -> None:
    if not torch.__version__.startswith(_BUILT_FOR + "."):
        raise ImportError(
            f"reformer: built for torch {_BUILT_FOR}, but this is torch "
            f"{torch.__version__}; install torch {_BUILT_FOR}, or install "
            "reformer again from its sources")
    library = pathlib.Path(__file__).with_name("reformer_operators.so")
    if not library.is_file():
        raise ImportError(
            f"reformer: {library.name} is missing beside {__file__}; install "
            "the package with `pip install .` in the root of its sources")
    torch.ops.load_library(str(library))


_load()
