"""Arrays in memory that host and device share: numpy's arguments are not copied, and numpy reads results in place.
On devices whose memory is the chip's own, the same programs copy."""

import gc
import os
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

SHARED = os.environ.get("TENON_DEVICE", "cpu") in ("interp", "cpu", "reference")


def aligned(count, offset=0, dtype=np.float32):
    """An array that begins `offset` bytes after a multiple of 64."""
    bytes_ = np.zeros(count * np.dtype(dtype).itemsize + 128, np.uint8)
    begin = -bytes_.ctypes.data % 64 + offset
    return bytes_[begin:begin + count * np.dtype(dtype).itemsize].view(dtype)


def address(array):
    return array.__array_interface__["data"][0]


def test_results_are_read_in_place():
    y = jax.jit(lambda x: x + 1)(np.arange(1000, dtype=np.float32))
    seen = np.asarray(y)
    np.testing.assert_array_equal(seen, np.arange(1000) + 1)
    assert not seen.flags.writeable
    if jax.devices()[0].host_visible == "yes":
        assert address(seen) == y.unsafe_buffer_pointer() == address(np.asarray(y))
    else:
        with pytest.raises(Exception, match="has no address on the host"):
            y.unsafe_buffer_pointer()


@pytest.mark.parametrize("offset, taken", [(0, True), (16, True), (4, False)])
def test_arguments_stay_where_they_are(offset, taken):
    x = aligned(1 << 16, offset)
    x[:] = np.arange(1 << 16)
    array = jax.device_put(x)
    np.testing.assert_array_equal(array, x)
    if SHARED:
        assert (array.unsafe_buffer_pointer() == address(x)) == taken
    np.testing.assert_array_equal(jax.jit(lambda x: x * 2)(x), np.arange(1 << 16) * 2)


def test_arguments_are_let_go():
    class Array(np.ndarray):
        pass

    x = aligned(1 << 10).view(Array)
    gone = weakref.ref(x)
    array = jax.device_put(x)
    result = jax.jit(lambda x: x + 1)(array)
    del x, array
    for _ in range(1000):
        gc.collect()
        jnp.zeros(1).block_until_ready()  # Callbacks of the runtime come with other calls.
        if gone() is None:
            break
    assert gone() is None
    np.testing.assert_array_equal(result, np.ones(1 << 10))


def test_what_is_looked_at_stays():
    update = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.arange(1000.0)
    seen = np.asarray(x)
    y = update(x)
    assert x.is_deleted()
    z = update(y)  # In the memory of y, which nobody holds.
    np.testing.assert_array_equal(seen, np.arange(1000))
    np.testing.assert_array_equal(z, np.arange(1000) + 2)
    seen = np.asarray(z)
    z.delete()
    more = [jnp.full(1000, i) for i in range(50)]  # Not in its memory.
    np.testing.assert_array_equal(seen, np.arange(1000) + 2)
    del z, more
    gc.collect()
    np.testing.assert_array_equal(seen, np.arange(1000) + 2)


def test_donated_arguments_of_numpy_are_not_written():
    x = aligned(1000)
    array = jax.device_put(x)
    result = jax.jit(lambda x: x.at[0].set(7), donate_argnums=0)(array)
    assert array.is_deleted()
    np.testing.assert_array_equal(x, np.zeros(1000))
    assert float(result[0]) == 7


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float8_e5m2", "complex64", "int4", "uint2"])
def test_types(dtype):
    x = np.array([0, 1, 1, 0, 1], jnp.dtype(dtype))
    same, back = jax.jit(lambda x: (x, x[::-1]))(x)
    for array, expected in ((jax.device_put(x), x), (same, x), (back, x[::-1])):
        seen = np.asarray(array)
        assert seen.dtype == x.dtype
        np.testing.assert_array_equal(seen, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, np.bool_, np.uint32])
def test_dlpack_to_numpy(dtype):
    y = jnp.array(np.arange(100) % 2 if dtype == np.bool_ else np.arange(100), dtype)
    if not jax.devices()[0].host_visible == "yes":
        with pytest.raises(BufferError):
            np.from_dlpack(y)
        return
    lent = np.from_dlpack(y)
    np.testing.assert_array_equal(lent, np.asarray(y))
    if SHARED:
        assert address(lent) == y.unsafe_buffer_pointer()
    kept = lent.copy()
    del y
    gc.collect()
    jnp.zeros(100, dtype).block_until_ready()
    np.testing.assert_array_equal(lent, kept)


def test_dlpack_of_wide_and_brief_types():
    if jax.devices()[0].host_visible == "yes":
        with jax.enable_x64(True):
            y = jnp.arange(5, dtype=np.float64)
        np.testing.assert_array_equal(np.from_dlpack(y), np.arange(5.0))
        z = jax.dlpack.from_dlpack(jnp.arange(8, dtype=jnp.bfloat16))
        assert z.dtype == jnp.bfloat16 and float(z[7]) == 7
