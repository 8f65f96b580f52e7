"""python3 -m reformer.convert DIR: writes DIR/model.safetensors from
DIR/pytorch_model.bin, for `reformer import`, which reads no pickles."""
from __future__ import annotations

import pathlib
import pickle
import sys

import torch


def convert(folder: pathlib.Path) -> pathlib.Path:
    """Returns the file that was written. Raises ValueError with a sentence."""
    try:
        from safetensors.torch import save_file
    except ImportError:
        raise ValueError("convert: Python's safetensors is required; install "
                         "it with `pip install safetensors`") from None
    source, target = folder / "pytorch_model.bin", folder / "model.safetensors"
    if not source.is_file():
        raise ValueError(f"{source}: no such file")
    if target.exists():
        raise ValueError(f"{target}: exists already")
    # Tensors alone: a pickle of anything else could run a stranger's code.
    try:
        state = torch.load(source, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(f"{source}: holds no weights that can be read safely: "
                         f"{str(error).splitlines()[0]}") from None
    save_file({name: value.contiguous().clone()
               for name, value in state.items()}, target,
              metadata={"format": "pt"})
    return target


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: python3 -m reformer.convert DIR", file=sys.stderr)
        return 2
    try:
        print(f"wrote {convert(pathlib.Path(sys.argv[1]))}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
