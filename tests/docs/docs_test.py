#!/usr/bin/env python3
"""Checks the documentation: the commands in README.md run, and generated pages are up to date.

    docs_test.py BUILD [--write]

The command in a line "    $ build/tenon …" must succeed, unless the next line shows its error, which it must then
print. The text between "<!-- begin: COMMAND -->" and "<!-- end -->" must be the output of the command in a shell
in the repository's folder; --write updates it. Commands of build/tenon are shown before their output.
Prints PASS and FAIL lines.
"""

import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


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


def check_generated_pages(tenon: str, write: bool) -> list[tuple[str, str]]:
    """Checks the pages that the tool prints completely: docs/ops.md from the op table, docs/rewrites.md from the rules."""
    outcomes = []
    for page, words in {"docs/ops.md": ["ops", "--markdown"],
                        "docs/linalg.md": ["ops", "--linalg", "--markdown"],
                        "docs/idioms.md": ["idioms", "--markdown"],
                        "docs/rewrites.md": ["rules", "--markdown", *sorted(ROOT.glob("samples/*/program.mlir"))]}.items():
        printed = subprocess.run([tenon, *words], capture_output=True, text=True, cwd=ROOT).stdout
        same = (ROOT / page).exists() and printed == (ROOT / page).read_text()
        outcomes.append((page, "" if same and printed else "run: tests/docs/docs_test.py build --write"))
        if write:
            (ROOT / page).write_text(printed)
    return outcomes


def check_settings() -> tuple[str, str]:
    """docs/settings.md lists every environment variable that the sources read."""
    known = set(re.findall(r"`(TENON_\w+)`", (ROOT / "docs/settings.md").read_text()))
    read = set()
    for folder in ("core", "hlo", "backends", "tools", "conformance", "frameworks/pjrt", "frameworks/jax/jax_plugins", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".cpp", ".h", ".c", ".py"} and ".venv" not in path.parts:
                read |= set(re.findall(r"""(?:getenv|environment|setting|variable|device_count|environ\.get)\(\s*"(TENON_\w+)\"""",
                                       path.read_text()))
    wrong = [f"{name} is not there" for name in sorted(read - known)]
    return "docs/settings.md", ", ".join(wrong)


def check_links() -> list[tuple[str, str]]:
    """Every relative link of every page leads to a file."""
    outcomes = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        prose = re.sub(r"^    .*|`[^`\n]*`", "", text, flags=re.MULTILINE)  # Without code.
        broken = [link for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose)
                  if not (page.parent / link).exists()]
        outcomes.append((f"links of {page.name}", ", ".join(broken)))
    return outcomes


def check_paths() -> list[tuple[str, str]]:
    """Paths of this repository that pages and comments name are there."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, text=True,
                            stdout=subprocess.PIPE).stdout.splitlines()
    paths = {parent.as_posix() for name in listed for parent in [pathlib.PurePosixPath(name), *pathlib.PurePosixPath(name).parents]
             if (ROOT / name).exists()}
    stems = {re.sub(r"\.\w+$", "", path) for path in paths}  # A comment may leave out the ending.
    tops = "|".join(sorted({path.split("/")[0] for path in paths if "/" in path and not path.startswith(".")}))
    made = {"tests/run.py", "tests/lax_test.py", "bench/contractions", "samples/NAME/program.mlir"}  # Of other projects; by the build.
    outcomes = []
    for name in listed:
        if not name.endswith((".md", ".h", ".cpp", ".inc", ".py")) or not (ROOT / name).exists():
            continue
        broken = set()
        for line in (ROOT / name).read_text().splitlines():
            if not name.endswith(".md") and not re.search(r"(//|#(?!include)|/?\*) ", line):
                continue
            for found in re.findall(rf"(?<![\w/.{{-])(?:{tops})/[\w./-]*\w", line):
                place = found.removeprefix("build/")
                if place not in paths | stems | made and "/.venv" not in place and not (ROOT / "build" / place).exists():
                    broken.add(found)
        if broken:
            outcomes.append((f"paths in {name}", ", ".join(sorted(broken))))
    return outcomes or [("paths in pages and comments", "")]


def printed_by(tenon: str, command: str) -> str:
    """The text that a page shows for a command, including errors."""
    done = subprocess.run(["bash", "-c", "set -o pipefail; " + command.replace("build/tenon ", shlex.quote(tenon) + " ")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, timeout=300)
    lines = [f"$ {command}"] if command.startswith("build/tenon ") else []
    lines += done.stdout.strip("\n").splitlines()
    if done.returncode != 0:
        lines.append(f"exit status {done.returncode}")
    return "\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n"


def check_generated(tenon: str, page: pathlib.Path, write: bool) -> list[tuple[str, str]]:
    """Name and failure (or nothing) of each part of a page that a command prints."""
    outcomes = []

    def renewed(found: re.Match) -> str:
        printed = printed_by(tenon, found.group(1))
        same = printed == found.group(2)
        failed = "    exit status " in printed
        why = "its command fails" if failed else "run: tests/docs/docs_test.py build --write"
        outcomes.append((f"{page.name}, {found.group(1)}", "" if same and not failed else why))
        return f"<!-- begin: {found.group(1)} -->\n{printed}<!-- end -->"

    text = page.read_text()
    renewed_text = re.sub(r"<!-- begin: (.*?) -->\n(.*?)<!-- end -->", renewed, text, flags=re.DOTALL)
    if write:
        page.write_text(renewed_text)
    return outcomes


def main() -> int:
    write = "--write" in sys.argv
    words = [word for word in sys.argv[1:] if not word.startswith("--")]  # run_tests gives --full.
    build = pathlib.Path(words[0] if words else "build").resolve()
    tenon = str(build / "tenon")
    outcomes = check_commands(tenon, ROOT / "README.md")
    outcomes += check_generated_pages(tenon, write)
    outcomes.append(check_settings())
    for page in sorted((ROOT / "docs").glob("*.md")):
        outcomes += check_generated(tenon, page, write)
    outcomes += check_links()
    outcomes += check_paths()
    for name, why in outcomes:
        print(f"FAIL {name}: {why}" if why else f"PASS {name}")
    return 1 if any(why for _, why in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
