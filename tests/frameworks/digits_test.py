#!/usr/bin/env python3
"""One classifier in every framework: samples/frameworks trains it from the same weights in JAX, PyTorch and TensorFlow, on `cpu` and on
the simulated chip; the losses are those of the framework itself, and the trained weights the same in all. ONNX Runtime runs them.

    digits_test.py BUILD [--full]     --full: as many steps as the samples take by themselves

Prints PASS, FAIL and SKIP lines. A framework whose environment was not made by its own test is skipped."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from on_devices import ROOT, kept_code

TRAINED = {"jax": "JAX", "torch": "PyTorch", "tensorflow": "TensorFlow"}
COMPARE = """
import sys, numpy as np
one, other = (np.load(each) for each in sys.argv[1:])
print(float(np.max([np.max(np.abs(one[name] - other[name])) for name in one])))
"""


def python_of(framework: str) -> pathlib.Path | None:
    """The environment of a framework, if there is one that is whole."""
    folder = ROOT / "frameworks" / framework / ".venv"
    return folder / "bin/python" if (folder / "tenon.installed").exists() else None


def sample(framework: str, device: str, *words: str) -> tuple[int, str]:
    settings = dict(os.environ, TENON_DEVICE=device, TF_CPP_MIN_LOG_LEVEL="3")
    for name in ("TENON_LAYERS", "TENON_FAULTS", "TENON_PJRT_LIBRARY", "PYTHONPATH", "JAX_PLATFORMS"):
        settings.pop(name, None)
    settings |= kept_code(device)
    done = subprocess.run([python_of(framework), ROOT / f"samples/frameworks/with_{framework}.py", "--device", device, *words], env=settings,
                          text=True, capture_output=True, timeout=1200)
    return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr[-2000:]


def report(good: bool, label: str, what: str) -> None:
    print(f"{'PASS' if good else 'FAIL'} {label}: {' / '.join(what.strip().splitlines())}", flush=True)


def test_training(device: str, steps: str, folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """The weights that each framework trained."""
    weights = {}
    for framework, name in TRAINED.items():
        if python_of(framework) is None:
            print(f"SKIP {name} on {device}: there is no environment with it (frameworks/{framework}/make-venv)")
            continue
        file = folder / f"{framework}-{device}.npz"
        status, said = sample(framework, device, "--steps", steps, "--weights", str(file))
        good = status == 0 and "the losses agree" in said and f"{name} on Tenon's {device}" in said
        report(good, f"{name} on {device}", said)
        if good:
            weights[framework] = file
    return weights


def test_same_weights(device: str, weights: dict[str, pathlib.Path]) -> None:
    first, *others = weights or [None]
    for framework in others:
        done = subprocess.run([python_of(first), "-c", COMPARE, weights[first], weights[framework]], text=True, capture_output=True)
        good = done.returncode == 0 and float(done.stdout) < 1e-4
        report(good, f"weights of {TRAINED[framework]} and {TRAINED[first]} on {device}", f"differ by {done.stdout or done.stderr}")


def test_inference(device: str, weights: dict[str, pathlib.Path]) -> None:
    if python_of("onnxruntime") is None or not weights:
        print(f"SKIP ONNX Runtime on {device}: there is no environment with it, or no weights (frameworks/onnxruntime/make-venv)")
        return
    status, said = sample("onnxruntime", device, "--weights", str(next(iter(weights.values()))))
    report(status == 0 and "the scores agree" in said and re.search(r"all \d+ nodes on Tenon", said) is not None, f"ONNX Runtime on {device}", said)


def main() -> int:
    full = "--full" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        for device, steps in (("cpu", "400" if full else "20"), ("template", "20" if full else "3")):
            weights = test_training(device, steps, pathlib.Path(folder))
            test_same_weights(device, weights)
            test_inference(device, weights)
    return 0


if __name__ == "__main__":
    sys.exit(main())
