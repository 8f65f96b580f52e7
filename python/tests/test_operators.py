"""torch.ops.reformer as PyTorch wants operators to be."""
import importlib.util
import math
import os
import shutil

import pytest
import torch

import reformer
from conftest import normal

HEADS, LENGTH, D_HEAD = 2, 37, 8


def problem(device="cpu", dtype=torch.float32, batch=2, length=LENGTH,
            scale=3.0):
    """Scaled, so that the softmax is far from even."""
    make = lambda seed: normal(batch, HEADS, length, D_HEAD, seed=seed,
                               device=device, dtype=dtype)
    return make(1) * scale, make(2)


def mask_of(length=LENGTH, device="cpu"):
    mask = torch.ones(2, length, dtype=torch.bool, device=device)
    mask[1, -5:] = False
    return mask


def shared_qk_reference(qk, v, seen):
    """Plain, in float64; seen [batch, heads, length, length] bool."""
    qk, v = qk.double(), v.double()
    keys = qk / qk.norm(dim=-1, keepdim=True)
    scores = (qk @ keys.transpose(2, 3)).masked_fill(~seen, -math.inf)
    alone = ~seen.any(-1)
    weights = torch.softmax(scores.masked_fill(alone[..., None], 0), -1)
    return torch.where(alone[..., None], v, weights @ v)


def below_diagonal(length, device="cpu"):
    return torch.ones(length, length, dtype=torch.bool, device=device).tril(-1)


def test_one_bucket_is_attention_to_all_the_past(device):
    qk, v = problem(device)
    buckets = torch.zeros(2, HEADS, 1, LENGTH, dtype=torch.uint16,
                          device=device)
    output = reformer.lsh_attention(qk, v, chunk_length=LENGTH, n_buckets=2,
                                    buckets=buckets)
    expected = shared_qk_reference(qk, v, below_diagonal(LENGTH, device))
    torch.testing.assert_close(output.double(), expected, rtol=1e-3, atol=1e-4)


def test_lsh_attention_sees_its_buckets_once(device):
    qk, v = problem(device)
    buckets = reformer.lsh_buckets(qk, rounds=3, n_buckets=4, seed=5)
    ids = buckets.int()  # [batch, heads, rounds, length]
    same = (ids[..., :, None] == ids[..., None, :]).any(2)
    seen = same & below_diagonal(LENGTH, device)
    output = reformer.lsh_attention(qk, v, rounds=3, chunk_length=LENGTH,
                                    n_buckets=4, seed=5)
    torch.testing.assert_close(output.double(),
                               shared_qk_reference(qk, v, seen),
                               rtol=1e-3, atol=1e-4)


def test_padding_is_seen_by_nobody(device):
    qk, v = problem(device)
    mask = mask_of(device=device)
    changed = torch.where(mask[:, None, :, None], v, 1e4)
    options = dict(rounds=2, chunk_length=8, mask=mask)
    output = reformer.lsh_attention(qk, v, **options)
    assert torch.equal(output, reformer.lsh_attention(qk, changed, **options))
    assert (output[1, :, -5:] == 0).all()


def test_local_attention_sees_two_chunks(device):
    qk, v = problem(device)
    chunk = torch.arange(LENGTH, device=device) // 8
    seen = ((chunk[:, None] - chunk[None, :] <= 1)
            & below_diagonal(LENGTH, device)).expand(2, HEADS, -1, -1)
    output = reformer.local_attention(qk, v, chunk_length=8)
    torch.testing.assert_close(output.double(),
                               shared_qk_reference(qk, v, seen),
                               rtol=1e-3, atol=1e-4)


def natural(length, device="cpu"):
    order = torch.arange(length, dtype=torch.int32, device=device)
    interval = torch.stack([torch.zeros_like(order), order + 1], -1)
    return (order.view(1, 1, 1, -1), order.view(1, 1, -1, 1),
            interval.view(1, 1, -1, 1, 2))


def test_interval_attention_is_causal_attention(device):
    q, v = problem(device)
    k = normal(2, HEADS, LENGTH, D_HEAD, seed=3, device=device)
    output, lse = reformer.interval_attention(q, k, v,
                                              *natural(LENGTH, device))
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), is_causal=True)
    torch.testing.assert_close(output.double(), expected, rtol=1e-3, atol=1e-4)
    assert lse.shape == (2, HEADS, LENGTH) and not lse.requires_grad


OPERATORS = {
    "lsh": lambda qk, v, **more: torch.ops.reformer.lsh_attention(
        qk, v, rounds=2, chunk_length=8, seed=3, **more),
    "lsh_local": lambda qk, v, **more: torch.ops.reformer.lsh_attention(
        qk, v, rounds=2, chunk_length=8, local_window=4, successor_heads=1,
        **more),
    "local": lambda qk, v, **more: torch.ops.reformer.local_attention(
        qk, v, chunk_length=8, **more),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(name, masked):
    qk, v = problem(dtype=torch.float64, length=19, scale=1.0)
    mask = mask_of(19) if masked else None
    assert torch.autograd.gradcheck(
        lambda qk, v: OPERATORS[name](qk, v, mask=mask),
        (qk.requires_grad_(), v.requires_grad_()))


def test_gradcheck_of_interval_attention():
    q, v = problem(dtype=torch.float64, length=11, scale=1.0)
    k = normal(2, HEADS, 11, D_HEAD, seed=3, dtype=torch.float64)
    rounds = natural(11)
    assert torch.autograd.gradcheck(
        lambda q, k, v: reformer.interval_attention(q, k, v, *rounds)[0],
        tuple(x.requires_grad_() for x in (q, k, v)))


def laid_out(x, layout):
    """The same elements: as a projection gives them, or with gaps."""
    if layout == "projected":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if layout == "strided":
        wide = torch.zeros(*x.shape[:3], 2 * x.shape[3], dtype=x.dtype,
                           device=x.device)
        wide[..., ::2] = x
        return wide[..., ::2]
    return x


LAYOUTS = ["contiguous", "projected", "strided"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_opcheck(device, name, layout):
    """Schema, fake kernels, autograd, AOT dispatch with dynamic shapes."""
    dtypes = [torch.float32, torch.bfloat16 if device == "cuda"
              else torch.float64]
    options = {"lsh": dict(rounds=2, chunk_length=8, seed=3),
               "lsh_local": dict(chunk_length=8, local_window=4),
               "local": dict(chunk_length=8)}[name]
    op = (torch.ops.reformer.local_attention if name == "local"
          else torch.ops.reformer.lsh_attention).default
    for dtype in dtypes:
        qk, v = (laid_out(x, layout).detach().requires_grad_()
                 for x in problem(device, dtype))
        torch.library.opcheck(op, (qk, v), options)
    torch.library.opcheck(op, (qk, v), {**options, "mask": mask_of(device=device)})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_opcheck_of_the_parts(device, layout):
    ops = torch.ops.reformer
    qk, v = (laid_out(x, layout) for x in problem(device))
    torch.library.opcheck(ops.lsh_buckets.default, (qk, 2, 8, 0, 7))
    buckets = ops.lsh_buckets(qk, 2, 8, 0, 7)
    rounds_arguments = (buckets, None, 8, 0, 4, "trailing", True)
    torch.library.opcheck(ops.lsh_rounds.default, rounds_arguments)
    torch.library.opcheck(ops.local_rounds.default,
                          (qk, mask_of(device=device), 8, "chunk", True))
    rounds = ops.lsh_rounds(*rounds_arguments)
    qk, v = qk.detach().requires_grad_(), v.detach().requires_grad_()
    torch.library.opcheck(ops.interval_attention_forward.default,
                          (qk, None, v, *rounds, None, 0, True))
    k = normal(2, HEADS, LENGTH, D_HEAD, seed=3, device=device).requires_grad_()
    torch.library.opcheck(ops.interval_attention.default,
                          (qk, k, v, *natural(LENGTH, device)))


@pytest.mark.parametrize("name", OPERATORS)
def test_strides_change_nothing(device, name):
    results = []
    for layout in LAYOUTS:
        qk, v = (laid_out(x, layout).detach().requires_grad_()
                 for x in problem(device))
        output = OPERATORS[name](qk, v)
        output.square().sum().backward()
        results.append((output, qk.grad, v.grad))
    for other in results[1:]:
        for x, y in zip(results[0], other):
            assert torch.equal(x, y)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_comes_back_as_it_came(device, name, dtype):
    qk, v = problem(device, dtype)
    wide = OPERATORS[name](qk.float(), v.float())
    qk.requires_grad_()
    output = OPERATORS[name](qk, v)
    output.sum().backward()
    assert output.dtype == qk.grad.dtype == dtype
    if device == "cpu" or dtype == torch.float16:
        assert torch.equal(output, wide.to(dtype))
    else:
        torch.testing.assert_close(output.float(), wide, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("sizes", [(0, 2, 5, 8), (2, 2, 0, 8)])
def test_empty_inputs_give_empty_outputs(device, name, sizes):
    qk = torch.zeros(sizes, device=device, requires_grad=True)
    output = OPERATORS[name](qk, qk)
    output.sum().backward()
    assert output.shape == sizes and qk.grad.shape == sizes


def test_no_gradient_where_none_is_wanted(device):
    qk, v = problem(device)
    assert not reformer.lsh_attention(qk, v).requires_grad
    v.requires_grad_()
    reformer.lsh_attention(qk, v).sum().backward()
    assert qk.grad is None and v.grad is not None
    with torch.inference_mode():
        reformer.lsh_attention(qk, v)


def test_autocast(device):
    qk, v = problem(device)
    type_of = torch.bfloat16 if device == "cuda" else torch.float32
    with torch.autocast(device, torch.bfloat16):
        assert OPERATORS["lsh"](qk, v).dtype == type_of
        assert OPERATORS["local"](qk.bfloat16(), v).dtype == type_of
        assert reformer.interval_attention(
            qk, None, v, *natural(LENGTH, device))[0].dtype == type_of


@pytest.mark.parametrize("name", OPERATORS)
def test_torch_compile_gives_the_same(device, name):
    def loss(qk, v):
        return (OPERATORS[name](qk * 2, v) + v).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    gradients = []
    for function in (loss, compiled):
        qk, v = (x.requires_grad_() for x in problem(device))
        function(qk, v).backward()
        gradients.append((qk.grad, v.grad))
    for plain, traced in zip(*gradients):
        torch.testing.assert_close(plain, traced)


def skip_without_compiler(device):
    """Inductor writes C++ for a CPU, Triton for a GPU."""
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        pytest.skip("inductor has no triton here")
    compilers = (os.environ.get("CXX", "g++"), "g++", "clang++")
    if device == "cpu" and not any(map(shutil.which, compilers)):
        pytest.skip("inductor has no C++ compiler here")


@pytest.mark.parametrize("layout", ["projected", "strided"])
def test_inductor_gives_the_same(device, layout):
    """Its own code before and after relies on the strides of fake kernels."""
    skip_without_compiler(device)
    torch.compiler.reset()

    def loss(qk, v):
        output = OPERATORS["lsh_local"](qk, v * 2)
        return ((output + v).relu() * qk).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="inductor")
    # Sums in another order: where there is float64, that does not show.
    dtype, tolerance = ((torch.float64, {}) if device == "cpu" else
                        (torch.float32, {"rtol": 1e-3, "atol": 1e-3}))
    results = []
    for function in (loss, compiled):
        qk, v = (laid_out(x, layout).detach().requires_grad_()
                 for x in problem(device, dtype))
        value = function(qk, v)
        value.backward()
        results.append((value.detach(), qk.grad, v.grad))
    for plain, traced in zip(*results):
        torch.testing.assert_close(plain, traced, **tolerance)


def test_torch_export_keeps_the_operator():
    class Attention(torch.nn.Module):
        def forward(self, qk, v):
            return reformer.lsh_attention(qk, v, chunk_length=8)

    qk, v = problem()
    length = torch.export.Dim("length", min=2, max=4096)
    program = torch.export.export(
        Attention(), (qk, v), dynamic_shapes=({2: length}, {2: length}))
    names = {str(node.target) for node in program.graph.nodes
             if node.op == "call_function"}
    parts = {f"reformer.{name}.default" for name in (
        "lsh_buckets", "lsh_rounds", "interval_attention_forward")}
    assert "reformer.lsh_attention.default" in names or parts <= names, names
    assert not any(word in name for name in names
                   for word in ("matmul", "bmm", "softmax", "sort")), names
    longer = problem(length=61)
    assert torch.equal(program.module()(*longer),
                       reformer.lsh_attention(*longer, chunk_length=8))
