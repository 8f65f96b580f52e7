"""Models of Hugging Face's configurations, random weights, beside transformers.

Needs REFORMER_BUILD: the folder of the program `reformer` and of
tests/huggingface_logits (`make python-test` builds both).
"""
import json
import math
import os
import pathlib
import subprocess

import pytest
import torch

from conftest import ROOT

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

BUILD = pathlib.Path(os.environ.get("REFORMER_BUILD", ROOT / "build"))
PROGRAM, LOGITS = BUILD / "reformer", BUILD / "tests" / "huggingface_logits"

pytestmark = pytest.mark.skipif(
    not (PROGRAM.is_file() and LOGITS.is_file()),
    reason="build/reformer and build/tests/huggingface_logits are not built")

COMMON = dict(is_decoder=True, hidden_act="relu", layer_norm_eps=1e-12,
              pad_token_id=0, eos_token_id=2, hidden_dropout_prob=0.0,
              lsh_attention_probs_dropout_prob=0.0,
              local_attention_probs_dropout_prob=0.0,
              tie_word_embeddings=False, axial_pos_embds=True)
CONFIGS = {
    "crime": dict(
        attn_layers=["local", "lsh"] * 3, hidden_size=256,
        feed_forward_size=512, num_attention_heads=2, attention_head_size=64,
        local_attn_chunk_length=64, lsh_attn_chunk_length=64,
        num_buckets=[64, 128], num_hashes=1, axial_pos_shape=[512, 1024],
        axial_pos_embds_dim=[64, 192], vocab_size=320,
        max_position_embeddings=524288),
    "enwik8": dict(
        attn_layers=["local", "local", "lsh", "local"] * 3, hidden_size=1024,
        feed_forward_size=4096, num_attention_heads=8, attention_head_size=128,
        local_attn_chunk_length=128, lsh_attn_chunk_length=256,
        num_buckets=512, num_hashes=4, axial_pos_shape=[128, 512],
        axial_pos_embds_dim=[256, 768], vocab_size=258,
        max_position_embeddings=65536),
}
# Versions from 5.0 on have the bias of the head and do not add it.
ADDS_HEAD_BIAS = int(transformers.__version__.split(".")[0]) < 5
PARAMETERS = {"crime": 2_748_224, "enwik8": 149_182_722}
TOLERANCE = 1e-4


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], text=True,
                          capture_output=True, timeout=600, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make(name, **changed):
    torch.manual_seed(1)
    config = transformers.ReformerConfig(**{**COMMON, **CONFIGS[name],
                                            **changed})
    model = transformers.ReformerModelWithLMHead(config).eval()
    with torch.no_grad():  # away from 0 and 1, attention away from even
        for key, value in model.named_parameters():
            if key == "lm_head.bias" and not ADDS_HEAD_BIAS:
                continue
            if "layer_norm" in key or key.endswith("bias"):
                value.add_(0.1 * torch.randn_like(value))
            if "query" in key or "key" in key:
                value.mul_(2)
    return model


class Pair:
    """A model of theirs and what was imported of it."""

    def __init__(self, name, folder, **changed):
        self.theirs = make(name, **changed)
        self.config = self.theirs.config
        self.folder, self.run = folder / "theirs", folder / "ours"
        self.theirs.save_pretrained(self.folder)
        run(PROGRAM, "import", self.folder, "--out", self.run)

    def ours(self, **tensors):
        source, target = self.run / "in", self.run / "out"
        safetensors.save_file(tensors, source)
        run(LOGITS, self.run, source, target)
        return safetensors.load_file(target)

    def tokens(self, length, batch=2):
        generator = torch.Generator().manual_seed(length)
        return torch.randint(3, self.config.vocab_size, (batch, length),
                             generator=generator)

    def their_inputs(self, tokens):
        return torch.cat([torch.zeros_like(tokens[:, :1]), tokens[:, :-1]], 1)

    def their_logits(self, tokens):
        with torch.no_grad():
            return self.theirs(self.their_inputs(tokens)).logits


@pytest.fixture(scope="module", params=CONFIGS)
def pair(request, tmp_path_factory):
    return Pair(request.param, tmp_path_factory.mktemp(request.param))


def test_the_configurations_are_the_published_ones(pair):
    name = "crime" if pair.config.vocab_size == 320 else "enwik8"
    assert sum(p.numel() for p in pair.theirs.parameters()) == PARAMETERS[name]


def test_logits_of_one_chunk(pair):
    tokens = pair.tokens(min(pair.config.lsh_attn_chunk_length, 100))
    expected = pair.their_logits(tokens)
    assert expected.std() > 0.1
    logits = pair.ours(tokens=tokens)["logits"]
    assert (logits - expected).abs().max() < TOLERANCE


def recorded_buckets(pair, tokens):
    """What their layers hash to in a pass, and its logits."""
    from transformers.models.reformer import modeling_reformer
    original = modeling_reformer.LSHSelfAttention._hash_vectors
    recorded = []

    def record(self, *arguments, **named):
        recorded.append(original(self, *arguments, **named))
        return recorded[-1]

    modeling_reformer.LSHSelfAttention._hash_vectors = record
    try:
        return pair.their_logits(tokens), recorded
    finally:
        modeling_reformer.LSHSelfAttention._hash_vectors = original


@pytest.mark.parametrize("chunks", [3, 2.7])
def test_logits_of_several_chunks_with_their_buckets(pair, chunks):
    """2.7: padded to a multiple."""
    config = pair.config
    length = int(chunks * config.lsh_attn_chunk_length)
    tokens = pair.tokens(length, batch=1)
    expected, recorded = recorded_buckets(pair, tokens)
    layers = [i for i, kind in enumerate(config.attn_layers) if kind == "lsh"]
    assert len(recorded) == len(layers)
    factors = config.num_buckets
    n_buckets = factors if isinstance(factors, int) else math.prod(factors)
    given = {}
    for layer, buckets in zip(layers, recorded):
        ids = buckets.view(1, config.num_attention_heads, config.num_hashes,
                           -1)
        padded = ids.shape[3] > length
        offsets = torch.arange(config.num_hashes) * (n_buckets + padded)
        given[f"buckets.{layer}"] = (
            ids - offsets.view(1, 1, -1, 1))[..., :length].int().contiguous()
    logits = pair.ours(tokens=tokens, **given)["logits"]
    assert (logits - expected).abs().max() < TOLERANCE
    other = pair.ours(tokens=tokens)["logits"]  # hashed by ourselves
    assert (other - expected).abs().max() > 10 * TOLERANCE


def test_greedy_generation_gives_the_same_tokens(pair):
    tokens = pair.tokens(20, batch=1)
    count = 30
    inputs = torch.cat([torch.zeros_like(tokens[:, :1]), tokens], 1)
    for cached in (False, True):
        expected = pair.theirs.generate(
            inputs, attention_mask=torch.ones_like(inputs), do_sample=False,
            max_new_tokens=count, use_cache=cached, eos_token_id=None)
        ours = pair.ours(tokens=tokens, count=torch.tensor([count]))
        assert torch.equal(ours["generated"], expected[:, inputs.shape[1]:])


def test_export_is_the_inverse_of_import(pair, tmp_path):
    run(PROGRAM, "export", pair.run, "--format", "huggingface", "--out",
        tmp_path / "again")
    again = transformers.ReformerModelWithLMHead.from_pretrained(
        tmp_path / "again").eval()
    before, after = pair.theirs.state_dict(), again.state_dict()
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert torch.equal(value, after[name]), name
    for key in CONFIGS["crime"]:
        assert getattr(again.config, key) == getattr(pair.config, key), key


def test_gelu_and_learned_positions(tmp_path):
    """Neither published model has them."""
    pair = Pair("crime", tmp_path, hidden_act="gelu", axial_pos_embds=False,
                max_position_embeddings=96, num_buckets=8)
    tokens = pair.tokens(64)
    difference = pair.ours(tokens=tokens)["logits"] - pair.their_logits(tokens)
    assert difference.abs().max() < TOLERANCE


def test_pickled_weights_through_python(tmp_path):
    """With what the published files have besides: buffers, a second bias."""
    from reformer.convert import convert
    model = make("crime")
    model.save_pretrained(tmp_path / "bin")
    state = model.state_dict()
    state["lm_head.decoder.bias"] = state["lm_head.bias"]
    layer = "reformer.encoder.layers.0.attention.self_attention."
    state[layer + "mask_value_float16"] = torch.tensor(-1e4)
    state[layer + "mask_value_float32"] = torch.tensor(-1e9)
    (tmp_path / "bin" / "model.safetensors").unlink()
    torch.save(state, tmp_path / "bin" / "pytorch_model.bin")
    failed = subprocess.run(
        [PROGRAM, "import", tmp_path / "bin", "--out", tmp_path / "run"],
        capture_output=True, text=True)
    assert failed.returncode == 1 and "reformer.convert" in failed.stderr
    convert(tmp_path / "bin")
    run(PROGRAM, "import", tmp_path / "bin", "--out", tmp_path / "run")
    run(PROGRAM, "export", tmp_path / "run", "--format", "huggingface",
        "--out", tmp_path / "again")
    again = safetensors.load_file(tmp_path / "again" / "model.safetensors")
    for name, value in model.named_parameters():
        assert torch.equal(again[name], value), name
    with pytest.raises(ValueError, match="exists already"):
        convert(tmp_path / "bin")


def test_pickles_of_anything_but_tensors_are_refused(tmp_path):
    from reformer.convert import convert
    torch.save({"weight": pathlib.PurePosixPath("/")},
               tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="pytorch_model.bin"):
        convert(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()


TEXT = "".join(f"On an evening in July the {n}th a young man came out of his "
               f"garret, house {n * n % 97}, and walked slowly.\n"
               for n in range(300))


def test_fine_tuning_and_evaluation_of_an_import(tmp_path):
    """Of bytes, as the enwik8 model, and smaller."""
    pair = Pair("crime", tmp_path, vocab_size=258)
    (tmp_path / "text").write_text(TEXT)
    settings = [part for setting in (
        "train.steps=6", "train.length=192", "train.batch=1",
        "train.learning_rate=0.001") for part in ("--set", setting)]
    run(PROGRAM, "train", "--init", pair.run, "--data", tmp_path / "text",
        "--out", tmp_path / "tuned", *settings, "--device", "cpu")
    rows = [json.loads(line) for line in run(
        PROGRAM, "eval", tmp_path / "tuned", "--our-attention", "--json",
        "--device", "cpu").splitlines()]
    assert [row.get("our_attention", False) for row in rows] == [False, True]
    before = json.loads(run(PROGRAM, "eval", pair.run, "--data",
                            tmp_path / "text", "--length", "192", "--json",
                            "--device", "cpu"))
    assert rows[0]["loss"] < before["loss"]
    run(PROGRAM, "export", tmp_path / "tuned", "--format", "huggingface",
        "--out", tmp_path / "tuned-theirs")
    tuned = transformers.ReformerModelWithLMHead.from_pretrained(
        tmp_path / "tuned-theirs")
    assert tuned.config.vocab_size == 258
    run(PROGRAM, "import", pair.folder, "--out", tmp_path / "with-ours",
        "--attention", "ours")
    refused = subprocess.run(
        [PROGRAM, "eval", tmp_path / "with-ours", "--data", tmp_path / "text",
         "--our-attention"], capture_output=True, text=True)
    assert refused.returncode == 1 and refused.stdout == ""  # before any work
    assert "a model with lsh_huggingface is required" in refused.stderr


def test_their_pieces_are_the_prompts_tokens(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    (tmp_path / "text").write_text(TEXT)
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "spiece"),
        vocab_size=320, model_type="bpe", character_coverage=1.0,
        hard_vocab_limit=False, minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "spiece.model"))
    folder = tmp_path / "theirs"
    model = make("crime", vocab_size=pieces.vocab_size())
    model.save_pretrained(folder)
    (tmp_path / "spiece.model").rename(folder / "spiece.model")
    run(PROGRAM, "import", folder, "--out", tmp_path / "run")
    prompt = "On an evening in July"
    text = run(PROGRAM, "generate", tmp_path / "run", "--prompt", prompt,
               "--length", "8", "--temperature", "0", "--device", "cpu",
               "--show-prompt")
    inputs = torch.tensor([[0] + pieces.encode(prompt)])
    expected = model.generate(inputs, do_sample=False, max_new_tokens=8,
                              attention_mask=torch.ones_like(inputs),
                              use_cache=False, eos_token_id=None)
    assert text.strip() == pieces.decode(expected[0, 1:].tolist()).strip()
    assert pieces.vocab_size() == 320
