#!/usr/bin/env python3
"""Trains a classifier of scikit-learn's digits with JAX on the device that TENON_DEVICE names.

    JAX_PLATFORMS=tenon TENON_DEVICE=template frameworks/jax/.venv/bin/python frameworks/jax/examples/digits.py

The images are those of samples/digits_*: 2,560 draws to learn from, 360 others to be tested on.
"""

import argparse
import pathlib
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

SAMPLES = pathlib.Path(__file__).resolve().parents[3] / "samples"


def logits(parameters, x):
    (w1, b1), (w2, b2) = parameters
    return jnp.maximum(x @ w1 + b1, 0) @ w2 + b2


def loss(parameters, x, y):
    scores = jax.nn.log_softmax(logits(parameters, x))
    return -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=1))


@partial(jax.jit, donate_argnums=0)
def step(parameters, x, y):
    """One step of gradient descent; the old parameters are donated."""
    value, gradient = jax.value_and_grad(loss)(parameters, x, y)
    return jax.tree.map(lambda p, g: p - 0.5 * g, parameters, gradient), value


@jax.jit
def right(parameters, x, y):
    return jnp.sum(jnp.argmax(logits(parameters, x), axis=1) == y)


def initial(key):
    one, two = jax.random.split(key)
    return [(jax.random.normal(one, (64, 128)) / 8, jnp.zeros(128)), (jax.random.normal(two, (128, 10)) / 11, jnp.zeros(10))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10, help="times that all images are seen")
    parser.add_argument("--least", type=float, default=95, help="percent of the test images that must be right")
    options = parser.parse_args()
    images = np.load(SAMPLES / "digits_train_step/batches_x.npy")
    labels = np.load(SAMPLES / "digits_train_step/batches_y.npy")
    test_images = np.load(SAMPLES / "digits_inference/in_4.npy")
    test_labels = np.load(SAMPLES / "digits_inference/labels.npy").astype(labels.dtype)
    print(f"   on {jax.devices()[0]}", flush=True)
    start = time.monotonic()
    parameters = initial(jax.random.key(0))
    percent = 0.0
    for epoch in range(options.epochs):
        for number, (x, y) in enumerate(zip(images, labels)):
            parameters, value = step(parameters, x, y)
            if sys.stdout.isatty():
                done = 20 * (number + 1) // len(images)
                print(f"\r   epoch {epoch + 1}  [{'#' * done}{'.' * (20 - done)}]", end="", flush=True)
        percent = 100 * int(right(parameters, test_images, test_labels)) / len(test_labels)
        print(f"\r   epoch {epoch + 1}  loss {float(value):.4f}  {percent:5.1f} % of the test images right", flush=True)
    print(f"   {time.monotonic() - start:.1f} s, compilation included")
    return 0 if percent >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
