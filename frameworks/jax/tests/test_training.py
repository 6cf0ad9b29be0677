"""A small network learns: the whole of a training step on the device."""

import jax
import jax.numpy as jnp
import numpy as np


def spirals(count):
    """Points of two spirals and which one each is of."""
    random = np.random.RandomState(0)
    turn = np.sqrt(random.rand(count)) * 3
    kind = random.randint(0, 2, count)
    angle = turn + np.pi * kind
    points = np.stack([np.cos(angle), np.sin(angle)], 1) * turn[:, None] / 3
    return (points + random.randn(count, 2) * 0.02).astype(np.float32), kind


def initial(sizes):
    keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
    return [(jax.random.normal(key, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n))
            for key, m, n in zip(keys, sizes, sizes[1:])]


def logits(parameters, x):
    for weight, bias in parameters[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = parameters[-1]
    return x @ weight + bias


def loss(parameters, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(parameters, x)), y[:, None], 1))


def test_training():
    x, y = spirals(128)

    def step(state, _):
        parameters, momentum = state
        value, gradient = jax.value_and_grad(loss)(parameters, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return (jax.tree.map(lambda p, m: p - 0.05 * m, parameters, momentum), momentum), value

    train = jax.jit(lambda state: jax.lax.scan(step, state, length=20), donate_argnums=0)
    parameters = initial([2, 32, 32, 2])
    state = (parameters, jax.tree.map(jnp.zeros_like, parameters))
    losses = []
    for _ in range(10):
        state, values = train(state)
        losses += list(np.asarray(values))
    assert losses[-1] < 0.2 * losses[0], losses[::20]
    right = np.mean(np.argmax(np.asarray(logits(state[0], x)), 1) == y)
    assert right > 0.9, right
