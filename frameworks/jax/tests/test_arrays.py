"""Arrays: transfers, donation, memories, threads."""

import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import SingleDeviceSharding

BASE = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
VIEWS = {
    "dense": BASE,
    "transposed": BASE.transpose(2, 0, 1),
    "backwards": BASE[::-1, :, ::-1],
    "stepped": BASE[:, 1::2, ::3],
    "repeated": np.broadcast_to(BASE[:, :1, :1], (3, 4, 5)),
    "column order": np.asfortranarray(BASE),
    "scalar": BASE[1, 2, 3],
    "empty": BASE[:, :0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_strides(name):
    array = jax.device_put(VIEWS[name])
    np.testing.assert_array_equal(np.asarray(array), VIEWS[name])
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(VIEWS[name]), VIEWS[name] + 1)


def test_source_may_change():
    source = np.zeros(1 << 16, np.float32)
    array = jnp.array(source, copy=True)
    array.block_until_ready()
    source[:] = 1
    assert float(array.sum()) == 0


def test_large_array():
    x = np.random.RandomState(0).rand(512, 1024).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(jax.device_put(x)), x)


def test_donation():
    f = jax.jit(lambda x, y: (x + y, y), donate_argnums=0)
    x, y = jnp.arange(8.0), jnp.ones(8)
    result, _ = f(x, y)
    np.testing.assert_array_equal(result, np.arange(8) + 1)
    assert x.is_deleted() and not y.is_deleted()
    assert x.shape == (8,) and x.dtype == np.float32  # Its shape and type can still be read.
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1
    for _ in range(20):  # Memory goes from step to step.
        result, _ = f(result, y)
    np.testing.assert_array_equal(result, np.arange(8) + 21)


def test_donated_twice():
    x = jnp.arange(4.0)
    with pytest.raises(Exception, match="donate"):
        jax.jit(lambda a, b: a + b, donate_argnums=0)(x, x)
    assert not x.is_deleted()
    np.testing.assert_array_equal(x, np.arange(4))


def test_deleted():
    x = jnp.arange(4.0)
    y = x + 1
    x.delete()
    assert x.is_deleted()
    np.testing.assert_array_equal(y, np.arange(4) + 1)


def test_memory_kinds():
    device = jax.devices()[0]
    assert {memory.kind for memory in device.addressable_memories()} == {"device", "pinned_host"}
    assert device.default_memory().kind == "device"
    on_host = SingleDeviceSharding(device, memory_kind="pinned_host")
    x = jax.device_put(np.arange(6.0, dtype=np.float32), on_host)
    assert x.sharding.memory_kind == "pinned_host"
    y = jax.device_put(x, SingleDeviceSharding(device, memory_kind="device"))
    assert y.sharding.memory_kind == "device"
    np.testing.assert_array_equal(x, y)
    back = jax.jit(lambda x: x * 2, out_shardings=on_host)(y)
    assert back.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(back, np.arange(6) * 2)
    again = jax.jit(lambda x: x + 1, in_shardings=on_host, out_shardings=on_host)(back)
    np.testing.assert_array_equal(again, np.arange(6) * 2 + 1)


def test_memory_is_given_back():
    device = jax.devices()[0]
    gc.collect()
    before = device.memory_stats()["bytes_in_use"]
    x = jax.jit(lambda: jnp.zeros(1 << 18))().block_until_ready()
    assert device.memory_stats()["bytes_in_use"] >= before + (1 << 20)
    del x
    gc.collect()
    assert device.memory_stats()["bytes_in_use"] < before + (1 << 20)


def test_threads():
    f = jax.jit(lambda x, k: jnp.cumsum(x * k))
    faults = []

    def work(k):
        try:
            for i in range(10):
                x = np.full(50 + k, i, np.float32)
                np.testing.assert_array_equal(f(x, np.float32(k)), np.cumsum(x * k))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[0]


def test_more_devices_are_refused(run_program):
    output = run_program("""
        import jax, numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        devices = jax.devices()
        assert len(devices) == 2, devices
        x = jax.device_put(np.arange(4.0), devices[0])
        y = jax.device_put(x, devices[1])
        assert y.devices() == {devices[1]} and (np.asarray(y) == np.arange(4)).all()
        print(jax.jit(lambda x: x + 1)(y).devices())
        mesh = Mesh(np.array(devices), ("i",))
        z = jax.device_put(np.arange(4.0), NamedSharding(mesh, P("i")))
        try:
            jax.jit(lambda x: x + 1)(z)
        except jax.errors.JaxRuntimeError as error:
            print(error)
        """, TENON_DEVICE="interp", TENON_DEVICE_COUNT="2")
    assert "interp:1" in output
    assert "UNIMPLEMENTED: a program of 1 replicas and 2 partitions" in output


def test_arrays_outlive_a_client(run_program):
    """jax.extend.backend.clear_backends lets go of the client; the next call makes another one."""
    out = run_program("""
        import jax, numpy as np
        x = jax.numpy.arange(5.0) * 2
        before = jax.devices()[0].client
        from jax.extend import backend
        backend.clear_backends()
        y = jax.jit(lambda a: a + 1)(np.float32(2))
        assert jax.devices()[0].client is not before
        print(np.asarray(x), float(y))
    """)
    assert out.splitlines()[-1] == "[0. 2. 4. 6. 8.] 3.0"
