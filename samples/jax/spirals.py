#!/usr/bin/env python3
"""A network tells two spirals apart, trained by optax: clipped gradients, AdamW, warm-up and a cosine decay.

    TENON_DEVICE=cpu python samples/jax/spirals.py --picture spirals.png
"""

import functools
import sys

import sample
import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZES = [2, 64, 64, 2]


def points(count: int = 512):
    """Points of two spirals [count, 2], and which each is of."""
    random = np.random.RandomState(0)
    turn = np.sqrt(random.rand(count)) * 3
    kind = random.randint(0, 2, count)
    angle = turn * np.pi + np.pi * kind
    places = np.stack([np.cos(angle), np.sin(angle)], 1) * turn[:, None] / 3
    return (places + random.randn(count, 2) * 0.02).astype(np.float32), kind.astype(np.int32)


def initial():
    keys = jax.random.split(jax.random.key(0), len(SIZES) - 1)
    return [{"w": jax.random.normal(key, (m, n)) * jnp.sqrt(2 / m), "b": jnp.zeros(n)}
            for key, m, n in zip(keys, SIZES, SIZES[1:])]


def scores(parameters, x):
    for layer in parameters[:-1]:
        x = jax.nn.silu(x @ layer["w"] + layer["b"])
    return x @ parameters[-1]["w"] + parameters[-1]["b"]


def loss(parameters, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(scores(parameters, x), y).mean()


def run(count: int) -> sample.Outcome:
    x, y = map(jnp.asarray, points())
    schedule = optax.warmup_cosine_decay_schedule(0.0, 2e-2, max(count // 10, 1), count)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-3))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(parameters, state):
        value, gradient = jax.value_and_grad(loss)(parameters, x, y)
        updates, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    parameters = initial()
    state = optimizer.init(parameters)
    losses = []
    for _ in sample.steps(count, "learning"):
        parameters, state, value = step(parameters, state)
        losses.append(float(value))
    grid = np.stack(np.meshgrid(np.linspace(-1.2, 1.2, 160), np.linspace(-1.2, 1.2, 160)), -1).astype(np.float32)
    surface = jax.nn.softmax(jax.jit(jax.vmap(functools.partial(scores, parameters)))(grid))[..., 1]
    return sample.Outcome(losses, {"surface": np.asarray(surface)})


def draw(figure, outcome: sample.Outcome) -> None:
    left, right = figure.subplots(1, 2)
    sample.draw_series(left, outcome, "loss")
    x, y = points()
    right.imshow(outcome.shown["surface"], extent=(-1.2, 1.2, -1.2, 1.2), origin="lower", cmap="RdBu", alpha=0.6)
    right.scatter(*x.T, c=y, cmap="RdBu", s=6, edgecolors="none")
    right.set(title="which spiral", xticks=[], yticks=[])


if __name__ == "__main__":
    sys.exit(sample.main(__doc__.splitlines()[0], run, draw, default_steps=400, tolerance=2e-2))
