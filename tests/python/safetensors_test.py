"""safetensors_python_test.py MODEL_TESTS: Python's safetensors opens ours.

MODEL_TESTS is the test program that writes and reads the files. Exits with 77,
saying so, where Python has no `safetensors`.
"""
import ctypes
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import safetensors
except ImportError:
    print("skipped: Python's safetensors is not installed")
    sys.exit(77)

PROGRAM = None  # set below

# LibTorch's name of a type: the file's, Python's, and how struct unpacks it
# (BF16 is the upper half of a float).
KINDS = {"Bool": ("BOOL", "bool", "?"), "Double": ("F64", "float64", "d"),
         "Float": ("F32", "float32", "f"), "Half": ("F16", "float16", "e"),
         "BFloat16": ("BF16", "bfloat16", "H"), "Long": ("I64", "int64", "q"),
         "Int": ("I32", "int32", "i"), "Short": ("I16", "int16", "h"),
         "Char": ("I8", "int8", "b"), "Byte": ("U8", "uint8", "B")}
PYTHON_NAMES = {dtype: name for dtype, name, _ in KINDS.values()}


def run_test(name, **environment):
    run = subprocess.run(
        [PROGRAM, f"--gtest_filter=SafetensorsTest.{name}"],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, **environment})
    assert run.returncode == 0 and "1 test." in run.stdout, run.stdout


def numbers(kind, data):
    """Six of them."""
    if kind == "BFloat16":
        halves = struct.unpack("<6H", data)
        return [struct.unpack("<f", struct.pack("<I", half << 16))[0]
                for half in halves]
    return list(struct.unpack(f"<6{KINDS[kind][2]}", data))


def serialized(tensors, metadata):
    """What Python writes; the call differs before and after safetensors 0.8."""
    buffers = []

    def spec(tensor):
        data, name = bytes(tensor["data"]), PYTHON_NAMES[tensor["dtype"]]
        if not hasattr(safetensors, "TensorSpec"):
            return {"dtype": name, "shape": tensor["shape"], "data": data}
        buffers.append(ctypes.create_string_buffer(data, len(data) + 1))
        return safetensors.TensorSpec(
            dtype=name, shape=tensor["shape"],
            data_ptr=ctypes.addressof(buffers[-1]), data_len=len(data))

    return bytes(safetensors.serialize(
        {name: spec(tensor) for name, tensor in tensors.items()}, metadata))


class SafetensorsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "ours.safetensors"
        run_test("WritesTheFileThatPythonOpens",
                 REFORMER_SAFETENSORS_WRITE=str(self.path))
        self.tensors = dict(safetensors.deserialize(self.path.read_bytes()))

    def test_python_reads_every_type(self):
        self.assertEqual(len(self.tensors), len(KINDS) + 2)
        for kind, (dtype, _, _) in KINDS.items():
            tensor = self.tensors[f"numbers.{kind}"]
            expected = [i % 2 if kind == "Bool" else i for i in range(6)]
            self.assertEqual((tensor["dtype"], tensor["shape"]),
                             (dtype, [2, 3]))
            self.assertEqual(numbers(kind, tensor["data"]), expected, kind)

    def test_python_reads_scalars_and_tensors_without_elements(self):
        scalar, none = self.tensors["scalar"], self.tensors["none"]
        self.assertEqual((scalar["dtype"], scalar["shape"]), ("F64", []))
        self.assertEqual(struct.unpack("<d", scalar["data"]), (7.5,))
        self.assertEqual((none["shape"], len(none["data"])), ([2, 0, 3], 0))

    def test_python_reads_the_metadata(self):
        try:
            opened = safetensors.safe_open(self.path, framework="np")
        except ImportError:
            self.skipTest("numpy is not installed")
        with opened as file:
            self.assertEqual(file.metadata()["step"], "12")
            self.assertEqual(file.get_tensor("numbers.Float").tolist(),
                             [[0, 1, 2], [3, 4, 5]])

    def test_we_read_what_python_writes_even_with_our_checksum_in_it(self):
        header = self.path.read_bytes()[8:]
        metadata = json.JSONDecoder().raw_decode(header.decode("latin-1"))[0][
            "__metadata__"]
        again = self.path.with_name("python.safetensors")
        for kept in metadata, {"step": "12"}:
            again.write_bytes(serialized(self.tensors, kept))
            self.assertNotEqual(again.read_bytes(), self.path.read_bytes())
            run_test("OpensTheFileThatPythonWrites",
                     REFORMER_SAFETENSORS_READ=str(again))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
