"""What is public, and what it says of mistakes."""
import inspect
import pathlib
import typing

import pytest
import torch

import reformer
from conftest import ROOT
from test_operators import LENGTH, natural, problem

PROMISED = ("qk", "v", "rounds", "chunk_length", "local_window", "causal",
            "mask", "seed")


def test_what_is_public_is_described_and_typed():
    signature = inspect.signature(reformer.lsh_attention)
    assert tuple(signature.parameters)[:8] == PROMISED
    assert [signature.parameters[name].default for name in PROMISED[2:]] == [
        4, 128, 0, True, None, 0]
    for name in reformer.__all__:
        thing = getattr(reformer, name)
        assert len(inspect.getdoc(thing)) > 60, name
        call = thing if inspect.isfunction(thing) else thing.__init__
        types = typing.get_type_hints(call)
        for argument in inspect.signature(call).parameters.values():
            assert argument.name == "self" or argument.name in types, name
    assert (pathlib.Path(reformer.__file__).parent / "py.typed").is_file()


def test_the_version_is_the_librarys():
    header = (ROOT / "reformer" / "version.h").read_text()
    assert f'REFORMER_VERSION "{reformer.__version__}"' in header


@pytest.mark.parametrize("arguments, sentence", [
    (dict(rounds=0), "rounds must be at least 1, got 0"),
    (dict(chunk_length=0), "chunk_length must be at least 1, got 0"),
    (dict(window="wide"), "window must be 'chunk' or 'trailing', got 'wide'"),
    (dict(n_buckets=3), "n_buckets"),
    (dict(mask=torch.ones(2, 3)), "mask must be bool"),
    (dict(successor_heads=3), "successor_heads must be 0 to 2, got 3"),
])
def test_mistakes_are_value_errors_with_a_sentence(arguments, sentence):
    qk, v = problem()
    with pytest.raises(ValueError, match=sentence):
        reformer.lsh_attention(qk, v, **arguments)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_float64_is_refused_by_name_on_a_gpu():
    qk, v = problem("cuda", torch.float64)
    with pytest.raises(ValueError, match="bfloat16 on CUDA"):
        reformer.lsh_attention(qk, v)


@pytest.mark.parametrize("dtype", [torch.int32, torch.complex64])
def test_wrong_types_are_named(dtype):
    qk, v = (x.to(dtype) for x in problem())
    with pytest.raises(ValueError, match="must be float32 or float64, got"):
        reformer.lsh_attention(qk, v)
    qk, v = problem()
    with pytest.raises(ValueError, match="v must have the type of q, Float"):
        reformer.lsh_attention(qk, v.double())


def test_wrong_shapes_are_named():
    qk, v = problem()
    with pytest.raises(ValueError, match="v must have the sizes of q"):
        reformer.lsh_attention(qk, v[:, :1])
    with pytest.raises(ValueError, match=r"qk must be \[batch, heads, length"):
        reformer.local_attention(qk[0], v[0])
    with pytest.raises(ValueError, match="v must be on the device of q"):
        reformer.lsh_attention(qk, v.to("meta"))
    order, place, interval = natural(LENGTH)
    with pytest.raises(ValueError, match="permutation"):
        reformer.interval_attention(qk, None, v, torch.zeros_like(order),
                                    place, interval)


@pytest.mark.parametrize("sizes, options, sentence", [
    ((2, 2, 5, 0), {}, "d_head of qk must be"),
    ((2, 2, 0, 300), {}, "d_head of qk must be"),
    ((0, 2, 5, 8), dict(rounds=-2), "rounds must be at least 1, got -2"),
    ((0, 2, 5, 8), dict(chunk_length=0), "chunk_length must be at least 1"),
])
def test_mistakes_with_empty_inputs_are_said_too(device, sizes, options,
                                                 sentence):
    qk = torch.zeros(sizes, device=device)
    with pytest.raises(ValueError, match=sentence):
        reformer.lsh_attention(qk, qk, **options)
    if not options:
        with pytest.raises(ValueError, match="d_head of q"):
            reformer.local_attention(qk, qk)


def test_second_derivatives_are_refused():
    qk, v = problem()
    qk.requires_grad_()
    output = reformer.lsh_attention(qk, v).sum()
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(output, qk, create_graph=True)
