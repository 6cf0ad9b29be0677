#!/usr/bin/env python3
"""The classifier of digits in ONNX Runtime, with weights that another of the programs here trained: Tenon's execution provider and ONNX Runtime's own.

    frameworks/onnxruntime/.venv/bin/python samples/frameworks/with_onnxruntime.py --weights digits.npz --device cpu
"""

import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import digits

RUNS = 50


def model_of(weights):
    """[n, 8, 8, 1] to [n, 10], for any n."""
    initializers = {"filter1": weights["filter1"].transpose(3, 2, 0, 1), "bias1": weights["bias1"], "bias2": weights["bias2"],
                    "filter2": weights["filter2"].transpose(3, 2, 0, 1), "matrix": weights["matrix"], "bias3": weights["bias3"]}
    nodes = [helper.make_node("Transpose", ["x"], ["0"], perm=[0, 3, 1, 2])]
    for i, number in enumerate("12"):
        nodes += [helper.make_node("Conv", [f"{i}", "filter" + number, "bias" + number], [f"conv{i}"], pads=[1, 1, 1, 1]),
                  helper.make_node("Tanh", [f"conv{i}"], [f"tanh{i}"]),
                  helper.make_node("AveragePool", [f"tanh{i}"], [f"{i + 1}"], kernel_shape=[2, 2], strides=[2, 2])]
    nodes += [helper.make_node("Transpose", ["2"], ["last"], perm=[0, 2, 3, 1]), helper.make_node("Flatten", ["last"], ["flat"]),
              helper.make_node("Gemm", ["flat", "matrix", "bias3"], ["scores"])]
    graph = helper.make_graph(nodes, "digits", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 8, 1])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 10])],
                              [numpy_helper.from_array(np.ascontiguousarray(each), name) for name, each in initializers.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def run(name, session):
    """The scores of the test images."""
    x, times = digits.test_data()[0], []
    for _ in range(RUNS):
        start = time.perf_counter()
        scores, = session.run(None, {"x": x})
        times.append(time.perf_counter() - start)
    print(f"{name:<28} {digits.right(scores):5.1f} % of the test images right, {1e3 * digits.median_step(times):.2f} ms for all {len(x)}", flush=True)
    return scores


def main():
    import tenon_ort

    given = digits.options(__doc__.splitlines()[0])
    if not given.weights:
        sys.exit("with_onnxruntime.py: give --weights FILE, which another of the programs writes: with_jax.py --weights FILE")
    model = model_of(np.load(given.weights))
    nodes = len(onnx.load_from_string(model).graph.node)
    # Strict: a node that Tenon did not take would be an error.
    scores = run(f"all {nodes} nodes on Tenon's {given.device}", tenon_ort.session(model, given.device, strict=True))
    if given.alone:
        return 0
    expected = run("ONNX Runtime itself", onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]))
    worst = float(np.max(np.abs(scores - expected)) / np.max(np.abs(expected)))
    good = worst <= given.tolerance
    print(f"{'the scores agree' if good else 'THE SCORES DIFFER'}: largest difference {worst:.1e} of the largest (allowed {given.tolerance:.0e})")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
