#!/usr/bin/env python3
"""The plug-in of samples/opencl/nvrtc: built with installed files alone, without a GPU.

    nvrtc_test.py BUILD [--full]

First on a driver and a compiler for the host (tests/gpu/nvrtc), which run the CUDA C++ lane by lane: what kernels compute is right. Then NVRTC itself (scripts/nvrtc) compiles programs for three architectures, and functions named as each
op is. By default parts of the suite; with --full its tier smoke. Prints a line "PASS name", "FAIL name: why" or "SKIP name: why"
a test.
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from installation import ROOT, Installed, attempt, expect, run, succeeds

ABSENT = 77  # There is neither a toolkit nor an index to install from.
ARCHITECTURES = [75, 80, 90]
# A part of each group that is small but uses every part of the plug-in.
FEW = ["op/add/*/prime/ordinary", "op/reduce/f32/add_*/ordinary", "op/dot_general/f32/*", "op/scatter/s64/*", "op/while/*",
       "op/exponential/f32/prime/ordinary", "pattern/softmax/f32*"]


class Plugin:
    """The sample, built in a folder of its own, and the host's driver and compiler."""

    def __init__(self, installed, folder):
        self.installed = installed
        self.folder = folder / "project"
        self.path = self.folder / "build/libtenon_nvrtc.so"
        self.host = folder / "libhost.so"
        self.log = folder / "modules"
        self.variables = {**installed.variables, "TENON_CUDA_LIBRARY": str(self.host), "TENON_FAKE_LOG": str(self.log)}
        if "TENON_CC_CACHE" in os.environ:  # What the host's compiler made of a source before.
            self.variables |= {"TENON_FAKE_CXX": str(ROOT / "tests/sdk/cached_cc"), "TENON_CC_CACHE": os.environ["TENON_CC_CACHE"]}

    def conform(self, *words, nvrtc=None, limit=3600, **variables):
        """The cases of a report, and how many modules were loaded meanwhile for "host" and "gpu"."""
        self.log.write_text("")
        settings = {**self.variables, "TENON_NVRTC_LIBRARY": str(nvrtc or self.host), **variables}
        cases, _ = self.installed.conform(self.path, self.folder, *words, variables=settings, limit=limit)
        loaded = self.log.read_text().split()
        return cases, {kind: loaded.count(kind) for kind in ("host", "gpu")}


def test_build(plugin):
    shutil.copytree(ROOT / "samples/opencl", plugin.folder)
    for command in (["meson", "setup", "build", "--werror"], ["ninja", "-C", "build", "libtenon_nvrtc.so"]):
        succeeds(*command, folder=plugin.folder, variables=plugin.installed.kept_variables)
    used = succeeds("ninja", "-C", "build", "-t", "deps", folder=plugin.folder, variables=plugin.variables)
    expect(str(ROOT) not in used, f"headers of the repository are used:\n{used}")
    lines = sum(bool(re.match(r"\s*(?!//)\S", line)) for file in (plugin.folder / "nvrtc").iterdir()
                for line in file.read_text().splitlines())
    expect(lines <= 500, f"{lines} lines of code, at most 500 are wanted")
    sources = sorted((ROOT / "tests/gpu/nvrtc").glob("*.cpp"))
    # ccache takes one source at a time.
    compiler = [*(["ccache"] if shutil.which("ccache") else []), *os.environ.get("CXX", "c++").split(), "-std=c++20", "-O1", "-fPIC"]
    objects = [plugin.folder / f"{source.stem}.o" for source in sources]
    for source, made in zip(sources, objects, strict=True):
        succeeds(*compiler, "-c", source, "-o", made, folder=plugin.folder, variables=plugin.installed.kept_variables)
    succeeds(*compiler, "-shared", *objects, "-o", plugin.host, "-ldl", "-pthread", folder=plugin.folder, variables=plugin.variables)
    return f"{lines} lines of code"


def test_devices(plugin):
    """A plug-in without a driver, or without a compiler, says so."""
    for variables, wanted in (
            ({"TENON_NVRTC_LIBRARY": str(plugin.host)}, r"available +1 device of target sm_90"),
            ({"TENON_CUDA_LIBRARY": "libnone.so"}, r"unavailable +libnone.so: cannot open .*; TENON_CUDA_LIBRARY may name another file"),
            ({"TENON_NVRTC_LIBRARY": "libnone.so"}, r"unavailable +libnone.so: cannot .*; TENON_NVRTC_LIBRARY may name another file"),
            ({"TENON_CUDA_LIBRARY": "libdl.so.2"}, r"unavailable +there is no function cuInit")):
        said = succeeds(plugin.installed.tool, "devices", folder="/",
                        variables={**plugin.variables, "TENON_PLUGIN_PATH": str(plugin.path), **variables})
        expect(re.search(rf"^nvrtc +{wanted}", said, re.MULTILINE), said)


def test_on_the_host(plugin, full):
    cases, loaded = plugin.conform(*(["--tier", "smoke"] if full else [*FEW, "--shard", "1/5"]))
    wrong = [f"{case['outcome']} {case['name']}: {case['message'][:500]}" for case in cases if case["outcome"] != "pass"]
    expect(len(cases) > 20 and not wrong, f"{len(wrong)} of {len(cases)}: {wrong[:3]}")
    kernels = sum(case["steps"]["kernels"] for case in cases if "steps" in case)
    expect(kernels > 20 and loaded["host"] > 20, f"{kernels} kernels, {loaded} modules")
    return f"{len(cases)} cases, {kernels} kernels, {loaded['host']} modules"


def test_faults(plugin, full):
    """Each fault of a device is an error with the call, and nothing crashes or hangs."""
    program = ROOT / "samples/convnet/program.mlir"
    inputs = [word for i, file in enumerate(sorted(program.parent.glob("in_*.npy"))) for word in ("--arg", f"{i}=@{file}")]
    failed = 0
    schedules = 40 if full else 8
    for seed in range(schedules):
        rate = 4 * 3 ** (seed % 8)  # From nearly always to nearly never: some runs must fail, and some must not.
        status, said = run(plugin.installed.tool, "run", program, *inputs, "--quiet", "--device", plugin.path, "--layer=faults,validate",
                           folder="/", limit=120,
                           variables={**plugin.variables, "TENON_NVRTC_LIBRARY": str(plugin.host),
                                      "TENON_FAULTS": f"launch%{rate} copy%{rate} allocate%{rate} event%{rate} delay%4 seed={seed}"})
        expect(status == 0 or (status == 1 and "error: " in said), f"seed {seed}: {status}: {said[-500:]}")
        failed += status == 1
    expect(0 < failed < schedules, f"{failed} of {schedules} runs failed")
    return f"{failed} of {schedules} runs failed"


# A loop that never ends, under a time limit; afterwards the device is opened again.
STOPPED = """
import jax, jax.numpy as jnp
assert jax.jit(lambda x: (x * 2).sum())(jnp.arange(5.)) == 20
try:
    jax.jit(lambda x: jax.lax.while_loop(lambda i: i >= 0, lambda i: i ^ 1, x))(jnp.int32(5)).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print(error)
print(jax.devices(), jax.jit(lambda x: x + 1)(jnp.arange(3)))
"""


def test_time_limit(plugin, build):
    variables = {**os.environ, **plugin.variables, "TENON_NVRTC_LIBRARY": str(plugin.host), "JAX_PLATFORMS": "tenon,cpu",
                 "TENON_DEVICE": str(plugin.path), "TENON_PJRT_LIBRARY": str(build / "frameworks/pjrt/libtenon_pjrt.so"),
                 "TENON_TIME_LIMIT": "2500"}
    said = succeeds(ROOT / "frameworks/jax/.venv/bin/python", "-c", STOPPED, folder="/", variables=variables)
    expect("nvrtc:0: work took longer than the time limit of 2500 ms" in said and "[1 2 3]" in said, said[-2000:])


def test_by_nvrtc(plugin, nvrtc, full):
    """NVRTC takes what is rendered, for each architecture; the launches do nothing, so results are wrong."""
    counts = []
    for i, architecture in enumerate(ARCHITECTURES):
        words = ["--tier", "smoke"] if full else ["--tier", "smoke", "--shard", f"{4 * i + 1}/{8 * len(ARCHITECTURES)}"]
        cases, loaded = plugin.conform(*words, nvrtc=nvrtc, TENON_FAKE_SM=str(architecture))
        refused = [f"{case['name']}: {case['message'][:1000]}" for case in cases if re.search("nvrtc|cuModule", json.dumps(case))]
        expect(not refused, f"sm_{architecture}: {refused[:2]}")
        expect(loaded["gpu"] >= len(cases) > 10 and loaded["host"] == 0, f"sm_{architecture}: {len(cases)} cases, {loaded} modules")
        counts.append(f"sm_{architecture}: {loaded['gpu']} modules of {len(cases)} cases")
    status, said = run(plugin.installed.tool, "run", ROOT / "docs/examples/layer.mlir", "--device", plugin.path, "--strict",
                       *(word for i in range(3) for word in ("--arg", f"{i}=1")), folder="/",
                       variables={**plugin.variables, "TENON_NVRTC_LIBRARY": str(nvrtc), "TENON_FAKE_SM": "10"})
    expect(status == 1 and "nvrtcCompileProgram: NVRTC_ERROR_INVALID_OPTION: nvrtc: error: invalid value" in said, said)
    return "; ".join(counts)


def compile_by(nvrtc, source):
    """The log of NVRTC, empty if it takes the source."""
    os.environ["LD_LIBRARY_PATH"] = str(pathlib.Path(nvrtc).parent)
    part = next(iter(pathlib.Path(nvrtc).resolve().parent.glob("libnvrtc-builtins.so.*")))
    ctypes.CDLL(str(part))
    library = ctypes.CDLL(str(nvrtc))
    program = ctypes.c_void_p()
    expect(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"names.cu", 0, None, None) == 0, "no program")
    if library.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")) == 0:
        return ""
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    return log.value.decode() or "an error without a word"


def test_names(plugin, nvrtc):
    """Kernels, and their buffers, may have the name of any op; NVRTC has to take their functions."""
    ops = succeeds(plugin.installed.tool, "ops", "--markdown", folder="/", variables=plugin.variables)
    names = sorted(set(re.findall(r"^\| `\w+\.([\w.]+)`", ops, re.MULTILINE)))
    expect(len(names) > 100 and {"constant", "tanh", "select", "and"} <= set(names), names)
    names += ["random", "threadIdx", "warpSize", "float4", "atomicAdd", "half", "template", "this", "new", "main", "min", "clock"]
    file = plugin.folder / "names.kernel"
    file.write_text("".join(f"kernel @{name.replace('.', '_')}(%{name.replace('.', '_')}: out f32[2]) index s32 grid() {{\n"
                            f"  lanes(%i: 2) {{\n    store 1.0, %{name.replace('.', '_')}[%i] : f32\n  }}\n}}\n"
                            for name in sorted(set(names))))
    source = succeeds(plugin.installed.tool, "kernel", file, "--emit=cuda", folder="/", variables=plugin.variables)
    expect(source.count("__global__") == len(set(names)), source[-1000:])
    log = compile_by(nvrtc, source)
    expect(not log, log[:2000])
    expect("threadIdx" in compile_by(nvrtc, 'extern "C" __global__ void threadIdx(float *x) {}'), "a reserved name is taken")
    return f"{len(set(names))} names"


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    full = "--full" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        plugin = Plugin(Installed(build, folder), folder)
        if not attempt("build", test_build, plugin):
            return 1
        good = attempt("devices", test_devices, plugin)
        good &= attempt("on the host", test_on_the_host, plugin, full)
        good &= attempt("faults", test_faults, plugin, full)
        if (ROOT / "frameworks/jax/.venv/tenon.installed").exists():
            good &= attempt("time limit", test_time_limit, plugin, build)
        else:
            print("SKIP time limit: there is no environment with JAX (frameworks/jax/make-venv)")
        found = subprocess.run([ROOT / "scripts/nvrtc"], capture_output=True, text=True, check=False)
        if found.returncode == ABSENT:
            print(f"SKIP NVRTC: {found.stderr.strip().splitlines()[-1]}")
        elif found.returncode != 0:
            print(f"FAIL NVRTC: {found.stderr[-500:]}")
            good = False
        else:
            nvrtc = found.stdout.strip().splitlines()[-1]
            good &= attempt("names", test_names, plugin, nvrtc)
            good &= attempt("NVRTC", test_by_nvrtc, plugin, nvrtc, full)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
