"""Prints the folder of this python3's torch, if it has version 2.11.x.

Without importing it: that takes seconds, and fails where only the C++ part of
the wheel is complete. pip hides an environment's packages from what it builds,
so that the environment's folders are looked at, too.
"""
import importlib.util
import pathlib
import re
import site
import sys
import sysconfig


def folders():
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin:
        yield pathlib.Path(spec.origin).parent
    places = [sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
    places += site.getsitepackages([sys.prefix, sys.base_prefix])
    places.append(site.getusersitepackages())
    for place in places:
        yield pathlib.Path(place) / "torch"


for folder in folders():
    version = folder / "version.py"
    library = folder / "lib" / "libtorch_cpu.so"
    if version.is_file() and library.is_file():
        if re.search(r"^__version__ = '2\.11\.", version.read_text(), re.M):
            print(folder)
            break
