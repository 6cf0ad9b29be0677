#!/usr/bin/env python3
"""A transformer in flax learns the letters of a licence, and then writes some.

    TENON_DEVICE=cpu python samples/jax/text.py --picture text.png
"""

import pathlib
import sys

import sample
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

CONTEXT, BATCH, WIDTH, HEADS, LAYERS = 64, 16, 64, 4, 2
TEXT = (pathlib.Path(__file__).resolve().parents[2] / "LICENSE").read_text()
LETTERS = sorted(set(TEXT))
CODES = np.array([LETTERS.index(letter) for letter in TEXT], np.int32)


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(num_heads=HEADS, in_features=WIDTH, decode=False, rngs=rngs)
        self.norm_inner = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.wide = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.narrow = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attention(self.norm(x), mask=mask)
        return x + self.narrow(nnx.gelu(self.wide(self.norm_inner(x))))


class Transformer(nnx.Module):
    """Letters [batch, length] to scores of the letter behind each [batch, length, letters]."""

    def __init__(self, rngs: nnx.Rngs):
        self.letters = nnx.Embed(len(LETTERS), WIDTH, rngs=rngs)
        self.places = nnx.Embed(CONTEXT, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.scores = nnx.Linear(WIDTH, len(LETTERS), rngs=rngs)

    def __call__(self, codes):
        x = self.letters(codes) + self.places(jnp.arange(codes.shape[-1]))
        mask = nnx.make_causal_mask(codes)
        for block in self.blocks:
            x = block(x, mask)
        return self.scores(self.norm(x))


@nnx.jit
def step(model, optimizer, codes):
    def loss(model):
        scores = model(codes[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(scores, codes[:, 1:]).mean()

    value, gradient = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradient)
    return value


@nnx.jit
def write(model, key, count_of: jax.Array):
    """Letters drawn one after the other, as many as `count_of` is long."""

    def next_letter(codes, key):
        letter = jax.random.categorical(key, model(codes[None])[0, -1] / 0.7)
        return jnp.append(codes[1:], letter.astype(codes.dtype)), letter

    return jax.lax.scan(next_letter, jnp.asarray(CODES[:CONTEXT]), jax.random.split(key, count_of.size))[1]


def run(count: int) -> sample.Outcome:
    model = Transformer(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)
    random = np.random.RandomState(0)
    losses = []
    for _ in sample.steps(count, "learning"):
        starts = random.randint(0, len(CODES) - CONTEXT - 1, BATCH)
        codes = jnp.asarray(np.stack([CODES[start:start + CONTEXT + 1] for start in starts]))
        losses.append(float(step(model, optimizer, codes)))
    written = "".join(LETTERS[code] for code in np.asarray(write(model, jax.random.key(1), jnp.zeros(240))))
    return sample.Outcome(losses, {"text": written})


def draw(figure, outcome: sample.Outcome) -> None:
    left, right = figure.subplots(1, 2)
    sample.draw_series(left, outcome, "loss")
    right.axis("off")
    right.text(0, 1, outcome.shown["text"], va="top", family="monospace", fontsize=8, wrap=True)


if __name__ == "__main__":
    sys.exit(sample.main(__doc__.splitlines()[0], run, draw, default_steps=300, tolerance=2e-2))
