"""Factors of matrices, and what is made of them: determinants, solutions, inverses, exponentials, eigenvalues, with their gradients."""

import pytest
import torch

import tenon_torch

# Of one panel of columns, of several, of several and a part of one, of halves.
SHAPES = [(1, 1), (5, 5), (32, 32), (64, 64), (70, 70), (7, 4), (4, 7), (80, 33), (33, 80), (300, 280)]
SQUARE = [(5, 5), (40, 40)]
TYPES = [torch.float64, torch.complex128]


@pytest.fixture(autouse=True)
def nothing_on_the_cpu(monkeypatch):
    monkeypatch.setenv("TENON_TORCH_FALLBACK", "error")


def matrices(shape, dtype, batch=(2,)) -> torch.Tensor:
    return torch.randn(*batch, *shape, dtype=dtype)


def both(function, *tensors) -> None:
    """The results of the function and the gradients are those of the CPU, where it is compiled and where it runs on the device."""
    found = {}
    for kind in ("eager", "compiled", "device", "compiled on the device"):
        given = [each.clone().to("tenon" if "device" in kind else "cpu").requires_grad_(each.is_floating_point() or each.is_complex()) for each in tensors]
        calls = tenon_torch.counters.calls
        called = torch.compile(function, backend="tenon", dynamic=False) if "compiled" in kind else function
        results = [each for each in called(*given) if each.numel() > 0]
        loss = sum((each.real * torch.arange(1.0, 1 + each.shape[-1], dtype=each.real.dtype, device=each.device)).sum()
                   for each in results if each.requires_grad)
        loss.backward()
        found[kind] = [each.detach().cpu() for each in results] + [each.grad.cpu() for each in given if each.requires_grad]
        assert (tenon_torch.counters.calls > calls) == (kind != "eager")
    torch._dynamo.reset()
    for kind in list(found)[1:]:
        assert len(found[kind]) == len(found["eager"])
        for got, wanted in zip(found[kind], found["eager"]):
            torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors(shape, dtype):
    x = matrices(shape, dtype).to("tenon")
    lu, pivots = torch.linalg.lu_factor(x)
    expected = torch.linalg.lu_factor(x.cpu())
    torch.testing.assert_close(lu.cpu(), expected[0])
    assert torch.equal(pivots.cpu(), expected[1])
    p, lower, upper = torch.lu_unpack(lu, pivots)
    torch.testing.assert_close((p @ lower @ upper).cpu(), x.cpu())
    for mode in ("reduced", "complete", "r"):
        for got, wanted in zip(torch.linalg.qr(x, mode), torch.linalg.qr(x.cpu(), mode)):
            torch.testing.assert_close(got.cpu(), wanted)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_what_is_made_of_factors(shape, dtype):
    x = matrices(shape, dtype) / shape[0] ** 0.5 + torch.eye(shape[0], dtype=dtype)
    right = matrices((shape[0], 3), dtype)
    both(lambda x, y: (torch.linalg.solve(x, y), torch.linalg.solve(x, y.mT, left=False)), x, right)
    both(lambda x: (torch.linalg.inv(x), torch.linalg.det(x).abs()[None], torch.linalg.slogdet(x)[1][None], torch.linalg.matrix_exp(x)), x)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_gradients_of_factors(dtype):
    both(lambda x: torch.linalg.lu(x), matrices((6, 6), dtype))
    both(lambda x: torch.linalg.qr(x), matrices((7, 4), dtype))


@pytest.mark.parametrize("batch", [(), (2,), (40,)], ids=str)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_eigenvalues_and_singular_values(dtype, batch):
    """Vectors are determined up to signs: what is made of them is compared."""
    def of_hermitian(x):
        x = x @ x.mH
        values, vectors = torch.linalg.eigh(x)
        return values, (vectors * values.exp().to(x.dtype).unsqueeze(-2)) @ vectors.mH, torch.linalg.eigvalsh(x, UPLO="U")

    def of_any(x):
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        return s, (u * s.sqrt().to(x.dtype).unsqueeze(-2)) @ vh, torch.linalg.svdvals(x), torch.linalg.pinv(x)

    both(of_hermitian, matrices((5, 5), dtype, batch) / 3)
    for shape in ((6, 4), (3, 5)):
        x = matrices(shape, dtype, batch)
        if not dtype.is_complex:
            both(of_any, x)
            continue
        # PyTorch looks at elements before it gives the gradient by complex vectors, so that no graph has it.
        for found in (of_any(x.to("tenon")), torch.compile(of_any, backend="tenon")(x)):
            torch.testing.assert_close([each.cpu() for each in found], list(of_any(x)), rtol=1e-9, atol=1e-9)


def test_all_vectors_are_orthonormal():
    """Those of singular values that are zero too, and those behind them."""
    x = torch.ones(7, 4, dtype=torch.float64)
    u, s, vh = (each.cpu() for each in torch.linalg.svd(x.to("tenon")))
    torch.testing.assert_close(u.mT @ u, torch.eye(7, dtype=torch.float64))
    torch.testing.assert_close(vh @ vh.mT, torch.eye(4, dtype=torch.float64))
    torch.testing.assert_close((u[:, :4] * s) @ vh, x)


def test_matrices_of_little_rank():
    for x in (torch.ones(21, 16), torch.tensor([[1.0, 2], [3, 4]]).repeat(7, 7), torch.randn(30, 2) @ torch.randn(2, 20)):
        q, _ = torch.linalg.qr(x.to("tenon"))
        torch.testing.assert_close((q.mT @ q).cpu(), torch.eye(q.shape[-1]), rtol=0, atol=1e-5)
        torch.testing.assert_close(torch.linalg.svdvals(x.to("tenon")).cpu(), torch.linalg.svdvals(x), rtol=1e-5, atol=1e-5 * float(x.norm()))
        assert torch.linalg.matrix_rank(x.to("tenon")).item() == torch.linalg.matrix_rank(x).item()


def test_ranks_norms_and_inverses_by_singular_values():
    x = matrices((6, 3), torch.float64) @ matrices((3, 5), torch.float64)
    on_device = x.to("tenon")
    assert torch.linalg.matrix_rank(on_device).tolist() == [3, 3]
    for function in (torch.linalg.pinv, lambda x: torch.linalg.pinv(x, rtol=1e-5), lambda x: torch.linalg.pinv(x @ x.mT, hermitian=True, atol=1e-7),
                     lambda x: torch.linalg.matrix_norm(x, "nuc"), lambda x: torch.linalg.matrix_norm(x, 2), lambda x: torch.linalg.cond(x[:, :3, :3] + 1)):
        torch.testing.assert_close(function(on_device).cpu(), function(x), rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(torch.compile(function, backend="tenon")(x), function(x), rtol=1e-6, atol=1e-9)


def test_determinants_of_matrices_that_lie_otherwise():
    """PyTorch factors a row-major matrix as its transpose, which the gradient relies on."""
    x = matrices((5, 5), torch.float64)
    both(lambda x: (torch.linalg.det(x)[None], torch.linalg.det(x.mT)[None], torch.linalg.slogdet(x.mT.contiguous())[1][None]), x)


def test_products_with_reflections():
    x = matrices((7, 4), torch.complex128, ()).to("tenon")
    factors, taus = torch.geqrf(x)
    for left in (True, False):
        other = matrices((7, 3) if left else (3, 7), torch.complex128, ())
        for transpose in (False, True):
            expected = torch.ormqr(factors.cpu(), taus.cpu(), other, left, transpose)
            torch.testing.assert_close(torch.ormqr(factors, taus, other.to("tenon"), left, transpose).cpu(), expected)


def test_singular_matrices():
    """Eager mode says so; `info` is the column."""
    x = torch.tensor([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]], dtype=torch.float64)
    for device in ("cpu", "tenon"):
        assert torch.linalg.lu_factor_ex(x.to(device)).info.item() == 3
        with pytest.raises(torch.linalg.LinAlgError):
            torch.linalg.inv(x.to(device))
    assert torch.linalg.det(x.to("tenon")).item() == 0
    assert abs(torch.linalg.det(x).item()) < 1e-14  # PyTorch's library rounds otherwise on some processors.


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_exponentials(size):
    x = matrices((9, 9), torch.float64) * torch.tensor([size, 0])[:, None, None]
    found = torch.linalg.matrix_exp(x.to("tenon")).cpu()
    torch.testing.assert_close(found, torch.linalg.matrix_exp(x), rtol=1e-11, atol=1e-11 * found.abs().max().item())
    assert torch.equal(found[1], torch.eye(9, dtype=torch.float64))


def checked(x, y, z):
    return torch.linalg.inv(x) @ torch.linalg.cholesky(x @ x.mT) + y, z * 2


@pytest.mark.parametrize("device", ["cpu", "tenon"])
def test_compiled_checks_have_no_break(device):
    """`inv` has a check that PyTorch orders by tokens; it is in no program."""
    before = tenon_torch.counters.graphs
    compiled = torch.compile(checked, backend="tenon", fullgraph=True)
    given = torch.randn(4, 4) + 4 * torch.eye(4), torch.randn(4), torch.arange(3)
    for _ in range(2):
        for found, expected in zip(compiled(*(each.to(device) for each in given)), checked(*given)):
            torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    assert tenon_torch.counters.graphs == before + 1 and not tenon_torch.counters.fallbacks


@pytest.mark.parametrize("device", ["cpu", "tenon"])
def test_checks_beside_ops_of_pytorch(device, monkeypatch):
    """A graph that is cut hands tokens from part to part."""
    monkeypatch.setenv("TENON_TORCH_FALLBACK", "torch")

    def function(x):
        return torch.linalg.inv(torch.linalg.svdvals(torch.linalg.inv(x)).diag() + x)

    x = torch.randn(4, 4) + 4 * torch.eye(4)
    found = torch.compile(function, backend="tenon")(x.to(device))
    torch.testing.assert_close(found.cpu(), function(x), rtol=1e-4, atol=1e-5)


def test_matrices_without_columns():
    for shape in ((3, 0), (2, 3, 0), (0, 3), (0, 3, 3)):
        x = torch.randn(shape)
        for function in (torch.linalg.lu, torch.linalg.qr, lambda x: torch.linalg.qr(x, "complete"), lambda x: torch.lu_unpack(*torch.linalg.lu_factor(x))):
            for found, expected in zip(function(x.to("tenon")), function(x)):
                torch.testing.assert_close(found.cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.bfloat16], ids=str)
def test_types_that_lapack_lacks(dtype, monkeypatch):
    """PyTorch's own error."""
    monkeypatch.setenv("TENON_TORCH_FALLBACK", "torch")
    for function in (torch.linalg.lu_factor, torch.linalg.lu, torch.linalg.qr, torch.linalg.det):
        with pytest.raises(RuntimeError):
            function(torch.eye(2).to(dtype).to("tenon"))


def test_errors_that_are_asked_for(monkeypatch):
    monkeypatch.setenv("TENON_TORCH_FALLBACK", "torch")
    for function in (torch.linalg.lu_factor_ex, torch.linalg.inv_ex, torch.linalg.cholesky_ex):
        with pytest.raises(RuntimeError):
            function(torch.zeros(3, 3, device="tenon"), check_errors=True)


def test_reflections_of_tiny_numbers():
    x = (torch.randn(4, 4) * 1e-39).to(torch.complex64) * (1 + 2j)
    for scale in (1, 1e30, 1e70):
        given = x.to(torch.complex128) * scale if scale > 1e38 else x * scale
        q, r = torch.linalg.qr(given.to("tenon"))
        assert torch.isfinite(torch.view_as_real(q)).all() and torch.isfinite(torch.view_as_real(r)).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_triangle_that_is_read(dtype, compiled):
    """Of a Cholesky factor the triangle that is asked for is read, whatever the other has."""
    square = matrices((6, 6), dtype)
    whole = square @ square.mH + torch.eye(6, dtype=dtype)
    for upper in (False, True):
        half = (whole.triu() if upper else whole.tril()) + (whole.new_full((6, 6), 7).tril(-1) if upper else whole.new_full((6, 6), 7).triu(1))
        for function in (torch.cholesky, lambda x, upper: torch.linalg.cholesky_ex(x, upper=upper)[0]):
            found = compiled(lambda x: function(x, upper=upper))(half)
            torch.testing.assert_close(found, torch.linalg.cholesky(whole, upper=upper))
            torch._dynamo.reset()
