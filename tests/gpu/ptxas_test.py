#!/usr/bin/env python3
"""scripts/ptxas finds an assembler of PTX. If it is the wheel's, the code generator's tests run again with it, because
they ran without one. Prints PASS, FAIL and SKIP lines.

    ptxas_test.py BUILD
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ABSENT = 77  # There is neither a toolkit nor an index to install from.


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **variables}, timeout=900)


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    found = run(["scripts/ptxas"])
    if found.returncode == ABSENT:
        print(f"SKIP ptxas: {found.stderr.strip().splitlines()[-1]}")
        return 0
    path = found.stdout.strip()
    version = run([path, "--version"]) if found.returncode == 0 else found
    release = re.search(r"release ([0-9.]+)", version.stdout)
    if version.returncode != 0 or not release:
        print(f"FAIL ptxas: {(found.stderr + version.stdout + version.stderr).strip()[-500:]}")
        return 1
    print(f"PASS ptxas: release {release.group(1)}")
    if ".venv" not in path:
        return 0
    tests = run([str(build / "backends/gpu_code_test"), "--gtest_brief=1"], TENON_PTXAS=path)
    if tests.returncode != 0 or "SKIPPED" in tests.stdout:
        print(f"FAIL gpu_code with the wheel's ptxas: {tests.stdout[-1500:]}")
        return 1
    print("PASS gpu_code with the wheel's ptxas")
    return 0


if __name__ == "__main__":
    sys.exit(main())
