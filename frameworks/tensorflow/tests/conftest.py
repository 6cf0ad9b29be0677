"""What the tests share: they run on the device that TENON_DEVICE names (default: cpu), from fresh counters and one seed.

The tests of "/device:TENON:0" must come before any op of TensorFlow: they run in processes of their own.
"""

import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import pytest  # noqa: E402


def pytest_collection_finish():
    """What is imported stays: to look for cycles of objects in it takes a part of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture
def device() -> str:
    return os.environ.get("TENON_DEVICE", "cpu")


@pytest.fixture(autouse=True)
def fresh():
    import tensorflow as tf

    import tenon_tf

    tenon_tf.counters.reset()
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(0)
    yield
