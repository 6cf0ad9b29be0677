"""Arrays: to a device and back, in place where that is possible."""

import gc
import os
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

import tenon

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128"]
NARROW = ["bfloat16", "int4", "uint4", "int2", "uint2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e5m2fnuz",
          "float8_e3m4", "float4_e2m1fn"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name)) if name in NARROW else np.dtype(name)


def is_visible(client):
    return client.devices[0].attributes.get("host_visible") == "yes"


@pytest.mark.parametrize("name", TYPES + NARROW)
def test_every_type_there_and_back(name):
    dtype = dtype_of(name)
    for x in (np.array([0, 1, 1]).astype(dtype), np.array(1).astype(dtype), np.zeros((0, 3), dtype)):
        for copy in (True, False):
            array = tenon.array(x, copy=copy)
            assert array.dtype == dtype and array.shape == x.shape and array.ndim == x.ndim and array.nbytes == x.nbytes
            back = np.asarray(array)
            assert back.dtype == dtype and back.shape == x.shape and back.tobytes() == x.tobytes()


def test_other_orders_are_copied():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(tenon.array(x.T), x.T)
    np.testing.assert_array_equal(tenon.array(x[:, ::2]), x[:, ::2])
    np.testing.assert_array_equal(tenon.array(x.astype(">f4")), x)
    np.testing.assert_array_equal(tenon.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]])
    assert tenon.array(7.5).shape == ()


def test_types_that_stablehlo_lacks():
    for x in (np.array(["a"]), np.array([object()]), np.array(1, "datetime64[s]")):
        with pytest.raises(TypeError, match="element type"):
            tenon.array(x)


def test_views_share_memory_where_the_host_sees_it(client):
    array = tenon.array(np.arange(100, dtype=np.float32))
    first, second = np.asarray(array), np.asarray(array)
    assert np.shares_memory(first, second) == is_visible(client)
    if is_visible(client):
        assert not first.flags.writeable
    copied = np.array(array, copy=True)
    assert copied.flags.writeable and not np.shares_memory(copied, first)
    assert np.asarray(array, dtype=np.float64).dtype == np.float64
    if is_visible(client):
        assert np.shares_memory(np.array(array, copy=False), first)
    else:
        with pytest.raises(ValueError, match="without a copy"):
            np.array(array, copy=False)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(array, dtype=np.float64, copy=False)


def test_a_view_outlives_its_array(client):
    view = np.asarray(tenon.array(np.arange(100, dtype=np.float32)))
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(100, dtype=np.float32))
    array = tenon.array(np.arange(100, dtype=np.float32))
    view = np.asarray(array)
    array.delete()
    assert array.is_deleted
    np.testing.assert_array_equal(view, np.arange(100, dtype=np.float32))
    with pytest.raises(tenon.Error):
        np.asarray(array)


def test_memory_of_the_host_in_place(client):
    x = np.arange(4096, dtype=np.float32)  # Of less than a page a copy is made.
    array = tenon.array(x, copy=False)
    assert np.shares_memory(np.asarray(array), x) == is_visible(client)
    # It is held as long as the device needs it, and no longer.
    held = weakref.ref(x)
    del x
    np.testing.assert_array_equal(array, np.arange(4096, dtype=np.float32))
    array = None
    for _ in range(1000):
        tenon.array(1.0)
        gc.collect(0)
        if held() is None:
            break
    assert held() is None


def test_calls_do_not_keep_their_arguments():
    program = tenon.compile("func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> { return %x : tensor<64xf32> }")
    x = np.arange(64, dtype=np.float32)
    y = program(x)
    x[:] = -1
    np.testing.assert_array_equal(y, np.arange(64, dtype=np.float32))
    count = sys.getrefcount(x)
    for _ in range(100):
        program(x)
    assert sys.getrefcount(x) <= count + 1


def test_dlpack(client):
    array = tenon.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    if not is_visible(client):
        with pytest.raises(BufferError, match="asarray"):
            np.from_dlpack(array)
        return
    copied = np.from_dlpack(array, copy=True)
    assert not np.shares_memory(copied, np.asarray(array))
    view = np.from_dlpack(array)
    np.testing.assert_array_equal(view, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert np.shares_memory(view, np.asarray(array))
    del array
    gc.collect()
    assert view[1, 2] == 5

    class Lender:
        """An array that numpy knows by DLPack alone."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **words):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    np.testing.assert_array_equal(tenon.array(Lender(np.arange(6))), np.arange(6))
    with pytest.raises(BufferError, match="int4"):
        np.from_dlpack(tenon.array(np.zeros(2, ml_dtypes.int4)))


def test_python_words():
    array = tenon.array(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert len(array) == 2 and array[1, 2] == 5 and repr(array) == "tenon.Array(int32[2, 3])"
    assert float(tenon.array(np.float32(2.5))) == 2.5 and int(tenon.array(7)) == 7
    with pytest.raises(TypeError):
        len(tenon.array(1))
    assert array.block_until_ready() is array


def test_devices(client, device):
    assert client.devices[0].index == 0 and client.devices[0].kind and repr(client.devices[0]) in repr(client)
    with pytest.raises(IndexError):
        client.array(1, device=99)
    if len(client.devices) > 1:
        moved = client.array(np.arange(3)).to(client.devices[1])
        np.testing.assert_array_equal(moved, np.arange(3))


def test_a_missing_library(monkeypatch):
    monkeypatch.setenv("TENON_PJRT_LIBRARY", "/nowhere/libtenon_pjrt.so")
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        tenon.Client("interp")
    assert os.environ["TENON_PJRT_LIBRARY"] == "/nowhere/libtenon_pjrt.so"
