#!/usr/bin/env python3
"""Runs one step of the tests of a backend, and prints which programs are wrong.

    run.py TOOL PLUGIN STEP

TOOL is the command `tenon`, PLUGIN the backend's shared library. STEP is 1_devices (the backend is found and lists its
devices), 10_errors (failures end with an error text), or the name of a file of programs/: each program runs on
the backend, strict and with the rules of the interface checked, and on Tenon's own interpreter of kernels; the
results must be the same bits, or within the tolerance that the program states. For types whose denormals the device
flushes, as its target says, a denormal and a zero are equal.

A file has a program after each line "// ----- NAME". These lines may follow it: "// args: …" has arguments of `tenon run
--arg`; "// tolerance: X" is the greatest difference, absolute or relative; "// each: A B …" makes a program of each word,
which replaces EACH; "// moves" states that the program moves arrays and computes nothing, so that no kernel has to run.
In every other program at least one kernel must run.
"""

import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 60  # seconds a program


class Program:
    """One program of a file and how to run it."""

    def __init__(self, name, text):
        self.name = name
        self.moves = "// moves\n" in text
        self.text = text
        found = re.search(r"^// tolerance: (\S+)$", text, re.MULTILINE)
        self.tolerance = float(found.group(1)) if found else 0.0
        found = re.search(r"^// args: (.*)$", text, re.MULTILINE)
        self.arguments = [word for each in (found.group(1).split() if found else []) for word in ("--arg", each)]


def programs_of(path):
    programs = []
    for part in re.split(r"^// ----- ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, text = part.split("\n", 1)
        each = re.search(r"^// each: (.*)$", text, re.MULTILINE)
        for word in each.group(1).split() if each else [""]:
            programs.append(Program(name.replace("EACH", word), text.replace("EACH", word)))
    return programs


def run(command, text="", **variables):
    """Exit status, output and errors of a command; a time-out is status -1."""
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, **variables})
        return done.returncode, done.stdout, done.stderr.strip()
    except subprocess.TimeoutExpired:
        return -1, "", f"no end after {LIMIT} s"


def numbers(value):
    """The elements of nested lists; infinities and NaN are written as text there."""
    if isinstance(value, list):
        for each in value:
            yield from numbers(each)
    else:
        yield float(value)


# The least normal number of each type.
LEAST_NORMAL = {"f64": 2.0**-1022, "f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-14}


def flushed_types(rows, plugin):
    """The types whose denormals the plug-in's devices flush. `rows` are those of `tenon devices --json`."""
    lines = [line for row in rows if plugin in row["description"] for line in row.get("target", [])]
    return {name for line in lines if line.startswith("flushed ") for name in line.split()[1:]}


def without_denormals(result, flushed):
    least = LEAST_NORMAL.get(result["type"], 0.0) if result["type"] in flushed else 0.0

    def of(value):
        if isinstance(value, list):
            return [of(each) for each in value]
        return math.copysign(0.0, value) if isinstance(value, (int, float)) and abs(value) < least else value

    return {**result, "value": of(result["value"])}


def difference(found, expected, tolerance, flushed=frozenset()):
    """The difference between two results, or nothing. Both are as `tenon run --json` writes them."""
    found, expected = (without_denormals(each, flushed) for each in (found, expected))
    # All NaNs are equal.
    if json.dumps(found).replace("-nan", "nan") == json.dumps(expected).replace("-nan", "nan"):
        return ""
    if (found["type"], found["dims"]) != (expected["type"], expected["dims"]):
        return f"is {found['type']}{found['dims']}, expected {expected['type']}{expected['dims']}"
    for index, (x, y) in enumerate(zip(numbers(found["value"]), numbers(expected["value"]))):
        same = x == y and math.copysign(1, x) == math.copysign(1, y)
        if not same and not (math.isnan(x) and math.isnan(y)) and not abs(x - y) <= tolerance * max(1, abs(y)):
            return f"element {index} is {x!r}, expected {y!r}"
    return "" if tolerance else "differs beyond the digits of a double"


def check(tool, plugin, flushed, program):
    """The fault of a program on the backend, or nothing."""
    command = [tool, "run", "-", "--json", *program.arguments]
    status, expected, errors = run([*command, "--device=interp"], program.text)
    if status != 0:
        return f"the interpreter of kernels fails: {errors}"
    status, found, errors = run([*command, f"--device={plugin}", "--strict", "--layer=validate"], program.text)
    if status != 0:
        return errors or f"exit status {status}"
    if json.loads(found)["steps"]["device"] == 0 and not program.moves:
        return "nothing of it ran on the device"
    results = zip(json.loads(found)["results"], json.loads(expected)["results"], strict=True)
    for number, (x, y) in enumerate(results):
        wrong = difference(x, y, program.tolerance, flushed)
        if wrong:
            return f"result {number}: {wrong}"
    return ""


def check_programs(tool, plugin, step):
    programs = programs_of(HERE / "programs" / f"{step}.mlir")
    flushed = flushed_types(devices(tool, plugin)[0], plugin)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda program: check(tool, plugin, flushed, program), programs)
        return [(program.name, wrong) for program, wrong in zip(programs, found)]


def devices(tool, plugin):
    """The plug-in's rows of `tenon devices --json`, which finds it in its folder, and what was said besides."""
    status, found, errors = run([tool, "devices", "--json"], TENON_PLUGIN_PATH=str(pathlib.Path(plugin).parent))
    rows = [row for row in json.loads(found) if plugin in row["description"]] if status == 0 else []
    return rows, errors or f"'tenon devices' does not list it:\n{found}"


def check_devices(tool, plugin):
    """The plug-in is found in a folder, loads, and has devices."""
    rows, said = devices(tool, plugin)
    if not rows:
        return [("found", said)]
    return [("found", ""), ("available", "" if rows[0]["state"] == "available" else rows[0]["description"])]


SMALL = """func.func @main(%x: tensor<64x64xi32>) -> tensor<64x64xi32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0]
    : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi32>
  return %1 : tensor<64x64xi32>
}
"""
# PORT: settings that leave your device too little memory, or no device at all, and a word of the error text.
STARVED = {"TENON_CHIP_MEMORY": "4096"}, "memory"
ABSENT = {"TENON_CHIP": "/nowhere/chip"}, "does not start"


def check_errors(tool, plugin):
    """No failure hangs, ends the process, or is taken for a result."""
    command = [tool, "run", "-", "--arg=0=1", "--strict", f"--device={plugin}"]
    outcomes = []
    for name, (variables, word) in {"too little memory": STARVED, "no device": ABSENT}.items():
        status, _, errors = run(command, SMALL, **variables)
        said = status == 1 and word in errors
        outcomes.append((name, "" if said else f"exit status {status}, says '{errors}', nothing of '{word}'"))
    # Tenon makes the 1st, 2nd, … call of a kind fail, or loses the device there. Tenon recovers from some failures by itself.
    # Without a failure there must be a result: else each error below might be the same one.
    status, right, errors = run(command, SMALL)
    ran = status == 0 and right.strip()
    outcomes.append(("nothing fails", "" if ran else f"exit status {status}, says '{errors}'"))
    if not ran:
        return outcomes

    def fault(kind):
        for count in range(1, 7):
            status, found, errors = run([*command, "--layer=faults"], SMALL, TENON_FAULTS=f"{kind}@{count}")
            if not (status == 0 and found == right or status == 1 and errors):
                return f"at {kind} {count}: exit status {status}: {errors or 'other results'}"
        return ""

    kinds = ("open", "load", "allocate", "copy", "launch", "record", "event", "lost")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return outcomes + [(f"{kind} fails", wrong) for kind, wrong in zip(kinds, pool.map(fault, kinds))]


def main():
    tool, plugin, step = sys.argv[1:]
    plugin = str(pathlib.Path(plugin).resolve())
    if step == "1_devices":
        outcomes = check_devices(tool, plugin)
    elif step == "10_errors":
        outcomes = check_errors(tool, plugin)
    else:
        outcomes = check_programs(tool, plugin, step)
    for name, wrong in outcomes:
        print(f"WRONG {name}: {wrong}" if wrong else f"right {name}")
    bad = [name for name, wrong in outcomes if wrong]
    print(f"{step}: {len(outcomes) - len(bad)} right, {len(bad)} wrong" + (": " + ", ".join(bad) if bad else ""))
    return 1 if bad or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
