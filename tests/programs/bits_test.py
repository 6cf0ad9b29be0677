#!/usr/bin/env python3
"""Elementwise programs with portable math functions give the bits of interp on the CPU, on the simulated GPU with checked
accesses, and on the template: each op on each type's special values, and random graphs. Of the ops on floats narrower than 16
bits each type has a quarter, the next type the next quarter, and each has all of them with --full; there are more graphs then."""

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
    narrow = f"--of-narrow={1 if full else 4}"
    for options in ([f"--count={20000 if full else 30}", "--devices=cpu", narrow],
                    [f"--count={2000 if full else 15}", "--devices=gpu-sim", narrow],
                    [f"--count={500 if full else 10}", "--devices=template", *few]):
        done = subprocess.run([str(build / "conformance/bits_test"), *options], cwd=ROOT,
                              env={**os.environ, "TENON_GPU_SIM_CHECKS": "1"}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout)
        status = status or done.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
