#!/usr/bin/env python3
"""A row of the op table that lacks a column that its op needs does not compile.

    op_row_test.py [BUILD] [--full]

Compiles hlo/registry/op_registry.cpp, without code, against tables in which rows lack columns, as BUILD compiles it. One table
lacks as many columns as there are messages, each of which has to be said, and no other; with --full each lacks one column.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = "hlo/ops/op_table.inc"
# The op, the column that it loses, and what the compiler says.
CASES = [
    ("Tanh", "infer", "an op has no shape rule"),
    ("Tanh", "scalar", "an op has no meaning"),
    ("Gather", "evaluate", "an op has no meaning"),
    ("Tanh", "element", "an op that is computed has no lowering"),
    ("Sort", "kernels", "an op that is computed has no lowering"),
    ("Sine", "step", "lacks .step or .fusion"),
    ("Tanh", "fusion", "lacks .step or .fusion"),
    ("Tanh", "ulp_bound", "an op states no accuracy"),
    ("Reduce", "terms", "depends on the order of its terms"),
    ("Tanh", "sample", "an op has neither .sample nor a reason"),
    ("Infeed", "not_sampled", "an op has neither .sample nor a reason"),
    ("Tanh", "vhlo", "a StableHLO op names no version of VHLO"),
]


def without(table: str, op: str, column: str) -> str:
    row = re.search(rf"TENON_OP\({op}, .*?\n(?=TENON_OP|//)", table, re.DOTALL)
    lost = re.sub(rf",\n +\.{column} = .*?(?=,\n +\.|\)\n)", "", row.group(), count=1, flags=re.DOTALL)
    assert lost != row.group(), f"{op} has no {column}"
    return table.replace(row.group(), lost)


def tables(full: bool) -> list[list[tuple[str, str, str]]]:
    """The cases of each table that is compiled: all have messages of their own."""
    found: list[list[tuple[str, str, str]]] = []
    for case in CASES:
        place = next((each for each in found if not full and case[2] not in [message for _, _, message in each]), None)
        if place is None:
            found.append([case])
        else:
            place.append(case)
    return found


def compiled(command: list[str], folder: pathlib.Path, build: pathlib.Path, table: str) -> str:
    """The compiler's output; empty if it compiles."""
    place = folder / TABLE
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(table)
    done = subprocess.run([*command, f"-I{folder}", "-fsyntax-only"], cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120)
    return done.stdout if done.returncode != 0 else ""


def main() -> int:
    build = pathlib.Path(next((word for word in sys.argv[1:] if not word.startswith("--")), "build")).resolve()
    commands = json.loads((build / "compile_commands.json").read_text())
    # Files of the library may be compiled together; their flags are the same.
    mine = next(each for each in commands if "libtenon_hlo.a.p/" in each["output"])
    command = [*shlex.split(mine["command"])[:-1], str(ROOT / "hlo/registry/op_registry.cpp")]
    if command[0].endswith("ccache"):
        command = command[1:]
    # The include folders of the project come after the one with the changed table.
    command = [part for part in command if part not in ("-MD", "-c")]
    includes = [part for part in command if part.startswith("-I")]
    command = [part for part in command if not part.startswith("-I")]
    for flag in ("-MQ", "-MF", "-o"):
        at = command.index(flag)
        del command[at:at + 2]
    table = (ROOT / TABLE).read_text()
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        whole = [command[0], f"-I{folder}", *includes, *command[1:]]
        for cases in [[], *tables("--full" in sys.argv)]:
            changed = table
            for op, column, _ in cases:
                changed = without(changed, op, column)
            said = compiled(whole, folder, build, changed)
            expected = {message for _, _, message in cases}
            unexpected = [message for _, _, message in CASES if message in said and message not in expected]
            for what, message in [(f"{op} without .{column}", message) for op, column, message in cases] or [("the table as it is", "")]:
                right = bool(said) == bool(cases) and message in said and not unexpected
                failed += not right
                print(f"{'PASS' if right else 'FAIL'} {what}" + ("" if right else f": {' '.join(said.split())[:300]}"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
