#!/usr/bin/env python3
"""scripts/jax-suite on a small tree of tests: outcomes, a crash, a continued run, causes. Prints PASS, FAIL and SKIP lines."""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
JAX = ROOT / "frameworks/jax"
ABSENT = 77  # make-venv: there is no Python, or no index to install from.

TESTS = """
import os
import jax, jax.numpy as jnp, numpy as np, pytest
from jax._src import of_the_tree, test_util as jtu

on_device = jax.default_backend() == "tenon"

def test_good():
    assert float(jax.jit(lambda x: x + of_the_tree.ONE)(1.0)) == 2.0

def test_differs():
    np.testing.assert_allclose(np.float32(1), 1.0 + 1.0 * on_device)

def test_without_rule():
    if on_device:
        raise NotImplementedError("MLIR translation rule for primitive 'some_p' not found for platform tenon")

def test_of_known_platforms():
    if not jtu.test_device_matches(["cpu"]):
        pytest.skip("a platform that is not known")
    assert float(jax.jit(jnp.sin)(0.0)) == 0.0

def test_that_ends_the_process():
    if on_device:
        os._exit(3)

def test_after_the_crash():
    pass

def test_of_two_devices():
    if on_device and len(jax.devices()) < 2:
        pytest.skip("Test requires 2 global devices and found 1.")

def test_fails_everywhere():
    assert False
"""

EXPECTED = """\
| file | pass on the CPU | want several devices | pass on interp too | of the rest | fail | skip |
|---|---|---|---|---|---|---|
| tiny | 7 | 1 | 3 | 50.00 % | 3 | 0 |
| all | 7 | 1 | 3 | 50.00 % | 3 | 0 |

| cause | tests | for example |
|---|---|---|
| numbers | 1 | `tests/tiny_test.py::test_differs` |
| no rule for some_p | 1 | `tests/tiny_test.py::test_without_rule` |
| crashed | 1 | `tests/tiny_test.py::test_that_ends_the_process` |
"""
REPAIRED_TESTS = TESTS.replace("1.0 * on_device", "0.0")
REPAIRED = EXPECTED.replace("| 3 | 50.00 % | 3 |", "| 4 | 66.67 % | 2 |").replace(
    "| numbers | 1 | `tests/tiny_test.py::test_differs` |\n", "")


def run(tree: pathlib.Path, *more: str) -> subprocess.CompletedProcess:
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("TENON_", "JAX_"))}
    return subprocess.run([str(ROOT / "scripts/jax-suite"), str(tree), "--device", "interp", "--out", str(tree / "out"),
                           *more], env=settings, text=True, capture_output=True)


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    made = subprocess.run([str(JAX / "make-venv")], env=dict(os.environ, BUILD_DIR=str(build)), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode != 0:
        absent = made.returncode == ABSENT
        print(f"{'SKIP' if absent else 'FAIL'} jax_suite: its environment cannot be made: {made.stdout.strip()[-300:]}")
        return 0 if absent else 1
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        (tree / "tests").mkdir()
        (tree / "tests/tiny_test.py").write_text(TESTS)
        (tree / "jax/_src").mkdir(parents=True)
        (tree / "jax/_src/of_the_tree.py").write_text("ONE = 1\n")
        first = run(tree)
        (tree / "tests/tiny_test.py").write_text("raise RuntimeError('it is not run again')\n")
        again = run(tree)
        reported = run(tree, "--report")
        other_flags = run(tree, "--x64")
        unknown = run(tree, "none")
        (tree / "tests/tiny_test.py").write_text(REPAIRED_TESTS)
        repaired = run(tree, "--retry")
        several = run(tree, "--devices", "2")
        sample = run(tree, "--cpu-last", "--sample", "2", "--out", str(tree / "other"))
        cpu_last = run(tree, "--cpu-last", "--out", str(tree / "other"))
        texts = (tree / "out/failures.txt").read_text()
        for name, good, got in [("table", first.stdout == EXPECTED, first), ("continued", again.stdout == EXPECTED, again),
                                ("unknown file", unknown.returncode == 2 and "no tests/none_test.py" in unknown.stderr,
                                 unknown),
                                ("report", reported.stdout == EXPECTED, reported),
                                ("other flags", other_flags.returncode == 2 and "--x64" in other_flags.stderr, other_flags),
                                ("repaired", repaired.stdout == REPAIRED and "ended with 3" in texts, repaired),
                                ("several devices", "| 7 | 0 | 5 | 71.43 % | 2 | 0 |" in several.stdout, several),
                                ("sample", "| all | 4 | 1 | 1 | 33.33 % | 2 | 0 |" in sample.stdout, sample),
                                ("CPU last", cpu_last.stdout == REPAIRED, cpu_last)]:
            failed += not good
            print(f"{'PASS' if good else 'FAIL'} jax_suite {name}" + ("" if good else f": {got.stdout}{got.stderr}"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
