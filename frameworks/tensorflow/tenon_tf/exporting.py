"""Functions as files of StableHLO for `tenon run`."""

import os
import pathlib
import re
from typing import Any

import numpy as np

from .functions import Function
from .tracing import _MAIN, _split


def _constant(array: np.ndarray, kind: str) -> str:
    if array.dtype == bool:
        data = ", ".join("true" if each else "false" for each in array.reshape(-1)) if array.ndim else str(bool(array)).lower()
        return f"stablehlo.constant dense<{'[' + data + ']' if array.ndim == 1 else data}> : {kind}"
    return f'stablehlo.constant dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {kind}'


def export(function: Function, path: "str | os.PathLike[str]", *arguments: Any, **named: Any) -> None:
    """Writes the program of a `tenon_tf.function` as text that `tenon run` and `tenon opt` take.

    The values of variables are constants in it, and new values are left out: its arguments are the tensors among the function's
    arguments, its results the function's.

    Args:
        path: the file, by custom with the suffix .mlir.
        arguments: arguments, or tf.TensorSpecs, that choose the program; without them the one that was used last.
    """
    program = function._chosen(arguments, named)
    text, values = program.text, program.values()
    match = _MAIN.search(text)
    parameters = [re.sub(r" \{tf\.aliasing_output = \d+ : i32\}", "", each) for each in _split(match[2])]
    inputs = parameters[:len(parameters) - len(values)]
    lines, operands, kinds = [], [], []
    for i, parameter in enumerate(parameters):
        kind = re.search(r"tensor<[^>]*>", parameter)[0]
        kinds.append(kind)
        operands.append(f"%arg{i}")
        if i >= len(inputs):
            value = values[i - len(inputs)]
            if value.dtype == bool and value.ndim:
                flat = f"tensor<{value.size}xi1>"
                lines += [f"    %flat{i} = {_constant(value.reshape(-1), flat)}", f"    %arg{i} = stablehlo.reshape %flat{i} : ({flat}) -> {kind}"]
            else:
                lines.append(f"    %arg{i} = {_constant(value, kind)}")
    head, tail = text[:match.start()], text[match.end():]
    results = tail.split("{\n", 1)[0].strip()
    types = re.findall(r"tensor<[^>]*>", results)
    count = program.traced.outputs
    call = f"%results:{len(types)}" if len(types) > 1 else "%results"
    lines.append(f"    {call} = func.call @tenon_step({', '.join(operands)}) : ({', '.join(kinds)}) -> ({', '.join(types)})")
    names = [f"%results#{i}" if len(types) > 1 else "%results" for i in range(count)]
    returned = f" {', '.join(names)} : {', '.join(types[:count])}" if count else ""
    main = [f"  func.func public @main({', '.join(inputs)}) -> ({', '.join(types[:count])}) {{", *lines, f"    func.return{returned}", "  }"]
    step = f"  func.func private @tenon_step({', '.join(parameters)}) -> {tail.lstrip()}"
    pathlib.Path(path).write_text(re.sub(r"mhlo\.input_output_alias = \[.*?\](?=, mhlo)", "mhlo.input_output_alias = []", head, flags=re.DOTALL)
                                  + "\n".join(main) + "\n" + step)
