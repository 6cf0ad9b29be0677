"""Whole networks: a digits model that ONNX Runtime quantises, and those that come with the package onnx."""

import pathlib

import numpy as np
import onnx
import pytest
from models import DEVICE, Session, check, model, on_cpu, random, total, value
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

node = helper.make_node
LIGHT = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
# Seven segments of the figures 0 … 9, as on a calculator: top, three of the left and right from above, middle, bottom.
SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
PLACES = {"a": (slice(1, 2), slice(3, 9)), "g": (slice(6, 7), slice(3, 9)), "d": (slice(11, 12), slice(3, 9)), "f": (slice(1, 7), slice(2, 3)),
          "b": (slice(1, 7), slice(9, 10)), "e": (slice(6, 12), slice(2, 3)), "c": (slice(6, 12), slice(9, 10))}


def digits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of 13 x 12 with noise, moved by up to a point, and what they show."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 10, count)
    images = generator.normal(0, 0.15, (count, 1, 13, 12)).astype(np.float32)
    for image, label in zip(images[:, 0], labels):
        figure = np.zeros((13, 12), np.float32)
        for segment in SEGMENTS[label]:
            figure[PLACES[segment]] = 1
        image += np.roll(figure, generator.integers(-1, 2, 2), (0, 1))
    return images, labels


def digits_network() -> bytes:
    """Two convolutions with fixed weights; the last layer is fitted to their results by least squares."""
    constants = {"w1": random(12, 1, 3, 3, seed=1) / 3, "b1": random(12, seed=2) / 4, "w2": random(24, 12, 3, 3, seed=3) / 10, "b2": random(24, seed=4) / 4}
    nodes = [node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]), node("Relu", ["c1"], ["r1"]),
             node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]), node("Conv", ["p1", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1]),
             node("Relu", ["c2"], ["r2"]), node("Flatten", ["r2"], ["features"])]
    image = value("x", ["N", 1, 13, 12])
    images, labels = digits(1000, seed=5)
    features = on_cpu(model(nodes, [image], [value("features", ["N", 864])], constants)).run(None, {"x": images})[0]
    targets = np.eye(10)[labels] * 8 - 4
    weights = np.linalg.solve(features.T @ features + 30 * np.eye(864), features.T @ targets).astype(np.float32)
    return model([*nodes, node("Gemm", ["features", "w3", "b3"], ["y"])], [image], [value("y", ["N", 10])],
                 {**constants, "w3": weights, "b3": np.zeros(10, np.float32)})


class Images(CalibrationDataReader):
    def __init__(self) -> None:
        self.batches = iter([{"x": digits(50, seed=seed)[0]} for seed in (10, 11)])

    def get_next(self) -> dict | None:
        return next(self.batches, None)


@pytest.fixture(scope="module")
def digits_file(tmp_path_factory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("digits") / "digits.onnx"
    file.write_bytes(digits_network())
    return file


def test_digits(tmp_path, digits_file):
    images, labels = digits(200, seed=20)
    report = check(str(digits_file), tmp_path, [{"x": images}, {"x": images[:1]}], tolerance=1e-3)
    assert report["left"] == [] and total(report, "runs") == 2
    assert np.mean(on_cpu(str(digits_file)).run(None, {"x": images})[0].argmax(1) == labels) > 0.95


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", ["QDQ", "QOperator"])
def test_quantised_digits(tmp_path, digits_file, kind, per_channel):
    """The results differ from ONNX Runtime's by a step of the last quantisation at most, in few places; the figures are the same. Weights have
    seven bits, since ONNX Runtime's sums of 16 bits saturate on x86 without VNNI."""
    file = tmp_path / "quantised.onnx"
    quantize_static(digits_file, file, Images(), quant_format=QuantFormat[kind], per_channel=per_channel, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, reduce_range=True)
    images, labels = digits(200, seed=20)
    session = Session(str(file), tmp_path)
    got, expected = session.run(x=images)[0], on_cpu(str(file)).run(None, {"x": images})[0]
    steps = np.unique(np.abs(np.diff(np.unique(expected))))
    assert np.abs(got - expected).max() <= 2 * np.median(steps)
    assert np.mean(got == expected) > 0.9
    assert np.mean(got.argmax(1) == labels) > 0.95 and np.mean(got.argmax(1) == expected.argmax(1)) > 0.98
    report = session.report()
    assert report["left"] == [] and total(report, "runs") == len(report["groups"]) == 1


@pytest.mark.skipif(DEVICE != "cpu", reason="it takes minutes elsewhere")
@pytest.mark.parametrize("file", sorted(LIGHT.glob("*.onnx")), ids=lambda file: file.stem)
def test_network_of_onnx(tmp_path, file):
    """The whole network is one group."""
    read = onnx.load(file)
    names = {each.name for each in read.graph.initializer}
    [image] = [each for each in read.graph.input if each.name not in names]
    dims = [each.dim_value for each in image.type.tensor_type.shape.dim]
    values = (np.arange(np.prod(dims)) / np.prod(dims)).astype(np.float32).reshape(dims)
    session = Session(str(file), tmp_path)
    [got] = session.run(**{image.name: values})
    expected = numpy_helper.to_array(onnx.load_tensor(file.with_name(f"{file.stem}_output_0.pb")))
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(got, on_cpu(str(file)).run(None, {image.name: values})[0], rtol=1e-3, atol=1e-5)
    report = session.report()
    assert report["left"] == [] and len(report["groups"]) == 1 and report["claimed"] > 20
