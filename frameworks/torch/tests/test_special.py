"""Special functions against mpmath, and where PyTorch defines what mpmath does not against eager mode."""

import math

import mpmath
import pytest
import torch

import tenon_torch

special = torch.special
mp = mpmath.mp

# The function, mpmath's, from where to where it is compared, and by how many units in the last place of max(1, the value) it may be off.
FUNCTIONS = {
    "i0": (torch.i0, lambda x: mp.besseli(0, x), -60, 60, 6),
    "i0e": (special.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), -60, 60, 6),
    "i1": (special.i1, lambda x: mp.besseli(1, x), -60, 60, 8),
    "bessel_j0": (special.bessel_j0, lambda x: mp.besselj(0, x), -60, 60, 4),
    "bessel_j1": (special.bessel_j1, lambda x: mp.besselj(1, x), -60, 60, 4),
    "bessel_y0": (special.bessel_y0, lambda x: mp.bessely(0, x), 0.01, 60, 6),
    "bessel_y1": (special.bessel_y1, lambda x: mp.bessely(1, x), 0.01, 60, 6),
    "modified_bessel_i0": (special.modified_bessel_i0, lambda x: mp.besseli(0, x), -60, 60, 6),
    "modified_bessel_i1": (special.modified_bessel_i1, lambda x: mp.besseli(1, x), -60, 60, 8),
    "modified_bessel_k0": (special.modified_bessel_k0, lambda x: mp.besselk(0, x), 0.01, 20, 4),
    "modified_bessel_k1": (special.modified_bessel_k1, lambda x: mp.besselk(1, x), 0.01, 20, 4),
    "scaled_modified_bessel_k0": (special.scaled_modified_bessel_k0, lambda x: mp.besselk(0, x) * mp.exp(x), 0.01, 60, 6),
    "scaled_modified_bessel_k1": (special.scaled_modified_bessel_k1, lambda x: mp.besselk(1, x) * mp.exp(x), 0.01, 60, 6),
    "airy_ai": (special.airy_ai, mp.airyai, -12, 12, 60),
    "spherical_bessel_j0": (special.spherical_bessel_j0, lambda x: mp.sin(x) / x, -60, 60, 4),
    "erfcx": (special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), -9, 60, 8),
    "log_ndtr": (special.log_ndtr, lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), -60, 8, 8),
    "ndtri": (special.ndtri, lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), 1e-6, 1, 6),
}


def off(found: torch.Tensor, exact: list, least=1.0) -> float:
    """By how many units in the last place of max(least, the value) the worst element differs; an infinity must be one."""
    info, worst = torch.finfo(found.dtype), 0.0
    for got, value in zip(found.tolist(), exact):
        if abs(value) > info.max:
            assert math.isinf(got)
        else:
            worst = max(worst, float(abs(mp.mpf(got) - value) / max(least, abs(value)) / info.eps)) if math.isfinite(got) else math.inf
    return worst


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name, dtype, compiled):
    function, exact, low, high, ulp = FUNCTIONS[name]
    x = (low + (high - low) * torch.rand(16, dtype=torch.float64)).to(dtype)
    x = torch.cat([x, x / 16 if low < 0 or high > 1 else x]).clamp(min=low)
    found = compiled(function)(x)
    with mpmath.workdps(40):
        assert off(found, [exact(mp.mpf(each)) for each in x.tolist()]) <= ulp
    assert tenon_torch.counters.calls == 1


LIMITS = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -3.0, 9.0, 30.0, -30.0, 200.0, -200.0, 1e10, -1e10, 1e30, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("name", [each for each in FUNCTIONS if each not in ("i0", "i1", "modified_bessel_i0", "modified_bessel_i1")])
def test_limits(name, compiled):
    """Where eager mode is finite, infinite or no number, so is it compiled. Beyond 1e4 waves of f32 are those of rounded angles there."""
    x = LIMITS.double()
    if name.startswith(("bessel", "spherical", "airy")):
        x = x[(x.abs() < 1e4) | ~x.isfinite()]
        x = x[x.isfinite()] if "_y" in name or "bessel_j" in name[:8] else x  # Eager mode's waves have no limit.
    expected, found = FUNCTIONS[name][0](x), compiled(FUNCTIONS[name][0])(x)
    assert torch.equal(found.isnan(), expected.isnan()) and torch.equal(found.isinf(), expected.isinf())
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_small_numbers_of_the_normal_distribution(compiled):
    """Its tail, where 1 - p is 1, and its logarithm, where p is 0."""
    p = torch.tensor([1e-300, 1e-100, 1e-30, 1e-16, 1e-8], dtype=torch.float64)
    x = compiled(special.ndtri)(p)
    back = compiled(lambda x: torch.exp(special.log_ndtr(x)))(x)
    torch.testing.assert_close(back, p, rtol=1e-11, atol=0)


GAMMAS = {  # a and x: of the series of powers, of the sum and the fraction, of the integral, and of far tails.
    "tiny": (lambda u, v: (3 * u, 1.1 * v), 12), "tiny a": (lambda u, v: (torch.exp(-40 * u), torch.exp(-20 * v)), 12),
    "small": (lambda u, v: (10 * u, 20 * v), 40), "large": (lambda u, v: (200 + 5000 * u, (200 + 5000 * u) * (0.8 + 0.4 * v)), 200),
    "near": (lambda u, v: (t := torch.exp(6 + 6 * u), t + 3 * t.sqrt() * (v - 0.5)), 100),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
def test_incomplete_gamma(dtype, compiled):
    """Relative to P and to Q, whichever is small: eager mode loses Q of small a, and half its digits of large ones."""
    both = compiled(lambda a, x: (special.gammainc(a, x), special.gammaincc(a, x)))
    for places, ulp in GAMMAS.values():
        a, x = (each.to(dtype) for each in places(torch.rand(24, dtype=torch.float64), torch.rand(24, dtype=torch.float64)))
        p, q = both(a, x)
        with mpmath.workdps(50):
            for found, bounds in ((p, lambda x: (0, x)), (q, lambda x: (x, mp.inf))):
                exact = [mp.gammainc(mp.mpf(i), *bounds(mp.mpf(k)), regularized=True) for i, k in zip(a.tolist(), x.tolist())]
                assert off(found, exact, least=1e-12) <= ulp
    assert tenon_torch.counters.calls == len(GAMMAS)


def test_limits_of_incomplete_gamma(compiled):
    """As in eager mode; no number gives none, where that says 0 or 1 beside an infinity or 0."""
    values = torch.tensor([0.0, 1.0, -1.0, 300.0, math.inf])
    a, x = values[:, None], values
    for function in (special.gammainc, special.gammaincc):
        run = compiled(function)
        torch.testing.assert_close(run(a, x), function(a, x), rtol=1e-5, atol=1e-6, equal_nan=True)
    assert run(torch.tensor([math.nan, 1.0]), torch.tensor([1.0, math.nan])).isnan().all()
    torch.testing.assert_close(run(torch.tensor(300.0), torch.tensor(290.0)), special.gammaincc(torch.tensor(300.0), torch.tensor(290.0)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_types(dtype, compiled):
    """Results are of the type that eager mode gives; the short floats are computed in f32, not in themselves."""
    x = torch.arange(1, 9).to(dtype)
    for function in (torch.i0, special.i0e, special.log_ndtr, special.erfcx, lambda x: torch.igamma(x.float(), x.float()).to(torch.float64)):
        try:
            expected = function(x)
        except (RuntimeError, NotImplementedError):
            continue  # Eager mode has it of wider floats alone.
        torch.testing.assert_close(compiled(function)(x), expected, rtol=2e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-6)


POLYNOMIALS = {
    "chebyshev_polynomial_t": lambda n, x: mp.chebyt(n, x), "chebyshev_polynomial_u": lambda n, x: mp.chebyu(n, x),
    "chebyshev_polynomial_v": lambda n, x: mp.chebyu(n, x) - (mp.chebyu(n - 1, x) if n else 0),
    "chebyshev_polynomial_w": lambda n, x: mp.chebyu(n, x) + (mp.chebyu(n - 1, x) if n else 0),
    "shifted_chebyshev_polynomial_t": lambda n, x: mp.chebyt(n, 2 * x - 1), "shifted_chebyshev_polynomial_u": lambda n, x: mp.chebyu(n, 2 * x - 1),
    "hermite_polynomial_h": lambda n, x: mp.hermite(n, x), "hermite_polynomial_he": lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.mpf(2) ** (mp.mpf(n) / 2),
    "laguerre_polynomial_l": lambda n, x: mp.laguerre(n, 0, x), "legendre_polynomial_p": lambda n, x: mp.legendre(n, x),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomial(name, compiled):
    """Of all degrees at once, of one, and of one x."""
    function, x = getattr(special, name), (torch.rand(7, dtype=torch.float64) * 2.2 - 1.1)[:, None]
    degrees = [0, 1, 2, 3, 7, 12, 30]
    found = compiled(function)(x, torch.tensor(degrees, dtype=torch.float64))
    with mpmath.workdps(40):
        exact = [[float(POLYNOMIALS[name](n, mp.mpf(each))) for n in degrees] for each in x.flatten().tolist()]
    torch.testing.assert_close(found, torch.tensor(exact, dtype=torch.float64), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(compiled(lambda x: function(x, 12))(x), found[:, 5:6])
    torch.testing.assert_close(compiled(lambda n: function(0.5, n))(torch.tensor([5, 2])), function(0.5, torch.tensor([5, 2])))
    assert torch.equal(compiled(function)(x, torch.full_like(x, -2)), torch.zeros_like(x))


@pytest.mark.parametrize("name", ["chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
                                  "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "laguerre_polynomial_l", "legendre_polynomial_p"])
def test_great_degrees_end(name, compiled):
    """What is no degree gives 0; degrees beyond 2^24, where a count in f32 would stop, are known at the ends of the interval, and of
    Hermite's no numbers."""
    ends = {"laguerre_polynomial_l": (0.0, 0.0), "shifted_chebyshev_polynomial_w": (0.0, 1.0)}.get(name, (-1.0, 1.0))
    x, n = torch.tensor([0.5, 0.5, 0.5, *ends, *ends]), torch.tensor([math.inf, math.nan, -3.0, 3e7, 1e8, 5.0, 4.0])
    function = getattr(special, name)
    torch.testing.assert_close(compiled(function)(x, n), function(x, n), equal_nan=True)


def test_refusals(compiled):
    """Integers have no incomplete gamma function, complex numbers none of these: as in eager mode, and not of their real parts."""
    one = torch.tensor([1])
    for function, given in ((torch.igamma, (one, one)), (torch.i0, (one + 1j,)), (special.legendre_polynomial_p, (one + 1j, one))):
        with pytest.raises(tenon_torch.Unsupported):
            compiled(function)(*given)


def test_edges(compiled):
    """The least number has a logarithm; -0 keeps its sign; a type is that of what is given; large a have their digits in f32 too."""
    torch.testing.assert_close(compiled(special.modified_bessel_k0)(torch.tensor([1e-45])), torch.tensor([103.3949]))
    assert compiled(special.bessel_j1)(torch.tensor([-0.0])).signbit().all()
    assert compiled(special.legendre_polynomial_p)(torch.ones(2).half(), torch.ones(2).half()).dtype == torch.float16
    p = compiled(special.gammainc)(torch.tensor([40004804.0]), torch.tensor([39997408.0]))
    torch.testing.assert_close(p, torch.tensor([0.12112942]), rtol=1e-6, atol=0)


@pytest.mark.parametrize("function", [torch.i0, special.i0e, special.i1, special.erfcx, special.log_ndtr, lambda x: special.ndtri(torch.sigmoid(x)),
                                      lambda x: torch.igamma(torch.tensor(2.5, dtype=torch.float64), x.abs() + 0.1)])
def test_gradients(function, compiled):
    x = torch.randn(20, dtype=torch.float64, requires_grad=True)
    found, expected = (torch.autograd.grad(each(x).square().sum(), x)[0] for each in (compiled(function), function))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_on_the_device(monkeypatch):
    """In eager mode on torch.device("tenon"), nothing left to the CPU."""
    monkeypatch.setenv("TENON_TORCH_FALLBACK", "error")
    x = torch.linspace(0.1, 30, 50)
    for function in (torch.i0, special.bessel_j0, special.erfcx, lambda x: torch.igamma(x, x + 1), lambda x: special.legendre_polynomial_p(x / 30, x)):
        torch.testing.assert_close(function(x.to("tenon")).cpu(), function(x), rtol=1e-4, atol=1e-5)
