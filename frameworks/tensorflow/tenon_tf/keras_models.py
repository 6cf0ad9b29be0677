"""Keras models whose training, evaluation and prediction run on a device of Tenon."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .functions import Function, function


def _steps(model: Any, step: Function) -> Callable:
    """The function that Keras calls with an iterator: as many steps as `steps_per_execution` says; the last one's results count."""

    def run(iterator: Any) -> Any:
        results = step(_plain(next(iterator)))  # StopIteration ends Keras's epoch.
        for _ in range(model.steps_per_execution - 1):
            try:
                data = next(iterator)
            except StopIteration:
                break
            results = step(_plain(data))
        return results

    return run


def _predictions(step: Function) -> Callable:
    """The function that Keras calls with a list of batches."""

    def run(batches: list) -> Any:
        results = [step(_plain(each)) for each in batches]
        return results[0] if len(results) == 1 else tf.nest.map_structure(lambda *parts: tf.concat(parts, 0), *results)

    return run


def _plain(data: Any) -> Any:
    """A batch, in which what Keras leaves out (sample weights) is None."""
    return tf.nest.map_structure(lambda each: None if isinstance(each, tf.experimental.Optional) else each, data)


def prepare(model: Any, **options: Any) -> Any:
    """Lets `fit`, `evaluate` and `predict` of a Keras model, and its `train_on_batch` and kin, run on a device of Tenon.

    Its own `train_step`, `test_step` and `predict_step` become programs. Call it before or after `model.compile`. Keras reads data,
    shuffles, calls callbacks and saves as before.

    Args:
        model: a Keras model.
        options: those of `tenon_tf.function`: device, strict, …

    Returns: the model.

    Raises: TypeError for what is no Keras model or an unknown option; ValueError for a model with a tf.distribute.Strategy.
    """
    if not isinstance(model, tf.keras.Model) or tf.keras.backend.backend() != "tensorflow":
        raise TypeError(f"tenon: prepare takes a Keras model with Keras's backend tensorflow, not {type(model).__name__}")
    if getattr(model, "_distribute_strategy", None) is not None and not isinstance(model.distribute_strategy, type(tf.distribute.get_strategy())):
        raise ValueError("tenon: the model has a tf.distribute.Strategy; Tenon runs it on one device")

    def make(attribute: str, step: Callable, runner: Callable) -> Callable:
        def make_function(force: bool = False) -> Any:
            if getattr(model, attribute) is None or force:
                setattr(model, attribute, runner(function(step, autograph=False, **options)))
            return getattr(model, attribute)

        return make_function

    def steps(step: Function) -> Callable:
        return _steps(model, step)

    function(model.train_step, **options)  # Refuses options that are wrong now.
    for name, step, runner in (("train_function", "train_step", steps), ("test_function", "test_step", steps),
                               ("predict_function", "predict_step", _predictions)):
        object.__setattr__(model, f"make_{name}", make(name, getattr(model, step), runner))
        setattr(model, name, None)
    return model
