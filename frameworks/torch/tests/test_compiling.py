"""Shapes that change, ops without a lowering, options, exports."""

import pathlib
import subprocess

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import tenon
import tenon_torch
from tenon_torch.exporting import text_of


def test_found_by_name():
    import torch._dynamo

    assert "tenon" in torch._dynamo.list_backends(exclude_tags=None)


def test_batches_of_any_size(compiled):
    """One program a size; the oldest goes when there are too many."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    forward = compiled(model, programs=2)
    for size in (4, 7, 9, 12, 7, 9):
        x = torch.randn(size, 8)
        torch.testing.assert_close(forward(x), model(x), rtol=1e-5, atol=1e-5)
        forward(x).sum().backward()
    # Two graphs of the first size, two of sizes that change.
    assert tenon_torch.counters.graphs == 4
    assert tenon_torch.counters.evicted > 0
    assert not tenon_torch.counters.fallbacks


def test_checks_of_values_are_left_out(compiled):
    """A class of one_hot is not checked, so that a graph is not cut for it."""
    i = torch.tensor([1, 3, 0])
    assert torch.equal(compiled(lambda i: F.one_hot(i, 4) * 2, fallback="error")(i), F.one_hot(i, 4) * 2)
    assert tenon_torch.counters.graphs == 1 and not tenon_torch.counters.fallbacks


@pytest.mark.parametrize("size", [4, 7])
def test_averages_have_the_precision_of_their_type(compiled, size):
    x = torch.randn(2, 3, 10, dtype=torch.float64)
    torch.testing.assert_close(compiled(lambda x: F.adaptive_avg_pool1d(x, size))(x), F.adaptive_avg_pool1d(x, size), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numbers_beside_short_floats(dtype, compiled):
    """A number has the digits of f32 there, and a range that the type lacks: the exact result is rounded once. Eager mode multiplies so too, but
    adds the rounded number."""
    x, y = torch.randn(2, 1000).to(dtype)
    for function in (lambda x, y: x * 0.1, lambda x, y: x / 3.3, lambda x, y: x + 1e-3, lambda x, y: 1.7 - x,
                     lambda x, y: torch.add(x, y, alpha=0.3), lambda x, y: torch.rsub(x, y, alpha=0.7)):
        wrong = compiled(function)(x, y) != function(x.double(), y.double()).to(dtype)
        assert wrong.sum() < 5  # By way of f32.
    assert torch.equal(compiled(lambda x: (x * 1e-3) * 1e5)(x), (x * 1e-3) * 1e5)


def test_left_to_pytorch():
    """What has no lowering runs in PyTorch, between two programs, and is counted by name."""

    def function(x):
        values = torch.linalg.eigvals(x @ x.T + 1)
        return values.real.sort()[0].sin()

    x = torch.randn(6, 6)
    torch.testing.assert_close(torch.compile(function, backend="tenon")(x), function(x))
    assert tenon_torch.counters.programs == 2
    assert tenon_torch.counters.fallbacks == {"aten.linalg_eig.default": 1}
    assert "aten.linalg_eig.default in 1 graphs" in str(tenon_torch.counters)


def test_nothing_left_to_pytorch(compiled):
    with pytest.raises(Exception, match="aten.linalg_eig.default: has no lowering"):
        compiled(torch.linalg.eigvals)(torch.randn(4, 4))


def test_graph_breaks_are_counted(compiled):
    def function(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    x = torch.randn(4)
    torch.testing.assert_close(compiled(function)(x), function(x))
    assert tenon_torch.counters.graphs == 2 and sum(tenon_torch.counters.graph_breaks.values()) == 1


@pytest.mark.parametrize("options, words", [({"speed": 1}, "there is no option 'speed'"), ({"fallback": "maybe"}, "must be one of 'torch', 'error'"),
                                            ({"programs": 0}, "must be at least 1")])
def test_wrong_options(options, words):
    with pytest.raises(Exception, match=words):
        torch.compile(torch.sin, backend="tenon", options=options)(torch.ones(2))


def test_no_such_device(compiled):
    with pytest.raises(tenon.Error, match="nonesuch"):
        compiled(torch.sin, device="nonesuch")(torch.ones(2))


def test_arguments_are_handed_on(compiled):
    """An output that is an argument is that tensor, and a view of one is a view."""
    x = torch.randn(3, 4)
    same, view, new = compiled(lambda x: (x, x.t(), x + 1))(x)
    assert same is x and view.data_ptr() == x.data_ptr() and new.data_ptr() != x.data_ptr()


def test_arguments_are_changed_in_place(compiled):
    x, y = torch.zeros(4), torch.arange(4.0)

    def add(x, y):
        x += y
        return x * 2

    result = compiled(add)(x, y)
    assert x.tolist() == [0, 1, 2, 3] and result.tolist() == [0, 2, 4, 6]


def test_memory_orders(compiled):
    """Arguments with any strides, of views, of expanded tensors, of none."""
    base = torch.arange(24.0).reshape(4, 6)
    given = [base, base.t(), base[1:, ::2], base[:, :1].expand(4, 5), base.reshape(2, 3, 4).permute(1, 2, 0), torch.empty(0, 3), torch.tensor(2.0)]
    for x in given:
        torch._dynamo.reset()
        found = compiled(lambda x: x * 2 + 1)(x)
        assert torch.equal(found, x * 2 + 1) and found.stride() == (x * 2 + 1).stride()


def test_results_can_be_written(compiled):
    y = compiled(torch.sin)(torch.ones(4))
    y.add_(1)
    assert torch.allclose(y, torch.sin(torch.ones(4)) + 1)


@pytest.fixture
def exported():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10)).eval()
    x = torch.randn(2, 1, 8, 8)
    return torch.export.export(model, (x,)), x, model(x).detach()


def test_exported_program(exported, device, tmp_path):
    """The file is a program of one argument, its weights in it."""
    program, x, expected = exported
    path = tmp_path / "model.mlir"
    tenon_torch.export(program, path)
    found = np.asarray(tenon.compile(path, device)(x.numpy()))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_exported_program_is_run_by_the_tool(exported, tmp_path):
    tool = pathlib.Path(__file__).resolve().parents[3] / "build/tenon"
    if not tool.exists():
        pytest.skip("there is no build/tenon")
    program, x, expected = exported
    tenon_torch.export(program, tmp_path / "model.mlir")
    np.save(tmp_path / "x.npy", x.numpy())
    subprocess.run([tool, "run", tmp_path / "model.mlir", "--arg", f"0=@{tmp_path}/x.npy", "--device", "cpu", "--out", tmp_path], check=True,
                   capture_output=True, timeout=120)
    np.testing.assert_allclose(np.load(tmp_path / "out_0.npy"), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_exported_transposes(device, tmp_path):
    """Inputs and outputs are row-major, whatever strides the example has."""

    class Transposed(nn.Module):
        def forward(self, x):
            return x.t() * 2, x.sum(0), x

    x = torch.arange(12.0).reshape(4, 3).t()
    tenon_torch.export(torch.export.export(Transposed(), (x,)), tmp_path / "model.mlir")
    found = tenon.compile(tmp_path / "model.mlir", device)(x.contiguous().numpy())
    for left, right in zip(found, (x.t() * 2, x.sum(0), x)):
        np.testing.assert_array_equal(np.asarray(left), right.numpy())


def test_places_of_storage(compiled):
    """as_strided of a row-major argument is lowered, of a view it is left to PyTorch."""
    x = torch.arange(12.0).reshape(3, 4)
    assert compiled(lambda x: x.as_strided((2, 2), (1, 3), 1) + 0)(x).tolist() == [[1, 4], [2, 5]]
    for shape, stride, offset in (((3, 4), (1, 3), 0), ((2, 1, 3), (4, 9, 1), 3), ((3, 2), (4, 2), 1), ((2, 5), (3, 0), 6), ((), (), 7),
                                  ((6, 4), (1, 2), 0), ((4,), (3,), 2), ((1, 1), (7, 7), 11), ((2, 2, 2), (1, 6, 2), 1)):
        function = lambda x: x.as_strided(shape, stride, offset) + 0  # noqa: B023, E731
        assert compiled(function)(x).tolist() == function(x).tolist(), (shape, stride, offset)
        torch._dynamo.reset()
    left = torch.compile(lambda x: x.t().as_strided((3,), (2,), 1) + 0, backend="tenon")
    assert left(x).tolist() == [1, 3, 5]


def test_sizes_that_depend_on_data():
    """Parts around an op whose size is not known run, the rest does in PyTorch."""
    x = torch.randn(8, requires_grad=True)
    function = lambda x: (x * x)[torch.nonzero(x > 0)[:, 0]].sin().sum()  # noqa: E731
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        found = torch.compile(function, backend="tenon")(x)
        found.backward()
    torch.testing.assert_close(found, function(x))
    torch.testing.assert_close(x.grad, torch.where(x > 0, 2 * x * (x * x).cos(), 0).detach())
    assert tenon_torch.counters.fallbacks


def test_masked_rows(compiled):
    """A row of attention that is masked as a whole is zeros, and so is its gradient."""
    x = torch.randn(1, 1, 3, 4, requires_grad=True)
    mask = torch.zeros(3, 3)
    mask[0] = -torch.inf
    function = lambda x, mask: F.scaled_dot_product_attention(x, x, x, attn_mask=mask)  # noqa: E731
    found, expected = compiled(function)(x, mask), function(x, mask)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(each.square().sum(), x)[0] for each in (found, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("of", [torch.float32, torch.int64, torch.uint8, torch.int8, torch.float16])
def test_greatest_and_least(of, compiled):
    """By value: equal elements may come in any order. A NaN of either sign is greater than every number."""
    x = torch.randint(-60, 60, (3, 200)).to(of)
    if of.is_floating_point:
        x[0, 5], x[1, 7], x[1, 9], x[2, 11], x[2, 12] = torch.nan, -torch.nan, torch.nan, torch.inf, -torch.inf
    for k in (1, 3, 150, 200):
        for function in (lambda x: torch.topk(x, k), lambda x: torch.topk(x, k, largest=False),  # noqa: B023
                         lambda x: torch.kthvalue(x, k, 1, keepdim=True)):  # noqa: B023
            found, expected = compiled(function)(x), function(x)
            torch.testing.assert_close(found.values, expected.values, rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(x.gather(1, found.indices), found.values, rtol=0, atol=0, equal_nan=True)
            torch._dynamo.reset()


@pytest.mark.parametrize("of", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.uint8, torch.int16, torch.int64])
@pytest.mark.parametrize("shape, dim", [((3, 131), 1), ((131, 3), 0), ((5, 9, 2), 1), ((3, 40), 0), ((4, 1), 1)])
def test_ranks(of, shape, dim, compiled):
    """Medians and elements of a rank far from both ends: of a sign bit too, of equal elements, infinities, zeros of both signs, NaNs."""
    if of.is_floating_point:
        x = torch.randn(shape).to(of)
        seldom = lambda value: torch.where(torch.rand(shape) < 0.2, value, x).to(of)  # noqa: E731
        given = [x, seldom(torch.nan), seldom(-torch.nan), seldom(-0.0), seldom(-torch.inf), torch.full(shape, torch.nan).to(of)]
    else:
        given = [torch.randint(torch.iinfo(of).min, torch.iinfo(of).max, shape).to(of), torch.randint(0, 3, shape).to(of)]
    rank = (shape[dim] + 1) // 2
    functions = [lambda x: torch.median(x, dim, keepdim=True), lambda x: torch.nanmedian(x, dim, keepdim=True),
                 lambda x: torch.kthvalue(x, rank, dim, keepdim=True), lambda x: (torch.median(x), torch.nanmedian(x))]
    for function in functions:
        torch._dynamo.reset()
        found_by = compiled(function)
        for x in given:
            found, expected = found_by(x), function(x)
            torch.testing.assert_close(found[0], expected[0], rtol=0, atol=0, equal_nan=True)
            at = x.gather(dim, found[1]) if found[0].dim() else found[1]
            torch.testing.assert_close(at, expected[0] if found[0].dim() else expected[1], rtol=0, atol=0, equal_nan=True)


def test_gradients_of_medians(compiled):
    for function in (lambda x: torch.median(x, 1).values, lambda x: torch.median(x)[None], lambda x: torch.kthvalue(x, 70, 1).values):
        equal_gradients(compiled, function, torch.randn(4, 201, requires_grad=True))


@pytest.mark.parametrize("size", [1, (3, 4), (5, 3), (13, 9)])
def test_adaptive_maximum_pools(size, compiled):
    """Windows of equal and of other sizes; of equal elements the first takes the gradient, of NaNs the last."""
    x = torch.randint(0, 3, (2, 3, 10, 9)).float()
    x[0, 0, 3, 3], x[0, 0, 3, 4], x[1, 1, 0, 0] = torch.nan, torch.nan, -torch.inf
    function = lambda x: F.adaptive_max_pool2d(x, size, return_indices=True)  # noqa: E731
    torch.testing.assert_close(compiled(function)(x), function(x), rtol=0, atol=0, equal_nan=True)
    torch._dynamo.reset()
    equal_gradients(compiled, lambda x: F.adaptive_max_pool2d(x, size), x.requires_grad_())


def test_signs_of_zero(compiled):
    x = torch.full((200,), -0.0)
    for function in (torch.median, torch.nanmedian, lambda x: torch.kthvalue(x, 100).values, lambda x: torch.mode(x).values):
        torch._dynamo.reset()
        assert torch.signbit(compiled(function)(x))


def test_most_frequent_elements(compiled):
    assert compiled(lambda x: torch.mode(x, 1).values)(torch.tensor([[1.0, 2, torch.nan, torch.nan, torch.nan]])).isnan()
    for x in (torch.randint(0, 5, (6, 50)).float(), torch.randint(-3, 3, (6, 50)), torch.rand(6, 9) > 0.5, torch.randn(3, 1)):
        torch._dynamo.reset()
        values, places = compiled(lambda x: torch.mode(x, 1, keepdim=True))(x)
        torch.testing.assert_close(values, torch.mode(x, 1, keepdim=True).values)
        assert torch.equal(x.gather(1, places), values)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_gradients_of_bags(mode, compiled):
    """Empty bags in between, before all and behind all."""
    weight, indices, offsets = torch.randn(9, 4, requires_grad=True), torch.randint(0, 9, (20,)), torch.tensor([0, 0, 3, 3, 17, 20, 20])
    function = lambda w, i, o: F.embedding_bag(i, w, o, mode=mode)  # noqa: E731
    expected, found = function(weight, indices, offsets), compiled(function)(weight, indices, offsets)
    torch.testing.assert_close(found, expected)
    by = torch.randn(expected.shape)
    torch.testing.assert_close(*(torch.autograd.grad((each * by).sum(), weight)[0] for each in (found, expected)))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_without_a_row(mode, compiled):
    weight = torch.randn(6, 3, requires_grad=True)
    nothing, offsets = torch.zeros(0, dtype=torch.int64), torch.tensor([0, 0])
    found = compiled(lambda w: F.embedding_bag(nothing, w, offsets, mode=mode))(weight)
    found.sum().backward()
    assert torch.equal(found, torch.zeros(2, 3)) and torch.equal(weight.grad, torch.zeros(6, 3))


def test_maximum_that_is_no_number(compiled):
    """Its gradient goes to the row that it comes from."""
    weight = torch.randn(6, 3)
    weight[5, 1:] = torch.nan
    weight.requires_grad_()
    compiled(lambda w: F.embedding_bag(torch.tensor([5, 2, 3]), w, torch.tensor([0]), mode="max"))(weight).nan_to_num().sum().backward()
    assert torch.equal(weight.grad[:, 1:], torch.zeros(6, 2)) and weight.grad[:, 0].sum() == 1
    compiled(lambda w: F.embedding_bag(torch.tensor([5, 2, 3]), w, torch.tensor([0]), mode="max"))(weight).sum().backward()
    assert weight.grad[5, 1:].tolist() == [1, 1] and not weight.grad[0].any()


@pytest.mark.parametrize("causal", [False, True])
def test_heads_of_keys_that_queries_share(causal, compiled):
    q, k, v = (torch.randn(2, heads, 5, 8, requires_grad=True) for heads in (6, 2, 2))
    function = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)  # noqa: E731
    found, expected = compiled(function)(q, k, v), function(q, k, v)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(each.square().sum(), (q, k, v)) for each in (found, expected)]
    for left, right in zip(*gradients):
        torch.testing.assert_close(left, right)


SORTED = torch.cat([torch.randn(90).sort()[0], torch.full((8,), 3.0), torch.tensor([torch.inf, torch.inf])])
CASES = {  # Found by comparing with eager mode.
    "variance of complex numbers": lambda: (lambda x: x.var(), (torch.randn(5, dtype=torch.complex64),)),
    "floats to short integers": lambda: (lambda x: (x.to(torch.uint8), x.to(torch.int8)), (torch.tensor([-1.0, 300.0, -129.5]),)),
    "a float in a sequence of integers": lambda: (lambda s: torch.searchsorted(s, 2.5), (torch.tensor([1, 2, 3]),)),
    "places in long sequences": lambda: (lambda s, v: (torch.searchsorted(s, v), torch.searchsorted(s, v, right=True, out_int32=True)),
                                         (SORTED, torch.cat([torch.randn(50), SORTED[20:60], torch.tensor([torch.inf, -torch.inf, torch.nan])]))),
    "places in sequences of a batch": lambda: (lambda s, v: (torch.searchsorted(s, v), torch.searchsorted(s, v, right=True)),
                                               (torch.randint(-40, 40, (2, 3, 129)).sort(-1)[0], torch.randint(-45, 45, (2, 3, 17)))),
    "places of numbers in a long sequence": lambda: (lambda s: (torch.searchsorted(s, 3), torch.bucketize(s, s[::2].contiguous())), (SORTED,)),
    "running extremes of NaN and equal values": lambda: (lambda x: (*torch.cummax(x, 1), *torch.cummin(x, 0)),
                                                         (torch.tensor([[1.0, 3, 3, 2, torch.nan, 7, torch.nan, 0], [-torch.inf] * 8, [2, 1, 1, 0, 0, 5, 5, 6]]),)),
    "running extremes of bytes and bools": lambda: (lambda x: (*torch.cummax(x, 1), *torch.cummin(x, 1), *torch.cummax(x > 4, 1)),
                                                    (torch.randint(0, 9, (3, 50), dtype=torch.uint8),)),
    "bags that begin behind the last index": lambda: (lambda i, w, o: F.embedding_bag(i, w, o, mode="sum"),
                                                      (torch.randint(0, 9, (20,)), torch.randn(9, 4), torch.tensor([0, 3, 3, 17, 20, 20]))),
    "common divisors": lambda: (lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)),
                                (torch.tensor([12, 18, -7, 0, 0, 2**40]), torch.tensor([8, -27, 21, 5, 0, 6]))),
    "common divisors of bytes": lambda: (torch.gcd, (torch.randint(-127, 127, (4, 50)).to(torch.int8), torch.randint(-127, 127, (50,)).to(torch.int8))),
    "histograms": lambda: (lambda x: (torch.histc(x, 8, -2, 2), torch.histc(x[3:], 5), torch.histc(x[3:4], 4), torch.histc(x[3:4] * 1e8, 5)),
                           (torch.cat([torch.tensor([torch.nan, torch.inf, -torch.inf, 2.0, -2.0]), torch.randn(300)]),)),
    "histograms with edges": lambda: (lambda x, w, e: (torch.histogram(x, 8, range=(-2.0, 2.0)).hist, torch.histogram(x, e, weight=w, density=True).hist,
                                                       torch.histogram(x[:1] * 0 + 3, 4), torch.histogramdd(x.reshape(-1, 3), [2, 3, 4]).hist),
                                      (torch.randn(300), torch.rand(300), torch.randn(9).sort()[0])),
    "places of what is not zero": lambda: (lambda x: (torch.nonzero_static(x, size=5), torch.nonzero_static(x, size=60, fill_value=7),
                                                      torch.nonzero_static(x[0, 0], size=2)), (torch.randint(0, 3, (4, 5)),)),
    "bilinear layers": lambda: (F.bilinear, (torch.randn(4, 3, 5), torch.randn(4, 3, 7), torch.randn(6, 5, 7), torch.randn(6))),
    "pools of one and of three dimensions": lambda: (lambda x: (F.adaptive_max_pool1d(x[0, 0], 4), F.adaptive_max_pool3d(x, (2, 3, 4))),
                                                     (torch.randn(2, 3, 5, 7, 9),)),
    "hypot of infinity and NaN": lambda: (torch.hypot, (torch.tensor(torch.inf), torch.tensor(torch.nan))),
    "digamma at zero": lambda: (torch.digamma, (torch.tensor([0.0, -0.0, 1.0]),)),
    "any over no dimension": lambda: (lambda x: torch.any(x, dim=()), (torch.tensor([0.0, 2.0]),)),
}


RESIZES = [{"scale_factor": 2}, {"scale_factor": 1.7}, {"size": (5, 31)}, {"scale_factor": (3, 0.5), "recompute_scale_factor": True}]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("words", RESIZES, ids=str)
@pytest.mark.parametrize("corners", [None, True])
def test_gradients_of_interpolation(mode, words, corners, compiled):
    """By few elements a row of each matrix, or by all."""
    if corners and mode.startswith("nearest"):
        pytest.skip("has no corners")
    x = torch.randn(2, 3, 14, 19, requires_grad=True)
    function = lambda x: F.interpolate(x, mode=mode, align_corners=corners, **words)  # noqa: E731
    expected, found = function(x), compiled(function)(x)
    torch.testing.assert_close(found, expected)
    weight = torch.randn(expected.shape)
    torch.testing.assert_close(*(torch.autograd.grad((each * weight).sum(), x)[0] for each in (found, expected)), atol=1e-5, rtol=1e-5)


def equal_gradients(compiled, function, x, **tolerance):
    """Of a compiled function and in eager mode, by x."""
    expected, found = function(x), compiled(function)(x)
    torch.testing.assert_close(found, expected, equal_nan=True, **tolerance)
    weight = torch.linspace(-1, 1, expected.numel(), dtype=expected.dtype).reshape(expected.shape)
    torch.testing.assert_close(*(torch.autograd.grad((each * weight).sum(), x)[0] for each in (found, expected)), equal_nan=True, **tolerance)


def test_interpolation_of_any_batch():
    """The second shape makes sizes symbols, of which PyTorch's own lookups are made."""
    function = lambda x: F.interpolate(x, scale_factor=2, mode="bilinear") * 2  # noqa: E731
    found = torch.compile(function, backend="tenon")
    for shape in ((5, 3, 8, 8), (6, 3, 8, 8), (7, 3, 9, 10)):
        x = torch.randn(shape, requires_grad=True)
        torch.testing.assert_close(*(torch.autograd.grad(f(x).square().sum(), x)[0] for f in (found, function)), rtol=1e-5, atol=1e-5)


def test_interpolation_within_a_transform(compiled):
    function = torch.func.grad(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear").square().sum())
    x = torch.randn(2, 3, 5, 6)
    torch.testing.assert_close(torch.compile(function, backend="tenon")(x), function(x), rtol=1e-5, atol=1e-5)


def test_interpolation_of_long_rows(compiled):
    """Matrices are kept by their elements: 20,000 x 40,000 of them would be 6.4 GB."""
    for mode in ("linear", "nearest"):
        equal_gradients(compiled, lambda x: F.interpolate(x, scale_factor=2, mode=mode), torch.randn(1, 2, 20_000, requires_grad=True), rtol=1e-4, atol=1e-4)  # noqa: B023
    x = torch.randn(1, 1, 3000, 4, requires_grad=True)
    equal_gradients(compiled, lambda x: F.interpolate(x, (40, 90), mode="bicubic", antialias=True), x, rtol=1e-4, atol=1e-4)
    equal_gradients(compiled, lambda x: F.adaptive_avg_pool1d(x, 700), torch.randn(1, 2, 9001, requires_grad=True), rtol=1e-5, atol=1e-5)


def test_infinity_in_resizes(compiled):
    """One infinite element leaves all results that do not take it alone, and an infinite gradient likewise."""
    x = torch.ones(1, 1, 12, 15)
    x[0, 0, 5, 6] = torch.inf
    for mode in ("bilinear", "bicubic"):
        function = lambda x: F.interpolate(x, (7, 9), mode=mode, antialias=True)  # noqa: B023, E731
        torch.testing.assert_close(compiled(function)(x), function(x), rtol=1e-5, atol=1e-5, equal_nan=True)
    torch._dynamo.reset()
    function = lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest")  # noqa: E731
    x = torch.ones(1, 1, 6, 7, requires_grad=True)
    expected, found = function(x), compiled(function)(x)
    weight = torch.where(torch.arange(expected.shape[-1]) == 3, torch.inf, 1.0)
    torch.testing.assert_close(*(torch.autograd.grad((each * weight).sum(), x)[0] for each in (found, expected)), equal_nan=True)


def test_resizes_of_other_types():
    """Integers without aliasing are left to PyTorch, and f64 has weights of f64."""
    function = lambda x: F.interpolate(x, (5, 6), mode="bilinear", antialias=True)  # noqa: E731
    image = torch.full((1, 3, 9, 9), 200, dtype=torch.uint8)
    assert torch.equal(torch.compile(function, backend="tenon")(image), function(image))
    wide = torch.randn(1, 3, 9, 9, dtype=torch.float64)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="tenon")(wide), function(wide), rtol=1e-13, atol=1e-13)
    one_row = lambda x: F.interpolate(x, (1, 4), mode="bicubic", antialias=True, align_corners=True)  # noqa: E731
    x = torch.randn(1, 1, 6, 5)
    torch.testing.assert_close(torch.compile(one_row, backend="tenon")(x), one_row(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_samplers_at_the_border(padding, corners, compiled):
    """The grid that changes nothing: its places at the border have no gradient."""
    x = torch.randn(1, 2, 5, 6)
    grid = F.affine_grid(torch.eye(2, 3)[None], (1, 2, 5, 6), align_corners=corners).detach().requires_grad_()
    equal_gradients(compiled, lambda grid: F.grid_sample(x, grid, padding_mode=padding, align_corners=corners), grid, rtol=1e-4, atol=1e-4)


def test_empty_batches(compiled):
    x, grid = torch.randn(0, 3, 5, 6), torch.randn(0, 4, 4, 2, requires_grad=True)
    found = compiled(lambda x, grid: F.grid_sample(x, grid, align_corners=False))(x, grid)
    assert found.shape == (0, 3, 4, 4)
    found.sum().backward()
    assert grid.grad.shape == grid.shape
    places = compiled(torch.searchsorted)(torch.randn(0, 40), torch.randn(0, 3))
    assert places.shape == (0, 3) and places.dtype == torch.int64


# Each two of a mode, a padding and a choice of corners meet; PyTorch takes seconds to trace one.
SAMPLERS = [("bilinear", "zeros", False), ("bilinear", "border", True), ("bilinear", "reflection", False), ("nearest", "zeros", True),
            ("nearest", "border", False), ("nearest", "reflection", True), ("bicubic", "zeros", False), ("bicubic", "border", True),
            ("bicubic", "reflection", False)]


@pytest.mark.parametrize("mode, padding, corners", SAMPLERS)
def test_samplers(mode, padding, corners, compiled):
    for size, places in (((5, 7), (6, 4)), ((1, 4), (6, 4)), ((3, 5, 2), (2, 3, 4))):
        if mode == "bicubic" and len(size) == 3:
            continue
        torch._dynamo.reset()
        x, grid = torch.randn(2, 3, *size), torch.randn(2, *places, len(size)) * 1.3
        function = lambda x, grid: F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners)  # noqa: E731
        x.requires_grad_()
        grid.requires_grad_(mode != "nearest")
        expected, found = function(x, grid), compiled(function)(x, grid)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        weight, of = torch.randn(expected.shape), [each for each in (x, grid) if each.requires_grad]
        for left, right in zip(*(torch.autograd.grad((each * weight).sum(), of) for each in (found, expected))):
            torch.testing.assert_close(left, right, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("channels, places", [(3, (6, 4)), (16, (6, 4)), (16, (1, 2)), (0, (6, 4))])
def test_memory_of_samplers(channels, places, compiled):
    """Results and gradients are row-major for few and many channels and places, and also for none."""
    x, grid = torch.randn(2, channels, 5, 7, requires_grad=True), torch.rand(2, *places, 2) * 2.2 - 1.1
    function = lambda x: F.grid_sample(x, grid, align_corners=False)  # noqa: E731
    expected, found = function(x), compiled(function)(x)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert found.is_contiguous() and (channels == 0 or found.stride() == expected.stride())
    weight = torch.randn(expected.shape)
    ours, theirs = (torch.autograd.grad((each * weight).sum(), x)[0] for each in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert ours.is_contiguous() and (channels == 0 or ours.stride() == theirs.stride())


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_samplers_at_no_number(mode, padding, compiled):
    """A coordinate that is NaN is that of the first element."""
    x, grid = torch.randn(1, 2, 5, 6), torch.rand(1, 3, 4, 2) * 2 - 1
    grid[0, 0, 0, 0], grid[0, 1, 2, 1] = torch.nan, torch.nan
    function = lambda x, grid: F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=False)  # noqa: E731
    torch.testing.assert_close(compiled(function)(x, grid), function(x, grid), equal_nan=True)


def test_gradients_of_samplers_by_their_op(compiled):
    """torch.grid_sampler without torch.nn.functional, and within a layer that is computed again."""
    grid = torch.rand(1, 3, 4, 2) * 2 - 1
    x = torch.randn(1, 2, 5, 6, requires_grad=True)
    equal_gradients(compiled, lambda x: torch.grid_sampler(x, grid, 0, 0, False), x)
    torch._dynamo.reset()
    equal_gradients(compiled, lambda x: checkpoint(lambda x: torch.grid_sampler(x * 2, grid, 0, 1, True), x, use_reentrant=False), x)
    assert not tenon_torch.counters.fallbacks


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_resizes(mode, compiled):
    x = torch.randn(2, 3, 24, 31, requires_grad=True)
    for words in ({"size": (9, 40)}, {"scale_factor": 0.3}):
        function = lambda x: F.interpolate(x, mode=mode, antialias=True, **words)  # noqa: E731
        expected, found = function(x), compiled(function)(x)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        weight = torch.randn(expected.shape)
        torch.testing.assert_close(*(torch.autograd.grad((each * weight).sum(), x)[0] for each in (found, expected)), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
@pytest.mark.parametrize("kernel", [2, (3, 4), (7, 9)])
def test_gradients_of_windows_side_by_side(pool, kernel, compiled):
    """With equal elements, of which the first takes the gradient, NaNs, of which the last one does, and elements behind the last window."""
    x = torch.randint(0, 3, (2, 3, 7, 9)).float()
    x[0, 0, 1, 2], x[0, 0, 1, 3], x[1, 0, 0, 1], x[1, 0, 1, 0], x[1, 1, 3, 3] = torch.nan, torch.nan, torch.nan, torch.nan, -torch.inf
    x.requires_grad_()
    function = lambda x: pool(x, kernel)  # noqa: E731
    expected, found = function(x), compiled(function)(x)
    torch.testing.assert_close(found, expected, equal_nan=True)
    weight = torch.randn(expected.shape)
    torch.testing.assert_close(*(torch.autograd.grad((each * weight).sum(), x)[0] for each in (found, expected)), equal_nan=True)


def test_pooled_padding_takes_no_gradient(compiled):
    """Where all elements of a window are -inf, the first of them takes the gradient, and not the padding."""
    x = torch.full((1, 1, 4, 4), float("-inf"), requires_grad=True)
    pool = lambda x: F.max_pool2d(x, 3, 2, 1)  # noqa: E731
    expected, = torch.autograd.grad(pool(x).sum(), x)
    found, = torch.autograd.grad(compiled(pool)(x).sum(), x)
    assert expected.sum() == 4
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", CASES)
def test_against_eager_mode(name, compiled):
    function, arguments = CASES[name]()
    torch.testing.assert_close(compiled(function)(*arguments), function(*arguments), equal_nan=True)


def test_export_names_what_it_lacks():
    class Eigenvalues(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x)

    with pytest.raises(tenon_torch.Unsupported, match="aten.*linalg_eig"):
        text_of(torch.export.export(Eigenvalues(), (torch.randn(3, 3),)))
