"""Moves of elements within arrays of three dimensions, the group `moves` of programs.py; products and convolutions one of whose
dimensions is short, the group `skinny`; normalisations of images in both layouts, the group `norms`."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SHAPES = ((5000, 7, 3), (300, 20, 20), (16, 128, 128))


def _normal(draw: np.random.Generator, *dims: int) -> np.ndarray:
    return draw.standard_normal(dims).astype(np.float32)


MOVES = {
    "last two exchanged": lambda x: jnp.swapaxes(x, 1, 2) + 1,
    "first two exchanged": lambda x: jnp.swapaxes(x, 0, 1) + 1,
    "first last": lambda x: x.transpose(1, 2, 0) + 1,
    "backwards": lambda x: x[:, ::-1, ::-1] + 1,
    "roll": lambda x: jnp.roll(x, 3, 1) + 1,
    "concatenated": lambda x: jnp.concatenate([x, x + 1], 2),
    "stacked": lambda x: jnp.stack([x, x + 1], -1),
    "repeated rows": lambda x: jnp.repeat(x, 3, 1),
    "repeated elements": lambda x: jnp.repeat(x, 2, 2),
    "tiled": lambda x: jnp.tile(x, (1, 2, 2)),
    "frame of zeros": lambda x: jnp.pad(x, ((0, 0), (1, 1), (1, 1))),
    "frame of edges": lambda x: jnp.pad(x, ((0, 0), (1, 1), (1, 1)), mode="edge"),
    "reflected": lambda x: jnp.pad(x, ((0, 0), (1, 1), (1, 1)), mode="reflect"),
    "every other": lambda x: x[:, ::2, ::2] + 1,
    "gradient of every other": jax.grad(lambda x: (x[:, ::2, ::2]**2).sum()),
    "lower triangles": jnp.tril,
    "diagonals": lambda x: jnp.trace(x, axis1=1, axis2=2),
    "differences": lambda x: jnp.diff(x, axis=1),
}


def moves() -> Iterator[tuple]:
    """Name, function, arguments."""
    for shape in SHAPES:
        draw = np.random.default_rng(shape[0])
        x = _normal(draw, *shape)
        places = [draw.integers(0, size, size) for size in shape]
        programs = {name: (function, [x]) for name, function in MOVES.items()}
        programs |= {
            "x[i]": (lambda x, i: x[i], [x, places[0]]),
            "x[:, i]": (lambda x, i: x[:, i], [x, places[1]]),
            "x[:, :, i]": (lambda x, i: x[:, :, i], [x, places[2]]),
            "along axis 1": (lambda x, i: jnp.take_along_axis(x, i, 1), [x, draw.integers(0, shape[1], shape)]),
            "along axis 2": (lambda x, i: jnp.take_along_axis(x, i, 2), [x, draw.integers(0, shape[2], shape)]),
            "columns set": (lambda x, i, v: x.at[:, i].set(v), [x, places[1][:4], _normal(draw, shape[0], 4, shape[2])[:, :len(places[1][:4])]]),
        }
        for name, (function, arguments) in programs.items():
            yield f"{name}, {'x'.join(map(str, shape))}", function, arguments


def _convolution(layout: str, x: np.ndarray, w: np.ndarray) -> tuple:
    numbers = (layout, "HWIO" if layout == "NHWC" else "OIHW", layout)
    if layout == "NCHW":
        x, w = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
    return (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers),
            [np.ascontiguousarray(x), np.ascontiguousarray(w)])


def skinny() -> Iterator[tuple]:
    """Name, function, arguments."""
    draw = np.random.default_rng(5)
    for spec, x, y in (("nk,mk->nm", (4, 768), (3072, 768)), ("nk,mk->nm", (8, 768), (3072, 768)), ("nk,mk->nm", (16, 768), (3072, 768)),
                       ("nk,mk->nm", (768, 3072), (3, 3072)), ("nk,mk->nm", (768, 3072), (16, 3072)), ("nk,mk->nm", (768, 3072), (48, 3072)),
                       ("nk,km->nm", (16, 768), (768, 3072)), ("bnk,bmk->bnm", (2222, 3, 100), (2222, 3, 100)),
                       ("bnk,bmk->bnm", (400, 5, 100), (400, 7, 100)), ("bji,bj->bi", (488, 64, 64), (488, 64)),
                       ("bij,bj->bi", (488, 64, 64), (488, 64)), ("ij,ij->j", (1000, 300), (1000, 300)), ("ij,ij->i", (1000, 300), (1000, 300)),
                       ("bsd,bsd->bd", (8, 512, 64), (8, 512, 64))):
        arguments = [_normal(draw, *x), _normal(draw, *y)]
        yield f"{spec} {'x'.join(map(str, x))}, {'x'.join(map(str, y))}", lambda x, y, spec=spec: jnp.einsum(spec, x, y), arguments
    for layout in ("NHWC", "NCHW"):
        for size, features, outputs, window in ((28, 32, 1, 3), (28, 32, 4, 3), (112, 64, 3, 3), (32, 64, 3, 5)):
            function, arguments = _convolution(layout, _normal(draw, 1, size, size, features), _normal(draw, window, window, features, outputs))
            name = f"{layout} {size}x{size} {features} to {outputs}, {window}x{window}"
            yield f"convolution {name}", function, arguments
            gradient = jax.grad(lambda x, w, function=function: (function(x, w)**2).sum(), (0, 1))
            yield f"gradients of convolution {name}", gradient, arguments


def _normalised(x: jax.Array, scale: jax.Array, shift: jax.Array, over: tuple[int, ...]) -> jax.Array:
    return (x - x.mean(over, keepdims=True)) * lax.rsqrt(x.var(over, keepdims=True) + 1e-5) * scale + shift


def norms() -> Iterator[tuple]:
    """Name, function, arguments."""
    for kind in ("f32", "bf16"):
        for layout, shape in (("NCHW", (4, 64, 28, 28)), ("NHWC", (4, 28, 28, 64))):
            channel = layout.index("C")
            places = tuple(d for d in range(4) if d not in (0, channel))
            draw = np.random.default_rng(channel)
            of_channels = [shape[d] if d == channel else 1 for d in range(4)]
            x, y, scale, shift = (jnp.asarray(_normal(draw, *dims), jnp.bfloat16 if kind == "bf16" else None)
                                  for dims in (shape, shape, of_channels, of_channels))
            for name, over in (("batch norm", (0, *places)), ("instance norm", places), ("layer norm", (channel,))):
                def function(x, scale, shift, over=over):
                    return _normalised(x, scale, shift, over)
                yield f"{name}, {layout}, {kind}", function, [x, scale, shift]
                def gradients(x, scale, shift, y, function=function):
                    return jax.grad(lambda *of: (function(*of) * y).sum(), (0, 1, 2))(x, scale, shift)
                yield f"its gradients, {name}, {layout}, {kind}", gradients, [x, scale, shift, y]
            over = (0, *places)
            yield f"sums of products, {layout}, {kind}", lambda x, y, over=over: (x.sum(over), (x * y).sum(over)), [x, y]
            yield f"greatest of channels, {layout}, {kind}", lambda x, y, over=over: (x + y).max(over), [x, y]
