"""The fixed lists of programs that Tenon and its peers are timed on: functions of JAX with their arguments."""

import dataclasses
import functools
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


# m, n, k
CONTRACTIONS = [(s, s, s) for s in (16, 32, 64, 128, 256, 384, 512, 768, 1024)] + [
    (m, n, k) for m in (1, 8, 32, 128) for n, k in ((64, 256), (256, 256), (256, 1024), (1024, 256), (1000, 784), (10, 784))] + [
    (1024, 1, 1024), (256, 1, 4096), (100, 100, 100), (60, 60, 60), (3136, 64, 576), (784, 128, 1152), (196, 256, 2304),
    (512, 64, 512), (64, 512, 512), (2048, 64, 64), (64, 2048, 64), (17, 33, 65), (129, 257, 65), (1000, 10, 500)]


def contractions() -> list[Program]:
    def plain(x, y):
        return x @ y
    listed = [Program("contractions", f"{m}x{n}x{k}", plain, [numbers(m, k), numbers(k, n, seed=1)])
              for m, n, k in CONTRACTIONS]
    for m, n, k in ((64, 64, 64), (256, 256, 256), (512, 512, 512), (128, 1024, 256)):
        listed.append(Program("contractions", f"{m}x{n}x{k} transposed right", lambda x, y: x @ y.T,
                              [numbers(m, k), numbers(n, k, seed=1)]))
        listed.append(Program("contractions", f"{m}x{n}x{k} transposed left", lambda x, y: x.T @ y,
                              [numbers(k, m), numbers(k, n, seed=1)]))
    for batch, m, n, k in ((8, 64, 64, 64), (32, 128, 128, 32), (16, 32, 256, 64), (4, 256, 64, 256), (64, 16, 16, 16)):
        listed.append(Program("contractions", f"batch of {batch} {m}x{n}x{k}", plain,
                              [numbers(batch, m, k), numbers(batch, k, n, seed=1)]))
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
