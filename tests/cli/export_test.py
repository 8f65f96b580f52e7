"""export_test.py PROGRAM: what `reformer export` says."""
import json
import pathlib
import tempfile
import unittest

import train_support
from train_support import BRIEF, reformer


class ToHuggingfaceTest(unittest.TestCase):
    """Runs of bytes that Hugging Face's transformers could load."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        (cls.root / "text").write_bytes(bytes(range(256)) * 20)
        for name, attention, settings in (
                ("ours", "local_separate_qk,lsh", []),
                ("theirs", "local_separate_qk,lsh_huggingface",
                 ["--set", "model.bucket_factors=4"])):
            run = train_support.train(
                cls.root / name, "--data", cls.root / "text", *BRIEF,
                "--set", f"model.attention={attention}", *settings,
                "--set", "task.byte_offset=2", "--set", "model.vocabulary=258",
                "--set", "model.positions=learned",
                "--set", "model.successor_fraction=0",
                "--set", "model.short_convolution=0",
                "--set", "model.activation=gelu",
                "--set", "lsh.hashed_heads=all",
                "--set", "lsh.more_rounds=union",
                "--set", "model.block=reversible",
                "--set", "lsh.local_window=0", config="text")
            assert run.returncode == 0, run.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def export(self, name, *arguments):
        out = self.root / f"{name}-{'-'.join(arguments) or 'as-it-is'}"
        run = reformer("export", self.root / name, "--out", out, "--format",
                       "huggingface", *arguments)
        return run, out

    def test_says_that_transformers_computes_another_attention(self):
        run, out = self.export("ours")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("lsh_huggingface", run.stderr)
        config = json.loads((out / "config.json").read_text())
        self.assertEqual(config["attn_layers"], ["local", "lsh"])
        run, _ = self.export("theirs")
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_refuses_what_that_format_has_not(self):
        for arguments in (["--type", "bfloat16"], ["--file-size", "5"]):
            run, out = self.export("theirs", *arguments)
            self.assertEqual(run.returncode, 1)
            self.assertIn(f"{arguments[0]}: --format huggingface is always",
                          run.stderr)
            self.assertFalse(out.exists())


if __name__ == "__main__":
    train_support.main()
