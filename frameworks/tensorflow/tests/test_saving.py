"""Programs as files: saved with their state, and exported for `tenon run`."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from networks import mlp, train_step

import tenon
import tenon_tf


def test_training_goes_on_without_tensorflow(tmp_path, device):
    model, x, y = mlp()
    step = tenon_tf.function(train_step(model, tf.keras.optimizers.Adam(1e-3)))
    step(x, y), step(x, y)
    step.save(tmp_path / "step.tenon")
    np.savez(tmp_path / "batch.npz", x=x, y=y)
    program = ("import sys, json, numpy as np, tenon_tf; b = np.load('batch.npz'); step = tenon_tf.load('step.tenon'); "
               "losses = [float(step(b['x'], b['y'])) for _ in range(3)]; step.save('later.tenon'); "
               "assert 'tensorflow' not in sys.modules; print(json.dumps([losses, sorted(step.state)]))")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    losses, names = json.loads(done.stdout)
    np.testing.assert_allclose(losses, [float(step(x, y)) for _ in range(3)], rtol=1e-6)
    assert "iteration" in " ".join(names)
    later = tenon_tf.load(tmp_path / "later.tenon")
    np.testing.assert_allclose(float(later(x, y)), float(step(x, y)), rtol=1e-6)
    weights = [each for each in later.state.values() if each.shape == (64, 32)]
    assert any(np.allclose(each, model.get_weights()[0], rtol=1e-5) for each in weights)


def test_structures_and_element_types(tmp_path):
    v = tf.Variable(tf.cast([1, 2], tf.bfloat16))
    flag = tf.Variable(True)

    @tenon_tf.function
    def f(pair, scale):
        v.assign_add(tf.cast(pair["x"], tf.bfloat16))
        return {"v": v.read_value(), "n": None, "l": [pair["y"] * scale, flag.read_value()]}

    f.save(tmp_path / "f.tenon", {"x": tf.TensorSpec(2), "y": tf.TensorSpec((), tf.int32)}, 3)
    assert tenon_tf.counters.calls == 0
    loaded = tenon_tf.load(tmp_path / "f.tenon", strict=True)
    got = loaded({"x": np.ones(2, np.float32), "y": np.int32(2)}, 3)
    np.testing.assert_array_equal(np.asarray(got["v"]).astype(np.float32), [2, 3])
    assert got["n"] is None and int(got["l"][0]) == 6 and isinstance(got["v"], tenon.Array)
    np.testing.assert_array_equal(v.numpy().astype(np.float32), [1, 2])  # The file has its own.
    with pytest.raises(TypeError, match="structure"):
        loaded(np.ones(2, np.float32), 3)
    with pytest.raises(ValueError, match="no program yet"):
        tenon_tf.function(lambda x: x).save(tmp_path / "g.tenon")


def test_export(tmp_path, device):
    model, x, _ = mlp()
    model(x)
    seed, flags = tf.Variable(0), tf.constant([[True, False]] * 200)
    drop = tf.keras.layers.Dropout(0.0)

    @tenon_tf.function
    def f(x):
        seed.assign_add(1)
        return model(drop(x)), tf.reduce_sum(tf.cast(flags, tf.int32))

    tenon_tf.export(f, tmp_path / "model.mlir", tf.TensorSpec(x.shape))
    program = tenon.compile((tmp_path / "model.mlir").read_text(), device=device)
    logits, count = program(x)
    np.testing.assert_allclose(np.asarray(logits), model(x), rtol=1e-4, atol=1e-5)
    assert int(count) == 200
    tool = os.environ.get("TENON_TOOL")
    if tool is None or not pathlib.Path(tool).exists():
        pytest.skip("TENON_TOOL does not name the command tenon; the rest of the test passed")
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([tool, "run", tmp_path / "model.mlir", "--arg", f"0=@{tmp_path / 'x.npy'}"], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
