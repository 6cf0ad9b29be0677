"""TensorFlow's device "/device:TENON:0". Each test is a process: a device must be there before TensorFlow runs anything."""

import json
import pathlib
import subprocess

import numpy as np
import processes
import pytest

HERE = pathlib.Path(__file__).resolve().parent


def run(program: str, *, before: str = "tenon_tf.device.register(strict=True)", process=processes.run) -> subprocess.CompletedProcess:
    head = f"import json, sys\nsys.path.insert(0, {str(HERE)!r})\nimport tenon_tf\n{before}\nimport numpy as np, tensorflow as tf\n"
    return process(head + program)


def outcome(program: str, **words: str):
    done = run(program, **words)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


# Keras's own fit, five steps; on both devices in one process.
FIT = """
import networks
found = {}
for name in %r:
    found[name] = []
    for device in ("/device:CPU:0", tenon_tf.device.NAME):
        before = tenon_tf.device.counts()
        with tf.device(device):
            tf.keras.utils.set_random_seed(0)
            model, x, y = networks.NETWORKS[name](batch=16)
            losses = []
            model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=device == tenon_tf.device.NAME)
            model.fit(x, y, batch_size=16, epochs=5, shuffle=False, verbose=0,
                      callbacks=[tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda step, logs: losses.append(logs["loss"]))])
        after = tenon_tf.device.counts()
        found[name].append([losses, after.programs - before.programs, after.executions - before.executions])
    placed = {each.value.device for each in model.trainable_variables}
    assert all(each.endswith("TENON:0") for each in placed), placed
print(json.dumps(found))
"""


def test_keras_fit():
    names = ["cnn", "lstm", "transformer"]
    for name, ((expected, *on_cpu), (losses, programs, executions)) in outcome(FIT % names, process=processes.run_alone).items():
        assert len(losses) == 5 and losses[-1] != losses[0], name
        np.testing.assert_allclose(losses, expected, rtol=1e-5, err_msg=name)
        assert on_cpu == [0, 0] and programs >= 1 and executions >= 5, name


def test_tensors_variables_functions():
    found = outcome("""
with tf.device(tenon_tf.device.NAME):
    a, v = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
    step = tf.function(lambda x: v.assign_add(x * 2), jit_compile=True)
    first, second = step(a), step(a)
    top = tf.function(lambda x: tf.math.top_k(x, 2), jit_compile=True)(tf.constant([3.0, 1.0, 2.0]))
    half = tf.function(lambda x: tf.cast(x, tf.bfloat16) * 2, jit_compile=True)(a)
counts = tenon_tf.device.counts()
print(json.dumps([a.device, v.device, first.device, second.numpy().tolist(), v.numpy().tolist(), top[0].numpy().tolist(), top[1].numpy().tolist(),
                  tf.cast(half, tf.float32).numpy().tolist(), counts.programs, counts.executions]))
""")
    assert all(each.endswith("TENON:0") for each in found[:3])
    assert found[3:8] == [[7, 10 + 2], [7, 12], [3, 2], [0, 2], [2, 4]]
    assert found[8] >= 3 and found[9] >= 4


def test_refused_by_name_and_the_process_lives():
    texts = outcome("""
texts = []
with tf.device(tenon_tf.device.NAME):
    for function, argument in ((lambda x: tf.unique(x)[0], tf.constant([1, 2, 1])), (tf.strings.as_string, tf.ones(2))):
        try:
            tf.function(function, jit_compile=True)(argument)
        except tf.errors.OpError as error:
            texts.append(str(error))
    texts.append(tf.function(lambda x: x + 1, jit_compile=True)(tf.ones(2)).numpy().tolist())
print(json.dumps(texts))
""")
    assert "Unique" in texts[0] and "AsString" in texts[1] and texts[2] == [2, 2]


def test_ops_outside_of_compiled_functions():
    """What TensorFlow has a kernel for on every device must not read handles as memory."""
    found = outcome("""
found = []
with tf.device(tenon_tf.device.NAME):
    v = tf.Variable([1.0, 2.0])
    v.assign_add([1.0, 1.0]), v.assign_sub([0.0, 0.5]), v.assign(v * 2)
    n = tf.Variable(3)
    n.assign_add(1)
    found += [v.numpy().tolist(), int(n), v.device]
    for raw in (lambda: tf.raw_ops.AssignAddVariableOp(resource=v.handle, value=tf.ones(2)),
                lambda: tf.function(lambda: v.assign_add([1.0, 1.0]))(),
                lambda: tf.raw_ops.TensorListFromTensor(tensor=v.read_value(), element_shape=tf.constant([], tf.int32))):
        try:
            raw()
        except tf.errors.UnimplementedError as error:
            found.append("jit_compile=True alone" in str(error))
    f = tf.function(lambda x: x * 2, jit_compile=True)
    a = f(tf.ones((4, 3)))
    found += [tf.reshape(a, (2, 6)).numpy().tolist(), tf.expand_dims(a, 0).shape.as_list(), tf.transpose(a).numpy().tolist(), a[1:].shape.as_list(),
              f(tf.reshape(a, (12,))).numpy().sum().item()]
print(json.dumps(found))
""")
    assert found[0] == [4, 5] and found[1] == 4 and found[2].endswith("TENON:0")
    assert found[3:6] == [True, True, True]
    assert found[6:] == [[[2.0] * 6] * 2, [1, 4, 3], [[2.0] * 4] * 3, [3, 3], 48]


def test_both_ways_in_one_process():
    assert outcome("""
f = tenon_tf.function(lambda x: x * 3)
with tf.device(tenon_tf.device.NAME):
    g = tf.function(lambda x: x + 1, jit_compile=True)
    print(json.dumps(f(g(tf.ones(2))).numpy().tolist() + [tenon_tf.counters.calls]))
""") == [6, 6, 1]


@pytest.mark.parametrize("before, text", [
    ("import tensorflow as tf; tf.constant(1.0) + 1; tenon_tf.device.register()", "has run its first op"),
    ("import tensorflow as tf; tf.__version__ = '2.22.0'; tenon_tf.device.register()", "is made for TensorFlow 2.21.0"),
    ("tenon_tf.device.register('nowhere')", "no backend 'nowhere'"),
    ("tenon_tf.device.register(no_such_option=True)", "No such compile option: 'no_such_option'"),
    ("tenon_tf.device.register('cpu'); tenon_tf.device.register('cpu'); tenon_tf.device.register('template')", "takes no second one"),
])
def test_registering_is_refused(before, text):
    done = run("", before=before)
    assert done.returncode == 1 and text in done.stderr.strip().splitlines()[-1], done.stderr[-2000:]


def test_registered_behind_the_import():
    done = run("print(tf.config.list_logical_devices('TENON'))", before="import tensorflow as tf; tenon_tf.device.register()")
    assert done.returncode == 0 and "TENON:0" in done.stdout, done.stderr[-2000:]


def test_arrays_of_many_dimensions():
    """TensorFlow deletes the shapes that the device gives it: those of more than six dimensions are lists of their own."""
    found = outcome("""
found = []
f = tf.function(lambda x: x + 1.0, jit_compile=True)
for rank in (6, 7, 8):
    with tf.device(tenon_tf.device.NAME):
        found.append(float(tf.reduce_sum(f(tf.ones([2] * rank)))))
print(json.dumps(found))
""")
    assert found == [2.0 * 2**rank for rank in (6, 7, 8)]
