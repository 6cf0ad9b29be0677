"""A model of three layers gives the same on the device and on ONNX Runtime's CPU, for batches of two sizes.

    python onnxruntime/tests/test_session.py           # prints the difference; pytest runs it too (the package is installed)
"""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import ort_template


def model():
    random = np.random.RandomState(0)
    weights = {"w1": (8, 32), "b1": (32,), "w2": (32, 4), "b2": (4,)}
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["1"]), helper.make_node("Relu", ["1"], ["2"]),
             helper.make_node("Gemm", ["2", "w2", "b2"], ["3"]), helper.make_node("Softmax", ["3"], ["y"])]
    graph = helper.make_graph(nodes, "layers", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
                              [numpy_helper.from_array(random.randn(*shape).astype(np.float32), name) for name, shape in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def test_session():
    # Strict: a node that the device did not take would be an error.
    here = ort_template.session(model(), strict=True)
    cpu = onnxruntime.InferenceSession(model(), providers=["CPUExecutionProvider"])
    assert here.get_providers()[0] == ort_template.NAME, here.get_providers()
    for size in (3, 5):
        x = np.random.RandomState(size).randn(size, 8).astype(np.float32)
        found, expected = (each.run(None, {"x": x})[0] for each in (here, cpu))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        print(f"{ort_template.NAME}, {size} rows: largest difference {np.abs(found - expected).max():.1e}")


if __name__ == "__main__":
    test_session()
