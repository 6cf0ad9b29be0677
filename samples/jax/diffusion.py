#!/usr/bin/env python3
"""A diffusion model: a U-Net in flax learns to take the noise off small pictures, and draws new ones from noise.

    TENON_DEVICE=cpu python samples/jax/diffusion.py --picture diffusion.png
    TENON_DEVICE=cpu CHANNELS=128 python samples/jax/diffusion.py --steps 20     # a step as large as in use

Denoising diffusion (Ho, Jain and Abbeel, 2020) on rings and discs of 16x16 points.
"""

import os
import sys

import sample
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

SIZE, BATCH, TIMES = 16, 32, 50
CHANNELS = int(os.environ.get("CHANNELS", "32"))
BETAS = np.linspace(1e-3, 0.15, TIMES, dtype=np.float32)
KEPT = np.cumprod(1 - BETAS)  # The part of a picture's variance that is left at each time.


def pictures(random, count: int):
    """Rings and discs: [count, SIZE, SIZE, 1], from -1 to 1."""
    grid = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), -1)[None]
    middle = random.uniform(5, SIZE - 5, (count, 1, 1, 2))
    radius = random.uniform(2.5, 4.5, (count, 1, 1))
    distance = np.sqrt(np.square(grid - middle).sum(-1))
    hole = np.where(random.rand(count, 1, 1) < 0.5, radius - 1.6, 0)
    return (np.where((distance < radius) & (distance >= hole), 1.0, -1.0)[..., None]).astype(np.float32)


class Residual(nnx.Module):
    def __init__(self, inputs: int, outputs: int, rngs: nnx.Rngs):
        self.norm = nnx.GroupNorm(inputs, num_groups=8, rngs=rngs)
        self.first = nnx.Conv(inputs, outputs, (3, 3), rngs=rngs)
        self.time = nnx.Linear(CHANNELS, outputs, rngs=rngs)
        self.norm_inner = nnx.GroupNorm(outputs, num_groups=8, rngs=rngs)
        self.second = nnx.Conv(outputs, outputs, (3, 3), rngs=rngs)
        self.skip = nnx.Conv(inputs, outputs, (1, 1), rngs=rngs)

    def __call__(self, x, time):
        y = self.first(nnx.silu(self.norm(x))) + self.time(time)[:, None, None]
        return self.skip(x) + self.second(nnx.silu(self.norm_inner(y)))


class UNet(nnx.Module):
    """The noise in pictures [batch, SIZE, SIZE, 1] at times [batch]."""

    def __init__(self, rngs: nnx.Rngs):
        c = CHANNELS
        self.begin = nnx.Conv(1, c, (3, 3), rngs=rngs)
        self.time = nnx.Linear(c, c, rngs=rngs)
        self.down = Residual(c, c, rngs)
        self.shrink = nnx.Conv(c, 2 * c, (3, 3), strides=(2, 2), rngs=rngs)
        self.middle = Residual(2 * c, 2 * c, rngs)
        self.grow = nnx.ConvTranspose(2 * c, c, (4, 4), strides=(2, 2), rngs=rngs)
        self.up = Residual(2 * c, c, rngs)
        self.end = nnx.Conv(c, 1, (3, 3), rngs=rngs)

    def __call__(self, x, times):
        rates = jnp.exp(-jnp.arange(CHANNELS // 2) * (6.0 / CHANNELS))
        angles = times[:, None] * rates
        time = nnx.silu(self.time(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)))
        large = self.down(self.begin(x), time)
        small = self.middle(self.shrink(large), time)
        return self.end(nnx.silu(self.up(jnp.concatenate([large, self.grow(small)], -1), time)))


@nnx.jit
def step(model, optimizer, clean, noise, times):
    kept = jnp.asarray(KEPT)[times][:, None, None, None]

    def loss(model):
        guess = model(jnp.sqrt(kept) * clean + jnp.sqrt(1 - kept) * noise, times.astype(jnp.float32))
        return jnp.mean((guess - noise) ** 2)

    value, gradient = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradient)
    return value


@nnx.jit
def draw_new(model, noise):
    """Pictures from noise [TIMES + 1, count, SIZE, SIZE, 1]."""

    def earlier(x, at):
        time, fresh = at
        beta, kept = jnp.asarray(BETAS)[time], jnp.asarray(KEPT)[time]
        guess = model(x, jnp.full(x.shape[0], time, jnp.float32))
        x = (x - beta / jnp.sqrt(1 - kept) * guess) / jnp.sqrt(1 - beta)
        return x + jnp.where(time > 0, jnp.sqrt(beta), 0.0) * fresh, None

    return jax.lax.scan(earlier, noise[0], (jnp.arange(TIMES)[::-1], noise[1:]))[0]


def run(count: int) -> sample.Outcome:
    random = np.random.RandomState(0)
    model = UNet(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)
    losses = []
    for _ in sample.steps(count, "learning"):
        clean = pictures(random, BATCH)
        noise = random.randn(*clean.shape).astype(np.float32)
        times = random.randint(0, TIMES, BATCH).astype(np.int32)
        losses.append(float(step(model, optimizer, *map(jnp.asarray, (clean, noise, times)))))
    made = draw_new(model, jnp.asarray(random.randn(TIMES + 1, 12, SIZE, SIZE, 1).astype(np.float32)))
    return sample.Outcome(losses, {"made": np.asarray(made)})


def draw(figure, outcome: sample.Outcome) -> None:
    left, right = figure.subplots(1, 2)
    sample.draw_series(left, outcome, "loss")
    rows = outcome.shown["made"].reshape(3, 4, SIZE, SIZE).swapaxes(1, 2).reshape(3 * SIZE, 4 * SIZE)
    right.imshow(rows, cmap="gray", vmin=-1, vmax=1)
    right.set(title="drawn from noise", xticks=[], yticks=[])


if __name__ == "__main__":
    sys.exit(sample.main(__doc__.splitlines()[0], run, draw, default_steps=300, tolerance=2e-2))
