#!/usr/bin/env python3
"""What `tenon` shows of a device: the kernels and the source that it gets, and the time of each step.

    device_form_test.py [BUILD]

Prints a line "PASS name" or "FAIL name: why" a test.
"""

import json
import os
import sys

import cli_test
from cli_test import BUILD, contains, equal, expect, fails, run_tenon, succeeds, write

LAYER = cli_test.ROOT / "docs/examples/layer.mlir"
SOFTMAX = cli_test.ROOT / "core/kernel/examples/softmax.kernel"


# --- Kernels and source


def plugins_of_the_template():
    found = sorted(BUILD.resolve().glob("backends/**/libtenon_template*.so"))
    expect(len(found) >= 2, f"the template as plug-ins in C++ and in C: {found}")
    return found


def test_kernels_are_legal_for_the_device(_):
    kernels = succeeds("opt", LAYER, "--device=template", "--emit=kernels")
    form = "s8,u8,s16,u16,s64,u64,fma,dimensions"
    equal(succeeds("kernel", "-", "--legalize", form, stdin=kernels), kernels)
    contains(kernels, "kernel @dot_general(%x0: in u16[2,3], ")
    contains(kernels, f'label "stablehlo.dot_general at {LAYER}:3:14"')
    # A device that takes kernels as they are written gets bf16.
    contains(succeeds("opt", LAYER, "--device=interp", "--emit=kernels"), "%x0: in bf16[2,3], ")


def test_steps_without_a_kernel_are_named(_):
    kernels = succeeds("opt", LAYER, "--device=cpu", "--emit=kernels")
    contains(kernels, f"// native: stablehlo.dot_general at {LAYER}:3:14 (contraction ")
    expect("kernel @dot_general" not in kernels, kernels)
    equal(succeeds("kernel", "-", "--check", stdin=kernels), "")  # It is text of kernels all the same.
    declines = BUILD.resolve() / "core/libdeclines.so"
    contains(succeeds("opt", LAYER, f"--device={declines}", "--emit=kernels"),
             "// host: stablehlo.dot_general at ")


def test_source_is_that_of_the_device(folder):
    source = succeeds("opt", LAYER, "--device=template", "--emit=source")
    contains(source, "\nstatic void dot_general(const uint16_t *restrict x0, ")
    contains(source, f"// stablehlo.dot_general at {LAYER}:3:14\n")
    for plugin in plugins_of_the_template():
        contains(succeeds("opt", LAYER, f"--device={plugin}", "--emit=source"), "static void dot_general(")
    succeeds("opt", LAYER, "--device=template", "--emit=source", "-o", folder / "k.c")
    equal((folder / "k.c").read_text(), source)


def test_devices_without_source_say_so(_):
    for device in ("cpu", "interp", "gpu-sim"):
        equal(fails(1, "opt", LAYER, f"--device={device}", "--emit=source"),
              f"tenon: error: {device} renders no source: it compiles kernels itself; --emit=kernels prints the kernels "
              "as it gets them\n")


def test_programs_of_a_device(folder):
    program = succeeds("opt", LAYER, "--device=cpu", "--emit=program")
    contains(program, ": contraction lhs_contracting=[1] rhs_contracting=[0] (%0, %1) -> (%3)")
    succeeds("opt", LAYER, "--device=cpu", "--emit=program-bytes", "-o", folder / "p")
    arguments = ("--arg", "0=1", "--arg", "1=2", "--arg", "2=-5.5")
    equal(succeeds("run", folder / "p", "--device=cpu", *arguments), succeeds("run", LAYER, *arguments))


def test_kernels_from_a_file(_):
    contains(succeeds("kernel", SOFTMAX, "--device=template", "--emit=source"), "static void softmax(")
    legal = succeeds("kernel", SOFTMAX, "--device=template")
    expect(" exp " not in legal, legal)
    contains(succeeds("kernel", SOFTMAX, "--device=interp"), " exp ")
    contains(fails(1, "kernel", SOFTMAX, "--device=cpu", "--emit=source"), "cpu renders no source")


def test_a_program_that_the_compiler_refuses_is_shown(folder):
    """What the compiler was given comes before its error."""
    cli_test.os.environ["TENON_TEMPLATE_CC"] = "false"
    try:
        for form, part in (("kernels", "kernel @dot_general("), ("source", "static void dot_general(")):
            code, out, err = run_tenon("opt", LAYER, "--device=template", f"--emit={form}")
            equal(code, 1)
            contains(out, part)
            contains(err, "error: ")
    finally:
        del cli_test.os.environ["TENON_TEMPLATE_CC"]


def test_options_that_do_not_go_together(folder):
    contains(fails(2, "opt", LAYER, "--emit=source"), "--emit=source needs a --device")
    contains(fails(2, "opt", LAYER, "--device=cpu"), "--device needs --emit=kernels, source, program")
    contains(fails(2, "opt", LAYER, "--device=cpu", "--emit=kernels", "--calls=all"), "omit --calls")
    contains(fails(2, "opt", LAYER, "--emit=kernels", "--layer=validate"), "--layer needs a --device")
    contains(fails(2, "opt", LAYER, "--device=nonesuch", "--emit=kernels"), "there is no device 'nonesuch'")
    contains(fails(1, "opt", LAYER, "--device=cpu:99", "--emit=kernels"), "there is no number 99")
    contains(fails(2, "kernel", SOFTMAX, "--emit=source"), "--emit=source needs a --device")
    contains(fails(2, "kernel", SOFTMAX, "--emit=c", "--device=cpu"), "--device states the language")
    contains(fails(2, "kernel", SOFTMAX, "--legalize=least", "--device=cpu"), "--device states the form")
    contains(fails(2, "kernel", SOFTMAX, "--emit=source", "--device=template", "--lanes=8"), "omit --lanes")


# --- The times of steps

LOOP = """func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<64x64xf32>
    cond {
      %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %p = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
          : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %t = stablehlo.tanh %p : tensor<64x64xf32>
      stablehlo.return %n, %t : tensor<i32>, tensor<64x64xf32>
    }
  return %r#1 : tensor<64x64xf32>
}
"""


def test_each_step_that_ran_is_named(folder):
    program = write(folder, "loop.mlir", LOOP)
    for device, kind, name in (("cpu", "call", "contraction"), ("template", "kernel", "dot_general_tiles")):
        run = json.loads(succeeds("run", program, "--arg", "0=0.01", f"--device={device}", "--steps", "--repeat=3", "--json"))
        steps = run["step_times"]["steps"]
        found = {(step["kind"], step["name"], step["label"].split(" at ")[0]): step["launches"] for step in steps}
        for key, launches in {("loop", "", "stablehlo.while"): 1, ("kernel", "compare", "stablehlo.compare"): 6,
                              ("kernel", "add", "stablehlo.add"): 5, (kind, name, "stablehlo.dot_general"): 5,
                              ("kernel", "tanh", "stablehlo.tanh"): 5}.items():
            equal((key, found.get(key)), (key, launches))
        expect(all(f" at {program}:" in step["label"] for step in steps), steps)
        expect(all(step["median"] > 0 for step in steps if step["kind"] in ("kernel", "call")), steps)
        expect(abs(sum(step["share"] for step in steps) - 1) < 1e-6, steps)
        equal(len(run["step_times"]["executions"]), 3)
        # A predicate is read before each iteration and behind the last one.
        equal([each["copies"] for each in run["step_times"]["transfers"]
               if each["name"] == "copy device to host, for steps"], [18])
        # They are the steps of a run without the events.
        equal(run["results"], json.loads(succeeds("run", program, "--arg", "0=0.01", f"--device={device}", "--json"))["results"])


def test_steps_of_the_host_are_named(folder):
    program = write(folder, "p.mlir", cli_test.ADD)
    declines = BUILD.resolve() / "core/libdeclines.so"
    run = ("run", program, "--arg", "0=1", "--arg", "1=2", f"--device={declines}", "--steps", "--json")
    steps = json.loads(succeeds(*run))["step_times"]["steps"]
    equal([(step["kind"], step["launches"]) for step in steps], [("host", 1)])
    contains(steps[0]["label"], f"stablehlo.add at {program}:2:8")


def test_steps_are_printed(folder):
    program = write(folder, "p.mlir", cli_test.ADD)
    code, out, err = run_tenon("run", program, "--arg", "0=1", "--arg", "1=2", "--device=template", "--time", "--steps", "--quiet")
    equal((code, out), (0, ""))
    contains(err, "10 executions: median ")
    contains(err, "100.0 %  add: stablehlo.add at ")
    contains(err, "copy host to device: 2 times, 16 bytes, ")
    for option in ("--time", "--steps", "--repeat=3"):
        contains(fails(2, "run", program, "--arg", "0=1", "--arg", "1=2", option), f"{option.split('=')[0]} needs a --device")


def test_an_endless_loop_is_ended(folder):
    program = write(folder, "endless.mlir", """func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %least = stablehlo.constant dense<-1000> : tensor<i32>
  %r = stablehlo.while(%k = %x) : tensor<i32>
   cond {
    %p = stablehlo.compare GE, %k, %least : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
   } do {
    %n = stablehlo.xor %k, %one : tensor<i32>
    stablehlo.return %n : tensor<i32>
  }
  return %r : tensor<i32>
}
""")
    for device in ("cpu", "interp", "template"):
        run = ("run", program, "--arg", "0=1", f"--device={device}")
        contains(fails(1, *run, "--time-limit=200"), "200 ms")
    contains(fails(2, "run", program, "--arg", "0=1", "--time-limit=200"), "--time-limit needs a --device")
    os.environ["TENON_TIME_LIMIT"] = "150"
    try:
        contains(fails(1, *run), "150 ms")
        contains(fails(2, *run, "--time-limit=-1"), "--time-limit")
        os.environ["TENON_TIME_LIMIT"] = "soon"
        contains(fails(1, *run), "TENON_TIME_LIMIT is 'soon', expected milliseconds")
        succeeds("schedules")
    finally:
        del os.environ["TENON_TIME_LIMIT"]


if __name__ == "__main__":
    sys.exit(cli_test.main(globals()))
