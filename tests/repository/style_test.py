#!/usr/bin/env python3
"""clang-format over every source, each class name once in the tree, the English of comments; with --full, clang-tidy too (an hour on two cores), or
with --full FILE… of these files alone."""

import collections
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A class, struct, union or enum is declared once in the tree, so that grep finds one thing; nested and file-local ones count
# too. The pairs below may share a name: both are standard terms in headers that vendors use, and the namespace
# distinguishes them.
SHARED_NAMES = {
    "Buffer": {"core/program/program.h", "core/runtime/buffer.h"},  # Of a Program; of the runtime, as in PJRT.
    "Builder": {"core/kernel/ir/builder.h", "hlo/builder/builder.h"},  # Of the kernel IR; of hlo.
    "Device": {"core/backend/backend.h", "core/runtime/device.h"},  # What a backend implements; what clients use.
    "OpCode": {"core/kernel/ir/ops.h", "hlo/ops/ops.h"},
    "TypeSet": {"core/kernel/ir/ops.h", "hlo/ops/ops.h"},
    "Value": {"core/kernel/ir/kernel.h", "hlo/ir/instruction.h"},
}
# Not checked: tests; the PJRT C API, whose names are its own. A class's `Impl` (the pimpl idiom) goes by the class's name.
UNCHECKED = re.compile(r"_test(_util)?\.(h|cpp)$|(^|/)testing/|^tests/|^fuzz/|^frameworks/pjrt/c_api/")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DEFINITION = re.compile(r"\b(?:class|struct|union|enum(?: class| struct)?)\s+(?:\w+::)*(\w+)(?:\s+final)?\s*(?::[^;{}()]*)?\{")


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


def check_names() -> bool:
    """Whether each class has a name of its own."""
    found = collections.defaultdict(list)
    for name in sources():
        if UNCHECKED.search(name):
            continue
        text = COMMENT_OR_STRING.sub(lambda match: "\n" * match.group().count("\n"), (ROOT / name).read_text())
        for match in DEFINITION.finditer(text):
            found[match.group(1)].append((name, text.count("\n", 0, match.start()) + 1))
    faults = {name: places for name, places in sorted(found.items()) if len(places) > 1 and name != "Impl"
              and not (len(places) == 2 and {path for path, _ in places} == SHARED_NAMES.get(name))}
    for name, places in faults.items():
        print(f"FAIL class name {name}: declared at {', '.join(f'{path}:{line}' for path, line in places)}")
    unused = [name for name in SHARED_NAMES if len(found[name]) < 2]
    for name in unused:
        print(f"FAIL class name {name}: no pair any more; remove it from SHARED_NAMES")
    if not faults and not unused:
        print(f"PASS {len(found)} class names are declared once each")
    return not faults and not unused


# Sentences without a subject, and words that hide who does what: a comment names the thing, by its standard term.
HIDDEN_SUBJECT = re.compile(r"^\s*(?://[/!]?<?|/\*+) ?(?:{0}) |\S\s+///?< ?(?:{0}) ".format(
    "What|Of|Who|Whose|Says|Tells|That of|The same of|As of"))
VAGUE_WORDS = re.compile(r"(?://|/\*| \* ).*\b(?:anew|whoever|whosoever|wherever|whatever|to and fro|held against|by way of"
                         r"|given away|where it lies)\b", re.IGNORECASE)


def check_comments() -> bool:
    """The worst patterns of English, in every comment."""
    faults = []
    for name in sources():
        is_inside = False  # A comment of several lines begins once.
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            begins = HIDDEN_SUBJECT.search(line) and not (is_inside and line.lstrip().startswith("//"))
            if begins:
                faults.append(f"{name}:{number} begins with {line[line.find('/'):].lstrip('/<*! ').split(' ')[0]}")
            found = VAGUE_WORDS.search(line)
            if found:
                faults.append(f"{name}:{number}: {found.group(0)[-40:].strip()}")
            is_inside = line.lstrip().startswith("//") and not re.fullmatch(r"\s*//[/!]?\s*", line)
    for fault in faults:
        print(f"FAIL comment {fault}")
    if not faults:
        print("PASS comments have subjects")
    return not faults


def check_tidy(build: str, chosen: list[str]) -> bool:
    # Beside the build, a folder whose compile_commands.json names each file.
    alone = f"{build}/each_file_alone"
    if not pathlib.Path(alone, "build.ninja").exists():
        subprocess.run(["meson", "setup", alone, "-Dunity=off"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    made = subprocess.run(["ninja", "-C", alone, "-t", "targets", "all"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    generated = [line.split(":")[0] for line in made.stdout.splitlines()
                 if ": CUSTOM_COMMAND" in line and not line.startswith("meson-")]
    subprocess.run(["ninja", "-C", alone, *generated], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    patterns = [f"/{re.escape(name)}$" for name in chosen or sources() if name.endswith(".cpp")]
    done = subprocess.run(["run-clang-tidy-19", "-p", alone, "-quiet", f"-j{os.cpu_count()}", *patterns],
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
    good = check_names() and good
    good = check_comments() and good
    if "--full" in sys.argv:
        good = check_tidy(sys.argv[1], [name for name in sys.argv[2:] if name != "--full"]) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
