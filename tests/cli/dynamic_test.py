#!/usr/bin/env python3
"""Compares dynamic programs with their static twins.

Each program of testdata/dynamic takes the sizes of its unknown dimensions as integer arguments. For two
sizes it is run as it is, refined from its arguments, and as a twin in which this script has written
the sizes into the text. Both must give the same bytes. Prints PASS, FAIL and SKIP lines.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SIZES = (3, 4)

# Where an unknown size is not the argument itself: (pattern, replacement by the size b), tried in
# order before every other '?' becomes b.
EXCEPTIONS = {
    "arange_dynamic": [
        (r"(-> |add %\w+, %\w+ : |return %\w+ : )tensor<\?xf32>",
         lambda b: rf"\1tensor<{2 * b}xf32>")],
    "broadcast_in_dim_poly_dynamic": [
        (r"tensor<\?x\?x4xf32>", lambda b: f"tensor<{b}x{2 * b}x4xf32>")],
    "eye_N_poly_M_poly_dynamic": [(r"tensor<\?x\?x", lambda b: f"tensor<{b}x{b + 2}x")],
    "jnp_pad_mode_constant_bminus1_dynamic": [
        (r"tensor<\?x(10|11)xf32>", lambda b: rf"tensor<{2 * b - 1}x\1xf32>"),
        (r"(real_dynamic_slice.*-> )tensor<\?x5xf32>", lambda b: rf"\1tensor<{b - 1}x5xf32>"),
        (r"(@_pad\(.*)tensor<\?x5xf32>", lambda b: rf"\1tensor<{b - 1}x5xf32>"),
        (r"(dynamic_pad .*\()tensor<\?x5xf32>(.*)tensor<\?x5xf32>",
         lambda b: rf"\1tensor<{b - 1}x5xf32>\2tensor<{2 * b - 1}x5xf32>"),
        (r"(stablehlo\.pad .*\()tensor<\?x5xf32>", lambda b: rf"\1tensor<{2 * b - 1}x5xf32>"),
        (r"(stablehlo\.pad .*)tensor<\?x5xf32>", lambda b: rf"\1tensor<{2 * b - 1}x5xf32>")],
    "pad_poly_padding_config_dynamic": [
        (r"(-> |return %\w+ : )tensor<\?x2xf32>",
         lambda b: rf"\1tensor<{2 + 2 * b + (b - 1) * b}x2xf32>")],
    "slice_in_dim_stride_2_even_dynamic": [
        (r"(-> |return %\w+ : )tensor<\?x4xf32>", lambda b: rf"\1tensor<{(b + 1) // 2}x4xf32>")],
    "collapse_dynamic": [(r"tensor<\?x\?x7xf32>", lambda b: f"tensor<{b}x{5 * b * b}x7xf32>")],
    "conv_general_dilated_1d_3_dynamic": [
        (r"-> tensor<5x\?x16xf32>", lambda b: f"-> tensor<5x{2 * b}x16xf32>"),
        (r"(return %\w+) : tensor<5x\?x16xf32>", lambda b: rf"\1 : tensor<5x{2 * b}x16xf32>")],
    "conv_general_dilated_1d_stride_2_even_dynamic": [
        (r"(-> |return %\w+ : )tensor<1x\?x16xf32>",
         lambda b: rf"\1tensor<1x{(b + 1) // 2}x16xf32>")],
    "einsum_4_alt_dynamic": [
        (r"-> tensor<3x\?xf32>", lambda b: f"-> tensor<3x{2 * b}xf32>"),
        (r"-> tensor<\?x5xf32>", lambda b: f"-> tensor<{2 * b}x5xf32>"),
        (r"(@_einsum\(.*)tensor<3x\?xf32>(.*)tensor<\?x5xf32>",
         lambda b: rf"\1tensor<3x{2 * b}xf32>\2tensor<{2 * b}x5xf32>"),
        (r"(dot_general.*)tensor<3x\?xf32>(.*)tensor<\?x5xf32>",
         lambda b: rf"\1tensor<3x{2 * b}xf32>\2tensor<{2 * b}x5xf32>")],
    "reduce_window_add_0_dynamic": [(r"tensor<\?x7xf32>", lambda b: f"tensor<{b - 1}x7xf32>")],
    "reduce_window_min_dynamic": [(r"tensor<\?x7xf32>", lambda b: f"tensor<{b - 1}x7xf32>")],
    "repeat_repeats_int_dynamic": [
        (r"-> tensor<\?x2xf32>", lambda b: f"-> tensor<{3 * b}x2xf32>"),
        (r"(return %\w+) : tensor<\?x2xf32>", lambda b: rf"\1 : tensor<{3 * b}x2xf32>")],
    "roll_dynamic": [
        (r"(concatenate.*)tensor<\?xf32>, tensor<\?xf32>\) -> tensor<\?xf32>",
         lambda b: rf"\1tensor<{4 * b}xf32>, tensor<{4 * b}xf32>) -> tensor<{8 * b}xf32>"),
        (r"(real_dynamic_slice.*)\(tensor<\?xf32>", lambda b: rf"\1(tensor<{8 * b}xf32>"),
        (r"tensor<\?xf32>", lambda b: f"tensor<{4 * b}xf32>")],
}


def with_sizes(name: str, text: str, size: int) -> str:
    """The text of the static twin."""
    for pattern, replacement in EXCEPTIONS.get(name, []):
        text = re.sub(pattern, replacement(size), text)
    lines = [line if line.startswith("//") else line.replace("?", str(size))
             for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def parameters(text: str) -> list[tuple[str, str]]:
    """Sizes and element type of each parameter of @main, e.g. ("?x4", "f32"); "" is rank 0."""
    signature = re.search(r"func\.func (?:public )?@main\((.*?)\) ->", text, re.S)
    if signature is None:
        raise ValueError("there is no @main")
    found = re.findall(r"%\w+: tensor<((?:[\d?]+x)*)([^>]+>?)>", signature.group(1))
    return [(dims.rstrip("x"), element) for dims, element in found]


def run(command: list[str]) -> str:
    """Runs a command; returns the text of its failure, or nothing."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[0]


def check(tenon: str, path: pathlib.Path, size: int) -> str:
    """The difference between the program and its twin at `size`, or nothing."""
    text = path.read_text()
    twin_text = with_sizes(path.stem, text, size)
    arguments: list[str] = []
    shapes: list[str] = []
    twin_parameters = parameters(twin_text)
    for index, (dims, element) in enumerate(parameters(text)):
        integer = dims == "" and element in ("i32", "i64")
        arguments += ["--arg", f"{index}={size if integer else f'random:{7 * index + 1}'}"]
        if "?" in dims:
            shapes += ["--shape", f"{index}={twin_parameters[index][0]}"]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "twin.mlir").write_text(twin_text)
        for program, extra, out in ((str(path), shapes, "dynamic"),
                                    (str(work / "twin.mlir"), [], "static")):
            why = run([tenon, "run", program, *arguments, *extra, "--out", str(work / out)])
            if why:
                return f"{out}: {why}"
        files = sorted(p.name for p in (work / "static").iterdir())
        if files != sorted(p.name for p in (work / "dynamic").iterdir()):
            return "other numbers of results"
        for name in files:
            if (work / "static" / name).read_bytes() != (work / "dynamic" / name).read_bytes():
                return f"{name} differs"
    return ""


def main() -> int:
    tenon = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build") / "tenon")
    data = os.environ.get("TENON_STABLEHLO_DATA")
    if not data:
        print("SKIP dynamic: TENON_STABLEHLO_DATA is not set")
        return 0
    cases = [(path, size) for path in sorted(pathlib.Path(data, "testdata/dynamic").glob("*.mlir"))
             for size in SIZES]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda case: check(tenon, *case), cases)
        for (path, size), why in zip(cases, outcomes):
            if why:
                failed += 1
                print(f"FAIL {path.stem} size {size}: {why}")
            else:
                print(f"PASS {path.stem} size {size}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
