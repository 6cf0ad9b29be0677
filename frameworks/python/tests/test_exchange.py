"""Arrays of packages with DLPack's exchange table: read in place, and made of results."""

import gc
import time
import weakref

import exchange_standin as standin
import ml_dtypes
import numpy as np
import pytest
from exchange_standin import Made, Plain, Table, calls

import tenon

DOUBLE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
X = np.arange(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def counts():
    calls.clear()
    standin.Made.fails = False
    yield
    standin.Made.fails = False


def is_visible(client):
    return client.devices[0].attributes.get("host_visible") == "yes"


def eventually(holds):
    """Whether it comes to hold: a device may read an array of the host only later."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if holds():
            return True
        tenon.array(1.0)
        time.sleep(1e-4)  # A busy machine has other work for the device's thread.
    return False


def identity(name, shape):
    type = "x".join([*map(str, shape), name])
    return tenon.compile(f"func.func @main(%x: tensor<{type}>) -> tensor<{type}> {{ return %x : tensor<{type}> }}")


def test_arguments_of_a_call_are_read_through_the_table():
    program = tenon.compile(DOUBLE)
    np.testing.assert_array_equal(program(Plain(X)), 2 * X)
    assert calls == {"to_tensor": 1}
    # It has no other interface: this type has no table.
    class Bare(Plain):
        __dlpack_c_exchange_api__ = None
    with pytest.raises(TypeError):
        program(Bare(X))
    assert calls == {"to_tensor": 1}


@pytest.mark.parametrize("name", standin.CODES)
def test_every_type(name):
    x = np.array([[0, 1, 1]]).astype(standin.dtype_of(name))
    for copy in (True, False):
        array = tenon.array(Plain(x), copy=copy)
        assert array.dtype == x.dtype and array.shape == x.shape and np.asarray(array).tobytes() == x.tobytes()
    assert calls["to_tensor"] == 1 and calls["to_managed"] == 1


@pytest.mark.parametrize("name,stablehlo", [("bool", "i1"), ("bfloat16", "bf16"), ("complex64", "complex<f32>"), ("int64", "i64"),
                                            ("float8_e4m3fn", "f8E4M3FN"), ("float8_e5m2", "f8E5M2")])
def test_results_of_types(name, stablehlo):
    x = np.array([[0, 1, 1]]).astype(standin.dtype_of(name))
    result, = identity(stablehlo, x.shape).run([x], like=Plain)
    assert result.array.dtype == x.dtype and result.array.shape == x.shape and result.array.tobytes() == x.tobytes()


def test_memory_in_place_is_held_as_long_as_it_is_needed(client):
    x = np.arange(4096, dtype=np.float32)  # Of less than a page a copy is made.
    given = Plain(x)
    array = tenon.array(given, copy=False)
    assert calls["to_managed"] == 1 and calls["to_tensor"] == 0
    assert np.shares_memory(np.asarray(array), x) == is_visible(client)
    held = weakref.ref(given)
    del given
    np.testing.assert_array_equal(array, x)
    array = None
    assert eventually(lambda: held() is None) and calls["given back"] == 1


def test_calls_do_not_keep_their_arguments():
    program = tenon.compile(DOUBLE)
    given = Plain(X)
    held = weakref.ref(given)
    program(given)
    del given
    assert eventually(lambda: held() is None)
    given = Plain(np.ones(3, np.float32))
    held = weakref.ref(given)
    with pytest.raises(tenon.Error):
        program(given)
    del given
    assert eventually(lambda: gc.collect() >= 0 and held() is None)


def test_layouts():
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(tenon.array(Plain(base[0], offset=16)), base[1])
    scalar = tenon.array(Plain(np.array(2.5), shape=None, strides=None))
    assert scalar.shape == () and float(scalar) == 2.5
    assert tenon.array(Plain(np.zeros((0, 3), np.int32), data=None)).shape == (0, 3)
    ones = Plain(base.reshape(1, 3, 1, 4))
    ones.strides[0], ones.strides[2] = 999, -5  # They count nothing: there is no second element.
    np.testing.assert_array_equal(tenon.array(ones), ones.array)
    np.testing.assert_array_equal(tenon.array(Plain(base, strides=None)), base)
    assert calls["to_tensor"] == 5


def test_arrays_that_are_not_dense_are_copied():
    class Strided(Plain):
        def contiguous(self):
            calls["contiguous"] += 1
            return Strided(np.ascontiguousarray(self.array))

    class Numpy(Plain):
        def __array__(self, dtype=None, copy=None):
            calls["__array__"] += 1
            return self.array

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    program = identity("f32", (4, 3))
    np.testing.assert_array_equal(program(Strided(x.T)), x.T)
    assert calls == {"to_tensor": 2, "contiguous": 1}
    np.testing.assert_array_equal(program(Numpy(x.T)), x.T)
    np.testing.assert_array_equal(tenon.array(Numpy(x, device=2)), x)  # Memory of no CPU.
    assert calls["__array__"] == 2


def test_a_conjugate_or_negative_that_the_table_does_not_say():
    class Lazy(Plain):
        conj = neg = stubborn = False

        def is_conj(self):
            return self.conj

        def is_neg(self):
            return self.neg

        def resolve_conj(self):
            made = Lazy(self.array.conj() if self.conj else self.array)
            made.neg = self.neg
            made.conj = self.stubborn
            return made

        def resolve_neg(self):
            made = Lazy(-self.array if self.neg else self.array)
            made.conj = self.conj
            return made

    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    program = identity("complex<f32>", (2,))
    given = Lazy(z)
    np.testing.assert_array_equal(program(given), z)
    given.conj = True
    np.testing.assert_array_equal(program(given), z.conj())
    given.neg = True
    np.testing.assert_array_equal(program(given), -z.conj())
    np.testing.assert_array_equal(tenon.array(given, copy=False), -z.conj())
    negative = Lazy(X)
    negative.neg = True
    np.testing.assert_array_equal(tenon.array(negative), -X)
    given.stubborn = True
    with pytest.raises(TypeError, match="cannot be resolved"):
        program(given)


def test_what_the_table_cannot_describe():
    with pytest.raises(TypeError, match="no memory"):
        tenon.array(Plain(X, data=None))
    for wrong in ({"lanes": 2}, {"code": 17}, {"bits": 4}, {"code": 255}):
        with pytest.raises(TypeError, match="element type"):
            tenon.array(Plain(X, **wrong))


def test_versions_of_the_table():
    newer = Table(2, 0, standin.ctypes.addressof(standin.table), *[0] * 5)

    class Newer(Plain):
        __dlpack_c_exchange_api__ = standin.capsule(newer)

    class Unknown(Plain):
        __dlpack_c_exchange_api__ = standin.capsule(Table(2, 0, None, *[0] * 5))

    class WithoutTensor(Plain):
        __dlpack_c_exchange_api__ = standin.capsule(Table(1, 3, None, None, standin.table.to_managed, standin.table.from_managed, None, None))

    program = tenon.compile(DOUBLE)
    np.testing.assert_array_equal(program(Newer(X)), 2 * X)
    assert calls == {"to_tensor": 1}
    with pytest.raises(TypeError):
        program(Unknown(X))
    with pytest.raises(TypeError, match="exchange table"):
        program.run([X], like=Unknown)
    np.testing.assert_array_equal(program(WithoutTensor(X)), 2 * X)
    assert calls["to_managed"] == 1 and eventually(lambda: calls["given back"] == 1)


def test_types_end_though_they_were_asked_for_a_table():
    class Passing(Plain):
        pass

    tenon.array(Passing(X))
    ended = weakref.ref(Passing)
    del Passing
    assert eventually(lambda: gc.collect() >= 0 and ended() is None)


def test_results_as_objects_of_a_type():
    program = tenon.compile("""
        func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<0x3xi32>) {
          %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
          %s = stablehlo.constant dense<7.5> : tensor<f32>
          %e = stablehlo.constant dense<0> : tensor<0x3xi32>
          return %c, %x, %x, %s, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<0x3xi32>
        }""")
    on_device = tenon.array(X)
    for argument in (X, Plain(X), on_device):
        calls.clear()
        results = program.run([argument], like=Plain)
        assert calls["from_managed"] == 5 and all(type(each) is Made and each.version == 1 and each.flags == 0 for each in results)
        assert results[3].array.shape == () and results[3].array == 7.5 and results[4].array.shape == (0, 3)
        # The memory of each belongs to it alone.
        for number, each in enumerate(results[:3]):
            np.testing.assert_array_equal(each.array, [1, 2, 3, 4] if number == 0 else X)
            each.array[:] = -1 - number
        np.testing.assert_array_equal(on_device, X)
        np.testing.assert_array_equal(program.run([X], like=Plain)[0].array, [1, 2, 3, 4])
        kept = results[1]
        del results, each
        np.testing.assert_array_equal(kept.array, np.full(4, -2))
        del kept
        assert calls["from_managed"] == calls["deleted"] == 10
    np.testing.assert_array_equal(X, np.arange(4))


def test_results_outlive_their_client():
    client = tenon.Client(tenon._client.os.environ.get("TENON_DEVICE", "cpu"))
    result, = client.compile(DOUBLE).run([X], like=Plain)
    del client
    gc.collect()
    np.testing.assert_array_equal(result.array, 2 * X)


def test_errors_of_results():
    program = tenon.compile(DOUBLE)
    for like in (7, int, np.ndarray, "Plain"):
        with pytest.raises(TypeError, match="exchange table"):
            program.run([X], like=like)
    with pytest.raises(tenon.Error):
        program.run([np.ones(3, np.float32)], like=Plain)
    with pytest.raises(BufferError, match="int4"):
        identity("i4", (3,)).run([np.zeros(3, ml_dtypes.int4)], like=Plain)
    Made.fails = True
    with pytest.raises(TypeError, match="wanted type"):
        program.run([X], like=Plain)
    Made.fails = False
    np.testing.assert_array_equal(program.run([X], like=Plain)[0].array, 2 * X)


def test_an_error_of_the_work_is_one_of_the_call(device, endless_program):
    if device in ("reference", "interp"):
        pytest.skip("the evaluator has no device to stop, and interp is open already")
    client = tenon.Client("interp", time_limit=0.2)
    endless = client.compile(endless_program)
    on_device = client.array(np.int32(1))
    for argument in (np.int32(1), on_device):
        with pytest.raises(tenon.Error) as raised:
            endless.run([argument], like=Plain)
        assert raised.value.code == "UNAVAILABLE"
    assert calls["from_managed"] == 0


def test_torch():
    torch = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch has no exchange table")
    program = tenon.compile(DOUBLE)
    x = torch.arange(6.0)
    for given in (x[2:], torch.nn.Parameter(x[2:]), torch.arange(12.0).reshape(6, 2).T[0, 2:]):
        result, = program.run([given], like=torch.Tensor)
        assert type(result) is torch.Tensor and not result.requires_grad
        expected = 2 * given.detach()
        assert torch.equal(result, expected)
        result.add_(1)
        assert torch.equal(result, expected + 1)
    z = torch.tensor([1 + 2j, 3 - 1j])
    for given in (z, z.conj(), z.conj().imag[:1], torch._neg_view(z.real.contiguous())):
        np.testing.assert_array_equal(tenon.array(given), given.resolve_conj().resolve_neg().numpy())
    for wrong in (torch.zeros(3, device="meta"), torch.eye(3).to_sparse(), torch._efficientzerotensor((3,))):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            tenon.array(wrong)
