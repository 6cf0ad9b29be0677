"""Networks and batches for tests and the benchmark: name → (model, inputs, labels), from one seed."""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
CLASSES = 10


def _labels(count: int) -> np.ndarray:
    return (np.arange(count) % CLASSES).astype(np.int32)


def _images(count: int, size: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, size, size, 1)).astype(np.float32)


def _words(count: int, length: int, words: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, words, (count, length)).astype(np.int32)


def mlp(batch: int = 16, width: int = 32):
    model = tf.keras.Sequential([layers.Input((64,)), layers.Dense(width, "relu"), layers.Dense(width, "relu"), layers.Dense(CLASSES)])
    return model, np.random.default_rng(0).standard_normal((batch, 64)).astype(np.float32), _labels(batch)


def cnn(batch: int = 16, size: int = 12, channels: int = 8):
    model = tf.keras.Sequential([layers.Input((size, size, 1)), layers.Conv2D(channels, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
                                 layers.MaxPool2D(), layers.Conv2D(2 * channels, 3, padding="same", activation="relu"), layers.Flatten(),
                                 layers.Dense(CLASSES)])
    return model, _images(batch, size), _labels(batch)


def lstm(batch: int = 16, length: int = 12, width: int = 16):
    model = tf.keras.Sequential([layers.Input((length,), dtype="int32"), layers.Embedding(50, width), layers.LSTM(width), layers.Dense(CLASSES)])
    return model, _words(batch, length, 50), _labels(batch)


def transformer(batch: int = 16, length: int = 12, width: int = 16):
    words = layers.Input((length,), dtype="int32")
    x = layers.Embedding(50, width)(words)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, width // 2)(x, x, use_causal_mask=True))
    x = layers.LayerNormalization()(x + layers.Dense(width)(layers.Dense(2 * width, activation="gelu")(x)))
    return tf.keras.Model(words, layers.Dense(CLASSES)(layers.GlobalAveragePooling1D()(x))), _words(batch, length, 50), _labels(batch)


NETWORKS = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "transformer": transformer}


def train_step(model, optimizer):
    """One step of training as a function of a batch; its result is the loss."""
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(model.trainable_variables)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return step
