#!/usr/bin/env python3
"""Compares random programs with the evaluator: 50 each on interp and the CPU, 20,000 with --full; 24 on the simulated GPU
with checked accesses, 2,000 with --full, and some there in the form that ptxas would get; some on the template."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    build = ROOT / next((word for word in sys.argv[1:] if not word.startswith("--")), "build")
    full = "--full" in sys.argv
    status = 0
    checked, optimized = {"TENON_GPU_SIM_CHECKS": "1"}, {"TENON_GPU_SIM_OPTIMIZED": "1"}
    for settings, *options in ([{}, f"--count={20000 if full else 50}"],
                               [{}, "--device=template", f"--count={1000 if full else 12}"],
                               [{}, "--device=cpu", f"--count={20000 if full else 50}"],
                               [checked, "--device=gpu-sim", f"--count={2000 if full else 24}"],
                               [optimized, "--device=gpu-sim", "--seed=100001", f"--count={2000 if full else 10}"]):
        done = subprocess.run([str(build / "conformance/graphs_test"), *options], cwd=ROOT,
                              env={**os.environ, **settings}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout)
        status = status or done.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
