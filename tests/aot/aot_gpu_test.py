#!/usr/bin/env python3
"""`tenon aot` for GPUs: models run on the simulated GPU, by a CUDA driver made for these tests, with the results of `tenon run --device gpu-sim`.

    aot_gpu_test.py [BUILD] [--full] [TEST…]      --full: every sample; the command is $TENON, else BUILD/tenon, else build/tenon; the driver BUILD/tests/aot/libcuda.so.1

Prints a line "PASS name", "FAIL name: why" or "SKIP name: why" a test. on_gpu does the same on a real one.
"""

import pathlib
import re
import shlex
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "samples/aot/lstm"))

import lstm  # noqa: E402
import programs  # noqa: E402
from gpu_support import LOOP, NESTED, PROGRAMS, TARGET, Gpu, compare, compile_model, harness, link, samples  # noqa: E402
from support import (BUILD, CC, CXX, STRICT, TENON, Failure, Skip, check_run, equal, expect, report_of, run, run_tests)  # noqa: E402

DRIVER = BUILD.resolve() / "tests/aot/libcuda.so.1"
SIMULATED = {"LD_LIBRARY_PATH": str(DRIVER.parent)}
SIMULATOR = Gpu("simulator", "gpu-sim", SIMULATED)
ALL = dict(PROGRAMS)
WARNINGS = ["-std=c11", *STRICT]


def each(folder, names):
    for name in names:
        inner = folder / name
        inner.mkdir()
        try:
            yield inner, ALL[name]
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from failure


def run_model(program, folder, variables=SIMULATED, function="main"):
    return run(program, function, folder / "arguments", folder / "results", variables=variables)


# --- Results


def test_results_are_those_of_run(folder):
    for name, text in PROGRAMS:
        inner = folder / name
        inner.mkdir()
        try:
            compare(inner, text, SIMULATOR)
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from failure


def test_samples(folder):
    """Every other one, with --full each; aot_test has the others."""
    is_full = "--full" in sys.argv
    for name, path, inputs in list(samples())[0 if is_full else 1::1 if is_full else 2]:
        inner = folder / name
        inner.mkdir()
        try:
            compare(inner, path, SIMULATOR, inputs=inputs)
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from failure


def model_source(folder, text):
    """The text of NAME.c."""
    out, _ = compile_model(folder, text, SIMULATOR, "--library=source", name="source")
    return (out / "source.c").read_text()


def test_donated_arguments_share_memory(folder):
    launches = {}
    for name, options in (("apart", []), ("shared", ["-DDONATE"])):
        inner = folder / name
        inner.mkdir()
        out, _, _ = compare(inner, programs.DONATED, SIMULATOR, harness_options=options)
        expect("argument f32[100]; may have the memory of result y0" in (out / "model.h").read_text(), "no word of the shared memory")
        # Nothing is copied onto itself.
        expect("TENON_AOT_COPY" in model_source(inner, programs.DONATED), "no copy")
        launches[name] = log_of(inner, out / "program").count("cuLaunchKernel")
    equal(launches["apart"], launches["shared"] + 1)


def test_several_functions(folder):
    """One image and one set of constants for all; names of arguments are those of the program."""
    out, report = compile_model(folder, programs.TWO_FUNCTIONS, SIMULATOR)
    equal([each["symbol"] for each in report["functions"]], ["model_main", "model_twice"])
    equal(len(report["images"]), 1)
    line = "int32_t model_main(const model_gpu* gpu, const float* features, float* y0, void* arena, struct CUstream_st* stream);"
    expect(line in (out / "model.h").read_text(), "no such function")
    program = harness(out)
    (folder / "arguments").write_bytes(struct.pack("<8f", *range(8)))
    for name, factor in (("main", -1), ("twice", 2)):
        equal(run_model(program, folder, function=name), (0, ""))
        equal(struct.unpack("<8f", (folder / "results").read_bytes()), tuple(factor * i for i in map(float, range(8))))


def test_names_of_arguments(folder):
    """Those of the functions' own parameters are not taken."""
    for name in ("stream", "gpu", "device", "arena"):
        out, _ = compile_model(folder, programs.TWO_FUNCTIONS.replace("features", name), SIMULATOR)
        expect("model_main(const model_gpu* gpu, const float* x0, " in (out / "model.h").read_text(), f"an argument {name}")
        check_run(link(out, out / "model_example.c"), variables=SIMULATED)


def test_weights(folder):
    """Constants in the library and in a file give the same results; equal ones are stored once."""
    text = lstm.lstm()
    weights = 3 * (120 * 240 + 240) * 4
    (folder / "in").mkdir()
    _, report, _ = compare(folder / "in", text, SIMULATOR)
    equal(report["weights_bytes"], 0)
    expect(weights <= report["constant_bytes"] <= weights + 4096, f"{report['constant_bytes']} bytes of constants, {weights} of weights")
    inner = folder / "file"
    inner.mkdir()
    out, report, _ = compare(inner, text, SIMULATOR, "--weights=file", harness_options=[f'-DWEIGHTS="{inner / "model/model.weights"}"'])
    expect((out / "model.weights").stat().st_size == report["weights_bytes"] >= weights, f"{report['weights_bytes']} bytes in the file")
    expect(report["constant_bytes"] < 4096, f"{report['constant_bytes']} bytes of constants")
    said = check_run(link(out, out / "model_example.c"), cwd=out, variables=SIMULATED)
    expect("main y0:" in said, said)
    (out / "model.weights").write_bytes(b"x" + (out / "model.weights").read_bytes()[1:])
    code, said = run(out / "program", cwd=out, variables=SIMULATED)
    equal((code, said), (1, "cannot read model.weights\n"))


def test_weights_of_fewer_bytes(folder):
    for kind, tolerance in (("bf16", 5e-3), ("s8", 5e-2)):
        inner = folder / kind
        inner.mkdir()
        text = lstm.lstm()
        _, report = compile_model(inner, text, SIMULATOR, f"--weights-type={kind}")
        expect(report["constant_bytes"] < 3 * 120 * 240 * (2 if kind == "bf16" else 1) + 8192, f"{report['constant_bytes']} bytes")
        compare(inner, text, SIMULATOR, f"--weights-type={kind}", tolerance=tolerance)


# --- Forms


def test_library_forms(folder):
    for form, library in (("static", None), ("object", "model.o"), ("shared", "libmodel.so")):
        inner = folder / form
        inner.mkdir()
        path = inner / "model"
        compare(inner, lstm.lstm(units=8, steps=3), SIMULATOR, f"--library={form}", library=library and path / library,
                harness_options=[f"-Wl,-rpath,{path}"])


def different_compilers():
    """Those that are there, without other names of the same program."""
    found = {}
    for name in ("gcc", "clang", "clang-19"):
        if path := shutil.which(name):
            found.setdefault(pathlib.Path(path).resolve(), name)
    return list(found.values())


def test_sources_by_each_compiler(folder):
    """The sources are C11 without warnings, from any folder, also as a position-independent library."""
    compilers = different_compilers()
    expect(compilers, "no compiler")
    for compiler in compilers:
        for name in ("nested", "constants_alone", "nothing_in_it"):
            inner = folder / f"{compiler}_{name}"
            inner.mkdir()
            out, _, _ = compare(inner, ALL[name], SIMULATOR, "--library=source", library=inner / "model/model.c", compiler=[compiler])
            for option in ("-O2", "-fPIC"):
                check_run(compiler, *WARNINGS, option, "-c", "model.c", "-o", inner / "model.o", cwd=out)
        # The driver is linked, not opened.
        check_run(compiler, *WARNINGS, "-DTENON_AOT_LINK_CUDA", "-c", "model.c", "-o", inner / "linked.o", cwd=out)
        check_run(compiler, "-std=c11", '-DHEADER="model.h"', "-DMODEL=model_model", f"-I{out}", pathlib.Path(__file__).parent / "gpu_harness.c",
                  inner / "linked.o", DRIVER, "-ldl", "-o", inner / "linked")
        equal(run_model(inner / "linked", inner), (0, ""))
        undefined = check_run("nm", "-u", "--format=just-symbols", inner / "linked.o").split()
        expect("dlopen" not in undefined and "cuLaunchKernel" in undefined, str(undefined))


def test_names_that_collide(folder):
    """Names of the model's own parts, and of another function, are refused; other functions may have any name."""
    def of(*names):
        (folder / "p.mlir").write_text("".join(f"func.func @{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  %0 = stablehlo.sine %x : tensor<4xf32>\n"
                                               "  return %0 : tensor<4xf32>\n}\n" for name in names))
        return [TENON, "aot", folder / "p.mlir", "-o", folder / "out", TARGET, "--cpu=simulator"]
    for names, text in (*(((name,), f"@{name}: the model has another p_{name}") for name in ("load", "unload", "gpu", "model")),
                        (("main", "main_run"), "@main_run: the model has another p_main_run"),
                        (("main_run", "main"), "@main_run: the model has another p_main_run"),
                        (("main", "Main"), "@Main: the model has another P_MAIN_ARENA_BYTES")):
        code, said = run(*of(*names))
        equal((names, code, said.count("error:"), text in said), (names, 2, 1, True))
    for name, function in (("tenon_aot_x", "main"), ("tenon", "aot_launch")):
        code, said = run(*of(function), f"--name={name}")
        equal((name, code, "a name of tenon_aot.h" in said), (name, 2, True))
    expect(not (folder / "out").exists(), "something was written")
    for model in ("p", "f0"):
        check_run(*of("constants", "ptx", "cubin", "simulator", "tenon_ptx", "tables", "steps", "list", "kernels"), f"--name={model}")
        check_run(*CC, *WARNINGS, folder / f"out/{model}_example.c", folder / f"out/lib{model}.a", "-ldl", "-o", folder / "program")


def test_files_of_another_model(folder):
    """A blob of another size is an error of the assembler."""
    out, _ = compile_model(folder, lstm.lstm(units=8, steps=3), SIMULATOR, "--library=source")
    for kind in ("simulator", "constants"):
        blob = out / f"model.c.{kind}"
        data = blob.read_bytes()
        for compiler in different_compilers():
            for other in (data[:-1], data + b"x"):
                blob.write_bytes(other)
                code, said = run(compiler, "-std=c11", "-c", "model.c", "-o", folder / "model.o", cwd=out)
                expect(code != 0 and f"model.c.{kind} has not {len(data)} bytes" in said, said)
        blob.write_bytes(data)


def test_symbols(folder):
    """The library has the functions of the header and no state, and needs the C library alone."""
    for inner, text in each(folder, ("data_loop", "products")):
        out, _ = compile_model(inner, text, SIMULATOR, "--library=shared")
        exported = set(check_run("nm", "-D", "--defined-only", "--format=just-symbols", out / "libmodel.so").split())
        equal({name for name in exported if not name.startswith("_")},
              {"model_load", "model_unload", "model_main", "model_main_run", "model_model"})
        out, _ = compile_model(inner, text, SIMULATOR, "--library=object")
        needed = set(check_run("nm", "-u", "--format=just-symbols", out / "model.o").split()) - {"_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
        expect(needed <= {"dlopen", "dlsym", "dlclose", "memcpy", "memset"}, str(needed))
        for section in re.findall(r"\] (\.s?data\S*|\.s?bss\S*|\.init_array\S*)\s+\S+\s+\S+\s+\S+\s+(\S+)", check_run("readelf", "-SW", out / "model.o")):
            expect(int(section[1], 16) == 0 or section[0].startswith(".data.rel.ro"), f"{section[0]} has {section[1]} bytes")


def test_examples(folder):
    for inner, text in each(folder, ("softmax", "data_loop", "nothing_in_it", "narrow")):
        out, _ = compile_model(inner, text, SIMULATOR)
        said = check_run(link(out, out / "model_example.c"), variables=SIMULATED)
        expect("main y0:" in said, said)


def test_cpp(folder):
    out, _ = compile_model(folder, ALL["softmax"], SIMULATOR, "--lang=c++")
    (folder / "caller.cpp").write_text("""#include "model.hpp"
#include "tenon_aot_device.h"
int main() {
  tenon_aot_device device;
  tenon_aot_device_open(&device);
  model::Gpu gpu;
  if (device.error != 0 || gpu.load() != 0) return 1;
  float x[MODEL_MAIN_X_COUNT] = {}, y[MODEL_MAIN_Y0_COUNT];
  const auto* on_gpu = static_cast<const float*>(tenon_aot_device_new(&device, x, sizeof x));
  auto* result = static_cast<float*>(tenon_aot_device_new(&device, nullptr, sizeof y));
  void* arena = tenon_aot_device_new(&device, nullptr, MODEL_MAIN_ARENA_BYTES);
  if (model_main(gpu.get(), on_gpu, result, arena, nullptr) != 0) return 2;
  tenon_aot_device_read(&device, y, result, sizeof y);
  if (device.error != 0 || !(y[0] * 61 > 0.999f && y[0] * 61 < 1.001f)) return 3;
  return gpu.unload();
}
""".replace("MAIN_X_", "MAIN_X0_"))
    check_run(*CXX, "-std=c++20", *STRICT, f"-I{out}", folder / "caller.cpp", out / "libmodel.a", "-ldl", "-o", folder / "caller")
    check_run(folder / "caller", variables=SIMULATED)


def test_cmake(folder):
    if not shutil.which("cmake"):
        raise Skip("no cmake")
    for form in ("static", "shared", "object", "source"):
        inner = folder / form
        inner.mkdir()
        out, _ = compile_model(inner, ALL["softmax"], SIMULATOR, f"--library={form}")
        (inner / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(model CONFIG REQUIRED)\n"
            f"add_executable(user {out}/model_example.c)\ntarget_link_libraries(user model::model)\n")
        check_run("cmake", "-S", inner, "-B", inner / "build", f"-Dmodel_DIR={out}")
        check_run("cmake", "--build", inner / "build")
        check_run(inner / "build/user", variables=SIMULATED)


def test_report(folder):
    out, report = compile_model(folder, LOOP, SIMULATOR)
    equal(report["target"], "nvptx64-nvidia-cuda simulator")
    equal([image["kind"] for image in report["images"]], ["simulator"])
    expect(report["kernels"] and all(kernel["threads"] % 32 == 0 for kernel in report["kernels"]), str(report["kernels"]))
    equal(report["functions"][0]["waits"], True)
    text = check_run(TENON, "aot", folder / "model.mlir", "-o", out, "--name=model", TARGET, "--cpu=simulator")
    for part in ("simulator, ", " kernels", "constants in the library", "arena of model_main", "wrote "):
        expect(part in text, f"{part!r} is not in {text!r}")
    _, other = compile_model(folder, ALL["products"], SIMULATOR)
    equal(other["functions"][0]["waits"], False)
    expect(other["hash"] != report["hash"], "the same hash")


# --- Calls


def log_of(folder, program, function="main"):
    """The functions of the driver that a program called."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    equal(run_model(program, folder, {**SIMULATED, "TENON_TEST_CUDA_LOG": str(log)}, function), (0, ""))
    return log.read_text().split()


def test_only_loops_and_branches_wait(folder):
    for name, waits in (("products", False), ("softmax", False), ("data_loop", True), ("branches", True)):
        inner = folder / name
        inner.mkdir()
        out, report, _ = compare(inner, ALL[name], SIMULATOR)
        equal(report["functions"][0]["waits"], waits)
        header = (out / "model.h").read_text()
        equal(("Waits for the values" in header, "Only puts work on the stream" in header), (waits, not waits))
        calls = log_of(inner, out / "program")
        end = calls.index("cuMemcpyDtoH_v2")
        between = set(calls[end - calls[:end][::-1].index("cuMemcpyHtoD_v2"):end])
        equal(between - {"cuMemAlloc_v2"}, {"cuLaunchKernel", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"} if waits else {"cuLaunchKernel"})


def test_captured_graphs(folder):
    """A captured call gives the results again, also with donated arguments; what waits cannot be captured."""
    for name, text, options in (("products", ALL["products"], []), ("softmax", ALL["softmax"], []), ("large", ALL["large"], []),
                                ("lstm", lstm.lstm(units=8, steps=3), []), ("donated", programs.DONATED, []), ("shared", programs.DONATED, ["-DDONATE"])):
        inner = folder / name
        inner.mkdir()
        try:
            _, report, said = compare(inner, text, SIMULATOR, harness_options=options, times=3)
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from failure
        expect(not report["functions"][0]["waits"] and re.search("^graph ", said, re.MULTILINE), said)
        # A graph without work leaves what the results were filled with.
        code, _ = run(inner / "model/program", "main", inner / "arguments", inner / "results", 1, variables={**SIMULATED, "TENON_TEST_CUDA_EMPTY": "1"})
        equal((name, code), (name, 12))


def test_nothing_is_left(folder):
    """Unloading frees all that is loaded, also after an error."""
    out, _, _ = compare(folder, lstm.lstm(units=8, steps=3), SIMULATOR)
    calls = log_of(folder, out / "program")
    equal((calls.count("cuModuleLoadData"), calls.count("cuModuleUnload"), calls.count("cuMemFree_v2")), (1, 1, 1))


FAULTS = [  # A function that fails with its code, the result, and the calls that undo what was done.
    ("cuModuleLoadData=209", "load: 209 CUDA_ERROR_NO_BINARY_FOR_GPU", []),
    ("cuModuleLoadData=2", "load: 2 CUDA_ERROR_OUT_OF_MEMORY", []),
    ("cuModuleGetFunction=500", "load: 500 CUDA_ERROR_NOT_FOUND", ["cuModuleUnload"]),
    ("cuMemAlloc_v2=2", "load: 2 CUDA_ERROR_OUT_OF_MEMORY", ["cuModuleUnload"]),
    ("cuMemcpyHtoD_v2=700", "load: 700 CUDA_ERROR_ILLEGAL_ADDRESS", ["cuMemFree_v2", "cuModuleUnload"]),
    ("cuStreamSynchronize=719", "load: 719 CUDA_ERROR_LAUNCH_FAILED", ["cuMemFree_v2", "cuModuleUnload"]),
    ("cuLaunchKernel=701", "run: 701 CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", None),
    ("cuMemcpyDtoHAsync_v2=716", "run: 716 CUDA_ERROR_MISALIGNED_ADDRESS", None),
    ("cuInit=100", "open: 100 CUDA_ERROR_NO_DEVICE", None),
    ("cuModuleUnload=4", "unload: 4 CUDA_ERROR_DEINITIALIZED", None),
]


def test_errors_of_the_driver(folder):
    """Each is the result of the function that met it, and what was loaded before is given back."""
    out, _, _ = compare(folder, LOOP, SIMULATOR)
    log = folder / "log"
    for fault, expected, undone in FAULTS:
        log.unlink(missing_ok=True)
        code, said = run_model(out / "program", folder, {**SIMULATED, "TENON_TEST_CUDA_FAIL": fault, "TENON_TEST_CUDA_LOG": str(log)})
        equal((fault, code, said), (fault, 20, expected + "\n"))
        if undone is not None:
            calls = log.read_text().split()
            after = calls[len(calls) - calls[::-1].index(fault.split("=")[0]):]
            equal((fault, after), (fault, undone))


def test_without_a_driver(folder):
    """No libcuda.so.1, or one without a function."""
    out, _, _ = compare(folder, ALL["products"], SIMULATOR)
    source = folder / "loader.c"
    source.write_text("""#include <stdio.h>
#include "model.h"
int main(void) {
  static model_gpu gpu;
  const int32_t error = model_load(&gpu);
  puts(tenon_aot_cuda_error_name(error));
  return gpu.cuda.library != NULL || gpu.cuda.module != NULL;
}
""")
    program = link(out, source)
    if not shutil.which("ldconfig") or "libcuda.so.1" not in run("ldconfig", "-p")[1]:
        equal(run(program, variables={"LD_LIBRARY_PATH": ""}), (0, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED\n"))
    (folder / "empty").mkdir()
    (folder / "empty.c").write_text("int cuModuleLoadData(void) { return 0; }\n")
    check_run(*CC, "-shared", "-fPIC", folder / "empty.c", "-o", folder / "empty/libcuda.so.1")
    equal(run(program, variables={"LD_LIBRARY_PATH": str(folder / "empty")}), (0, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND\n"))
    # There is no context, and no call of cuInit.
    equal(run(program, variables=SIMULATED), (0, "CUDA_ERROR_NOT_INITIALIZED\n"))


def test_sanitizers(folder):
    compiler = next((name for name in ("clang-19", "clang", "gcc") if shutil.which(name)), None)
    options = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    for inner, text in each(folder, ("nested", "products", "nothing_in_it", "constants_alone")):
        compare(inner, text, Gpu("simulator", "gpu-sim", {**SIMULATED, "ASAN_OPTIONS": "detect_leaks=0"}), "--library=source",
                library=inner / "model/model.c", compiler=[compiler], harness_options=options)


def test_two_models_and_streams(folder):
    """Two models in one program, each on two threads with a stream of its own, by both of its functions."""
    twice = """func.func @main(%x: tensor<5000xf32>) -> tensor<5000xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<5000xf32>
  %1 = stablehlo.OP %x, %0 : tensor<5000xf32>
  return %1 : tensor<5000xf32>
}
"""
    one, _ = compile_model(folder, twice.replace("OP", "add"), SIMULATOR, name="one")
    two, _ = compile_model(folder, twice.replace("OP", "multiply"), SIMULATOR, "--library=shared", name="two")
    program = folder / "program"
    check_run(*CC, *WARNINGS, "-O1", f"-I{one}", f"-I{two}", pathlib.Path(__file__).parent / "two_models.c", one / "libone.a", two / "libtwo.so",
              f"-Wl,-rpath,{two}", "-ldl", "-pthread", "-o", program)
    log = folder / "log"
    equal(run(program, variables={**SIMULATED, "TENON_TEST_CUDA_LOG": str(log)}), (0, ""))
    calls = log.read_text().split()
    equal((calls.count("cuModuleLoadData"), calls.count("cuStreamCreate")), (2, 2))
    expect(calls.count("cuLaunchKernel") >= 2 * 2 * 20, f"{calls.count('cuLaunchKernel')} launches")


def test_names_of_programs(folder):
    """on_gpu refuses the name of no program."""
    code, said = run(sys.executable, pathlib.Path(__file__).parent / "on_gpu", "--build", BUILD, "lstm", "typo")
    equal((code, "there is no program 'typo'; there are " in said), (1, True))


# --- Images of GPUs


def test_images_of_gpus(folder):
    """For each processor PTX of its version, and machine code where ptxas is there; the tables are those of the simulator."""
    has_ptxas = False
    steps = None
    for cpu in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"):
        out, report = compile_model(folder, NESTED, Gpu(cpu, "", {}), "--library=source", name=f"model_{cpu}")
        equal(report["target"], f"nvptx64-nvidia-cuda {cpu}")
        kinds = [image["kind"] for image in report["images"]]
        expect(kinds in (["ptx"], ["cubin", "ptx"]), str(kinds))
        ptx = (out / f"model_{cpu}.c.ptx").read_text()
        expect(f".target {cpu}" in ptx, "PTX of another processor")
        equal(sorted(re.findall(r"\.entry (\w+)", ptx)), sorted(kernel["name"] for kernel in report["kernels"]))
        source = (out / f"model_{cpu}.c").read_text()
        rows = re.search(r"f0_steps\[\] = \{\n(.*?)\};", source, re.DOTALL).group(1)
        steps = steps or rows
        equal(rows, steps)
        expect("TENON_AOT_LOOP" in rows and "TENON_AOT_CHOICE" in rows and "TENON_AOT_PRED_CHOICE" in rows, rows)
        has_ptxas |= "cubin" in kinds
        check_run(*CC, *WARNINGS, "-c", f"model_{cpu}.c", "-o", folder / "model.o", cwd=out)
    # A driver that takes neither: both are offered, and the last one's error is told.
    out, report = compile_model(folder, ALL["products"], Gpu("sm_90", "", {}))
    program = harness(out)
    (folder / "arguments").write_bytes(bytes(100000))
    log = folder / "log"
    code, said = run_model(program, folder, {**SIMULATED, "TENON_TEST_CUDA_LOG": str(log)})
    equal((code, said), (20, "load: 209 CUDA_ERROR_NO_BINARY_FOR_GPU\n"))
    equal(log.read_text().split().count("cuModuleLoadData"), len(report["images"]))
    if not has_ptxas:
        raise Skip("no ptxas: only PTX was made")


def test_without_a_cubin(folder):
    """A warning says why there is only PTX; TENON_PTXAS must name a program."""
    (folder / "p.mlir").write_text(ALL["softmax"])
    command = [TENON, "aot", folder / "p.mlir", "-o", folder / "out", TARGET, "--cpu=sm_90", "--library=source"]
    (folder / "text").write_text("no program")
    (folder / "garbage").write_bytes(b"\x7fELF, it says")
    (folder / "garbage").chmod(0o755)
    for named in (folder / "nowhere", folder / "text", folder / "garbage"):
        code, said = run(*command, variables={"TENON_PTXAS": str(named)})
        equal((code, said.count("error:"), f"TENON_PTXAS: {named} cannot be run" in said), (1, 1, True))
    expect(not (folder / "out").exists(), "something was written")
    (folder / "ptxas").write_text("#!/bin/sh\necho 'ptxas fatal : it is tired'\necho more\nexit 3\n")
    (folder / "ptxas").chmod(0o755)
    said = check_run(*command, variables={"TENON_PTXAS": str(folder / "ptxas")})
    expect(f"warning: no cubin: gpu: {folder / 'ptxas'} ends with 3: ptxas fatal : it is tired\n" in said, said)
    equal(((folder / "out/p.c.ptx").exists(), (folder / "out/p.c.cubin").exists()), (True, False))
    said = check_run(*command, variables={"TENON_PTXAS": "", "CUDA_HOME": "", "PATH": "/nowhere"})
    equal("warning: no cubin: there is no ptxas" in said, not (folder / "out/p.c.cubin").exists())
    said = check_run(*command[:-2], "--cpu=simulator", variables={"TENON_PTXAS": str(folder / "nowhere")})
    expect("cubin" not in said, said)


def test_described_gpus(folder):
    """The description of a device states the GPU and for how many multiprocessors kernels are chosen."""
    described = check_run(TENON, "devices", "--target", "gpu-sim")
    expect("compute_units 132\n" in described, described)
    (folder / "same.txt").write_text(described)
    (folder / "small.txt").write_text(described.replace("compute_units 132\n", "compute_units 16\n"))
    reports = {}
    for name, options in (("usual", ["--cpu=sm_90"]), ("same", [f"--target-info={folder / 'same.txt'}"]), ("small", [f"--target-info={folder / 'small.txt'}"])):
        (folder / "model.mlir").write_text(ALL["large"])
        reports[name] = report_of(check_run(TENON, "aot", folder / "model.mlir", "-o", folder / name, TARGET, "--library=source", "--json", *options))
    equal(reports["usual"]["hash"], reports["same"]["hash"])
    # Of a GPU that is not known by its name the newest one below it is taken; the description may come from a pipe.
    for given, cpu in (("sm_75", "sm_75"), ("sm_87", "sm_86"), ("sm_100", "sm_90"), ("sm_120", "sm_90")):
        (folder / "described").write_text(described.replace("name sm_90", f"name {given}"))
        command = " ".join(map(shlex.quote, map(str, [TENON, "aot", folder / "model.mlir", "-o", folder / given, TARGET, "--library=source"])))
        said = check_run("sh", "-c", f"cat {shlex.quote(str(folder / 'described'))} | {command} --target-info=/dev/stdin")
        expect(f"model for nvptx64-nvidia-cuda {cpu}\n" in said, f"{given}: {said}")
    (folder / "described").write_text(described.replace("name sm_90", "name sm_70"))
    code, said = run(TENON, "aot", folder / "model.mlir", "-o", folder / "none", TARGET, f"--target-info={folder / 'described'}")
    equal((code, "--cpu sm_70: a GPU is one of sm_75" in said), (2, True))
    equal({report["target"] for report in reports.values()}, {"nvptx64-nvidia-cuda sm_90"})
    expect(reports["small"]["kernels"] != reports["usual"]["kernels"], "the same kernels for 16 multiprocessors")


# --- Refusals


def test_usage(folder):
    (folder / "p.mlir").write_text(ALL["softmax"])
    command = [TENON, "aot", folder / "p.mlir", "-o", folder / "out"]
    for options, text in (
            ([TARGET], "sm_75, sm_80, sm_86, sm_89, sm_90"),
            ([TARGET, "--cpu=sm_70"], "sm_75, sm_80"),
            (["--target=nvptx-nvidia-cuda", "--cpu=sm_90"], "only nvptx64-nvidia-cuda is known"),
            (["--library=source"], "--library source is for GPUs"),
            ([f"--target-info={folder / 'p.mlir'}"], "--target-info is for GPUs"),
            ([TARGET, f"--target-info={folder / 'p.mlir'}"], "p.mlir"),
            *(([TARGET, "--cpu=sm_90", option], f"{name} is for CPUs")
              for option, name in (("--threads=2", "--threads"), ("--arena=stack", "--arena stack"), ("--call=x", "--call"),
                                   ("--features=+a", "--features"), ("--bench", "--bench"), ("--optimize=size", "--optimize size")))):
        code, said = run(*command, *options)
        equal((options, code, said.count("error:"), text in said), (options, 2, 1, True))
    expect(not (folder / "out").exists(), "something was written")


def test_steps_of_a_host(folder):
    for name, text, part in (("collective", programs.COLLECTIVE, "all_reduce"), ("custom", programs.CUSTOM, "acme.halve")):
        (folder / f"{name}.mlir").write_text(text)
        code, said = run(TENON, "aot", folder / f"{name}.mlir", "-o", folder / "out", TARGET, "--cpu=sm_90")
        equal((name, code, said.count("error:"), part in said), (name, 1, 1, True))
    expect(not (folder / "out").exists(), "something was written")


def test_without_a_c_compiler(folder):
    (folder / "p.mlir").write_text(ALL["softmax"])
    command = [TENON, "aot", folder / "p.mlir", "-o", folder / "out", TARGET, "--cpu=simulator"]
    code, said = run(*command, variables={"CC": "no-such-compiler"})
    equal((code, said.count("error:"), "there is no C compiler 'no-such-compiler'" in said, (folder / "out").exists()), (1, 1, True, False))
    code, said = run(*command, variables={"CC": "false"})
    equal((code, said.count("error:"), "cannot compile" in said, (folder / "out").exists()), (1, 1, True, False))
    code, said = run(*command, variables={"CC": "cc -include no_such_header.h"})
    equal((code, f"cannot compile {folder / 'out/libp.a'} by" in said, "error: " in said and "no_such_header.h" in said.splitlines()[-1]), (1, True, True))
    # A compiler that makes another object.
    (folder / "other").write_text("#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho 'int other;' | cc -xc -c - -o \"$2\"\n")
    (folder / "other").chmod(0o755)
    code, said = run(*command, variables={"CC": str(folder / "other")})
    equal((code, "has no p_model" in said, (folder / "out").exists()), (1, True, False))
    if shutil.which("gcc"):
        check_run(*command, variables={"CC": "gcc -flto"})
        expect("p_main" in check_run("nm", "-s", folder / "out/libp.a"), "an archive without an index")
        check_run("gcc", f"-I{folder / 'out'}", folder / "out/p_example.c", folder / "out/libp.a", "-ldl", "-o", folder / "program")
        check_run(folder / "program", variables=SIMULATED)
    check_run(*command, "--library=source", variables={"CC": "no-such-compiler"})


if __name__ == "__main__":
    if not DRIVER.exists():
        print(f"FAIL driver: there is no {DRIVER}: ninja tests/aot/libcuda.so.1")
        sys.exit(1)
    sys.exit(run_tests(dict(globals())))
