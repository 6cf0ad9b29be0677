"""The memory of programs whose arrays between products are large."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(os.environ.get("TENON_DEVICE", "cpu") != "cpu",
                                reason="takes minutes on a simulator; passes are the same for all devices")


def attention(q, k, v):
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / 4
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -jnp.inf)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)


def test_gradient_of_a_long_attention():
    """Two layers of 2,304 queries: no array of scores, 42 MB each, is in memory as a whole."""
    def loss(w, x):
        for each in w:
            q, k, v = jnp.split((x @ each).reshape(2304, 2, 48).transpose(1, 0, 2), 3, -1)
            x = x + attention(q, k, v).transpose(1, 0, 2).reshape(2304, 32)
            x = x / jnp.sqrt((x**2).mean())
        return (x**3).mean()

    random = np.random.RandomState(1)
    w = (random.randn(2, 32, 96) / 4).astype(np.float32)
    x = random.randn(2304, 32).astype(np.float32)
    compiled = jax.jit(jax.value_and_grad(loss, (0, 1))).lower(w, x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 40_000_000
    value, gradients = compiled(w, x)
    with jax.default_device(jax.devices("cpu")[0]):
        expected, expected_gradients = jax.jit(jax.value_and_grad(loss, (0, 1)))(w, x)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for got, wanted in zip(gradients, expected_gradients):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5 * np.abs(wanted).max())
