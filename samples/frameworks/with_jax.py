#!/usr/bin/env python3
"""A classifier of digits in JAX, trained on a device of Tenon and on JAX's CPU.

    frameworks/jax/.venv/bin/python samples/frameworks/with_jax.py --device cpu
"""

import os
import sys
import time
from functools import partial

import digits

if "-h" not in sys.argv and "--help" not in sys.argv:
    os.environ["TENON_DEVICE"] = digits.options(__doc__.splitlines()[0]).device
os.environ.setdefault("JAX_PLATFORMS", "tenon,cpu")

import jax  # noqa: E402  It reads JAX_PLATFORMS when it is imported.
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402


def scores_of(weights, x):
    for number in "12":
        x = lax.conv_general_dilated(x, weights["filter" + number], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jnp.tanh(x + weights["bias" + number])
        x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    return x.reshape(len(x), -1) @ weights["matrix"] + weights["bias3"]


def loss_of(weights, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores_of(weights, x)), y[:, None], 1))


@partial(jax.jit, donate_argnums=0)
def step(weights, x, y):
    loss, gradient = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree.map(lambda w, g: w - digits.RATE * g, weights, gradient), loss


def train(weights, steps, platform):
    with jax.default_device(jax.devices(platform)[0]):
        weights, losses, times = jax.device_put(weights, jax.devices(platform)[0]), [], []
        for x, y in digits.batches(steps, f"JAX on {platform}"):
            start = time.perf_counter()
            weights, loss = step(weights, x, y)
            losses.append(float(loss))
            times.append(time.perf_counter() - start)
        assert loss.devices() == {jax.devices(platform)[0]}
        accuracy = digits.right(jax.jit(scores_of)(weights, digits.test_data()[0]))
    return losses, digits.median_step(times), accuracy, {name: np.asarray(each) for name, each in weights.items()}


if __name__ == "__main__":
    sys.exit(digits.train(__doc__.splitlines()[0], "JAX", lambda weights, steps, _: train(weights, steps, "tenon"),
                          lambda weights, steps, _: train(weights, steps, "cpu")))
