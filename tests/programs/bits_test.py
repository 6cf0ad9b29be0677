#!/usr/bin/env python3
"""Elementwise programs with portable math functions give the bits of interp on the CPU, on the simulated GPU with checked
accesses, and on the template: each op on each type's special values, and random graphs; more of them with --full."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    build = ROOT / next((word for word in sys.argv[1:] if not word.startswith("--")), "build")
    full = "--full" in sys.argv
    status = 0
    # The template runs a C compiler for each program, and emulates f64 with integers.
    few = ["--without=chlo.polygamma,chlo.zeta,chlo.digamma,chlo.lgamma",
           "--types=pred,u8,s32,f8e4m3fn,bf16,f32"]
    for options in ([f"--count={20000 if full else 40}", "--devices=cpu"],
                    [f"--count={2000 if full else 20}", "--devices=gpu-sim"],
                    [f"--count={500 if full else 10}", "--devices=template", *few]):
        done = subprocess.run([str(build / "conformance/bits_test"), *options], cwd=ROOT,
                              env={**os.environ, "TENON_GPU_SIM_CHECKS": "1"}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout)
        status = status or done.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
