"""Models for the tests, and sessions of them: with the provider, and with ONNX Runtime's CPU provider alone."""

import json
import os
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import tenon_ort

DEVICE = os.environ.get("TENON_DEVICE", "cpu")
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16, np.dtype(np.float64): TensorProto.DOUBLE,
         np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32, np.dtype(np.uint8): TensorProto.UINT8,
         np.dtype(np.int8): TensorProto.INT8, np.dtype(np.bool_): TensorProto.BOOL}


def value(name: str, dims, dtype=np.float32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TYPES[np.dtype(dtype)], dims)


def model(nodes, inputs, outputs, constants=None, opset: int = 17, microsoft: bool = False) -> bytes:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()])
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("com.microsoft", 1)] if microsoft else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def random(*dims, seed: int = 0, dtype=np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(dtype)


def mlp(batch="N", sizes=(64, 128, 10)) -> bytes:
    node = helper.make_node
    constants = {"w1": random(sizes[0], sizes[1], seed=1) / 8, "b1": random(sizes[1], seed=2), "w2": random(sizes[1], sizes[2], seed=3) / 8}
    return model([node("MatMul", ["x", "w1"], ["a"], name="first"), node("Add", ["a", "b1"], ["b"]), node("Relu", ["b"], ["c"]),
                  node("MatMul", ["c", "w2"], ["d"], name="second"), node("Softmax", ["d"], ["y"], axis=-1)],
                 [value("x", [batch, sizes[0]])], [value("y", [batch, sizes[2]])], constants)


def mixed() -> bytes:
    """Two products with an op between that Tenon lacks, and one beside it."""
    node = helper.make_node
    constants = {"w": random(32, 32, seed=1) / 6, "v": random(32, 32, seed=2) / 6}
    return model([node("MatMul", ["x", "w"], ["a"]), node("ScaledSiLU", ["a"], ["b"], name="silu", domain="com.microsoft"),
                  node("Tanh", ["a"], ["side"]), node("MatMul", ["b", "v"], ["c"]), node("Add", ["c", "side"], ["y"])],
                 [value("x", [4, 32])], [value("y", [4, 32])], constants, microsoft=True)


def on_cpu(data: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


class Session:
    """A session with the provider; on template a step left to the host is an error. `report()` ends it and returns what it did."""

    def __init__(self, data: bytes | str, folder: pathlib.Path, device: str = DEVICE, **settings) -> None:
        self.file = folder / "report.json"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        settings.setdefault("strict_device", device == "template")
        self.session = tenon_ort.session(data, device, options, report_file=self.file, **settings)

    def run(self, **feed) -> list[np.ndarray]:
        return self.session.run(None, feed)

    def report(self) -> dict:
        self.session = None
        return json.loads(self.file.read_text())


def check(data: bytes | str, folder: pathlib.Path, feeds: list[dict], tolerance: float = 1e-5, **settings) -> dict:
    """Runs a model by both providers; the results are equal. Returns the report."""
    session, reference = Session(data, folder, **settings), on_cpu(data)
    for feed in feeds:
        for got, expected in zip(session.run(**feed), reference.run(None, feed), strict=True):
            assert got.dtype == expected.dtype and got.shape == expected.shape
            np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(expected, np.float64), rtol=tolerance, atol=tolerance)
    return session.report()


def total(report: dict, count: str) -> int:
    return sum(group[count] for group in report["groups"])
