"""The node tests of the package onnx by sessions with the provider, beside ONNX Runtime's CPU provider.

    node_cases.py DEVICE STEP [FIRST]     every STEP-th test from FIRST on

Prints "case NAME" before each, and after it "pass", "as_onnx" (ONNX Runtime differs from ONNX's own result, Tenon does not),
"fail NAME: why" or "skip NAME: why". A test of which nothing ran on the device is skipped."""

import json
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

import tenon_ort

warnings.filterwarnings("ignore")
PLAIN = "?bBhHiIlLqQefdFD"  # Kinds of elements that ONNX Runtime takes from numpy.
SPECTRA = re.compile("dft|stft")  # ONNX computes them in f64; sums that cancel differ by a millionth of the greatest element.


def is_tensor(value: onnx.ValueInfoProto) -> bool:
    return value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.elem_type != onnx.TensorProto.STRING


def differs(got: list, expected: list, rtol: float, atol: float) -> str:
    for one, other in zip(got, expected, strict=True):
        other = np.asarray(other)
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"{one.dtype}{one.shape} for {other.dtype}{other.shape}"
        kind = np.complex128 if one.dtype.kind == "c" else np.float64
        if not np.allclose(one.astype(kind), other.astype(kind), rtol=rtol, atol=atol, equal_nan=True):
            return f"{one.ravel()[:4]} for {other.ravel()[:4]}"
    return ""


def outcome(test, device: str, report: pathlib.Path) -> tuple[str, str]:
    data = test.model.SerializeToString()
    inputs, outputs = ([numpy_helper.to_array(each) if isinstance(each, onnx.TensorProto) else np.asarray(each) for each in values]
                       for values in test.data_sets[0])
    if any(each.dtype.char not in PLAIN for each in [*inputs, *outputs]):
        return "skip", "elements that ONNX Runtime's Python lacks"
    feed = {info.name: array for info, array in zip(test.model.graph.input, inputs)}
    expected = None
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    try:
        expected = onnxruntime.InferenceSession(data, quiet, providers=["CPUExecutionProvider"]).run(None, feed)
    except Exception as error:
        why = str(error)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # Each node as the test has it.
    try:
        session = tenon_ort.session(data, device, options, small_groups=True, report_file=report)
        got = session.run(None, feed)
    except Exception as error:
        return ("skip", "neither runs it") if expected is None else ("fail", " ".join(str(error).split())[:300])
    del session
    if not any(group["runs"] for group in json.loads(report.read_text())["groups"]):
        return "skip", "nothing ran on the device"
    rtol, atol = max(test.rtol, 1e-3), max(test.atol, 1e-5)
    against_cpu = why if expected is None else differs(got, expected, rtol, atol)
    if not against_cpu:
        return "pass", ""
    if SPECTRA.search(test.name):
        atol = 1e-6 * max(float(np.abs(each).max()) for each in outputs) + 1e-6
    against_onnx = differs(got, outputs, rtol, atol)
    return ("fail", f"{against_cpu}; ONNX: {against_onnx}") if against_onnx else ("as_onnx", "")


def main() -> None:
    device, step = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    tests = [each for each in collect_testcases(None) if all(map(is_tensor, [*each.model.graph.input, *each.model.graph.output]))]
    with tempfile.TemporaryDirectory() as folder:
        for test in sorted(tests, key=lambda each: each.name)[first::step]:
            print(f"case {test.name}", flush=True)
            word, why = outcome(test, device, pathlib.Path(folder) / "report.json")
            print(f"{word} {test.name}: {why}", flush=True)


if __name__ == "__main__":
    main()
