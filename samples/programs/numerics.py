"""Numerical programs: a solver, random numbers, sorting, FFT, linear algebra, dynamic shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .sample import Sample, random_normal

SOLVER_STEPS = 24
SOLVER_PRECISION = 1.5e-4
"""Chosen so that no residual is near the limit when the loop ends: the number
of steps does not depend on rounding."""


def solver(matrices, rights):
    """Conjugate gradients on a batch of systems, until each has converged.

    The squared residual of every step is written to a history, which the loop's
    condition and its body read back. A system that has converged stands still.
    """
    limits = SOLVER_PRECISION**2 * jnp.sum(rights**2, axis=1)

    def residual_at(history, step):
        return lax.dynamic_index_in_dim(history, step, axis=0, keepdims=False)

    def unfinished(state):
        step, _, _, _, history = state
        return (step < SOLVER_STEPS) & jnp.any(residual_at(history, step) > limits)

    def advance(state):
        step, solution, residual, direction, history = state
        before = residual_at(history, step)
        active = before > limits
        image = jnp.einsum("bij,bj->bi", matrices, direction)
        curvature = jnp.sum(direction * image, axis=1)
        stride = jnp.where(active, before / jnp.where(active, curvature, 1.0), 0.0)[:, None]
        solution = solution + stride * direction
        residual = residual - stride * image
        after = jnp.sum(residual**2, axis=1)
        turned = residual + (after / before)[:, None] * direction
        direction = jnp.where(active[:, None], turned, direction)
        history = lax.dynamic_update_index_in_dim(history, after, step + 1, axis=0)
        return step + 1, solution, residual, direction, history

    history = jnp.zeros((SOLVER_STEPS + 1, rights.shape[0])).at[0].set(jnp.sum(rights**2, axis=1))
    start = (jnp.int32(0), jnp.zeros_like(rights), rights, rights, history)
    steps, solution, _, _, history = lax.while_loop(unfinished, advance, start)
    return solution, steps, history


def symmetric_positive(rng: np.random.Generator, batch: int, size: int, spread: float) -> np.ndarray:
    """A batch of symmetric matrices with eigenvalues from 1 to `spread`."""
    bases, _ = np.linalg.qr(rng.standard_normal((batch, size, size)))
    eigenvalues = np.linspace(1.0, spread, size)
    matrices = np.einsum("bij,j,bkj->bik", bases, eigenvalues, bases)
    return ((matrices + matrices.transpose(0, 2, 1)) / 2).astype(np.float32)


def solver_sample() -> Sample:
    """Eight well-conditioned systems of 16 unknowns."""
    rng = np.random.default_rng(20)
    return Sample(
        description="Conjugate gradients on 8 symmetric systems of 16 unknowns: a lax.while_loop "
        "that ends when every system has converged, with a history kept by "
        "dynamic_update_slice and read by dynamic_slice.",
        function=solver,
        inputs=(symmetric_positive(rng, 8, 16, spread=4.0), random_normal(rng, (8, 16))),
        output_names=("solution", "steps", "history"),
        tolerance=1e-4,
    )


def random(key_data, logits):
    """Draws from JAX's default generator (threefry) under a key of two uint32 words."""
    keys = jax.random.split(jax.random.wrap_key_data(key_data, impl="threefry2x32"), 6)
    return (
        jax.random.bits(keys[0], (32,), jnp.uint32),
        jax.random.uniform(keys[1], (32,)),
        jax.random.normal(keys[2], (32,)),
        jax.random.randint(keys[3], (32,), 0, 100),
        jax.random.permutation(keys[4], 32),
        jax.random.categorical(keys[5], logits),
    )


def random_sample() -> Sample:
    """One draw of each kind."""
    rng = np.random.default_rng(21)
    return Sample(
        description="jax.random under a raw key: 32 bits words, uniform and normal values, "
        "integers below 100, a permutation of 32, and a class for each of 16 rows of logits. "
        "All but the normal values are exact.",
        function=random,
        inputs=(np.array([0x12345678, 0x9ABCDEF0], np.uint32), random_normal(rng, (16, 10))),
        output_names=("bits", "uniform", "normal", "integers", "permutation", "classes"),
    )


def sort_topk(values, integers):
    """Sorting along an axis, sorting by argument, by two keys, and the largest values."""
    largest, positions = lax.top_k(values, 5)
    by_two_keys = lax.sort((integers % 4, integers, jnp.arange(integers.size)), num_keys=2)
    return (
        jnp.sort(values, axis=1),
        jnp.sort(values, axis=0, descending=True),
        jnp.argsort(values, axis=1),
        largest,
        positions,
        *by_two_keys,
    )


def sort_topk_sample() -> Sample:
    """Values with many ties, both zeros and infinities, to show that sorts are stable."""
    rng = np.random.default_rng(22)
    values = (rng.integers(-8, 9, (4, 16)) / 4).astype(np.float32)
    values[0, 3], values[1, 5], values[2, 0], values[2, 9] = np.inf, -np.inf, -0.0, 0.0
    return Sample(
        description="jnp.sort in both directions, jnp.argsort, lax.top_k, and lax.sort of three "
        "arrays by two keys. The values have ties, so only stable sorts give these results.",
        function=sort_topk,
        inputs=(values, rng.integers(-20, 20, (48,)).astype(np.int32)),
        output_names=(
            "sorted", "descending", "order", "largest", "positions",
            "first_key", "second_key", "payload",
        ),
        tolerance=0.0,
    )  # fmt: skip


def fft(real16, real12, complex16, complex12):
    """Fourier transforms of a length that is a power of two and of one that is not."""
    return (
        jnp.fft.rfft(real16),
        jnp.fft.rfft(real12),
        jnp.fft.fft(complex16),
        jnp.fft.fft(complex12),
        jnp.fft.ifft(complex16),
        jnp.fft.irfft(complex12[:, :7]),
    )


def fft_sample() -> Sample:
    """Transforms of batches of 3."""
    rng = np.random.default_rng(23)

    def complex_values(length: int) -> np.ndarray:
        parts = random_normal(rng, (3, length, 2)).astype(np.float32)
        return (parts[..., 0] + 1j * parts[..., 1]).astype(np.complex64)

    return Sample(
        description="rfft, fft, ifft and irfft of batches of 3, with lengths 16 and 12 (irfft: "
        "7 values in, length 12).",
        function=fft,
        inputs=(
            random_normal(rng, (3, 16)), random_normal(rng, (3, 12)),
            complex_values(16), complex_values(12),
        ),
        output_names=("rfft16", "rfft12", "fft16", "fft12", "ifft16", "irfft12"),
    )  # fmt: skip


def linalg(matrices, rights):
    """A Cholesky factor, and systems solved with it."""
    factors = jnp.linalg.cholesky(matrices)
    halves = jax.scipy.linalg.solve_triangular(factors, rights, lower=True)
    solutions = jax.scipy.linalg.cho_solve((factors, True), rights)
    return factors, halves, solutions


def linalg_sample() -> Sample:
    """Three systems of 8 unknowns with 2 right-hand sides each."""
    rng = np.random.default_rng(24)
    return Sample(
        description="The Cholesky factors of 3 matrices of 8x8, and triangular and full solves "
        "with them. Lowered with JAX's default rules, not its CPU ones, which call LAPACK.",
        function=linalg,
        inputs=(symmetric_positive(rng, 3, 8, spread=10.0), random_normal(rng, (3, 8, 2))),
        output_names=("factors", "halves", "solutions"),
        lowering_platform="tpu",
        tolerance=5e-5,
    )


def dynamic(values, weights, bias):
    """Operations whose shapes depend on a batch size that is not known."""
    batch = values.shape[0]
    hidden = jax.nn.relu(values @ weights + bias)
    probabilities = jax.nn.softmax(hidden)
    halves = probabilities.reshape(batch * 2, 4)
    doubled = jnp.concatenate([values, -values])
    products = hidden @ hidden.T
    positions = jnp.arange(batch, dtype=jnp.float32) / batch
    return probabilities, halves, doubled, products, positions, jnp.mean(hidden, axis=0)


def dynamic_sample() -> Sample:
    """A shape-polymorphic export, with data for a batch of 5."""
    rng = np.random.default_rng(25)
    return Sample(
        description="A shape-polymorphic export (jax.export) with an unknown batch size. Inputs "
        "and outputs are for a batch of 5.",
        function=dynamic,
        inputs=(
            random_normal(rng, (5, 6)), random_normal(rng, (6, 8), scale=0.5),
            random_normal(rng, (8,), scale=0.1),
        ),
        output_names=("probabilities", "halves", "doubled", "products", "positions", "mean"),
        symbolic_shapes=("batch, 6", None, None),
    )  # fmt: skip
