#!/usr/bin/env python3
"""Measures the errors of the evaluator's math functions with Arb: on a sample; with --full on a dense one.

`tests/programs/oracle_test.py BUILD --full --write` puts the table into docs/numerics.md.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/numerics.md"
BEGIN, END = "<!-- oracle begin -->", "<!-- oracle end -->"


def write(output: str) -> None:
    table = "\n".join(line for line in output.splitlines() if not re.match("PASS|FAIL", line)).strip()
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main() -> int:
    build = ROOT / next((word for word in sys.argv[1:] if not word.startswith("--")), "build")
    program = build / "conformance/oracle_accuracy"
    if not program.exists():
        print("SKIP oracle: the build found no Arb (libflint-arb-dev; scripts/setup installs it)")
        return 0
    options = ["--step=1", "--samples=20000"] if "--full" in sys.argv else []
    done = subprocess.run([str(program), *options], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    print(done.stdout)
    if "--write" in sys.argv and done.returncode == 0:
        write(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
