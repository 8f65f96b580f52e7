"""hardening_test.py PROGRAM SOURCES BUILD CMAKE PROGRAM_OF_TESTS...: where the
loader looks for libraries, and what makes the built and the installed program
harder to abuse."""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = SOURCES = BUILD = CMAKE = None  # set below
FOLDER = PROGRAMS = None  # by setUpModule: the built and the installed program
PROGRAMS_OF_TESTS = []

ENDBR64 = bytes.fromhex("f30f1efa")


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, text=True,
                          capture_output=True, errors="replace").stdout


def search_path(program):
    """All elements of RPATH and RUNPATH."""
    paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]",
                       readelf("-d", program))
    return [element for path in paths for element in path.split(":")]


def setUpModule():
    global FOLDER, PROGRAMS
    FOLDER = pathlib.Path(tempfile.mkdtemp(dir=BUILD, prefix="hardening-"))
    unittest.addModuleCleanup(shutil.rmtree, FOLDER)
    subprocess.run([CMAKE, "--install", BUILD, "--prefix", FOLDER / "prefix"],
                   check=True, stdout=subprocess.DEVNULL)
    PROGRAMS = [PROGRAM, str(FOLDER / "prefix" / "bin" / "reformer")]


class LibrariesTest(unittest.TestCase):
    def test_no_folder_of_the_search_path_is_empty_or_relative(self):
        for program in PROGRAMS + PROGRAMS_OF_TESTS:
            if not os.path.exists(program):
                continue  # not built; those of PROGRAMS always are
            for element in search_path(program):
                self.assertTrue(element.startswith(("/", "$ORIGIN")),
                                f"{program}: '{element}'")

    def test_the_installed_program_looks_for_nothing_in_the_sources(self):
        for element in search_path(PROGRAMS[1]):
            self.assertFalse(element.startswith((SOURCES, BUILD)), element)

    def test_both_programs_start_anywhere_and_load_nothing_from_there(self):
        library = FOLDER / "planted"
        library.mkdir()
        source = library / "planted.c"
        source.write_text("#include <stdio.h>\n__attribute__((constructor)) "
                          "void run(void) { puts(\"planted\"); }\n")
        compiler = shutil.which("cc") or shutil.which("gcc")
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", PROGRAM))
        self.assertTrue(needed)
        if compiler:
            subprocess.run([compiler, "-shared", "-fPIC", "-o",
                            library / "planted.so", source], check=True)
        else:  # no library at all is noticed too: the loader refuses it
            (library / "planted.so").write_bytes(b"planted")
        for name in needed:
            shutil.copy(library / "planted.so", library / name)
        environment = {name: value for name, value in os.environ.items()
                       if name != "LD_LIBRARY_PATH"}
        for program in PROGRAMS:
            run = subprocess.run([program, "--version"], cwd=library,
                                 env=environment, text=True,
                                 capture_output=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""), program)
            self.assertRegex(run.stdout, r"\Areformer [0-9.]+\n\Z")


@unittest.skipUnless(platform.machine() == "x86_64", "other machines differ")
class PropertiesTest(unittest.TestCase):
    def test_code_may_lie_anywhere_and_the_stack_holds_none(self):
        for program in PROGRAMS:
            self.assertRegex(readelf("-h", program), r"Type:\s+DYN")
            segments = readelf("-l", program)
            self.assertRegex(segments, r"GNU_STACK.* RW +0x")
            self.assertNotRegex(segments, r"LOAD.* RWE ")

    def test_functions_of_libraries_are_bound_before_it_starts(self):
        for program in PROGRAMS:
            self.assertIn("GNU_RELRO", readelf("-l", program))
            self.assertRegex(readelf("-d", program), r"FLAGS.*(BIND_)?NOW")

    def test_stack_and_buffers_are_checked(self):
        for program in PROGRAMS:
            symbols = readelf("--dyn-syms", program)
            self.assertIn("__stack_chk_fail", symbols)
            self.assertRegex(symbols, r"__(mem|str|sn?printf|fprintf)\w*_chk")

    def test_jumps_land_where_they_may(self):
        # Of each function that can be called through a pointer. The linker's
        # own mark is there only where the C library was made so as well.
        code = pathlib.Path(PROGRAM).read_bytes()
        self.assertGreater(code.count(ENDBR64), 1000)


class PathsTest(unittest.TestCase):
    def test_no_path_of_this_machine_but_where_libraries_are(self):
        torch = pathlib.Path(search_path(PROGRAM)[0]).parent
        for program in PROGRAMS:
            found = pathlib.Path(program).read_bytes()
            for library in search_path(program):
                found = found.replace(library.encode(), b"")
            for path in SOURCES, BUILD, str(torch):
                at = found.find(path.encode() + b"/")
                self.assertEqual(at, -1, found[max(at - 40, 0):at + 160])


if __name__ == "__main__":
    PROGRAM, SOURCES, BUILD, CMAKE = sys.argv[1:5]
    PROGRAM = os.path.abspath(PROGRAM)
    PROGRAMS_OF_TESTS = sys.argv[5:]
    del sys.argv[1:]
    unittest.main()
