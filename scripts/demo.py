#!/usr/bin/env python3
"""Shows Tenon at work on scikit-learn's digits: inference of a trained net, training one, and JAX training on the CPU and on a new device."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import npy

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
SHADES = " .:-=+*#%@"


def run(tenon: str, program: pathlib.Path, arguments: list[pathlib.Path], out: pathlib.Path) -> None:
    """`tenon run` on files."""
    command = [tenon, "run", str(program), "--out", str(out)]
    for number, path in enumerate(arguments):
        command += ["--arg", f"{number}=@{path}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def draw(images: npy.Array, index: int) -> list[str]:
    """An 8 x 8 image as text."""
    pixels = images.values[index * 64:(index + 1) * 64]
    top = max(pixels) or 1
    shade = [SHADES[min(9, int(9 * p / top + 0.5))] for p in pixels]
    return ["".join(s * 2 for s in shade[row * 8:row * 8 + 8]) for row in range(8)]


def show_inference(tenon: str, work: pathlib.Path) -> None:
    """Classifies the test images; prints some, and the accuracy."""
    sample = SAMPLES / "digits_inference"
    inputs = sorted(sample.glob("in_*.npy"))
    run(tenon, sample / "program.mlir", inputs, work / "inference")
    predicted = npy.load(work / "inference/out_1.npy").values
    labels = npy.load(sample / "labels.npy").values
    images = npy.load(inputs[-1])
    rows = [draw(images, i) for i in range(4)]
    for line in zip(*rows):
        print("   " + "  ".join(line))
    print("   " + "  ".join(f"predicted {predicted[i]}".ljust(16) for i in range(4)))
    right = sum(p == l for p, l in zip(predicted, labels))
    print(f"\n{right} of {len(labels)} test images right: {100 * right / len(labels):.1f} %\n")


def show_training(tenon: str, work: pathlib.Path) -> None:
    """Runs the training step on batch after batch and prints the loss."""
    sample = SAMPLES / "digits_train_step"
    parameters = [sample / f"in_{i}.npy" for i in range(4)]
    batches = npy.load(sample / "batches_y.npy").shape[0]
    for step in range(batches):
        x, y = work / "x.npy", work / "y.npy"
        npy.save_rows(x, sample / "batches_x.npy", step)
        npy.save_rows(y, sample / "batches_y.npy", step)
        out = work / f"step{step % 2}"
        run(tenon, sample / "program.mlir", [*parameters, x, y], out)
        parameters = [out / f"out_{i}.npy" for i in range(4)]
        loss = npy.load(out / "out_4.npy").values[0]
        print(f"   step {step + 1:2}  loss {loss:.4f}  {'#' * round(20 * loss)}")


def jax_python(build: pathlib.Path) -> pathlib.Path | None:
    """An environment with an unmodified JAX; None if pip cannot get it."""
    folder = ROOT / "frameworks/jax"
    made = subprocess.run([folder / "make-venv"], env={**os.environ, "BUILD_DIR": str(build)}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode == 77:  # No Python, or no index to install from.
        print(f"   left out, there is no JAX here: {made.stdout.strip().splitlines()[-1]}")
        return None
    if made.returncode != 0:
        raise SystemExit(made.stdout)
    return folder / ".venv/bin/python"


def show_jax(python: pathlib.Path, device: str) -> None:
    """Trains with JAX on a device."""
    subprocess.run([python, ROOT / "frameworks/jax/examples/digits.py"], check=True,
                   env={**os.environ, "JAX_PLATFORMS": "tenon", "TENON_DEVICE": device})


def new_device(build: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
    """The plug-in of a backend that `tenon new-backend` writes, built against the installation in `work`."""
    listing = subprocess.run(["meson", "introspect", "--buildoptions", str(build)], check=True, capture_output=True, text=True)
    options = {option["name"]: option["value"] for option in json.loads(listing.stdout)}
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--tags", "runtime,devel", "--destdir", work / "installed"], check=True)
    prefix = work / "installed" / options["prefix"].lstrip("/")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / options["libdir"] / "pkgconfig")}
    start = time.monotonic()
    for command in ([prefix / options["bindir"] / "tenon", "new-backend", "mychip", "--lang", "c"],
                    ["meson", "setup", "mychip/build", "mychip"], ["ninja", "-C", "mychip/build"]):
        done = subprocess.run(command, cwd=work, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise SystemExit(done.stdout)
    print(f"   written and built in {time.monotonic() - start:.1f} s")
    return work / "mychip/build/libmychip.so"


def main() -> int:
    tenon = sys.argv[1]
    # Flushed, so that the output of the programs that it runs is in order, also in a file.
    sys.stdout.reconfigure(line_buffering=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        print("A classifier that JAX trained, run from its StableHLO on Tenon's reference device:\n")
        show_inference(tenon, work)
        print("A new one, trained by running JAX's training step on Tenon, batch after batch:\n")
        show_training(tenon, work)
        build = pathlib.Path(tenon).resolve().parent
        print("\nAnd one that JAX trains on the CPU, by LLVM:\n")
        python = jax_python(build)
        if python is not None:
            show_jax(python, "cpu")
            print("\nThe same on a simulated chip, by a backend that `tenon new-backend mychip --lang c` writes now:\n")
            show_jax(python, str(new_device(build, work)))
    print(f"\n{time.monotonic() - start:.1f} s. 'build/tenon run --help' tells how to run your own program.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
