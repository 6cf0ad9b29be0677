#!/usr/bin/env python3
"""A classifier of digits in TensorFlow, trained on a device of Tenon and by TensorFlow itself.

    frameworks/tensorflow/.venv/bin/python samples/frameworks/with_tensorflow.py --device cpu
"""

import os
import sys
import time

import digits

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402

import tenon_tf  # noqa: E402


def scores_of(weights, x):
    for number in "12":
        x = tf.tanh(tf.nn.conv2d(x, weights["filter" + number], 1, "SAME") + weights["bias" + number])
        x = tf.nn.avg_pool2d(x, 2, 2, "VALID")
    return tf.reshape(x, [tf.shape(x)[0], -1]) @ weights["matrix"] + weights["bias3"]


def train(weights, steps, device):
    """`device` None: TensorFlow itself, compiled by XLA."""
    variables = {name: tf.Variable(each) for name, each in weights.items()}

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores_of(variables, x)))
        for variable, gradient in zip(variables.values(), tape.gradient(loss, list(variables.values()))):
            variable.assign_sub(digits.RATE * gradient)
        return loss

    def scores(x):
        return scores_of(variables, x)

    if device is None:
        step, scores = tf.function(step, jit_compile=True), tf.function(scores, jit_compile=True)
    else:
        step, scores = tenon_tf.function(step, device=device), tenon_tf.function(scores, device=device)
    losses, times = [], []
    for x, y in digits.batches(steps, f"TensorFlow on {device or 'the CPU'}"):
        x, y = tf.constant(x), tf.constant(y)
        start = time.perf_counter()
        losses.append(float(step(x, y)))
        times.append(time.perf_counter() - start)
    assert device is None or tenon_tf.counters.calls >= steps, tenon_tf.counters
    accuracy = digits.right(scores(tf.constant(digits.test_data()[0])))
    return losses, digits.median_step(times), accuracy, {name: each.numpy() for name, each in variables.items()}


if __name__ == "__main__":
    sys.exit(digits.train(__doc__.splitlines()[0], "TensorFlow", train, train))
