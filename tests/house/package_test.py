"""package_test.py SOURCES BUILD CMAKE OPTION...: what `cmake --install` makes.

Installs, moves what was installed, and uses it from there alone: the program,
and the library as examples/ does, configured with OPTION....
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCES = BUILD = CMAKE = None  # set below
OPTIONS = []
FOLDER = PREFIX = None  # by setUpModule
LINES = {}  # of each example, what it printed


def setUpModule():
    global FOLDER, PREFIX
    FOLDER = BUILD / "package"  # always the same: ccache remembers it
    shutil.rmtree(FOLDER, ignore_errors=True)
    unittest.addModuleCleanup(shutil.rmtree, FOLDER)
    FOLDER.mkdir()
    run(CMAKE, "--install", BUILD, "--prefix", FOLDER / "prefix")
    PREFIX = FOLDER / "moved"
    (FOLDER / "prefix").rename(PREFIX)


def run(*command, cwd="/", **more):
    environment = {name: value for name, value in os.environ.items()
                   if name != "LD_LIBRARY_PATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, text=True,
                          capture_output=True, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def program(*arguments):
    return run(PREFIX / "bin" / "reformer", *arguments)


def is_torchs(path):
    return (PREFIX / "lib" / "reformer") in path.parents


class ProgramTest(unittest.TestCase):
    def test_it_starts_anywhere_and_also_where_it_was_moved_to(self):
        self.assertRegex(program("--version"), r"\Areformer [0-9.]+\n\Z")

    def test_it_needs_nothing_of_the_sources(self):
        libraries = run("ldd", PREFIX / "bin" / "reformer")
        self.assertIn("libtorch_cpu.so", libraries)
        within = [line for line in libraries.splitlines()
                  if f"{SOURCES}/" in line and str(PREFIX) not in line]
        self.assertEqual(within, [])


class FilesTest(unittest.TestCase):
    def test_no_file_names_a_folder_of_this_machine(self):
        looked_at = 0
        for path in PREFIX.rglob("*"):
            if not path.is_file() or is_torchs(path) or path.suffix == "":
                continue  # the program: hardening_test.py
            looked_at += 1
            self.assertNotIn(f"{SOURCES}".encode(), path.read_bytes(), path)
        self.assertGreater(looked_at, 10)

    def test_the_public_headers_are_installed_and_no_others(self):
        include = PREFIX / "include"
        installed = {path.relative_to(include).as_posix()
                     for path in include.rglob("*") if path.is_file()}
        public = {f"reformer/{path.name}"
                  for path in (SOURCES / "reformer").glob("*.h")}
        self.assertEqual(installed, public)
        self.assertIn("reformer/reformer.h", public)

    def test_the_header_of_all_includes_every_other_one(self):
        text = (SOURCES / "reformer/reformer.h").read_text()
        included = set(re.findall(r'#include "(.+)"', text))
        self.assertEqual(included, {
            f"reformer/{path.name}" for path in (SOURCES / "reformer").glob("*.h")
            if path.name != "reformer.h"})


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        source, build = SOURCES / "examples", FOLDER / "examples"
        run(CMAKE, "-S", source, "-B", build, *OPTIONS, "-Wdev",
            "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-Wall -Wextra",
            f"-DCMAKE_PREFIX_PATH={PREFIX}")
        run(CMAKE, "--build", build)
        cls.model = FOLDER / "model"
        LINES["attention"] = run(build / "attention").splitlines()
        LINES["train_and_generate"] = run(build / "train_and_generate",
                                          cls.model).splitlines()
        LINES["fine_tune"] = run(build / "fine_tune", cls.model,
                                 FOLDER / "tuned").splitlines()
        LINES["small_gpt"] = run(build / "small_gpt").splitlines()
        LINES["long_sequence"] = run(build / "long_sequence").splitlines()

    def test_every_example_is_built_run_and_short(self):
        for path in (SOURCES / "examples").glob("*.cpp"):
            self.assertIn(path.stem, LINES)
            self.assertLessEqual(len(path.read_text().splitlines()), 40, path)

    def test_more_rounds_are_nearer_to_exact_attention(self):
        errors = [float(line.split()[-1]) for line in LINES["attention"][:4]]
        self.assertEqual(errors, sorted(errors, reverse=True))
        self.assertLess(errors[-1], 0.9 * errors[0])

    def test_the_model_learns_and_goes_on(self):
        *losses, tokens, last = LINES["train_and_generate"]
        losses = [float(line.split()[-2]) for line in losses]
        self.assertGreater(losses[0], 2)  # a guess: log(16) = 2.8
        self.assertLess(losses[-1], 0.5)
        self.assertLess(float(last.split()[-2]), 0.5)
        tokens = [int(token) for token in tokens.split()]
        self.assertEqual(tokens, [(tokens[0] + 3 * i) % 16 for i in range(20)])

    def test_fine_tuning_lowers_the_loss(self):
        before, after = (float(line.split()[-2])
                         for line in LINES["fine_tune"])
        self.assertLess(after, before)
        self.assertTrue((FOLDER / "tuned" / "config.json").is_file())

    def test_a_model_of_ones_own_learns(self):
        losses = [float(line.split()[-2]) for line in LINES["small_gpt"]]
        self.assertGreater(losses[0], 2)  # a guess: log(16) = 2.8
        self.assertLess(losses[-1], 0.5)

    def test_a_long_sequence_has_a_gradient(self):
        self.assertGreater(float(LINES["long_sequence"][1].split()[-1]), 0)

    def test_the_program_reads_the_model_of_the_example(self):
        made = program("generate", self.model, "--prompt", "1 4 7 10 13 0",
                       "--length", "4", "--temperature", "0")
        self.assertIn("3 6 9 12", made)


if __name__ == "__main__":
    SOURCES, BUILD = (pathlib.Path(path) for path in sys.argv[1:3])
    CMAKE, *OPTIONS = sys.argv[3:]
    del sys.argv[1:]
    unittest.main()
