"""Memory of a device's own: arrays that stay there between runs, copies, addresses. On a device that sees the host's memory, the same calls."""

import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from models import DEVICE, Session, mixed, mlp, model, on_cpu, random, total, value
from onnx import helper

import tenon_ort

node = helper.make_node
MEMORY = tenon_ort.memory(DEVICE)
OWN = MEMORY["device_type"] != "cpu"
ROW = 64 * 4  # Bytes of a row of the model's input.
own_memory = pytest.mark.skipif(not OWN, reason="the device sees the host's memory")


def on_device(array: np.ndarray) -> onnxruntime.OrtValue:
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, **MEMORY)


def empty(*dims: int, dtype=np.float32) -> onnxruntime.OrtValue:
    return onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(dims), dtype, **MEMORY)


def expected(data: bytes, **feed) -> list[np.ndarray]:
    return on_cpu(data).run(None, feed)


def bound(session: Session, inputs: dict, outputs: list[str]) -> onnxruntime.IOBinding:
    binding = session.session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, array)
    for name in outputs:
        binding.bind_output(name, **MEMORY)
    return binding


def test_values_on_the_device():
    for array in (random(3, 5), random(7, dtype=np.float64), np.array([True, False]), np.arange(6, dtype=np.int64), np.array(2.5, np.float16)):
        there = on_device(array)
        assert (there.data_ptr() == array.ctypes.data) == (not OWN)
        np.testing.assert_array_equal(there.numpy(), array)
        if OWN:  # ONNX Runtime has no copies between arrays of the host.
            again = empty(*array.shape, dtype=array.dtype)
            onnxruntime.copy_tensors([there], [again])
            np.testing.assert_array_equal(again.numpy(), array)


def test_bound_arrays_are_not_copied(tmp_path):
    session, x = Session(mlp(), tmp_path), on_device(random(4, 64))
    binding = bound(session, {"x": x}, ["y"])
    for seed in range(3):
        x.update_inplace(random(4, 64, seed=seed))
        session.session.run_with_iobinding(binding)
        np.testing.assert_allclose(binding.get_outputs()[0].numpy(), expected(mlp(), x=random(4, 64, seed=seed))[0], atol=1e-6)
    into = empty(4, 10)
    binding.bind_ortvalue_output("y", into)
    session.session.run_with_iobinding(binding)
    np.testing.assert_allclose(into.numpy(), expected(mlp(), x=random(4, 64, seed=2))[0], atol=1e-6)
    del binding
    report = session.report()
    assert total(report, "runs") == 4
    assert not OWN or [total(report, each) for each in ("sent", "fetched")] == [0, 0]


RUNS = """
import sys
import numpy, onnxruntime, tenon_ort
from models import mlp, random
memory = tenon_ort.memory()
session = tenon_ort.session(mlp(), constant_elements=0)
binding = session.io_binding()
binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(random(4, 64), **memory))
binding.bind_output("y", **memory)
for _ in range(int(sys.argv[1])):
    session.run_with_iobinding(binding)
print(binding.get_outputs()[0].numpy().sum())
"""


def copies_of(runs: int, folder: pathlib.Path) -> tuple[dict, int]:
    """The copies that the device was given, and the launches, as the layer `trace` saw them."""
    file = folder / f"{runs}.json"
    settings = {**os.environ, "TENON_LAYERS": "trace", "TENON_TRACE": str(file), "TENON_DEVICE": DEVICE,
                "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", RUNS, str(runs)], env=settings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and abs(float(done.stdout) - 4) < 1e-4, done.stderr
    events = json.loads(file.read_text())
    names = collections.Counter(each["name"] for each in (events["traceEvents"] if isinstance(events, dict) else events) if each["ph"] == "X")
    return {name: count for name, count in names.items() if name.startswith("copy ")}, names["give launch"]


@own_memory
def test_further_runs_copy_nothing(tmp_path):
    """Weights and the input come to the device once, the result goes to the host once, however many runs there are."""
    one, six = copies_of(1, tmp_path), copies_of(6, tmp_path)
    assert six[1] == 6 * one[1] > 0
    assert six[0] == one[0] and one[0]["copy host to device"] == 4 and one[0]["copy device to host"] == 1


@own_memory
def test_addresses_beyond_an_array():
    """An address within an array reaches to its end, not to that of its page."""
    x, data = on_device(random(16)), model([node("Add", ["x", "x"], ["y"])], [value("x", [8])], [value("y", [8])])
    session = tenon_ort.session(data, device=DEVICE, small_groups=True)
    for begin, fits in ((8, True), (9, False)):
        binding = session.io_binding()
        binding.bind_output("y", **MEMORY)
        try:
            binding.bind_input("x", MEMORY["device_type"], MEMORY["device_id"], np.float32, [8], x.data_ptr() + 4 * begin)
            session.run_with_iobinding(binding)
            binding.get_outputs()[0].numpy()
        except Exception:  # ONNX Runtime's own classes.
            assert not fits
        else:
            assert fits
        del binding


def test_a_state_of_a_small_model(tmp_path):
    """ONNX Runtime copies the inputs of what it keeps for itself when they are bound: a state wants its group on the device."""
    data = model([node("Add", ["x", "z"], ["y"])], [value("x", [4]), value("z", [4])], [value("y", [4])])
    session = Session(data, tmp_path, small_groups=True)
    x, one = on_device(np.zeros(4, np.float32)), on_device(np.ones(4, np.float32))
    binding = bound(session, {"x": x, "z": one}, [])
    binding.bind_ortvalue_output("y", x)
    for _ in range(3):
        session.session.run_with_iobinding(binding)
    np.testing.assert_array_equal(x.numpy(), np.full(4, 3, np.float32))
    del binding


def test_a_result_is_the_next_input(tmp_path):
    """A state that goes round: each run's result is bound as the input of the next."""
    data = model([node("MatMul", ["x", "w"], ["p"]), node("Tanh", ["p"], ["y"])], [value("x", [8, 32])], [value("y", [8, 32])],
                 {"w": random(32, 32, seed=1) / 5})
    session, state, host = Session(data, tmp_path), on_device(random(8, 32)), random(8, 32)
    for _ in range(5):
        binding = bound(session, {"x": state}, ["y"])
        session.session.run_with_iobinding(binding)
        state, host = binding.get_outputs()[0], expected(data, x=host)[0]
    np.testing.assert_allclose(state.numpy(), host, atol=1e-5)
    del binding, state
    report = session.report()
    assert not OWN or [total(report, each) for each in ("sent", "fetched")] == [0, 0]


@own_memory
def test_results_of_groups_stay(tmp_path):
    """Of the second group's two inputs one comes from the first group, one from ONNX Runtime."""
    session = Session(mixed(), tmp_path)
    for seed in range(3):
        x = random(4, 32, seed=seed)
        np.testing.assert_allclose(session.run(x=x)[0], expected(mixed(), x=x)[0], atol=1e-5)
    first, second = session.report()["groups"]
    assert [first["fetched"], second["fetched"], first["sent"]] == [0, 0, 0] and second["sent"] <= 3


def test_values_that_decide_a_shape(tmp_path):
    data = model([node("Reshape", ["x", "sizes"], ["r"]), node("Exp", ["r"], ["y"])],
                 [value("x", [8, 12]), value("sizes", [2], np.int64)], [value("y", ["A", "B"])])
    session, x = Session(data, tmp_path), on_device(random(8, 12))
    for sizes in ([4, 24], [-1, 6], [4, 24]):
        binding = bound(session, {"x": x, "sizes": on_device(np.array(sizes))}, ["y"])
        session.session.run_with_iobinding(binding)
        np.testing.assert_allclose(binding.get_outputs()[0].numpy(), np.exp(random(8, 12)).reshape(sizes), rtol=1e-5)
    del binding
    report = session.report()
    assert [total(report, each) for each in ("compiled", "hits")] == [2, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.int64, np.uint8, np.bool_])
def test_element_types(tmp_path, dtype):
    """Flags too, whose bytes are checked; an array of bytes may be written again."""
    data = model([node("Where", ["c", "x", "y"], ["z"]), node("Not", ["c"], ["n"])],
                 [value("c", [128], np.bool_), value("x", [128], dtype), value("y", [128], dtype)],
                 [value("z", [128], dtype), value("n", [128], np.bool_)])
    c, x, y = np.arange(128) % 3 == 0, (np.arange(128) % 5).astype(dtype), (np.arange(128) % 2).astype(dtype)
    session = Session(data, tmp_path, small_groups=True)
    there = {"c": on_device(c), "x": on_device(x), "y": on_device(y)}
    binding = bound(session, there, ["z", "n"])
    for _ in range(2):
        session.session.run_with_iobinding(binding)
        z, n = (each.numpy() for each in binding.get_outputs())
        np.testing.assert_array_equal(z, np.where(c, x, y))
        np.testing.assert_array_equal(n, ~c)
        c, x = ~c, x[::-1].copy()
        there["c"].update_inplace(c)
        there["x"].update_inplace(x)


def test_scalars_and_empty_arrays(tmp_path):
    data = model([node("Mul", ["x", "k"], ["a"]), node("ReduceSum", ["a"], ["sum"], keepdims=0)],
                 [value("x", ["N", 80]), value("k", [])], [value("a", ["N", 80]), value("sum", [])])
    session = Session(data, tmp_path)
    for n in (0, 1, 3):
        feed = {"x": random(n, 80), "k": np.array(2, np.float32)}
        binding = bound(session, {name: on_device(array) for name, array in feed.items()}, ["a", "sum"])
        session.session.run_with_iobinding(binding)
        for got, wanted in zip(binding.get_outputs(), expected(data, **feed), strict=True):
            np.testing.assert_allclose(got.numpy(), wanted, atol=1e-4)


def test_a_part_of_an_array(tmp_path):
    """Rows of an array by their address, and a result written into the middle of another: the rest stays."""
    session, rows, x = Session(mlp(), tmp_path), random(8, 64), on_device(random(8, 64))
    binding = session.session.io_binding()
    binding.bind_input("x", MEMORY["device_type"], MEMORY["device_id"], np.float32, [4, 64], x.data_ptr() + 2 * ROW)
    into = on_device(np.full((10, 10), 7, np.float32))
    binding.bind_output("y", MEMORY["device_type"], MEMORY["device_id"], np.float32, [4, 10], into.data_ptr() + 3 * 40)
    for _ in range(2):
        session.session.run_with_iobinding(binding)
        got = into.numpy()
        np.testing.assert_allclose(got[3:7], expected(mlp(), x=rows[2:6])[0], atol=1e-6)
        assert (got[:3] == 7).all() and (got[7:] == 7).all()
    np.testing.assert_array_equal(x.numpy(), rows)


@own_memory
def test_sessions_on_other_devices_share_arrays(tmp_path):
    """A registration has one memory, also for a session whose option names another device: arrays go there when they are used."""
    x, name = on_device(random(4, 64)), tenon_ort._name_of(DEVICE)
    for i, device in enumerate((DEVICE, "interp", DEVICE)):
        (tmp_path / str(i)).mkdir()
        session = Session(mlp(), tmp_path / str(i), device, name=name)
        binding = bound(session, {"x": x}, ["y"])
        for _ in range(2):
            session.session.run_with_iobinding(binding)
        np.testing.assert_allclose(binding.get_outputs()[0].numpy(), expected(mlp(), x=random(4, 64))[0], atol=1e-6)


@own_memory
def test_arrays_outlive_sessions(tmp_path):
    """The device stays open for them; a session with other options, which would open it once more, is refused until they end."""
    session = Session(mlp(), tmp_path)
    binding = bound(session, {"x": on_device(random(4, 64))}, ["y"])
    session.session.run_with_iobinding(binding)
    y = binding.get_outputs()[0]
    kept = empty(4, 10)
    kept.update_inplace(y)
    del binding, y
    session.report()
    np.testing.assert_allclose(kept.numpy(), expected(mlp(), x=random(4, 64))[0], atol=1e-6)
    with pytest.raises(Exception, match="is open already"):
        Session(mlp(), tmp_path, layers="validate")
    del kept
    Session(mlp(), tmp_path, layers="validate").run(x=random(4, 64))


def test_threads(tmp_path):
    session = Session(mlp(), tmp_path)
    wanted = {n: expected(mlp(), x=random(n, 64))[0] for n in range(1, 5)}

    def work(i: int) -> None:
        for k in range(10):
            n = (i + k) % 4 + 1
            binding = bound(session, {"x": on_device(random(n, 64))}, ["y"])
            session.session.run_with_iobinding(binding)
            np.testing.assert_allclose(binding.get_outputs()[0].numpy(), wanted[n], atol=1e-6)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert total(session.report(), "runs") == 60


@own_memory
def test_memory_is_that_of_the_device():
    """Two devices have two memories; that of a device which sees the host's memory is the host's."""
    other = tenon_ort.memory("gpu-sim" if DEVICE == "template" else "template")
    assert other["device_type"] == MEMORY["device_type"] and other["device_id"] != MEMORY["device_id"]
    assert tenon_ort.memory("interp") == tenon_ort.memory("cpu") == {"device_type": "cpu", "device_id": 0}
    # A device that cannot be opened is an error of its sessions.
    assert tenon_ort.memory("nothing")["device_type"] == "cpu"
