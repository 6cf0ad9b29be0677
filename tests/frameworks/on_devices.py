"""What the tests of Python packages share: their environments, and pytest on a device as PASS, FAIL and SKIP lines."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from kept_folders import kept_folder  # noqa: E402

ABSENT = 77  # make-venv: there is no Python, or no index to install from.
HASHED = ("cpu", "gpu-sim")  # Devices whose compiler_id has the hash of the compiler's sources.
MOST_KEPT = 500_000_000  # Bytes.
FULL = "--full" in sys.argv


def has_environment(package: pathlib.Path, build: pathlib.Path, seconds: float | None = None, venv: str = ".venv", **variables: str) -> int | None:
    """Runs the package's make-venv for its folder `venv`. None if that succeeds; else says so, and returns the exit status for the test.

    Tests of a package that takes longer than `seconds` to install are skipped."""
    made = subprocess.run(["timeout", "--kill-after=5", str(seconds or 0), str(package / "make-venv"), str(package / venv)], text=True,
                          env=dict(os.environ, BUILD_DIR=str(build), **variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode in (124, 137):  # timeout's.
        print(f"SKIP {package.name}: its environment is not made after {seconds} seconds; {package.relative_to(ROOT)}/make-venv makes it in its own time")
        return 0
    if made.returncode == 0:
        return None
    absent = made.returncode == ABSENT
    why = " / ".join(made.stdout.strip().splitlines()[-1 if absent else -5:])
    print(f"{'SKIP' if absent else 'FAIL'} {package.name}: its environment cannot be made: {why}")
    return 0 if absent else 1


def kept_code(device: str) -> dict[str, str]:
    """Settings by which a device takes what its compiler made of the same kernels before, in this run or an earlier one (the layer
    `cache`). Everything is lowered, run and compared as without them; with --full everything is compiled, too."""
    folder = kept_folder()
    if FULL or device not in HASHED or folder is None:
        return {}
    return {"TENON_LAYERS": "cache", "TENON_CACHE": str(folder), "TENON_CACHE_BYTES": str(MOST_KEPT)}


def pytest(package: pathlib.Path, device: str, label: str, *words: str, python: pathlib.Path | None = None, **variables: str) -> None:
    """Runs the package's tests on a device: a line a test. `python` is that of another environment than the package's."""
    settings = dict(os.environ, TENON_DEVICE=device, **variables)
    for name in ("TENON_LAYERS", "TENON_FAULTS", "TENON_PJRT_LIBRARY", "PYTHONPATH"):
        settings.pop(name, None)
    settings |= {"TENON_FULL": "1"} if FULL else kept_code(device)
    done = subprocess.run([python or package / ".venv/bin/python", "-m", "pytest", "-q", "-rA", "--tb=short", "-p", "no:cacheprovider", "--timeout=300",
                           "--timeout-method=thread", *words, package / "tests"], env=settings, cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) (?:\S*/)?(\S+)(.*)$", done.stdout, re.MULTILINE)
    for outcome, name, rest in found:
        word = {"PASSED": "PASS", "SKIPPED": "SKIP"}.get(outcome, "FAIL")
        print(f"{word} {label} {name}" + (f": {rest.strip(' -')}" if word != "PASS" else ""))
    if not found or (done.returncode != 0 and not any(o in ("FAILED", "ERROR") for o, *_ in found)):
        print(f"FAIL {label}: pytest ended with {done.returncode}: {' / '.join(done.stdout.splitlines()[-20:])}")
