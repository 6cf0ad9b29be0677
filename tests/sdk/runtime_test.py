#!/usr/bin/env python3
"""`tenon compile` compiles for devices that are not there; its files run by `tenon run` and by programs in C, which are linked with
the installed libtenon_runtime alone, with the bits of `tenon run` on the source.

    runtime_test.py BUILD

Prints a line "PASS name" or "FAIL name: why" a test.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import sys
import tempfile

from installation import ROOT, Installed, attempt, expect, run, succeeds

BUILD = pathlib.Path(sys.argv[1]).resolve()
HARNESS = ROOT / "tests/aot/runtime_harness.c"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# The device for `tenon run`, and its plug-in for the C library.
DEVICES = {"template": BUILD / "backends/libtenon_template.so", "template_c": BUILD / "backends/libtenon_template_c.so",
           "interp": BUILD / "core/libtenon_interp.so", "cpu": BUILD / "backends/libtenon_cpu.so"}
SAMPLES = ["bf16_mlp", "int8_dot", "sort_topk", "fft", "lstm"]
MOST_BYTES = 1_000_000  # Of the stripped library.

ADD = """func.func @main(%a: tensor<4xf32> loc("left"), %b: tensor<4xf32> {tf.aliasing_output = 0 : i32} loc("right"))
    -> (tensor<4xf32> {jax.result_info = "sum"}) {
  %sum = stablehlo.add %a, %b : tensor<4xf32>
  return %sum : tensor<4xf32>
}
"""
LOOP = """func.func @main(%n: tensor<i32>, %x: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<3xf32>
  cond {
    %more = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.subtract %i, %one : tensor<i32>
    %w = stablehlo.multiply %v, %v : tensor<3xf32>
    stablehlo.return %next, %w : tensor<i32>, tensor<3xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<3xf32>
}
"""
HOST = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
"""


def npy_data(path):
    data = path.read_bytes()
    return data[10 + int.from_bytes(data[8:10], "little"):]


class Tests:
    """The tests, with an installation and a folder for each."""

    def __init__(self, installed, folder):
        self.installed = installed
        self.place = folder
        self.folder = folder
        self.variables = dict(installed.variables, NO_COLOR="1")
        self.programs = {}

    def tenon(self, *words, **variables):
        return run(self.installed.tool, *words, folder=self.folder, variables=dict(self.variables, **variables))

    def tenon_does(self, *words, **variables):
        status, output = self.tenon(*words, **variables)
        expect(status == 0, f"tenon {' '.join(map(str, words))}: {status}: {output[-2000:]}")
        return output

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def words_of(self, *words):
        return shlex.split(succeeds("pkg-config", *words, "tenon-runtime", folder="/", variables=self.variables))

    def harness(self, kind="shared"):
        """The program in C, linked with the shared or the static library."""
        if kind not in self.programs:
            cc = shlex.split(os.environ.get("CC", "cc"))
            program = self.place / f"harness_{kind}"
            libraries = {"static": lambda: [*self.words_of("--variable=static"), *"-lfmt -lstdc++ -ldl -lm -Wl,--gc-sections".split()], "shared": lambda: self.words_of("--libs"),
                         "sanitized": lambda: [*self.words_of("--libs"), "-fsanitize=address,undefined"]}[kind]()
            succeeds(*cc, "-std=c11", "-O1", *STRICT, *self.words_of("--cflags"), HARNESS, *libraries, "-pthread", "-o", program,
                     folder=self.folder, variables=self.variables)
            self.programs[kind] = program
        return self.programs[kind]

    def by_c(self, *words, kind="shared", **variables):
        library = self.words_of("--variable=libdir")[0]
        return run(self.harness(kind), *words, folder=self.folder, variables=dict(self.variables, LD_LIBRARY_PATH=library, **variables))

    def by_c_does(self, *words, kind="shared"):
        status, output = self.by_c(*words, kind=kind)
        expect(status == 0, f"{' '.join(map(str, words))}: {status}: {output[-2000:]}")
        return output

    def compile(self, source, device, *words, name="model.tncp", **variables):
        output = self.tenon_does("compile", source, "-o", name, "--device", device, "--json", *words, **variables)
        return json.loads(output[output.index("{"):])

    # --- Results

    def same_bits(self, source, device, arguments, count, modes):
        """Results from the source by `tenon run`, from the compiled file by `tenon run`, and by the C library."""
        plugin = DEVICES[device]
        name = device if device != "template_c" else plugin
        given = [f"--arg={i}=@{path}" for i, path in enumerate(arguments)]
        self.tenon_does("run", source, "--device", name, "--out", "direct", *given)
        self.compile(source, name)
        self.tenon_does("run", "model.tncp", "--device", name, "--out", "compiled", *given)
        direct = [npy_data(self.folder / f"direct/out_{i}.npy") for i in range(count)]
        for i, expected in enumerate(direct):
            expect(npy_data(self.folder / f"compiled/out_{i}.npy") == expected, f"{device}: result {i} of tenon run differs")
        (self.folder / "arguments").write_bytes(b"".join(map(npy_data, arguments)))
        for mode, kind in modes:
            self.by_c_does(mode, plugin, "model.tncp", "arguments", "results", kind=kind)
            expect((self.folder / "results").read_bytes() == b"".join(direct), f"{device}: results of C ({mode}) differ")

    def test_results_are_those_of_run(self):
        compared = 0
        for sample in SAMPLES:
            source = ROOT / "samples" / sample / "program.mlir"
            arguments = sorted(source.parent.glob("in_*.npy"), key=lambda path: int(path.stem[3:]))
            results = len(list(source.parent.glob("out_*.npy")))
            for device, plugin in DEVICES.items():
                if not plugin.exists() or (device == "template_c" and sample != "int8_dot"):
                    continue
                modes = [("run", "shared")]
                if sample == "int8_dot":
                    modes += [("buffers", "shared"), ("donate", "shared"), ("threads", "shared"), ("run", "static")]
                self.same_bits(source, device, arguments, results, modes)
                compared += 1
        expect(compared > 2 * len(SAMPLES), f"only {compared}")
        return f"{compared} programs"

    def test_loops_and_donations(self):
        for device in ("template", "interp"):
            loop = self.write("loop.mlir", LOOP)
            self.compile(loop, device)
            given = ["--arg=0=3", "--arg=1=1.5"]
            expect(self.tenon_does("run", "model.tncp", "--device", device, *given) ==
                   self.tenon_does("run", loop, "--device", device, *given), "a loop gives other results")
            self.compile(self.write("add.mlir", ADD), device)
            (self.folder / "arguments").write_bytes(bytes(range(32)))
            for mode in ("run", "buffers", "donate", "misuse"):
                self.by_c_does(mode, DEVICES[device], "model.tncp", "arguments", "results")

    def test_sanitized(self):
        """No leak, no overflow, in each way to run."""
        self.compile(self.write("add.mlir", ADD), "interp")
        (self.folder / "arguments").write_bytes(bytes(range(32)))
        for mode in ("run", "buffers", "donate", "misuse", "threads"):
            self.by_c_does(mode, DEVICES["interp"], "model.tncp", "arguments", "results", kind="sanitized")

    # --- Compiling

    def test_without_the_device(self):
        """The device cannot be opened where the program is compiled."""
        source = self.write("add.mlir", ADD)
        absent = {"TENON_CHIP": "/nowhere/tenon-chip"}
        status, output = self.tenon("run", source, "--device=template", "--arg=0=1", "--arg=1=2", **absent)
        expect(status == 1, f"the device is there: {output}")
        self.compile(source, "template", **absent)
        expect("[3, 3, 3, 3]" in self.tenon_does("run", "model.tncp", "--device=template", "--arg=0=1", "--arg=1=2"), "other results")

    def test_for_another_target(self):
        """A target in a file: that of a GPU which is not here, and one with another width of vectors."""
        source = self.write("add.mlir", ADD)
        target = self.tenon_does("devices", "--target", "gpu-sim")
        expect(target.startswith("name "), target)
        self.write("gpu.target", target)
        report = self.compile(source, "gpu-sim", "--target-info", "gpu.target")
        expect(target.startswith(f"name {report['target']}\n"), f"{report}")
        if self.tenon("devices", "--target", "gpu")[0] != 0:
            status, output = self.tenon("compile", source, "-o", "none.tncp", "--device=gpu")
            expect(status == 1 and "--target-info compiles for a device that is not here" in output, output)
            self.write("sm.target", re.sub(r"(?m)^compiler .*", "compiler of a GPU elsewhere", target))
            self.compile(source, "gpu", "--target-info", "sm.target")
            expect(b".target sm_" in (self.folder / "model.tncp").read_bytes(), "no PTX")
        self.write("wide.target", re.sub(r"(?m)^vector_bytes .*\n", "", self.tenon_does("devices", "--target", "template")) +
                   "# Wider.\nvector_bytes 64\n")
        self.compile(source, "template", "--target-info", "wide.target")
        status, output = self.tenon("run", "model.tncp", "--device=template", "--arg=0=1", "--arg=1=2")
        expect(status == 1 and "it was compiled for another target: 'vector_bytes 64'; this device: " in output, output)
        status, output = self.by_c("run", DEVICES["template"], "model.tncp", "arguments", "results")
        expect(status == 1 and "error 9: model.tncp: it was compiled for another target: 'vector_bytes 64'" in output, output)

    def test_compiles_nothing(self):
        """A run of a compiled file calls neither compile nor plan: both would fail."""
        source = self.write("add.mlir", ADD)
        for device in ("template", "interp", "cpu"):
            self.compile(source, device)
            words = ["--device", device, "--layer=faults", "--arg=0=1", "--arg=1=2"]
            fails = {"TENON_FAULTS": "compile%1 plan%1"}
            status, output = self.tenon("run", source, *words, **fails)
            expect(status == 1 and "compile" in output, f"compiling does not fail: {output}")
            expect("[3, 3, 3, 3]" in self.tenon_does("run", "model.tncp", *words, **fails), "other results")
            self.tenon_does("run", "model.tncp", "--device", device, "--layer=trace", "--arg=0=1", "--arg=1=2")
            events = json.loads((self.folder / "tenon.trace.json").read_text())
            names = {event.get("name") for event in (events["traceEvents"] if isinstance(events, dict) else events)}
            expect("load" in names and "compile" not in names, f"{names}")

    def test_inputs(self):
        """Formats, entries, sizes; names and types are those of the source."""
        report = self.compile(self.write("add.mlir", ADD), "template")
        expect([each["name"] for each in report["arguments"] + report["results"]] == ["left", "right", "sum"], f"{report}")
        expect(report["arguments"][0] == {"name": "left", "type": "f32", "dims": [4], "bytes": 16}, f"{report}")
        output = self.by_c_does("describe", DEVICES["template"], "model.tncp")
        for line in ("program main by tenon 0.1.0", "argument left f32 4, 16 bytes", "argument right f32 4, 16 bytes, donated",
                     "result sum f32 4, 16 bytes"):
            expect(line in output.splitlines(), output)
        expect(self.tenon_does("devices", "--target=template") in output, "the target of C is another")
        dynamic = self.write("dynamic.mlir", "func.func @twice(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
                             "  %y = stablehlo.add %x, %x : tensor<?xf32>\n  return %y : tensor<?xf32>\n}\n")
        report = self.compile(dynamic, "interp", "--entry=twice", "--shape=0=5")
        expect(report["arguments"][0]["dims"] == [5] and report["results"][0]["name"] == "y0", f"{report}")
        self.tenon_does("opt", "add.mlir", "--emit=program-bytes", "-o", "add.tnpr")
        expect(self.compile("add.tnpr", "template")["results"] == [{"name": "y0", "type": "f32", "dims": [4], "bytes": 16}], "a saved program")
        model = ROOT / "fuzz/corpus/onnx/layer.onnx"
        report = self.compile(model, "interp")
        expect(report["arguments"], f"{report}")

    # --- Errors

    def fails(self, pattern, *words, status=1, **variables):
        got, output = self.tenon(*words, **variables)
        expect(got == status and re.search(pattern, output), f"tenon {' '.join(map(str, words))}: {got}: {output[-1500:]}")
        expect(output.count("error:") == 1, f"not one error: {output}")

    def test_errors(self):
        source = self.write("add.mlir", ADD)
        self.write("wrong.target", "name chip\nwings 2\n")
        self.compile(source, "template")
        before = sorted(os.listdir(self.folder))
        self.fails("there is no device 'nonesuch'", "compile", source, "-o", "x.tncp", "--device=nonesuch", status=2)
        self.fails("there is no plug-in /nowhere/libnpu.so", "compile", source, "-o", "x.tncp", "--device=/nowhere/libnpu.so")
        self.fails(r"wrong.target: line 2: 'wings 2' is no member", "compile", source, "-o", "x.tncp", "--device=template",
                   "--target-info=wrong.target")
        self.write("other.target", "name chip\ncompiler another\n")
        before = sorted(os.listdir(self.folder))
        self.fails("other.target: it states the compiler 'another', and that of template here is '", "compile", source, "-o", "x.tncp",
                   "--device=template", "--target-info=other.target")
        self.fails("--device template without a number", "compile", source, "-o", "x.tncp", "--device=template:99",
                   "--target-info=other.target", status=2)
        self.fails("none.target", "compile", source, "-o", "x.tncp", "--device=template", "--target-info=none.target")
        self.fails("/nowhere/x.tncp", "compile", source, "-o", "/nowhere/x.tncp", "--device=template")
        self.fails("/proc/x.tncp", "compile", source, "-o", "/proc/x.tncp", "--device=template")
        self.fails("there is no function @f", "compile", source, "-o", "x.tncp", "--device=template", "--entry=f")
        self.fails("model.tncp is compiled already", "compile", "model.tncp", "-o", "x.tncp", "--device=template")
        self.fails("compiled for the backend 'template', and this is 'interp'", "run", "model.tncp", "--device=interp")
        self.fails("compiled for the backend 'template', and this is 'interp'", "run", "model.tncp")
        self.fails("reference", "run", "model.tncp", "--device=reference", status=2)
        self.fails("one entry and static shapes", "run", "model.tncp", "--device=template", "--shape=0=2x4", status=2)
        self.fails("a file is expected", "compile", source, "-o", "-", "--device=template", status=2)
        self.fails("compiled already", "run", "model.tncp", "--device=template", "--strict", status=2)
        self.fails("parameter 1 of @main, .*has no value", "run", "model.tncp", "--device=template", "--arg=0=1")
        self.fails("would run on the host: .*there is no compiler", "compile", source, "-o", "x.tncp", f"--device={BUILD}/core/libdeclines.so", "--strict")
        expect(sorted(os.listdir(self.folder)) == before, f"files were left: {sorted(os.listdir(self.folder))}")
        status, output = self.by_c("run", DEVICES["interp"], "model.tncp", "a", "b")
        expect(status == 1 and output == "error 9: model.tncp: it was compiled for the backend 'template', and this is 'interp'\n", output)

    def test_host_steps(self):
        """Steps that the host computes run by `tenon run`, whose host has an evaluator; the library names them."""
        self.compile(self.write("host.mlir", HOST), "interp")
        expect("[2, 2]" in self.tenon_does("run", "model.tncp", "--device=interp", "--arg=0=2"), "other results")
        status, output = self.by_c("describe", DEVICES["interp"], "model.tncp")
        expect(status == 1 and output.startswith("error 12: ") and "all_reduce" in output, output)

    def test_damaged_files(self):
        """Truncated files, and files with other bytes, are errors of the tool and of the library."""
        self.compile(self.write("add.mlir", ADD), "interp")
        whole = (self.folder / "model.tncp").read_bytes()
        damaged = [whole[:size] for size in range(0, len(whole), max(1, len(whole) // 12))]
        for at in range(4, len(whole), len(whole) // 12):
            damaged.append(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
        damaged += [whole + b"x", b"TNCP", b"TNCP" + bytes(40)]
        for bytes_ in damaged:
            (self.folder / "damaged.tncp").write_bytes(bytes_)
            if bytes_:
                self.fails("damaged.tncp", "run", "damaged.tncp", "--device=interp", "--arg=0=1", "--arg=1=2")
            status, output = self.by_c("describe", DEVICES["interp"], "damaged.tncp")
            expect(status == 1 and output.startswith("error "), f"{len(bytes_)} bytes: {status}: {output}")
        (self.folder / "later.tncp").write_bytes(whole[:4] + b"\x63" + whole[5:])
        self.fails("version 99", "run", "later.tncp", "--device=interp")
        return f"{len(damaged)} files"

    # --- The library

    def test_header_in_cpp(self):
        source = self.write("main.cpp", "#include <tenon/runtime.h>\n#include <core/backend/plugin.h>\n"
                            "int main() { return tenon_runtime_version() >> 16 == TENON_RUNTIME_MAJOR ? 0 : 1; }\n")
        include = succeeds("pkg-config", "--cflags", "tenon-plugin", folder="/", variables=self.variables).split()
        succeeds(*shlex.split(os.environ.get("CXX", "c++")), "-std=c++11", *STRICT, *self.words_of("--cflags"), *include, source,
                 *self.words_of("--libs"), "-o", "main", folder=self.folder, variables=self.variables)
        library = self.words_of("--variable=libdir")[0]
        succeeds("./main", folder=self.folder, variables=dict(self.variables, LD_LIBRARY_PATH=library))

    def test_size_and_needs(self):
        library = pathlib.Path(self.words_of("--variable=libdir")[0]) / "libtenon_runtime.so"
        succeeds("strip", "-o", "stripped.so", library, folder=self.folder, variables=self.variables)
        size = (self.folder / "stripped.so").stat().st_size
        if "clang" in succeeds("readelf", "-p", ".comment", library, folder="/", variables=self.variables):  # GCC has no equal functions made one.
            expect(size < MOST_BYTES, f"{size} bytes")
        needed = re.findall(r"NEEDED.*\[(.*)\]", succeeds("readelf", "-d", library, folder="/", variables=self.variables))
        expect(all(re.match(r"(libfmt|libstdc\+\+|libm|libgcc_s|libc|ld-linux)", each) for each in needed), f"{needed}")
        symbols = succeeds("nm", "-D", library, folder="/", variables=self.variables)
        expect("llvm" not in symbols.lower() and "hlo" not in symbols, "LLVM or hlo")
        program = self.harness("static")
        succeeds("strip", "-o", "stripped", program, folder=self.folder, variables=self.variables)
        return f"{size} bytes; a program with the static library {(self.folder / 'stripped').stat().st_size}"


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        tests = Tests(Installed(BUILD, pathlib.Path(place)), pathlib.Path(place) / "tests")
        tests.place.mkdir()
        good = True
        for name in [name for name in dir(Tests) if name.startswith("test_")]:
            tests.folder = tests.place / name
            tests.folder.mkdir()
            good &= attempt(name[5:].replace("_", " "), getattr(tests, name))
            shutil.rmtree(tests.folder)
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
