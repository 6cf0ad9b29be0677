"""Programs of one or a few ops over every class of work and every element type, each of some microseconds to milliseconds: they
show what the lists of chosen programs hide. The group `breadth` of programs.py; compare takes it only by name."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import ml_dtypes
import numpy as np
from jax import lax, random
from jax.experimental.ode import odeint
from jax.scipy import special
from models import numbers

SIZE = 1 << 18
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "s8": np.int8, "u8": np.uint8, "s16": np.int16,
         "s32": np.int32, "u32": np.uint32, "c64": np.complex64}
Listed = Iterator[tuple]  # Name, function, arguments.


def of_type(dtype, *shape: int, seed: int = 0) -> np.ndarray:
    if np.issubdtype(dtype, np.integer):
        least = 1 if np.issubdtype(dtype, np.unsignedinteger) else -100
        return np.random.default_rng(seed).integers(least, 100, shape).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        return numbers(*shape, seed=seed) + 1j * numbers(*shape, seed=seed + 100)
    return numbers(*shape, seed=seed).astype(dtype)


def filtered(x, w, rank=2, **more):
    layout = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}[rank]
    return lax.conv_general_dilated(x, w, (1,) * rank, "SAME", dimension_numbers=layout, **more)


def of_types() -> Listed:
    """The same ops on each type."""
    places = np.random.default_rng(5).integers(0, SIZE, SIZE).astype(np.int32)
    for name, dtype in TYPES.items():
        x, y = of_type(dtype, SIZE), of_type(dtype, SIZE, seed=1)
        square, other = x.reshape(512, 512), y.reshape(512, 512)
        left, right = x[:1 << 16].reshape(256, 256), y[:1 << 16].reshape(256, 256)
        is_complex = name == "c64"

        def divisor(y):
            return jnp.where(y == 0, jnp.ones_like(y), y)

        listed = [
            ("add", lambda x, y: x + y, [x, y]), ("mul", lambda x, y: x * y, [x, y]),
            ("div", lambda x, y: lax.div(x, divisor(y)), [x, y]),
            ("sum", jnp.sum, [x]), ("prod", jnp.prod, [x]), ("cumsum", jnp.cumsum, [x]),
            ("sum of columns", lambda x: x.sum(0), [square]), ("mean of rows", lambda x: x.mean(1), [square]),
            ("where", lambda x, y: jnp.where(jnp.real(x) > jnp.real(y), x, y), [x, y]),
            ("gather", lambda x, i: x[i], [x, places]),
            ("scatter-add", lambda x, i, y: x.at[i].add(y), [x[:4096], places % 4096, y]),
            ("transpose", lambda x: x.T, [square]), ("reverse", lambda x: x[::-1], [x]), ("pad", lambda x: jnp.pad(x, 3), [square]),
            ("concatenate", lambda x, y: jnp.concatenate([x, y], 1), [square, other]),
            ("256 256 256", lambda x, y: x @ y, [left, right]), ("256 1 256", lambda x, y: x @ y, [left, right[0]]),
            ("convert to f32", lambda x: jnp.real(x).astype(jnp.float32), [x]),
            ("convolution 3x3, 28x28x32", filtered, [x[:28 * 28 * 32].reshape(1, 28, 28, 32), y[:9216].reshape(3, 3, 32, 32)]),
        ]
        if not is_complex:
            listed += [
                ("max", jnp.maximum, [x, y]), ("rem", lambda x, y: lax.rem(x, divisor(y)), [x, y]), ("argmax", jnp.argmax, [x]),
                ("sort of 64 k", jnp.sort, [x[:1 << 16]]), ("sort of rows", lambda x: jnp.sort(x, axis=1), [square]),
                ("cummax", lambda x: lax.cummax(x), [x]), ("top 10", lambda x: lax.top_k(x, 10)[0], [x.reshape(64, 4096)]),
            ]
        for op, function, arguments in listed:
            yield f"{op} {name}", function, arguments


def functions() -> Listed:
    x, y = numbers(SIZE) * np.float32(0.4), numbers(SIZE, seed=1)
    for name in ("exp exp2 log log1p expm1 sin cos tan tanh sinh cosh arctan arcsin arccos arcsinh arccosh arctanh sqrt cbrt square "
                 "reciprocal abs sign floor round").split():
        of = np.abs(x) + 1 if name in ("log", "sqrt", "arccosh", "log1p") else x
        yield name, getattr(jnp, name), [of]
        if name in ("exp", "log", "tanh", "sin", "sqrt"):
            yield name + " bf16", getattr(jnp, name), [of.astype(ml_dtypes.bfloat16)]
            yield name + " c64", getattr(jnp, name), [of_type(np.complex64, SIZE // 4)]
    share = np.clip(np.abs(x[:SIZE // 4]) + np.float32(0.1), 0.01, 0.99)
    for name in "erf erfc erfinv gammaln digamma i0 i0e i1 i1e ndtri ndtr logit expit log_ndtr entr".split():
        yield name, getattr(special, name), [share]
    few = share[:SIZE // 16]
    yield "betainc", lambda a: special.betainc(a + 1, a + 2, a), [few]
    yield "gammainc", lambda a: special.gammainc(a + 1, a * 3), [few]
    yield "zeta", lambda a: special.zeta(a + 1.5, a + 0.5), [few]
    yield "polygamma", lambda a: special.polygamma(2, a + 0.5), [few]
    yield "power", lambda x, y: jnp.power(jnp.abs(x) + 0.1, y), [x, y]
    for name in "arctan2 hypot logaddexp nextafter".split():
        yield name, getattr(jnp, name), [x, y]
    yield "fmod", jnp.fmod, [x, np.abs(y) + np.float32(0.1)]
    whole = of_type(np.int32, SIZE)
    for name, function in [("x // 7", lambda x: x // 7), ("x % 7", lambda x: x % 7), ("x ** 3", lambda x: x ** 3),
                           ("population count", lax.population_count), ("leading zeros", lax.clz),
                           ("shifts", lambda x: (x << 3) ^ (x >> 2))]:
        yield name + " s32", function, [whole]


def draws_of() -> Listed:
    for name, draw in [
            ("gamma", lambda k: random.gamma(k, 2.0, (4096,))), ("beta", lambda k: random.beta(k, 2.0, 3.0, (2048,))),
            ("poisson", lambda k: random.poisson(k, 3.0, (4096,))), ("permutation of 64 k", lambda k: random.permutation(k, 1 << 16)),
            ("choice of 100", lambda k: random.choice(k, 10000, (100,), replace=False)),
            ("truncated normal", lambda k: random.truncated_normal(k, -1, 1, (SIZE,))),
            ("categorical", lambda k: random.categorical(k, jnp.zeros((64, 1000)))), ("bernoulli", lambda k: random.bernoulli(k, 0.3, (SIZE,))),
            ("exponential", lambda k: random.exponential(k, (SIZE,))), ("laplace", lambda k: random.laplace(k, (SIZE,))),
            ("randint", lambda k: random.randint(k, (SIZE,), 0, 100)), ("gumbel", lambda k: random.gumbel(k, (SIZE,))),
            ("cauchy", lambda k: random.cauchy(k, (SIZE,))), ("t", lambda k: random.t(k, 3.0, (2048,))),
            ("dirichlet", lambda k: random.dirichlet(k, jnp.ones(8), (512,))), ("binomial", lambda k: random.binomial(k, 20, 0.3, (2048,))),
            ("multivariate normal", lambda k: random.multivariate_normal(k, jnp.zeros(16), jnp.eye(16), (1000,))),
            ("orthogonal", lambda k: random.orthogonal(k, 32))]:
        yield "random " + name, lambda bits, draw=draw: draw(random.wrap_key_data(bits)), [np.array([0, 42], np.uint32)]


def of_numpy() -> Listed:
    """Functions of jax.numpy and its neighbours."""
    x, a, b = numbers(1 << 16), numbers(128, 128), numbers(64, 64)
    levels = np.linspace(-3, 3, 1000, dtype=np.float32)
    parts = np.arange(1 << 16, dtype=np.int32) // 64
    for name, function, *arguments in [
            ("percentile", lambda x: jnp.percentile(x, 30), x), ("median of rows", lambda a: jnp.median(a, 1), a), ("nanmedian", jnp.nanmedian, x),
            ("histogram", lambda x: jnp.histogram(x, 64)[0], x), ("bincount", lambda x: jnp.bincount(jnp.abs(x * 10).astype(int), length=64), x),
            ("searchsorted", lambda x, levels: jnp.searchsorted(levels, x), x, levels), ("digitize", lambda x: jnp.digitize(x, jnp.linspace(-2, 2, 20)), x),
            ("interp", lambda x, levels: jnp.interp(x, levels, levels), x, levels), ("convolve", lambda x: jnp.convolve(x[:4096], x[:128]), x),
            ("polyval", lambda x: jnp.polyval(jnp.arange(8.0), x), x), ("kron", lambda a: jnp.kron(a[:16, :16], a[:16, :16]), a),
            ("tril", jnp.tril, a), ("roll", lambda x: jnp.roll(x, 100), x), ("repeat", lambda x: jnp.repeat(x, 4), x), ("tile", lambda a: jnp.tile(a, (4, 4)), a),
            ("nanmean", jnp.nanmean, x), ("std", jnp.std, x), ("cov", jnp.cov, a), ("cross", lambda x: jnp.cross(x[:65535].reshape(-1, 3), x[1:].reshape(-1, 3)), x),
            ("gradient", jnp.gradient, x), ("third difference", lambda x: jnp.diff(x, n=3), x), ("unique, 200", lambda x: jnp.unique(jnp.round(x * 10), size=200), x),
            ("argsort", jnp.argsort, x), ("lexsort", lambda x: jnp.lexsort((x, jnp.round(x))), x), ("partition", lambda x: jnp.partition(x, 100), x),
            ("one_hot", lambda x: jax.nn.one_hot(x[:4096].astype(int) % 64, 64), x), ("outer", lambda x: jnp.outer(x[:512], x[:512]), x),
            ("einsum ij,jk,kl", lambda a: jnp.einsum("ij,jk,kl->il", a, a, a), a), ("trace", jnp.trace, a), ("block_diag", lambda a: jsp.linalg.block_diag(a, a), a),
            ("toeplitz", lambda x: jsp.linalg.toeplitz(x[:256]), x), ("take, clip", lambda x: jnp.take(x, jnp.arange(0, 1 << 16, 7), mode="clip"), x),
            ("select", lambda a: jnp.select([a > 1, a > 0], [a, a * 2], 0.0), a), ("isin", lambda x: jnp.isin(jnp.round(x * 100), jnp.arange(50.0)), x),
            ("argmin of rows", lambda a: a.argmin(1), a), ("argmax of columns", lambda a: a.argmax(0), a), ("any", lambda x: (x > 3).any(), x),
            ("nonzero, 1000", lambda x: jnp.nonzero(x > 1, size=1000)[0], x), ("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 1024), x, parts),
            ("segment_max", lambda x, i: jax.ops.segment_max(x, i, 1024), x, parts), ("clip", lambda x: jnp.clip(x, -1, 1), x),
            ("dynamic_slice", lambda x: lax.dynamic_slice(x, (jnp.int32(17),), (1024,)), x), ("dynamic_update_slice", lambda x: lax.dynamic_update_slice(x, x[:100], (jnp.int32(9),)), x),
            ("bits", lambda x: lax.bitcast_convert_type(x, jnp.int32) ^ 1, x), ("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), x),
            ("through f8", lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), x), ("through s4", lambda x: x.astype(jnp.int4).astype(jnp.float32), x),
            ("prefix affine maps", lambda x: lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (x * 0.1, x))[1], x),
            ("scan of 4096", lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x[:4096])[1], x), ("map of sorts", lambda a: lax.map(jnp.sort, a), a),
            ("fori of 100", lambda a: lax.fori_loop(0, 100, lambda i, a: a * 0.99 + i, a), a), ("cond", lambda a: lax.cond(a[0, 0] > 0, jnp.sin, jnp.cos, a), a)]:
        yield name, function, arguments
    for method in ("nearest", "bilinear", "cubic"):
        yield f"resize, {method}", lambda a, method=method: jax.image.resize(a, (256, 256), method), [a]
    yield "map_coordinates", lambda a: jsp.ndimage.map_coordinates(a, [a.ravel() * 9 + 60, a.ravel() * 9 + 60], order=1), [a]
    yield "convolve2d", lambda a: jsp.signal.convolve2d(a, a[:7, :7], "same"), [a]
    yield "stft", lambda x: jsp.signal.stft(x, nperseg=256)[2].real, [x]
    yield "welch", lambda x: jsp.signal.welch(x, nperseg=256)[1], [x]
    yield "odeint", lambda x: odeint(lambda y, t: jnp.sin(t) - y, x[:8], jnp.linspace(0.0, 5.0, 20)), [x]
    yield "cg", lambda a: jsp.sparse.linalg.cg(lambda v: a @ (a.T @ v) + v, a[0])[0], [a]
    yield "expm", lambda b: jsp.linalg.expm(b * 0.1), [b]


def windows_and_models() -> Listed:
    x = numbers(1 << 16)
    image = x.reshape(1, 64, 64, 16)

    def pool(x, init, op, size, stride=1):
        return lax.reduce_window(x, init, op, (1, size, size, 1), (1, stride, stride, 1), "SAME")

    def normalised(x):
        return (x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-5)

    yield "max pool 3x3", lambda x: pool(x, -jnp.inf, lax.max, 3), [image]
    yield "mean pool 7x7", lambda x: pool(x, 0.0, lax.add, 7), [image]
    yield "max pool 3x3 stride 2, gradient", jax.grad(lambda x: pool(x, -jnp.inf, lax.max, 3, 2).sum()), [image]
    yield "moving sum of 1000", lambda x: lax.reduce_window(x, 0.0, lax.add, (1000,), (1,), "VALID"), [x]
    yield "moving maximum of 1000", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1000,), (1,), "VALID"), [x]
    yield "convolution 1-D", lambda x: filtered(x.reshape(1, 4096, 16), x[:1280].reshape(5, 16, 16), 1), [x]
    yield "convolution 3-D", lambda x: filtered(x.reshape(1, 16, 16, 16, 16), x[:27 * 256].reshape(3, 3, 3, 16, 16), 3), [x]
    yield "convolution dilated", lambda x: filtered(x, x.ravel()[:2304].reshape(3, 3, 16, 16), rhs_dilation=(4, 4)), [image]
    yield "patches 3x3", lambda x: lax.conv_general_dilated_patches(x, (3, 3), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), [image]
    yield "batch norm, gradient", jax.grad(lambda x: (normalised(x) ** 3).sum()), [x.reshape(256, 256)]
    yield "softmax, gradient", jax.grad(lambda x: (jax.nn.softmax(x) ** 2).sum()), [x.reshape(256, 256)]
    yield "logsumexp", jax.nn.logsumexp, [x]
    yield "hessian", jax.hessian(lambda v: jnp.tanh(v).sum() ** 2), [x[:64]]
    yield "jacobian", jax.jacfwd(lambda v: jnp.sin(v) * v.sum()), [x[:128]]
    yield "1024 dot products of 64", jax.vmap(jnp.dot), [x.reshape(1024, 64), x.reshape(1024, 64)]
    yield "1024 products of 8x8", lambda x: x @ x, [x.reshape(1024, 8, 8)]
    yield "7168 products of 3x3", lambda x: x @ x, [x[:64512].reshape(7168, 3, 3)]


def breadth() -> list[tuple]:
    """(name, function, arguments) of each."""
    return [*of_types(), *functions(), *draws_of(), *of_numpy(), *windows_and_models()]
