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

try:
    import torch
except ImportError:  # The environment of frameworks/jax has none: PyTorch is left out then.
    torch = None


@dataclasses.dataclass
class Program:
    group: str  # rows, contractions, small, scans, convolutions, ffts, sorts, models
    name: str
    function: Callable
    arguments: list[Any]
    torch: Callable | None = None  # Of the same arguments as tensors.
    x64: bool = False  # Traced with numbers of 64 bits.


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


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
    ]


def all_programs() -> list[Program]:
    return rows() + contractions() + small() + scans() + convolutions() + ffts() + sorts() + models()
