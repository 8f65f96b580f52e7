"""`reformer bleu` beside Python's sacreBLEU: every printed digit is the same.

    bleu_test.py PROGRAM

On newstest2013 and 2014 where REFORMER_DATA, or shared/data beside the
repository, has a folder newstest of them; and on lines of any characters. Ends
with 77, which skips it, where sacreBLEU is not installed.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata
import unittest

try:
    import regex
    import sacrebleu
    from sacrebleu.metrics import BLEU
except ImportError as missing:
    print(f"skipped: {missing}; pip install sacrebleu", file=sys.stderr)
    sys.exit(77)

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "build/reformer"
PROJECT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("REFORMER_DATA",
                                   PROJECT.parent / "shared/data"))
DIGITS = 12
VARIANTS = [(tokenize, lowercase) for tokenize in ("13a", "intl")
            for lowercase in (False, True)]
# What the rules are about, many times more often than by chance.
TELLING = ("ΑΣς Σσ.,-0123٣½…„“«»€$+<>&'`~ \u00a0\u2028\u0085\x1c\x1fİIıßẞ"
           "&quot;&amp;&lt;&gt;<skipped>")


def assigned(point):
    """Of a character both tables know: newer ones differ by version."""
    return unicodedata.category(chr(point)) not in ("Cn", "Cs")


def theirs(hypotheses, references, tokenize, lowercase):
    bleu = BLEU(tokenize=tokenize, lowercase=lowercase)
    score = bleu.corpus_score([line.rstrip() for line in hypotheses],
                              [[line.rstrip() for line in references]])
    signature = bleu.get_signature().format()
    version = signature.rsplit(":", 1)[1]
    return score.format(width=DIGITS, signature=signature).replace(
        f"version:{version} ", "version:2.6.0 ")


class Bleu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, lines):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        return path

    def ours(self, hypotheses, references, tokenize, lowercase):
        command = [PROGRAM, "bleu", self.file("hypotheses", hypotheses),
                   "--reference", self.file("references", references),
                   "--tokenize", tokenize, "--width", str(DIGITS)]
        if lowercase:
            command.append("--lowercase")
        return subprocess.run(command, check=True, capture_output=True,
                              encoding="utf-8").stdout.rstrip("\n")

    def compare(self, hypotheses, references):
        for variant in VARIANTS:
            self.assertEqual(self.ours(hypotheses, references, *variant),
                             theirs(hypotheses, references, *variant),
                             (hypotheses[:9], references[:9]))

    def test_is_the_same_on_newstest(self):
        files = sorted((DATA / "newstest").glob("newstest201?.??"))
        if not files:
            self.skipTest(f"{DATA}/newstest is not there")
        chance = random.Random(1)
        for file in files:
            references = file.read_text(encoding="utf-8").split("\n")[:-1]
            hypotheses = []
            for line in references:
                words = [chance.choice([word.upper(), word[::-1], ""])
                         if chance.random() < 0.2 else word
                         for word in line.split(" ")]
                if chance.random() < 0.3:
                    chance.shuffle(words)
                hypotheses.append(" ".join(words))
            self.compare(hypotheses, references)

    def test_is_the_same_on_any_characters(self):
        chance = random.Random(2)
        points = [p for p in range(32, 0x110000) if assigned(p)]
        hypotheses, references = [], []
        for _ in range(1000):
            line = "".join(
                chance.choice(TELLING) if chance.random() < 0.6
                else chr(chance.choice(points if chance.random() < 0.3
                                       else range(32, 600)))
                for _ in range(chance.choice([0, 1, 2, 5, 30])))
            references.append(line)
            hypotheses.append("".join(c if chance.random() < 0.9 else "x"
                                      for c in line))
        self.compare(hypotheses, references)
        for at in range(0, 12, 3):  # few lines have few n-grams
            self.compare(hypotheses[at:at + 3], references[at:at + 3])

    def test_every_character_is_of_its_class(self):
        """A line for each of the classes that tokens depend on, and others."""
        telling = regex.compile(r"\p{P}|\p{S}|\p{N}")
        points = [p for p in range(32, 0x110000)
                  if assigned(p) and not chr(p).isspace() and
                  (telling.match(chr(p)) or p % 40 == 0)]
        references = [f"a b c x{chr(p)}y 1{chr(p)}2" for p in points]
        hypotheses = [f"a b c x {chr(p)} y 1 {chr(p)} 2" for p in points]
        self.assertEqual(
            self.ours(hypotheses, references, "intl", True),
            theirs(hypotheses, references, "intl", True))
        self.assertGreater(
            sum(bool(telling.match(chr(p))) for p in points), 8000)


if __name__ == "__main__":
    print(f"sacreBLEU {sacrebleu.__version__}", file=sys.stderr)
    unittest.main()
