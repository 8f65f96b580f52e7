"""reformer.LSHAttention and reformer.ReversibleSequence."""
import weakref

import pytest
import torch
from torch import nn

import reformer
from conftest import normal

WIDTH, LENGTH = 32, 50


class FeedForward(nn.Sequential):
    def __init__(self, dropout=0.0):
        super().__init__(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 64), nn.GELU(),
                         nn.Dropout(dropout), nn.Linear(64, WIDTH))


class Attention(nn.Module):
    def __init__(self, seed=0, **more):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = reformer.LSHAttention(
            WIDTH, 2, rounds=2, chunk_length=8, n_buckets=8, seed=seed, **more)

    def forward(self, x, mask=None):
        return self.attention(self.norm(x), mask)


def sequence(blocks=3, dropout=0.0, **more):
    torch.manual_seed(0)
    return reformer.ReversibleSequence(
        (Attention(seed, **more), FeedForward(dropout))
        for seed in range(blocks))


def plain(model, x1, x2, mask=None):
    for block in model.blocks:
        x1 = x1 + block.f(x2, mask)
        x2 = x2 + block.g(x1)
    return x1, x2


def gradients(run, model, x):
    model.zero_grad()
    x = x.detach().requires_grad_()
    torch.manual_seed(7)
    y1, y2 = run(x, x)
    (y1.square().sum() + (y2 * 3).sum()).backward()
    return [y1, y2, x.grad] + [p.grad for p in model.parameters()]


@pytest.mark.parametrize("training", [False, True])
def test_reversible_gradients_are_autograds(device, training):
    model = sequence(dropout=0.5).double().to(device).train(training)
    x = normal(2, LENGTH, WIDTH, dtype=torch.float64, device=device)
    if device == "cuda":  # no kernels for float64
        model, x = model.float(), x.float()
    tolerance = dict(rtol=1e-9, atol=1e-9)
    if device == "cuda":
        tolerance = dict(rtol=1e-3, atol=1e-3)
    for ours, theirs in zip(
            gradients(model, model, x),
            gradients(lambda *xs: plain(model, *xs), model, x)):
        torch.testing.assert_close(ours, theirs, **tolerance)


def test_masks_reach_f():
    model = sequence().eval()
    x = normal(2, LENGTH, WIDTH)
    mask = torch.ones(2, LENGTH, dtype=torch.bool)
    mask[1, 30:] = False
    ours = model(x, x, f_arguments={"mask": mask})
    for y, expected in zip(ours, plain(model, x, x, mask)):
        assert torch.equal(y, expected)
    assert not torch.equal(ours[0], model(x, x)[0])


class Counting(nn.Module):
    """Its output depends on how many tensors autograd keeps for it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.tanh(self.linear(x))


def test_each_branch_is_evaluated_twice_and_keeps_nothing():
    blocks = [(Counting(), Counting()) for _ in range(3)]
    model = reformer.ReversibleSequence(blocks)
    kept = []
    x = normal(2, LENGTH, WIDTH).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(
            lambda t: kept.append(t) or t, lambda t: t):
        y1, y2 = model(x, x)
    activations = [t for t in kept if t.shape == x.shape]
    assert len(activations) == 2  # the outputs, whatever the number of blocks
    (y1 + y2).sum().backward()
    assert all(f.calls == g.calls == 2 for f, g in blocks)


def test_no_input_of_a_branch_outlives_the_forward_pass():
    """But the last one, which is an output."""
    seen = []
    blocks = [(Counting(), Counting()) for _ in range(4)]
    for branch in (branch for block in blocks for branch in block):
        branch.register_forward_pre_hook(
            lambda _, inputs: seen.append(weakref.ref(inputs[0])))
    model = reformer.ReversibleSequence(blocks)
    x = normal(2, LENGTH, WIDTH).requires_grad_()
    outputs = model(x * 1, x * 2)
    alive = [ref() for ref in seen if ref() is not None]
    assert len(seen) == 8 and len(outputs) == 2
    assert {t.data_ptr() for t in alive} <= {t.data_ptr() for t in outputs}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_memory_does_not_grow_with_the_number_of_blocks():
    x = normal(1, 2048, WIDTH, device="cuda").requires_grad_()

    def peak(blocks):
        model = sequence(blocks).to("cuda")
        sum(model(x, x)).sum().backward()  # gradients are there now
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        sum(model(x, x)).sum().backward()
        return torch.cuda.max_memory_allocated() - before

    parameters = sum(4 * p.numel() for p in sequence(6).parameters())
    buckets = 6 * 2 * 2 * 2048 * 2  # of layers, heads, rounds, uint16
    assert peak(8) - peak(2) < parameters + 2 * buckets


def losses(model, x):
    x = x.detach().requires_grad_()
    model.zero_grad()
    torch.manual_seed(3)
    y1, y2 = model(x, x)
    (y1 * y2).sum().backward()
    return [x.grad] + [p.grad for p in model.parameters()]


@pytest.mark.parametrize("what", ["model", "branches"])
def test_compiled_gradients_are_the_same(what):
    """Of the whole model, which then runs as it is, and of each f and g."""
    torch.compiler.reset()
    model, x = sequence(blocks=2), normal(1, LENGTH, WIDTH)
    expected = losses(model, x)
    compiled = model
    if what == "model":
        compiled = torch.compile(model, backend="aot_eager")
    for block in model.blocks if what == "branches" else ():
        block.f.compile(backend="aot_eager")
        block.g.compile(backend="aot_eager")
    for ours, theirs in zip(losses(compiled, x), expected):
        torch.testing.assert_close(ours, theirs)


def test_a_layer_alone_compiles_whole():
    torch.compiler.reset()
    attention, x = Attention().eval(), normal(1, LENGTH, WIDTH)
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), attention(x))


def test_rebuilt_inputs_use_the_buckets_of_the_first_pass(monkeypatch):
    from reformer import modules
    hashed = []
    original = modules.lsh_buckets
    monkeypatch.setattr(modules, "lsh_buckets",
                        lambda *a, **k: hashed.append(1) or original(*a, **k))
    model = sequence(blocks=2)
    x = normal(1, LENGTH, WIDTH).requires_grad_()
    y1, y2 = model(x, x)
    (y1 + y2).sum().backward()
    assert len(hashed) == 2  # once for each layer, not again in the backward


def test_modules_without_gradients_and_parameters():
    model = reformer.ReversibleSequence([(nn.Tanh(), nn.Identity())])
    x = normal(1, 3, 4)
    y1, y2 = model(x, 2 * x)
    assert torch.allclose(y1, x + torch.tanh(2 * x))
    x.requires_grad_()
    model(x, x)[0].sum().backward()
    assert x.grad is not None
    with pytest.raises(ValueError, match="same shape"):
        model(x, x[:, :1])


def test_frozen_parameters_get_no_gradient():
    model = sequence(blocks=1)
    model.blocks[0].g.requires_grad_(False)
    x = normal(1, LENGTH, WIDTH)
    model(x, x)[1].sum().backward()
    assert model.blocks[0].g[1].weight.grad is None
    assert model.blocks[0].f.norm.weight.grad is not None


def test_training_hashes_anew_and_evaluation_does_not():
    attention = Attention(rehash=True)
    x = normal(1, 400, WIDTH) * 5
    torch.manual_seed(1)
    first, second = attention(x), attention(x)
    assert not torch.equal(first, second)
    attention.eval()
    assert torch.equal(attention(x), attention(x))
    attention.train()
    torch.manual_seed(1)
    assert torch.equal(attention(x), first)


def test_autocast_goes_through(device):
    model = sequence().to(device)
    x = normal(2, LENGTH, WIDTH, device=device).requires_grad_()
    with torch.autocast(device, torch.bfloat16):
        y1, _ = model(x, x)
    y1.sum().backward()
    assert y1.dtype == torch.float32 and x.grad.isfinite().all()


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="multiple of heads"):
        reformer.LSHAttention(30, 4)


def test_mistakes_with_modules_have_a_sentence():
    attention, x = reformer.LSHAttention(WIDTH, 2), normal(1, 5, WIDTH)
    for wrong in (x[0], x[..., 1:]):
        with pytest.raises(ValueError, match=r"x must be \[batch, length"):
            attention(wrong)
    for block in (attention, (attention,), (attention, torch.relu)):
        with pytest.raises(TypeError, match="must be pairs"):
            reformer.ReversibleSequence([block])
    model = reformer.ReversibleSequence([(nn.Linear(WIDTH, 1), nn.Identity())])
    with pytest.raises(ValueError, match=r"\(1, 5, 1\) of Linear"):
        model(x, x)


# Not monkeypatch: what it gives back is no setting any more.
@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_training_compiles_whole_where_scalars_are_captured():
    """Two calls of one graph draw different hashes, those of the plain one."""
    torch.compiler.reset()
    attention, x = Attention(rehash=True), normal(1, 400, WIDTH) * 5
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    torch.manual_seed(1)
    plain = attention(x), attention(x)
    torch.manual_seed(1)
    for ours, expected in zip((compiled(x), compiled(x)), plain):
        torch.testing.assert_close(ours, expected)
    assert not torch.equal(*plain)
