"""Whole training steps as programs, beside TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf
from networks import NETWORKS, cnn, mlp, train_step

import tenon_tf

OPTIMIZERS = {"adam": lambda: tf.keras.optimizers.Adam(1e-3), "sgd": lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9),
              "adamw": lambda: tf.keras.optimizers.AdamW(1e-3), "rmsprop": lambda: tf.keras.optimizers.RMSprop(1e-3)}
STEPS = 5


def five_steps(compiled: bool, name: str, optimizer: str, **options):
    tf.keras.utils.set_random_seed(0)
    model, x, y = NETWORKS[name]()
    step = train_step(model, OPTIMIZERS[optimizer]())
    step = tenon_tf.function(step, **options) if compiled else tf.function(step)
    x, y = tf.constant(x), tf.constant(y)
    return [float(step(x, y)) for _ in range(STEPS)], model.get_weights()


@pytest.mark.parametrize("name", ["cnn", "lstm", "transformer"])
def test_five_steps(name):
    losses, weights = five_steps(True, name, "adam", strict=True)
    assert (tenon_tf.counters.programs, tenon_tf.counters.calls) == (1, STEPS)
    expected, expected_weights = five_steps(False, name, "adam")
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for got, want in zip(weights, expected_weights):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    assert losses[-1] != losses[0]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "rmsprop"])
def test_optimizers(optimizer):
    losses, _ = five_steps(True, "mlp", optimizer)
    assert tenon_tf.counters.calls == STEPS
    np.testing.assert_allclose(losses, five_steps(False, "mlp", optimizer)[0], rtol=1e-5)


def test_mixed_precision():
    def losses(compiled):
        tf.keras.utils.set_random_seed(0)
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
        try:
            model, x, y = mlp()
            step = train_step(model, tf.keras.optimizers.Adam(1e-3))
            step = tenon_tf.function(step) if compiled else tf.function(step, jit_compile=True)
            return [float(step(tf.constant(x), tf.constant(y))) for _ in range(STEPS)]
        finally:
            tf.keras.mixed_precision.set_global_policy("float32")

    np.testing.assert_allclose(losses(True), losses(False), rtol=5e-3)
    assert tenon_tf.counters.calls == STEPS


def test_dropout_draws_anew_and_by_the_seed():
    layer = tf.keras.layers.Dropout(0.5)
    f = tenon_tf.function(lambda x: layer(x, training=True))
    first, second = f(tf.ones((8, 32))), f(tf.ones((8, 32)))
    assert 0.2 < float(tf.reduce_mean(tf.cast(first == 0, tf.float32))) < 0.8
    assert np.any(first != second)
    tf.keras.utils.set_random_seed(0)
    layer = tf.keras.layers.Dropout(0.5)
    np.testing.assert_array_equal(tenon_tf.function(lambda x: layer(x, training=True))(tf.ones((8, 32))), first)
    ours, theirs = tf.keras.layers.Dropout(0.5, seed=3), tf.keras.layers.Dropout(0.5, seed=3)
    want = tf.function(lambda x: theirs(x, training=True), jit_compile=True)(tf.ones((8, 32)))  # Those of eager mode are others.
    np.testing.assert_array_equal(tenon_tf.function(lambda x: ours(x, training=True))(tf.ones((8, 32))), want)


def test_generators_are_variables():
    ours, theirs = tf.random.Generator.from_seed(7), tf.random.Generator.from_seed(7)
    f, g = tenon_tf.function(lambda: ours.normal((4,))), tf.function(lambda: theirs.normal((4,)), jit_compile=True)
    for _ in range(3):
        np.testing.assert_allclose(f(), g(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(ours.state, theirs.state)


def keras_losses(prepared: bool, make=cnn, **options):
    tf.keras.utils.set_random_seed(0)
    model, x, y = make(batch=40)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options)
    if prepared:
        assert tenon_tf.prepare(model) is model
    history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0, validation_data=(x[:16], y[:16])).history
    return history, model.evaluate(x, y, batch_size=16, verbose=0), model.predict(x, batch_size=16, verbose=0), model


def test_keras_fit_evaluate_predict():
    history, evaluated, predicted, model = keras_losses(True)
    assert tenon_tf.counters.programs == 6  # Steps of training, evaluation and prediction, for batches of 16 and 8.
    assert tenon_tf.counters.calls == 3 * (3 + 1) + 3 + 3
    expected, expected_evaluated, expected_predicted, _ = keras_losses(False)
    assert history.keys() == expected.keys()
    for name in history:
        np.testing.assert_allclose(history[name], expected[name], rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(evaluated, expected_evaluated, rtol=1e-5)
    np.testing.assert_allclose(predicted, expected_predicted, rtol=1e-3, atol=1e-3)
    assert int(model.optimizer.iterations) == 9


def test_keras_steps_per_execution_and_callbacks():
    seen = []
    tf.keras.utils.set_random_seed(0)
    model, x, y = mlp(batch=40)
    tenon_tf.prepare(model)  # Before compile, too.
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), steps_per_execution=2)
    callbacks = [tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(logs["loss"])),
                 tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))]
    model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)
    assert len(seen) == 2 and seen[1] < seen[0]
    assert abs(float(model.optimizer.learning_rate) - 0.05) < 1e-6
    assert tenon_tf.counters.calls == 10


def test_keras_on_batches():
    def run(prepared):
        tf.keras.utils.set_random_seed(0)
        model, x, y = mlp()
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        if prepared:
            tenon_tf.prepare(model)
        losses = [float(np.ravel(model.train_on_batch(x, y))[0]) for _ in range(3)]
        return losses + [float(np.ravel(model.test_on_batch(x, y))[0])], model.predict_on_batch(x)

    losses, predicted = run(True)
    assert tenon_tf.counters.calls == 5
    expected, expected_predicted = run(False)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(predicted, expected_predicted, rtol=1e-4, atol=1e-6)


def test_keras_models_that_are_refused():
    with pytest.raises(TypeError, match="takes a Keras model"):
        tenon_tf.prepare(lambda x: x)
    with pytest.raises(TypeError, match="no option 'devise'"):
        tenon_tf.prepare(mlp()[0], devise="cpu")
