"""Programs on scikit-learn's handwritten digits: an MLP and a small convolutional net."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from .sample import ExtraFile, Sample, dense_weights, mean_cross_entropy, random_normal, zeros

CLASSES = 10
PIXELS = 64
HIDDEN = 128
BATCH = 128
LEARNING_RATE = 0.5
TRAIN_EPOCHS = 40
REQUIRED_ACCURACY = 0.95
STORED_BATCHES = 20
CONV_BATCH = 16


@dataclass(frozen=True)
class Digits:
    """The data set, split once: images in 0..1 of shape (n, 64), int32 labels."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


@cache
def digits() -> Digits:
    """Loads the data set and sets 360 of its 1797 images aside for testing."""
    data = load_digits()
    images = (data.data / 16.0).astype(np.float32)
    labels = data.target.astype(np.int32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=360, random_state=0, stratify=labels
    )
    return Digits(train_x, train_y, test_x, test_y)


def batches(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Full training batches without end, in a new random order every epoch."""
    data = digits()
    while True:
        order = rng.permutation(len(data.train_x))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield data.train_x[chosen], data.train_y[chosen]


def mlp(w1: jax.Array, b1: jax.Array, w2: jax.Array, b2: jax.Array, images: jax.Array) -> jax.Array:
    """The logits of a classifier with one hidden ReLU layer."""
    hidden = jax.nn.relu(images @ w1 + b1)
    return hidden @ w2 + b2


def initial_mlp(seed: int) -> tuple[np.ndarray, ...]:
    """Starting parameters (w1, b1, w2, b2) of the classifier."""
    rng = np.random.default_rng(seed)
    w1 = dense_weights(rng, PIXELS, HIDDEN)
    w2 = dense_weights(rng, HIDDEN, CLASSES)
    return w1, zeros(HIDDEN), w2, zeros(CLASSES)


def digits_inference(w1, b1, w2, b2, images):
    """The logits and the most likely class of each image."""
    logits = mlp(w1, b1, w2, b2, images)
    return logits, jnp.argmax(logits, axis=1).astype(jnp.int32)


def digits_train_step(w1, b1, w2, b2, images, labels):
    """One step of gradient descent: the new parameters and the batch's loss."""
    parameters = (w1, b1, w2, b2)

    def loss_of(parameters):
        return mean_cross_entropy(mlp(*parameters, images), labels)

    loss, gradients = jax.value_and_grad(loss_of)(parameters)
    updated = [value - LEARNING_RATE * slope for value, slope in zip(parameters, gradients, strict=True)]
    return *updated, loss


@cache
def trained_mlp() -> tuple[np.ndarray, ...]:
    """Parameters trained until the epochs are used up; fails on a bad accuracy."""
    data = digits()
    step = jax.jit(digits_train_step)
    parameters: tuple = initial_mlp(seed=1)
    source = batches(np.random.default_rng(2))
    for _ in range(TRAIN_EPOCHS * (len(data.train_x) // BATCH)):
        *parameters, _ = step(*parameters, *next(source))
    _, predicted = digits_inference(*parameters, data.test_x)
    accuracy = float(np.mean(np.asarray(predicted) == data.test_y))
    print(f"  trained on digits: {accuracy:.1%} of the test images are right")
    if accuracy <= REQUIRED_ACCURACY:
        raise RuntimeError(
            f"the digits classifier gets {accuracy:.1%} of the test images right after "
            f"{TRAIN_EPOCHS} epochs; the sample needs more than {REQUIRED_ACCURACY:.0%}"
        )
    return tuple(np.asarray(value) for value in parameters)


def digits_inference_sample() -> Sample:
    """A trained classifier on the whole test set."""
    data = digits()
    return Sample(
        description="A trained MLP classifier (64-128-10, ReLU) on 360 test images of "
        "scikit-learn's handwritten digits; gives the logits and the predicted class.",
        function=digits_inference,
        inputs=(*trained_mlp(), data.test_x),
        output_names=("logits", "predicted"),
        tolerance=1e-4,
        extra_files={"labels.npy": ExtraFile(data.test_y, "the true class of each image")},
    )


def digits_train_step_sample() -> Sample:
    """A training step that can be looped over the stored batches."""
    source = batches(np.random.default_rng(3))
    stored = [next(source) for _ in range(STORED_BATCHES)]
    images = np.stack([batch_x for batch_x, _ in stored])
    labels = np.stack([batch_y for _, batch_y in stored])
    return Sample(
        description="One step of gradient descent (rate 0.5, batch 128) on the softmax "
        "cross-entropy of the 64-128-10 MLP. Outputs 0..3 have the order and shapes of "
        "inputs 0..3, so that a caller can feed them back; output 4 is the loss.",
        function=digits_train_step,
        inputs=(*initial_mlp(seed=4), images[0], labels[0]),
        output_names=("w1", "b1", "w2", "b2", "loss"),
        extra_files={
            "batches_x.npy": ExtraFile(images, "the images of 20 batches to loop over"),
            "batches_y.npy": ExtraFile(labels, "the labels of those batches"),
        },
    )


def convolution(images: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    """A two-dimensional convolution, images NHWC and kernel HWIO, padded to SAME."""
    return lax.conv_general_dilated(
        images, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def max_pool(images: jax.Array) -> jax.Array:
    """The largest value of each 2x2 window."""
    return lax.reduce_window(images, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def convnet(kernel1, bias1, kernel2, bias2, weights, bias, images):
    """Convolution, ReLU, max-pool, strided convolution, ReLU and a dense layer."""
    hidden = jax.nn.relu(convolution(images, kernel1, stride=1) + bias1)
    hidden = max_pool(hidden)
    hidden = jax.nn.relu(convolution(hidden, kernel2, stride=2) + bias2)
    flat = hidden.reshape(hidden.shape[0], -1)
    return (flat @ weights + bias,)


def convnet_grad(kernel1, bias1, kernel2, bias2, weights, bias, images, labels):
    """The loss and its gradient by every parameter and by the images."""

    def loss_of(arguments):
        (logits,) = convnet(*arguments)
        return mean_cross_entropy(logits, labels)

    arguments = (kernel1, bias1, kernel2, bias2, weights, bias, images)
    loss, gradients = jax.value_and_grad(loss_of)(arguments)
    return loss, *gradients


def convnet_inputs() -> tuple[np.ndarray, ...]:
    """Random parameters and the first test images as (16, 8, 8, 1)."""
    rng = np.random.default_rng(5)
    kernel1 = random_normal(rng, (3, 3, 1, 8), scale=0.4)
    kernel2 = random_normal(rng, (3, 3, 8, 16), scale=0.15)
    weights = dense_weights(rng, 64, CLASSES)
    bias1, bias2, bias = (random_normal(rng, (size,), scale=0.1) for size in (8, 16, CLASSES))
    images = digits().test_x[:CONV_BATCH].reshape(CONV_BATCH, 8, 8, 1)
    return kernel1, bias1, kernel2, bias2, weights, bias, images


def convnet_sample() -> Sample:
    """The convolutional net's inference."""
    return Sample(
        description="A small convolutional net on 16 digits of 8x8 pixels: convolution, ReLU, "
        "2x2 max-pool, convolution with stride 2, ReLU, dense layer.",
        function=convnet,
        inputs=convnet_inputs(),
        output_names=("logits",),
    )


def convnet_grad_sample() -> Sample:
    """The convolutional net's gradients."""
    return Sample(
        description="The cross-entropy loss of the convolutional net and its gradient by "
        "every parameter and by the images.",
        function=convnet_grad,
        inputs=(*convnet_inputs(), digits().test_y[:CONV_BATCH]),
        output_names=(
            "loss", "d_kernel1", "d_bias1", "d_kernel2", "d_bias2", "d_weights", "d_bias", "d_images",
        ),
    )  # fmt: skip
