#!/usr/bin/env python3
"""The documentation against the program: commands in README.md run, generated pages are up to date.

A line "    $ build/tenon …" must succeed, unless the next line shows its error, which must then be
what it prints. Prints PASS and FAIL lines.
"""

import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(tenon: str, command: str) -> subprocess.CompletedProcess:
    words = shlex.split(command)
    return subprocess.run([tenon, *words[1:]], capture_output=True, text=True, cwd=ROOT, timeout=300)


def check_commands(tenon: str, page: pathlib.Path) -> list[tuple[str, str]]:
    """Name and failure (or nothing) of each command of a page."""
    outcomes = []
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines):
        found = re.match(r"    \$ (build/tenon .*)", line)
        if not found:
            continue
        done = run(tenon, found.group(1))
        shown = lines[number + 1].strip() if number + 1 < len(lines) else ""
        name = f"{page.name}:{number + 1}"
        if " error: " in shown:
            first = (done.stderr.splitlines() or [""])[0]
            outcomes.append((name, "" if first == shown else f"prints '{first}', not '{shown}'"))
        else:
            outcomes.append((name, "" if done.returncode == 0 else done.stderr.strip()[:300]))
    return outcomes


def check_ops_page(tenon: str) -> tuple[str, str]:
    """docs/ops.md is what the op table says."""
    printed = subprocess.run([tenon, "ops", "--markdown"], capture_output=True, text=True).stdout
    same = printed == (ROOT / "docs/ops.md").read_text()
    return "docs/ops.md", "" if same else "run: build/tenon ops --markdown > docs/ops.md"


def check_links() -> list[tuple[str, str]]:
    """Relative links of every page lead to files."""
    outcomes = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        broken = [link for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())
                  if not (page.parent / link).exists()]
        outcomes.append((f"links of {page.name}", ", ".join(broken)))
    return outcomes


def main() -> int:
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    tenon = str(build / "tenon")
    outcomes = check_commands(tenon, ROOT / "README.md")
    outcomes.append(check_ops_page(tenon))
    outcomes += check_links()
    for name, why in outcomes:
        print(f"FAIL {name}: {why}" if why else f"PASS {name}")
    return 1 if any(why for _, why in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
