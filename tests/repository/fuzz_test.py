#!/usr/bin/env python3
"""A bounded run of every fuzzer (ten minutes each with --full). scripts/fuzz prints PASS and FAIL."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    limit = ["--seconds", "600"] if "--full" in sys.argv else ["--runs", "500"]
    done = subprocess.run([str(ROOT / "scripts/fuzz"), *limit], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
