"""Shared by the four programs: the images, the first weights, the command line, progress, and the comparison.

The classifier is the same everywhere: two convolutions of 3 x 3 with 16 and 32 channels, each followed by tanh and an average over
2 x 2, and a layer of 10 outputs, trained by gradient descent. All of it is smooth, so that rounding stays rounding: with maxima, two
elements that are equal but for it send their gradients different ways. Weights are numpy arrays by name: filters [height, width, in, out], the matrix
[height * width * channels, 10].
"""

import argparse
import os
import pathlib
import sys

import numpy as np

SAMPLES = pathlib.Path(__file__).resolve().parents[1]
RATE = 0.5
NAMES = ("filter1", "bias1", "filter2", "bias2", "matrix", "bias3")


def training_data():
    """20 batches of 128 images [128, 8, 8, 1], and their labels."""
    images = np.load(SAMPLES / "digits_train_step/batches_x.npy").reshape(20, 128, 8, 8, 1)
    return images, np.load(SAMPLES / "digits_train_step/batches_y.npy")


def test_data():
    """360 images [360, 8, 8, 1] that the training never sees, and their labels."""
    return np.load(SAMPLES / "digits_inference/in_4.npy").reshape(360, 8, 8, 1), np.load(SAMPLES / "digits_inference/labels.npy")


def first_weights():
    random = np.random.RandomState(0)

    def draw(*shape):
        return (random.randn(*shape) * np.sqrt(1 / np.prod(shape[:-1]))).astype(np.float32)

    return dict(zip(NAMES, (draw(3, 3, 1, 16), np.zeros(16, np.float32), draw(3, 3, 16, 32), np.zeros(32, np.float32),
                            draw(128, 10), np.zeros(10, np.float32))))


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default=os.environ.get("TENON_DEVICE", "cpu"), help="of Tenon: one of `tenon devices`, or a plug-in's path")
    parser.add_argument("--steps", type=int, default=400, help="batches of 128 images; default: 400")
    parser.add_argument("--weights", metavar="FILE", help="write the trained weights to this file (.npz); with onnxruntime: read them")
    parser.add_argument("--alone", action="store_true", help="on the device alone, without the framework's own beside it")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the losses, beside the framework's own")
    return parser.parse_args()


def batches(count, what):
    """The batches in order, again and again, with a progress bar on a terminal."""
    images, labels = training_data()
    shown = sys.stderr.isatty()
    for step in range(count):
        yield images[step % len(images)], labels[step % len(labels)]
        if shown:
            done = 30 * (step + 1) // count
            print(f"\r{what:<24} [{'#' * done}{'.' * (30 - done)}] {step + 1}/{count}", end="", file=sys.stderr, flush=True)
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr)


def right(scores):
    """The percentage of the test images whose greatest score is their label's."""
    return 100 * float(np.mean(np.argmax(np.asarray(scores), axis=1) == test_data()[1]))


def report(name, run):
    """Prints the accuracy and the times of a run, which returns (losses, seconds a step without the first, accuracy, weights)."""
    losses, step, accuracy, weights = run
    print(f"{name:<28} {accuracy:5.1f} % of the test images right, loss {losses[0]:.3f} -> {losses[-1]:.3f}, {1e3 * step:.2f} ms a step", flush=True)
    return np.asarray(losses), accuracy, weights


def median_step(times):
    """The first step compiles."""
    return float(np.median(times[1:])) if len(times) > 1 else float("nan")


def train(description, framework, on_tenon, on_framework):
    """Runs both and compares. Each function takes (weights, steps, device) and returns what `report` takes."""
    given = options(description)
    losses, _, weights = report(f"{framework} on Tenon's {given.device}", on_tenon(first_weights(), given.steps, given.device))
    if given.weights:
        np.savez(given.weights, **weights)
    if given.alone:
        return 0
    expected, _, _ = report(f"{framework} itself", on_framework(first_weights(), given.steps, None))
    worst = float(np.max(np.abs(losses - expected) / np.abs(expected)))
    good = worst <= given.tolerance
    print(f"{'the losses agree' if good else 'THE LOSSES DIFFER'}: {len(losses)} steps, largest relative difference {worst:.1e} "
          f"(allowed {given.tolerance:.0e})")
    return 0 if good else 1
