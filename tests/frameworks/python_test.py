#!/usr/bin/env python3
"""The Python package `tenon`: its wheel is built, installed into an environment of its own, and its tests run on Tenon's devices;
the conformance suite of pypjrt runs on the plug-in.

    python_test.py BUILD [--full]     --full: on gpu-sim, the template as a plug-in and reference too

Prints PASS, FAIL and SKIP lines."""

import os
import pathlib
import re
import subprocess
import sys

from on_devices import ROOT, has_environment, pytest

PACKAGE = ROOT / "frameworks/python"
MOST_BYTES = 40_000_000  # Of the wheel.


def test_wheel(build: pathlib.Path) -> None:
    folder = build / "python_wheel"
    done = subprocess.run([PACKAGE / "make-wheel", folder], env=dict(os.environ, BUILD_DIR=str(build)), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wheels = list(folder.glob("tenon-*.whl"))
    size = wheels[0].stat().st_size if wheels else 0
    good = done.returncode == 0 and len(wheels) == 1 and size <= MOST_BYTES
    print(f"{'PASS' if good else 'FAIL'} the wheel: {size} bytes{'' if good else ': ' + done.stdout[-500:]}")


def test_pypjrt(build: pathlib.Path) -> None:
    """The conformance suite of pypjrt, which calls the plug-in's table by ctypes and its own copy of the layout."""
    done = subprocess.run([PACKAGE / ".venv/bin/pypjrt-conform", build / "frameworks/pjrt/libtenon_pjrt.so"], text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "TENON_DEVICE": "cpu"})
    counts = re.search(r"(\d+) pass . (\d+) unsupported . (\d+) skip . (\d+) FAIL", done.stdout)
    good = done.returncode == 0 and counts and int(counts[1]) >= 48 and int(counts[4]) == 0
    print(f"{'PASS' if good else 'FAIL'} pypjrt's conformance: {counts[0] if counts else done.stdout[-500:]}")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    status = has_environment(PACKAGE, build)
    if status is not None:
        return status
    test_wheel(build)
    test_pypjrt(build)
    pytest(PACKAGE, "cpu", "cpu")
    pytest(PACKAGE, "template", "template")
    if "--full" in sys.argv:
        pytest(PACKAGE, "gpu-sim", "gpu-sim")
        pytest(PACKAGE, f"{build}/backends/libtenon_template.so:0", "template as a plug-in")
        pytest(PACKAGE, "reference", "reference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
