"""Ops on narrow arrays, which end in a few elements (points, colours, small tables), of 120,000 elements: the group `narrow` of
programs.py."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ELEMENTS = 120_000


def _unary(width: int) -> dict:
    return {
        "exp": jnp.exp,
        "flip along rows": lambda x: x[:, ::-1] + 1,
        "roll of rows": lambda x: jnp.roll(x, 1, 0),
        "roll along rows": lambda x: jnp.roll(x, 1, -1),
        "pad along rows": lambda x: jnp.pad(x, ((0, 0), (1, 1))),
        "differences of rows": lambda x: jnp.diff(x, axis=0),
        "every other row": lambda x: x[::2] + 1,
        "repeated rows": lambda x: jnp.repeat(x, 2, 0),
        "tiled along rows": lambda x: jnp.tile(x, (1, 2)),
        "outer products": lambda x: x[:, :, None] * x[:, None, :],
        "transpose": lambda x: x.T + 1,
        "sum along rows": lambda x: x.sum(-1),
        "sum of rows": lambda x: x.sum(0),
        "any": lambda x: (x > 1).any(-1),
        "argmax along rows": lambda x: x.argmax(-1),
        "cumsum along rows": lambda x: jnp.cumsum(x, -1),
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "unit vectors": lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True),
        "greatest": lambda x: lax.top_k(x, 1),
        "sort": lambda x: jnp.sort(x, -1),
        "first column": lambda x: x[:, 0] * 2,
    }


def narrow() -> Iterator[tuple]:
    """Name, function, arguments."""
    for width in (3, 7, 12):
        rows = ELEMENTS // width
        draw = np.random.default_rng(width)
        x, y = (draw.standard_normal((rows, width)).astype(np.float32) for _ in range(2))
        some = draw.integers(0, rows, rows // 2)
        programs = {name: (function, [x]) for name, function in _unary(width).items()}
        programs |= {
            "x + y x": (lambda x, y: x + y * x, [x, y]),
            "times a row": (lambda x, w: x * w + x, [x, x[0]]),
            "times a column": (lambda x, v: x * v[:, None] + x, [x, x[:, 0]]),
            "from columns": (lambda x: x.T + 1, [np.ascontiguousarray(x.T)]),
            "stack": (lambda *columns: jnp.stack(columns, -1), [np.ascontiguousarray(x[:, k]) for k in range(width)]),
            "side by side": (lambda x, y: jnp.concatenate([x, y], -1), [x, y]),
            "rows of a table": (lambda x, i: x[i], [x, some]),
            "added to rows": (lambda x, i, y: x.at[i].add(y), [x, some, y[:rows // 2]]),
            "added to rows, s32": (lambda x, i, y: x.at[i].add(y), [x.astype(np.int32), some, y[:rows // 2].astype(np.int32)]),
            "pad along rows, u8": (_unary(width)["pad along rows"], [np.abs(8 * x).astype(np.uint8)]),
            "times a row, u8": (lambda x, w: x * w + x, [np.abs(8 * x).astype(np.uint8), np.arange(width, dtype=np.uint8)]),
            "distances of 300": (lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1), [x[:300], y[:300]]),
        }
        for name, (function, arguments) in programs.items():
            yield f"{name}, {rows}x{width}", function, arguments
