#!/usr/bin/env python3
"""Fine-tunes a Hugging Face Reformer on a text of yours and writes it back for
transformers.

    python3 examples/python/fine_tune.py MODEL TEXT OUT [--program PATH]

MODEL is a folder that transformers saved, such as a download of
google/reformer-enwik8; without a download, `--make-small` writes one with random
weights there first. The work is done by the program `reformer`, with its own
attention, which is fast; OUT/theirs is what
ReformerModelWithLMHead.from_pretrained loads. There transformers' attention reads
the same parameters, another function: where the result is for transformers,
leave `--attention ours` out.
"""
import argparse
import pathlib
import subprocess


def make_small(folder):
    import transformers
    config = transformers.ReformerConfig(
        attn_layers=["local", "lsh"], hidden_size=64, feed_forward_size=128,
        num_attention_heads=2, attention_head_size=32, num_buckets=16,
        num_hashes=2, axial_pos_shape=[16, 32], axial_pos_embds_dim=[16, 48],
        max_position_embeddings=512, vocab_size=258, is_decoder=True)
    transformers.ReformerModelWithLMHead(config).save_pretrained(folder)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path,
                        default=pathlib.Path("build/reformer"))
    parser.add_argument("--make-small", action="store_true")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--length", type=int, default=256)
    given = parser.parse_args()
    if not given.program.is_file():
        parser.error(f"{given.program}: no such program; build it with `make`")
    if given.make_small:
        make_small(given.model)

    def reformer(*arguments):
        print("$ reformer", *arguments, flush=True)
        subprocess.run([given.program, *map(str, arguments)], check=True)

    out = given.out
    reformer("import", given.model, "--out", out / "imported", "--attention",
             "ours", "--length", given.length)
    reformer("train", "--init", out / "imported", "--data", given.text,
             "--out", out / "run", "--set", f"train.steps={given.steps}",
             "--set", "train.learning_rate=0.0003")
    reformer("eval", out / "run")
    reformer("generate", out / "run", "--prompt", "The ", "--length", 100)
    reformer("export", out / "run", "--format", "huggingface", "--out",
             out / "theirs")


if __name__ == "__main__":
    main()
