#!/usr/bin/env python3
"""Measures the errors of the math functions: for every 1,009th f32, for all of them with --full."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    build = ROOT / next((word for word in sys.argv[1:] if not word.startswith("--")), "build")
    options = ["--step=1", "--samples=20000000"] if "--full" in sys.argv else ["--step=1009"]
    done = subprocess.run([str(build / "conformance/math_accuracy"), *options], cwd=ROOT,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
