"""From a Python function to the text of its program: TensorFlow traces it, its bridge to XLA writes StableHLO."""

import dataclasses
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from .errors import Unsupported

_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64(?:: (\d+))?>")
_NAMED = re.compile(r'^(#loc\d+) = loc\("((?:[^"\\]|\\.)*)"\)$', re.MULTILINE)
_FUSED = re.compile(r"^(#loc\d+) = loc\(fused\[(#loc\d+), #loc\d+\]\)$", re.MULTILINE)
_MAIN = re.compile(r"(func\.func (?:public )?@main\()(.*?)(\) -> )", re.DOTALL)
_REFUSED = re.compile(r"(?::|,) (\w+) \((No registered[^)]*|[^)]*)\)?\{\{node ([^}]*)\}\}")
_CONSTANT = re.compile(r"Input (\d+) to node `[^`]*` with op (\w+) must be a compile-time constant")
_NODE = re.compile(r"\{\{node ([^}]*)\}\}|node '?([\w/.]+)'?")
_FILE = re.compile(r'File "([^"]*)", line (\d+)')


# Lines of these are not the user's.
_LIBRARIES = tuple(os.path.dirname(each) + os.sep for each in (tf.__file__, keras.__file__, __file__))


@dataclasses.dataclass
class Traced:
    """A function for one signature.

    Attributes:
        text: StableHLO, in which arguments that a result replaces have the attribute tf.aliasing_output.
        captured: what follows the arguments: variables, and tensors that do not change.
        outputs: how many results are the function's; what follows them is new values of variables.
        updates: which variable (its place in `captured`) has its new value in which result.
        structured_outputs: the function's results as it returned them, with symbolic tensors as leaves.
        flat_outputs: the symbolic tensors among them, in the order of the program's results.
    """

    text: str
    captured: list[Any]
    outputs: int
    updates: list[tuple[int, int]]
    structured_outputs: Any
    flat_outputs: list[Any]
    concrete: Any


def trace(function: Callable, specs: Sequence[tf.TensorSpec], *, donate: bool) -> Traced:
    """Traces `function`, which takes tensors of these types.

    Raises: Unsupported, which names the op, for what XLA does not compile; what the function raises.
    """
    traced = tf.function(function, jit_compile=True, autograph=False)
    concrete = traced.get_concrete_function(*specs)
    captured = _captured(concrete)
    try:
        text = traced.experimental_get_compiler_ir(*specs)(stage="stablehlo", platform_name="CPU")
    except (tf.errors.OpError, ValueError) as error:
        raise _unsupported(error) from error
    aliases = {int(parameter): int(result or 0) for parameter, result in _ALIAS.findall(text)}
    first, outputs = len(specs), len(concrete.outputs)
    updates = sorted((parameter - first, result) for parameter, result in aliases.items())
    for place, _ in updates:
        if not (0 <= place < len(captured) and isinstance(captured[place], BaseResourceVariable)):
            raise Unsupported("tenon: a result replaces an argument that is no variable")
    _check_sizes(text, concrete.graph)
    _check_signature(text, first + len(captured), outputs + len(updates))
    text = _with_places(_with_donations(text, aliases if donate else {}), concrete.graph)
    flat = [each for each in tf.nest.flatten(concrete.structured_outputs, expand_composites=True) if each is not None]
    return Traced(text, captured, outputs, updates, concrete.structured_outputs, flat, concrete)


def _captured(concrete) -> list[Any]:
    """Variables in place of their handles, and tensors."""
    by_handle = {id(variable.__dict__["_handle"]): variable for variable in concrete.graph.variables}
    found = []
    for tensor in concrete.captured_inputs:
        if tensor.dtype != tf.resource:
            found.append(tensor)
        elif id(tensor) in by_handle:
            variable = by_handle[id(tensor)]
            if not variable.shape.is_fully_defined():
                raise Unsupported(f"tenon: the variable {variable.name!r} has a shape that is not fixed, {variable.shape}")
            found.append(variable)
        else:
            raise Unsupported(f"tenon: the function uses a resource that is no variable (a table or an iterator): {tensor}")
    return found


def _check_sizes(text: str, graph) -> None:
    """Refuses results whose sizes depend on data, by the op that makes them."""
    match = re.search(r"stablehlo\.set_dimension_size .*#stablehlo\.bounds.* loc\((#loc\d+)\)", text)
    if match is None and "#stablehlo.bounds" not in text:
        return
    name = _name_of(text, match[1]) if match else ""
    op, place = _made(graph, name)
    raise Unsupported("tenon: the size of a result depends on data" + (f": the op {op or name}" if name else "") + (f", at {place}" if place else ""),
                      op, place)


_EXPANDED = ("Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors", "Qr")  # By Tenon (docs/linalg.md).


def check_calls(text: str, graph) -> None:
    """Of a program that does not compile: refuses XLA's own custom calls by the op that makes them."""
    calls = re.findall(r"stablehlo\.custom_call @([\w.$]+)\(.* loc\((#loc\d+)\)", text)
    unknown = [call for call in calls if call[0] not in _EXPANDED]
    if not unknown:
        return
    name, label = unknown[0]
    op, place = _made(graph, _name_of(text, label))
    raise Unsupported(f"tenon: there is no implementation of XLA's custom call {name!r}" + (f", which the op {op} needs" if op else "")
                      + (f", at {place}" if place else ""), op or name, place)


def _name_of(text: str, label: str) -> str:
    """The name of the TensorFlow op behind a location."""
    fused = re.search(rf"^{label} = loc\((?:fused\[)?(#loc\d+)", text, re.MULTILINE)
    named = re.search(rf'^{fused[1] if fused else label} = loc\("([^"]*)"', text, re.MULTILINE)
    return named[1] if named else ""


def _made(graph, name: str) -> tuple[str, str]:
    """The op of that name, and the user's line that made it."""
    try:
        operation = graph.get_operation_by_name(name)
    except (KeyError, ValueError):
        return "", ""
    frame = _user_frame(operation)
    return operation.type, f"{frame[0]}:{frame[1]}" if frame else ""


def _split(arguments: str) -> list[str]:
    return re.split(r", (?=%arg\d+: )", arguments) if arguments else []


def _check_signature(text: str, parameters: int, results: int) -> None:
    match = _MAIN.search(text)
    found = len(_split(match[2])) if match else -1
    if found != parameters:
        raise Unsupported(f"tenon: XLA made a program of {found} parameters, where the function has {parameters}: a variable without a value, "
                          "or an argument that decides a shape; give that as a number of Python")
    rest = text[match.end():].split("{\n", 1)[0]
    count = len(re.findall(r"tensor<", rest))
    if count != results:
        raise Unsupported(f"tenon: XLA made a program of {count} results, where the function has {results} with its variables")


def _with_donations(text: str, aliases: dict[int, int]) -> str:
    """The text, in which parameters that a result replaces say so."""
    if not aliases:
        return text
    match = _MAIN.search(text)
    arguments = _split(match[2])
    for parameter, result in aliases.items():
        head, where, rest = arguments[parameter].partition(" loc(")
        arguments[parameter] = f"{head} {{tf.aliasing_output = {result} : i32}}{where}{rest}"
    return text[:match.start(2)] + ", ".join(arguments) + text[match.end(2):]


def _user_frame(operation) -> tuple[str, int] | None:
    """The innermost line outside TensorFlow and Keras that made an op."""
    for frame in reversed(operation.traceback):
        if not frame.filename.startswith(_LIBRARIES):
            return frame.filename, frame.lineno
    return None


def _with_places(text: str, graph) -> str:
    """The text, in which an op's place is its name and the line of the user's that made it; XLA states a line of TensorFlow's."""
    places = {}
    for label, name in _NAMED.findall(text):
        try:
            frame = _user_frame(graph.get_operation_by_name(name))
        except (KeyError, ValueError):
            frame = None
        if frame is not None:
            path = frame[0].replace("\\", "\\\\").replace('"', '\\"')
            places[label] = f'loc("{name}"("{path}":{frame[1]}:0))'
    text = _NAMED.sub(lambda match: f"{match[1]} = {places[match[1]]}" if match[1] in places else match[0], text)
    return _FUSED.sub(lambda match: f"{match[1]} = loc({match[2]})", text)


def _unsupported(error: Exception) -> Unsupported:
    """XLA's refusal, which names every op of the kind and prints whole tracebacks, as one line."""
    message = str(error)
    refused = _REFUSED.search(message)
    constant = _CONSTANT.search(message)
    op = refused[1] if refused else constant[2] if constant else ""
    node = _NODE.search(message)
    name = (node[1] or node[2]) if node else ""
    # Its paths lack what they all begin with.
    frames = [match for match in _FILE.findall(message) if not re.search(r"site-packages/(tensorflow|keras)/|tenon_tf/\w+\.py$", match[0])]
    place = f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
    why = f"the op {op} has no form for XLA" if refused else f"XLA must know input {constant[1]} of the op {op}" if constant else message.strip().splitlines()[0]
    return Unsupported("tenon: " + why + (f", node {name!r}" if name and name not in why else "") + (f", at {place}" if place else ""), op, place)
