"""Neural networks on random data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from .sample import RandomInput, Sample, dense_weights, random_normal

MLP_RATE = 0.1
HEADS = 4


def mlp_784_train_step(w1, b1, w2, b2, images, labels):
    """One step of gradient descent, with the labels as one-hot rows."""
    parameters = (w1, b1, w2, b2)

    def loss_of(parameters):
        w1, b1, w2, b2 = parameters
        logits = jax.nn.relu(images @ w1 + b1) @ w2 + b2
        targets = jax.nn.one_hot(labels, logits.shape[1])
        return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(logits), axis=1))

    loss, gradients = jax.value_and_grad(loss_of)(parameters)
    updated = [value - MLP_RATE * slope for value, slope in zip(parameters, gradients, strict=True)]
    return *updated, loss


def mlp_784_train_step_sample() -> Sample:
    """A training step of a useful size for timing; nothing but the program is stored."""

    def normal(seed: int, stddev: float, *shape: int) -> RandomInput:
        return RandomInput(shape, "float32", "normal", seed, {"mean": 0.0, "stddev": stddev})

    labels = RandomInput((256,), "int32", "integers", 5, {"low": 0, "high": 10})
    return Sample(
        description="One step of gradient descent (rate 0.1, batch 256) on the softmax "
        "cross-entropy of a 784-512-10 MLP, for timing. Only the program is stored: make the "
        "inputs as described, with any generator. Outputs 0..3 have the order and shapes of "
        "inputs 0..3; output 4 is the loss.",
        function=mlp_784_train_step,
        inputs=(
            normal(0, 0.05, 784, 512), normal(1, 0.05, 512),
            normal(2, 0.06, 512, 10), normal(3, 0.06, 10),
            normal(4, 1.0, 256, 784), labels,
        ),
        output_names=("w1", "b1", "w2", "b2", "loss"),
        tolerance=1e-4,
    )  # fmt: skip


def lstm(input_weights, state_weights, bias, sequence, hidden, cell):
    """Runs an LSTM over a sequence (time first): all outputs and the final state."""

    def step(state, inputs):
        hidden, cell = state
        gates = inputs @ input_weights + hidden @ state_weights + bias
        input_gate, forget_gate, candidate, output_gate = jnp.split(gates, 4, axis=1)
        cell = jax.nn.sigmoid(forget_gate) * cell + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
        hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(cell)
        return (hidden, cell), hidden

    (hidden, cell), outputs = lax.scan(step, (hidden, cell), sequence)
    return outputs, hidden, cell


def lstm_sample() -> Sample:
    """An LSTM with 24 features in and a state of 32."""
    rng = np.random.default_rng(10)
    features, state, steps, batch = 24, 32, 16, 4
    return Sample(
        description="An LSTM (24 features, state of 32) over 16 steps of a batch of 4 with "
        "lax.scan; gives every step's output and the final state.",
        function=lstm,
        inputs=(
            random_normal(rng, (features, 4 * state), scale=features**-0.5),
            random_normal(rng, (state, 4 * state), scale=state**-0.5),
            random_normal(rng, (4 * state,), scale=0.1),
            random_normal(rng, (steps, batch, features)),
            random_normal(rng, (batch, state), scale=0.5),
            random_normal(rng, (batch, state), scale=0.5),
        ),
        output_names=("outputs", "hidden", "cell"),
    )


def layer_norm(values: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    """Brings the last axis to mean 0 and variance 1, then scales and shifts it."""
    mean = jnp.mean(values, axis=-1, keepdims=True)
    variance = jnp.var(values, axis=-1, keepdims=True)
    return (values - mean) * lax.rsqrt(variance + 1e-5) * scale + bias


def attention(values: jax.Array, key_mask: jax.Array, qkv: jax.Array, out: jax.Array) -> jax.Array:
    """Multi-head self-attention; `key_mask` is false where a position is padding."""
    batch, length, width = values.shape
    split = (values @ qkv).reshape(batch, length, 3, HEADS, width // HEADS)
    query, key, value = split[:, :, 0], split[:, :, 1], split[:, :, 2]
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.float32(np.sqrt(width // HEADS))
    scores = jnp.where(key_mask[:, None, None, :], scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)
    return mixed.reshape(batch, length, width) @ out


def gelu_with_erf(values: jax.Array) -> jax.Array:
    """The exact GELU written with erf, as other frameworks export it."""
    return 0.5 * values * (1.0 + lax.erf(values * np.float32(np.sqrt(0.5))))


def transformer_block(values, key_mask, scale1, bias1, qkv, out, scale2, bias2, up, up_bias, down, down_bias):
    """A pre-norm encoder block, with GELU as erfc, as erf and as tanh."""

    def block(activation: Callable[[jax.Array], jax.Array]) -> jax.Array:
        attended = values + attention(layer_norm(values, scale1, bias1), key_mask, qkv, out)
        widened = activation(layer_norm(attended, scale2, bias2) @ up + up_bias)
        return attended + widened @ down + down_bias

    with_erfc = partial(jax.nn.gelu, approximate=False)
    with_tanh = partial(jax.nn.gelu, approximate=True)
    return block(with_erfc), block(gelu_with_erf), block(with_tanh)


def transformer_block_sample() -> Sample:
    """An encoder block with 4 heads; the second sequence has 5 positions of padding."""
    rng = np.random.default_rng(11)
    batch, length, width, wide = 2, 16, 64, 256
    key_mask = np.arange(length)[None, :] < np.array([[length], [length - 5]])
    return Sample(
        description="A pre-norm transformer encoder block (batch 2, length 16, width 64, 4 heads, "
        "key mask). Three outputs differ in the GELU only: exact with erfc (as jax.nn.gelu "
        "lowers), exact with erf, and the tanh approximation.",
        function=transformer_block,
        inputs=(
            random_normal(rng, (batch, length, width)), key_mask,
            1 + random_normal(rng, (width,), scale=0.1), random_normal(rng, (width,), scale=0.1),
            random_normal(rng, (width, 3 * width), scale=width**-0.5),
            random_normal(rng, (width, width), scale=width**-0.5),
            1 + random_normal(rng, (width,), scale=0.1), random_normal(rng, (width,), scale=0.1),
            dense_weights(rng, width, wide), random_normal(rng, (wide,), scale=0.1),
            dense_weights(rng, wide, width), random_normal(rng, (width,), scale=0.1),
        ),
        output_names=("with_erfc", "with_erf", "with_tanh"),
        tolerance=5e-5,
    )  # fmt: skip


def bf16_mlp(w1, b1, w2, b2, values):
    """An MLP that computes in bfloat16 and accumulates its last layer in float32."""
    hidden = jnp.tanh(values @ w1 + b1)
    logits = jnp.matmul(hidden, w2, preferred_element_type=jnp.float32)
    return logits + b2.astype(jnp.float32), hidden


def bf16_mlp_sample() -> Sample:
    """The bfloat16 MLP on a batch of 16."""
    rng = np.random.default_rng(12)
    arrays = (
        dense_weights(rng, 32, 64), random_normal(rng, (64,), scale=0.1),
        dense_weights(rng, 64, 8), random_normal(rng, (8,), scale=0.1),
        random_normal(rng, (16, 32)),
    )  # fmt: skip
    return Sample(
        description="A 32-64-8 MLP (tanh) on a batch of 16 that computes in bfloat16; its last "
        "layer takes bfloat16 and gives float32. The hidden layer is a bfloat16 output.",
        function=bf16_mlp,
        inputs=tuple(array.astype(ml_dtypes.bfloat16) for array in arrays),
        output_names=("logits", "hidden"),
        tolerance=3e-2,
    )


def int8_dot(values, weights):
    """An integer product, and the same product scaled back to int8."""
    product = lax.dot_general(values, weights, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    scaled = jnp.round(product.astype(jnp.float32) * np.float32(2.0**-10))
    return product, jnp.clip(scaled, -128, 127).astype(jnp.int8)


def int8_dot_sample() -> Sample:
    """A quantized layer; every value of it is exact in every arithmetic."""
    rng = np.random.default_rng(13)
    return Sample(
        description="int8 (16x32) times int8 (32x8) accumulated in int32, then scaled by 2^-10, "
        "rounded half to even and clamped to int8. All results are exact.",
        function=int8_dot,
        inputs=(
            rng.integers(-128, 128, (16, 32)).astype(np.int8),
            rng.integers(-128, 128, (32, 8)).astype(np.int8),
        ),
        output_names=("product", "requantized"),
    )
