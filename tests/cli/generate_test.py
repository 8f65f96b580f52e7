"""generate_test.py PROGRAM: what `reformer generate` and `reformer bench
generate` print, where, and with which status."""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set below
FOLDER = None
BENCH_KEYS = (
    "bench device dtype batch layers d_model d_ff heads attention rounds "
    "chunk_length local_window train_length position token_s tokens_per_s "
    "read_s captured").split()


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


def tearDownModule():
    FOLDER.cleanup()


def generate(run, *arguments, **settings):
    return reformer("generate", pathlib.Path(FOLDER.name) / run, "--threads",
                    1, *arguments, **settings)


class GenerateTest(unittest.TestCase):
    def test_writes_as_many_bytes_as_asked_for_and_nothing_else(self):
        run = generate("text", "--prompt", "ab", "--length", 60)
        self.assertEqual((run.returncode, len(run.stdout)), (0, 60))
        self.assertRegex(run.stderr.decode(),
                         r"^60 tokens in .* tokens/s; prompt of 2 read in")

    def test_an_untrained_model_writes_bytes_of_every_kind(self):
        texts = [generate("text", "--length", 64, "--seed", seed).stdout
                 for seed in range(10)]
        self.assertTrue(all(len(text) == 64 for text in texts))
        self.assertIn(0, b"".join(texts))

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

    def test_several_prompts_are_continued_as_each_alone(self):
        prompts = ["ab", "", "[a,b] defghijklm"]
        options = ["--length", 40, "--temperature", 0]
        alone = [generate("text", "--prompt", prompt, *options).stdout
                 for prompt in prompts]
        words = [word for prompt in prompts for word in ("--prompt", prompt)]
        run = generate("text", *words, *options)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, b"".join(
            b"--- %d of 3\n%s\n" % (i + 1, text)
            for i, text in enumerate(alone)))
        self.assertIn(b"120 tokens in ", run.stderr)
        self.assertIn(b"3 texts; prompts of up to 16 read in", run.stderr)

    def test_standard_input_is_read_once(self):
        run = generate("text", "--prompt-file", "-", "--prompt-file", "-",
                       input=b"a")
        self.assertEqual((run.returncode, run.stdout), (1, b""))
        self.assertIn(b"standard input can be read only once", run.stderr)

    def test_without_a_length_it_stops_where_the_positions_end(self):
        self.assertEqual(len(generate("text", "--prompt", "abc").stdout), 61)

    def test_too_many_positions_are_refused_before_anything_is_written(self):
        for arguments in (["--length", 65], ["--prompt", "x" * 64],
                          ["--prompt", "x", "--length", 64]):
            run = generate("text", *arguments)
            self.assertEqual((run.returncode, run.stdout), (1, b""))
            self.assertIn(b"this model has 64 positions", run.stderr)

    def test_other_tokens_are_numbers(self):
        run = generate("numbers", "--prompt", "0 5,7", "--length", 9)
        self.assertEqual(run.returncode, 0)
        self.assertRegex(run.stdout.decode(), r"^(\d+ ){9}$")
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
                (2, ["--prompt", "a", "--prompt-file", "b"]),
                (2, ["--temperature", "-1"]), (2, ["--temperature", "warm"]),
                (2, ["--top-p", "1.5"]), (2, ["--top-k", "-1"]),
                (2, ["--length", "0"]), (2, ["--seed", "x"])):
            run = generate("text", *arguments)
            self.assertEqual((run.returncode, run.stdout), (status, b""))
            self.assertRegex(run.stderr.decode(), r"^reformer: .*\n$")

    def test_an_interrupt_ends_it_in_order(self):
        run = subprocess.Popen(
            [PROGRAM, "generate", pathlib.Path(FOLDER.name) / "numbers",
             "--length", "1000000", "--threads", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stdout.read(10)  # streamed: long before the end
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"stopped: ", errors)


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


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
