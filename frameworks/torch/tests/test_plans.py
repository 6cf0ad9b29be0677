"""Plans of torch.device("tenon"): the second call of an op with tensors of the same shapes runs its program without Python (src/plans.cpp)."""

import math
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tenon_torch
from tenon_torch import _device


@pytest.fixture(autouse=True)
def nothing_on_the_cpu(monkeypatch):
    monkeypatch.setenv("TENON_TORCH_FALLBACK", "error")


def planned(function, *given):
    """The result of a call for which there is a plan: a first one, with the same shapes, has left it."""
    function(*given)
    before = _device.planned_calls()
    result = function(*given)
    assert _device.planned_calls() > before, "the second call has no plan"
    return result


def same(found, expected) -> None:
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-6, atol=1e-6, equal_nan=True)


def on(x):
    return x.to("tenon")


x, y = torch.randn(6, 5), torch.randn(6, 5)
CALLS = {
    "sum of two": lambda x, y: x + y,
    "of one": lambda x, y: torch.relu(x),
    "transposed": lambda x, y: x.t() + y.t(),
    "both orders": lambda x, y: x.t().contiguous().t() * y,
    "part": lambda x, y: x[1:4, ::2] - y[1:4, ::2],
    "broadcast": lambda x, y: x[:1].expand(6, 5) + y,
    "reduction": lambda x, y: (x * y).sum(1),
    "two results": lambda x, y: x.max(1)[1],
    "list": lambda x, y: torch.cat([x, y, x]),
    "product": lambda x, y: x @ y.t(),
    "copy": lambda x, y: x.clone(),
    "another type": lambda x, y: x.to(torch.float64),
    "with a number": lambda x, y: x * 2.5 + y,
    "alpha": lambda x, y: torch.add(x, y, alpha=3),
    "number instead of a tensor": lambda x, y: torch.where(x > 0, x, 0.0),
    "integers": lambda x, y: (x.long() * 3 + 1) // 2,
    "comparison": lambda x, y: (x < y) & (x > -1.0),
    "string": lambda x, y: F.gelu(x, approximate="tanh"),
    "places on the CPU": lambda x, y: x[torch.tensor([4, 0, 2])],
    "layer norm": lambda x, y: F.layer_norm(x, (5,)),
    "conjugate": lambda x, y: torch.complex(x, y).conj() * 2,
    "negative": lambda x, y: torch.complex(x, y).conj().imag + x,
}


@pytest.mark.parametrize("name", CALLS)
def test_results(name):
    same(planned(CALLS[name], on(x), on(y)), CALLS[name](x, y))


def test_numbers_are_arguments():
    """One plan for all numbers of a type's range; the others are programs of their own."""
    a = on(x)
    planned(torch.mul, a, 2.0)
    before = tenon_torch.counters.programs
    for value in (0.1, -3.0, 1e-30, 0.0, -0.0, math.inf, -math.inf, math.nan):
        found = a * value
        same(found, x * value)
        assert torch.equal(torch.signbit(found.cpu()), torch.signbit(x * value)) or math.isnan(value)
    same(torch.add(a, a, alpha=7), x + 7 * x)
    same(a.mul(3), x * 3)
    assert tenon_torch.counters.programs <= before + 1  # That with an alpha.
    for _ in range(2):
        same(a.half() * 1e5, x.half() * 1e5)
        same(a.half() * 3, x.half() * 3)


def test_types_of_numbers():
    """Integers are multiplied by integers, and by numbers give floats, by turns."""
    n = torch.arange(6)
    for _ in range(3):
        for value in (2, 2.5, True, 3):
            found, expected = on(n) * value, n * value
            assert found.dtype == expected.dtype
            same(found, expected)


def test_changes_in_place():
    a, b = on(x.clone()), on(y)
    expected = x.clone()
    for step in range(4):
        assert a.add_(b, alpha=step) is a
        expected.add_(y, alpha=step)
        a[2:4].mul_(0.5)
        expected[2:4].mul_(0.5)
        a.t().sub_(a.t() * 0.25)
        expected.t().sub_(expected.t() * 0.25)
        same(a, expected)


def test_copies_are_apart():
    a = on(x)
    for _ in range(2):
        b = a.clone()
        b.add_(1)
        same(a, x)
        same(b, x + 1)


def test_out():
    for shape in ((6, 5), (0,)):
        for _ in range(3):
            out = torch.empty(shape, device="tenon")
            assert torch.add(on(x), on(y), out=out) is out
            same(out, x + y)


def test_lists():
    arrays, others = [on(x), on(y)], [on(y), on(x)]
    for step in range(3):
        torch._foreach_add_(arrays, others, alpha=1.0)
        same(arrays[0], x + (step + 1) * y)
    found = planned(torch._foreach_mul, others, 3.0)
    same(found[0], y * 3)
    same(found[1], x * 3)


def test_default_type():
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            assert (on(torch.arange(3)) / 2).dtype == dtype
        finally:
            torch.set_default_dtype(torch.float32)


def test_gradients():
    """Gradients of a layer by plans alone: a step makes no program."""
    layer, data = nn.Linear(5, 3), torch.randn(6, 5)
    ours, given = nn.Linear(5, 3).to("tenon"), on(data)
    ours.load_state_dict(layer.state_dict())
    for step in range(3):
        before = tenon_torch.counters.programs
        for module, batch in ((layer, data), (ours, given)):
            module.zero_grad()
            F.gelu(module(batch)).square().mean().backward()
        same(ours.weight.grad, layer.weight.grad)
        assert step == 0 or tenon_torch.counters.programs == before


def test_calls_are_counted():
    a = on(x)
    planned(torch.exp, a)
    before = tenon_torch.counters.calls
    torch.exp(a)
    assert tenon_torch.counters.calls == before + 1


def test_shapes_apart():
    for shape in ((3, 4), (4, 3), (12,), (), (0, 4), (3, 4)):
        a = torch.randn(shape)
        for _ in range(2):
            same(on(a).exp(), a.exp())


def test_errors_in_another_thread():
    """An error of a program is raised where autograd was asked, and the plan stays."""
    with pytest.raises(RuntimeError):
        for _ in range(2):
            on(x) @ on(y)
    same(planned(torch.matmul, on(x), on(y.t().contiguous())), x @ y.t())


def test_threads():
    wrong = []

    def work(number: int) -> None:
        a = torch.full((number + 2, 3), float(number))
        for step in range(50):
            found = (on(a) * step + 1).cpu()
            if not torch.equal(found, a * step + 1):
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
