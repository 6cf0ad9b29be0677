"""The functions of jax.scipy.special, their gradients and CHLO's ops, on 64 k numbers of f32 and f64 over the range that they are used
for: the group `special` of programs.py; compare takes it only by name."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

SIZE = 1 << 16


def between(least: float, most: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(least, most, SIZE)


def gradient(function: Callable) -> Callable:
    return jax.vmap(jax.grad(function))


def functions() -> Iterator[tuple]:
    """Name, function, arguments in f64."""
    both, unit, positive, large = between(-4, 4), between(0.01, 0.99), between(0.05, 6, 1), between(1.1, 40, 2)
    first, second, whole = between(0.5, 8, 3), between(0.5, 8, 4), np.floor(between(1, 5, 5))
    one_argument = {
        "erf": both, "erfc": both, "erfcx": both, "erfinv": unit, "ndtr": both, "log_ndtr": both, "ndtri": unit, "dawsn": both,
        "gammaln": positive, "loggamma": positive, "gamma": positive, "digamma": positive, "factorial": positive,
        "i0": both, "i0e": both, "i1": both, "i1e": both, "exp1": positive, "expi": positive, "spence": positive,
        "logit": unit, "expit": both, "entr": positive}
    for name, x in one_argument.items():
        if hasattr(special, name):
            yield name, getattr(special, name), [x]
    yield "gelu", lambda x: jax.nn.gelu(x, approximate=False), [both]
    for name in ("erf", "erfc", "ndtr", "log_ndtr", "gammaln", "digamma", "erfinv"):
        yield name + ", gradient", gradient(getattr(special, name)), [one_argument[name]]
    yield "gelu, gradient", gradient(lambda x: jax.nn.gelu(x, approximate=False)), [both]
    for name in ("lgamma", "digamma", "bessel_i0e", "bessel_i1e"):
        yield f"lax.{name} of both signs", getattr(lax, name), [both]
    for name in "tan asin acos atan sinh cosh asinh acosh atanh cbrt".split():
        yield f"lax.{name}", getattr(lax, name), [unit + 1 if name == "acosh" else unit]
    yield "lax.nextafter", lax.nextafter, [both, first]
    yield "zeta", special.zeta, [large, positive]
    yield "lax.polygamma", lax.polygamma, [whole, positive]
    yield "betaln", special.betaln, [first, second]
    yield "beta", special.beta, [first, second]
    yield "betainc", special.betainc, [first, second, unit]
    yield "gammainc", special.gammainc, [first, positive]
    yield "gammaincc", special.gammaincc, [first, positive]
    yield "poch", special.poch, [first, unit]
    yield "xlogy", special.xlogy, [first, positive]
    yield "xlog1py", special.xlog1py, [first, positive]
    yield "rel_entr", special.rel_entr, [first, second]
    yield "kl_div", special.kl_div, [first, second]
    yield "multigammaln", lambda x: special.multigammaln(x, 3), [first + 2]
    yield "expn", lambda x: special.expn(3, x), [positive]
    yield "bessel_jn", lambda x: special.bessel_jn(x, v=3), [positive]
    yield "hyp1f1", special.hyp1f1, [first[:SIZE // 16], second[:SIZE // 16], unit[:SIZE // 16]]


def special_programs() -> Iterator[tuple]:
    """Name, function, arguments, whether it has numbers of 64 bits."""
    for wide in (False, True):
        for name, function, arguments in functions():
            of = [each if wide else each.astype(np.float32) for each in arguments]
            yield f"{name} {'f64' if wide else 'f32'}", function, of, wide
