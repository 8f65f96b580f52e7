"""Prints the folder of this python3's torch, if it has version 2.11.x.

Without importing it: that takes seconds, and fails where only the C++ part of
the wheel is complete.
"""
import importlib.util
import pathlib
import re

spec = importlib.util.find_spec("torch")
if spec and spec.origin:
    folder = pathlib.Path(spec.origin).parent
    version = folder / "version.py"
    library = folder / "lib" / "libtorch_cpu.so"
    if version.is_file() and library.is_file():
        if re.search(r"^__version__ = '2\.11\.", version.read_text(), re.M):
            print(folder)
