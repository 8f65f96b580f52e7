"""generate_test.py PROGRAM: what `reformer generate` and `reformer bench
generate` print, where, and with which status."""
import codecs
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below
FOLDER = None
CHARACTERS = rb"[\xC3-\xDF][\x80-\xBF]|[\xE1-\xEC][\x80-\xBF]{2}"  # most
KEYS = ["prompt", "text", "tokens", "ended", "seconds", "tokens_per_s", "seed"]
BENCH_KEYS = (
    "bench device dtype batch layers d_model d_ff heads attention rounds "
    "chunk_length local_window train_length position token_s "
    "mean_token_s tokens_per_s read_s captured").split()


def reformer(*arguments, **settings):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          timeout=120, **settings)


def train(config, out, *settings):
    sets = [word for setting in (
        "train.steps=3", "train.warmup=1", "train.batch=1", "model.layers=2",
        "model.d_model=16", "model.d_ff=16", "model.heads=2", "model.d_head=8",
        "lsh.chunk_length=8", *settings) for word in ("--set", setting)]
    run = reformer("train", config, "--out", out, "--threads", 1, *sets)
    assert run.returncode == 0, run.stderr.decode()


def setUpModule():
    global FOLDER
    FOLDER = tempfile.TemporaryDirectory()
    folder = pathlib.Path(FOLDER.name)
    data = folder / "data"
    data.write_bytes(bytes(range(256)) * 40)
    train("text", folder / "text", f"task.data={data}", "train.length=64",
          "model.positions=learned")
    train("duplication", folder / "numbers", "train.length=64",
          "model.positions=sinusoid", "lsh.window=chunk")


def cut_character(text):
    """The bytes at its end that more would make a character of."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    decoder.decode(text)
    return decoder.getstate()[0]


def ends_in_a_cut_character(text):
    return cut_character(text) != b""


def tearDownModule():
    FOLDER.cleanup()


def generate(run, *arguments, **settings):
    return reformer("generate", pathlib.Path(FOLDER.name) / run, "--threads",
                    1, *arguments, **settings)


class GenerateTest(unittest.TestCase):
    def test_writes_as_many_tokens_as_asked_for_and_ends_the_line(self):
        run = generate("text", "--prompt", "ab", "--length", 60)
        self.assertEqual(run.returncode, 0)
        self.assertIn(len(run.stdout), (58, 59, 60, 61))  # a cut character
        self.assertTrue(run.stdout.endswith(b"\n"))
        self.assertRegex(run.stderr.decode(),
                         r"^60 tokens in .* tokens/s; prompt of 2 read in")

    def test_an_untrained_model_writes_bytes_of_every_kind(self):
        texts = [generate("text", "--length", 64, "--seed", seed).stdout
                 for seed in range(10)]
        self.assertTrue(all(62 <= len(text) <= 65 for text in texts))
        self.assertIn(0, b"".join(texts))

    def test_a_character_that_its_end_would_cut_is_dropped(self):
        text = generate("text", "--length", 400).stdout
        # Behind one that the next byte broke, what is left looks cut, too.
        cut = [n for n in range(1, 390) if ends_in_a_cut_character(text[:n])
               and not ends_in_a_cut_character(
                   text[:n - len(cut_character(text[:n]))])]
        for n in cut[:3]:
            written = generate("text", "--length", n).stdout[:-1]
            self.assertFalse(ends_in_a_cut_character(written))
            self.assertEqual(written, text[:len(written)])
            self.assertIn(len(written), (n - 1, n - 2, n - 3))
        self.assertGreater(len(cut), 2)

    def test_whole_characters_are_written_while_it_goes_on(self):
        # Such a pipe keeps apart what was written apart, however late it is
        # read.
        reading, writing = os.pipe2(os.O_DIRECT)
        run = subprocess.Popen(
            [PROGRAM, "generate", pathlib.Path(FOLDER.name) / "text",
             "--length", "1200", "--threads", "1"],
            stdout=writing, stderr=subprocess.DEVNULL)
        os.close(writing)
        text = b""
        ends = set()
        while piece := os.read(reading, 4096):
            text += piece
            ends.add(len(text))
        os.close(reading)
        self.assertEqual(run.wait(), 0)
        self.assertIn(len(text), range(1197, 1202))
        self.assertGreater(len(ends), 500)
        within = {at for character in re.finditer(CHARACTERS, text)
                  for at in range(character.start() + 1, character.end())}
        self.assertGreater(len(within), 10)
        self.assertEqual(ends & within, set())

    def test_a_text_that_ends_its_line_gets_no_second_end(self):
        text = generate("text", "--length", 2000).stdout
        at = text.index(b"\n")
        self.assertLess(at, 1990)
        run = generate("text", "--length", at + 1)
        self.assertEqual(run.stdout, text[:at + 1])

    def test_the_same_seed_writes_the_same_text(self):
        texts = [generate("text", "--seed", seed).stdout for seed in (1, 1, 2)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_a_prompt_may_come_from_a_file_or_from_standard_input(self):
        file = pathlib.Path(FOLDER.name) / "prompt"
        file.write_bytes(b"a\0\xff")
        by_file = generate("text", "--prompt-file", file).stdout
        by_input = generate("text", "--prompt-file", "-", input=b"a\0\xff")
        self.assertEqual(by_file, by_input.stdout)
        self.assertNotEqual(by_file, generate("text", "--prompt", "a").stdout)

    def test_the_prompt_is_shown_where_it_is_asked_for(self):
        options = ["text", "--prompt", "abc", "--length", 20]
        text = generate(*options).stdout
        self.assertEqual(generate(*options, "--hide-prompt").stdout, text)
        self.assertEqual(generate(*options, "--show-prompt").stdout,
                         b"abc" + text)

    def test_several_prompts_are_continued_as_each_alone(self):
        prompts = ["1 2", "", "3 1 4 1 5 9 2 6"]
        options = ["--length", 40, "--temperature", 0]
        alone = [generate("numbers", "--prompt", prompt, *options).stdout
                 for prompt in prompts]
        words = [word for prompt in prompts for word in ("--prompt", prompt)]
        run = generate("numbers", *words, *options)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, b"".join(
            b"--- %d of 3\n%s" % (i + 1, text)
            for i, text in enumerate(alone)))
        self.assertIn(b"120 tokens in ", run.stderr)
        self.assertIn(b"3 texts; prompts of up to 8 read in", run.stderr)

    def test_standard_input_is_read_once(self):
        run = generate("text", "--prompt-file", "-", "--prompt-file", "-",
                       input=b"a")
        self.assertEqual((run.returncode, run.stdout), (1, b""))
        self.assertIn(b"standard input can be read only once", run.stderr)

    def test_where_positions_end_the_window_moves_on(self):
        before = generate("text", "--prompt", "abc", "--length", 61)
        self.assertNotIn(b"note", before.stderr)
        after = generate("text", "--prompt", "abc", "--length", 300)
        self.assertEqual(after.returncode, 0)
        self.assertEqual(after.stderr.count(b"note: this model has 64 "), 1)
        self.assertIn(len(after.stdout), range(297, 302))
        self.assertTrue(after.stdout.startswith(before.stdout[:-1]))
        long = generate("text", "--prompt", "x" * 100, "--length", 5)
        self.assertEqual(long.returncode, 0)
        self.assertIn(b"its last 32 tokens are read anew", long.stderr)

    def test_other_tokens_are_numbers(self):
        run = generate("numbers", "--prompt", "0 5,7", "--length", 9)
        self.assertEqual(run.returncode, 0)
        self.assertRegex(run.stdout.decode(), r"^(\d+ ){9}\n$")
        for prompt in "0 128", "-1", "5x", "five":
            run = generate("numbers", "--prompt=" + prompt)
            self.assertEqual((run.returncode, run.stdout), (1, b""))
            self.assertIn(b"numbers from 0 to 127", run.stderr)

    def test_chunk_windows_are_mentioned(self):
        note = b"generating with trailing windows"
        self.assertIn(note, generate("numbers", "--length", 1).stderr)
        self.assertNotIn(note, generate("text", "--length", 1).stderr)

    def test_mistakes_are_one_sentence(self):
        for status, arguments in (
                (1, ["--prompt-file", "/nowhere"]), (1, ["--top-p", "0"]),
                (1, ["--repetition-penalty", "0"]),
                (1, ["--interactive", "--prompt-file", "-"]),
                (1, ["--interactive", "--prompt", "a", "--prompt", "b"]),
                (2, ["--prompt", "a", "--prompt-file", "b"]),
                (2, ["--temperature", "-1"]), (2, ["--temperature", "warm"]),
                (2, ["--top-p", "1.5"]), (2, ["--top-k", "-1"]),
                (2, ["--length", "0"]), (2, ["--seed", "x"]),
                (2, ["--stop", ""]), (2, ["--repetition-penalty", "-1"]),
                (2, ["--repetition-window", "x"])):
            run = generate("text", *arguments, input=b"")
            self.assertEqual((run.returncode, run.stdout), (status, b""))
            self.assertRegex(run.stderr.decode(), r"^reformer: .*\n$")


class StopTest(unittest.TestCase):
    def test_texts_end_before_the_first_stop_string(self):
        text = generate("numbers", "--length", 60).stdout.decode()
        words = text.split()
        stop = " ".join(words[20:23]) + " "  # three tokens
        expected = text[:text.index(stop)]
        for stops in (["--stop", stop], ["--stop", "never", "--stop", stop]):
            run = generate("numbers", "--length", 60, *stops)
            self.assertEqual(run.returncode, 0)
            self.assertEqual(run.stdout.decode(), expected + "\n")
        row = json.loads(generate("numbers", "--json", "--stop", stop).stdout)
        self.assertEqual(row["ended"], "stop")
        self.assertEqual((row["text"], row["stop"]), (expected, stop))
        self.assertEqual(row["tokens"], len(expected.split()) + 3)

    def test_what_only_began_as_a_stop_string_is_written(self):
        text = generate("numbers", "--length", 30).stdout.decode()[:-1]
        run = generate("numbers", "--length", 30, "--stop", text[-9:] + "no")
        self.assertEqual(run.stdout.decode(), text + "\n")

    def test_one_of_several_texts_may_end_before_the_others(self):
        prompts = ["--prompt", "1", "--prompt", "2"]
        options = ["numbers", *prompts, "--length", 30, "--json"]
        rows = [json.loads(line)["text"]
                for line in generate(*options).stdout.splitlines()]
        stop = " ".join(rows[0].split()[5:9])
        stopped = [json.loads(line) for line in
                   generate(*options, "--stop", stop).stdout.splitlines()]
        self.assertEqual(stopped[0]["text"], rows[0][:rows[0].index(stop)])
        self.assertEqual([row["ended"] for row in stopped],
                         ["stop", "length"])
        self.assertEqual(stopped[1]["text"], rows[1])


class JsonTest(unittest.TestCase):
    def test_every_prompt_is_a_line_with_exactly_these_keys(self):
        run = generate("numbers", "--json", "--prompt", "1 2", "--prompt", "3",
                       "--length", 20, "--seed", 7)
        self.assertEqual(run.returncode, 0, run.stderr)
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual([row["prompt"] for row in rows], ["1 2", "3"])
        for row in rows:
            self.assertEqual(list(row), KEYS)
            self.assertEqual((row["tokens"], row["ended"], row["seed"]),
                             (20, "length", 7))
            self.assertRegex(row["text"], r"^(\d+ ){20}$")
            self.assertGreater(row["seconds"], 0)
            self.assertAlmostEqual(row["tokens_per_s"], 20 / row["seconds"])

    def test_bytes_that_are_no_text_are_replaced(self):
        run = generate("text", "--json", "--length", 60, "--seed", 3)
        self.assertIn("\ufffd", json.loads(run.stdout)["text"])


class RepetitionTest(unittest.TestCase):
    def test_a_penalty_makes_tokens_repeat_less(self):
        def different(*options):
            return len(set(generate("numbers", "--length", 60, *options,
                                    "--temperature", 0.2).stdout.split()))
        penalised = different("--repetition-penalty", 5)
        self.assertGreater(penalised, different())
        self.assertNotEqual(penalised, different(
            "--repetition-penalty", 5, "--repetition-window", 1))


class BenchTest(unittest.TestCase):
    def test_every_position_is_a_line_with_exactly_these_keys(self):
        run = reformer("bench", "generate", "--json", "--position", "1,40",
                       "--tokens", 2, "--layers", 2, "--d-model", 16, "--d-ff",
                       16, "--heads", 2, "--length", 64, "--threads", 1)
        self.assertEqual(run.returncode, 0, run.stderr)
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual([row["position"] for row in rows], [1, 40])
        for row in rows:
            self.assertEqual(list(row), BENCH_KEYS)
            self.assertGreater(row["token_s"], 0)

    def test_a_config_says_all_of_the_model(self):
        options = ("bench", "generate", "--json", "--position", "9",
                   "--tokens", 1, "--threads", 1, "--config", "duplication")
        run = reformer(*options, "--set", "lsh.rounds=3")
        self.assertEqual(run.returncode, 0, run.stderr)
        row = json.loads(run.stdout)
        self.assertEqual((row["d_model"], row["rounds"]), (256, 3))
        refused = reformer(*options, "--layers", 2)
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn(b"--layers", refused.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
