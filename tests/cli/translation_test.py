"""translation_test.py PROGRAM: tokenizers, bitext and BLEU as a user meets
them: `reformer tokenizer`, `bleu`, `train` on pieces and on sentence pairs."""
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

PROGRAM = None  # set below
WORDS = ("the house is on a hill and its garden Größe straße läuft über den "
         "berg haus").split()
LINES = [" ".join(WORDS[(7 * i + j * (i % 5 + 1)) % len(WORDS)]
                  for j in range(3 + i % 7)) for i in range(400)]


def sets(*settings):
    return [word for setting in settings for word in ("--set", setting)]


TINY = ["--threads", "1", *sets(
    "train.warmup=1", "model.layers=1", "model.d_model=16", "model.d_ff=16",
    "model.heads=2")]
TINY_TEXT = TINY + sets("model.d_head=8", "lsh.chunk_length=8", "train.batch=2",
                        "train.length=32", "train.steps=3")
TINY_PAIRS = TINY + sets("model.encoder_layers=1", "model.vocabulary=330",
                         "train.length=40", "train.batch_tokens=400",
                         "train.evaluate_every=0", "train.schedule=constant")


class TranslationTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def reformer(self, *arguments, status=0, **settings):
        environment = {**os.environ,
                       "XDG_CACHE_HOME": str(self.folder / "caches")}
        run = subprocess.run([os.path.abspath(PROGRAM), *map(str, arguments)],
                             timeout=180, capture_output=True, env=environment,
                             encoding="utf-8", **settings)
        if "built without" in run.stderr:
            self.skipTest(run.stderr)
        self.assertEqual(run.returncode, status, run.stderr)
        return run

    def fails(self, *arguments, **settings):
        """The one sentence that it prints."""
        run = self.reformer(*arguments, status=1, **settings)
        self.assertEqual(run.stdout, "")
        sentence = run.stderr.splitlines()[-1]
        self.assertTrue(sentence.startswith("reformer: "), run.stderr)
        return sentence

    def put(self, name, lines):
        path = self.folder / name
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        return path

    def tokenizer(self):
        path = self.folder / "small.model"
        if not path.exists():
            self.reformer("tokenizer", "train", self.put("lines", LINES),
                          "--out", path, "--vocabulary", 330)
        return path

    def bitext(self):
        return f"{self.put('a.en', LINES)},{self.put('a.de', LINES[::-1])}"

    # --- tokenizer -----------------------------------------------------------

    def test_a_tokenizer_is_made_and_writes_every_line_again(self):
        model = self.tokenizer()
        again = self.folder / "again.model"
        said = self.reformer("tokenizer", "train", self.folder / "lines",
                             "--out", again, "--vocabulary", 330).stdout
        self.assertIn("330 pieces of 400 lines", said)
        self.assertEqual(model.read_bytes(), again.read_bytes())
        lines = "the house\n\n  zwei  Größe\t日本\n</s>\n"
        for pieces in ([], ["--pieces"]):
            tokens = self.reformer("tokenizer", "encode", model, *pieces,
                                   input=lines).stdout
            self.assertEqual(tokens.count("\n"), 4)
            if not pieces:
                self.assertRegex(tokens, r"^[\d \n]*$")
                back = self.reformer("tokenizer", "decode", model,
                                     input=tokens).stdout
                self.assertEqual(back, lines)
            else:
                self.assertEqual(tokens.split("\n")[0], "▁the ▁house")

    def test_mistakes_of_tokenizers_are_one_sentence(self):
        model = self.tokenizer()
        lines = self.folder / "lines"
        self.assertIn("exists already", self.fails(
            "tokenizer", "train", lines, "--out", model))
        self.assertIn("Vocabulary size too high", self.fails(
            "tokenizer", "train", lines, "--out", self.folder / "b.model"))
        self.assertFalse((self.folder / "b.model").exists())
        self.assertIn("lines: a SentencePiece model is required",
                      self.fails("tokenizer", "encode", lines, input=""))
        self.assertIn("no piece of", self.fails(
            "tokenizer", "decode", model, "--pieces", input="▁nowhere\n"))
        self.assertIn("tokens from 0 to 329", self.fails(
            "tokenizer", "decode", model, input="330\n"))

    # --- text ----------------------------------------------------------------

    def train_text(self, out, *more):
        return self.reformer(
            "train", "text", "--data", self.put("text", LINES), "--out", out,
            *TINY_TEXT, "--set", f"task.tokenizer={self.tokenizer()}", *more)

    def test_a_text_of_pieces_needs_only_its_folder_later(self):
        run = self.folder / "run"
        said = self.train_text(run, *sets("train.sample_length=8"))
        self.assertIn("tokens are the 330 pieces of", said.stdout)
        self.assertIn("the model writes", said.stdout)
        self.assertIn("model.vocabulary is 330", said.stderr)
        model = self.tokenizer()
        bytes_ = model.read_bytes()
        model.unlink()
        self.assertEqual((run / "tokenizer.model").read_bytes(), bytes_)
        text = (self.folder / "text").read_bytes()
        row = json.loads(self.reformer("eval", run, "--json").stdout)
        self.assertEqual(row["metric"], "bits per byte")
        # Tokens of the validation split, of which the tokenizer tells.
        exported = self.folder / "exported"
        self.reformer("export", run, "--out", exported, "--type", "float32")
        self.assertEqual((exported / "tokenizer.model").read_bytes(), bytes_)
        config = (exported / "config.json").read_text()
        self.assertNotIn(str(self.folder), config)
        part = text[len(text) * 90 // 100:len(text) * 95 // 100]
        ratio = row["value"] / row["loss"]  # tokens / bytes / ln 2
        self.assertLess(ratio * 0.6931471805599453, 0.5)
        self.assertGreater(len(part), 0)
        for folder in (run, exported):
            made = self.reformer("generate", folder, "--prompt", "the house",
                                 "--length", 5, "--json", "--threads", 1)
            row = json.loads(made.stdout)
            self.assertEqual(row["tokens"], 5)
            self.assertNotIn("▁", row["text"])

    def test_a_text_of_pieces_goes_on_and_is_trained_further(self):
        run = self.folder / "run"
        self.train_text(run)
        self.tokenizer().unlink()
        self.reformer("train", "--resume", "--out", run, "--threads", 1,
                      "--set", "train.steps=5")
        self.assertTrue((run / "step-00000005/tokenizer.model").exists())
        self.reformer("train", "--init", run, "--out", self.folder / "tuned",
                      "--data", self.folder / "text", "--threads", 1)
        self.assertEqual((self.folder / "tuned/tokenizer.model").read_bytes(),
                         (run / "tokenizer.model").read_bytes())
        (run / "step-00000005/tokenizer.model").write_bytes(b"other")
        self.assertIn("tokenizer.model: is not the file that state.json",
                      self.fails("generate", run / "step-00000005"))

    # --- bitext --------------------------------------------------------------

    def train_pairs(self, out, *more, data=None):
        return self.reformer("train", "multi30k-en-de", "--data",
                             data or self.bitext(), "--out", out, *TINY_PAIRS,
                             *more)

    @staticmethod
    def parameters(folder):
        return hashlib.sha256(
            (folder / "model.safetensors").read_bytes()).hexdigest()

    def test_pairs_are_trained_on_and_resumed_within_an_epoch(self):
        whole, parts = self.folder / "whole", self.folder / "parts"
        said = self.train_pairs(whole, *sets("train.steps=7"))
        self.assertIn("training 360, validation 20, test 20 pairs",
                      said.stdout)
        self.assertIn("pieces of a tokenizer made of them", said.stdout)
        self.assertRegex(said.stdout, r"validation perplexity \d")
        self.train_pairs(parts, *sets("train.steps=3"))
        self.reformer("train", "--resume", "--out", parts, "--threads", 1,
                      "--set", "train.steps=7")
        self.assertEqual(self.parameters(whole / "step-00000007"),
                         self.parameters(parts / "step-00000007"))
        self.assertIn("translates", self.fails("generate", whole))
        self.assertIn("--by-position",
                      self.fails("eval", whole, "--by-position"))

    def test_an_archive_of_bitext_is_read_as_it_is(self):
        path = self.folder / "multi.tar.xz"
        with tarfile.open(path, "w:xz") as archive:
            for name, lines in (("train.en", LINES), ("train.de", LINES),
                                ("val.en", LINES[:9]), ("val.de", LINES[:9]),
                                ("test_2016_flickr.en", ["", "the house"]),
                                ("test_2016_flickr.de", ["haus", "haus"])):
                content = "".join(line + "\n" for line in lines).encode()
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        said = self.train_pairs(self.folder / "run", *sets("train.steps=1"),
                                data=path)
        self.assertIn("training 400, validation 9, test 1 pairs", said.stdout)
        self.assertIn("test: of 2 pairs are left out: 1 with a side that is "
                      "empty or not UTF-8", said.stderr)

    def test_mistakes_of_bitext_are_one_sentence(self):
        run = self.folder / "run"
        short = self.put("short.de", LINES[:-1])
        english = self.put("b.en", LINES)
        for data, part in (
                (f"{english},{short}", "b.en has 400 lines and short.de has "
                                       "399"),
                (self.folder / "none", "none.en is there"),
                (english, "line 1 has no tab")):
            sentence = self.fails("train", "multi30k-en-de", "--data", data,
                                  "--out", run, *TINY_PAIRS)
            self.assertIn(part, sentence)
            self.assertFalse(run.exists())

    def test_the_toy_needs_no_data(self):
        run = self.folder / "toy"
        self.reformer("train", "translation-toy", "--out", run, "--threads", 1,
                      *sets("train.steps=2", "train.warmup=1"))
        self.reformer("eval", run, "--threads", 1)
        self.assertFalse((run / "tokenizer.model").exists())

    # --- bleu ----------------------------------------------------------------

    def test_bleu_prints_what_sacrebleu_prints(self):
        hypothesis = self.put("h", ["The cat sat on the mat.", "Und nun?"])
        reference = self.put("r", ["The cat is on the mat.", "Und jetzt?"])
        line = self.reformer("bleu", "--reference", reference,
                             hypothesis).stdout
        self.assertRegex(line, re.escape(
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 "
            "= ") + r"\d+\.\d \d+\.\d/")
        row = json.loads(self.reformer(
            "bleu", "--reference", reference, "--tokenize", "intl",
            "--lowercase", "--json", "-",
            input=hypothesis.read_text()).stdout)
        self.assertEqual(row["signature"], "nrefs:1|case:lc|eff:no|tok:intl|"
                                           "smooth:exp|version:2.6.0")
        self.assertIn("h has 2 lines and", self.fails(
            "bleu", "--reference", self.put("one", ["x"]), hypothesis))
        bad = self.folder / "bad"
        bad.write_bytes(b"a\n\xff\n")
        self.assertIn("bad: text in UTF-8 is required, line 2 is not",
                      self.fails("bleu", "--reference", reference, bad))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
