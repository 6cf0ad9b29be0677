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


def of(values, dtype=None):
    return lambda device: torch.tensor(values, dtype=dtype, device=device)


ONES, TWO, INTEGERS, TRUTHS = of([1.0, 2, 3]), of([1.0, 2]), of([1, 2, 3]), of([True, False])
# PyTorch refuses them by checks of its own, of types, shapes and memory.
REFUSED = {
    "broadcast of what is changed": lambda d: of([1.0])(d).atan2_(TWO(d)),
    "broadcast of a part that is changed": lambda d: TWO(d)[:1].pow_(TWO(d)),
    "fractions in integers": lambda d: INTEGERS(d).mul_(2.5),
    "floats in integers": lambda d: INTEGERS(d).mul_(ONES(d)),
    "complex in floats": lambda d: ONES(d).add_(1 + 2j),
    "types of elements that are added": lambda d: INTEGERS(d).index_add_(0, of([0, 1])(d), TWO(d)),
    "elements that are one": lambda d: ONES(d).expand(2, 3).add_(torch.ones(2, 3, device=d)),
    "parts that overlap": lambda d: (lambda x: x[1:].mul_(x[:-1]))(ONES(d)),
    "a matrix and its transpose": lambda d: (lambda x: x.add_(x.t()))(torch.ones(3, 3, device=d)),
    "negative powers of integers": lambda d: INTEGERS(d).pow(-2),
    "a truth less one": lambda d: TRUTHS(d) - True,
    "a truth as alpha": lambda d: torch.add(ONES(d), ONES(d), alpha=True),
    "alpha of truths": lambda d: torch.add(TRUTHS(d), TRUTHS(d), alpha=2.5),
    "quotients of integers": lambda d: torch.addcdiv(INTEGERS(d), INTEGERS(d), INTEGERS(d)),
    "types of a product": lambda d: torch.addmm(torch.ones(1, 1, device=d), torch.ones(1, 1, device=d), torch.ones(1, 1, device=d, dtype=torch.half)),
    "order of complex numbers": lambda d: torch.maximum(of([1j])(d), of([1j])(d)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """With PyTorch's own text, the first time and the next ones."""
    with pytest.raises(RuntimeError) as expected:
        REFUSED[name]("cpu")
    for _ in range(3):
        with pytest.raises(RuntimeError) as found:
            REFUSED[name]("tenon")
        # It may name the type of memory.
        assert str(found.value).splitlines()[0][:40] == str(expected.value).splitlines()[0][:40]


def test_parts_that_overlap_behind_others():
    """Parts of two arrays have the key of parts of one, and a plan."""
    a, b = on(x.clone()), on(y.clone())
    expected = x.clone()
    for _ in range(3):
        a[1:].mul_(b[:-1])
        expected[1:].mul_(y[:-1])
        same(a, expected)
    with pytest.raises(RuntimeError, match="single memory location|overlap"):
        a[1:].mul_(a[:-1])
    same(a, expected)
    for _ in range(3):
        a.add_(a)
        expected.add_(expected)
        same(a, expected)


def test_types_beside_numbers_of_no_dimension():
    """A tensor without dimensions has no say in the type of a result, beside one of its kind."""
    for left, right in ((torch.float32, torch.float64), (torch.float16, torch.float32), (torch.bfloat16, torch.float16)):
        a, z = torch.randn(3).to(left), torch.tensor(1.5, dtype=right)
        functions = {lambda a, z: torch.add(a, z, alpha=2.0): (on(z), z), lambda a, z: torch.sub(z, a, alpha=2.0): (on(z), z),
                     lambda a, z: torch.addcmul(a, z, a, value=0.3): (on(z),), lambda a, z: torch.addcdiv(a, a, z, value=2.0): (on(z),)}
        for function, scalars in functions.items():
            for scalar in scalars * 3:
                found, expected = function(on(a), scalar), function(a, z)
                assert found.dtype == expected.dtype
                torch.testing.assert_close(found.cpu(), expected, rtol=1e-2, atol=1e-2)


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
