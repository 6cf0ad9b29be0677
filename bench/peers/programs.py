"""The fixed lists of programs that Tenon and its peers are timed on: functions of JAX with their arguments, and of
PyTorch where it has the op."""

import dataclasses
import functools
import pathlib
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from applications import APPLICATIONS
from breadth import breadth
from models import MODELS, attentions, draws, numbers
from moves import moves, norms, skinny
from narrow import narrow
from products import products
from short import short
from special import special_programs

try:
    import torch
except ImportError:  # The environment of frameworks/jax has none: PyTorch is left out then.
    torch = None


@dataclasses.dataclass
class Program:
    group: str  # breadth, narrow, short, moves, skinny, norms, products, special, rows, contractions, small, scans, convolutions, ffts, sorts, indexing, linalg, loops, attention, random, models, applications
    name: str
    function: Callable
    arguments: list[Any]
    torch: Callable | None = None  # Of the same arguments as tensors.
    x64: bool = False  # Traced with numbers of 64 bits.


def rows() -> list[Program]:
    x = numbers(1024, 1024)
    cube = numbers(64, 128, 256)
    def normalised(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    def chain(x, bias, scale):
        return jax.nn.gelu(x * scale + bias) * scale + x
    listed = [
        Program("rows", "gelu 1024x1024", jax.nn.gelu, [x], lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        Program("rows", "GELU chain 1024x1024", chain, [x, numbers(1024, seed=1), numbers(1024, seed=2)]),
        Program("rows", "softmax of rows 1024x1024", lambda x: jax.nn.softmax(x, -1), [x], lambda x: torch.softmax(x, -1)),
        Program("rows", "softmax of columns 1024x1024", lambda x: jax.nn.softmax(x, 0), [x], lambda x: torch.softmax(x, 0)),
        Program("rows", "layer norm 1024x1024", normalised, [x],
                lambda x: torch.nn.functional.layer_norm(x, (1024,), eps=1e-5)),
        Program("rows", "sum of rows 1024x1024", lambda x: x.sum(1), [x], lambda x: x.sum(1)),
        Program("rows", "sum of columns 1024x1024", lambda x: x.sum(0), [x], lambda x: x.sum(0)),
        Program("rows", "sum of all 1024x1024", lambda x: x.sum(), [x], lambda x: x.sum()),
    ]
    for axis in range(3):
        def total(x, axis=axis):
            return x.sum(axis)
        listed.append(Program("rows", f"sum over axis {axis} of 64x128x256", total, [cube], total))
    for array, order in [(x, (1, 0)), (numbers(4096, 256), (1, 0)), (numbers(256, 4096), (1, 0)), (cube, (0, 2, 1)),
                         (cube, (1, 0, 2)), (cube, (1, 2, 0)), (cube, (2, 0, 1)), (cube, (2, 1, 0))]:
        name = f"transpose {'x'.join(map(str, array.shape))} by {','.join(map(str, order))}"
        listed.append(Program("rows", name, functools.partial(jnp.transpose, axes=order), [array],
                              lambda x, order=order: x.permute(order).contiguous()))
    return listed


def contractions() -> list[Program]:
    """Those of contractions.txt."""
    listed = []
    for line in (pathlib.Path(__file__).parent / "contractions.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        m, n, k, *forms = line.split()
        m, n, k = int(m), int(n), int(k)
        batch = [int(form[1:]) for form in forms if form.startswith("x")]
        x, y = (k, m) if "tn" in forms else (m, k), (n, k) if "nt" in forms else (k, n)
        def product(x, y, forms=tuple(forms)):
            return (x.mT if "tn" in forms else x) @ (y.mT if "nt" in forms else y)
        listed.append(Program("contractions", line, product, [numbers(*batch, *x), numbers(*batch, *y, seed=1)], product))
    return listed


def lstm(h, c, weights, biases, xs):
    """Layers of LSTM cells over a sequence, each layer's state starting at `h` and `c`."""
    def step(states, x):
        after = []
        for (h, c), w, b in zip(states, weights, biases):
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w + b, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            x = h = jax.nn.sigmoid(o) * jnp.tanh(c)
            after.append((h, c))
        return after, x
    return lax.scan(step, [(h, c)] * len(weights), xs)


def small() -> list[Program]:
    def leaves(carry, xs):
        def step(carry, x):
            return {k: jnp.tanh(v * 0.9 + x * 0.1) for k, v in carry.items()}, sum(list(carry.values())[:3])
        return lax.scan(step, carry, xs)
    def total(carry, xs):  # Of every leaf, so that none is left out of the gradient.
        last, sums = leaves(carry, xs)
        return sum(last.values()) + sums.sum()
    start = {f"k{i}": np.float32(i / 60) for i in range(60)}
    def loop(x):
        return lax.while_loop(lambda s: s[0] < 4_000_000, lambda s: (s[0] + 1, s[1] * 0.999 + 0.5), (0, x))
    def matrices(carry, xs):
        return lax.scan(lambda c, x: (c @ c * 0.5 + x, c.sum()), carry, xs)
    def graph(x):
        return functools.reduce(lambda a, i: jnp.sin(a) + i if i % 2 else a * 1.1 - x, range(20), x)
    layers = [numbers(120, 240, seed=i) * 0.1 for i in range(3)]
    return [
        Program("small", "scan, 60 scalar leaves", leaves, [start, numbers(1000)]),
        Program("small", "scan, 60 scalar leaves, gradient", jax.grad(total), [start, numbers(1000)]),
        Program("small", "while, 4 million scalar steps", loop, [np.float32(1)]),
        Program("small", "scan, 3x3 carry, f64", matrices,
                [numbers(3, 3).astype(np.float64) * 0.1, numbers(1000, 3, 3).astype(np.float64) * 0.1], x64=True),
        Program("small", "LSTM, batch 1, 3 x 60", lstm,
                [numbers(60), numbers(60), layers, [numbers(240) for _ in layers], numbers(100, 60)]),
        Program("small", "40 ops on 64 numbers", graph, [numbers(64)]),
        Program("small", "x + 1 of 4 numbers", lambda x: x + 1, [numbers(4)]),
    ]


def scans() -> list[Program]:
    """Cumulative ops, along contiguous rows and across them, and the time at n and 16 n."""
    def backwards(x):
        return lax.cumsum(x, reverse=True)
    million, square = numbers(1 << 20), numbers(1024, 1024)
    return [
        Program("scans", "cumsum of 64 k", jnp.cumsum, [numbers(1 << 16)], lambda x: x.cumsum(0)),
        Program("scans", "cumsum of 1 M", jnp.cumsum, [million], lambda x: x.cumsum(0)),
        Program("scans", "cumsum of 1 M, backwards", backwards, [million], lambda x: x.flip(0).cumsum(0).flip(0)),
        Program("scans", "cumsum of 16 M", jnp.cumsum, [numbers(1 << 24)], lambda x: x.cumsum(0)),
        Program("scans", "cumsum along rows 1024x1024", lambda x: jnp.cumsum(x, 1), [square], lambda x: x.cumsum(1)),
        Program("scans", "cumsum down columns 1024x1024", lambda x: jnp.cumsum(x, 0), [square], lambda x: x.cumsum(0)),
        Program("scans", "cummax of 1 M", lax.cummax, [million], lambda x: x.cummax(0).values),
        Program("scans", "cumprod along rows 16x65536", lambda x: jnp.cumprod(x, 1), [numbers(16, 1 << 16)],
                lambda x: x.cumprod(1)),
        Program("scans", "cumlogsumexp of 64 k", lax.cumlogsumexp, [numbers(1 << 16)], lambda x: x.logcumsumexp(0)),
    ]


def convolutions() -> list[Program]:
    """Forward, gradients, transposed, by layout and batch; pooling beside them."""
    def forward(stride=1, layout="NHWC", groups=1, padding="SAME"):
        kernel = "HWIO" if layout == "NHWC" else "OIHW"
        return lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), padding, feature_group_count=groups,
                                                     dimension_numbers=(layout, kernel, layout))
    def by(which, function):
        return jax.grad(lambda x, w: (function(x, w) ** 2).sum(), which)
    def line(x, w):
        return lax.conv_general_dilated(x, w, (1,), [(w.shape[0] - 1, 0)], dimension_numbers=("NWC", "WIO", "NWC"))
    def transposed(x, w):
        return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    def weights(*shape):
        return numbers(*shape, seed=1) * 0.05
    image = numbers(1, 56, 56, 64)
    listed = [
        ("3x3, 56x56x64", forward(), [image, weights(3, 3, 64, 64)]),
        ("3x3, 56x56x64, batch 16", forward(), [numbers(16, 56, 56, 64), weights(3, 3, 64, 64)]),
        ("3x3, 14x14x256", forward(), [numbers(1, 14, 14, 256), weights(3, 3, 256, 256)]),
        ("1x1, 56x56x64 to 256", forward(), [image, weights(1, 1, 64, 256)]),
        ("1x1, 28x28x128, batch 16", forward(), [numbers(16, 28, 28, 128), weights(1, 1, 128, 128)]),
        ("5x5, 28x28x32", forward(), [numbers(1, 28, 28, 32), weights(5, 5, 32, 64)]),
        ("7x7 stride 2, 224x224x3", forward(2), [numbers(1, 224, 224, 3), weights(7, 7, 3, 64)]),
        ("3x3 NCHW, 64x56x56", forward(layout="NCHW"), [numbers(1, 64, 56, 56), weights(64, 64, 3, 3)]),
        ("3x3 in 4 groups, 56x56x64", forward(groups=4), [image, weights(3, 3, 16, 64)]),
        ("depthwise 3x3, 56x56x64", forward(groups=64), [image, weights(3, 3, 1, 64)]),
        ("3x3, gradient by input", by(0, forward()), [image, weights(3, 3, 64, 64)]),
        ("3x3, gradient by filter", by(1, forward()), [image, weights(3, 3, 64, 64)]),
        ("3x3 stride 2, gradient by input", by(0, forward(2)), [image, weights(3, 3, 64, 64)]),
        ("transposed 4x4 stride 2, 28x28x64", transposed, [numbers(1, 28, 28, 64), weights(4, 4, 64, 64)]),
        ("causal 1-D of 4, 4096x64", line, [numbers(1, 4096, 64), weights(4, 64, 64)]),
    ]
    return [Program("convolutions", name, function, arguments) for name, function, arguments in listed] + [
        Program("convolutions", "max pool 2x2, 56x56x64", pool, [image])]


def waves(*shape: int) -> np.ndarray:
    return (numbers(*shape) + 1j * numbers(*shape, seed=1)).astype(np.complex64)


def ffts() -> list[Program]:
    """Powers of two, lengths with other factors, a prime; batches, real numbers, two dimensions, a major axis."""
    def of_real(x):
        return jnp.fft.irfft(jnp.fft.rfft(x))
    listed = [(f"length {n}", jnp.fft.fft, waves(n)) for n in (64, 360, 1000, 1024, 1021)]
    listed += [
        ("length 4096, batch 64", jnp.fft.fft, waves(64, 4096)),
        ("length 64, batch 4096", jnp.fft.fft, waves(4096, 64)),
        ("length 256 k", jnp.fft.fft, waves(1 << 18)),
        ("length 256 k, real", jnp.fft.rfft, numbers(1 << 18)),
        ("length 1000, real, batch 64, there and back", of_real, numbers(64, 1000)),
        ("512x512", jnp.fft.fft2, waves(512, 512)),
        ("512x512, real", jnp.fft.rfft2, numbers(512, 512)),
        ("512x512 along axis 0", lambda x: jnp.fft.fft(x, axis=0), waves(512, 512)),
    ]
    torches = {jnp.fft.fft: "fft", jnp.fft.rfft: "rfft", jnp.fft.fft2: "fft2", jnp.fft.rfft2: "rfft2"}
    return [Program("ffts", name, function, [argument],
                    (lambda x, name=torches[function]: getattr(torch.fft, name)(x)) if function in torches else None)
            for name, function, argument in listed]


def sorts() -> list[Program]:
    """Whole sorts by types and axes, with indices, and the first elements alone."""
    million, square = numbers(1 << 20), numbers(1000, 1000)
    small = np.random.default_rng(0).integers(-128, 128, 1 << 20).astype(np.int8)
    def top(k):
        return lambda x: lax.top_k(x, k)
    return [
        Program("sorts", "sort of 1 M", jnp.sort, [million], lambda x: x.sort().values),
        Program("sorts", "sort of 64 k", jnp.sort, [numbers(1 << 16)], lambda x: x.sort().values),
        Program("sorts", "sort of rows 1000x1000", jnp.sort, [square], lambda x: x.sort(-1).values),
        Program("sorts", "sort of columns 1000x1000", lambda x: jnp.sort(x, 0), [square], lambda x: x.sort(0).values),
        Program("sorts", "sort of 1 M, i8", jnp.sort, [small], lambda x: x.sort().values),
        Program("sorts", "argsort of 64 k", jnp.argsort, [numbers(1 << 16)], lambda x: x.argsort()),
        Program("sorts", "top 40 of 50257", top(40), [numbers(50257)], None),
        Program("sorts", "top 8 of rows 1000x1000", top(8), [square], None),
        Program("sorts", "sort of 64 k, the first 100", lambda x: jnp.sort(x)[:100], [numbers(1 << 16)], None),
        Program("sorts", "median of 64 k", jnp.median, [numbers(1 << 16)], None),
    ]


def indexing() -> list[Program]:
    """Reads and writes at places that are data: rows, single numbers, counts."""
    random = np.random.default_rng(0)
    million, table, square = numbers(1 << 20), numbers(50_000, 768), numbers(1024, 1024)
    def places(count, *shape):
        return random.integers(0, count, shape).astype(np.int32)
    def rows_of(x, i):
        return x[i]
    def add_rows(i, y):
        return jnp.zeros((50_000, 768), jnp.float32).at[i].add(y)
    def add_to(count):
        return lambda i, y: jnp.zeros(count, jnp.float32).at[i].add(y)
    def count(i):
        return jnp.bincount(i, length=1000)
    def histogram(x):
        return jnp.histogram(x, 256, (-4.0, 4.0))[0]
    def one_hot(i):
        return jax.nn.one_hot(i, 64).sum(0)
    def largest(i, y):
        return jnp.zeros(1000, jnp.float32).at[i].max(y)
    def replace(x, i, y):
        return lax.dynamic_update_slice(x, y, (i,))
    def positive(x):
        return jnp.nonzero(x > 0, size=1 << 19)[0]
    def alternate(x):
        return jnp.zeros_like(x).at[::2].set(x[1::2])
    small, wide = places(1000, 1 << 20), places(1 << 20, 1 << 20)
    listed = [
        ("embedding 4096 of 50000x768", rows_of, [table, places(50_000, 4096)], lambda x, i: x[i]),
        ("embedding 64 of 50000x768", rows_of, [table, places(50_000, 64)], lambda x, i: x[i]),
        ("take_along_axis 1024x1024, axis 0", lambda x, i: jnp.take_along_axis(x, i, 0), [square, places(1024, 1024, 1024)],
         None),
        ("take_along_axis 1024x1024, axis 1", lambda x, i: jnp.take_along_axis(x, i, 1), [square, places(1024, 1024, 1024)],
         None),
        ("x[i], 1 M of 1 M", rows_of, [million, wide], lambda x, i: x[i]),
        ("x[i], 1 M of 1000", rows_of, [numbers(1000), small], lambda x, i: x[i]),
        ("x[:, i], 1024x1024", lambda x, i: x[:, i], [square, places(1024, 1024)], lambda x, i: x[:, i]),
        ("x[i, j], 1 M of 1024x1024", lambda x, i, j: x[i, j], [square, places(1024, 1 << 20), places(1024, 1 << 20)], None),
        ("scatter-add of 4096 rows of 768 into 50000", add_rows, [places(50_000, 4096), numbers(4096, 768)], None),
        ("scatter-add of 4096 rows of 768 into 100", lambda i, y: jnp.zeros((100, 768), jnp.float32).at[i].add(y),
         [places(100, 4096), numbers(4096, 768)], None),
        ("scatter-add of 64 k into 1000", add_to(1000), [places(1000, 1 << 16), numbers(1 << 16)], None),
        ("scatter-add of 1 M into 1000", add_to(1000), [small, million], None),
        ("scatter-add of 1 M into 1 M", add_to(1 << 20), [wide, million], None),
        ("scatter-max of 1 M into 1000", largest, [small, million], None),
        ("scatter of 1 M to 1 M, all apart", lambda i, y: jnp.zeros(1 << 20, jnp.float32).at[i].set(y, unique_indices=True),
         [random.permutation(1 << 20).astype(np.int32), million], None),
        ("bincount of 64 k, 1000 bins", count, [places(1000, 1 << 16)], None),
        ("bincount of 1 M, 1000 bins", count, [small], None),
        ("histogram of 1 M, 256 bins", histogram, [million], None),
        ("sum of one-hots of 64, 64 k", one_hot, [places(64, 1 << 16)], None),
        ("segment_sum of 1 M, sorted, 1000", lambda i, y: jax.ops.segment_sum(y, i, 1000, indices_are_sorted=True),
         [np.sort(small), million], None),
        ("update of one element of 1 M", replace, [million, np.int32(77), numbers(1)], None),
        ("nonzero of 1 M", positive, [million], None),
        ("every other element of 1 M", alternate, [million], None),
    ]
    return [Program("indexing", *each) for each in listed]


def linalg() -> list[Program]:
    """Factorisations, solutions and inverses: large ones, and many small ones."""
    def spd(*shape):
        x = numbers(*shape)
        return x @ np.swapaxes(x, -1, -2) / np.float32(shape[-1]) + np.eye(shape[-1], dtype=np.float32)
    def lower(n):
        return np.tril(numbers(n, n)) / np.float32(n) + np.eye(n, dtype=np.float32)
    def triangular(l, b):
        return lax.linalg.triangular_solve(l, b, left_side=True, lower=True)
    def solution(x, b):
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(x), True), b)
    def inverse(x):
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(x), True), jnp.eye(x.shape[-1], dtype=x.dtype))
    many = jax.vmap(solution)
    listed = [
        ("cholesky 32", jnp.linalg.cholesky, [spd(32, 32)], lambda x: torch.linalg.cholesky(x)),
        ("cholesky 128", jnp.linalg.cholesky, [spd(128, 128)], lambda x: torch.linalg.cholesky(x)),
        ("cholesky 512", jnp.linalg.cholesky, [spd(512, 512)], lambda x: torch.linalg.cholesky(x)),
        ("cholesky 64, batch 64", jnp.linalg.cholesky, [spd(64, 64, 64)], lambda x: torch.linalg.cholesky(x)),
        ("triangular solve 128, 128 columns", triangular, [lower(128), numbers(128, 128)], None),
        ("triangular solve 512, 512 columns", triangular, [lower(512), numbers(512, 512)], None),
        ("triangular solve 512, 1 column", triangular, [lower(512), numbers(512, 1)], None),
        ("cholesky 4, batch 10000", jnp.linalg.cholesky, [spd(10_000, 4, 4)], lambda x: torch.linalg.cholesky(x)),
        ("cholesky 8, batch 10000", jnp.linalg.cholesky, [spd(10_000, 8, 8)], lambda x: torch.linalg.cholesky(x)),
        ("solve 4, batch 10000", many, [spd(10_000, 4, 4), numbers(10_000, 4, 1)], None),
        ("solve 8, batch 10000", many, [spd(10_000, 8, 8), numbers(10_000, 8, 1)], None),
        ("inverse 64", inverse, [spd(64, 64)], None),
        ("inverse 256", inverse, [spd(256, 256)], None),
    ]
    return [Program("linalg", *each) for each in [*listed, *_factors()]]


def _factors() -> list[tuple]:
    """What is made of LU, QR, eigenvalues and singular values. Vectors are determined up to signs: their magnitudes are compared."""
    def general(*shape):
        return numbers(*shape) / np.float32(shape[-1]) ** 0.5 + 2 * np.eye(shape[-1], dtype=np.float32)
    def symmetric(*shape):
        x = numbers(*shape)
        return x + np.swapaxes(x, -1, -2)
    def lu(x):
        return jax.scipy.linalg.lu_factor(x)[0]
    def solve(x, b):
        return jnp.linalg.solve(x, b)
    def eigh(x):
        values, vectors = jnp.linalg.eigh(x)
        return values, jnp.abs(vectors)
    def svd(x):
        u, s, vh = jnp.linalg.svd(x, full_matrices=False)
        return jnp.abs(u), s, jnp.abs(vh)
    def lstsq(x, b):
        return jnp.linalg.lstsq(x, b)[0]
    expm = jax.scipy.linalg.expm
    listed = [
        ("LU 128", lu, [general(128, 128)], lambda x: torch.linalg.lu_factor(x)[0]),
        ("LU 512", lu, [general(512, 512)], lambda x: torch.linalg.lu_factor(x)[0]),
        ("inverse by LU 128", jnp.linalg.inv, [general(128, 128)], lambda x: torch.linalg.inv(x)),
        ("solve by LU 512", solve, [general(512, 512), numbers(512, 4)], lambda x, b: torch.linalg.solve(x, b)),
        ("determinant 128", jnp.linalg.det, [general(128, 128)], lambda x: torch.linalg.det(x)),
        ("QR 32", jnp.linalg.qr, [numbers(32, 32)], lambda x: torch.linalg.qr(x)),
        ("QR 512", jnp.linalg.qr, [numbers(512, 512)], lambda x: torch.linalg.qr(x)),
        ("QR 1024x32", jnp.linalg.qr, [numbers(1024, 32)], lambda x: torch.linalg.qr(x)),
        ("eigh 32", eigh, [symmetric(32, 32)], None),
        ("eigh 256", eigh, [symmetric(256, 256)], None),
        ("svd 32", svd, [numbers(32, 32)], None),
        ("svd 256x64", svd, [numbers(256, 64)], None),
        ("lstsq 512x32", lstsq, [numbers(512, 32), numbers(512, 4)], None),
        ("pinv 128x32", jnp.linalg.pinv, [numbers(128, 32)], lambda x: torch.linalg.pinv(x)),
        ("expm 64", expm, [numbers(64, 64) * np.float32(0.1)], lambda x: torch.linalg.matrix_exp(x)),
    ]
    for size in (2, 3, 4, 8):
        many, vectors = general(10_000, size, size), numbers(10_000, size, 1)
        listed += [
            (f"inverse by LU {size}, batch 10000", jnp.linalg.inv, [many], lambda x: torch.linalg.inv(x)),
            (f"solve by LU {size}, batch 10000", solve, [many, vectors], lambda x, b: torch.linalg.solve(x, b)),
            (f"determinant {size}, batch 10000", jnp.linalg.det, [many], lambda x: torch.linalg.det(x)),
            (f"QR {size}, batch 10000", jnp.linalg.qr, [numbers(10_000, size, size)], lambda x: torch.linalg.qr(x)),
            (f"eigh {size}, batch 10000", eigh, [symmetric(10_000, size, size)], None),
            (f"svd {size}, batch 10000", svd, [numbers(10_000, size, size)], None),
        ]
    listed.append(("expm 4, batch 1000", jax.vmap(expm), [numbers(1000, 4, 4) * np.float32(0.3)], lambda x: torch.linalg.matrix_exp(x)))
    return listed


def loops() -> list[Program]:
    """Loops with a small body, over long arrays and over small matrices."""
    def mandelbrot(c):
        def step(state):
            turn, z, count = state
            inside = jnp.abs(z.real * z.real + z.imag * z.imag) < 4
            return turn + 1, jnp.where(inside, z * z + c, z), count + inside
        return lax.while_loop(lambda s: s[0] < 50, step, (0, jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[2]
    def escape(x, y):  # Until every point has left, or 50 turns.
        def go(state):
            turn, a, b, count = state
            return (turn < 50) & jnp.any(a * a + b * b < 4)
        def step(state):
            turn, a, b, count = state
            inside = a * a + b * b < 4
            return (turn + 1, jnp.where(inside, a * a - b * b + x, a), jnp.where(inside, 2 * a * b + y, b),
                    count + inside.astype(jnp.int32))
        # Of all points: one on the edge may leave at another turn, by a rounding.
        return lax.while_loop(go, step, (0, x * 0, y * 0, jnp.zeros(x.shape, jnp.int32)))[3].sum()
    def powers(count):
        return lambda x: lax.fori_loop(0, count, lambda _, c: c @ x * 0.9 + 0.1, x)
    def stencil(x):
        def step(_, x):
            return 0.2 * (x + jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1))
        return lax.fori_loop(0, 100, step, x)
    def inner(x):  # The edge stays.
        def step(_, x):
            return x.at[1:-1, 1:-1].set(0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]))
        return lax.fori_loop(0, 100, step, x)
    def gru(h, w, u, xs):
        def step(h, x):
            a, b = x @ w, h @ u
            r, z, n = jnp.split(a, 3, -1)
            p, q, m = jnp.split(b, 3, -1)
            r, z = jax.nn.sigmoid(r + p), jax.nn.sigmoid(z + q)
            h = (1 - z) * jnp.tanh(n + r * m) + z * h
            return h, h
        return lax.scan(step, h, xs)
    def kalman(x, p, f, q, h, r, zs):
        def step(state, z):
            x, p = state
            x, p = f @ x, f @ p @ f.T + q
            s = h @ p @ h.T + r
            inverse = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / (s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0])
            k = p @ h.T @ inverse
            x, p = x + k @ (z - h @ x), p - k @ h @ p
            return (x, p), x
        return lax.scan(step, (x, p), zs)
    def matrices(function):
        def step(x, b):
            return 0.9 * x + 0.1 * jnp.outer(b, b), function(x + jnp.eye(len(x)), b)
        return lambda x, bs: lax.scan(step, x, bs)[1]
    def adam(x, target):
        def step(i, state):
            x, m, v = state
            g = 2 * (x - target)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            return x - 0.01 * m * lax.rsqrt(v + 1e-8), m, v
        return lax.fori_loop(0, 100, step, (x, x * 0, x * 0))[0]
    line = np.linspace(-2, 1, 512, dtype=np.float32)
    real, imaginary = np.broadcast_to(line, (512, 512)).copy(), np.broadcast_to(line[:, None], (512, 512)).copy()
    move = np.eye(4, dtype=np.float32) + 0.1 * np.eye(4, k=2, dtype=np.float32)
    listed = [
        ("Mandelbrot 512x512, complex", mandelbrot, [(real + 1j * imaginary).astype(np.complex64)]),
        ("Mandelbrot 512x512, until all have left", escape, [real, imaginary]),
        ("3x3 matrices, 10000 turns", powers(10_000), [numbers(3, 3) * 0.1]),
        ("16x16 matrices, 1000 turns", powers(1000), [numbers(16, 16) * 0.1]),
        ("stencil 512x512 by roll, 100 turns", stencil, [numbers(512, 512)]),
        ("stencil 512x512 by slices, 100 turns", inner, [numbers(512, 512)]),
        ("LSTM, batch 16, 60 x 128", lstm, [numbers(16, 128), numbers(16, 128), [numbers(256, 512) * 0.1], [numbers(512)],
                                            numbers(60, 16, 128)]),
        ("GRU, batch 16, 60 x 128", gru, [numbers(16, 128), numbers(128, 384) * 0.1, numbers(128, 384, seed=1) * 0.1,
                                          numbers(60, 16, 128)]),
        ("Kalman filter of 4, 1000 steps", kalman, [numbers(4), np.eye(4, dtype=np.float32), move,
                                                    np.eye(4, dtype=np.float32) * np.float32(0.01),
                                                    np.eye(2, 4, dtype=np.float32), np.eye(2, dtype=np.float32),
                                                    numbers(1000, 2)]),
        ("sine of 4096, one of them a turn", lambda t: lax.scan(lambda c, i: (c + jnp.sin(t)[i], None), 0.0, jnp.arange(4096))[0],
         [numbers(4096)]),
        ("systems of 3, 1000 turns", matrices(jnp.linalg.solve), [np.eye(3, dtype=np.float32), numbers(1000, 3)]),
        ("eigenvalues of 3x3, 1000 turns", matrices(lambda x, _: jnp.linalg.eigvalsh(x)), [np.eye(3, dtype=np.float32), numbers(1000, 3)]),
        ("Adam of 64 k, 100 turns", adam, [numbers(1 << 16), numbers(1 << 16, seed=1)]),
    ]
    return [Program("loops", *each) for each in listed]


def models() -> list[Program]:
    def digits(parameters, x, y):
        def loss(parameters):
            w1, b1, w2, b2 = parameters
            logits = jnp.tanh(x @ w1 + b1) @ w2 + b2
            return -(y * jax.nn.log_softmax(logits)).sum(-1).mean()
        return [p - 0.1 * g for p, g in zip(parameters, jax.grad(loss)(parameters))]
    def lstm_step(weights, biases, xs, y):
        def loss(parameters):
            state = jnp.zeros((16, 64))
            return ((lstm(state, state, *parameters, xs)[1][-1] - y) ** 2).mean()
        return jax.tree.map(lambda p, g: p - 0.1 * g, (weights, biases), jax.grad(loss)((weights, biases)))
    def encoder(x, q, k, v, o, up, down):
        def heads(w):
            return (x @ w).reshape(128, 4, 64).transpose(1, 0, 2)
        scores = jax.nn.softmax(heads(q) @ heads(k).transpose(0, 2, 1) / 8, -1)
        x = x + (scores @ heads(v)).transpose(1, 0, 2).reshape(128, 256) @ o
        x = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return x + jax.nn.gelu(x @ up) @ down
    square = [numbers(256, 256, seed=i) * 0.06 for i in range(4)]
    return [
        Program("models", "digits step, batch 64", digits,
                [[numbers(64, 128) * 0.1, numbers(128), numbers(128, 10) * 0.1, numbers(10)], numbers(64, 64),
                 np.eye(10, dtype=np.float32)[np.arange(64) % 10]]),
        Program("models", "LSTM step, batch 16, 20 x 64", lstm_step,
                [[numbers(128, 256) * 0.1], [numbers(256)], numbers(20, 16, 64), numbers(16, 64)]),
        Program("models", "encoder layer, 128 x 256", encoder,
                [numbers(128, 256), *square, numbers(256, 1024) * 0.06, numbers(1024, 256) * 0.03]),
        *(Program("models", name, *made()) for name, made in MODELS.items()),
    ]


def all_programs() -> list[Program]:
    return (rows() + contractions() + small() + scans() + convolutions() + ffts() + sorts() + indexing() + linalg() + loops()
            + [Program("breadth", *each) for each in breadth()]
            + [Program("special", name, function, of, x64=wide) for name, function, of, wide in special_programs()]
            + [Program("narrow", *each) for each in narrow()]
            + [Program("short", *each) for each in short()]
            + [Program("moves", *each) for each in moves()]
            + [Program("skinny", *each) for each in skinny()]
            + [Program("norms", *each) for each in norms()]
            + [Program("products", *each) for each in products()]
            + [Program("attention", *each) for each in attentions()]
            + [Program("random", *each) for each in draws()] + models()
            + [Program("applications", name, *made()) for name, made in APPLICATIONS.items()])
