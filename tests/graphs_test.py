#!/usr/bin/env python3
"""Random programs on interp against the evaluator: 500 of them, 20,000 with --full."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    build = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build")
    count = 20000 if "--full" in sys.argv else 500
    done = subprocess.run([str(build / "conformance/graphs_test"), f"--count={count}"], cwd=ROOT,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
