#!/usr/bin/env python3
"""The Python package `tenon-torch`: its wheel is built and installed into an environment with PyTorch, and its tests run on Tenon's
devices.

    torch_test.py BUILD [--full]     --full: every op of PyTorch's database, compiled and eagerly; the models on template and gpu-sim too;
                                     networks of torchvision and transformers, in an environment with both

Prints PASS, FAIL and SKIP lines. Without PyTorch for this Python on the index, all is skipped."""

import os
import pathlib
import subprocess
import sys

from on_devices import ROOT, has_environment, pytest

PACKAGE = ROOT / "frameworks/torch"
TYPES = ("float32", "bfloat16", "int64", "bool", "complex64")


def test_every_op(*how: str, samples: int) -> None:
    for dtype in TYPES:
        done = subprocess.run([PACKAGE / ".venv/bin/python", PACKAGE / "opinfo", *how, "--dtype", dtype, "--samples", str(samples)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "TENON_DEVICE": "cpu"})
        lines = done.stdout.strip().splitlines() or ["nothing was printed"]
        print(f"{'PASS' if done.returncode == 0 else 'FAIL'} opinfo {lines[-1]}")
        for line in lines[:-1] if done.returncode else []:
            print(f"  {line}")


def test_published_models(build: pathlib.Path) -> None:
    venv = ".venv-models"
    if has_environment(PACKAGE, build, venv=venv, REQUIREMENTS=str(PACKAGE / "requirements-models.txt")) is None:
        pytest(PACKAGE, "cpu", "published models", "-k", "test_published_models", python=PACKAGE / venv / "bin/python")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    status = has_environment(PACKAGE, build)
    if status is not None:
        return status
    full = "--full" in sys.argv
    pytest(PACKAGE, "cpu", "cpu")
    pytest(PACKAGE, "template", "template", "-k", "gru or memory_orders or dropout or exported_program or views_share" + (" or five_steps" if full else ""))
    if full:
        pytest(PACKAGE, "gpu-sim", "gpu-sim", "-k", "five_steps or memory_orders or dropout or exported_program or views_share")
        test_every_op(samples=5)
        test_every_op("--eager", samples=2)
        test_published_models(build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
