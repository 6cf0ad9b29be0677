"""The fixed lists of programs that Tenon and its peers are timed on: functions of JAX with their arguments."""

import dataclasses
import functools
import pathlib
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclasses.dataclass
class Program:
    group: str  # rows, contractions, small, models
    name: str
    function: Callable
    arguments: list[Any]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def rows() -> list[Program]:
    x = numbers(1024, 1024)
    def normalised(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    listed = {
        "gelu": jax.nn.gelu,
        "softmax of rows": lambda x: jax.nn.softmax(x, -1),
        "softmax of columns": lambda x: jax.nn.softmax(x, 0),
        "layer norm": normalised,
        "sum of rows": lambda x: x.sum(-1),
        "sum of columns": lambda x: x.sum(0),
        "sum of all": lambda x: x.sum(),
        "transpose": lambda x: x.T,
    }
    return [Program("rows", f"{name} 1024x1024", function, [x]) for name, function in listed.items()]


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
        listed.append(Program("contractions", line, product, [numbers(*batch, *x), numbers(*batch, *y, seed=1)]))
    return listed


def small() -> list[Program]:
    def leaves(carry, xs):
        def step(carry, x):
            return {k: jnp.tanh(v * 0.9 + x * 0.1) for k, v in carry.items()}, sum(list(carry.values())[:3])
        return lax.scan(step, carry, xs)
    start = {f"k{i}": np.float32(i / 60) for i in range(60)}
    def loop(x):
        return lax.while_loop(lambda s: s[0] < 4_000_000, lambda s: (s[0] + 1, s[1] * 0.999 + 0.5), (0, x))
    def matrices(carry, xs):
        return lax.scan(lambda c, x: (c @ c * 0.5 + x, c.sum()), carry, xs)
    def lstm(h, c, weights, biases, xs):
        def step(state, x):
            h, c = state
            for w, b in zip(weights, biases):
                i, f, g, o = jnp.split(jnp.concatenate([x, h]) @ w + b, 4)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                x = h
            return (h, c), h
        return lax.scan(step, (h, c), xs)
    def graph(x):
        return functools.reduce(lambda a, i: jnp.sin(a) + i if i % 2 else a * 1.1 - x, range(20), x)
    layers = [numbers(120, 240, seed=i) * 0.1 for i in range(3)]
    return [
        Program("small", "scan, 60 scalar leaves", leaves, [start, numbers(1000)]),
        Program("small", "its gradient", jax.grad(lambda c, xs: leaves(c, xs)[1].sum()), [start, numbers(1000)]),
        Program("small", "while, 4 million scalar steps", loop, [np.float32(1)]),
        Program("small", "scan, 3x3 carry", matrices, [numbers(3, 3) * 0.1, numbers(1000, 3, 3) * 0.1]),
        Program("small", "LSTM, batch 1, 3 x 60", lstm, [numbers(60), numbers(60), layers, [numbers(240) for _ in layers], numbers(100, 60)]),
        Program("small", "40 ops on 64 numbers", graph, [numbers(64)]),
    ]


def models() -> list[Program]:
    def digits(parameters, x, y):
        def loss(parameters):
            w1, b1, w2, b2 = parameters
            logits = jnp.tanh(x @ w1 + b1) @ w2 + b2
            return -(y * jax.nn.log_softmax(logits)).sum(-1).mean()
        return [p - 0.1 * g for p, g in zip(parameters, jax.grad(loss)(parameters))]
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
        Program("models", "encoder layer, 128 x 256", encoder,
                [numbers(128, 256), *square, numbers(256, 1024) * 0.06, numbers(1024, 256) * 0.03]),
    ]


def all_programs() -> list[Program]:
    return rows() + contractions() + small() + models()
