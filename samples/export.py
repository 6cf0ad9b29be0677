#!/usr/bin/env python3
"""Exports the sample programs from JAX, with inputs and the results JAX gives on a CPU.

    samples/make-venv
    samples/.venv/bin/python samples/export.py [--only NAME] [--out DIR] [--list]

samples/README.md says what is written. The same packages on the same kind of
machine write the same bytes every time.
"""

from __future__ import annotations

import os

# Read by JAX when it is imported: only the CPU, and bfloat16 values rounded
# wherever the program says so, not kept in float32 across fused operations.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_allow_excess_precision=false"

import argparse
import inspect
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import jax
    import jaxlib
    import numpy as np
    from jax import export as jax_export
    from jax.extend.backend import get_backend
    from jax.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir.dialects import stablehlo

    from programs import SAMPLES, RandomInput, Sample
except ModuleNotFoundError as missing:
    sys.exit(
        f"export.py: the package {missing.name!r} is missing; run samples/make-venv, "
        "then samples/.venv/bin/python samples/export.py"
    )

WANTED_VERSION = "1.20.0"
"""The StableHLO version to write artifacts at, if jaxlib knows it."""


@dataclass(frozen=True)
class Program:
    """A lowered program in its two stored forms."""

    text: str
    artifact: bytes
    stablehlo_version: str


class ExportError(Exception):
    """A sample could not be exported, or what was exported is wrong."""


def target_version() -> str:
    """WANTED_VERSION, or the newest version that jaxlib can write if that is older."""
    newest = stablehlo.get_current_version()
    if stablehlo.get_smaller_version(newest, WANTED_VERSION) == WANTED_VERSION:
        return WANTED_VERSION
    return newest


def artifact_version(artifact: bytes) -> str:
    """The StableHLO version that an artifact's header names."""
    magic, marker = b"ML\xefR", b"StableHLO_v"
    producer = artifact[len(magic) + 1 :].split(b"\0", 1)[0]
    if not artifact.startswith(magic) or not producer.startswith(marker):
        raise ExportError(f"the artifact starts with {artifact[:24]!r}, not with a StableHLO version")
    return producer.removeprefix(marker).decode()


def lower(sample: Sample) -> Program:
    """Lowers a sample with static shapes.

    The artifact is made from the text, so it holds the same program and no
    source locations.
    """
    arguments = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in sample.inputs]
    traced = jax.jit(sample.function, keep_unused=True).trace(*arguments)
    text = traced.lower(lowering_platforms=(sample.lowering_platform,)).as_text()
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
        artifact = serialize(module)
    return Program(text, artifact, artifact_version(artifact))


def operations(module: ir.Module) -> list[tuple[str, list[str]]]:
    """The name and the operands' and results' types of every operation, in order."""
    found = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        types = [str(value.type) for value in (*operation.operands, *operation.results)]
        found.append((operation.name, types))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def has_chlo(module: ir.Module) -> bool:
    """Whether a module has CHLO operations, which have no portable form."""
    return any(name.startswith("chlo.") for name, _ in operations(module))


def serialize(module: ir.Module) -> bytes:
    """The portable artifact of a module.

    StableHLO's serializer keeps the program as it is but refuses CHLO. For a
    program with CHLO there is the serializer of jax.export, which turns CHLO
    into composites or plain operations, and shares and moves constants too.
    """
    if has_chlo(module):
        return _jax.mlir.serialize_portable_artifact(module, target_version(), False)
    return stablehlo.serialize_portable_artifact(module, target_version())


def export_polymorphic(sample: Sample) -> tuple[Program, jax_export.Exported]:
    """Exports a sample with symbolic dimensions, through jax.export.

    The artifact is the one jax.export makes: it keeps source locations and has
    the older version that jax.export writes for compatibility.
    """
    # Locations name this program's files without the folder they are in.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    scope = jax_export.SymbolicScope()
    arguments = [
        jax.ShapeDtypeStruct(
            jax_export.symbolic_shape(symbolic, scope=scope) if symbolic else array.shape,
            array.dtype,
        )
        for array, symbolic in zip(sample.inputs, sample.symbolic_shapes, strict=True)
    ]
    exported = jax_export.export(jax.jit(sample.function))(*arguments)
    with mlir.make_ir_context():
        text = str(ir.Module.parse(exported.mlir_module())) + "\n"
    artifact = exported.mlir_module_serialized
    return Program(text, artifact, artifact_version(artifact)), exported


def run_on_cpu(module: ir.Module, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Compiles a module with XLA and runs it."""
    backend = get_backend()
    devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
    executable = backend.compile_and_load(module, devices)
    return [np.asarray(result) for result in executable.execute([jax.device_put(x) for x in inputs])]


def is_close(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Whether two arrays agree as a sample's tolerance asks for."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if tolerance == 0.0:
        return np.array_equal(actual, expected)
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    return np.allclose(actual.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)


def check_results(form: str, sample: Sample, actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Fails unless one form of the program gives the results that will be stored."""
    if len(actual) != len(expected):
        raise ExportError(f"{form} gives {len(actual)} results; {len(expected)} were expected")
    for name, got, want in zip(sample.output_names, actual, expected, strict=True):
        if not is_close(got, want, tolerance_of(want, sample)):
            raise ExportError(f"{form} gives another {name} than JAX does: {got} instead of {want}")


def check_program(
    program: Program, sample: Sample, inputs: list[np.ndarray], expected: list[np.ndarray]
) -> None:
    """Fails unless text and artifact are the same program and give the same results.

    Where the program has no CHLO, which only the text can have, the operations
    of both are compared. Both are run, unless their shapes are dynamic: XLA
    cannot compile those as they are.
    """
    with mlir.make_ir_context() as context:
        from_text = ir.Module.parse(program.text)
        from_artifact = stablehlo.deserialize_portable_artifact(context, program.artifact)
        if not has_chlo(from_text) and operations(from_text) != operations(from_artifact):
            raise ExportError("the artifact is read back as another program than the text")
        if sample.symbolic_shapes is None:
            check_results("the text", sample, run_on_cpu(from_text, inputs), expected)
            check_results("the artifact", sample, run_on_cpu(from_artifact, inputs), expected)


def tolerance_of(array: np.ndarray, sample: Sample) -> float:
    """The tolerance of one result; integers and booleans are exact."""
    exact = np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_
    return 0.0 if exact else sample.tolerance


def entry(name: str, array: np.ndarray | RandomInput, **more: Any) -> dict[str, Any]:
    """What the manifest says of any array."""
    return {"name": name, **more, "shape": list(array.shape), "dtype": str(array.dtype)}


def input_entries(sample: Sample) -> list[dict[str, Any]]:
    """The manifest's inputs."""
    names = inspect.signature(sample.function).parameters
    symbolic_shapes = sample.symbolic_shapes or (None,) * len(sample.inputs)
    entries = []
    for index, (name, array, symbolic) in enumerate(zip(names, sample.inputs, symbolic_shapes, strict=True)):
        if isinstance(array, RandomInput):
            random = {"distribution": array.distribution, "seed": array.seed, **array.parameters}
            entries.append({**entry(name, array), "random": random})
        else:
            described = entry(name, array, file=f"in_{index}.npy")
            entries.append(described | ({"symbolic_shape": symbolic} if symbolic else {}))
    return entries


def manifest(name: str, sample: Sample, program: Program, outputs: list[np.ndarray]) -> dict[str, Any]:
    """Everything the manifest of a sample says."""
    stored = sample.has_stored_inputs
    output_entries = []
    for index, (output_name, array) in enumerate(zip(sample.output_names, outputs, strict=True)):
        file = {"file": f"out_{index}.npy"} if stored else {}
        tolerance = tolerance_of(array, sample)
        output_entries.append(entry(output_name, array, **file) | {"tolerance": tolerance})
    described: dict[str, Any] = {
        "name": name,
        "description": sample.description,
        "stablehlo_version": program.stablehlo_version,
        "jax_version": jax.__version__,
        "jaxlib_version": jaxlib.__version__,
        "inputs": input_entries(sample),
        "outputs": output_entries,
    }
    if sample.extra_files:
        described["extra_files"] = [
            {"file": file, "shape": list(extra.array.shape), "dtype": str(extra.array.dtype),
             "description": extra.description}
            for file, extra in sample.extra_files.items()
        ]  # fmt: skip
    return described


def manifest_text(described: dict[str, Any]) -> str:
    """The manifest as JSON with one line for each array."""
    fields = []
    for key, value in described.items():
        if isinstance(value, list):
            lines = ",\n".join(f"    {json.dumps(item)}" for item in value)
            fields.append(f"  {json.dumps(key)}: [\n{lines}\n  ]")
        else:
            fields.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def stored_arrays(sample: Sample, outputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a sample that go into files, by file name."""
    arrays = {file: extra.array for file, extra in sample.extra_files.items()}
    if sample.has_stored_inputs:
        arrays |= {f"in_{index}.npy": array for index, array in enumerate(sample.inputs)}
        arrays |= {f"out_{index}.npy": array for index, array in enumerate(outputs)}
    return arrays


def write_sample(
    folder: Path, described: dict[str, Any], program: Program, arrays: dict[str, np.ndarray]
) -> None:
    """Writes a sample's folder anew."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in [*folder.glob("*.npy"), *folder.glob("program.*")]:
        stale.unlink()
    (folder / "program.mlir").write_text(program.text)
    (folder / "program.mlirbc").write_bytes(program.artifact)
    for file, array in arrays.items():
        # Always in C order, so that a reader need not know the other.
        np.save(folder / file, np.asarray(array, order="C"))
    (folder / "manifest.json").write_text(manifest_text(described))


def export_sample(name: str, out: Path) -> None:
    """Exports one sample, runs and checks it, and writes it."""
    sample = SAMPLES[name]()
    inputs = sample.arrays()
    outputs = [np.asarray(result) for result in jax.jit(sample.function)(*inputs)]
    if sample.symbolic_shapes is None:
        program = lower(sample)
    else:
        program, exported = export_polymorphic(sample)
        called = [np.asarray(result) for result in exported.call(*inputs)]
        check_results("the export", sample, called, outputs)
    check_program(program, sample, inputs, outputs)
    described = manifest(name, sample, program, outputs)
    write_sample(out / name, described, program, stored_arrays(sample, outputs))
    size = sum(file.stat().st_size for file in (out / name).iterdir())
    print(f"{name}: {size:,} bytes, StableHLO {program.stablehlo_version}")


def main() -> int:
    """Exports what the command line asks for."""
    parser = argparse.ArgumentParser(description="Export the sample programs from JAX.")
    parser.add_argument("--only", metavar="NAME", action="append", help="this sample only; may be repeated")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path(__file__).resolve().parent,
        help="write the samples' folders here (default: beside this script)",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="only print the samples' names")
    options = parser.parse_args()
    if options.list:
        print("\n".join(SAMPLES))
        return 0
    names = options.only or list(SAMPLES)
    if unknown := [name for name in names if name not in SAMPLES]:
        parser.error(f"no sample is called {', '.join(unknown)}; there are: {', '.join(SAMPLES)}")
    for name in names:
        try:
            export_sample(name, options.out)
        except Exception as failure:
            failure.add_note(f"export.py: while exporting the sample {name!r}")
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
