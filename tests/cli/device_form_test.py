#!/usr/bin/env python3
"""What `tenon` shows of a device: the kernels and the source that it gets, and the time of each step.

    device_form_test.py [BUILD]

Prints a line "PASS name" or "FAIL name: why" a test.
"""

import json
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


if __name__ == "__main__":
    sys.exit(cli_test.main(globals()))
