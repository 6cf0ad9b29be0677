"""Linear algebra: what XLA expands by itself, and its custom calls Qr, ProductOfElementaryHouseholderReflectors and Eigh, which Tenon
expands. Factors are determined up to signs: what is made of them is compared with TensorFlow's CPU."""

import json

import numpy as np
import processes
import pytest
import tensorflow as tf

import tenon_tf


def tall():
    return tf.random.normal([2, 5, 3])


def square():
    return tf.random.normal([2, 4, 4]) + 4 * tf.eye(4)


def symmetric():
    x = square()
    return x + tf.linalg.matrix_transpose(x)


def eigh(x):
    values, vectors = tf.linalg.eigh(x)
    return values, tf.matmul(x, vectors) - vectors * values[..., None, :]


def complex_eigh(x):
    x = tf.complex(x, tf.linalg.band_part(x, 0, -1) - tf.linalg.band_part(x, -1, 0))
    return tf.linalg.eigvalsh(x + tf.linalg.adjoint(x))


def qr(x):
    q, r = tf.linalg.qr(x)
    return tf.matmul(q, r), tf.matmul(q, q, transpose_a=True)


def full_qr(x):
    q, r = tf.linalg.qr(x, full_matrices=True)
    return tf.matmul(q, r), tf.matmul(q, q, transpose_a=True)


def svd(x):
    s, u, v = tf.linalg.svd(x)
    return s, tf.matmul(u * s[..., None, :], v, adjoint_b=True)


def gradient_of_eigenvalues(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.linalg.eigvalsh(x) ** 3)
    return tape.gradient(loss, x)


def gradient_of_qr(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.linalg.qr(x)[1] ** 4)
    return tape.gradient(loss, x)


CASES = {
    eigh: symmetric, complex_eigh: symmetric, qr: tall, full_qr: tall, svd: tall, gradient_of_eigenvalues: symmetric, gradient_of_qr: tall,
    tf.linalg.inv: square, tf.linalg.pinv: tall, tf.linalg.expm: lambda: square() / 8,
    (lambda x: tf.linalg.solve(x, x[..., :2])): square, (lambda x: tf.linalg.lstsq(x, x[..., :1] + 1)): tall,
}


@pytest.mark.parametrize("function", CASES, ids=lambda each: each.__name__)
def test_linear_algebra(function, device):
    x = CASES[function]()
    compiled = tenon_tf.function(lambda x: function(x), device=device, strict=True)
    for found, expected in zip(tf.nest.flatten(compiled(x)), tf.nest.flatten(function(x)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5 * max(1, float(tf.reduce_max(tf.abs(expected)))))
    assert tenon_tf.counters.calls == 1


def test_factors_on_the_device():
    """By "/device:TENON:0", in a process of its own."""
    program = """
import json, tenon_tf
tenon_tf.device.register(strict=True)
import tensorflow as tf
with tf.device(tenon_tf.device.NAME):
    x = tf.random.normal([6, 4])
    q, r = tf.function(tf.linalg.qr, jit_compile=True)(x)
    values, vectors = tf.function(tf.linalg.eigh, jit_compile=True)(tf.matmul(x, x, transpose_a=True))
with tf.device("CPU:0"):
    wrong = [tf.reduce_max(tf.abs(each)).numpy().item() for each in
             (tf.matmul(q, r) - x, tf.matmul(x, tf.matmul(x, vectors), transpose_a=True) - vectors * values)]
print(json.dumps([q.device, tenon_tf.device.counts().executions, wrong]))
"""
    done = processes.run(program)
    assert done.returncode == 0, done.stderr[-3000:]
    device, executions, wrong = json.loads(done.stdout.splitlines()[-1])
    assert device.endswith("TENON:0") and executions >= 2 and max(wrong) < 2e-5, (device, executions, wrong)
