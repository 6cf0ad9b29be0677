"""Numbers where a device could differ from JAX's CPU: windows out of range, functions, narrow sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

SCATTER = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,))
GATHER = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
BEYOND = np.array([[3]], np.int32)  # A window of two begins at the last element of four.


def test_scatter_drops_a_window_partly_out_of_range():
    scatter = jax.jit(lambda x, u: lax.scatter_add(x, BEYOND, u, SCATTER))
    np.testing.assert_array_equal(scatter(np.zeros(4, np.float32), np.array([[1, 2]], np.float32)), np.zeros(4))


def test_gradient_of_a_gather_that_fills():
    def total(x):
        return lax.gather(x, BEYOND, GATHER, (2,), mode="fill", fill_value=0).sum()

    np.testing.assert_array_equal(jax.jit(jax.grad(total))(np.zeros(4, np.float32)), np.zeros(4))


def test_tangent_of_scatter_max_with_a_dropped_window():
    def scatter(x):
        return lax.scatter_max(x, BEYOND, jnp.array([[9, 9]], jnp.float32), SCATTER)

    value, tangent = jax.jit(lambda x, t: jax.jvp(scatter, (x,), (t,)))(np.arange(4, dtype=np.float32),
                                                                        np.ones(4, np.float32))
    np.testing.assert_array_equal(value, np.arange(4))
    np.testing.assert_array_equal(tangent, np.ones(4))


@pytest.mark.parametrize("name", ["sinh", "cosh"])
def test_functions_that_jax_keeps_as_composites(name):
    # The decompositions that JAX writes for them are up to 24 units off here.
    x = np.array([0.0155571755, 9.1, 17.3, 40.2, 77.63151, 88], np.float32)
    exact = getattr(np, name)(x.astype(np.float64))
    result = np.asarray(jax.jit(getattr(jnp, name))(x)).astype(np.float64)
    assert np.max(np.abs(result - exact) / np.spacing(exact.astype(np.float32))) <= 3


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_narrow_sums_are_rounded_once(dtype):
    ones = np.ones(4096, np.float32).astype(dtype)
    total = jax.jit(lambda x: lax.reduce(x, jnp.zeros((), dtype), lax.add, (0,)))(ones)
    assert float(total) == 4096


def test_cholesky_of_a_singular_matrix_is_nan():
    np.testing.assert_array_equal(jnp.linalg.cholesky(np.ones((2, 2), np.float32)), [[np.nan, 0], [np.nan, np.nan]])
