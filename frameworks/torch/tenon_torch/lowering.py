"""From an FX graph of ATen ops to the text of a StableHLO program.

A graph may have symbolic sizes; `lower` writes the program for one value of each. What it needs of a tensor is `node.meta["val"]`, the
fake tensor that tracing left there.
"""

import dataclasses
import math
import operator
from typing import Any, NamedTuple

import sympy
import torch
from torch.fx import GraphModule, Node

from .builder import Builder, Value
from .table import Unsupported, lowering_of
from .types import NAMES, is_ours, tensor_type

_MOST_WRITTEN = 64  # Elements of a constant that is written into the text; larger ones are arguments.


class Spec(NamedTuple):
    """Shape and type of a tensor, its strides, and where it begins in its storage."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...] = ()
    offset: int = 0


class Result(NamedTuple):
    """An output of a graph. Just one is set, or none for an output that is None.

    Attributes:
        place: the number of the program's result, which lies in memory in the order `permutation` of its dimensions.
        made: shape and strides of the tensor, if it is one of torch.device("tenon").
        argument: the number of an argument of the graph that is handed on, as a view by `view` if that is set.
        number: an int, float or bool.
    """

    place: int | None = None
    permutation: tuple[int, ...] | None = None
    made: Spec | None = None
    argument: int | None = None
    view: Spec | None = None
    number: Any = None


class Argument(NamedTuple):
    """An argument of the program: the graph's argument of this number, its dimensions in the order in which they lie in memory; and
    whether it is a tensor of torch.device("tenon")."""

    place: int
    permutation: tuple[int, ...] | None
    on_device: bool = False


@dataclasses.dataclass
class Lowered:
    """A program as text. Its arguments are `arguments`, then `constants`, then the seed (i64[2]) if `has_seed`."""

    text: str
    arguments: list[Argument]
    constants: list[torch.Tensor]
    has_seed: bool
    results: list[Result]
    returned: int  # How many results the program has.
    mutations: list[tuple[int, int]]  # The argument of the graph that takes the program's result of this number.
    refused: dict[str, tuple[str, str]]  # By the name of the node: the op and why.


def op_name(target) -> str:
    """aten.add.Tensor."""
    return str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def bindings_of(graph: torch.fx.Graph, arguments) -> dict:
    """The value of each symbol, from the arguments of a call."""
    bindings = {}

    def bind(size, value) -> None:
        if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
            bindings[size.node.expr] = sympy.Integer(int(value))

    for node, argument in zip(placeholders(graph), arguments):
        meta = node.meta.get("val")
        if isinstance(meta, torch.SymInt):
            bind(meta, argument)
        elif isinstance(meta, torch.Tensor) and isinstance(argument, torch.Tensor):
            for size, value in zip(meta.shape, argument.shape):
                bind(size, value)
    return bindings


def placeholders(graph: torch.fx.Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


class _Shapes:
    """Symbolic sizes as numbers."""

    def __init__(self, bindings: dict):
        self.bindings = bindings

    def number(self, size) -> Any:
        if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            value = size.node.expr.xreplace(self.bindings)
            if value.free_symbols:
                raise Unsupported(f"the size {value} depends on data")
            return {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(size)](value)
        return size

    def spec(self, tensor: torch.Tensor) -> Spec:
        if tensor.layout != torch.strided:
            raise Unsupported(f"the layout {tensor.layout}")
        if tensor.dtype not in NAMES:
            raise Unsupported(f"the type {tensor.dtype}")
        numbers = [tuple(self.number(each) for each in sizes) for sizes in (tensor.shape, tensor.stride())]
        return Spec(numbers[0], tensor.dtype, numbers[1], self.number(tensor.storage_offset()))

    def out(self, meta):
        """Of a node's `val`: a Spec, or a tuple of them."""
        if isinstance(meta, torch.Tensor):
            return self.spec(meta)
        if isinstance(meta, (list, tuple)):
            return tuple(self.out(each) for each in meta)
        return None


def memory_order(spec: Spec) -> tuple[int, ...] | None:
    """The dimensions from the slowest to the fastest in memory; None if that is their own order, or there is none since elements
    overlap or leave gaps."""
    if len(spec.stride) < 2 or math.prod(spec.shape) == 0:
        return None
    order = sorted(range(len(spec.shape)), key=lambda d: (-spec.stride[d], d) if spec.shape[d] != 1 else (-math.inf, d))
    # Dimensions of size 1 lie anywhere: in front.
    expected = 1
    for d in reversed(order):
        if spec.shape[d] == 1:
            continue
        if spec.stride[d] != expected:
            return None
        expected *= spec.shape[d]
    long = [d for d in order if spec.shape[d] != 1]
    return None if long == sorted(long) else tuple(order)


def dense(spec: Spec) -> Spec:
    """As a result is made: its elements one after another in the order of its strides, or row-major if they leave gaps."""
    order, stride, step = memory_order(spec), [0] * len(spec.shape), 1
    for d in reversed(order or range(len(spec.shape))):
        stride[d], step = step, step * max(1, spec.shape[d])
    return Spec(spec.shape, spec.dtype, tuple(stride))


_VIEWS = {getattr(getattr(torch.ops.aten, name), overload) for name, overload in (
    ("view", "default"), ("permute", "default"), ("expand", "default"), ("unsqueeze", "default"), ("squeeze", "default"), ("squeeze", "dim"),
    ("squeeze", "dims"), ("transpose", "int"), ("t", "default"), ("alias", "default"), ("detach", "default"), ("slice", "Tensor"),
    ("select", "int"), ("as_strided", "default"), ("diagonal", "default"), ("_unsafe_view", "default"))}


# What is in a graph for its error alone: values are not checked.
_CHECKS = {torch.ops.aten._assert_async.default, torch.ops.aten._assert_async.msg, torch.ops.aten._linalg_check_errors.default}
_BY_STORAGE = {torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_scatter.default}


def is_token(node: Node) -> bool:
    """Whether an argument only says in which order checks are made; PyTorch gives None for it."""
    return bool(node.users) and all(each.target is torch.ops.higher_order.with_effects and each.args[0] is node for each in node.users)


def _viewed_placeholder(node: Node) -> Node | None:
    """The argument of which a node is a view."""
    while node.op == "call_function" and node.target in _VIEWS and isinstance(node.args[0], Node):
        node = node.args[0]
    return node if node.op == "placeholder" else None


class _Lowering:
    def __init__(self, module: GraphModule, bindings: dict, random: bool, row_major: bool):
        self.module, self.shapes, self.random, self.row_major = module, _Shapes(bindings), random, row_major
        self.unknown: set[Node] = set()  # Values that no program has: their users are refused.
        self.builder = Builder()
        self.values: dict[Node, Any] = {}
        self.parameters: list[Value] = []
        self.arguments: list[Argument] = []
        self.constants: list[torch.Tensor] = []
        self.constant_values: list[Value] = []
        self.refused: dict[str, tuple[str, str]] = {}
        self.mutated: dict[Node, Node] = {}
        self.places = {node: i for i, node in enumerate(placeholders(module.graph))}

    # --- arguments and constants

    def placeholder(self, node: Node) -> Any:
        meta = node.meta.get("val")
        if not isinstance(meta, torch.Tensor):
            return self.shapes.number(meta)
        if is_token(node):
            return None
        spec = self.shapes.spec(meta)
        order = None if self.row_major else memory_order(spec)
        shape = tuple(spec.shape[d] for d in order) if order else spec.shape
        parameter = Value(f"%arg{len(self.parameters)}", shape, spec.dtype)
        self.parameters.append(parameter)
        self.arguments.append(Argument(self.places[node], order, is_ours(meta)))
        return self.builder.transpose(parameter, [order.index(d) for d in range(len(order))]) if order else parameter

    def attribute(self, node: Node) -> Any:
        value = operator.attrgetter(node.target)(self.module)
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"a constant of type {type(value).__name__}")
        if value.dtype not in NAMES:
            raise Unsupported(f"the type {value.dtype}")
        if value.numel() <= _MOST_WRITTEN:
            return self.builder.tensor(value)
        result = Value(f"%const{len(self.constants)}", tuple(value.shape), value.dtype)
        self.constants.append(value.detach().contiguous())
        self.constant_values.append(result)
        return result

    # --- ops

    def operand(self, given) -> Any:
        if isinstance(given, Node):
            return self.values[given]
        if isinstance(given, (list, tuple)):
            return [self.operand(each) for each in given]
        if isinstance(given, slice):
            return slice(*(self.operand(each) for each in (given.start, given.stop, given.step)))
        return self.shapes.number(given)

    def call(self, node: Node) -> Any:
        if node.target is torch.ops.aten.copy_.default and node.args[0] in self.places:
            self.mutated[node.args[0]] = node.args[1]
            destination = self.values[node.args[0]]
            value = self.values[node.args[1]]
            return self.builder.broadcast(self.builder.convert(value, destination.dtype), destination.shape)
        meta = node.meta.get("val")
        if isinstance(meta, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
            return self.shapes.number(meta)
        if node.target is operator.getitem:
            return self.values[node.args[0]][node.args[1]]
        if node.target in _CHECKS:
            return None
        if node.target is torch.ops.higher_order.with_effects and node.args[1] in _CHECKS:
            return (None,)  # Its token.
        if any(each in self.unknown for each in node.all_input_nodes):
            raise Unsupported("an argument is in no program")
        if node.target in _BY_STORAGE:
            self.check_storage(node.args[0])
        function = lowering_of(node.target)
        if function is None:
            raise Unsupported("has no lowering")
        self.builder.out = self.shapes.out(meta)
        return function(self.builder, *(self.operand(each) for each in node.args), **{k: self.operand(v) for k, v in node.kwargs.items()})

    def check_storage(self, node: Node) -> None:
        """The places of as_strided are those of a storage, which is like the value if it is row-major."""
        spec = self.shapes.spec(node.meta["val"])
        if spec.offset or memory_order(spec) is not None or spec.stride != dense(spec).stride:
            raise Unsupported("as_strided of a view")

    def stand_in(self, meta) -> Any:
        """So that lowering goes on behind an op that is refused, to find the others."""
        if isinstance(meta, torch.Tensor):
            try:
                spec = self.shapes.spec(meta)
            except Unsupported:
                return self.builder.constant(0, torch.float32)
            return self.builder.full(spec.shape, 0, spec.dtype)
        if isinstance(meta, (list, tuple)):
            return tuple(self.stand_in(each) for each in meta)
        return 0

    def check(self, node: Node, value) -> None:
        """Each value has the shape and type that PyTorch says: a lowering that does otherwise is wrong."""
        expected = self.shapes.out(node.meta.get("val"))
        if value is None:
            return
        pairs = zip(value, expected) if isinstance(expected, tuple) else [(value, expected)]
        for got, want in pairs:
            if isinstance(got, Value) and want is not None and (got.shape != want.shape or got.dtype != want.dtype):
                raise Unsupported(f"the lowering gives {got.type} for {tensor_type(want.shape, want.dtype)}")

    def visit(self, node: Node) -> None:
        if node.op == "placeholder":
            try:
                self.values[node] = self.placeholder(node)
            except Unsupported:
                self.unknown.add(node)
            return
        try:
            if node.op == "get_attr":
                self.values[node] = self.attribute(node)
            elif node.op == "call_function":
                value = self.call(node)
                self.check(node, value)
                self.values[node] = value
            elif node.op != "output":
                raise Unsupported(f"a node of kind {node.op}")
        except (Unsupported, KeyError, TypeError) as error:
            if not isinstance(error, Unsupported):
                error = Unsupported(f"arguments that its lowering does not know ({type(error).__name__}: {error})")
            self.refused[node.name] = (op_name(node.target), str(error))
            try:
                self.shapes.out(node.meta.get("val"))
            except Unsupported:
                self.unknown.add(node)
            self.values[node] = self.stand_in(node.meta.get("val"))

    # --- the program

    def run(self) -> Lowered:
        graph, builder = self.module.graph, self.builder
        seed = Value("%seed", (2,), torch.int64)
        if self.random:
            builder.state = builder.op("bitcast_convert", seed, dtype=torch.uint64)
        first = builder.state
        for node in graph.nodes:
            self.visit(node)
        has_seed = builder.state is not first
        if self.random and not has_seed:
            del builder.lines[0]
        returned, results = self.results(next(n for n in graph.nodes if n.op == "output"))
        mutations = []
        for argument, source in self.mutated.items():
            mutations.append((self.places[argument], len(returned)))
            destination = self.shapes.spec(argument.meta["val"])
            value = builder.broadcast(builder.convert(self.values[source], destination.dtype), destination.shape)
            returned.append(value)
        parameters = self.parameters + self.constant_values + ([seed] if has_seed else [])
        head = ", ".join(f"{p.name}: {p.type}" for p in parameters)
        types = ", ".join(r.type for r in returned)
        text = "\n".join([f"module @{_module_name(self.module)} {{", f"func.func @main({head}) -> ({types}) {{", *builder.lines,
                          f"func.return {', '.join(r.name for r in returned)} : {types}" if returned else "func.return", "}", "}", ""])
        return Lowered(text, self.arguments, self.constants, has_seed, results, len(returned), mutations, self.refused)

    def results(self, output: Node) -> tuple[list[Value], list[Result]]:
        returned: list[Value] = []
        results: list[Result] = []
        seen: dict[Node, Result] = {}
        outputs = output.args[0] if isinstance(output.args[0], (list, tuple)) else [output.args[0]]
        for node in outputs:
            if not isinstance(node, Node):
                results.append(Result(number=node))
            elif node in seen:
                results.append(seen[node])
            else:
                results.append(seen.setdefault(node, self.result(node, returned)))
        return returned, results

    def result(self, node: Node, returned: list[Value]) -> Result:
        if node in self.unknown:
            return Result(argument=self.places[node]) if node in self.places else Result()
        value = self.values[node]
        if not isinstance(value, Value):
            return Result(number=value)
        spec = self.shapes.spec(node.meta["val"])
        source = _viewed_placeholder(node)
        if source is not None and source not in self.mutated and not self.row_major:
            given = self.shapes.spec(source.meta["val"])
            same = (given.shape, given.stride, given.offset) == (spec.shape, spec.stride, spec.offset)
            return Result(argument=self.places[source], view=None if same else spec)
        order = None if self.row_major else memory_order(spec)
        returned.append(self.builder.transpose(value, order) if order else value)
        back = tuple(order.index(d) for d in range(len(order))) if order else None
        return Result(place=len(returned) - 1, permutation=back, made=dense(spec) if is_ours(node.meta["val"]) else None)


def _module_name(module: GraphModule) -> str:
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in getattr(module, "tenon_name", "") or "torch")
    return name or "torch"


def lower(module: GraphModule, bindings: dict | None = None, *, random: bool = True, row_major: bool = False) -> Lowered:
    """Lowers a whole graph. Ops without a lowering are in `refused`; the text is of use if there are none.

    Args:
        module: a graph of functional ATen ops, but for `copy_` into arguments; each node has its fake tensor.
        bindings: the numbers of symbolic sizes (`bindings_of`).
        random: whether ops of random numbers are lowered.
        row_major: arguments and results lie row-major, whatever their strides, and no argument is handed on.
    """
    return _Lowering(module, bindings or {}, random, row_major).run()


def inlined(builder: Builder, module: GraphModule, arguments: list[Value]) -> list[Value]:
    """Writes the ops of a graph of fixed sizes where the builder is. Raises Unsupported for an op without a lowering."""
    lowering = _Lowering(module, {}, False, True)
    lowering.builder = builder
    lowering.values.update(zip(placeholders(module.graph), arguments))
    for node in module.graph.nodes:
        if node.op != "placeholder":
            lowering.visit(node)
    for name, why in lowering.refused.values():
        raise Unsupported(f"{name} in its step: {why}")
    return lowering.operand(next(node for node in module.graph.nodes if node.op == "output").args[0])
