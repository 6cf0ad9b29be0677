#!/usr/bin/env python3
"""A recurrent network in equinox says which way a noisy path turns.

    TENON_DEVICE=cpu python samples/jax/recurrent.py --picture recurrent.png
"""

import sys

import sample
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

LENGTH, COUNT, HIDDEN = 40, 256, 32


def paths():
    """Paths [COUNT, LENGTH, 2], and whether each turns to the left."""
    random = np.random.RandomState(0)
    left = random.randint(0, 2, COUNT)
    turned = random.rand(COUNT, 1) * 6 + np.linspace(0, 5, LENGTH) * np.where(left, 1, -1)[:, None]
    radius = np.linspace(0.3, 1, LENGTH)
    places = np.stack([np.cos(turned), np.sin(turned)], -1) * radius[:, None]
    return (places + random.randn(COUNT, LENGTH, 2) * 0.15).astype(np.float32), left.astype(np.float32)


class Turn(eqx.Module):
    """A GRU over a path [LENGTH, 2], and the logit of a turn to the left after each of its points."""

    cell: eqx.nn.GRUCell
    logit: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(2, HIDDEN, key=first)
        self.logit = eqx.nn.Linear(HIDDEN, "scalar", key=second)

    def __call__(self, path):
        def along(state, point):
            state = self.cell(point, state)
            return state, self.logit(state)

        return jax.lax.scan(along, jnp.zeros(HIDDEN), path)[1]


def loss(model, x, y):
    return optax.sigmoid_binary_cross_entropy(jax.vmap(model)(x)[:, -1], y).mean()


def run(count: int) -> sample.Outcome:
    x, y = map(jnp.asarray, paths())
    optimizer = optax.adam(1e-2)

    @eqx.filter_jit(donate="all")
    def step(model, state):
        value, gradient = eqx.filter_value_and_grad(loss)(model, x, y)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(model, updates), state, value

    model = Turn(jax.random.key(0))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    losses = []
    for _ in sample.steps(count, "learning"):
        model, state, value = step(model, state)
        losses.append(float(value))
    sure = eqx.filter_jit(lambda model: jax.nn.sigmoid(jax.vmap(model)(x[:8])))(model)
    return sample.Outcome(losses, {"sure": np.asarray(sure), "left": np.asarray(y[:8])})


def draw(figure, outcome: sample.Outcome) -> None:
    left, right = figure.subplots(1, 2)
    sample.draw_series(left, outcome, "loss")
    for sure, turns_left in zip(outcome.shown["sure"], outcome.shown["left"]):
        right.plot(sure, color="tab:blue" if turns_left else "tab:red")
    right.set(title="how sure it is of a turn to the left (blue: it is one)", xlabel="points seen", ylim=(0, 1))


if __name__ == "__main__":
    sys.exit(sample.main(__doc__.splitlines()[0], run, draw, default_steps=150, tolerance=2e-2))
