"""Exported programs as files of StableHLO."""

import os
import pathlib

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from .builder import Builder
from .decompositions import decompositions
from .lowering import lower
from .recurrent import loops
from .table import Unsupported


def text_of(program: ExportedProgram) -> str:
    """StableHLO text whose arguments are the user's inputs, and whose results are the user's outputs; weights are constants in it.

    Raises: Unsupported, which names them, for ops without a lowering, and for sizes that are not fixed.
    """
    with loops():
        program = program.run_decompositions(decompositions())
    module = program.graph_module
    lowered = lower(module, random=False, row_major=True)
    if lowered.refused:
        raise Unsupported("; ".join(f"{name}: {reason}" for name, reason in sorted(set(lowered.refused.values()))))
    signature = program.graph_signature
    user, weights = [], {}
    for i, spec in enumerate(signature.input_specs):
        if spec.kind == InputKind.USER_INPUT:
            user.append(i)
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            weights[i] = program.state_dict[spec.target] if spec.target in program.state_dict else program.constants[spec.target]
        elif spec.kind == InputKind.CONSTANT_TENSOR:
            weights[i] = program.constants[spec.target]
        else:
            raise Unsupported(f"an input of kind {spec.kind.name}")
    keep = [i for i, spec in enumerate(signature.output_specs) if spec.kind == OutputKind.USER_OUTPUT]
    return _wrapped(lowered, user, weights, keep)


def _wrapped(lowered, user: list[int], weights: dict[int, torch.Tensor], keep: list[int]) -> str:
    """The program as a function that @main calls with the weights."""
    head, body = lowered.text.split("func.func @main", 1)
    body = body.rsplit("}", 1)[0]
    signature = body[:body.index("{")].strip()
    arguments_text, types_text = signature[1:].split(") -> (", 1)
    types = [each.rsplit(": ", 1)[1] for each in arguments_text.split(", %")] if arguments_text else []
    results = types_text.rstrip(") {").split(", ") if types_text.rstrip(") {") else []
    builder, operands, parameters = Builder(), [], []
    for argument, kind in zip(lowered.arguments, types):
        if argument.place in weights:
            operands.append(builder.tensor(weights[argument.place]).name)
        else:
            name = f"%input{user.index(argument.place)}"
            parameters.append((user.index(argument.place), f"{name}: {kind}"))
            operands.append(name)
    operands += [builder.tensor(each).name for each in lowered.constants]
    lines, values = [], []
    for number in keep:
        result = lowered.results[number]
        if result.place is None:
            raise Unsupported("an output that is a number")
        values.append((f"%call#{result.place}" if len(results) > 1 else "%call", results[result.place]))
    head_text = ", ".join(text for _, text in sorted(parameters))
    count = f"%call:{len(results)}" if len(results) > 1 else "%call"
    lines.append(f"{count} = func.call @graph({', '.join(operands)}) : ({', '.join(types)}) -> ({', '.join(results)})")
    outputs = ", ".join(kind for _, kind in values)
    return "\n".join([head + f"func.func public @main({head_text}) -> ({outputs}) {{", *builder.lines, *lines,
                      f"func.return {', '.join(name for name, _ in values)} : {outputs}", "}", f"func.func private @graph{body}}}", ""])


def export(program: ExportedProgram, path: "str | os.PathLike[str]") -> None:
    """Writes a program of `torch.export.export` as a file that `tenon run` and `tenon opt` take.

    Args:
        program: its inputs are the arguments of the file's function, its outputs the results; weights are constants in it.
        path: the file, by custom with the suffix .mlir.

    Raises: Unsupported, which names them, for ops without a lowering.
    """
    pathlib.Path(path).write_text(text_of(program))
