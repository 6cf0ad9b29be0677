"""Models for GPUs: compiled, linked with gpu_harness.c, run and compared with `tenon run`."""

import dataclasses
import json

import programs
import support
from support import CC, HERE, ROOT, STRICT, arrays_of, check_results, check_run, npy_data, random_arguments, results_of_run

TARGET = "--target=nvptx64-nvidia-cuda"
# Loops and branches within each other, of arrays that no workgroup holds: by predicates and by numbers, some of which are none of a branch.
NESTED = """func.func @main(%x: tensor<64x1000xf32>, %which: tensor<i32>, %more: tensor<i32>) -> (tensor<64x1000xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %most = stablehlo.add %more, %three : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %v = %x, %n = %which) : tensor<i32>, tensor<64x1000xf32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %k = stablehlo.subtract %i, %one : tensor<i32>
    %a = "stablehlo.case"(%k) ({
      %b = stablehlo.sine %v : tensor<64x1000xf32>
      stablehlo.return %b : tensor<64x1000xf32>
    }, {
      %b:2 = stablehlo.while(%c = %zero, %d = %v) : tensor<i32>, tensor<64x1000xf32>
      cond {
        %p = stablehlo.compare LT, %c, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %e = stablehlo.add %c, %one : tensor<i32>
        %f = stablehlo.tanh %d : tensor<64x1000xf32>
        stablehlo.return %e, %f : tensor<i32>, tensor<64x1000xf32>
      }
      stablehlo.return %b#1 : tensor<64x1000xf32>
    }, {
      %b = stablehlo.cosine %v : tensor<64x1000xf32>
      stablehlo.return %b : tensor<64x1000xf32>
    }) : (tensor<i32>) -> tensor<64x1000xf32>
    %q = stablehlo.compare GT, %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %m = stablehlo.add %n, %k : tensor<i32>
    %r = "stablehlo.if"(%q) ({
      %g = stablehlo.add %a, %x : tensor<64x1000xf32>
      %h = stablehlo.exponential %g : tensor<64x1000xf32>
      stablehlo.return %h : tensor<64x1000xf32>
    }, {
      %g = stablehlo.negate %a : tensor<64x1000xf32>
      stablehlo.return %g : tensor<64x1000xf32>
    }) : (tensor<i1>) -> tensor<64x1000xf32>
    stablehlo.return %j, %r, %m : tensor<i32>, tensor<64x1000xf32>, tensor<i32>
  }
  return %0#1, %0#2 : tensor<64x1000xf32>, tensor<i32>
}"""
# A loop whose turns only the argument tells, on constants.
LOOP = """func.func @main(%n: tensor<i32>) -> tensor<4x16000xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %v = stablehlo.iota dim = 1 : tensor<4x16000xf32>
  %w = stablehlo.constant dense<[0.25, -0.5, 0.75, 1.0]> : tensor<4xf32>
  %0:2 = stablehlo.while(%i = %zero, %y = %v) : tensor<i32>, tensor<4x16000xf32>
  cond {
    %p = stablehlo.compare LE, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.broadcast_in_dim %w, dims = [0] : (tensor<4xf32>) -> tensor<4x16000xf32>
    %q = stablehlo.multiply %y, %b : tensor<4x16000xf32>
    %r = stablehlo.sine %q : tensor<4x16000xf32>
    stablehlo.return %j, %r : tensor<i32>, tensor<4x16000xf32>
  }
  return %0#1 : tensor<4x16000xf32>
}"""
# Kernels of many blocks, reductions between blocks, and columns.
LARGE = """func.func @main(%x: tensor<300x2000xf32>) -> (tensor<2000xf32>, tensor<300xf32>, tensor<f32>, tensor<300x2000xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<300x2000xf32>, tensor<f32>) -> tensor<2000xf32>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<300x2000xf32>, tensor<f32>) -> tensor<300xf32>
  %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<300x2000xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.exponential %x : tensor<300x2000xf32>
  %4 = stablehlo.convert %3 : (tensor<300x2000xf32>) -> tensor<300x2000xbf16>
  return %0, %1, %2, %4 : tensor<2000xf32>, tensor<300xf32>, tensor<f32>, tensor<300x2000xbf16>
}"""
PROGRAMS = [*programs.PROGRAMS, ("nested", NESTED), ("data_loop", LOOP), ("large", LARGE)]


@dataclasses.dataclass
class Gpu:
    """The processor that models are compiled for (None: that of the options), the device on which `tenon run` runs them, the environment of programs, more options."""
    cpu: str | None
    device: str
    variables: dict
    options: tuple = ()


def compile_model(folder, source, gpu, *options, name="model"):
    """The folder of the model, and its report."""
    cpu = [f"--cpu={gpu.cpu}"] if gpu.cpu else []
    return support.aot(folder, source, TARGET, *cpu, *gpu.options, *options, name=name)


def link(out, source, *options, name="model", library=None, compiler=None):
    """A program of a C source and a model."""
    program = out / "program"
    check_run(*(compiler or CC), "-std=c11", "-O1", *STRICT, f"-I{out}", *options, source, library or out / f"lib{name}.a", "-ldl", "-o", program)
    return program


def harness(out, *options, name="model", **form):
    return link(out, HERE / "gpu_harness.c", f'-DHEADER="{name}.h"', f"-DMODEL={name}_model", *options, name=name, **form)


def samples():
    """Name, path and arguments of each sample that has results of sizes that are known."""
    for path in sorted((ROOT / "samples").glob("*/program.mlir")):
        manifest = path.parent / "manifest.json"
        inputs = sorted(path.parent.glob("in_*.npy"), key=lambda each: int(each.stem[3:]))
        has_outputs = any(path.parent.glob("out_*.npy"))
        if has_outputs and not (manifest.exists() and json.loads(manifest.read_text()).get("dynamic")) and "dynamic" not in str(path):
            yield path.parent.name, path, inputs


def compare(folder, source, gpu, *options, inputs=None, tolerance=0, harness_options=(), name="model", times=0, **form):
    """Compiles a program, given as text or as a path, runs it and compares the results with those of `tenon run`.

    Returns the folder of the model, its report and what the program printed."""
    text = source if isinstance(source, str) else source.read_text()
    arguments, results = arrays_of(text)
    out, report = compile_model(folder, source, gpu, *options, name=name)
    if inputs is None:
        inputs = random_arguments(folder, arguments)
    else:
        (folder / "arguments").write_bytes(b"".join(map(npy_data, inputs)))
    program = harness(out, *harness_options, name=name, **form)
    said = check_run(program, "main", folder / "arguments", folder / "results", *[times] * (times > 0), variables=gpu.variables)
    path = folder / f"{name}.mlir" if isinstance(source, str) else source
    expected = results_of_run(folder, path, inputs, len(results), device=gpu.device)
    check_results((folder / "results").read_bytes(), expected, results, tolerance)
    return out, report, said
