#!/usr/bin/env python3
"""A row of the op table that lacks a column that its op needs does not compile.

    op_row_test.py [BUILD]

Compiles hlo/registry/op_registry.cpp, without code, against a table in which one row lacks one column, as BUILD compiles it.
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
    ("Tanh", "step", "lacks .step or .fusion"),
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


def compiled(command: list[str], folder: pathlib.Path, build: pathlib.Path, table: str) -> str:
    """The compiler's output; empty if it compiles."""
    place = folder / TABLE
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(table)
    done = subprocess.run([*command, f"-I{folder}", "-fsyntax-only"], cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120)
    return done.stdout if done.returncode != 0 else ""


def main() -> int:
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
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
        for op, column, expected in [("", "", ""), *CASES]:
            said = compiled(whole, folder, build, without(table, op, column) if op else table)
            right = expected in said if op else not said
            failed += not right
            what = f"{op} without .{column}" if op else "the table as it is"
            print(f"{'PASS' if right else 'FAIL'} {what}" + ("" if right else f": {' '.join(said.split())[:300]}"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
