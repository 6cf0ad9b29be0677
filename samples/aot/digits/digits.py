#!/usr/bin/env python3
"""Quantizes the trained classifier of samples/digits_inference to 8-bit integers.

    digits.py [DIR]     DIR is samples/digits_inference; writes digits.mlir and images.h here

Weights are symmetric integers with a scale for each column, pixels the integers 0 to 16 that they are, and the hidden layer's outputs
integers with one scale, that of the largest output of the images. Products of integers are summed in 32 bits.
"""

import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
PIXELS, HIDDEN, CLASSES = 64, 128, 10
TYPES = {"<f4": "f", "<i4": "i", "<i8": "q"}


def read_npy(path):
    """The numbers of an array, row by row."""
    data = path.read_bytes()
    (length,) = struct.unpack("<H", data[8:10])
    kind = data[10:10 + length].decode().split("'descr': '")[1][:3]
    return [number for (number,) in struct.iter_unpack("<" + TYPES[kind], data[10 + length:])]


def quantized(weights, rows, columns):
    """Integers in [-127, 127], and the scale of each column."""
    scales = [max(abs(weights[r * columns + c]) for r in range(rows)) / 127 for c in range(columns)]
    return [round(weights[r * columns + c] / scales[c]) for r in range(rows) for c in range(columns)], scales


def dense(form, numbers):
    return '"0x' + struct.pack(f"<{len(numbers)}{form}", *numbers).hex().upper() + '"'


def largest_output(images, weights, bias):
    """The largest output of the hidden layer on all images, in f32."""
    columns = [weights[c::HIDDEN] for c in range(HIDDEN)]
    rows = [images[i:i + PIXELS] for i in range(0, len(images), PIXELS)]
    return max(sum(x * w for x, w in zip(row, column)) + b for row in rows for column, b in zip(columns, bias))


def program(w1, b1, w2, b2, largest):
    """The text of the network of one image."""
    first, first_scales = quantized(w1, PIXELS, HIDDEN)
    second, second_scales = quantized(w2, HIDDEN, CLASSES)
    step = largest / 127
    constants = [
        ("w1", "b", first, f"{PIXELS}x{HIDDEN}xi8"), ("w2", "b", second, f"{HIDDEN}x{CLASSES}xi8"),
        ("s1", "f", [scale / 16 / step for scale in first_scales], f"1x{HIDDEN}xf32"), ("b1", "f", [b / step for b in b1], f"1x{HIDDEN}xf32"),
        ("s2", "f", [scale * step for scale in second_scales], f"1x{CLASSES}xf32"), ("b2", "f", b2, f"1x{CLASSES}xf32")]
    lines = [f"func.func @main(%image: tensor<1x{PIXELS}xi8>) -> tensor<1x{CLASSES}xf32> {{"]
    lines += [f"  %{name} = stablehlo.constant dense<{dense(form, numbers)}> : tensor<{kind}>" for name, form, numbers, kind in constants]
    return "\n".join(lines) + f"""
  %zero = stablehlo.constant dense<0.0> : tensor<1x{HIDDEN}xf32>
  %half = stablehlo.constant dense<0.5> : tensor<1x{HIDDEN}xf32>
  %most = stablehlo.constant dense<127.0> : tensor<1x{HIDDEN}xf32>
  %0 = stablehlo.dot_general %image, %w1, contracting_dims = [1] x [0] : (tensor<1x{PIXELS}xi8>, tensor<{PIXELS}x{HIDDEN}xi8>) -> tensor<1x{HIDDEN}xi32>
  %1 = stablehlo.convert %0 : (tensor<1x{HIDDEN}xi32>) -> tensor<1x{HIDDEN}xf32>
  %2 = stablehlo.multiply %1, %s1 : tensor<1x{HIDDEN}xf32>
  %3 = stablehlo.add %2, %b1 : tensor<1x{HIDDEN}xf32>
  %4 = stablehlo.clamp %zero, %3, %most : tensor<1x{HIDDEN}xf32>
  %5 = stablehlo.add %4, %half : tensor<1x{HIDDEN}xf32>
  %6 = stablehlo.convert %5 : (tensor<1x{HIDDEN}xf32>) -> tensor<1x{HIDDEN}xi8>
  %7 = stablehlo.dot_general %6, %w2, contracting_dims = [1] x [0] : (tensor<1x{HIDDEN}xi8>, tensor<{HIDDEN}x{CLASSES}xi8>) -> tensor<1x{CLASSES}xi32>
  %8 = stablehlo.convert %7 : (tensor<1x{CLASSES}xi32>) -> tensor<1x{CLASSES}xf32>
  %9 = stablehlo.multiply %8, %s2 : tensor<1x{CLASSES}xf32>
  %10 = stablehlo.add %9, %b2 : tensor<1x{CLASSES}xf32>
  return %10 : tensor<1x{CLASSES}xf32>
}}
"""


def images_header(images, labels):
    pixels = [round(16 * x) for x in images]
    rows = ["  {" + ", ".join(map(str, pixels[i:i + PIXELS])) + "}," for i in range(0, len(pixels), PIXELS)]
    return "\n".join(["#include <stdint.h>", "", f"enum {{ kImages = {len(labels)} }};",
                      f"static const int8_t images[kImages][{PIXELS}] = {{", *rows, "};",
                      "static const uint8_t labels[kImages] = {" + ", ".join(map(str, labels)) + "};", ""])


def main():
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent / "digits_inference"
    w1, b1, w2, b2, images = (read_npy(source / f"in_{i}.npy") for i in range(5))
    (HERE / "digits.mlir").write_text(program(w1, b1, w2, b2, largest_output(images, w1, b1)))
    (HERE / "images.h").write_text(images_header(images, read_npy(source / "labels.npy")))


if __name__ == "__main__":
    main()
