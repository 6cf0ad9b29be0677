#!/usr/bin/env python3
"""clang-format over every source; with --full, clang-tidy too (an hour on two cores)."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def sources() -> list[str]:
    """The C++ files of the repository."""
    return subprocess.run(["git", "ls-files", "*.cpp", "*.h"], cwd=ROOT, check=True, text=True,
                          capture_output=True).stdout.split()


def check_format() -> bool:
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *sources()], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stdout, re.MULTILINE)))
    for name in wrong:
        print(f"FAIL format {name}: run clang-format-19 -i {name}")
    if not wrong:
        print(f"PASS format of {len(sources())} files" if done.returncode == 0
              else f"FAIL format: {done.stdout[-2000:]}")
    return not wrong and done.returncode == 0


def check_tidy(build: str) -> bool:
    patterns = [f"/{re.escape(name)}$" for name in sources() if name.endswith(".cpp")]
    done = subprocess.run(["run-clang-tidy-19", "-p", build, "-quiet", f"-j{os.cpu_count()}", *patterns],
                          cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = sorted(set(re.findall(r"^\S+:\d+:\d+: (?:error|warning): .*", done.stdout, re.MULTILINE)))
    for line in found:
        print(f"FAIL tidy {line}")
    if not found:
        print(f"PASS tidy of {len(patterns)} files" if done.returncode == 0
              else f"FAIL tidy: {done.stdout[-2000:]}")
    return not found and done.returncode == 0


def main() -> int:
    good = check_format()
    if "--full" in sys.argv:
        good = check_tidy(sys.argv[1]) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
