"""Parts that the tests of `tenon aot` share: commands, arrays, programs that are compiled, linked, run and compared."""

import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/aot"
ARGUMENTS = [argument for argument in sys.argv[1:] if argument != "--full"]
BUILD = pathlib.Path(ARGUMENTS[0] if ARGUMENTS else os.environ.get("TENON_BUILD", ROOT / "build"))
TENON = os.environ.get("TENON", str(BUILD.resolve() / "tenon"))
CC = os.environ.get("CC", "cc").split()
CXX = os.environ.get("CXX", "c++").split()
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# Formats of struct, by the type's name.
FORMATS = {"f32": "f", "f64": "d", "s8": "b", "s16": "h", "s32": "i", "s64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
           "pred": "B", "c64": "f", "c128": "d", "s4": "b", "s2": "b", "u4": "B", "u2": "B"}
NPY_TYPES = {"f32": "<f4", "f64": "<f8", "s8": "|i1", "s16": "<i2", "s32": "<i4", "s64": "<i8", "u8": "|u1", "u16": "<u2", "u32": "<u4",
             "u64": "<u8", "pred": "|b1", "c64": "<c8", "c128": "<c16"}
# Objects may ask these of libc and libm.
LIBRARY = {"memcpy", "memmove", "memset", "memcmp", "fmod", "fmodf", "fmaxf", "fminf", "fma", "fmaf", "floor", "floorf", "ceil", "ceilf", "trunc", "truncf", "round",
           "roundf", "roundeven", "roundevenf", "rint", "rintf", "nearbyint", "nearbyintf"}


class Failure(Exception):
    """A failed check."""


class Skip(Exception):
    """A test whose prerequisite is missing."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


def equal(found, expected):
    expect(found == expected, f"found {found!r}, expected {expected!r}")


def run(*command, cwd=None, variables=None, cores=None):
    """Exit code and all output."""
    done = subprocess.run([*map(str, command)], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                          env={**os.environ, "NO_COLOR": "1", **(variables or {})},
                          preexec_fn=cores and (lambda: os.sched_setaffinity(0, cores)))
    return done.returncode, done.stdout


def check_run(*command, cwd=None, variables=None, cores=None):
    code, output = run(*command, cwd=cwd, variables=variables, cores=cores)
    expect(code == 0, f"{' '.join(map(str, command))}: status {code}: {output[-1500:]}")
    return output


def aot(folder, source, *options, name="model"):
    """Compiles a program, given as text or as the path of a file, and returns the folder of the model and its report."""
    path = source
    if not isinstance(source, pathlib.Path):
        path = folder / f"{name}.mlir"
        path.write_text(source)
    out = folder / name
    return out, report_of(check_run(TENON, "aot", path, "-o", out, "--name", name, "--json", *options))


def report_of(said):
    """The report that --json printed, without warnings."""
    return json.loads(re.sub("^warning: .*\n", "", said, flags=re.MULTILINE))


def symbols_of(path):
    """Names that an object needs, and names that it defines for others. nm would look for plug-ins first."""
    needed, defined = set(), set()
    for line in check_run("readelf", "-sW", path).splitlines():
        row = line.split()
        if len(row) == 8 and row[4] in ("GLOBAL", "WEAK"):
            (needed if row[6] == "UND" else defined).add(row[7])
    return needed, defined


def compile_c(out, source, *options, name="model", library=None, compiler=None):
    program = out / f"{pathlib.Path(source).stem}_program"
    check_run(*(compiler or CC), "-std=c11", "-O1", *STRICT, f"-I{out}", *options, source, library or out / f"lib{name}.a", "-lm", "-o", program)
    return program


def harness(out, *options, name="model", library=None, compiler=None):
    return compile_c(out, HERE / "harness.c", f'-DHEADER="{name}.h"', f"-DMODEL={name}_model", *options, name=name, library=library,
                     compiler=compiler)


def arrays_of(text):
    """Types and sizes of the function @main of a StableHLO text: those of its arguments and those of its results."""
    head = re.search(r"@main\((.*?)\)\s*->\s*(.*?)\s*(?:attributes.*)?\{\n", text, re.DOTALL)
    expect(head is not None, "no function @main with results")

    def types(part):
        found = re.findall(r"tensor<((?:\d+x)*)(complex<f\d+>|\w+)>", part)
        names = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}
        return [(names.get(kind, re.sub(r"^ui", "u", re.sub(r"^i", "s", kind))), [int(size) for size in dims.split("x") if size])
                for dims, kind in found]
    return types(head.group(1)), types(head.group(2))


def count(dims):
    total = 1
    for size in dims:
        total *= size
    return total


def random_bytes(kind, dims, seed):
    numbers = random.Random(seed)
    parts = count(dims) * (2 if kind.startswith("c") else 1)
    if kind == "pred":
        return bytes(numbers.randrange(2) for _ in range(parts))
    if FORMATS[kind] in "fd":
        return b"".join(struct.pack("<" + FORMATS[kind], numbers.uniform(-1, 1)) for _ in range(parts))
    return b"".join(struct.pack("<" + FORMATS[kind], numbers.randrange(0, 3)) for _ in range(parts))


def write_npy(path, kind, dims, data):
    shape = "(" + "".join(f"{size}," for size in dims) + ")"
    header = f"{{'descr': '{NPY_TYPES[kind]}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def npy_data(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<H", data[8:10])
    return data[10 + length:]


RUNS = {}  # Results of `tenon run`, by program, device and arguments: several tests compile one program in different ways.


def results_of_run(folder, program, arguments, results, device="cpu"):
    """The bytes of the results of `tenon run`; on the CPU on one core, as code ahead of time is for one thread, and without AMX, which it has not."""
    key = (pathlib.Path(program).read_bytes(), device, tuple(path.read_bytes() for path in arguments))
    if key not in RUNS:
        out = folder / "run"
        check_run(TENON, "run", program, f"--device={device}", "--strict", "--out", out, *[f"--arg={i}=@{path}" for i, path in enumerate(arguments)],
                  variables={"TENON_CPU_WITHOUT": "tiles"}, cores={min(os.sched_getaffinity(0))} if device == "cpu" else None)
        RUNS[key] = [npy_data(out / f"out_{i}.npy") for i in range(results)]
    return RUNS[key]


def differs(kind, found, expected, tolerance):
    """Why the bytes of two arrays differ, or nothing. Floats may differ by a tolerance."""
    if found == expected:
        return ""
    if len(found) != len(expected):
        return f"{len(found)} bytes, expected {len(expected)}"
    if kind not in FORMATS or FORMATS[kind] not in "fd":
        return "other bytes"
    form = f"<{len(found) // struct.calcsize(FORMATS[kind])}{FORMATS[kind]}"
    for i, (a, b) in enumerate(zip(struct.unpack(form, found), struct.unpack(form, expected))):
        if abs(a - b) > tolerance * max(1, abs(b)) and not (a != a and b != b):
            return f"element {i} is {a}, expected {b}"
    return ""


def random_arguments(folder, arguments):
    """Arguments as files of NumPy, whose paths are returned, and one after the other in the file `arguments`."""
    paths = []
    given = b""
    for i, (kind, dims) in enumerate(arguments):
        data = random_bytes(kind, dims, i)
        paths.append(folder / f"arg_{i}.npy")
        write_npy(paths[-1], kind, dims, data)
        given += data
    (folder / "arguments").write_bytes(given)
    return paths


def check_results(found, expected, types, tolerance=0):
    """Compares bytes that stand one after the other with those of each result."""
    at = 0
    for i, (each, (kind, _)) in enumerate(zip(expected, types)):
        why = differs(kind, found[at:at + len(each)], each, tolerance)
        expect(not why, f"result {i}: {why}")
        at += len(each)
    equal(at, len(found))


def compare(folder, text, *options, name="model", tolerance=0, harness_options=(), library=None, compiler=None, emulator=()):
    """Compiles a program, runs it on random arguments, and compares the results with those of `tenon run`."""
    arguments, results = arrays_of(text)
    out, report = aot(folder, text, *options, name=name)
    paths = random_arguments(folder, arguments)
    program = harness(out, *harness_options, name=name, library=library and out / library, compiler=compiler)
    check_run(*emulator, program, "main", folder / "arguments", folder / "results")
    expected = results_of_run(folder, folder / f"{name}.mlir", paths, len(results))
    check_results((folder / "results").read_bytes(), expected, results, tolerance)
    return out, report


def run_tests(tests):
    """Runs the functions test_… among those that are given, and prints a line for each; the status of the process."""
    failed = 0
    for name, test in tests.items():
        if not name.startswith("test_") or (len(ARGUMENTS) > 1 and name not in ARGUMENTS[1:]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(pathlib.Path(folder).resolve())
                print(f"PASS {name}", flush=True)
            except Skip as skipped:
                print(f"SKIP {name}: {skipped}", flush=True)
            except (Failure, subprocess.TimeoutExpired, OSError, ValueError, KeyError) as error:
                failed += 1
                print(f"FAIL {name}: {' '.join(str(error).split())}", flush=True)
    return 1 if failed else 0
