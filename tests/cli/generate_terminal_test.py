"""generate_terminal_test.py PROGRAM: `reformer generate` with a person before
it: sessions, terminals, Ctrl-C."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest

import generate_test
from generate_test import generate, train

LONG = 4_000_000  # bytes: seconds of reading


def setUpModule():
    generate_test.setUpModule()
    folder = pathlib.Path(generate_test.FOLDER.name)
    train("text", folder / "rotary", f"task.data={folder / 'data'}",
          "train.length=64")
    (folder / "long").write_bytes(b"0123456789abcdef" * (LONG // 16))


def tearDownModule():
    generate_test.tearDownModule()


def command(run, *arguments):
    return [generate_test.PROGRAM, "generate",
            str(pathlib.Path(generate_test.FOLDER.name) / run), "--threads",
            "1", *map(str, arguments)]


class Terminal:
    """A program whose standard descriptors are a terminal, which is its own."""

    def __init__(self, *arguments):
        try:
            self.pid, self.file = pty.fork()
        except OSError as error:  # a bare machine
            raise unittest.SkipTest(f"no terminal to be had here: {error}")
        if self.pid == 0:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
            os.execv(generate_test.PROGRAM, command(*arguments))
        self.seen = ""

    def type(self, text):
        os.write(self.file, text.encode())

    def read_some(self, seconds):
        if not select.select([self.file], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.file, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += piece.decode(errors="replace")
        return bool(piece)

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not (match := re.search(pattern, self.seen)):
            left = end - time.monotonic()
            assert left > 0, f"{pattern} not in {self.seen[:400]!r}"
            self.read_some(min(left, 1))
        self.seen = self.seen[match.end():]
        return match

    def end(self):
        while self.read_some(30):
            pass
        os.close(self.file)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class TerminalTest(unittest.TestCase):
    def test_the_prompt_is_shown_unless_it_is_hidden(self):
        options = ["numbers", "--length", 3, "--prompt", "5 6 7 "]
        shown = Terminal(*options)
        shown.wait_for(r"5 6 7 (\d+ ){3}\r\n")
        self.assertEqual(shown.end(), 0)
        hidden = Terminal(*options, "--hide-prompt")
        hidden.wait_for(r"\n(\d+ ){3}\r\n")
        self.assertEqual(hidden.end(), 0)

    def test_a_long_prompt_tells_how_long_it_takes_and_can_be_stopped(self):
        terminal = Terminal("rotary", "--prompt-file", pathlib.Path(
            generate_test.FOLDER.name) / "long")
        terminal.wait_for(
            r"reading a prompt of 4000000 tokens: \d+%, \d+:\d\d left")
        terminal.type("\x03")
        terminal.wait_for("stopped while reading the prompt")
        self.assertEqual(terminal.end(), 130)


class InterruptTest(unittest.TestCase):
    def interrupted(self, *arguments, sent=signal.SIGINT):
        run = subprocess.Popen(command("numbers", "--length", 1000000,
                                       *arguments),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               bufsize=0)
        first = os.read(run.stdout.fileno(), 30)  # streamed: long before the end
        run.send_signal(sent)
        rest, errors = run.communicate(timeout=60)
        return run.returncode, (first + rest).decode(), errors.decode()

    def test_what_was_made_is_printed_whole(self):
        status, text, errors = self.interrupted()
        self.assertEqual(status, 130)
        self.assertRegex(text, r"^(\d+ )+\n$")
        made = re.search(r"stopped: (\d+) tokens in", errors)
        self.assertEqual(int(made[1]), len(text.split()))

    def test_other_signals_have_their_own_status(self):
        self.assertEqual(self.interrupted(sent=signal.SIGTERM)[0], 143)

    def test_of_several_texts_the_first_is_streamed_and_all_are_printed(self):
        status, text, _ = self.interrupted("--prompt", "1", "--prompt", "2")
        self.assertEqual(status, 130)
        texts = re.match(r"^--- 1 of 2\n([\d ]+)\n--- 2 of 2\n([\d ]+)\n$",
                         text)
        self.assertEqual(len(texts[1].split()), len(texts[2].split()))


class SessionTest(unittest.TestCase):
    # Without chance, and every answer another.
    OPTIONS = ["--temperature", 0, "--repetition-penalty", 3,
               "--repetition-window", 0]

    def session(self, lines, *arguments, length=7):
        run = generate("numbers", "--interactive", *self.OPTIONS, *arguments,
                       "--length", length, input=lines.encode())
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.decode()

    def continued(self, prompt, length=7):
        return generate("numbers", "--prompt", prompt, *self.OPTIONS,
                        "--length", length).stdout.decode()

    def test_each_line_is_continued_after_all_before_it(self):
        first = self.continued("5 6")
        second = self.continued("5 6 " + first + " 9 9 9")
        for lines in "5 6\n9 9 9\n", "5 6\n9 9 9":
            self.assertEqual(self.session(lines), first + second)
        self.assertNotEqual(second, self.continued("9 9 9"))

    def test_an_empty_line_goes_on(self):
        self.assertEqual(self.session("5 6\n\n").split(),
                         self.continued("5 6", 14).split())

    def test_a_prompt_begins_the_session(self):
        self.assertEqual(self.session("6\n", "--prompt", "5"),
                         self.continued("5 6"))

    def test_stop_strings_end_answers_and_stay_in_the_text(self):
        words = self.continued("5 6", 20).split()
        rows = [json.loads(line) for line in self.session(
            "5 6\n\n", "--json", "--stop", " ".join(words[2:4]) + " ",
            length=4).splitlines()]
        self.assertEqual([row["prompt"] for row in rows], ["5 6", ""])
        self.assertEqual(rows[0]["ended"], "stop")
        self.assertEqual(rows[0]["text"].split(), words[:2])
        self.assertEqual(rows[1]["text"].split()[0], words[4])

    def test_lines_that_are_no_text_of_the_model_end_a_script(self):
        run = generate("numbers", "--interactive", input=b"5\nfive\n")
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"numbers from 0 to 127", run.stderr)

    def test_on_a_terminal(self):
        terminal = Terminal("numbers", "--interactive", "--length", 1000000)
        terminal.wait_for("> ")
        terminal.type("5 6\n")
        terminal.wait_for(r"5 6\r\n(\d+ ){9}")
        terminal.type("\x03")  # ends the answer
        terminal.wait_for(r"\r\n> ")
        terminal.type("five\n")
        terminal.wait_for("note: the prompt: numbers from 0 to 127")
        terminal.wait_for("> ")
        terminal.type("\x03")  # of nothing
        terminal.wait_for(r"Ctrl-D ends the session\)\r\n> ")
        terminal.type("7\n")
        terminal.wait_for(r"7\r\n(\d+ ){9}")
        terminal.type("\x03")
        terminal.wait_for("> ")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    generate_test.PROGRAM = sys.argv.pop(1)
    unittest.main()
