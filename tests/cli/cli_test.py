#!/usr/bin/env python3
"""The `tenon` command from outside: exit codes, what goes to which stream, files it writes.

    cli_test.py [BUILD]      the command is $TENON, else BUILD/tenon, else build/tenon

Prints a line "PASS name" or "FAIL name: why" a test.
"""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("TENON_BUILD", ROOT / "build"))
TENON = os.environ.get("TENON", str(BUILD.resolve() / "tenon"))

ADD = """func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
TWO_RESULTS = """func.func @main() -> (tensor<i32>, tensor<2xi8>) {
  %0 = stablehlo.constant dense<7> : tensor<i32>
  %1 = stablehlo.constant dense<[1, -1]> : tensor<2xi8>
  return %0, %1 : tensor<i32>, tensor<2xi8>
}
"""
BAD = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %z : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
DYNAMIC = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""
CHECKS = """func.func @main() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  check.expect_eq_const %0, dense<[1.0, 2.0]> : tensor<2xf32>
  check.expect_eq_const %0, dense<[1.0, 3.0]> : tensor<2xf32>
  return
}
"""


class Failure(Exception):
    """A failed check."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


def equal(found, expected):
    expect(found == expected, f"found {found!r}, expected {expected!r}")


def contains(text, part):
    expect(part in text, f"{part!r} is not in {text!r}")


# The last line of `tenon run` on standard error.
PLACEMENT = re.compile(r"^(?:reference: every op evaluated on the host[^\n]*|\S+: \d+ steps? on the device, .*)\n", re.MULTILINE)


def run_tenon(*arguments, stdin=""):
    """Exit code, standard output and standard error."""
    done = subprocess.run([TENON, *map(str, arguments)], input=stdin, capture_output=True, text=True,
                          timeout=60, env={**os.environ, "NO_COLOR": "1"})
    return done.returncode, done.stdout, done.stderr


def tenon(*arguments, stdin=""):
    """The same; for `run`, without the line that states where the program ran."""
    code, out, err = run_tenon(*arguments, stdin=stdin)
    return code, out, PLACEMENT.sub("", err) if arguments[:1] == ("run",) else err


def succeeds(*arguments, stdin=""):
    """The output of a command that must succeed and print nothing on stderr."""
    code, out, err = tenon(*arguments, stdin=stdin)
    expect(code == 0 and not err, f"exit code {code}: {err}")
    return out


def fails(code, *arguments, stdin=""):
    """The stderr of a command that must end with `code` and print nothing on stdout."""
    found, out, err = tenon(*arguments, stdin=stdin)
    expect(found == code, f"exit code {found}, expected {code}: {err}")
    expect(not out, f"printed {out!r}")
    expect(err, "said nothing")
    return err


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def npy(path):
    """Descriptor, shape and data of a version 1.0 file."""
    data = path.read_bytes()
    equal(data[:8], b"\x93NUMPY\x01\x00")
    (length,) = struct.unpack("<H", data[8:10])
    header = eval(data[10:10 + length].decode(), {"__builtins__": {}})  # a dictionary of literals
    return header["descr"], header["shape"], data[10 + length:]


# --- Help and usage


def test_version(_):
    contains(succeeds("--version"), "tenon 0.")


def test_help_of_every_command(_):
    listing = succeeds("--help")
    contains(listing, "Exit codes: 0 success, 1 an error in the program or its input, 2 wrong usage.")
    for command in ("run", "opt", "devices", "ops", "replay"):
        contains(listing, command)
        contains(succeeds(command, "--help"), "--help")


def test_wrong_usage_is_2(folder):
    program = write(folder, "add.mlir", ADD)
    contains(fails(2), "subcommand")
    contains(fails(2, "nonsense"), "there is no command 'nonsense'; see 'tenon --help'")
    contains(fails(2, "run"), "FILE is required; see 'tenon run --help'")
    contains(fails(2, "run", program, "--nonsense"), "see 'tenon run --help'")
    fails(2, "opt", program, "--emit", "llvm")
    fails(2, "run", program, "extra")


def test_options_that_the_device_does_not_take(folder):
    program = write(folder, "add.mlir", ADD)
    arguments = ("run", program, "--arg", "0=1", "--arg", "1=2")
    for option in ("--layer=validate", "--strict", "--legalize=least"):
        contains(fails(2, *arguments, option), f"{option.split('=')[0]} needs a --device")
        contains(fails(2, *arguments, option, "--device=reference"), "needs a --device")
    contains(fails(2, *arguments, "--wide", "--device=cpu"), "--wide is only for the reference device")
    contains(fails(2, *arguments, "--legalize=least", "--device=cpu"), "--legalize needs --device=interp, not 'cpu'")
    contains(fails(2, *arguments, "--legalize=abacus", "--device=interp"), "'abacus' is not a feature of targets")
    contains(fails(2, "explain", program, "--device=abacus"), "there is no device 'abacus'")
    contains(fails(2, "explain", program, "--device=reference"), "needs a backend")


def test_names_of_backends_that_are_taken(folder):
    for name in ("cpu", "gpu", "template", "reference"):
        contains(fails(2, "new-backend", name, "--dir", folder / name), f"the name '{name}' is taken")


def test_conformance_programs_refuse_what_they_cannot_do(_):
    for program, wrong in (("bits_test", "--types=foo"), ("bits_test", "--types=f32,f8E4M3FN"), ("bits_test", "--devices=interp"),
                           ("bits_test", "--count=-1"), ("graphs_test", "--count=-5"), ("graphs_test", "--size=0"),
                           ("faults_test", "--programs=0"), ("faults_test", "--kills=-1"), ("math_accuracy", "--step=0")):
        done = subprocess.run([BUILD / "conformance" / program, wrong], capture_output=True, text=True, timeout=60)
        expect(done.returncode == 2, f"{program} {wrong}: exit code {done.returncode}: {done.stdout}")
        contains(done.stderr, wrong.split("=")[0])
        equal(done.stdout, "")
    done = subprocess.run([BUILD / "conformance/graphs_test", "--device=abacus"], capture_output=True, text=True, timeout=60)
    equal(done.returncode, 1)
    contains(done.stdout, "there is no backend 'abacus'")


# --- run


def test_run_prints_results(folder):
    program = write(folder, "add.mlir", ADD)
    equal(succeeds("run", program, "--arg", "0=1.5", "--arg", "1=2"), "0: f32[2] = [3.5, 3.5]\n")
    equal(succeeds("run", program, "--arg", "0=1", "--arg", "1=2", "--quiet"), "")


def test_run_reads_standard_input(_):
    equal(succeeds("run", "-", stdin=TWO_RESULTS), "0: s32[] = 7\n1: s8[2] = [1, -1]\n")


def test_run_prints_json(_):
    document = json.loads(succeeds("run", "-", "--json", stdin=TWO_RESULTS))
    equal(document["results"], [{"type": "s32", "dims": [], "value": 7},
                                {"type": "s8", "dims": [2], "value": [1, -1]}])
    equal(document["checks"], 0)
    equal(document["failures"], [])


def test_run_writes_npy(folder):
    out = folder / "new" / "results"
    contains(succeeds("run", "-", "--out", out, stdin=TWO_RESULTS), "2 results written to")
    equal(npy(out / "out_0.npy"), ("<i4", (), struct.pack("<i", 7)))
    equal(npy(out / "out_1.npy"), ("|i1", (2,), b"\x01\xff"))
    equal(sorted(path.name for path in out.iterdir()), ["out_0.npy", "out_1.npy"])


def test_results_are_arguments_again(folder):
    program = write(folder, "add.mlir", ADD)
    succeeds("run", program, "--arg", "0=1.5", "--arg", "1=2", "--out", folder)
    equal(succeeds("run", program, "--arg", f"0=@{folder}/out_0.npy", "--arg", "1=1"),
          "0: f32[2] = [4.5, 4.5]\n")


def test_onnx_models(folder):
    models = ROOT / "fuzz/corpus/onnx"
    expect(succeeds("run", models / "layer.onnx", "--arg", "0=1") == "0: f32[2,2] = [[0.5, 0.5], [0.5, 0.5]]\n", "run")
    expect("stablehlo.while" in succeeds("opt", models / "loop.onnx", "--emit", "stablehlo"), "opt")
    # The condition decides which branch is imported, if it is given.
    code, out, err = tenon("run", models / "branch.onnx", "--arg", "0=1", "--arg", "1=true", "--device", "interp")
    expect(code == 0 and out == "0: f32[2] = [-1, -1]\n", f"{out} {err}")
    damaged = pathlib.Path(folder) / "damaged.onnx"
    damaged.write_bytes((models / "layer.onnx").read_bytes().replace(b"Softmax", b"Softmix"))
    code, _, err = tenon("run", damaged, "--arg", "0=1")
    expect(code == 1 and "node 2, Softmix of opset 18: the op is not supported" in err, err)


def test_run_of_a_dynamic_program(folder):
    program = write(folder, "dynamic.mlir", DYNAMIC)
    equal(succeeds("run", program, "--shape", "0=3", "--arg", "0=2"), "0: f32[3] = [4, 4, 4]\n")
    contains(fails(1, "run", program, "--arg", "0=2"), "give its sizes, as --shape 0=2x3")
    static = write(folder, "add.mlir", ADD)
    contains(fails(1, "run", static, "--shape", "0=3", "--arg", "0=1", "--arg", "1=1"),
             "parameter 0 of @main is f32[2]; it cannot have the sizes 3")


def test_run_of_another_dynamic_function(folder):
    program = write(folder, "two.mlir", DYNAMIC + DYNAMIC.replace("@main", "@other").replace("add", "multiply"))
    equal(succeeds("run", program, "--entry", "other", "--shape", "0=1", "--arg", "0=3"), "0: f32[1] = [9]\n")


def test_entry(folder):
    program = write(folder, "two.mlir", TWO_RESULTS.replace("@main", "@other") + ADD.replace("@main", "@third"))
    contains(fails(1, "run", program), "name one with --entry")
    contains(succeeds("run", program, "--entry", "other"), "0: s32[] = 7")
    contains(fails(1, "run", program, "--entry", "none"), "there is no function @none")


# --- Errors


def test_a_missing_file(folder):
    err = fails(1, "run", folder / "missing.mlir")
    equal(err, f"tenon: error: cannot read {folder}/missing.mlir: No such file or directory\n")
    fails(1, "opt", folder / "missing.mlir")


def test_a_bad_program_is_shown_with_a_caret(folder):
    program = write(folder, "bad.mlir", BAD)
    for command in ("run", "opt"):
        equal(fails(1, command, program),
              f"{program}:2:26: error: %z is not defined here\n"
              "  %0 = stablehlo.add %x, %z : tensor<2xf32>\n"
              + " " * 25 + "^\n")


def test_a_bad_program_on_standard_input(_):
    equal(fails(1, "run", "-", stdin=BAD), "<stdin>:2:26: error: %z is not defined here\n")


def test_no_program_at_all(folder):
    fails(1, "run", "-", stdin="")
    fails(1, "run", write(folder, "x.bin", "ML\xefR garbage"))
    fails(1, "run", folder)


def test_bad_arguments(folder):
    program = write(folder, "add.mlir", ADD)
    contains(fails(1, "run", program), "parameter 0 of @main, f32[2], has no value")
    contains(fails(1, "run", program, "--arg", "0=x"), "--arg 0=x: 'x' is not a value of type f32")
    contains(fails(2, "run", program, "--arg", "0=1", "--arg", "0=1"), "--arg 0: given twice")
    contains(fails(2, "run", program, "--arg", "x=1"), "expected N=…, N the number of a parameter")
    contains(fails(1, "run", program, "--arg", "9=1"), "@main has 2 parameters")
    contains(fails(2, "run", program, "--shape", "0=x"), "--shape 0=x: expected sizes such as 2x3")
    bad = write(folder, "bad.npy", "x")
    contains(fails(1, "run", program, "--arg", f"0=@{bad}"), "not a .npy file")


def test_an_unknown_device(folder):
    program = write(folder, "add.mlir", ADD)
    contains(fails(2, "run", program, "--device", "abacus"), "there is no device 'abacus'; 'tenon devices' lists them")


def test_nothing_is_left_of_results_that_cannot_be_written(folder):
    blocked = write(folder, "file", "here before")
    err = fails(1, "run", "-", "--out", blocked, stdin=TWO_RESULTS)
    contains(err, f"cannot make {blocked}")
    equal(blocked.read_text(), "here before")
    out = folder / "out"
    (out / "out_1.npy" / "inside").mkdir(parents=True)
    contains(fails(1, "run", "-", "--out", out, stdin=TWO_RESULTS), "cannot write")
    equal([path.name for path in out.iterdir()], ["out_1.npy"])


def test_no_results_of_a_failed_program_are_written(folder):
    fails(1, "run", "-", "--out", folder / "out", stdin=BAD)
    expect(not (folder / "out").exists(), "the folder was made")


def test_lost_output_is_an_error(folder):
    program = write(folder, "two.mlir", TWO_RESULTS)
    for command in (["run", program], ["opt", program], ["ops"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([TENON, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=60)
        equal(done.returncode, 1)
        contains(done.stderr, "tenon: error: cannot write")


def test_a_link_is_followed(folder):
    program = write(folder, "add.mlir", ADD)
    target = write(folder, "target.hlo", "before")
    (folder / "link.hlo").symlink_to(target)
    succeeds("opt", program, "-o", folder / "link.hlo")
    expect((folder / "link.hlo").is_symlink(), "the link was replaced")
    equal(target.read_text(), succeeds("opt", program))


def test_a_tuple_result_is_refused(_):
    program = """func.func @main(%a: tensor<i32>) -> (tensor<i32>, tuple<tensor<i32>>) {
  %t = "stablehlo.tuple"(%a) : (tensor<i32>) -> tuple<tensor<i32>>
  return %a, %t : tensor<i32>, tuple<tensor<i32>>
}
"""
    contains(fails(1, "run", "-", "--arg", "0=3", stdin=program), "result 1 of @main is tuple<s32[]>; only arrays can be shown")


def test_a_shape_given_by_value(_):
    program = """func.func @main(%n: tensor<1xi64>) -> tensor<?xi32> {
  %0 = "stablehlo.dynamic_iota"(%n) {iota_dimension = 0 : i64} : (tensor<1xi64>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
"""
    equal(succeeds("run", "-", "--arg", "0=3", stdin=program), "0: s32[3] = [0, 1, 2]\n")


def test_deep_types_are_refused(_):
    for text in ("complex<" * 30000, "!quant.uniform<i8:" + "complex<" * 30000):
        contains(fails(1, "opt", "-", stdin=f"func.func @main(%a: tensor<{text}f32"), "nested deeper than")


def test_failed_checks_are_1(folder):
    program = write(folder, "checks.mlir", CHECKS)
    code, out, err = tenon("run", program)
    equal(code, 1)
    equal(out, "2 checks, 1 failed\n")
    equal(err.splitlines()[0], f"{program}:4:3: error: check.expect_eq: element [1] is 2, expected 3")
    code, out, _ = tenon("run", program, "--json")
    equal(code, 1)
    equal(json.loads(out)["failures"], ["check.expect_eq: element [1] is 2, expected 3"])


def test_parts_of_a_file_run_by_themselves(folder):
    program = write(folder, "parts.mlir", TWO_RESULTS + "// -----\n" + BAD + "// -----\n" + TWO_RESULTS)
    code, out, err = tenon("run", program, "--split")
    equal(code, 1)
    equal(out.count("0: s32[] = 7"), 2)
    contains(err, f"{program}:8:26: error: %z is not defined here")
    fails(2, "run", program, "--split", "--json")
    fails(2, "run", program, "--split", "--out", folder / "out")
    contains(fails(1, "run", "-", "--split", stdin="// nothing\n"), "expected a module or a function")


# --- opt, devices, ops


def test_opt_prints_both_forms(folder):
    program = write(folder, "add.mlir", ADD)
    contains(succeeds("opt", program), "%0 = stablehlo.add(%arg0, %arg1) : f32[2]")
    contains(succeeds("opt", program, "--emit", "stablehlo"), "%0 = stablehlo.add %arg0, %arg1 : tensor<2xf32>")
    contains(succeeds("opt", program, "--locations"), f'loc("{program}":2:8)')


def test_opt_reads_what_it_prints(folder):
    program = write(folder, "add.mlir", ADD)
    for form in ("hlo", "stablehlo"):
        text = succeeds("opt", program, "--emit", form)
        equal(succeeds("opt", "-", "--emit", form, stdin=text), text)


def test_opt_writes_a_file(folder):
    program = write(folder, "add.mlir", ADD)
    equal(succeeds("opt", program, "-o", folder / "out.hlo"), "")
    equal((folder / "out.hlo").read_text(), succeeds("opt", program))
    contains(fails(1, "opt", program, "-o", folder / "no" / "out.hlo"), "cannot write")


def test_opt_refines(folder):
    program = write(folder, "dynamic.mlir", DYNAMIC)
    contains(succeeds("opt", program), "f32[?]")
    contains(succeeds("opt", program, "--shape", "0=4"), "f32[4]")


def test_kernel_checks_and_prints(folder):
    kernel = write(folder, "k.kernel",
                   "kernel @k(%x: in f32[8], %y: out f32[8]) index s32 grid(%i: 8) {\n"
                   "  store 1.0, %y[3] : f32\n}\n")
    contains(fails(1, "kernel", kernel), "k.kernel:2: error: K3: every iteration of the grid")
    kernel = write(folder, "k.kernel",
                   "kernel @k(%x: in f32[8], %y: out f32[8]) index s32 grid(%i: 8) {\n"
                   "  %j = max %i, 0 : s32\n  copy box(1) %y[%j] by(0) = %x[%j] by(0)\n}\n")
    contains(succeeds("kernel", kernel), "copy box(1) %y[%1] by(0) = %x[%1] by(0)")
    equal(succeeds("kernel", kernel, "--check"), "")
    contains(succeeds("kernel", kernel, "--expand-tiles", "--simplify"), "store %1, %y[%0] : f32")
    text = succeeds("kernel", kernel)
    equal(succeeds("kernel", "-", stdin=text), text)
    contains(fails(1, "kernel", folder / "none"), "cannot read")


def test_run_on_interp(folder):
    program = write(folder, "add.mlir", ADD)
    equal(succeeds("run", program, "--device", "interp", "--arg", "0=1", "--arg", "1=2"),
          succeeds("run", program, "--arg", "0=1", "--arg", "1=2"))


def test_opt_passes_and_stages(folder):
    program = write(folder, "add.mlir", ADD)
    contains(succeeds("opt", program, "--emit", "kernels"), "kernel @add(")
    contains(succeeds("opt", program, "--emit", "program"), "0: launch @add(%0, %1, %2)")
    contains(succeeds("opt", program, "--passes", "inline-calls,decompose,dce"), "stablehlo.add")
    contains(fails(2, "opt", program, "--passes", "inline-calls,fuze"), "there is no pass 'fuze'")


def test_saved_programs_run(folder):
    program = write(folder, "add.mlir", ADD)
    saved = folder / "add.tnpr"
    equal(succeeds("opt", program, "--emit", "program-bytes", "-o", saved), "")
    arguments = ("--arg", "0=1", "--arg", "1=2.5")
    equal(succeeds("run", saved, *arguments), succeeds("run", program, *arguments))
    equal(succeeds("run", saved, "--device", "interp", "--legalize", "least", *arguments),
          succeeds("run", program, *arguments))
    contains(fails(1, "run", saved), "parameter 0 of @main, f32[2], has no value")
    contains(fails(2, "run", saved, "--device", "reference", *arguments), "evaluates modules")
    contains(fails(2, "run", saved, "--entry", "main", *arguments), "a saved program has one entry")
    contains(fails(2, "opt", program, "--emit", "program-bytes"), "name it with -o")
    whole = saved.read_bytes()
    saved.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    contains(fails(1, "run", saved, *arguments), "add.tnpr: the program is damaged: its checksum differs")
    saved.write_bytes(b"TNPR\x63" + whole[5:])
    contains(fails(1, "run", saved, *arguments), "a program of version 99; versions 1 to 3 can be read")


def test_saved_kernels_are_kernels(folder):
    text = succeeds("kernel", ROOT / "core/kernel/examples/softmax.kernel")
    saved = folder / "softmax.tnkn"
    equal(succeeds("kernel", ROOT / "core/kernel/examples/softmax.kernel", "--save", saved, "--check"), "")
    equal(succeeds("kernel", saved), text)
    saved.write_bytes(saved.read_bytes()[:-3])
    contains(fails(1, "kernel", saved), "softmax.tnkn: the kernel is damaged: its checksum differs")


def test_record_and_replay(folder):
    program, file, trace = write(folder, "add.mlir", ADD), folder / "add.record", folder / "add.json"
    command = [TENON, "run", str(program), "--device=interp", "--arg", "0=1.5", "--arg", "1=2", "--quiet"]
    environment = {**os.environ, "TENON_LAYERS": "trace,record", "TENON_RECORD": str(file), "TENON_TRACE": str(trace)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    equal((done.returncode, done.stdout, done.stderr), (0, "", ""))
    names = [each["name"] for each in json.loads(trace.read_text())["traceEvents"]]
    expect(any(name.startswith("stablehlo.add at ") for name in names), f"no add among {names}")
    listing = succeeds("replay", file, "--list")
    contains(listing, "compile @add for interp: ")
    contains(listing, "launch @add(")
    expect(len(json.loads(succeeds("replay", file, "--list", "--json"))["entries"]) == len(listing.splitlines()), listing)
    contains(succeeds("replay", file), "modules: 1 loaded, 0 compiled; 2 values of 16 bytes compared, 0 differ")
    contains(succeeds("replay", file, "--device=template", "--layer=validate"),
             "modules: 0 loaded, 1 compiled; 2 values of 16 bytes compared, 0 differ")
    equal(json.loads(succeeds("replay", file, "--json"))["differences"], [])
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    contains(succeeds("replay", file, "--list"), "the file is truncated: it ends within an entry, ")
    contains(succeeds("replay", file), "the file is truncated: it ends within an entry, ")
    expect(json.loads(succeeds("replay", file, "--json"))["cut"] > 0, "a cut file that says nothing of it")
    file.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
    contains(fails(1, "replay", file), "add.record: entry 0: the entry of a recording is damaged: its checksum differs")
    contains(fails(1, "replay", program), "add.mlir: this is no recording: it does not begin with 'TNRC'")
    contains(fails(1, "replay", folder / "none"), "none: No such file or directory")
    contains(fails(1, "replay", folder), "Is a directory")
    os.mkfifo(folder / "pipe")
    contains(fails(1, "replay", folder / "pipe"), "pipe: a pipe or device; a regular file is needed")
    contains(fails(1, "replay", "/dev/null"), "/dev/null: a pipe or device; a regular file is needed")
    file.write_bytes(whole)
    contains(fails(1, "replay", file, "--device=interp:99"), "there is no number 99")
    fails(2, "replay", file, "--most", "0")


def test_json_of_names_that_are_no_text(folder):
    """Labels contain the name of the program's file, which may be any bytes."""
    program, file = write(folder, os.fsdecode(b"add\xff.mlir"), ADD), folder / "add.record"
    command = [TENON, "run", program, "--device=interp", "--arg", "0=1", "--arg", "1=2", "--quiet", "--layer=record"]
    done = subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, "TENON_RECORD": str(file)})
    equal((done.returncode, done.stdout, done.stderr), (0, b"", b""))
    labels = [each["text"] for each in json.loads(succeeds("replay", file, "--list", "--json"))["entries"]]
    expect(any("add\ufffd.mlir" in label for label in labels), f"{labels}")
    contains(json.loads(succeeds("explain", program, "--device=interp", "--placement", "--json"))["steps"][0]["step"],
             "add\ufffd.mlir")


def test_layers_that_cannot_be(folder):
    program = write(folder, "add.mlir", ADD)
    arguments = ("run", program, "--device=interp", "--arg", "0=1", "--arg", "1=2")
    contains(fails(2, *arguments, "--layer=recrod"),
             "there is no layer 'recrod'; there are validate, faults, cache, record and trace")


def test_devices(_):
    contains(succeeds("devices"), "reference")
    contains(succeeds("devices", "--verbose"), "\n    name sm_90\n")
    rows = {row["name"]: row for row in json.loads(succeeds("devices", "--json"))}
    expect("reference" in rows, "no reference device")
    equal(rows["gpu-sim"]["state"], "available")
    if rows["gpu"]["state"] != "available":  # Of a machine without one.
        equal(rows["gpu"]["state"], "unavailable")
        contains(rows["gpu"]["description"], "CUDA driver")
    expect("name sm_90" in rows["gpu-sim"]["target"], f"{rows['gpu-sim']}")


def test_devices_that_cannot_be_counted(folder):
    program = write(folder, "add.mlir", ADD)
    for name, variable in (("cpu", "TENON_CPU_DEVICES"), ("gpu-sim", "TENON_GPU_SIM_DEVICES"), ("template", "TENON_CHIPS")):
        os.environ[variable] = "abacus"
        try:
            said = fails(1, "run", program, "--arg", "0=1", "--arg", "1=2", "--device", name)
            contains(said, f"{variable} is 'abacus', expected a number of 1 to ")
            contains(succeeds("devices"), f"{variable} is 'abacus'")
        finally:
            del os.environ[variable]


def test_ops(_):
    contains(succeeds("ops"), "stablehlo.dot_general")
    contains(succeeds("ops", "--markdown"), "stablehlo.dot_general")
    contains(succeeds("ops", "--linalg"), "Eigh")
    contains(succeeds("ops", "--linalg", "--markdown"), "# Linear algebra")


def test_run_says_where_it_ran(out):
    program = write(out, "p.mlir", "func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {\n"
                    "  %a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>\n"
                    "  %b = stablehlo.multiply %a, %a : tensor<4xi32>\n"
                    "  %r = stablehlo.add %x, %b : tensor<4xi32>\n  return %r : tensor<4xi32>\n}\n")
    arguments = ("run", program, "--arg", "0=3")
    equal(run_tenon(*arguments)[2], "reference: every op evaluated on the host; --device cpu compiles the program\n")
    equal(run_tenon(*arguments, "--device=reference")[2], "reference: every op evaluated on the host\n")
    equal(run_tenon(*arguments, "--device=interp")[2],
          "interp: 1 step on the device, 0 on the host; 1 op computed at compile time\n")
    equal(run_tenon(*arguments, "--device=interp", "--quiet")[2], "")
    declines = BUILD.resolve() / "core/libdeclines.so"
    code, printed, said = run_tenon(*arguments, f"--device={declines}")
    equal((code, printed), (0, "0: s32[4] = [4, 7, 12, 19]\n"))
    equal(said, f"{declines}: 0 steps on the device, 1 on the host; 1 op computed at compile time\n"
          f"the device declined the whole program, for example stablehlo.add at {program}:4:8: "
          "another reason: there is no compiler\n")
    contains(fails(1, *arguments, f"--device={declines}", "--strict"), "would run on the host: another reason")
    steps = json.loads(succeeds(*arguments, "--device=interp", "--json"))["steps"]
    equal(steps, {"device": 1, "host": 0, "folded": 1})


def test_rules(out):
    contains(succeeds("rules"), "add-zero")
    contains(succeeds("rules", "--markdown"), "## Non-rules")
    program = out / "p.mlir"
    program.write_text("func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {\n"
                       "  %z = stablehlo.constant dense<0> : tensor<4xi32>\n"
                       "  %y = stablehlo.add %z, %x : tensor<4xi32>\n"
                       "  %r = stablehlo.negate %y : tensor<4xi32>\n  return %r : tensor<4xi32>\n}\n")
    contains(succeeds("rules", program), "       1 add-zero\n")
    rules = {each["name"]: each for each in json.loads(succeeds("rules", program, "--json"))}
    equal(rules["add-zero"]["hits"], 1)
    equal(rules["and-zero"]["hits"], 0)
    equal("stablehlo.add" in succeeds("opt", program, "--passes=simplify"), False)
    contains(succeeds("opt", program, "--passes=simplify", "--disable-rule=add-zero"), "stablehlo.add")
    contains(fails(2, "opt", program, "--passes=simplify", "--disable-rule=add-nought"), "there is no rule 'add-nought'")
    equal(succeeds("run", program, "--arg", "0=3", "--device=interp", "--disable-rule=add-zero"), "0: s32[4] = [-3, -3, -3, -3]\n")


def test_passes_and_schedules(out):
    contains(succeeds("passes"), "constant-fold")
    passes = {each["name"]: each["optimizing"] for each in json.loads(succeeds("passes", "--json"))}
    equal((passes["fusion"], passes["whole-windows"]), (True, False))
    contains(succeeds("schedules"), "two-stage")
    contains(succeeds("schedules", "--markdown"), "| `tile_k` |")
    listed = json.loads(succeeds("schedules", "--json"))
    equal(listed["schedules"][-1]["name"], "elements")
    equal([each["most"] for each in listed["parameters"] if each["name"] == "two-stage"], [1])


def test_tune(out):
    program = out / "p.mlir"
    program.write_text("func.func @main(%x: tensor<6x70xf32>) -> tensor<6xf32> {\n"
                       "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                       "  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]"
                       " : (tensor<6x70xf32>, tensor<f32>) -> tensor<6xf32>\n  return %s : tensor<6xf32>\n}\n")
    kernels = ("opt", program, "--passes=inline-calls,dce", "--emit=kernels")
    contains(succeeds(*kernels), "kernel @reduce_rows(")
    contains(succeeds(*kernels, "--tune", "two-stage=1", "--tune", "parts=7"), "kernel @reduce_total(")
    contains(succeeds(*kernels, "--tune=shared-reduction=0"), "kernel @reduce(")
    contains(fails(2, *kernels, "--tune=two-stages=1"), "there is no tuning parameter 'two-stages'")
    contains(fails(2, *kernels, "--tune=parts=0"), "tuning parameter parts is 0, expected 1 to 65536")
    contains(fails(2, *kernels, "--tune=parts"), "--tune parts: expected NAME=VALUE")
    run = ("run", program, "--arg", "0=0.5", "--device=interp")
    equal(succeeds(*run, "--tune=two-stage=1"), "0: f32[6] = [35, 35, 35, 35, 35, 35]\n")
    # A file beside a plug-in does the same, for all users of the plug-in.
    plugin = out / "libtenon_interp.so"
    shutil.copy(BUILD.resolve() / "core/libtenon_interp.so", plugin)
    explain = ("explain", program, f"--device={plugin}", "--placement", "--json")
    names = lambda: [step["kernel"] for step in json.loads(succeeds(*explain))["steps"]]
    equal(names(), ["reduce_rows"])
    (out / "libtenon_interp.tuning").write_text("two-stage = 1\nparts = 7\n")
    equal(names(), ["reduce_parts", "reduce_total"])
    (out / "libtenon_interp.tuning").write_text("stages = 1\n")
    equal(json.loads(succeeds(*explain))["warnings"],
          ["tuning of device interp: there is no tuning parameter 'stages' (`tenon schedules` lists them)"])
    code, printed, said = run_tenon("run", program, "--arg", "0=0.5", f"--device={plugin}")
    equal((code, printed), (0, "0: f32[6] = [35, 35, 35, 35, 35, 35]\n"))
    contains(said, "warning: tuning of device interp: there is no tuning parameter 'stages'")


def test_tune_command(out):
    # Which values are faster is the machine's business.
    plugin = out / "libtenon_interp.so"
    shutil.copy(BUILD.resolve() / "core/libtenon_interp.so", plugin)
    program = out / "sum.mlir"
    program.write_text("func.func @main(%x: tensor<4096xf32>) -> tensor<f32> {\n"
                       "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                       "  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]"
                       " : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>\n  return %s : tensor<f32>\n}\n")
    tune = ("tune", program, f"--device={plugin}", "--parameter=two-stage", "--parameter=parts", "--minutes=5")
    code, printed, said = run_tenon(*tune)
    equal(code, 0)
    contains(printed, "sum ")
    contains(said, "two-stage (1 of 4)")
    lines = [json.loads(line) for line in (out / "libtenon_interp.tuning.trials").read_text().splitlines()]
    measured = [line for line in lines if line["outcome"] == "measured"]
    contains(str([line["parameters"] for line in measured]), "'two-stage': 1")
    equal([line for line in lines if line["outcome"] not in ("begun", "measured")], [])
    if "written to" in printed:
        contains((out / "libtenon_interp.tuning").read_text(), "# By `tenon tune --device interp`")
    contains(run_tenon(*tune)[2], "trials are known from")
    equal("trials are known" in run_tenon(*tune, "--fresh")[2], False)
    equal(run_tenon(*tune, "--quiet")[2], "")
    contains(fails(2, "tune", program, "--device=interp", "--parameter=part"), "there is no tuning parameter 'part'")
    contains(fails(2, "tune", program, "--device=abacus"), "there is no device 'abacus'")
    contains(fails(1, "tune", f"{out}/none.mlir", "--device=interp"), "none.mlir")
    contains(fails(2, "tune", program), "--device is required")


def main(tests):
    failed = 0
    for name, test in sorted(tests.items()):
        if not name.startswith("test_"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(pathlib.Path(folder).resolve())
                print(f"PASS {name}")
            except (Failure, subprocess.TimeoutExpired, OSError, ValueError, KeyError) as error:
                failed += 1
                print(f"FAIL {name}: {' '.join(str(error).split())}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(globals()))
