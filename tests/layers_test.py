#!/usr/bin/env python3
"""The direction of dependencies: a folder includes only what lies below it, and no file outgrows a screenful
of screens. Prints PASS and FAIL lines."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What each folder may include of this repository.
ALLOWED = {"core": {"core"}, "hlo": {"core", "hlo"}, "backends": {"core", "backends", "samples"}, "samples/chip": set(),
           "tools": {"core", "hlo", "tools", "backends"}, "frameworks": {"core", "hlo", "frameworks", "backends"},
           "fuzz": {"core", "hlo", "fuzz"}, "bench": {"core", "hlo", "backends"}, "tests": {"core", "hlo", "conformance", "backends"}}
MOST_LINES = 800


def check(folder: str) -> list[str]:
    """Faults of the C++ files of a folder."""
    faults = []
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix not in (".cpp", ".h", ".c") or ".venv" in path.parts:
            continue
        lines = path.read_text().splitlines()
        if len(lines) > MOST_LINES:
            faults.append(f"{path.relative_to(ROOT)} has {len(lines)} lines")
        for number, line in enumerate(lines, 1):
            found = re.match(r'#include "([^/"]+)/', line)
            if found and found.group(1) not in ALLOWED[folder]:
                faults.append(f"{path.relative_to(ROOT)}:{number} includes {found.group(1)}/")
    return faults


def main() -> int:
    failed = False
    for folder in ALLOWED:
        faults = check(folder)
        failed |= bool(faults)
        print(f"FAIL layers of {folder}: {'; '.join(faults)}" if faults else f"PASS layers of {folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
