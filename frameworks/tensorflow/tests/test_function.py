"""tenon_tf.function: signatures, structures, variables, options, and what is refused."""

import collections
import copy
import gc
import math
import weakref

import numpy as np
import processes
import pytest
import tensorflow as tf

import tenon
import tenon_tf

Pair = collections.namedtuple("Pair", "first second")


def test_names_of_the_package():
    """In any order of use: no module of the package hides a function."""
    for name in ("prepare", "export", "load", "function"):
        program = f"import tenon_tf; tenon_tf.{name}; assert all(callable(getattr(tenon_tf, each)) for each in ('function', 'prepare', 'load', 'export'))"
        done = processes.run(program)
        assert done.returncode == 0, done.stderr
    assert set(tenon_tf.__all__) >= {"function", "prepare", "load", "export", "device", "counters", "Unsupported"}


def test_structures_of_arguments_and_results():
    @tenon_tf.function
    def f(pair, table, *, scale):
        return {"sum": pair.first + pair.second, "rest": [table["x"] * scale, None, (table["y"],)], "pair": Pair(pair.second, 3.0)}

    got = f(Pair(tf.ones(2), np.full(2, 2, np.float32)), {"y": tf.constant([7]), "x": tf.ones(2)}, scale=4)
    np.testing.assert_array_equal(got["sum"], [3, 3])
    np.testing.assert_array_equal(got["rest"][0], [4, 4])
    assert got["rest"][1] is None and int(got["rest"][2][0][0]) == 7
    assert isinstance(got["pair"], Pair) and float(got["pair"].second) == 3.0 and isinstance(got["sum"], tf.Tensor)
    assert tenon_tf.counters.calls == 1


def test_a_program_for_each_signature():
    traced = []

    @tenon_tf.function(programs=3)
    def f(x, n):
        traced.append(n)
        return x * n

    for x, n in [(tf.ones(2), 2), (tf.ones(2), 2), (tf.ones(3), 2), (tf.ones(2), 3), (tf.ones(2, tf.float64), 2), (np.ones(2, np.float32), 2)]:
        np.testing.assert_array_equal(f(x, n), np.ones(x.shape) * n)
    # The first program was dropped for the fourth, and is made again.
    assert traced == [2, 2, 3, 2, 2] and len(f.programs) == 3
    assert (tenon_tf.counters.programs, tenon_tf.counters.calls, tenon_tf.counters.evicted) == (5, 6, 2)
    assert [float(f(tf.constant(1.0), each)) for each in (1, 1.0, True)] == [1, 1, 1]  # Equal, of three types.
    assert len(traced) == 8


def test_input_signature_with_open_sizes():
    @tenon_tf.function(input_signature=[tf.TensorSpec((None, 3)), tf.TensorSpec((), tf.int32)])
    def f(x, n):
        return x * tf.cast(n, tf.float32)

    assert f([[1, 2, 3]], 2).shape == (1, 3) and f(tf.ones((4, 3)), 2).shape == (4, 3)
    with pytest.raises(TypeError, match="input_signature"):
        f(tf.ones((4, 2)), 2)
    with pytest.raises(ValueError, match="fixed sizes"):
        tenon_tf.function(lambda x: x).program(tf.TensorSpec((None, 3)))


def test_methods_and_nesting():
    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable(2.0)

        @tenon_tf.function
        def __call__(self, x):
            return self.scaled(x) + 1

        @tenon_tf.function
        def scaled(self, x):
            return self.w * x

    one, two = Model(), Model()
    two.w.assign(3.0)
    assert [float(each(tf.constant(2.0))) for each in (one, two, one)] == [5, 7, 5]
    assert tenon_tf.counters.calls == 3  # `scaled` became a part.
    assert tenon_tf.counters.programs == 2
    assert float(tf.function(one.scaled)(tf.constant(4.0))) == 8 and tenon_tf.counters.calls == 3


def test_autograph():
    @tenon_tf.function
    def f(x):
        total = tf.zeros(())
        for each in x:
            if each > 0:
                total += each
        return total

    assert float(f(tf.constant([1.0, -2.0, 3.0]))) == 4


def test_variables_stay_on_the_device():
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0, trainable=False)

    @tenon_tf.function
    def f(x):
        v.assign_add(x * w)
        return tf.reduce_sum(v)

    for _ in range(10):
        f(tf.ones(2))
    assert (tenon_tf.counters.variables_read, tenon_tf.counters.variables_written) == (2, 0)
    np.testing.assert_array_equal(v.numpy(), [31, 32])
    assert (tenon_tf.counters.variables_read, tenon_tf.counters.variables_written) == (2, 1)
    v.assign([0.0, 0.0])
    assert float(f(tf.ones(2))) == 6


READS = {
    "numpy": lambda v: v.numpy(), "read_value": lambda v: v.read_value(), "value": lambda v: v.value(), "op": lambda v: tf.add(v, 0.0),
    "raw_op": lambda v: tf.raw_ops.AddV2(x=v, y=0.0), "operator": lambda v: v * 1.0, "item": lambda v: v[0:1], "convert": tf.convert_to_tensor,
    "array": lambda v: np.asarray(v), "handle": lambda v: tf.raw_ops.ReadVariableOp(resource=v.handle, dtype=tf.float32),
    "gather": lambda v: tf.gather(v, [0]), "sparse_read": lambda v: v.sparse_read([0]), "text": lambda v: [float(str(v).split("[")[-1].split("]")[0])],
    "matmul": lambda v: tf.linalg.matvec(tf.ones((1, 1)), v), "identity": tf.identity, "copy": lambda v: __import__("copy").deepcopy(v).numpy(),
}


@pytest.mark.parametrize("how", READS)
def test_no_read_is_stale(how):
    v = tf.Variable([1.0])
    f = tenon_tf.function(lambda: v.assign_add([1.0]))
    assert float(f()[0]) == 2 and tenon_tf.counters.variables_written == 0
    assert float(np.asarray(READS[how](v))[0]) == 2, how
    assert float(f()[0]) == 3
    assert float(np.asarray(READS[how](v))[0]) == 3, how


def test_traced_functions_see_new_values():
    v = tf.Variable([1.0])
    inner = tf.function(lambda: v + 0.0)
    outer = tf.function(lambda: inner() * 2.0)
    writes = tf.function(lambda: v.assign([10.0]))
    assert float(outer()[0]) == 2
    f = tenon_tf.function(lambda: v.assign_add([1.0]))
    f()
    assert float(outer()[0]) == 4 and float(inner()[0]) == 2
    f()
    concrete = inner.get_concrete_function()
    f()
    assert float(concrete()[0]) == 4
    writes()
    assert float(f()[0]) == 11
    traced_now = tf.function(lambda: v * 1.0)
    assert float(traced_now()[0]) == 11
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v)
    assert float(tape.gradient(y, v)[0]) == 22


def test_checkpoints_and_saved_models(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1, use_bias=False)])
    kernel = model.trainable_variables[0].value
    f = tenon_tf.function(lambda: kernel.assign_add(tf.ones((2, 1))))
    start = kernel.numpy().copy()

    f()
    checkpoint = tf.train.Checkpoint(model=model)
    path = checkpoint.write(str(tmp_path / "checkpoint"))
    f()
    model.save(tmp_path / "model.keras")
    f()
    model.save_weights(tmp_path / "model.weights.h5")
    f()
    module = tf.Module()
    module.kernel = kernel
    tf.saved_model.save(module, str(tmp_path / "saved"))
    f()
    checkpoint.read(path).assert_consumed()
    np.testing.assert_allclose(kernel.numpy(), start + 1)
    np.testing.assert_allclose(f(), start + 2)
    np.testing.assert_allclose(tf.keras.models.load_model(tmp_path / "model.keras").get_weights()[0], start + 2)
    np.testing.assert_allclose(tf.saved_model.load(str(tmp_path / "saved")).kernel.numpy(), start + 4)
    f()
    model.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(f(), start + 4)


def test_variables_are_freed_with_their_owner():
    v = tf.Variable([1.0])
    f = tenon_tf.function(lambda: v.assign_add([1.0]))
    f()
    reference = weakref.ref(v)
    del f, v
    gc.collect()
    assert reference() is None


def test_write_back_at_each_call_and_sync():
    v = tf.Variable(1.0)
    f = tenon_tf.function(lambda: v.assign_add(1.0), write_back="each_call")
    f(), f()
    assert tenon_tf.counters.variables_written == 2 and float(v) == 3
    g = tenon_tf.function(lambda: v.assign_add(1.0))
    g()
    g.sync()
    assert tenon_tf.counters.variables_written == 3 and float(v) == 4


def test_variables_as_arguments_and_created_inside():
    v, w = tf.Variable(1.0), tf.Variable(10.0)
    f = tenon_tf.function(lambda variable, x: variable.assign_add(x))
    assert [float(f(each, tf.constant(1.0))) for each in (v, w, v)] == [2, 11, 3]
    assert float(v) == 3 and tenon_tf.counters.programs == 2

    class Counter:
        count = None

        def __call__(self):
            if self.count is None:
                self.count = tf.Variable(5)
            return self.count.assign_add(1)

    counter = tenon_tf.function(Counter())
    assert [int(counter()), int(counter())] == [6, 7]


def test_captured_tensors_and_written_only():
    large, small, v = tf.random.normal((300,)), tf.constant([1.0, 2.0]), tf.Variable([0.0, 0.0])

    @tenon_tf.function
    def f(x):
        v.assign(x * small)
        return tf.reduce_sum(large)

    np.testing.assert_allclose(f(tf.ones(2)), tf.reduce_sum(large), rtol=1e-5)
    np.testing.assert_array_equal(v, [1, 2])


def test_arrays_as_results_and_arguments(device):
    f = tenon_tf.function(lambda x: {"y": x * 2}, arrays=True)
    y = f(tf.ones(3))["y"]
    assert isinstance(y, tenon.Array)
    np.testing.assert_array_equal(np.asarray(f(y)["y"]), [4, 4, 4])
    assert tenon_tf.counters.programs == 1


@pytest.mark.parametrize("donate", [True, False])
def test_donation(donate):
    v = tf.Variable(tf.zeros(1000))
    f = tenon_tf.function(lambda: v.assign_add(tf.ones(1000)).shape[0], donate=donate)
    f()
    assert ("tf.aliasing_output" in f.programs[0].text) == donate
    for _ in range(3):
        f()
    np.testing.assert_array_equal(v, np.full(1000, 4.0))


def test_element_types():
    for dtype in (tf.bfloat16, tf.float16, tf.float64, tf.int8, tf.int64, tf.uint32, tf.bool, tf.complex64):
        x = tf.cast([0, 1, 1], dtype)
        v = tf.Variable(x)
        got = tenon_tf.function(lambda x: (x, v.assign(x)))(tf.cast([1, 0, 1], dtype))
        assert got[0].dtype == dtype
        np.testing.assert_array_equal(tf.cast(v, tf.float32), [1, 0, 1])


REFUSED = {
    "string": (lambda x: tf.strings.as_string(x), "AsString"),
    "print": (lambda x: (tf.print(x), x)[1], "StringFormat"),
    "py_function": (lambda x: tf.py_function(lambda t: t, [x], tf.float32), "EagerPyFunc"),
    "where": (lambda x: tf.where(x > 0), "Where"),
    "boolean_mask": (lambda x: tf.boolean_mask(x, x > 0), "Where"),
    "unique": (lambda x: tf.unique(x)[0], "Unique"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name_and_place(name):
    function, op = REFUSED[name]
    with pytest.raises(tenon_tf.Unsupported) as caught:
        tenon_tf.function(function)(tf.ones(3))
    assert caught.value.op == op and op in str(caught.value)
    assert "test_function.py:" in caught.value.place, str(caught.value)
    np.testing.assert_array_equal(tenon_tf.function(lambda x: x + 1)(tf.ones(3)), [2, 2, 2])


def test_other_refusals():
    with pytest.raises(TypeError, match="no option 'devise'; there are device"):
        tenon_tf.function(lambda x: x, devise="cpu")
    with pytest.raises(ValueError, match="write_back"):
        tenon_tf.function(lambda x: x, write_back="never")
    with pytest.raises(tenon.Error, match="no backend 'nowhere'"):
        tenon_tf.function(lambda x: x, device="nowhere")(tf.ones(2))
    with pytest.raises(RuntimeError, match="take gradients inside"):
        with tf.GradientTape():
            tenon_tf.function(lambda x: x)(tf.ones(2))
    with pytest.raises(tenon_tf.Unsupported, match="RaggedTensor"):
        tenon_tf.function(lambda x: x)(tf.ragged.constant([[1], [2, 3]]))
    with pytest.raises(tenon_tf.Unsupported, match="input 1 of the op Reshape, .*test_function.py:"):
        tenon_tf.function(lambda x, shape: tf.reshape(x, shape))(tf.ones(4), tf.constant([2, 2]))
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2]), -1)
    with pytest.raises(tenon_tf.Unsupported, match="no variable"):
        tenon_tf.function(table.lookup)(tf.constant([1]))


def test_a_lost_value_is_an_error_not_an_old_one():
    v = tf.Variable([1.0])
    f = tenon_tf.function(lambda: v.assign_add([1.0]))
    f()
    v.__dict__["_tenon_cell"].array.delete()
    with pytest.raises(RuntimeError, match="is lost"):
        v.numpy()
    v.assign([5.0])
    assert float(f()[0]) == 6


def test_what_assign_returns_is_the_same_variable():
    """It shares the variable's handle: looks at it see the program's value, and writes to it are not lost."""
    v = tf.Variable(1.0)

    @tenon_tf.function
    def step():
        return v.assign_add(1.0)

    u = v.assign(10.0)
    step()
    assert float(u.numpy()) == 11.0
    u.assign(100.0)
    step()
    assert float(v.numpy()) == 101.0


def test_a_lost_value_is_an_error_each_time_until_it_is_assigned():
    v = tf.Variable(tf.zeros(4))
    step = tenon_tf.function(lambda: v.assign_add(tf.ones(4)))
    step()
    v.__dict__["_tenon_cell"].array.delete()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="is lost"):
            v.numpy()
    v.assign(tf.fill([4], 5.0))
    step()
    assert v.numpy().tolist() == [6.0] * 4


def test_methods_belong_to_their_object_and_function():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        twice = tenon_tf.function(lambda self, x: 2 * self.factor * x)
        thrice = tenon_tf.function(lambda self, x: 3 * self.factor * x)

        @tenon_tf.function
        def once(self, x):
            return self.factor * x

    class Shifted(Scale):
        @tenon_tf.function
        def once(self, x):
            return super().once(x) + 1

    a = Scale(1.0)
    assert (float(a.twice(tf.constant(5.0))), float(a.thrice(tf.constant(5.0)))) == (10.0, 15.0)
    for b in (copy.copy(a), copy.deepcopy(a)):
        b.factor = 10.0
        assert float(b.twice(tf.constant(5.0))) == 100.0 and float(a.twice(tf.constant(5.0))) == 10.0
    assert float(Shifted(2.0).once(tf.constant(3.0))) == 7.0


def test_numbers_are_told_apart_by_their_bits():
    inverse = tenon_tf.function(lambda x, y: x / y)
    one = tf.constant(1.0)
    assert float(inverse(one, 0.0)) == math.inf and float(inverse(one, -0.0)) == -math.inf
    for _ in range(3):
        inverse(one, math.nan)
    assert len(inverse._programs) == 3

