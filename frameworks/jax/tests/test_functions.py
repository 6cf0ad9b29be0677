"""Functions of JAX: jit, grad, vmap and control flow, against numpy."""

import math
import os

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

DTYPES = [np.bool_, np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.float16, ml_dtypes.bfloat16,
          np.float32, np.complex64, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def test_platform():
    assert {device.platform for device in jax.devices()} == {"tenon"}
    assert jax.default_backend() == "tenon"


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_dtypes_there_and_back(dtype):
    values = np.arange(-4, 8).reshape(3, 4).astype(dtype)
    result = jax.jit(lambda x: x[::-1])(values)
    assert result.dtype == values.dtype
    np.testing.assert_array_equal(np.asarray(result), values[::-1])


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in (np.bool_, ml_dtypes.int4, ml_dtypes.uint4)],
                         ids=lambda dtype: np.dtype(dtype).name)
def test_arithmetic(dtype):
    x = np.array([1, 2, 3, 4]).astype(dtype)
    result = jax.jit(lambda x: x * x + x)(x)
    np.testing.assert_array_equal(np.asarray(result).astype(np.complex64), (x * x + x).astype(np.complex64))


def test_wide_types():
    with jax.enable_x64(True):
        for dtype in (np.int64, np.uint64, np.float64, np.complex128):
            x = np.array([1, 2, 3]).astype(dtype)
            result = jax.jit(lambda x: x / 2 if x.dtype.kind in "fc" else x * (1 << 40))(x)
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, x / 2 if dtype in (np.float64, np.complex128) else x * (1 << 40))


def test_no_arguments_and_no_elements():
    assert jax.jit(lambda: jnp.int32(7))() == 7
    empty = jax.jit(lambda x: x + 1)(np.zeros((0, 3), np.float32))
    assert empty.shape == (0, 3)
    assert jnp.sum(empty) == 0


def test_several_results():
    q, (r, s) = jax.jit(lambda a, b: (a + b, (a - b, a)))(np.float32(5), np.float32(3))
    assert (float(q), float(r), float(s)) == (8, 2, 5)


def test_grad():
    def f(x):
        return jnp.sum(jnp.tanh(x) ** 2)

    x = np.linspace(-1, 1, 7, dtype=np.float32)
    t = np.tanh(x)
    np.testing.assert_allclose(jax.grad(f)(x), 2 * t * (1 - t**2), rtol=1e-5, atol=1e-6)
    hessian = jax.jit(jax.hessian(f))(x)
    np.testing.assert_allclose(hessian, np.diag(2 * (1 - t**2) ** 2 - 4 * t**2 * (1 - t**2)), rtol=1e-4, atol=1e-5)


def test_vmap():
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = np.arange(40, dtype=np.float32).reshape(2, 4, 5)
    np.testing.assert_array_equal(jax.vmap(jnp.dot)(a, b), a @ b)
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda x: x[::-1], in_axes=1, out_axes=1))(a), a[::-1])


# erfc reaches the compiler as a function: expanded in StableHLO ops it would be two forms for each element.
def test_erfc():
    x = np.concatenate([np.linspace(-6, 10, 1001), [-0.0, np.inf, -np.inf, np.nan]])
    function = jax.jit(lambda x: (lax.erf(x), lax.erfc(x)))
    assert 'stablehlo.composite "chlo.erfc"' in function.lower(x.astype(np.float32)).as_text()
    for dtype, tolerance in ((np.float32, 1e-6), (np.float64, 3e-15)):
        with jax.enable_x64(dtype == np.float64):
            near, far = function(x.astype(dtype))
            assert near.dtype == far.dtype == dtype
            values, least = x.astype(dtype).astype(float), float(np.finfo(dtype).smallest_subnormal)
            np.testing.assert_allclose(near, [math.erf(each) for each in values], rtol=tolerance, atol=2 * least)
            np.testing.assert_allclose(far, [math.erfc(each) for each in values], rtol=tolerance, atol=2 * least)
    slope = jax.vmap(jax.grad(lax.erfc))(np.float32([0.5, -2]))
    np.testing.assert_allclose(slope, [-2 / math.sqrt(math.pi) * math.exp(-each * each) for each in (0.5, -2)], rtol=1e-6)


def expert_of(sizes, rows):
    """The group of each row, -1 beyond all."""
    return np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(rows, -1)])[:rows]


@pytest.mark.parametrize("sizes", [(3, 0, 2, 1), (100, 0, 1, 129, 0, 50, 10, 20)], ids=["whole", "by blocks"])
def test_ragged_dot(sizes):
    rows = sum(sizes) + 5
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(rows, 6)).astype(np.float32), rng.normal(size=(len(sizes), 6, 4)).astype(np.float32)
    w[1] = np.inf  # Of a group without rows: it reaches no row.
    of_row = expert_of(sizes, rows)
    dot = jax.jit(lambda x, w: lax.ragged_dot(x, w, jnp.array(sizes, jnp.int32)))
    lowered = dot.lower(x, w)
    assert "chlo.ragged_dot" in lowered.as_text()
    expected = np.stack([row @ w[g] if g >= 0 else np.zeros(4) for row, g in zip(x, of_row)])
    np.testing.assert_allclose(dot(x, w), expected, rtol=1e-4, atol=1e-4)
    by_x, by_w = jax.jit(jax.grad(lambda x, w: dot(x, w).sum(), (0, 1)))(x, w)
    np.testing.assert_allclose(by_x, np.stack([w[g].sum(1) if g >= 0 else np.zeros(6) for g in of_row]), rtol=1e-4, atol=1e-4)
    sums = [np.repeat(x[of_row == g].sum(0)[:, None], 4, 1) for g in range(len(sizes))]
    np.testing.assert_allclose(by_w, np.stack(sums), rtol=1e-4, atol=1e-4)
    # Sizes of their own for each batch.
    many = jax.jit(jax.vmap(lax.ragged_dot))
    batch = many(np.stack([x, x]), np.stack([w, w]), np.stack([sizes, sizes[::-1]]).astype(np.int32))
    np.testing.assert_allclose(batch[0], expected, rtol=1e-4, atol=1e-4)
    # With a number of rows that is known later, JAX's own rule holds.
    exported = jax.export.export(jax.jit(lambda x: lax.ragged_dot(x, w, jnp.array(sizes, jnp.int32))),
                                 platforms=["tenon"])(jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 6"), np.float32))
    assert "chlo.ragged_dot" not in exported.mlir_module()


def test_while_loop():
    def collatz(n):
        return lax.while_loop(lambda state: state[0] != 1,
                              lambda state: (jnp.where(state[0] % 2 == 0, state[0] // 2, 3 * state[0] + 1),
                                             state[1] + 1), (n, 0))[1]

    assert int(jax.jit(collatz)(27)) == 111
    np.testing.assert_array_equal(jax.jit(jax.vmap(collatz))(jnp.array([1, 7, 27])), [0, 16, 111])


def test_scan():
    xs = np.arange(10, dtype=np.float32)
    last, sums = jax.jit(lambda xs: lax.scan(lambda c, x: (c + x, c * x), jnp.float32(1), xs))(xs)
    carried = np.concatenate([[1], 1 + np.cumsum(xs)])
    assert float(last) == carried[-1]
    np.testing.assert_array_equal(sums, carried[:-1] * xs)
    grad = jax.grad(lambda w: lax.scan(lambda c, x: (c * w + x, None), jnp.float32(0), xs[:4])[0])(jnp.float32(2))
    assert float(grad) == 2 * 2 * 1 + 2 * 1 * 2 * 0 + 2 - 2 + 2  # d/dw (x1 w^2 + x2 w + x3), x = 0 1 2 3, w = 2


def test_cond():
    f = jax.jit(lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: x * 10, x))
    assert (int(f(True, 4)), int(f(False, 4))) == (5, 40)
    g = jax.jit(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: -x], x))
    for i, expected in enumerate([np.sin(0.5), np.cos(0.5), -0.5]):
        np.testing.assert_allclose(g(i, 0.5), expected, rtol=1e-6)


def test_random_numbers_are_those_of_the_cpu():
    def draw():
        keys = jax.random.split(jax.random.key(7), 3)
        return jax.random.bits(keys[0], (5,)), jax.random.uniform(keys[1], (2, 3)), jax.random.permutation(keys[2], 9)

    with jax.default_device(jax.devices("cpu")[0]):
        expected = [np.asarray(drawn) for drawn in draw()]
    for drawn, of_cpu in zip(draw(), expected):
        assert drawn.devices() == {jax.devices()[0]}
        np.testing.assert_array_equal(drawn, of_cpu)


def test_sort_and_indexing():
    x = np.random.RandomState(1).permutation(100).astype(np.float32)
    np.testing.assert_array_equal(jnp.sort(x), np.sort(x))
    values, indices = lax.top_k(x, 5)
    np.testing.assert_array_equal(values, np.sort(x)[::-1][:5])
    np.testing.assert_array_equal(x[np.asarray(indices)], values)
    np.testing.assert_array_equal(jnp.zeros(5).at[jnp.array([1, 3, 9])].add(2.0), [0, 2, 0, 2, 0])


def test_error_names_the_custom_call():
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED.*@no_such_target"):
        jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((), np.float32), vmap_method=None)(np.float32(1))


def test_ahead_of_time():
    compiled = jax.jit(lambda x: x @ x).lower(np.zeros((8, 8), np.float32)).compile()
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (256, 256)
    costs = compiled.cost_analysis()
    assert costs["bytes accessed"] >= 512
    if os.environ["TENON_DEVICE"] != "reference":  # A host step evaluates the whole program there.
        assert costs["flops"] == 2 * 8**3
        costs = jax.jit(lambda x: jnp.sin(x) * 2).lower(np.zeros(100, np.float32)).compile().cost_analysis()
        assert (costs["flops"], costs["transcendentals"]) == (100, 100)
    text = compiled.as_text()
    assert text.startswith("HloModule") and "test_functions.py" in text
    np.testing.assert_array_equal(compiled(np.eye(8, dtype=np.float32)), np.eye(8))


# jaxlib converts the text to HLO, and knows other functions than StableHLO and CHLO.
@pytest.mark.parametrize("function", [lax.erf, lax.erfc, lax.erf_inv, lax.tan, lax.sinh, lax.cosh, lax.asin, lax.acos, lax.asinh, lax.acosh, lax.atanh,
                                      lax.lgamma, lax.digamma, lambda x: lax.top_k(x, 2)])
def test_optimized_text_of_functions(function):
    assert jax.jit(function).lower(np.ones(4, np.float32)).compile().as_text().startswith("HloModule")


def test_unknown_compiler_option():
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: No such compile option: 'speed'"):
        jax.jit(lambda x: x, compiler_options={"speed": "warp"})(1.0)


def test_compiler_options_of_xla_have_no_effect():
    options = {"xla_embed_ir_in_executable": True, "xla_dump_max_hlo_modules": 200, "optimization_level": 19,  # EFFORT_O1
               "xla_gpu_auto_spmd_partitioning_memory_budget_ratio": 0.5}
    assert float(jax.jit(lambda x: x + 1, compiler_options=options)(1.0)) == 2
    with pytest.raises(jax.errors.JaxRuntimeError, match="is not a valid bool value"):
        jax.jit(lambda x: x + 1, compiler_options={"xla_embed_ir_in_executable": "yes, please"})(1.0)


def test_strict_option():
    assert float(jax.jit(lambda x: x + 1, compiler_options={"tenon_strict": True})(1.0)) == 2


@pytest.mark.parametrize("find", [lax.approx_max_k, lax.approx_min_k], ids=["max", "min"])
def test_approximate_top_k_is_exact(find):
    x = np.random.default_rng(0).permutation(60).reshape(4, 15).astype(np.float32)
    ordered = np.sort(x, axis=0)[::-1] if find is lax.approx_max_k else np.sort(x, axis=0)
    values, indices = jax.jit(lambda x: find(x, 3, reduction_dimension=0))(x)
    np.testing.assert_array_equal(values, ordered[:3])
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(indices), 0), values)


def test_truths_of_other_bytes():
    x = np.array([0, 1, 2, 255, 128], np.uint8).view(np.bool_)
    for given in (x, np.repeat(x, 2)[::2], x.reshape(5, 1)):
        np.testing.assert_array_equal(jax.jit(lambda x: jnp.where(x, 1, 0))(given).ravel(), [0, 1, 1, 1, 1])
        np.testing.assert_array_equal(jax.jit(lambda x: ~x)(given).ravel(), [True, False, False, False, False])


def test_rbg_keys_draw_what_they_draw_on_other_platforms():
    drawn = jax.random.bits(jax.random.key(7, impl="rbg"), (5,))
    np.testing.assert_array_equal(drawn, [3109483441, 1367189518, 2515982561, 3310080778, 2824504284])
