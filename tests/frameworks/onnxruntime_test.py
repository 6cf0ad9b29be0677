#!/usr/bin/env python3
"""The execution provider for ONNX Runtime: its wheel is made and installed, its tests run on Tenon's devices, and the node tests of the
package onnx by sessions with it, beside ONNX Runtime's CPU provider.

    onnxruntime_test.py BUILD [--full]     --full: all node tests, instead of each twelfth; the tests on gpu-sim and interp too

Prints PASS, FAIL and SKIP lines."""

import collections
import os
import pathlib
import re
import subprocess
import sys

from on_devices import ROOT, has_environment, kept_code, pytest

PACKAGE = ROOT / "frameworks/onnxruntime"
STEP = 12  # Of the node tests, without --full.
MOST_BYTES = 6_000_000  # Of the library.


def test_size(build: pathlib.Path) -> None:
    library = build / "frameworks/onnxruntime/libtenon_ort.so"
    stripped = build / "libtenon_ort.stripped.so"
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, library], check=True)
    size = stripped.stat().st_size
    exported = subprocess.run(["nm", "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    names = sorted(line.split()[-1] for line in exported.splitlines())
    good = names == ["CreateEpFactories", "ReleaseEpFactory"] and size <= MOST_BYTES
    print(f"{'PASS' if good else 'FAIL'} the library: {size} bytes, exports {', '.join(names)}")


def test_nodes(device: str, step: int) -> None:
    settings = {name: value for name, value in os.environ.items() if name not in ("TENON_LAYERS", "TENON_PJRT_LIBRARY", "TENON_ORT_LIBRARY")}
    settings |= kept_code(device)
    done = subprocess.run([PACKAGE / ".venv/bin/python", PACKAGE / "tests/node_cases.py", device, str(step)], text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=settings, timeout=3600)
    found = re.findall(r"^(case|pass|as_onnx|fail|skip) (\w+)(?:: (.*))?$", done.stdout, re.MULTILINE)
    begun = [name for word, name, _ in found if word == "case"]
    counts, skipped = collections.Counter(), collections.Counter()
    for word, name, why in found:
        counts[word] += 1
        if word in ("pass", "as_onnx"):
            print(f"PASS {device} {name}")
        elif word == "fail":
            print(f"FAIL {device} {name}: {why}")
        elif word == "skip":
            skipped[why] += 1
    for why, count in skipped.items():
        print(f"SKIP {device}, {count} node tests: {why}")
    if done.returncode != 0 or counts["case"] == 0:
        print(f"FAIL {device} {begun[-1] if begun else 'node tests'}: the process ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    took_part = counts["pass"] + counts["as_onnx"] > counts["case"] // 2
    print(f"{'PASS' if took_part else 'FAIL'} {device}, node tests: {counts['pass']} equal to ONNX Runtime, {counts['as_onnx']} to ONNX alone, "
          f"of {counts['case']}")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    full = "--full" in sys.argv
    status = has_environment(PACKAGE, build)
    if status is not None:
        return status
    test_size(build)
    pytest(PACKAGE, "cpu", "cpu", TENON_BUILD=str(build))
    pytest(PACKAGE, "template", "template")
    test_nodes("cpu", 1 if full else STEP)
    test_nodes("template", 12 if full else 20 * STEP)
    if full:
        pytest(PACKAGE, "gpu-sim", "gpu-sim")
        pytest(PACKAGE, "interp", "interp")
    return 0


if __name__ == "__main__":
    sys.exit(main())
