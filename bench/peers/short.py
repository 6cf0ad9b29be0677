"""Rows of a few elements that a lane of a vector has in registers, and elements that gaps or repeats take apart: the group `short` of
programs.py."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ELEMENTS = 120_000  # of each array


def _rows(width: int, kind: str) -> np.ndarray:
    draw = np.random.default_rng(width)
    return np.asarray(jnp.asarray(draw.standard_normal((ELEMENTS // width, width)), jnp.bfloat16 if kind == "bf16" else jnp.float32))


def _layer_norm(x: jax.Array) -> jax.Array:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def _padded(*places: tuple[int, int, int]) -> object:
    return lambda x: lax.pad(x, np.zeros((), x.dtype), ((0, 0, 0),) * (x.ndim - len(places)) + places)


def _twice(rows: int) -> object:
    return lambda x: jnp.repeat(jnp.repeat(x, 2, rows), 2, rows + 1)


def short() -> Iterator[tuple]:
    """Name, function, arguments."""
    for kind in ("f32", "bf16"):
        for width in (3, 8, 10, 12, 16):
            x = _rows(width, kind)
            for name, function in (("softmax", jax.nn.softmax), ("variance", lambda x: x.var(-1)), ("layer norm", _layer_norm),
                                   ("argmax", lambda x: x.argmax(-1)),
                                   ("gradient of cross entropy", jax.grad(lambda x: -jax.nn.log_softmax(x)[:, 0].sum()))):
                yield f"{name}, rows of {width}, {kind}", function, [x]
    for width in (5, 6, 9, 14):
        x = _rows(width, "f32")
        yield f"transpose, rows of {width}", jnp.transpose, [x]
        yield f"transpose to rows of {width}", jnp.transpose, [np.ascontiguousarray(x.T)]
    draw = np.random.default_rng(1)
    images = draw.standard_normal((2, 64, 56, 56)).astype(np.float32)
    for shape in ((ELEMENTS,), (16, 128, 128)):
        x = draw.standard_normal(shape).astype(np.float32)
        size = "x".join(map(str, shape))
        yield f"gaps of one, {size}", _padded((0, 1, 1)), [x]
        yield f"gaps of two between, {size}", _padded((0, 0, 2)), [x]
        yield f"gaps of one, u8, {size}", _padded((0, 1, 1)), [np.abs(8 * x).astype(np.uint8)]
        yield f"gradient of every other, {size}", jax.grad(lambda x: (x[..., ::2] ** 2).sum()), [x]
    yield "gaps in both dimensions, 2x64x56x56", _padded((0, 1, 1), (0, 1, 1)), [images]
    yield "twice the size, 2x64x56x56", _twice(2), [images]
    yield "twice the size, 2x56x56x64", _twice(1), [np.ascontiguousarray(images.transpose(0, 2, 3, 1))]
    yield "reflected, 2x64x56x56", lambda x: jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="reflect"), [images]
