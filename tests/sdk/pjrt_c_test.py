#!/usr/bin/env python3
"""samples/pjrt-c, built with the installed headers alone, runs a program through the installed PJRT plug-in.

    pjrt_c_test.py BUILD

The commands are those of its README. Prints a line "PASS name" or "FAIL name: why" a test."""

import pathlib
import re
import shutil
import sys
import tempfile

from installation import ROOT, Installed, attempt, expect, run, succeeds


def test_readme(installed, folder):
    """Its commands, by the text, print what it says."""
    shutil.copytree(ROOT / "samples/pjrt-c", folder)
    text = (folder / "README.md").read_text()
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    commands = [line.split("  #")[0] for line in lines if line.startswith(("meson ", "build/run "))]
    printed = [line for line in lines if line.startswith("platform") or line[:1].isdigit()]
    expect(len(commands) == 2 and len(printed) == 3, f"{lines}")
    succeeds("sh", "-ec", commands[0], folder=folder, variables=installed.variables)
    output = succeeds("sh", "-ec", commands[1], folder=folder, variables=installed.variables)
    expect(output.splitlines() == printed, output)
    used = succeeds("ninja", "-C", "build", "-t", "deps", folder=folder, variables=installed.variables)
    expect(str(installed.prefix) in used and str(ROOT) not in used, used)
    succeeds("meson", "test", "-C", "build", folder=folder, variables=installed.variables)
    return f"{len((folder / 'run.c').read_text().splitlines())} lines"


def test_errors(installed, folder):
    """What is wrong is said, with the exit status 1; usage with 2."""
    library = succeeds("pkg-config", "--variable=library", "tenon-pjrt", folder="/", variables=installed.variables).strip()
    wrong = [([library, "add.mlir", "device=cpu", "--", "2x3=1", "2x2=1"], r"execute: main: argument 0 is f32\[2,3\], expected"),
             ([library, "add.mlir", "device=nonesuch"], "create a client: there is no backend 'nonesuch'"),
             ([library, "README.md", "device=cpu"], r"compile: .*1:1"),
             ([library, "add.mlir", "device=cpu", "--", "2x2=1,2,3"], "not as many numbers"),
             ([library, "add.mlir", "device=cpu", "--", "2x=1"], "not of the form"),
             (["/nonesuch.so", "add.mlir"], "the plug-in cannot be loaded"),
             ([installed.prefix / "nonesuch.so", "add.mlir"], "the plug-in cannot be loaded")]
    for words, pattern in wrong:
        status, output = run("build/run", *words, folder=folder, variables=installed.variables)
        expect(status == 1 and re.search(pattern, output), f"{words}: {status}: {output}")
    expect(run("build/run", folder=folder, variables=installed.variables)[0] == 2, "wrong usage is no error")
    return f"{len(wrong)} errors"


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        installed = Installed(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(place))
        folder = pathlib.Path(place) / "pjrt-c"
        good = attempt("pjrt-c: README", test_readme, installed, folder)
        return 0 if good and attempt("pjrt-c: errors", test_errors, installed, folder) else 1


if __name__ == "__main__":
    sys.exit(main())
