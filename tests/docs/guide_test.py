#!/usr/bin/env python3
"""Follows docs/backend-guide.md as a reader would: runs every command, in order, in an empty folder.

    guide_test.py BUILD

A command is a line "    $ …"; its output must contain the lines below it, up to the next command, in that order. It must
succeed, unless these lines state that a test is wrong. What the device compiles goes through tests/sdk/cached_cc where
TENON_CC_CACHE is set; the device itself, always through `cc`. Prints a line "PASS command" or "FAIL command: why".
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/backend-guide.md"
LIMIT = 120  # seconds a command
PLUGIN_PC = "Name: tenon-plugin\nDescription: the headers of this tree\nVersion: 1\nCflags: -I{}\n"


def commands_of(page):
    """Each command, with the lines of its output that the page shows."""
    commands = []
    for line in page.read_text().splitlines():
        if line.startswith("    $ build/tenon ") or not line.startswith("    "):
            commands.append(None)  # The end of a block.
        elif line.startswith("    $ "):
            commands.append((line.removeprefix("    $ "), []))
        elif commands and commands[-1] is not None:
            commands[-1][1].append(line.strip())
    return [command for command in commands if command is not None]


class Shell:
    """One shell for all commands, so that variables stay."""

    END = "the-end-of-a-command"

    def __init__(self, folder, variables):
        self.process = subprocess.Popen(["bash"], cwd=folder, env=variables, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        """Exit status and all output of a command."""
        limit = f"timeout {LIMIT} " if command.startswith(("npu/", "tenon ")) else ""
        self.process.stdin.write(f"{{ {limit}{command}\n}} </dev/null\necho {self.END} $?\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if found := re.fullmatch(rf"(.*){self.END} (\d+)\n", line):
                return int(found.group(2)), "".join(lines) + found.group(1)
            lines.append(line)
        return -1, "".join(lines)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def fault(status, output, shown):
    """The fault of a command's result, or nothing."""
    refused = any(re.search(r"[1-9]\d* wrong", line) for line in shown)
    if (status != 0) != refused:
        return f"exit status {status}: {output[-1500:]}"
    printed = iter(output.splitlines())
    for line in shown:
        if not any(line == each.strip() for each in printed):
            return f"'{line}' is not, or not there, in what it prints: {output[-1500:]}"
    return ""


# Goes before the others in PATH.
COMPILER = """#!/bin/sh
PATH={path}
for argument; do
  case $argument in device.c|step_?.c) exec cc "$@" ;; esac
done
exec {cached} "$@"
"""


def place_of_compiler(folder):
    """The settings by which the device finds a C compiler that keeps what it made."""
    if "TENON_CC_CACHE" not in os.environ:
        return {"PATH": os.environ["PATH"]}
    place = pathlib.Path(folder, "bin")
    place.mkdir()
    compiler = place / "cc"
    compiler.write_text(COMPILER.format(path=shlex.quote(os.environ["PATH"]), cached=shlex.quote(str(ROOT / "tests/sdk/cached_cc"))))
    compiler.chmod(0o755)
    return {"PATH": f"{place}:{os.environ['PATH']}", "TENON_CC_CACHE": os.environ["TENON_CC_CACHE"]}


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    commands = commands_of(PAGE)
    good = len(commands) > 20
    if not good:
        print(f"FAIL commands: the page has {len(commands)}")
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "pkgconfig").mkdir()
        pathlib.Path(folder, "pkgconfig/tenon-plugin.pc").write_text(PLUGIN_PC.format(ROOT))
        empty = pathlib.Path(folder, "empty")
        empty.mkdir()
        found = place_of_compiler(folder)
        shell = Shell(empty, {**found, "PATH": f"{build}:{found['PATH']}", "HOME": folder, "LANG": "C.UTF-8",
                              "PKG_CONFIG_PATH": f"{folder}/pkgconfig", "GUIDE": str(ROOT / "docs/examples/guide")})
        for command, shown in commands:
            why = fault(*shell.run(command), shown)
            name = command.replace(": ", ":")  # What follows a ": " would be a figure.
            print(f"FAIL {name}: {why}" if why else f"PASS {name}", flush=True)
            good = good and not why
        shell.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
