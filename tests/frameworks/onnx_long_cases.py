#!/usr/bin/env python3
"""Models of one op whose cost depends on how it is lowered, at sizes that the node tests of the package onnx have not: Resize of long
dimensions, which reads the elements that have weights; regions of images; grams of a large pool; diagonals. In the environment with onnx:

    onnx_long_cases.py FOLDER STEP     writes a folder for every STEP-th, as onnx_test.py does

The results are those of onnx.reference."""

import itertools
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RANDOM = np.random.default_rng(0)


def floats(*dims: int) -> np.ndarray:
    return RANDOM.standard_normal(dims).astype(np.float32)


class Writer:
    def __init__(self, folder: pathlib.Path, step: int) -> None:
        self.folder, self.step, self.count = folder, step, 0

    def write(self, name: str, op: str, inputs: list, known: list | None = None, rtol: float = 1e-4, **attributes) -> None:
        """`known` inputs are initializers behind the others; None is an input that is not there."""
        self.count += 1
        if self.count % self.step != 0:
            return
        arrays = [*inputs, *(known or [])]
        names = ["" if array is None else f"i{i}" for i, array in enumerate(arrays)]
        kinds = [None if array is None else helper.np_dtype_to_tensor_dtype(array.dtype) for array in arrays]
        infos = [helper.make_tensor_value_info(names[i], kinds[i], array.shape) for i, array in enumerate(inputs)]
        constants = [numpy_helper.from_array(array, names[i]) for i, array in enumerate(arrays) if i >= len(inputs) and array is not None]
        graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "graph", infos, [helper.make_empty_tensor_value_info("y")], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        [result] = ReferenceEvaluator(model).run(None, {f"i{i}": array for i, array in enumerate(inputs)})
        folder = self.folder / f"long_{self.count:03}_{name}"
        folder.mkdir()
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        for kind, values in (("input", inputs), ("output", [np.asarray(result)])):
            for number, array in enumerate(values):
                (folder / f"{kind}_{number}.pb").write_bytes(numpy_helper.from_array(array, f"{kind}_{number}").SerializeToString())
        (folder / "tolerance").write_text(f"{rtol} 1e-4")


def resizes(out: Writer) -> None:
    places = ("half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric", "pytorch_half_pixel")
    scales = (2.0, 1.37, 0.3, 1 / 3, 0.061)
    for mode, place, scale, outside, smooth in itertools.product(("linear", "cubic"), places, scales, (0, 1), (0, 1)):
        if smooth and scale > 1 or place == "half_pixel_symmetric" and (outside or smooth):
            continue
        out.write(f"resize_{mode}_{place}_{scale:.2f}_{outside}{smooth}", "Resize", [floats(2, 83)],
                  [None, np.array([1, scale], np.float32)], mode=mode, coordinate_transformation_mode=place, exclude_outside=outside,
                  antialias=smooth, cubic_coeff_a=-0.5 if outside else -0.75)
    # Of the dimensions some are long enough to be read element by element, others are not.
    for mode, smooth in itertools.product(("linear", "cubic"), (0, 1)):
        for name, dims, sizes in (("first", (70, 3), (31, 7)), ("middle", (2, 90, 5), (2, 40, 9)), ("both", (45, 52), (30, 101))):
            out.write(f"resize_{name}_{mode}_{smooth}", "Resize", [floats(*dims)], [None, None, np.array(sizes, np.int64)], mode=mode, antialias=smooth)
    # More elements a result than there are terms in a sum.
    out.write("resize_wide", "Resize", [floats(2, 1200)], [None, None, np.array([2, 40], np.int64)], mode="linear", antialias=1)
    for roi in ([0, 0.25, 1, 0.75], [0, -0.4, 1, 1.3], [0, 0.9, 1, 0.1]):
        out.write("resize_crop", "Resize", [floats(2, 83)], [np.array(roi, np.float32), None, np.array([2, 50], np.int64)], mode="linear",
                  coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.5)
    for kind in (np.float64, np.float16, np.uint8):
        x = (RANDOM.random((2, 83)) * 200).astype(kind)
        out.write(f"resize_{np.dtype(kind).name}", "Resize", [x], [None, np.array([1, 2], np.float32)], mode="linear",
                  rtol=2e-3 if kind == np.float16 else 1e-4)


def regions(out: Writer) -> None:
    corners = np.sort(RANDOM.random((9, 2, 2)) * (40, 50) - 4, axis=1).reshape(9, 4).astype(np.float32)
    batches = np.array([2, 0, 1, 1, 0, 2, 2, 0, 1], np.int64)
    for mode, place, ratio in itertools.product(("avg", "max"), ("half_pixel", "output_half_pixel"), (1, 3)):
        out.write(f"regions_{mode}_{place}_{ratio}", "RoiAlign", [floats(3, 5, 37, 23), corners, batches], mode=mode, sampling_ratio=ratio,
                  coordinate_transformation_mode=place, output_height=4, output_width=3, spatial_scale=0.6)


def grams(out: Writer) -> None:
    ones = sorted(int(each) for each in RANDOM.choice(np.arange(-300, 300), 200, replace=False))
    RANDOM.shuffle(ones)
    twos = [(a, b) for a in range(9) for b in range(-4, 5)]
    threes = [(3, 1, 4), (1, 5, 9), (2, 6, 5), (3, 1, 5), (-1, -1, -1)]
    for order in (twos, threes):
        RANDOM.shuffle(order)
    pool = ones + [int(each) for order in (twos, threes) for gram in order for each in gram]
    grams_of_all = len(ones) + len(twos) + len(threes)
    begins = [0, len(ones), len(ones) + 2 * len(twos)]
    mixed = [int(each) for each in RANDOM.permutation(grams_of_all + 10)[:grams_of_all]]
    weights = [float(each) for each in RANDOM.random(grams_of_all)]
    lengths, sizes = ((1, 1, 0), (1, 3, 0), (2, 3, 4), (3, 3, 1)), (((3, 700), 10), ((97,), 10), ((2, 500), 400), ((2, 2), 4))
    for mode, kind, (low, high, skips), (dims, most) in itertools.product(("TF", "IDF", "TFIDF"), (np.int64, np.int32), lengths, sizes):
        x = RANDOM.integers(-4, most, dims).astype(kind)
        x.flat[:2] = 3, 1
        # onnx.reference takes the weights by columns, not by grams.
        columns = mixed if mode == "TF" else list(range(grams_of_all))
        out.write(f"grams_{mode}_{low}{high}{skips}", "TfIdfVectorizer", [x], mode=mode, min_gram_length=low, max_gram_length=high, weights=weights,
                  max_skip_count=skips, ngram_counts=begins, ngram_indexes=columns, pool_int64s=pool)


def diagonals(out: Writer) -> None:
    for equation, dims in (("ii->i", (40, 40)), ("ii", (33, 33)), ("iji->ij", (9, 5, 9)), ("iij->ji", (8, 8, 3)), ("bii->b", (4, 17, 17)),
                           ("iii->i", (7, 7, 7)), ("ijij->ij", (4, 6, 4, 6)), ("jiij->ij", (4, 6, 6, 4)), ("...ii->...i", (2, 3, 5, 5))):
        out.write("diagonal", "Einsum", [floats(*dims)], equation=equation)
    out.write("diagonal_product", "Einsum", [floats(8, 5, 8), floats(8, 6)], equation="iji,ik->jk")
    out.write("diagonal_integers", "Einsum", [RANDOM.integers(-9, 9, (6, 6))], equation="ii->i")


CASES = (resizes, regions, grams, diagonals)


def main() -> None:
    warnings.filterwarnings("ignore")
    out = Writer(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
    for cases in CASES:
        cases(out)


if __name__ == "__main__":
    main()
