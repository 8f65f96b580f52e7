"""What documents name is there: paths, links with their anchors, settings; they
name nothing outside the repository; and the README's picture is of the results.

    documents_test.py [-v]

Documents are all Markdown files, the comments of configs/, and the sources'
comments as far as names of other documents go. The first class plants faults
in a tree of its own and demands that they are found; the second demands that
the project has none.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

PROJECT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = {".md", ".json", ".sh", ".py", ".cff", ".yml", ".cmake", ".txt",
         ".h", ".cpp", ".cu", ".cuh", ".gnuplot", ""}

# Where a path may begin: at the root, or in reformer/ (`ops/lsh_buckets`).
FOLDERS = ("reformer", "cli", "tests", "docs", "configs", "tools", "bench",
           "cmake", "examples")
CODE = re.compile(r"`([^`\n]+)`")
# A path within a stretch of code: `cmake --build x` has none, `tests/a.cpp` is
# one, and so is the last word of `python3 tests/house/layers_test.py`.
PATH = re.compile(r"(?<![\w./~$<-])((?:[\w.{},*-]+/)+[\w.{},*-]*)(?![\w<(:])")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)"
                  r"|<img[^>]*\bsrc=\"([^\"]+)\"|<a[^>]*\bhref=\"([^\"]+)\"")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
SETTING = re.compile(r"(?<![\w.\"/])(?:model|train|lsh|task)\.[a-z_][a-z_0-9]*"
                     r"(?![\w(/])")
KEY = re.compile(r"\bv\(\"([a-z]+\.[a-z_0-9]+)\"")
# Files and members that look like settings: `train.h`, `model.safetensors`.
NO_SETTING = {"cpp", "h", "cu", "cuh", "py", "safetensors", "json", "jsonl",
              "md"}

# The names that settings, and documents, once had may stand where the
# renaming itself is told.
RENAMING = {"CHANGELOG.md"}
# Settings of trials, which were in no commit (the page says so).
TRIALS = {"bench/results/README.md": {"model.rotary_fraction"}}

# Documents that developers have beside the repository, never within it.
OUTSIDE = re.compile(r"\b(DESIGN|EXPERIMENTS|PERFORMANCE|RECALL|HOUSE|STYLE|"
                     r"TRANSLATION|DISTRIBUTED|HUGGINGFACE)\b(?!_)")
# Folders of somebody's machine, and hosts that packages come from there.
MACHINE = re.compile(r"(?<![\w.~])/(?:work|home|root|Users|mnt)/[\w.-]+|"
                     r"\b(?:localhost|127\.0\.0\.1):\d+|"
                     r"https?://(?:\d+\.){3}\d+|"
                     r"\b[\w.-]+\.(?:internal|local|lan)\b(?!\()")


def settings_of(root):
    return {key for header in (root / "reformer/config").glob("*.h")
            for key in KEY.findall(header.read_text())}


def braces(path):
    """`a.{h,cpp}` is a.h and a.cpp."""
    found = re.search(r"\{([^{}]*)\}", path)
    if not found:
        return [path]
    return [other for part in found[1].split(",")
            for other in braces(path[:found.start()] + part +
                                path[found.end():])]


class Tree:
    """The files of a project, and what exists among them."""

    def __init__(self, root):
        self.root = root
        self.files = files_of(root)
        self.paths = set(self.files)
        for path in self.files:
            self.paths.update(parent.as_posix() for parent in
                              pathlib.PurePosixPath(path).parents)
        self.rooms = {path.split("/")[1] for path in self.files
                      if path.startswith("reformer/") and path.count("/") > 1}
        self.settings = settings_of(root)

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def exists(self, path):
        """A file, a folder, a pattern, or a name without its suffix."""
        path = path.rstrip("/").removesuffix(".")
        if path in self.paths:
            return True
        if "*" in path:
            pattern = re.compile(re.escape(path).replace(r"\*", "[^/]*") +
                                 r"(\.\w+)?$")
        else:
            pattern = re.compile(re.escape(path) + r"\.\w+$")
        return any(pattern.match(known) for known in self.paths)

    def is_path(self, word):
        first = word.split("/")[0]
        return first in FOLDERS or first in self.rooms

    def has_all_of(self, word):
        return all(self.exists(path) or self.exists(f"reformer/{path}")
                   for path in braces(word))


def files_of(root):
    """What git would commit, or, where there is no git, all files."""
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={root}", "ls-files", "-co",
             "--exclude-standard"],
            cwd=root, capture_output=True, text=True, check=True).stdout
        names = listed.splitlines()
    else:
        built = {"build", "third_party"}  # a copy without git may hold them
        names = [path.relative_to(root).as_posix()
                 for path in root.rglob("*") if path.is_file()
                 and path.relative_to(root).parts[0] not in built]
    return sorted(name for name in names if (root / name).is_file())


def numbered(text):
    return enumerate(text.splitlines(), 1)


def anchors_of(text):
    """The anchors of a page's headings, as GitHub makes them."""
    anchors = set()
    for heading in re.findall(r"^#{1,6} +(.*)$", FENCE.sub("", text), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        anchor = base = words.replace(" ", "-")
        count = 0
        while anchor in anchors:
            count += 1
            anchor = f"{base}-{count}"
        anchors.add(anchor)
    return anchors


def wrong_links(tree, page, text):
    for number, line in numbered(text):
        for groups in LINK.findall(CODE.sub("", line)):
            link = next(group for group in groups if group)
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            folder = pathlib.PurePosixPath(page).parent
            path = page if not target else normal(folder / target)
            if path not in tree.paths:
                yield f"{page}:{number}: {link} leads nowhere"
            elif anchor and anchor not in anchors_of(tree.read(path)):
                yield f"{page}:{number}: {link}: no such heading"


def normal(path):
    parts = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1] if parts else ["..", ]
        elif part != ".":
            parts.append(part)
    return "/".join(parts) or "."


def codes_of(text):
    """(number of the line, code): in backticks, and the lines of fences."""
    fenced = False
    for number, line in numbered(text):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            yield number, line
        else:
            for code in CODE.findall(line):
                yield number, code


def wrong_paths(tree, page, text):
    for number, code in codes_of(text):
        for word in PATH.findall(code):
            if "<" in code or not tree.is_path(word):
                continue
            if not tree.has_all_of(word):
                yield f"{page}:{number}: there is no {word}"


def wrong_settings(tree, page, text):
    for number, line in numbered(text):
        for key in SETTING.findall(line):
            if key.split(".")[1] in NO_SETTING or key in tree.settings:
                continue
            if page in RENAMING or key in TRIALS.get(page, ()):
                continue
            yield f"{page}:{number}: there is no setting {key}"


def outside(page, text):
    for number, line in numbered(text):
        if found := OUTSIDE.search(line):
            yield (f"{page}:{number}: {found[1]} is no document of the "
                   "repository")
        if found := MACHINE.search(line):
            yield f"{page}:{number}: {found[0]} is on one machine"


def comments_of(path, text):
    """Of sources and configs only what is written for people."""
    suffix = pathlib.PurePosixPath(path).suffix
    if suffix in {".json", ".h", ".cpp", ".cu", ".cuh"}:
        return "\n".join(line[line.index("//"):] if "//" in line else ""
                         for line in text.splitlines())
    return text


def violations(root):
    tree = Tree(root)
    for path in tree.files:
        file = pathlib.PurePosixPath(path)
        if file.suffix not in TEXTS or file.name == "documents_test.py":
            continue
        text = tree.read(path)
        yield from outside(path, comments_of(path, text))
        if file.suffix == ".md":
            yield from wrong_links(tree, path, text)
            yield from wrong_paths(tree, path, text)
        if file.suffix == ".md" or path.startswith(("configs/", "tools/")):
            yield from wrong_settings(tree, path, comments_of(path, text))


class CheckerTest(unittest.TestCase):
    TREE = {
        "reformer/config/config.h": 'v("train.steps", steps, "steps");\n',
        "reformer/ops/sort.h": "// Sorts.\n",
        "reformer/ops/sort.cpp": "",
        "configs/text.json": "// A text.\n{}\n",
        "docs/page.md": "# A page\n\n## Two words, `code`\n",
    }

    def found(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {**self.TREE, **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return list(violations(root))

    def assert_found(self, path, line, message):
        found = self.found({path: line + "\n"})
        self.assertEqual(len(found), 1, (line, found))
        self.assertIn(message, found[0])

    def assert_clean(self, path, *lines):
        for line in lines:
            self.assertEqual(self.found({path: line + "\n"}), [], line)

    def test_what_exists_may_be_named(self):
        self.assert_clean(
            "docs/a.md",
            "`reformer/ops/sort.h`, `ops/sort`, `ops/sort.{h,cpp}`, `ops`",
            "`configs/*.json`, `docs/`, `python3 docs/page.md`",
            "[a](page.md), [b](page.md#two-words-code), [c](../configs)",
            "[there](https://example.org/x#y), `train.steps=3`",
            "`reformer/ops/<name>.cpp` is a pattern for people",
            "`train.h`, `model.safetensors`, `a/b` and 1/2 are no settings")
        self.assert_clean("docs/page.md", "# A page\n\n[up](#a-page)")

    def test_paths_that_do_not_exist_are_found(self):
        for path in ("reformer/ops/gone.h", "ops/gone", "ops/sort.cu",
                     "ops/sort.{h,cu}", "configs/*.yaml", "docs/gone/",
                     "tests/gone_test.cpp", "tools/gone"):
            self.assert_found("docs/a.md", f"See `{path}`.",
                              f"docs/a.md:1: there is no {path}")
        self.assert_found("README.md", "`python3 tests/gone.py build`",
                          "there is no tests/gone.py")
        self.assert_found("README.md", "```\nbash tools/gone.sh\n```",
                          "README.md:2: there is no tools/gone.sh")

    def test_links_that_lead_nowhere_are_found(self):
        for link in ("gone.md", "../page.md", "gone.md#a-page",
                     "../../configs/text.json"):
            self.assert_found("docs/a.md", f"[x]({link})",
                              f"{link} leads nowhere")
        self.assert_found("README.md", '<img src="docs/gone.svg">',
                          "docs/gone.svg leads nowhere")
        self.assert_found("README.md", "![x](docs/gone.png)", "leads nowhere")

    def test_headings_that_are_not_there_are_found(self):
        for link in "page.md#three-words", "#a-page", "page.md#Two-words-code":
            self.assert_found("docs/a.md", f"[x]({link})", "no such heading")
        self.assert_found(
            "docs/a.md", "```\n# no heading\n```\n[x](#no-heading)",
            "no such heading")

    def test_unknown_settings_are_found(self):
        for line in ("`--set train.stepz=1`", "train.graph", "lsh.rounds=2"):
            self.assert_found("docs/a.md", line, "there is no setting")
            self.assert_found("configs/text.json", f"// {line}\n{{}}",
                              "there is no setting")
        self.assert_clean("CHANGELOG.md", "`train.graph` was its name")

    def test_documents_from_outside_are_found(self):
        for path in ("docs/a.md", "tools/run.sh"):
            self.assert_found(path, "# as in DESIGN", "DESIGN is no document")
        for path in ("reformer/ops/sort.h", "configs/text.json"):
            self.assert_found(path, "// EXPERIMENTS' settings",
                              "EXPERIMENTS is no document")
        self.assert_clean("reformer/ops/sort.h", "int DESIGN = 0;")

    def test_machine_paths_are_found(self):
        for path in ("/home/somebody/a", "/work/tree", "/root/x",
                     "http://10.0.0.1/simple", "localhost:3141",
                     "pypi.internal"):
            self.assert_found("docs/a.md", f"Look at {path}.",
                              "is on one machine")
        self.assert_clean("docs/a.md", "`~/.cache/reformer`, `/dev/zero`",
                          "`/usr/local/cuda`, `a/home/x`, x.local(y)")


class ProjectTest(unittest.TestCase):
    def test_what_documents_name_is_there(self):
        found = list(violations(PROJECT))
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_pictures_are_of_the_results(self):
        for script, picture in (
                ("bench/draw_readme.py", "docs/images/time_against_length.svg"),
                ("bench/draw_costs.py", "docs/images/cost_against_bits.svg")):
            drawn = subprocess.run(
                [sys.executable, PROJECT / script], capture_output=True,
                encoding="utf-8", check=True,
                env={"PYTHONIOENCODING": "utf-8"}).stdout
            self.assertEqual(drawn,
                             (PROJECT / picture).read_text(encoding="utf-8"),
                             f"draw it again: {script}")

    def test_settings_are_read(self):
        self.assertIn("train.offload", settings_of(PROJECT))
        self.assertIn("lsh.rounds", settings_of(PROJECT))


if __name__ == "__main__":
    unittest.main()
