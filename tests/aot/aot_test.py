#!/usr/bin/env python3
"""`tenon aot`: models are compiled, linked into programs in C, C++, Python and Rust, and give the results of `tenon run --device cpu`.

    aot_test.py [BUILD] [--full] [TEST…]      the command is $TENON, else BUILD/tenon, else build/tenon; --full: every data file and
                                              sample, and every program on each other machine

Prints a line "PASS name", "FAIL name: why" or "SKIP name: why" a test.
"""

import ctypes
import json
import os
import pathlib
import platform
import random
import re
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "samples/aot/lstm"))

import lstm  # noqa: E402
import programs  # noqa: E402
from gpu_support import samples  # noqa: E402
from support import (BUILD, CC, CXX, LIBRARY, ROOT, STRICT, TENON, Failure, Skip, aot, arrays_of, check_run,  # noqa: E402
                     compare, compile_c, differs, equal, expect, harness, npy_data, random_bytes, results_of_run, run, run_tests, symbols_of)


# --- Results


def test_results_are_those_of_run(folder):
    for name, text in programs.PROGRAMS:
        inner = folder / name
        inner.mkdir()
        try:
            compare(inner, text)
            compare(inner, text, "--optimize=size", "--arena=stack" if name != "large_product" else "--arena=caller")
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from failure


def test_samples(folder):
    """Every other one, with --full each; aot_gpu_test has the others."""
    for name, sample, inputs in list(samples())[::1 if "--full" in sys.argv else 2]:
        inner = folder / name
        inner.mkdir()
        code, output = run(TENON, "aot", sample, "-o", inner, "--name", "model", "--json")
        expect(code == 0, f"{name}: {output}")
        _, results = arrays_of(sample.read_text())
        (inner / "arguments").write_bytes(b"".join(map(npy_data, inputs)))
        check_run(harness(inner), "main", inner / "arguments", inner / "results")
        found = (inner / "results").read_bytes()
        at = 0
        for i, (expected, (kind, _)) in enumerate(zip(results_of_run(inner, sample, inputs, len(results)), results)):
            why = differs(kind, found[at:at + len(expected)], expected, 0)
            expect(not why, f"{name}: result {i}: {why}")
            at += len(expected)
        equal(at, len(found))


def test_processors(folder):
    """Code for each level of x86-64 that this machine runs; for others it is written."""
    if platform.machine() != "x86_64":
        raise Skip("no x86-64")
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    wanted = {"x86-64": "sse2", "x86-64-v2": "sse4_2", "x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}
    for level, flag in wanted.items():
        for name in ("elementwise", "products", "narrow", "softmax"):
            inner = folder / f"{level}_{name}"
            inner.mkdir()
            text = dict(programs.PROGRAMS)[name]
            if f" {flag} " in flags:
                # Without FMA contractions are kernels, which add in another order; so do rows in shorter vectors.
                exact = level == "x86-64-v4" or (level == "x86-64-v3" and name != "softmax")
                compare(inner, text, f"--cpu={level}", tolerance=0 if exact else 1e-5)
            else:
                aot(inner, text, f"--cpu={level}")
        disassembly = check_run("objdump", "-d", folder / f"{level}_softmax/model/libmodel.a")
        equal(("%zmm" in disassembly, "%ymm" in disassembly), (level == "x86-64-v4", level in ("x86-64-v3", "x86-64-v4")))


# Programs with sums of rows, whose order depends on the width of vectors.
ROWS = ("softmax",)
MACHINES = [  # Target, options, and the commands that link and run its programs.
    ("aarch64-linux-gnu", [], "aarch64-linux-gnu-gcc", "qemu-aarch64-static"),
    ("riscv64-linux-gnu", [], "riscv64-linux-gnu-gcc", "qemu-riscv64-static"),
    ("armv7-linux-gnueabihf", ["--features=+neon,+vfp4"], "arm-linux-gnueabihf-gcc", "qemu-arm-static"),
]


def test_other_machines(folder):
    """Programs of other machines give the results of this one in an emulator: each on two of the three, with --full on all."""
    if not (BUILD / "tenon-aot-cross").exists():
        raise Skip("no tenon-aot-cross")
    ran = []
    for machine, (target, options, compiler, emulator) in enumerate(MACHINES):
        is_there = shutil.which(compiler) and shutil.which(emulator)
        for i, (name, text) in enumerate(programs.PROGRAMS):
            if (i + machine) % len(MACHINES) == 2 and "--full" not in sys.argv:
                continue
            if name == "large_product":  # Large enough to be packed, with the same tiles; an emulator takes seconds for more.
                text = text.replace("700x", "232x").replace("x900x", "x330x")
            inner = folder / f"{target}_{name}"
            inner.mkdir()
            if not is_there:
                aot(inner, text, f"--target={target}", *options)
                continue
            try:
                _, report = compare(inner, text, f"--target={target}", *options, harness_options=["-static"], compiler=[compiler],
                                    emulator=[emulator], tolerance=1e-6 if name in ROWS else 0)
                expect(name != "large_product" or report["functions"][0]["arena_bytes"] > 0, "nothing is packed")
            except Failure as failure:
                raise Failure(f"{target}: {name}: {failure}") from failure
        ran += [target] if is_there else []
    _, report = aot(folder, lstm.lstm(), "--target=thumbv7em-none-eabihf", "--cpu=cortex-m7", "--library=object")
    expect(0 < report["code_bytes"] < 16 * 1024, f"{report['code_bytes']} bytes of code for a microcontroller")
    if not ran:
        raise Skip("no compiler and emulator of another machine; code was written for each")


def test_data_files(folder):
    """Programs with inputs that the compiler may not look into."""
    data = os.environ.get("TENON_STABLEHLO_DATA")
    if not data:
        raise Skip("TENON_STABLEHLO_DATA is not set")
    compared = 0
    for path in sorted((pathlib.Path(data) / "testdata").glob("*.mlir"))[::1 if "--full" in sys.argv else 60]:
        text = re.sub(r"^.*(?:@check\.|= call @expected|= func\.call @expected).*\n", "", path.read_text(), flags=re.MULTILINE)
        inputs = re.search(r"^( *)(%\w+)((?::\d+)?) = (?:func\.)?call @inputs\(\) : \(\) -> (.*)$", text, re.MULTILINE)
        if inputs is None or "?" in text or "quant" in text:
            continue
        indent, name, many, types = inputs.groups()
        values = ", ".join(f"%in#{i}" for i in range(int(many[1:]))) if many else "%in"
        text = text.replace(inputs.group(0), f"{indent}%in{many} = call @inputs() : () -> {types}\n"
                            f"{indent}{name}{many} = stablehlo.optimization_barrier {values} : {types.strip('()')}")
        _, results = arrays_of(text)
        inner = folder / path.stem
        inner.mkdir()
        (inner / "model.mlir").write_text(text)
        try:
            expected_results = results_of_run(inner, inner / "model.mlir", [], len(results))
        except Failure:
            continue
        try:
            out, _ = aot(inner, text)
            (inner / "arguments").write_bytes(b"")
            check_run(harness(out), "main", inner / "arguments", inner / "results")
            found = (inner / "results").read_bytes()
            at = 0
            for i, (expected, (kind, _)) in enumerate(zip(expected_results, results)):
                why = differs(kind, found[at:at + len(expected)], expected, 0)
                expect(not why, f"result {i}: {why}")
                at += len(expected)
        except Failure as failure:
            raise Failure(f"{path.name}: {failure}") from failure
        compared += 1
        shutil.rmtree(inner)
    expect(compared > 10, f"only {compared} files")
    if "--full" in sys.argv:
        print(f"  {compared} data files have the same bits")


# --- The object


def test_symbols_and_sections(folder):
    """An object needs libc and libm alone, has no state, and nothing that runs before main."""
    for name, text in programs.PROGRAMS:
        inner = folder / name
        inner.mkdir()
        out, _ = aot(inner, text, "--library=object")
        needed, defined = symbols_of(out / "model.o")
        expect(needed <= LIBRARY | {"_GLOBAL_OFFSET_TABLE_"}, f"{name} needs {needed - LIBRARY}")
        equal(defined, {"model_main", "model_main_run", "model_model"})
        for line in check_run("readelf", "-SW", out / "model.o").splitlines():
            section = re.match(r"\s*\[\s*\d+\]\s+(\.\S+)\s+\S+\s+\S+\s+\S+\s+(\S+)\s+\S+\s+([A-Z]*)\s", line)
            if section is None or int(section.group(2), 16) == 0:
                continue
            kind, flags = section.group(1), section.group(3)
            writable = "W" in flags and not kind.startswith(".data.rel.ro")
            expect(not writable and "init_array" not in kind and "eh_frame" not in kind, f"{name} has {kind} {flags}")


def test_without_a_c_library(folder):
    if platform.machine() != "x86_64":
        raise Skip("its start is written for x86-64")
    out, _ = aot(folder, dict(programs.PROGRAMS)["softmax"], "--library=object")
    source = folder / "free.c"
    source.write_text("""#include "model.h"
void* memset(void* to, int value, size_t n) { unsigned char* p = to; while (n-- > 0) *p++ = (unsigned char)value; return to; }
void* memcpy(void* to, const void* from, size_t n) { unsigned char* p = to; const unsigned char* q = from; while (n-- > 0) *p++ = *q++; return to; }
static _Alignas(64) float x[MODEL_MAIN_X0_COUNT], y[MODEL_MAIN_Y0_COUNT];
static _Alignas(64) unsigned char arena[MODEL_MAIN_ARENA_BYTES + 1];
__attribute__((force_align_arg_pointer, noreturn)) void _start(void) {
  model_main(x, y, arena);
  const long status = y[0] * 61 > 0.999f && y[0] * 61 < 1.001f ? 0 : 1;
  __asm__ volatile("syscall" : : "a"(60L), "D"(status) : "memory");
  for (;;) {}
}
""")
    check_run("ld", "-r", out / "model.o", "-o", folder / "again.o")
    check_run(*CC, "-std=gnu11", "-O1", *STRICT, "-ffreestanding", "-nostdlib", "-static", "-fno-builtin", "-fno-stack-protector", f"-I{out}", source, folder / "again.o",
              "-o", folder / "free")
    check_run(folder / "free")


def test_the_same_object_each_time(folder):
    text = dict(programs.PROGRAMS)["products"]
    one, _ = aot(folder, text, "--library=object")
    first = (one / "model.o").read_bytes()
    aot(folder, text, "--library=object")
    equal((one / "model.o").read_bytes() == first, True)


def test_report(folder):
    out, report = aot(folder, lstm.lstm(units=8, steps=3))
    equal(report["name"], "model")
    equal([each["symbol"] for each in report["functions"]], ["model_main"])
    code = sum(each["bytes"] for each in report["symbols"] if each["code"])
    equal(report["code_bytes"], code)
    expect(report["constant_bytes"] >= 3 * (16 * 32 + 32) * 4, f"constants of {report['constant_bytes']} bytes")
    equal(report["object_bytes"] > code + report["constant_bytes"], True)
    text = check_run(TENON, "aot", folder / "model.mlir", "-o", out, "--name=model")
    for part in ("code, ", "constants in the object", "arena of model_main", "\nfunctions\n", "\nconstants\n", "wrote "):
        expect(part in text, f"{part!r} is not in {text!r}")
    timed = json.loads(check_run(TENON, "aot", folder / "model.mlir", "-o", out, "--bench", "--json"))
    expect(timed["functions"][0]["times"]["median"] > 0, "no times")


def test_optimize_size_is_smaller(folder):
    text = lstm.lstm()
    _, fast = aot(folder, text, "--optimize=speed", name="fast")
    _, small = aot(folder, text, "--optimize=size", name="small")
    expect(small["code_bytes"] <= fast["code_bytes"], f"{small['code_bytes']} bytes of code, {fast['code_bytes']} for speed")


def test_lstm(folder):
    """A network of a phone: its weights, and a few kilobytes of code."""
    _, report = compare(folder, lstm.lstm())
    weights = 3 * (120 * 240 + 240) * 4
    expect(weights <= report["constant_bytes"] <= weights + 4096, f"{report['constant_bytes']} bytes of constants, {weights} of weights")
    expect(report["code_bytes"] < 64 * 1024, f"{report['code_bytes']} bytes of code")


# --- Forms


def test_library_forms(folder):
    text = dict(programs.PROGRAMS)["loop"]
    for form, library in (("static", None), ("object", "model.o"), ("shared", "libmodel.so")):
        inner = folder / form
        inner.mkdir()
        compare(inner, text, f"--library={form}", library=library, harness_options=[f"-Wl,-rpath,{inner / 'model'}"])


def test_weights_in_a_file(folder):
    text = lstm.lstm()
    out, report = compare(folder, text, "--weights=file", harness_options=[f'-DWEIGHTS="{folder / "model/model.weights"}"'])
    weights = (out / "model.weights").stat().st_size
    equal(report["weights_bytes"], weights)
    expect(weights >= 3 * (120 * 240 + 240) * 4 and report["constant_bytes"] < 4096, f"{weights} and {report['constant_bytes']} bytes")
    check_run(compile_c(out, out / "model_example.c"), cwd=out)


def test_weights_in_panels(folder):
    """Constant weights lie as tiles read them, also in the object: as many bytes, the results of `tenon run` with weights as arguments."""
    numbers = random.Random(4)
    product, filters = lstm.dense(numbers, 96 * 256, 1), lstm.dense(numbers, 3 * 3 * 32 * 64, 1)
    types = ("tensor<1x8x8x32xf32>", "tensor<96x256xf32>", "tensor<3x3x32x64xf32>")
    body = """  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x32xf32>, tensor<3x3x32x64xf32>) -> tensor<1x6x6x64xf32>
  %1 = stablehlo.reshape %0 : (tensor<1x6x6x64xf32>) -> tensor<24x96xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<24x96xf32>, tensor<96x256xf32>) -> tensor<24x256xf32>
  return %2 : tensor<24x256xf32>
}
"""
    text = f"""func.func @main(%x: {types[0]}) -> tensor<24x256xf32> {{
  %w = stablehlo.constant dense<{product}> : {types[1]}
  %k = stablehlo.constant dense<{filters}> : {types[2]}
{body}"""
    for options in ((), ("--cpu=x86-64-v3",) if platform.machine() == "x86_64" else (), ("--optimize=size",)):
        inner = folder / ("plain" if not options else options[0].strip("-").replace("=", "-"))
        inner.mkdir(exist_ok=True)
        _, report = compare(inner, text, *options)
        large = [each for each in report["constants"] if each["bytes"] > 4096]
        equal(sum(each["bytes"] for each in large), 4 * (96 * 256 + 3 * 3 * 32 * 64))
        expect(all(each["shape"].count(",") > 1 for each in large), f"no panels: {large}")
    # Functions of other sizes share their weights.
    rows = "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<{0}x96xf32>, tensor<96x256xf32>) -> tensor<{0}x256xf32>\n  return %0 : tensor<{0}x256xf32>\n}}\n"
    (folder / "two.mlir").write_text("".join(f"func.func @f{n}(%x: tensor<{n}x96xf32>) -> tensor<{n}x256xf32> {{\n"
                                             f"  %w = stablehlo.constant dense<{product}> : {types[1]}\n{rows.format(n)}" for n in (1, 24)))
    shared = json.loads(check_run(TENON, "aot", folder / "two.mlir", "-o", folder / "two", "--json"))
    equal([each["bytes"] for each in shared["constants"] if each["bytes"] > 4096], [4 * 96 * 256])


def test_weights_of_two_bytes(folder):
    """Half of the bytes, and results that differ by the rounding of weights alone."""
    for kind in ("bf16", "f16"):
        inner = folder / kind
        inner.mkdir()
        _, report = compare(inner, lstm.lstm(), f"--weights-type={kind}", tolerance=5e-3)
        weights = 3 * 120 * 240 * 2
        expect(weights <= report["constant_bytes"] <= weights + 8192, f"{report['constant_bytes']} bytes of constants")
        expect(report["functions"][0]["arena_bytes"] < 16384, "the weights are in the arena")
        equal(sorted(each["shape"] for each in report["constants"] if each["bytes"] > 8192), [f"{kind}[120,240]"] * 3)
    weights = random.Random(3)
    text = f"""func.func @main(%x: tensor<20000xf32>) -> tensor<20000xf32> {{
  %w = stablehlo.constant dense<{lstm.dense(weights, 20000, 1)}> : tensor<20000xf32>
  %0 = stablehlo.add %x, %w : tensor<20000xf32>
  return %0 : tensor<20000xf32>
}}
"""
    inner = folder / "sum"
    inner.mkdir()
    _, report = compare(inner, text, "--weights-type=bf16", tolerance=5e-3)
    equal([each["shape"] for each in report["constants"]], ["bf16[20000]"])


def test_weights_of_one_byte(folder):
    """Integers with a scale for each column, which products read, also on the left; other ops get the numbers back."""
    _, report = compare(folder, lstm.lstm(), "--weights-type=s8", tolerance=5e-2)
    equal(sorted((each["shape"] for each in report["constants"] if each["bytes"] > 8192)), ["s8[120,240]"] * 3)
    expect(report["constant_bytes"] < 3 * (120 * 240 + 2 * 240 * 4) + 2048, f"{report['constant_bytes']} bytes of constants")
    expect(report["functions"][0]["arena_bytes"] < 16384, "the weights are in the arena")
    numbers = random.Random(2)
    weights = lstm.dense(numbers, 2 * 40 * 64, 1)
    def products(op, results, types):
        return f"""func.func @main(%x: tensor<2x40x3xf32>, %y: tensor<2x5x64xf32>) -> ({types}) {{
  %w = stablehlo.constant dense<{weights}> : tensor<2x40x64xf32>
  %0 = stablehlo.dot_general %w, %x, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x40x64xf32>, tensor<2x40x3xf32>) -> tensor<2x64x3xf32>
  %1 = stablehlo.dot_general %y, %w, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x5x64xf32>, tensor<2x40x64xf32>) -> tensor<2x5x40xf32>
  {op}
  return {results} : {types}
}}
"""
    types = "tensor<2x64x3xf32>, tensor<2x5x40xf32>"
    for name, form, count, tolerance, text in (
            ("products", "s8[2,40,64]", 1, 0.15, products("", "%0, %1", types)),
            # 5,120 elements that not products alone read stay as they are.
            ("more", "f32[2,40,64]", 1, 0, products("%2 = stablehlo.negate %w : tensor<2x40x64xf32>", "%0, %1, %2", types + ", tensor<2x40x64xf32>"))):
        inner = folder / name
        inner.mkdir()
        _, report = compare(inner, text, "--weights-type=s8", tolerance=tolerance)
        equal([each["shape"] for each in report["constants"] if each["bytes"] > 4096], [form] * count)
    large = lstm.dense(numbers, 300 * 64, 1)
    text = f"""func.func @main(%i: tensor<7x1xi32>) -> tensor<7x64xf32> {{
  %w = stablehlo.constant dense<{large}> : tensor<300x64xf32>
  %0 = "stablehlo.gather"(%w, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}}> : (tensor<300x64xf32>, tensor<7x1xi32>) -> tensor<7x64xf32>
  return %0 : tensor<7x64xf32>
}}
"""
    inner = folder / "gather"
    inner.mkdir()
    _, report = compare(inner, text, "--weights-type=s8", tolerance=5e-3)
    expect("s8[300,64]" in [each["shape"] for each in report["constants"]], str(report["constants"]))
    filters = lstm.dense(numbers, 3 * 3 * 32 * 64, 0.2)
    text = f"""func.func @main(%x: tensor<1x8x8x32xf32>) -> tensor<1x6x6x64xf32> {{
  %k = stablehlo.constant dense<{filters}> : tensor<3x3x32x64xf32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{stride = [1, 1]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<1x8x8x32xf32>, tensor<3x3x32x64xf32>) -> tensor<1x6x6x64xf32>
  return %0 : tensor<1x6x6x64xf32>
}}
"""
    inner = folder / "convolution"
    inner.mkdir()
    _, report = compare(inner, text, "--weights-type=s8", tolerance=5e-2)
    expect(sum(each["bytes"] for each in report["constants"]) < 3 * 3 * 32 * 64 + 1024, str(report["constants"]))


def test_examples(folder):
    for name, text in programs.PROGRAMS:
        inner = folder / name
        inner.mkdir()
        out, _ = aot(inner, text)
        output = check_run(compile_c(out, out / "model_example.c"))
        expect("main y0:" in output, output)


def test_several_functions_and_names(folder):
    out, report = aot(folder, programs.TWO_FUNCTIONS)
    equal([each["symbol"] for each in report["functions"]], ["model_main", "model_twice"])
    header = (out / "model.h").read_text()
    for line in ("void model_main(const float* features, float* y0, void* arena);", "#define MODEL_MAIN_FEATURES_DIMS {8}",
                 "void model_twice(const float* x0, float* y0, void* arena);"):
        expect(line in header, f"{line!r} is not in {header}")
    program = harness(out)
    (folder / "arguments").write_bytes(struct.pack("<8f", *range(8)))
    for name, factor in (("main", -1), ("twice", 2)):
        check_run(program, name, folder / "arguments", folder / "results")
        equal(struct.unpack("<8f", (folder / "results").read_bytes()), tuple(factor * i for i in map(float, range(8))))
    # Names of models for GPUs are free.
    for name in ("stream", "gpu", "device"):
        out, _ = aot(folder, programs.TWO_FUNCTIONS.replace("features", name))
        expect(f"void model_main(const float* {name}, float* y0, void* arena);" in (out / "model.h").read_text(), f"no argument {name}")
        check_run(compile_c(out, out / "model_example.c"))
    _, one = aot(folder, programs.TWO_FUNCTIONS, "--entry=twice")
    equal([each["name"] for each in one["functions"]], ["twice"])


def test_donated_arguments_share_memory(folder):
    out, _ = aot(folder, programs.DONATED)
    expect("argument f32[100]; may have the memory of result y0" in (out / "model.h").read_text(), "no word of the shared memory")
    source = folder / "donated.c"
    source.write_text("""#include "model.h"
static _Alignas(64) float x[100], y[100];
static _Alignas(64) unsigned char arena[MODEL_MAIN_ARENA_BYTES + 1];
int main(void) {
  const int32_t i = 7;
  const float u = 3;
  for (int k = 0; k < 100; ++k) x[k] = (float)k;
  model_main(x, &i, &u, y, arena);
  if (x[7] != 7 || y[7] != 3 || y[99] != 99) return 1;
  model_main(x, &i, &u, x, arena);
  for (int k = 0; k < 100; ++k) if (x[k] != y[k]) return 2;
  return model_model.functions[0].arguments[0].shared == 0 && model_model.functions[0].results[0].shared == 0 ? 0 : 3;
}
""")
    check_run(compile_c(out, source))


def test_saved_programs(folder):
    (folder / "p.mlir").write_text(dict(programs.PROGRAMS)["softmax"])
    check_run(TENON, "opt", folder / "p.mlir", "--emit=program-bytes", "-o", folder / "p.tenon")
    out, _ = aot(folder, folder / "p.tenon")
    check_run(compile_c(out, out / "model_example.c"))


# --- Callers


def test_cpp(folder):
    out, _ = aot(folder, dict(programs.PROGRAMS)["products"], "--lang=c++")
    source = folder / "caller.cpp"
    source.write_text("""#include <array>
#include "model.hpp"
int main() {
  static std::array<float, 17 * 40> x;
  static std::array<float, 40 * 33> w;
  static std::array<float, 33> b;
  static std::array<float, 17 * 33> y;
  static std::array<double, 17 * 17> z;
  x.fill(1);
  w.fill(2);
  b.fill(0.5f);
  const model::Main run;
  if (!run.valid()) return 2;
  run(x, w, b, y, z);
  return y[0] == 80.5f && z[0] == 80.5 * 80.5 * 33 ? 0 : 1;
}
""")
    for compiler in {CXX[0], "clang++-19" if shutil.which("clang++-19") else CXX[0]}:
        check_run(compiler, "-std=c++20", *STRICT, f"-I{out}", source, out / "libmodel.a", "-o", folder / "caller")
        check_run(folder / "caller")


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("dims", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_uint64),
                ("rank", ctypes.c_int32), ("shared", ctypes.c_int32)]


class Function(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("arguments", ctypes.POINTER(Array)), ("results", ctypes.POINTER(Array)),
                ("argument_count", ctypes.c_int32), ("result_count", ctypes.c_int32), ("arena_bytes", ctypes.c_uint64),
                ("run", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p))]


class Model(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("alignment", ctypes.c_uint32), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p),
                ("hash", ctypes.c_char_p), ("target", ctypes.c_char_p), ("weights_bytes", ctypes.c_uint64), ("weights_hash", ctypes.c_char_p),
                ("functions", ctypes.POINTER(Function)), ("calls", ctypes.POINTER(ctypes.c_char_p)), ("function_count", ctypes.c_int32),
                ("call_count", ctypes.c_int32), ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32)]


def test_python_by_ctypes(folder):
    out, report = aot(folder, dict(programs.PROGRAMS)["softmax"], "--library=shared")
    library = ctypes.CDLL(str(out / "libmodel.so"))
    model = Model.in_dll(library, "model_model")
    equal((model.abi, model.name, model.hash.decode()), (1, b"model", report["hash"]))
    function = model.functions[0]
    equal((model.function_count, function.name, function.argument_count, function.result_count), (1, b"main", 1, 1))
    x = function.arguments[0]
    equal((x.type, x.dims[:x.rank], x.bytes, x.shared), (b"f32", [5, 61], 5 * 61 * 4, -1))

    def aligned(size):
        memory = ctypes.create_string_buffer(size + 64)
        return memory, (ctypes.addressof(memory) + 63) // 64 * 64
    kept, address = zip(*[aligned(int(size)) for size in (x.bytes, function.results[0].bytes, function.arena_bytes)])
    ctypes.memset(address[0], 0, x.bytes)
    equal(function.run((ctypes.c_void_p * 2)(*address[:2]), address[2], None), 0)
    values = (ctypes.c_float * 305).from_address(address[1])
    expect(all(abs(value - 1 / 61) < 1e-6 for value in values), f"{values[:3]} of {len(kept)} blocks")


def test_rust(folder):
    if shutil.which("rustc") is None:
        raise Skip("no rustc")
    out, _ = aot(folder, lstm.lstm(), name="lstm")
    check_run("rustc", "--edition=2021", "-O", ROOT / "samples/aot/lstm/lstm.rs", "-o", folder / "lstm_rs", "-L", f"native={out}", "-D", "warnings")
    output = check_run(folder / "lstm_rs")
    expect(re.search(r"^-?0\.\d+ ", output) is not None, output)


def test_cmake(folder):
    if run("cmake", "--version")[0] != 0:
        raise Skip("no cmake")
    for form in ("static", "shared", "object"):
        inner = folder / form
        inner.mkdir()
        out, _ = aot(inner, dict(programs.PROGRAMS)["loop"], f"--library={form}")
        (inner / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.16)\nproject(p C)\nset(CMAKE_C_STANDARD 11)\n"
                                              f"find_package(model CONFIG REQUIRED PATHS {out} NO_DEFAULT_PATH)\n"
                                              f"add_executable(p {out}/model_example.c)\ntarget_link_libraries(p model::model)\n")
        check_run("cmake", "-S", inner, "-B", inner / "b")
        check_run("cmake", "--build", inner / "b")
        expect("main y0: 7" in check_run(inner / "b/p"), "no result")


def test_pkg_config(folder):
    if shutil.which("pkg-config") is None:
        raise Skip("no pkg-config")
    for form in ("static", "shared", "object"):
        inner = folder / form
        inner.mkdir()
        out, _ = aot(inner, dict(programs.PROGRAMS)["loop"], f"--library={form}")
        code, flags = run("pkg-config", "--cflags", "--libs", out / "model.pc")
        equal(code, 0)
        check_run(*CC, "-std=c11", *STRICT, out / "model_example.c", *flags.split(), f"-Wl,-rpath,{out}", "-o", inner / "p")
        expect("main y0: 7" in check_run(inner / "p"), "no result")


# --- The samples of samples/aot


def made(folder, sample, *goals):
    """Copies a sample and makes it there."""
    shutil.copytree(ROOT / "samples/aot" / sample, folder / sample)
    check_run("make", "-s", f"TENON={TENON}", f"DIGITS={ROOT / 'samples/digits_inference'}", *goals, cwd=folder / sample)
    return folder / sample


def test_sample_of_a_network_of_a_phone(folder):
    """Under 400 KB, weights and C library included, where there is a small C library."""
    is_small = shutil.which("musl-gcc") is not None
    sample = made(folder, "lstm", *(["CC=musl-gcc"] if is_small else []))
    expect("us a call" in check_run(sample / "lstm"), "no time")
    if not is_small:
        raise Skip("no musl-gcc; with the system's C library it runs")
    weights = 3 * (120 * 240 + 240) * 4
    size = (sample / "lstm").stat().st_size
    expect(weights < size < 400_000 and size - weights < 60_000, f"{size} bytes, {weights} of them weights")


def test_sample_on_a_microcontroller(folder):
    sample = made(folder, "digits", "digits")
    here = check_run(sample / "digits")
    expect(re.fullmatch(r"(34[2-9]|35\d|360) of 360 images are right\n", here) is not None, here)
    if not (BUILD / "tenon-aot-cross").exists() or not shutil.which("clang-19") or not shutil.which("ld.lld-19"):
        raise Skip("nothing to compile for a board; here it is right")
    check_run("make", "-s", f"TENON={TENON}", "digits.elf", cwd=sample)
    if not shutil.which("qemu-system-arm"):
        raise Skip("no qemu-system-arm; here it is right")
    equal(check_run("make", "-s", "run", cwd=sample), here)


# --- Threads


REENTRANT = """#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
struct job { float seed; float x[MODEL_MAIN_X0_COUNT]; float y[MODEL_MAIN_Y0_COUNT]; float first[MODEL_MAIN_Y0_COUNT]; int wrong; };
static void* work(void* data) {
  struct job* const job = data;
  void* const arena = aligned_alloc(64, MODEL_MAIN_ARENA_BYTES / 64 * 64 + 64);
  for (int turn = 0; turn < 1000; ++turn) {
    model_main(job->x, job->y, arena);
    if (memcmp(job->y, job->first, sizeof job->y) != 0) ++job->wrong;
  }
  free(arena);
  return NULL;
}
int main(void) {
  static struct job jobs[8];
  pthread_t threads[8];
  void* const arena = aligned_alloc(64, MODEL_MAIN_ARENA_BYTES / 64 * 64 + 64);
  for (int t = 0; t < 8; ++t) {
    for (int i = 0; i < MODEL_MAIN_X0_COUNT; ++i) jobs[t].x[i] = (float)((i * 7 + t * 13) % 11) / 11 - 0.5f;
    model_main(jobs[t].x, jobs[t].first, arena);
  }
  free(arena);
  if (memcmp(jobs[0].first, jobs[1].first, sizeof jobs[0].first) == 0) return 3;
  for (int t = 0; t < 8; ++t) if (pthread_create(&threads[t], NULL, work, &jobs[t]) != 0) return 2;
  int wrong = 0;
  for (int t = 0; t < 8; ++t) {
    pthread_join(threads[t], NULL);
    wrong += jobs[t].wrong;
  }
  return wrong != 0;
}
"""


def test_several_threads_at_once(folder):
    out, _ = aot(folder, lstm.lstm())
    (folder / "threads.c").write_text(REENTRANT)
    check_run(compile_c(out, folder / "threads.c", "-pthread"))


def test_sanitizers(folder):
    """The caller's memory under ASan and UBSan; every access of the code itself under valgrind, which knows no AVX-512."""
    checked = []
    for name in ("lstm", "loop", "sorted", "scattered", "products", "convolved"):
        inner = folder / name
        inner.mkdir()
        text = lstm.lstm(steps=4) if name == "lstm" else dict(programs.PROGRAMS)[name]
        (inner / "arguments").write_bytes(b"".join(random_bytes(kind, dims, i) for i, (kind, dims) in enumerate(arrays_of(text)[0])))
        level = ["--cpu=x86-64-v3"] if platform.machine() == "x86_64" else []
        out, _ = aot(inner, text, *level)
        if level and " avx2 " not in pathlib.Path("/proc/cpuinfo").read_text():
            raise Skip("no AVX2")
        run_it = ["main", inner / "arguments", inner / "results"]
        checked_build = harness(out, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
        code, said = run(checked_build, *run_it, variables={"ASAN_OPTIONS": "detect_leaks=0"})  # The harness frees nothing.
        expect(code == 0, f"{name}: {said}")
        if shutil.which("valgrind"):
            check_run("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=no", harness(out), *run_it)
            checked.append(name)
    if not checked:
        raise Skip("no valgrind; ASan and UBSan found nothing")


PARALLEL = """#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>
#include "model.hpp"
#include "%(header)s"
int main() {
  std::vector<float> x(700 * 300), w(300 * 900), one(700 * 900), many(700 * 900);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i %% 17) / 17 - 0.5f;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i %% 23) / 23 - 0.5f;
  const model::Main run;
  if (!run.valid()) return 2;
  const auto call = [&](std::vector<float>& y, const tenon_aot_context& context) {
    run(std::span<const float, 700 * 300>(x), std::span<const float, 300 * 900>(w), std::span<float, 700 * 900>(y), context);
  };
  tenon_aot_context context = {};
  call(one, context);
  tenon_aot::%(pool)s pool{MODEL_THREADS};
  struct Counted { tenon_aot::%(pool)s* pool; std::atomic<int> calls; } counted{&pool, 0};
  context.pool = &counted;
  context.parallel_for = [](void* data, std::int64_t count, void (*task)(void*, std::int64_t, std::int64_t), void* of_task) {
    auto* const to = static_cast<Counted*>(data);
    ++to->calls;
    tenon_aot::%(pool)s::parallel_for(to->pool, count, task, of_task);
  };
  for (int turn = 0; turn < 20; ++turn) {
    call(many, context);
    if (std::memcmp(one.data(), many.data(), one.size() * sizeof(float)) != 0) return 1;
  }
  return counted.calls > 0 ? 0 : 3;
}
"""


def test_parallel_for(folder):
    text = dict(programs.PROGRAMS)["large_product"]
    compare(folder, text, "--threads=3")
    out, report = aot(folder, text, "--threads=3", "--lang=c++")
    expect(report["functions"][0]["arena_bytes"] > 0, "no scratch memory")
    for header, pool, options in (("tenon_aot_threads.hpp", "StdThreads", ["-pthread"]), ("tenon_aot_tbb.hpp", "Tbb", ["-ltbb"])):
        (folder / "parallel.cpp").write_text(PARALLEL % {"header": header, "pool": pool})
        if pool == "Tbb" and run(*CXX, "-E", "-x", "c++", "-include", "tbb/task_arena.h", os.devnull)[0] != 0:
            continue
        check_run(*CXX, "-std=c++20", "-O1", *STRICT, f"-I{out}", folder / "parallel.cpp", out / "libmodel.a", "-lm", "-o", folder / "parallel",
                  *options)
        check_run(folder / "parallel")


# --- Custom calls and refusals


def test_custom_calls(folder):
    (folder / "custom.mlir").write_text(programs.CUSTOM)
    code, said = run(TENON, "aot", folder / "custom.mlir", "-o", folder / "none")
    equal(code, 1)
    expect("stablehlo.custom_call" in said and "custom.mlir:3" in said and "--call acme.halve" in said, said)
    out, _ = aot(folder, programs.CUSTOM, "--call=acme.halve")
    source = folder / "custom.c"
    source.write_text("""#include "model.h"
static int halve(void* user, const void* const* operands, void* const* results) {
  const float* const x = operands[0];
  const float* const y = operands[1];
  float* const half = results[0];
  float* const ends = results[1];
  if (x[0] < 0) return 42;
  for (int i = 0; i < 4; ++i) half[i] = x[i] / 2;
  ends[0] = y[0];
  ends[1] = y[3];
  ++*(int*)user;
  return 0;
}
static _Alignas(64) float x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8}, squares[4], ends[2];
static _Alignas(64) unsigned char arena[MODEL_MAIN_ARENA_BYTES + 1];
int main(void) {
  int count = 0;
  const model_calls calls = {.acme_halve = halve};
  const tenon_aot_context context = {.calls = &calls, .user = &count};
  if (model_main(x, y, squares, ends, arena, &context) != 0 || count != 1) return 1;
  if (squares[0] != 9 || squares[3] != 36 || ends[0] != 5 || ends[1] != 8) return 2;
  x[0] = -9;
  return model_main(x, y, squares, ends, arena, &context) == 42 ? 0 : 3;
}
""")
    check_run(compile_c(out, source))
    compile_c(out, out / "model_example.c")


def test_refusals(folder):
    def refuses(text, *options, code=1):
        (folder / "p.mlir").write_text(text)
        found, said = run(TENON, "aot", folder / "p.mlir", "-o", folder / "none", *options)
        equal(found, code)
        equal((folder / "none").exists(), False)
        return said
    said = refuses(programs.COLLECTIVE)
    expect("stablehlo.all_reduce" in said and "p.mlir:2" in said and "host" in said, said)
    dynamic = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  %0 = stablehlo.add %x, %x : tensor<?xf32>\n  return %0 : tensor<?xf32>\n}\n"
    expect("argument 0" in refuses(dynamic) or "parameter 0" in refuses(dynamic), refuses(dynamic))
    aot(folder, dynamic, "--shape=0=4")
    add = dict(programs.PROGRAMS)["nothing_in_it"]
    expect("no function @none" in refuses(add, "--entry=none"), "another error")
    expect("no processor 'abacus'" in refuses(add, "--cpu=abacus", code=2), "another error")
    expect("no feature 'beads'" in refuses(add, "--features=+beads", code=2), "another error")
    expect("no target" in refuses(add, "--target=abacus-unknown-none", code=2), "another error")
    if (BUILD / "tenon-aot-cross").exists():  # It has every target.
        expect("in ELF alone" in refuses(add, "--target=x86_64-apple-macosx", code=2), "another error")
        expect("big-endian" in refuses(add, "--target=aarch64_be-linux-gnu", code=2), "another error")
    expect("a name of C" in refuses(add, "--name=9-lives", code=2), "another error")
    refuses(add, "--library=dynamic", code=2)
    expect("a name of tenon_aot.h" in refuses(add, "--name=tenon_aot_x", code=2), "another error")
    for name in ("model", "main_run"):
        said = refuses(add + add.replace("@main", f"@{name}"), "--name=p", code=2)
        expect(f"function @{name}: the model has another p_{name}" in said, said)


def test_nothing_is_half_written(folder):
    """A folder that cannot be written, and a linker that fails, leave what was there."""
    (folder / "p.mlir").write_text(dict(programs.PROGRAMS)["softmax"])
    (folder / "file").write_text("")
    code, said = run(TENON, "aot", folder / "p.mlir", "-o", folder / "file/inside")
    equal((code, said.count("error:"), "file/inside" in said), (1, 1, True))
    code, said = run(TENON, "aot", folder / "p.mlir", "-o", folder / "new", "--library=shared", variables={"CC": "false"})
    equal((code, said.count("error:"), (folder / "new").exists()), (1, 1, False))
    expect(f"cannot link {folder / 'new/libp.so'}" in said, said)
    code, said = run(TENON, "aot", folder / "p.mlir", "-o", folder / "one/two/three", "--library=shared", variables={"CC": "false"})
    equal((code, (folder / "one").exists()), (1, False))
    (folder / "taken/p.h").mkdir(parents=True)
    (folder / "taken/libp.a").write_text("old")
    code, said = run(TENON, "aot", folder / "p.mlir", "-o", folder / "taken")
    equal((code, "p.h: it is a directory" in said, (folder / "taken/libp.a").read_text()), (1, True, "old"))
    equal(sorted(path.name for path in (folder / "taken").iterdir()), ["libp.a", "p.h"])
    out, _ = aot(folder, folder / "p.mlir")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (folder / "p.mlir").write_text(dict(programs.PROGRAMS)["products"])
    code, _ = run(TENON, "aot", folder / "p.mlir", "-o", out, "--name=model", "--library=shared", variables={"CC": "false"})
    equal((code, {path.name: path.read_bytes() for path in out.iterdir()}), (1, before))
    if os.geteuid() != 0:
        out.chmod(0o555)
    elif not pathlib.Path("/proc/self/task").is_dir():
        return
    protected = out if os.geteuid() != 0 else pathlib.Path("/proc")
    code, said = run(TENON, "aot", folder / "p.mlir", "-o", protected)
    equal((code, said.count("error:"), f"cannot write to {protected}" in said), (1, 1, True))
    out.chmod(0o755)


if __name__ == "__main__":
    sys.exit(run_tests(dict(globals())))
