#!/usr/bin/env python3
"""JAX on Tenon's devices: frameworks/jax/tests on each of them, with a pip-installed JAX.

    jax_test.py BUILD [--full]

All tests run on the device cpu; on every other device a part of them, another one each, and with --full all. Prints PASS,
FAIL and SKIP lines."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
JAX = ROOT / "frameworks/jax"
ABSENT = 77  # make-venv: there is no Python, or no index to install from.


def pytest(python: str, device: str, label: str, part: str) -> None:
    settings = dict(os.environ, JAX_PLATFORMS="tenon,cpu", TENON_DEVICE=device)
    for name in ("TENON_LAYERS", "TENON_FAULTS", "TENON_PJRT_LIBRARY"):
        settings.pop(name, None)
    done = subprocess.run([python, "-m", "pytest", "-q", "-rA", "--tb=short", "-p", "no:cacheprovider", "--timeout=300", "--timeout-method=thread",
                           "--part", part, str(JAX / "tests")], env=settings, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) (?:\S*/)?(\S+)(.*)$", done.stdout, re.MULTILINE)
    for outcome, name, rest in found:
        word = {"PASSED": "PASS", "SKIPPED": "SKIP"}.get(outcome, "FAIL")
        print(f"{word} {label} {name}" + (f": {rest.strip(' -')}" if word != "PASS" else ""))
    if not found or (done.returncode != 0 and not any(o in ("FAILED", "ERROR") for o, *_ in found)):
        print(f"FAIL {label}: pytest ended with {done.returncode}: {' / '.join(done.stdout.splitlines()[-20:])}")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    made = subprocess.run([str(JAX / "make-venv")], env=dict(os.environ, BUILD_DIR=str(build)), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    python = JAX / ".venv/bin/python"
    if made.returncode != 0:
        absent = made.returncode == ABSENT
        why = " / ".join(made.stdout.strip().splitlines()[-1 if absent else -5:])
        print(f"{'SKIP' if absent else 'FAIL'} jax: its environment cannot be made: {why}")
        return 0 if absent else 1
    others = {"interp": "interp", "template": "template", f"{build}/backends/libtenon_template.so:0": "template as a plug-in",
              "gpu-sim": "gpu-sim", "reference": "reference"}
    pytest(str(python), "cpu", "cpu", "1/1")
    for i, (device, label) in enumerate(others.items()):
        pytest(str(python), device, label, "1/1" if "--full" in sys.argv else f"{i + 1}/{len(others)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
