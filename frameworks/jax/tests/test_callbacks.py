"""Python functions that programs on the device call, and what becomes of their errors and their order."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, io_callback


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def host_steps(function, *arguments) -> int:
    """The steps of the compiled program that the host runs."""
    return int(jax.jit(function).lower(*arguments).compile().cost_analysis()["steps on the host"])


def test_pure_callback_with_several_arrays():
    seen = []

    def on_host(x, n):
        seen.append((type(x), np.asarray(x).copy(), int(n)))
        return np.asarray(x) * n, np.asarray(x).sum(keepdims=True) > 3

    def program(x, n):
        y, flag = jax.pure_callback(on_host, (like(x), jax.ShapeDtypeStruct((1,), bool)), x + 1, n)
        return y - 1, flag

    x = np.arange(3, dtype=np.float32)
    y, flag = jax.jit(program)(x, np.int32(2))
    np.testing.assert_array_equal(y, (x + 1) * 2 - 1)
    assert flag.tolist() == [True]
    [(kind, argument, n)] = seen
    assert issubclass(kind, jax.Array) and n == 2
    np.testing.assert_array_equal(argument, x + 1)
    assert host_steps(program, x, np.int32(2)) >= 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "complex64", "int4"])
def test_types(dtype):
    with jax.enable_x64(True):
        x = jnp.arange(4).astype(dtype)
        y = jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(a)[::-1], like(x), x))(x)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x)[::-1])


def test_empty_arrays_and_nothing():
    called = []
    y = jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(a), like(x), x))(np.zeros((0, 3), np.float32))
    assert y.shape == (0, 3)
    jax.jit(lambda: io_callback(lambda: called.append(1), None))()
    jax.effects_barrier()
    assert called == [1]


def test_vmap_and_loops():
    def one(x):
        return jax.pure_callback(lambda a: np.sin(np.asarray(a)), like(x), x, vmap_method="sequential")

    x = np.linspace(0, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(jax.jit(jax.vmap(one))(x), np.sin(x), rtol=1e-6)
    y = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, a: one(a), x))(x[1])
    np.testing.assert_allclose(y, np.sin(np.sin(np.sin(x[1]))), rtol=1e-6)


def test_ordered_callbacks_keep_their_order_across_programs():
    order = []

    @jax.jit
    def program(i):
        for part in range(2):
            io_callback(lambda n, part=part: order.append((int(n), part)), None, i, ordered=True)
        return i

    for i in range(4):
        program(i)
    jax.effects_barrier()
    assert order == [(i, part) for i in range(4) for part in range(2)]


def test_arguments_may_be_kept():
    kept = []
    keep = jax.jit(lambda x: io_callback(lambda a: kept.append(np.asarray(a)), None, x * 2))
    for i in range(5):
        keep(np.full(1000, i, np.float32))
    jax.effects_barrier()
    assert [float(each[0]) for each in kept] == [0, 2, 4, 6, 8]
    assert all((each == each[0]).all() for each in kept)


def test_debug_print(capfd):
    @jax.jit
    def program(x):
        jax.debug.print("first {x}", x=x[0], ordered=True)
        jax.debug.print("then {x}", x=x[1], ordered=True)
        return x + 1

    program(np.array([1, 2], np.int32))
    jax.effects_barrier()
    assert capfd.readouterr().out == "first 1\nthen 2\n"


def test_debug_callback_in_branches_and_gradients():
    seen = []

    def loss(x):
        jax.debug.callback(lambda a: seen.append(float(a)), x)
        return jax.lax.cond(x > 0, lambda a: a * a, lambda a: -a, x)

    assert jax.jit(jax.grad(loss))(3.0) == 6.0
    jax.effects_barrier()
    assert set(seen) == {3.0}


def test_an_exception_is_the_error_of_the_execution():
    def fails(x):
        raise ValueError("the text of the exception")

    class Unprintable(Exception):
        def __str__(self):
            raise RuntimeError("it has no text")

    def fails_twice(x):
        raise Unprintable from Unprintable()

    program = jax.jit(lambda x: jax.pure_callback(fails_twice, like(x), x) + 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Unprintable"):
        program(jnp.float32(1)).block_until_ready()
    program = jax.jit(lambda x: jax.pure_callback(fails, like(x), x) + 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: the text of the exception"):
        program(jnp.float32(1)).block_until_ready()
    assert float(jax.jit(lambda x: x + 1)(1.0)) == 2.0
    wrong = jax.jit(lambda x: jax.pure_callback(lambda a: np.zeros(3, np.float32), like(x), x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="Incorrect output shape"):
        wrong(jnp.float32(1)).block_until_ready()


def test_checkify():
    def program(x):
        checkify.check(x > 0, "must be positive: {}", x)
        return jnp.log(x)

    checked = checkify.checkify(program)
    error, y = jax.jit(checked)(2.0)
    error.throw()
    assert np.isclose(y, np.log(2))
    error, _ = jax.jit(checked)(-1.0)
    with pytest.raises(checkify.JaxRuntimeError, match="must be positive: -1"):
        error.throw()


def test_buffer_callback():
    from jax.experimental import buffer_callback

    def on_host(context, out, x):
        assert not x.writeable and out.writeable and out.shape == x.shape
        np.asarray(out)[...] = np.asarray(x) * 2

    x = np.arange(4, dtype=np.float32)
    program = jax.jit(buffer_callback.buffer_callback(on_host, like(x)))
    np.testing.assert_array_equal(program(x), 2 * x)

    kept = []
    keeps = jax.jit(buffer_callback.buffer_callback(lambda context, out, x: kept.extend([out, x]), like(x)))
    jax.block_until_ready(keeps(x))
    for buffer in kept:  # Its memory may be another array's by now.
        with pytest.raises(RuntimeError, match="as long as the call"):
            np.asarray(buffer)
    assert len(kept) == 2


def test_functions_go_with_their_programs():
    from jax_plugins.tenon import callbacks

    def counts():
        jax.clear_caches()
        gc.collect()
        return len(table._loaded), len(table._functions)

    [table] = [each for each in gc.get_objects() if isinstance(each, callbacks.Callbacks)]
    before = counts()
    programs = [jax.jit(lambda x, n=n: jax.pure_callback(lambda a: np.asarray(a) + n, like(x), x)) for n in range(3)]
    compiled = [program.lower(jnp.int32(1)).compile() for program in programs]
    assert [int(each(jnp.int32(1))) for each in compiled] == [1, 2, 3]
    assert counts() == (before[0] + 3, before[1] + 3)
    del programs, compiled
    assert counts() == before


def test_tokens_of_programs():
    make = jax.jit(lambda x: (jax.lax.create_token(x), x))
    use = jax.jit(lambda token, x: (jax.lax.after_all(token), x + 1))
    token, x = make(jnp.float32(1))
    token, x = use(token, x)
    assert float(x) == 2.0


def test_one_variable_is_enough(run_program, seen_and_hidden):
    output = run_program("""
    import jax, numpy as np
    assert jax.default_backend() == "tenon", jax.default_backend()
    f = jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(a) + 1, jax.ShapeDtypeStruct((), x.dtype), x))
    print("result", f(np.float32(1)))
    """, JAX_PLATFORMS="tenon")
    assert "result 2.0" in output


def test_the_process_ends_while_callbacks_run(run_program, seen_and_hidden):
    output = run_program("""
    import jax, time
    from jax.experimental import io_callback
    def slow(x):
        time.sleep(0.3)
        print("called", flush=True)
    for _ in range(2):
        jax.jit(lambda x: io_callback(slow, None, x))(1.0)
    print("end of the program", flush=True)
    """)
    assert output.split("\n")[:3] == ["end of the program", "called", "called"] or output.count("called") == 2, output
