#!/usr/bin/env python3
"""With --full: every other test again in builds with ASan+UBSan and with TSan."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALONE = {"fuzz_test", "new_backend_test", "style_test", "sanitizer_test", "layers_test", "docs_test"}


def test_with(name: str, sanitizers: str) -> bool:
    """Builds in build-NAME and runs the groups there."""
    build = f"build-{name}"
    environment = dict(os.environ, BUILD_DIR=build,
                       ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1",
                       UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
                       TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1")
    steps = [["scripts/build", f"-Db_sanitize={sanitizers}", "-Db_lundef=false",
              "-Dbuildtype=debugoptimized", "-Db_ndebug=false"]]
    listed = subprocess.run([sys.executable, "scripts/run_tests.py", "--list"], cwd=ROOT, check=True,
                            text=True, capture_output=True).stdout.split()
    groups = [group for group in listed if group not in ALONE]
    steps.append([sys.executable, "scripts/run_tests.py", "--build", build, *groups])
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode != 0:
            wrong = [line for line in done.stdout.splitlines() if "FAIL" in line or "ERROR" in line]
            print(f"FAIL {name}: {' | '.join(wrong) or done.stdout[-1000:]}")
            return False
    print(f"PASS {name}: {done.stdout.strip().splitlines()[-1]}")
    return True


def main() -> int:
    if "--full" not in sys.argv:
        return 0
    good = [test_with("asan", "address,undefined"), test_with("tsan", "thread")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
