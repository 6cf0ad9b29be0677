"""Products of bf16, f16 and integers of 8 bits, the group `products` of programs.py: plain ones, and layers of them."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

# Rows, columns and products of a sum; `nt`: the right factor is stored transposed; a batch.
SHAPES = (("64 64 64", (64, 64, 64), False, 1), ("256 256 256", (256, 256, 256), False, 1), ("512 512 512 nt", (512, 512, 512), True, 1),
          ("1024 1024 1024", (1024, 1024, 1024), False, 1), ("16 3072 768 nt", (16, 3072, 768), True, 1), ("128 768 3072", (128, 768, 3072), False, 1),
          ("3136 64 576", (3136, 64, 576), False, 1), ("1 3072 768", (1, 3072, 768), False, 1), ("64 64 64 x16", (64, 64, 64), False, 16))


def _factors(kind: str, shape: tuple[int, int, int], transposed: bool, batch: int) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    m, n, k = shape
    before = (batch,) if batch > 1 else ()
    dims = [before + (m, k), before + ((n, k) if transposed else (k, n))]
    if kind == "s8":
        return [draw.integers(-128, 128, each).astype(np.int8) for each in dims]
    return [draw.standard_normal(each).astype(ml_dtypes.bfloat16 if kind == "bf16" else np.float16) for each in dims]


def _product(transposed: bool, kind: str):
    wider = {"preferred_element_type": jnp.int32} if kind == "s8" else {}
    return lambda x, y: jnp.matmul(x, y.mT if transposed else y, **wider)


def dense(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    return jax.nn.gelu(x @ w + b)


def quantised(x: jax.Array, w: jax.Array, scale: jax.Array) -> jax.Array:
    """Of numbers that are u8 less a zero point, by weights of s8 with a scale for each column."""
    sums = lax.dot(x.astype(jnp.int32) - 117, w.astype(jnp.int32), preferred_element_type=jnp.int32)
    return jax.nn.relu(sums.astype(jnp.float32) * scale)


def products() -> Iterator[tuple]:
    """Name, function, arguments."""
    for kind in ("bf16", "f16", "s8"):
        for name, shape, transposed, batch in SHAPES:
            yield f"{name} {kind}", _product(transposed, kind), _factors(kind, shape, transposed, batch)
    x, w = _factors("bf16", (256, 1024, 256), False, 1)
    b = np.linspace(-1, 1, 1024).astype(ml_dtypes.bfloat16)
    yield "dense layer, bf16", dense, [x, w, b]
    yield "its gradient, bf16", jax.grad(lambda x, w, b: (dense(x, w, b).astype(jnp.float32)**2).sum(), (0, 1, 2)), [x, w, b]
    x, w = _factors("s8", (256, 1024, 256), False, 1)
    scale = np.linspace(0.001, 0.01, 1024).astype(np.float32)
    yield "quantised layer, u8 and s8", quantised, [x.view(np.uint8), w, scale]
