"""The layer table of docs/architecture.md, checked against every #include;
what public headers, reformer/*.h, include; and that every call of a CUDA kernel
makes its device the current one.

    layers_test.py [-v]

The first class plants violations in a tree of its own and demands that they
are found; the second demands that the project has none.
"""
import pathlib
import re
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
TORCH_FREE = {"base", "config", "kernels", "score"}
# Public, and defines what every layer throws.
EVERYBODYS = "reformer/error.h"

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH_HEADER = re.compile(r"(torch|ATen|c10|caffe2)/")
DEVICE_IF = re.compile(r"\s*#\s*(?:if|ifdef|ifndef|elif)\b.*?(\w*CUDA\w*)")


def read_table(page):
    """{layer: the layers it may use}, from the table `| layer | may use |`."""
    head = r"^\| *layer *\| *may use *\|.*\n"
    tables = re.findall(head + r"((?:\|.*\n)+)", page, re.M)
    if len(tables) != 1:
        raise ValueError("need exactly one table headed | layer | may use |")
    cells = {}
    for row in tables[0].splitlines()[1:]:  # 1: the line of dashes
        layer, used = re.findall(r"[^|]+", row)[:2]
        cells[layer.strip(" `")] = re.findall(r"\w+", used)
    table = {}
    for layer, used in cells.items():
        if used == ["nothing"]:
            used = []
        if used == ["anything"]:
            used = list(cells)
        unknown = set(used) - set(cells)
        if unknown:
            raise ValueError(f"{layer} may use unknown layers: {unknown}")
        table[layer] = {layer, *used}
    return table


def layer_of(path):
    """The layer of a path from the project's root, or None."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "cli":
        return "cli"
    if parts[0] != "reformer":
        return None
    return parts[1] if len(parts) > 2 else "public"


def device_if_allowed(path):
    return "reformer/kernels/cuda/" in path or "stub" in path


def is_public_header(path):
    return layer_of(path) == "public" and path.endswith(".h")


def may_be_public(header):
    """Whether a public header may include it: what users have, too."""
    standard = "/" not in header and not header.endswith(".h")
    return (standard or header == "ATen/core/Tensor.h" or
            header.startswith("reformer/") and is_public_header(header))


def violations_in(path, text, table):
    layer = layer_of(path)
    if layer not in table:
        yield f"{path}: not in a folder of the layer table"
        return
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        if include := INCLUDE.match(line):
            header = include[2]
            if is_public_header(path) and not may_be_public(header):
                yield f"{where}: a public header may not include {header}"
            if header == EVERYBODYS:
                continue
            if header.startswith(("reformer/", "cli/")):
                used = layer_of(header)
                if used not in table[layer]:
                    yield f"{where}: {layer} may not use {used} ({header})"
            elif include[1] == '"':
                yield f'{where}: "{header}" is not written from the root'
            elif layer in TORCH_FREE and TORCH_HEADER.match(header):
                yield f"{where}: {layer} may not use torch ({header})"
        if (device := DEVICE_IF.match(line)) and not device_if_allowed(path):
            yield f"{where}: device #if outside a stub file ({device[1]})"


LAUNCH = re.compile(r"\bkernels::cuda::([a-z]\w*)\(")
STREAM = re.compile(r"\bnative_handle\(")  # as kernels take it
# These ask or end what no device has to be current for.
WITHOUT_DEVICE = {"available", "why_unavailable", "why_unfit", "destroy_graph"}
STREAM_FILES = {"device.cpp", "device_event.cpp", "device_event.h",
                "cuda_graph.cpp"}


def unguarded(path, text):
    """CUDA calls in functions that did not make their device current."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if STREAM.search(line) and path.split("/")[-1] not in STREAM_FILES:
            yield f"{path}:{number}: a stream without a LaunchGuard"
        calls = set(LAUNCH.findall(line)) - WITHOUT_DEVICE
        if not calls:
            continue
        begin = number - 1  # of the function: the last line not indented
        while begin > 0 and not re.match(r"[\w]", lines[begin]):
            begin -= 1
        before = "\n".join(lines[begin:number])
        if not re.search(r"\bLaunchGuard launch\(", before):
            yield f"{path}:{number}: {calls} without a LaunchGuard"


def violations(root):
    table = read_table((root / "docs/architecture.md").read_text())
    for folder in "reformer", "cli":
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES:
                path = file.relative_to(root).as_posix()
                yield from violations_in(path, file.read_text(), table)
                if layer_of(path) not in TORCH_FREE:
                    yield from unguarded(path, file.read_text())


TABLE = """
| another | table |
| --- | --- |
| x | y |

| layer | may use |
| --- | --- |
| `base` | nothing |
| `kernels` | `base` |
| `ops` | `base`, `kernels` |
| `model` | `base`, `ops` |
| `public` | anything |
| `cli` | anything |

| another | table |
| --- | --- |
| x | y |
"""


class CheckerTest(unittest.TestCase):
    def found(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {"docs/architecture.md": TABLE, **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return list(violations(root))

    def assert_found(self, path, line, message):
        self.assertEqual(len(self.found({path: line + "\n"})), 1, line)
        self.assertIn(message, self.found({path: line + "\n"})[0])

    def test_allowed_includes_pass(self):
        self.assertEqual(self.found({
            "reformer/base/a.h": "#include <vector>\n",
            "reformer/kernels/a.h": '#include "reformer/base/a.h"\n',
            "reformer/ops/a.cpp": '#include "reformer/ops/a.h"\n'
                                  "#include <ATen/core/Tensor.h>\n",
            "reformer/base/b.h": '#include "reformer/error.h"\n',
            "reformer/a.h": '#include "reformer/error.h"\n'
                            "#include <ATen/core/Tensor.h>\n"
                            "#include <vector>\n",
            "reformer/a.cpp": '#include "reformer/model/a.h"\n',
            "cli/a.cpp": '#include "reformer/kernels/a.h"\n'
                         '#include "reformer/a.h"\n',
        }), [])

    def test_using_a_layer_above_is_found(self):
        self.assert_found("reformer/base/a.h", '#include "reformer/ops/a.h"',
                          "reformer/base/a.h:1: base may not use ops")
        self.assert_found("reformer/ops/b/a.h", "# include <reformer/model/a.h>",
                          "ops may not use model")
        self.assert_found("reformer/ops/a.h", '#include "cli/a.h"',
                          "ops may not use cli")

    def test_skipping_a_layer_is_found(self):
        self.assert_found("reformer/model/a.cpp",
                          '#include "reformer/kernels/a.h"',
                          "model may not use kernels")

    def test_torch_below_ops_is_found(self):
        for header in "torch/torch.h", "ATen/ATen.h", "c10/core/Device.h":
            self.assert_found("reformer/kernels/a.h", f"#include <{header}>",
                              "kernels may not use torch")
        self.assert_found("reformer/base/a.h", "#include <ATen/ATen.h>",
                          "base may not use torch")

    def test_unknown_folder_is_found(self):
        self.assert_found("reformer/helpers/a.h", "", "reformer/helpers/a.h")
        self.assert_found("reformer/ops/a.h", '#include "reformer/x/a.h"',
                          "ops may not use x")

    def test_public_headers_show_nothing_of_the_inside(self):
        for header in ("reformer/base/a.h", "ATen/ATen.h", "torch/torch.h",
                       "nlohmann/json.hpp", "unistd.h", "cli/a.h"):
            self.assert_found("reformer/a.h", f"#include <{header}>",
                              f"a public header may not include {header}")

    def test_using_the_public_surface_from_inside_is_found(self):
        self.assert_found("reformer/model/a.cpp", '#include "reformer/a.h"',
                          "model may not use public")

    def test_relative_include_is_found(self):
        self.assert_found("reformer/base/a.h", '#include "../ops/a.h"',
                          "not written from the root")

    def test_device_if_is_found_outside_stub_files(self):
        for line in "#ifdef __CUDACC__", "#if defined(REFORMER_CUDA)":
            self.assert_found("reformer/ops/a.cpp", line, "device #if")
            self.assertEqual(self.found({"reformer/ops/stub/a.cpp": line}), [])

    def test_launches_without_their_device_are_found(self):
        call = "  kernels::cuda::f(args, launch.stream());"
        guard = "  const LaunchGuard launch(x);"
        other = f"void g() {{\n{guard}\n}}\n"
        self.assert_found("reformer/ops/a.cpp", f"{other}void f() {{\n{call}\n}}",
                          "reformer/ops/a.cpp:5: {'f'} without a LaunchGuard")
        self.assert_found("reformer/model/a.cpp",
                          "  x = guard.getStream(device).native_handle();",
                          "a stream without a LaunchGuard")
        self.assertEqual(self.found({
            "reformer/ops/a.cpp": f"void f() {{\n{guard}\n{call}\n}}\n"}), [])

    def test_bad_tables_are_refused(self):
        with self.assertRaisesRegex(ValueError, "exactly one table"):
            read_table("no table")
        with self.assertRaisesRegex(ValueError, "base may use unknown"):
            read_table("| layer | may use |\n| - | - |\n| base | opps |\n")


class ProjectTest(unittest.TestCase):
    def test_every_include_follows_the_table(self):
        found = list(violations(PROJECT))
        self.assertFalse(found, "\n" + "\n".join(found))


if __name__ == "__main__":
    unittest.main()
