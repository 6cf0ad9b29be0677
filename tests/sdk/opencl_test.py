#!/usr/bin/env python3
"""The plug-in of samples/opencl: built with installed files alone, and run on an OpenCL device of this machine.

    opencl_test.py BUILD [--full] [--only PART]...

Runs the samples, the conformance suite, the data files of TENON_STABLEHLO_DATA, JAX's tests, and the suite on devices that declare
less. Where there is no device (Debian's pocl-opencl-icd is one on any CPU), all is skipped. By default parts of each, with what PoCL
made of the same sources before, kept in the user's cache folder; with --full the tier quick, all data files, 2,000 random programs and
200 schedules of faults, all compiled anew. Prints a line "PASS name", "FAIL name: why" or "SKIP name: why" a test.
"""

import argparse
import ctypes.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from installation import ROOT, Installed, attempt, expect, run, succeeds

sys.path[:0] = [str(ROOT / "tests/docs"), str(ROOT / "scripts")]
import guide_test  # noqa: E402
from kept_folders import folder_of_one_run  # noqa: E402

# What a device may lack, by the settings of samples/opencl/README.md.
NARROWED = {
    "without f64": {"TENON_OPENCL_WITHOUT": "f64"},
    "without f64, 64-bit integers, atomics, shared memory": {"TENON_OPENCL_WITHOUT": "f64,s64,atomics,svm"},
    "4 KiB of local memory": {"TENON_OPENCL_SCRATCH": "4096"},
    "no local memory": {"TENON_OPENCL_SCRATCH": "1"},
    "1 MiB of memory": {"TENON_OPENCL_MEMORY": "1048576"},
    "buffers at 4096 bytes, one queue": {"TENON_OPENCL_ALIGNMENT": "4096", "TENON_OPENCL_QUEUES": "1"},
    "16 lanes": {"TENON_OPENCL_LANES": "16"},
    "waits as for a GPU": {"TENON_OPENCL_WITHOUT": "host,svm,calls", "TENON_OPENCL_LANES": "1"},
}
IN_CI = ["without f64, 64-bit integers, atomics, shared memory", "4 KiB of local memory", "waits as for a GPU"]
# PoCL compiles some loops with barriers wrongly: see the README of the sample.
EXCLUDED = {"16 lanes": ["random/loop/*"]}
# A part of each group that is small but uses every part of the plug-in.
FEW = ["op/add/*/prime/ordinary", "op/reduce/f32/add_*/ordinary", "op/dot_general/f32/*", "op/scatter/s64/*",
       "op/exponential/f32/prime/ordinary", "pattern/softmax/f32*"]
WITHOUT_CACHE = {"POCL_KERNEL_CACHE": "0"}
PATIENCE = 300  # Seconds for a case that takes one or two alone: PoCL compiles on as many threads as there are processors.
MOST_KEPT = 150_000_000  # Bytes of PoCL's cache; one run makes 26 million.


class Plugin:
    """The sample, built in a folder of its own."""

    def __init__(self, installed, folder, kept):
        self.installed = installed
        self.folder = folder / "opencl"
        self.path = self.folder / "build/libopencl.so"
        self.kept = kept
        self.variables = {**installed.variables, **WITHOUT_CACHE}
        self.kept_variables = {**installed.variables, **self.cache()}

    def cache(self):
        """Settings of PoCL's cache of kernels. Processes that share it can abort one another: those that do run one by one."""
        return WITHOUT_CACHE if self.kept is None else {"POCL_CACHE_DIR": str(self.kept)}

    def conform(self, *words, limit=3600, outcomes=("pass",), least=0.9, **variables):
        """Runs cases of the conformance suite, each of which has to end in one of `outcomes`, and more than the share `least` pass."""
        one_by_one = [] if self.kept is None else ["--jobs", 1]
        patient = [] if "--timeout" in words else ["--timeout", PATIENCE]
        cases, output = self.installed.conform(self.path, self.folder, *patient, *one_by_one, *words,
                                               variables={**self.kept_variables, **variables}, limit=limit)
        wrong = [f"{case['outcome']} {case['name']}" for case in cases if case["outcome"] not in outcomes]
        expect(cases and not wrong, f"{wrong[:5]}: {output[:2000]}")
        kernels = sum(case["steps"]["kernels"] for case in cases if "steps" in case)
        passed = sum(case["outcome"] == "pass" for case in cases)
        expect(kernels > 0 and passed > least * len(cases), f"{passed} of {len(cases)} passed, {kernels} kernels ran on the device")
        return f"{passed} cases, {kernels} kernels on the device"


def has_device():
    """Whether OpenCL's loader finds a platform; it is asked in a process of its own, as drivers may do anything."""
    code = ("import ctypes; cl = ctypes.CDLL('libOpenCL.so.1'); n = ctypes.c_uint(0);"
            "raise SystemExit(cl.clGetPlatformIDs(0, None, ctypes.byref(n)) != 0 or n.value == 0)")
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_build(plugin):
    shutil.copytree(ROOT / "samples/opencl", plugin.folder)
    for command in (["meson", "setup", "build", "--werror"], ["ninja", "-C", "build"]):
        succeeds(*command, folder=plugin.folder, variables=plugin.installed.kept_variables)
    used = succeeds("ninja", "-C", "build", "-t", "deps", folder=plugin.folder, variables=plugin.variables)
    expect(str(ROOT) not in used, f"headers of the repository are used:\n{used}")
    expect((plugin.folder / "build/libtenon_nvrtc.so").exists(), "the plug-in for NVIDIA GPUs was not built")  # nvrtc_test.py runs it.
    lines = sum(bool(re.match(r"\s*(?!//)\S", line)) for suffix in ("*.cpp", "*.h") for file in plugin.folder.glob(suffix)
                for line in file.read_text().splitlines())
    expect(lines <= 700, f"{lines} lines of code, at most 700 are wanted")
    return f"{lines} lines of code"


def test_calls(plugin):
    """Calls that the plug-in takes, by its own kernel and by a library, give what the kernels of Tenon give."""
    program = plugin.folder / "softmax.mlir"
    program.write_text((ROOT / "docs/examples/guide/softmax.mlir").read_text())
    run_it = ("run", program, "--strict", "--json", "--arg", "0=random:1")

    def result(device, **variables):
        said = json.loads(succeeds(plugin.installed.tool, *run_it, "--device", device, folder="/",
                                   variables={**plugin.kept_variables, **variables}))
        return said["steps"], [value for row in said["results"][0]["value"] for value in row]
    expected = result("interp")[1]
    for variables in ({}, {"TENON_OPENCL_WITHOUT": "svm"}, {"TENON_OPENCL_WITHOUT": "calls"}):
        steps, values = result(plugin.path, **variables)
        expect(steps["device"] > 0 and steps["host"] == 0, steps)
        # The interpreter, which sums 512 terms one after the other, is off by 1e-6 itself.
        wrong = [(a, b) for a, b in zip(values, expected, strict=True) if abs(a - b) > 2e-6 * b]
        expect(not wrong, f"{variables}: {wrong[:3]}")
        placed = succeeds(plugin.installed.tool, "explain", program, "--device", plugin.path, "--placement", folder="/",
                          variables={**plugin.kept_variables, **variables})
        is_taken = variables.get("TENON_OPENCL_WITHOUT") != "calls"
        expect(placed.startswith("native 1, kernel 0, host 0") == is_taken, placed)
    # A program may state a composite of that name with any operands and attributes.
    for type_, attributes in (("tensor<f32>", "{dimension = 0 : i64}"), ("tensor<4x32xf32>", "{}"),
                              ("tensor<4x32xf32>", '{dimension = "x"}'), ("tensor<4x32xf32>", "{dimension = 1 : i64, x = 1 : i64}")):
        program.write_text(f"func.func @main(%x: {type_}) -> {type_} {{\n"
                           f'  %y = stablehlo.composite "tenon.softmax" %x {{composite_attributes = {attributes}, decomposition = @f}} '
                           f": ({type_}) -> {type_}\n  return %y : {type_}\n}}\n"
                           f"func.func private @f(%x: {type_}) -> {type_} {{\n  %y = stablehlo.negate %x : {type_}\n"
                           f"  return %y : {type_}\n}}\n")
        placed = succeeds(plugin.installed.tool, "explain", program, "--device", plugin.path, "--placement", folder="/",
                          variables=plugin.kept_variables)
        expect(placed.startswith("native 0, kernel 1, host 0"), placed)
    if ctypes.util.find_library("clblast") is None:
        return "without CLBlast, which is not installed"
    report = plugin.folder / "clblast.json"
    succeeds(plugin.installed.tool, "conform", "--device", plugin.path, "--no-reduce", "--quiet", "--json", report, "--jobs", 1,
             "op/dot_general/f32/*", "--shard", "1/2", "--timeout", 300, folder="/", variables={**plugin.kept_variables, "TENON_OPENCL_CLBLAST": "1"}, limit=600)
    calls = sum(case["steps"]["calls"] for case in json.loads(report.read_text())["cases"])
    expect(calls > 5, f"{calls} calls of CLBlast")
    # CLBlast's call is several kernels: the step's time, which the device states, is that of all of them.
    program.write_text((ROOT / "bench/devices/product.mlir").read_text())
    said = json.loads(succeeds(*(plugin.installed.tool, "run", program, "--json", "--time", "--steps", "--repeat", 3, "--device", plugin.path,
                                 "--arg", "0=random:1", "--arg", "1=random:2"), folder="/",
                               variables={**plugin.kept_variables, "TENON_OPENCL_CLBLAST": "1"}))["step_times"]
    step, = said["steps"]
    expect(step["kind"] == "call" and step["median"] > 0.2 * min(said["executions"]), said)
    return f"{calls} calls of CLBlast"


def test_guide(plugin):
    """docs/source-guide.md by its text alone, in an empty folder."""
    folder = plugin.folder.parent / "reader"
    folder.mkdir()
    commands = guide_test.commands_of(ROOT / "docs/source-guide.md")
    expect(len(commands) > 6, f"the page has {len(commands)} commands")
    # The page turns PoCL's cache off, so that here each kernel is compiled.
    shell = guide_test.Shell(folder, {**plugin.installed.kept_variables, "HOME": str(folder), "LANG": "C.UTF-8",
                                      "PATH": f"{pathlib.Path(plugin.installed.tool).parent}:{os.environ['PATH']}",
                                      "SAMPLE": str(ROOT / "samples/opencl"), "EXAMPLES": str(ROOT / "docs/examples")})
    begin = time.monotonic()
    for command, shown in commands:
        why = guide_test.fault(*shell.run(command), shown)
        expect(not why, f"{command}: {why}")
    shell.close()
    return f"{len(commands)} commands in {time.monotonic() - begin:.0f} s"


def test_its_own_tests(plugin, full):
    """The smallest tier of the suite; without --full an eighth of it, since PoCL takes a third of a second for each kernel."""
    part = [f"--test-args=--timeout {PATIENCE}" + ("" if full else " --shard 1/8 --jobs 1")]
    output = succeeds("meson", "test", "-C", "build", "--print-errorlogs", *part, folder=plugin.folder, variables=plugin.kept_variables,
                      limit=1200)
    expect(re.search(r"^Ok:\s+1", output, re.MULTILINE), output[-2000:])
    log = json.loads((plugin.folder / "build/meson-logs/testlog.json").read_text().splitlines()[-1])
    ran = re.search(r"^(\d+) cases: \1 pass\nsteps on the device: (\d+) kernels, .* on the host: 0", log["stdout"], re.MULTILINE)
    expect(ran and int(ran.group(2)) > (300 if full else 40), log["stdout"][-1000:])
    # PoCL's own cache gives equal bytes; without it the plug-in has to.
    same, said = plugin.installed.conform(plugin.path, plugin.folder, "seam/B13/*", variables=plugin.variables)
    expect([case["outcome"] for case in same] == ["pass"], f"{same}: {said[-1000:]}")
    return f"{ran.group(1)} cases, {ran.group(2)} kernels on the device"


def test_devices(plugin):
    variables = {**plugin.variables, "TENON_PLUGIN_PATH": str(plugin.path.parent)}
    said = succeeds(plugin.installed.tool, "devices", "--verbose", folder="/", variables=variables)
    expect(re.search(r"^opencl\s+available\s+\d+ devices? of target ", said, re.MULTILINE), said)
    status, said = run(plugin.installed.tool, "devices", folder="/", variables={**variables, "TENON_OPENCL_LANES": "many"})
    expect(status == 0 and "TENON_OPENCL_LANES is 'many', expected a number from 1 on" in said, said)


def test_samples(plugin, full):
    return plugin.conform("model/*") if full else plugin.conform("model/digits*", "model/fft*")


def test_narrowed(plugin, full):
    said = []
    for i, (name, variables) in enumerate(NARROWED.items()):
        if not full and name not in IN_CI:
            continue
        patterns = ["--tier", "smoke"] if full else [*FEW, "--shard", f"{i % 2 + 1}/2"]
        for each in EXCLUDED.get(name, []):
            patterns = [*patterns, "--exclude", each]
        said.append(f"{name}: {plugin.conform(*patterns, **variables)}")
    return "; ".join(said)


def test_data_files(plugin, full):
    words = ["--data", os.environ["TENON_STABLEHLO_DATA"]]
    # A program of constants runs no step.
    expected = {"outcomes": ("pass", "not-run", "not-supported"), "TENON_OPENCL_DEVICES": "16"}
    if not full:
        return plugin.conform(*words, "data/testdata/*", "--shard", "3/64", "--timeout", 600, **expected)
    said = plugin.conform(*words, "--exclude", "data/vhlo/*", "--timeout", 600, limit=10800, **expected)
    # Each has the same hundreds of functions in the form of another version, which PoCL compiles once. The verifier refuses two or
    # three of each, so that the part is not supported as a whole.
    kept = plugin.folder / "pocl_vhlo"
    kept.mkdir(exist_ok=True)
    versions = plugin.conform(*words, "data/vhlo/*", "--jobs", 1, "--timeout", 3600, limit=14400, least=0, POCL_KERNEL_CACHE="1",
                              POCL_CACHE_DIR=str(kept), **expected)
    return f"{said}; of every version: {versions}"


def test_random(plugin):
    return "; ".join(plugin.conform("random/*", "--seed", seed) for seed in "0123")


def test_quick(plugin):
    return plugin.conform("--tier", "quick", limit=14400)


def test_faults(plugin, full):
    """Each fault of a device is an error with the call, and nothing crashes or hangs."""
    program = ROOT / "samples/convnet/program.mlir"
    inputs = [word for i, file in enumerate(sorted(program.parent.glob("in_*.npy"))) for word in ("--arg", f"{i}=@{file}")]
    failed = 0
    schedules = 200 if full else 8
    for seed in range(schedules):
        rate = 4 * 3 ** (seed % 8)  # From nearly always to nearly never: some runs must fail, and some must not.
        status, said = run(plugin.installed.tool, "run", program, *inputs, "--quiet", "--device", plugin.path, "--layer=faults,validate",
                           folder="/", limit=PATIENCE,
                           variables={**plugin.kept_variables, "TENON_FAULTS": f"launch%{rate} copy%{rate} allocate%{rate} event%{rate} delay%4 seed={seed}"})
        expect(status == 0 or (status == 1 and "error: " in said), f"seed {seed}: {status}: {said[-500:]}")
        failed += status == 1
    expect(0 < failed < schedules, f"{failed} of {schedules} runs failed")
    return f"{failed} of {schedules} runs failed"


def test_jax(plugin, build, full):
    jax = ROOT / "frameworks/jax"
    variables = {**os.environ, "JAX_PLATFORMS": "tenon,cpu", "TENON_DEVICE": str(plugin.path),
                 **plugin.cache(),
                 "TENON_PJRT_LIBRARY": str(build / "frameworks/pjrt/libtenon_pjrt.so")}
    files = sorted((jax / "tests").glob("test_*.py"))
    chosen = files if full else [file for file in files if file.stem in ("test_arrays", "test_training")]
    output = succeeds(jax / ".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300", *chosen,
                      folder=ROOT, variables=variables, limit=7200)
    passed = re.search(r"(\d+) passed", output)
    expect(passed and int(passed.group(1)) > 10 and "failed" not in output, output[-2000:])
    return f"{passed.group(1)} cases"


def parts(plugin, build, full):
    """Every part of this test behind the build, by name, with its arguments."""
    jax = (ROOT / "frameworks/jax/.venv/tenon.installed").exists()
    data = "TENON_STABLEHLO_DATA" in os.environ
    return {
        "devices": (test_devices, plugin),
        "its own tests": (test_its_own_tests, plugin, full),
        "samples": (test_samples, plugin, full),
        "calls": (test_calls, plugin),
        "the guide": (test_guide, plugin),
        "faults": (test_faults, plugin, full),
        "narrowed": (test_narrowed, plugin, full),
        **({"random programs": (test_random, plugin), "quick": (test_quick, plugin)} if full else {}),
        "JAX": (test_jax, plugin, build, full) if jax else "there is no environment with it (frameworks/jax/make-venv)",
        "data files": (test_data_files, plugin, full) if data else "TENON_STABLEHLO_DATA is not set",
    }


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build")
    words.add_argument("--full", action="store_true", help="everything, with an empty cache of kernels (75 minutes on two cores)")
    words.add_argument("--only", action="append", metavar="PART", help="this part alone (may be given several times)")
    arguments = words.parse_args()
    build = arguments.build.resolve()
    names = list(parts(None, build, arguments.full))
    if unknown := set(arguments.only or []) - set(names):
        words.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if not has_device():
        print("SKIP all: there is no OpenCL device (on Debian: apt install pocl-opencl-icd)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # The lock is held until this process ends.
        kept, _ = (None if arguments.full else folder_of_one_run("pocl", MOST_KEPT)) or (None, None)
        plugin = Plugin(Installed(build, folder), folder, kept)
        if not attempt("build", test_build, plugin):
            return 1
        chosen = parts(plugin, build, arguments.full)
        good = True
        for name, part in chosen.items():
            if arguments.only and name not in arguments.only:
                continue
            if isinstance(part, str):
                print(f"SKIP {name}: {part}")
            else:
                good &= attempt(name, *part)
    if not good and kept is not None:  # What was kept may be the reason.
        shutil.rmtree(kept, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
