"""TensorFlow on any device of Tenon.

    import tensorflow as tf, tenon_tf

    @tenon_tf.function(device="cpu")                # as tf.function: a whole training step as one program
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    model.compile(optimizer, loss)
    tenon_tf.prepare(model)                         # fit, evaluate and predict of a Keras model go through Tenon

    step.save("step.tenon", x, y)                   # the program and its variables
    tenon_tf.load("step.tenon")(x, y)               # without TensorFlow

    tenon_tf.device.register()                      # first in a process: with tf.device("/device:TENON:0")

    print(tenon_tf.counters)                        # programs, calls, variables read and written back
"""

import importlib

_PLACES = {"Function": "functions", "Options": "options", "Saved": "saved", "Unsupported": "errors", "counters": "counting", "export": "exporting",
           "function": "functions", "load": "saved", "prepare": "keras_models"}
_MODULES = ("device",)
__all__ = sorted([*_PLACES, *_MODULES])
__version__ = "0.1.0"


def __getattr__(name: str):
    # `load` does without TensorFlow, which takes seconds to import, and `device` must come before its first use.
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_PLACES[name]}", __name__)
    globals().update({each: getattr(module, each) for each, place in _PLACES.items() if place == _PLACES[name]})
    return globals()[name]
