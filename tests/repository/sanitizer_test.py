#!/usr/bin/env python3
"""With --full: runs every other test again in builds with ASan+UBSan, with TSan and by GCC; with --full and asan, tsan or
gcc, only in those. The output of a build and its tests is in build-NAME/sanitizer_test.log."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What runs nothing of the build, builds by itself, has allocation functions of its own, or lives in a process, Python's or of a program
# in C, which is not instrumented
# (the PJRT plug-in is driven by the group pjrt too).
ALONE = {"aot_gpu_test", "bench_test", "demo_test", "digits_test", "docs_test", "fuzz_test", "guide_test", "jax_samples_test", "jax_suite_test", "jax_test", "layers_test", "make_venv_test",
         "new_backend_test", "nvrtc_test", "onnxruntime_test", "opencl_test", "peers_test", "pjrt_c_test", "ptxas_test", "python_test", "runtime_test", "sanitizer_test",
         "scaling", "source_hash_test", "style_test", "symbols_test", "tensorflow_test", "torch_test"}


SANITIZED = ["-Db_lundef=false", "-Dbuildtype=debugoptimized", "-Db_ndebug=false"]
# Options of Meson; one of the builds compiles each file alone, as developers who change few files do.
BUILDS = {"asan": ["-Db_sanitize=address,undefined", "-Dunity=off", *SANITIZED],
          "tsan": ["-Db_sanitize=thread", *SANITIZED],
          "gcc": ["-Dwerror=true"]}


def groups_of(run_tests: list[str]) -> list[str]:
    return subprocess.run([*run_tests, "--list"], cwd=ROOT, check=True, text=True, capture_output=True).stdout.split()


def test_with(name: str) -> bool:
    """Builds in build-NAME and runs the groups there."""
    build = f"build-{name}"
    environment = dict(os.environ, BUILD_DIR=build,
                       ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1",
                       UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
                       TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1")
    environment.pop("CI", None)  # Warnings of instrumented code are no errors.
    environment.pop("TENON_FULL", None)  # The groups as CI has them.
    if name == "gcc":
        environment |= {"CC": "ccache gcc", "CXX": "ccache g++"}
    (ROOT / build).mkdir(exist_ok=True)
    log = ROOT / build / "sanitizer_test.log"
    log.write_text("")
    run_tests = [sys.executable, "scripts/run_tests.py", "--build", build]
    # Which groups there are is asked of what was built.
    for step in (lambda: ["scripts/build", *BUILDS[name]],
                 lambda: [*run_tests, *(group for group in groups_of(run_tests) if group not in ALONE)]):
        with log.open("a") as out:
            done = subprocess.run(step(), cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
        printed = log.read_text(errors="replace")
        if done.returncode != 0:
            wrong = [line for line in printed.splitlines() if "FAIL" in line or "ERROR" in line]
            print(f"FAIL {name}: {' | '.join(wrong) or printed[-1000:]} (all of it: {log})")
            return False
    print(f"PASS {name}: {printed.strip().splitlines()[-1]}")
    return True


def main() -> int:
    if "--full" not in sys.argv:
        return 0
    chosen = [name for name in BUILDS if name in sys.argv] or list(BUILDS)
    good = [test_with(name) for name in chosen]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
