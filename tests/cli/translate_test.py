"""translate_test.py PROGRAM: what `reformer translate`, `bench translate` and
the BLEU of `eval` print, where, and with which status."""
import json
import os
import pathlib
import pty
import select
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below
FOLDER = None
SETTINGS = {
    "task": {"name": "translation-toy", "alphabet": 12},
    "model": {"layers": 1, "encoder_layers": 1, "d_model": 16, "d_ff": 32,
              "heads": 2, "d_head": 8, "attention": "full",
              "positions": "sinusoid"},
    "train": {"length": 8, "batch": 8, "steps": 30, "warmup": 5,
              "checkpoint_every": 10, "keep": 2, "evaluate_every": 30}}


def reformer(*arguments, **settings):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          timeout=120, **settings)


def path(name):
    return pathlib.Path(FOLDER.name) / name


def setUpModule():
    global FOLDER
    FOLDER = tempfile.TemporaryDirectory()
    path("toy.json").write_text(json.dumps(SETTINGS))
    run = reformer("train", path("toy.json"), "--out", path("run"), "--threads",
                   1)
    assert run.returncode == 0, run.stderr.decode()


def tearDownModule():
    FOLDER.cleanup()


def translate(text, *arguments):
    return reformer("translate", path("run"), "--threads", 1, *arguments,
                    input=text.encode())


class Translate(unittest.TestCase):
    def lines(self, text, *arguments):
        run = translate(text, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        return run.stdout.decode().split("\n")

    def test_a_line_for_each_line_in_their_order(self):
        text = "baba dama\n\n  \nfafe\nbaba dama fafe gape hahi\n"
        found = self.lines(text)
        self.assertEqual(len(found), 6)
        self.assertEqual(found[1:3] + found[5:], ["", "", ""])
        # Alone, and in any batch, a line is what it is among others.
        for i in (0, 3, 4):
            self.assertEqual(self.lines(text.split("\n")[i] + "\n")[0],
                             found[i])
        for batch in (1, 2, 3):
            self.assertEqual(self.lines(text, "--batch", batch), found)

    def test_the_last_line_needs_no_end_and_ends_may_be_windows(self):
        found = self.lines("baba dama\nfafe")
        self.assertEqual(len(found), 3)
        self.assertEqual(self.lines("baba dama\r\nfafe\r\n"), found)
        self.assertEqual(self.lines(""), [""])

    def test_a_file_is_as_standard_input(self):
        text = "baba dama\n\nfafe gape\n" * 20
        path("source").write_text(text)
        found = self.lines(text)
        self.assertEqual(len(found), 61)
        run = reformer("translate", path("run"), path("source"))
        self.assertEqual(run.returncode, 0)
        self.assertEqual(run.stdout.decode().split("\n"), found)
        self.assertIn("translating lines: ", run.stderr.decode())
        self.assertEqual(self.lines(text, "-"), found)

    def test_n_best_have_scores_that_fall(self):
        found = self.lines("baba dama\n\nfafe gape\n", "--n-best", 3)
        rows = [line.split("\t") for line in found[:-1]]
        self.assertEqual([row[0] for row in rows],
                         ["1"] * 3 + ["2"] + ["3"] * 3)
        scores = [float(row[1]) for row in rows]
        self.assertEqual(scores[:3], sorted(scores[:3], reverse=True))
        self.assertEqual(scores[4:], sorted(scores[4:], reverse=True))
        best = self.lines("baba dama\n\nfafe gape\n")
        self.assertEqual([rows[0][2], rows[3][2], rows[4][2]], best[:3])

    def test_json_says_all_of_it(self):
        found = self.lines("baba dama\n\n", "--json", "--n-best", 2)
        first, second = map(json.loads, found[:2])
        self.assertEqual([first["line"], first["source"]], [1, "baba dama"])
        self.assertEqual(len(first["translations"]), 2)
        for translation in first["translations"]:
            self.assertEqual(set(translation), {"text", "score",
                                                "log_probability", "tokens"})
            penalty = ((5 + translation["tokens"] + 1) / 6) ** 0.6
            self.assertAlmostEqual(
                translation["log_probability"] / penalty, translation["score"])
        self.assertEqual(second["translations"][0]["text"], "")

    def test_sampling_is_a_function_of_the_seed(self):
        text = "baba dama fafe gape\n" * 5
        drawn = self.lines(text, "--sample", "--seed", 3)
        self.assertEqual(self.lines(text, "--sample", "--seed", 3), drawn)
        self.assertNotEqual(self.lines(text, "--sample", "--seed", 4), drawn)
        self.assertGreater(len(set(drawn[:5])), 1)  # each line its own
        self.assertEqual(self.lines(text, "--sample", "--temperature", 0),
                         self.lines(text, "--beam", 1))

    def test_a_line_is_answered_before_the_next_one_comes(self):
        run = subprocess.Popen([PROGRAM, "translate", path("run")],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for line in (b"baba dama\n", b"\n", b"fafe gape baba\n"):
            run.stdin.write(line)
            run.stdin.flush()
            ready, _, _ = select.select([run.stdout], [], [], 60)
            self.assertTrue(ready)
            self.assertTrue(os.read(run.stdout.fileno(), 1000).endswith(b"\n"))
        run.stdin.close()
        self.assertEqual(run.wait(timeout=60), 0)
        run.stdout.close()

    def test_averages_and_exports_translate_too(self):
        for command, name in (["average", "mean"], ["export", "export"]):
            more = ["--last", 2] if command == "average" else []
            run = reformer(command, path("run"), *more, "--out", path(name))
            self.assertEqual(run.returncode, 0, run.stderr.decode())
            run = reformer("translate", path(name), input=b"baba dama\n")
            self.assertEqual(run.returncode, 0, run.stderr.decode())
            self.assertEqual(run.stdout.count(b"\n"), 1)

    def refused(self, *arguments):
        run = reformer("translate", *arguments, input=b"baba\n")
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(run.stdout, b"")
        self.assertEqual(run.stderr.count(b"\n"), 1, run.stderr.decode())
        return run.stderr.decode()

    def test_what_cannot_be_is_one_sentence(self):
        self.assertIn("no such folder", self.refused(path("none")))
        self.assertIn("cannot read", self.refused(path("run"), path("none")))
        self.assertIn("at most the beam, 2",
                      self.refused(path("run"), "--beam", 2, "--n-best", 3))
        self.assertIn("--sample",
                      self.refused(path("run"), "--temperature", 2))
        self.assertIn("--n-best: with --sample",
                      self.refused(path("run"), "--sample", "--n-best", 2))
        sets = [word for setting in (
            "train.steps=1", "train.length=64", "model.layers=1",
            "model.d_model=16", "model.d_ff=16", "model.heads=2",
            "model.d_head=8", "lsh.chunk_length=8", "train.batch=1")
            for word in ("--set", setting)]
        run = reformer("train", "duplication", "--out", path("lm"), *sets)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        self.assertIn("is a language model", self.refused(path("lm")))


class Terminal(unittest.TestCase):
    def test_lines_are_asked_for_and_answered_one_by_one(self):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminals here: {error}")
        run = subprocess.Popen([PROGRAM, "translate", path("run")],
                               stdin=theirs, stdout=theirs,
                               stderr=subprocess.DEVNULL)
        os.close(theirs)

        def until(text):
            seen = b""
            while text not in seen:
                ready, _, _ = select.select([ours], [], [], 60)
                self.assertTrue(ready, seen)
                seen += os.read(ours, 1000)
            return seen

        until(b"> ")
        os.write(ours, b"baba dama\n")
        self.assertEqual(until(b"\n> ").count(b"\n"), 2)  # the echo, the answer
        os.write(ours, b"\x04")
        self.assertEqual(run.wait(timeout=60), 0)
        os.close(ours)


class Eval(unittest.TestCase):
    def test_bleu_stands_beside_the_loss(self):
        run = reformer("eval", path("run"), "--json", "--beam", 2)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        row = json.loads(run.stdout)
        self.assertGreater(row["loss"], 0)
        self.assertTrue(0 <= row["bleu"] <= 100)
        self.assertIn("tok:13a", row["bleu_signature"])
        self.assertIn("BLEU|nrefs:1|case:mixed", run.stderr.decode())
        for more in (["--beam", 0], ["--batches", 1]):
            run = reformer("eval", path("run"), "--json", *more)
            self.assertNotIn("bleu", json.loads(run.stdout))


class Bench(unittest.TestCase):
    def test_counts_target_tokens(self):
        run = reformer("bench", "translate", "--layers", 1, "--encoder-layers",
                       1, "--d-model", 16, "--d-ff", 16, "--heads", 2,
                       "--vocabulary", 100, "--batch", 3, "--tokens", 5,
                       "--repeats", 1, "--json", "--threads", 1)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        row = json.loads(run.stdout)
        self.assertEqual(row["bench"], "translate")
        self.assertAlmostEqual(row["tokens_per_s"], 15 / row["seconds"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
