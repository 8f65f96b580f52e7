"""The examples run, and say what they promise."""
import subprocess
import sys

import pytest

from conftest import ROOT
from test_huggingface import PROGRAM, TEXT

EXAMPLES = ROOT / "examples" / "python"


def run(name, *arguments):
    done = subprocess.run([sys.executable, EXAMPLES / name, *arguments],
                          capture_output=True, text=True, errors="replace",
                          timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_small_gpt_learns():
    *losses, tokens = run("small_gpt.py").splitlines()
    assert float(losses[-1].split()[-2]) < 0.5 < float(losses[0].split()[-2])
    tokens = [int(token) for token in tokens.split()]
    assert tokens == [(tokens[0] + 3 * i) % 16 for i in range(len(tokens))]


def test_long_sequence():
    assert "4,096 tokens" in run("long_sequence.py", "--length", "4096")


@pytest.mark.skipif(not PROGRAM.is_file(), reason="reformer is not built")
def test_fine_tune(tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "text").write_text(TEXT)
    run("fine_tune.py", tmp_path / "model", tmp_path / "text",
        tmp_path / "out", "--make-small", "--steps", "4", "--program", PROGRAM)
    assert (tmp_path / "out" / "theirs" / "model.safetensors").is_file()
