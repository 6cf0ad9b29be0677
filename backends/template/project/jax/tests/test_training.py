"""A small network learns on the device, and on JAX's CPU beside it: both must come to the same place.

    python jax/tests/test_training.py           # prints both losses; pytest runs it too (the package is installed)
"""

import os

import jax_template

os.environ.setdefault("JAX_PLATFORMS", f"{jax_template.PLATFORM},cpu")

import jax  # noqa: E402  JAX reads JAX_PLATFORMS when it is imported.
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

STEPS = 100


def data():
    """Points within and around a circle."""
    points = np.random.RandomState(0).uniform(-1, 1, (128, 2)).astype(np.float32)
    return points, (np.square(points).sum(1) < 0.5).astype(np.int32)


def initial():
    random = np.random.RandomState(1)
    return [(random.randn(m, n).astype(np.float32) * np.sqrt(2 / m).astype(np.float32), np.zeros(n, np.float32))
            for m, n in [(2, 32), (32, 2)]]


def loss(parameters, x, y):
    (w1, b1), (w2, b2) = parameters
    scores = jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)
    return -jnp.mean(jnp.take_along_axis(scores, y[:, None], 1))


@jax.jit
def step(parameters, x, y):
    value, gradient = jax.value_and_grad(loss)(parameters, x, y)
    return jax.tree.map(lambda p, g: p - 0.5 * g, parameters, gradient), value


def train(platform):
    """The loss of each step on that platform."""
    device = jax.devices(platform)[0]
    parameters, x, y = jax.device_put((initial(), *data()), device)
    losses = []
    for _ in range(STEPS):
        parameters, value = step(parameters, x, y)
        assert value.devices() == {device}, value.devices()
        losses.append(float(value))
    return losses


def test_training():
    here, cpu = train(jax_template.PLATFORM), train("cpu")
    print(f"{jax_template.PLATFORM}: loss {here[0]:.4f} -> {here[-1]:.4f}; cpu: {cpu[0]:.4f} -> {cpu[-1]:.4f}")
    assert here[-1] < 0.4 * here[0], here
    np.testing.assert_allclose(here, cpu, rtol=1e-2)


if __name__ == "__main__":
    test_training()
