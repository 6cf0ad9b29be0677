"""Compiled graphs: programs by the shapes of a call, and what PyTorch runs between them."""

import collections
import functools
import logging
import threading

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import tenon

from .counting import counters, lock
from .lowering import Lowered, Spec, bindings_of, lower, placeholders
from .options import Options
from .table import Unsupported
from .types import is_ours

log = logging.getLogger("tenon_torch")


@functools.cache
def storage():
    """Tensors of torch.device("tenon")."""
    from .device import storage as module

    return module


def _laid_out(tensor: torch.Tensor, spec: Spec) -> torch.Tensor:
    """The tensor with the strides that a view was made for."""
    if tensor.stride() == spec.stride:
        return tensor
    return torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device=tensor.device).copy_(tensor)


def _seed() -> torch.Tensor:
    return torch.empty(2, dtype=torch.int64, device="cpu").random_()


class Program:
    """One program on a device, for tensors of the CPU."""

    def __init__(self, lowered: Lowered, specs: list[Spec | None], options: Options):
        self._lowered, self._specs = lowered, specs
        self._mutations = lowered.mutations
        self._plain = all(argument.permutation is None and not argument.on_device for argument in lowered.arguments)
        self._on_device = any(each.on_device for each in lowered.arguments) or any(each.made is not None for each in lowered.results)
        if self._on_device and options.device not in (None, storage().device_name()):
            raise ValueError(f"tenon: the tensors are of the device {storage().device_name()!r} (TENON_DEVICE), not of {options.device!r}")
        self.text = lowered.text
        self._executable = None
        if lowered.returned:  # Otherwise all that there is to do is to hand arguments on.
            client = storage().client() if self._on_device else tenon.client(options.device)
            self._executable = client.compile(lowered.text, strict=options.strict, native_math=options.native_math)
            with lock:
                counters.programs += 1
        self._plan = self._planned() if self._on_device else None

    def _planned(self):
        """What a call does, for tensors of the device alone (src/plan.h)."""
        lowered, device = self._lowered, storage()
        numbers = {place: number for number, place in enumerate(i for i, spec in enumerate(self._specs) if spec is not None)}

        def argument(each):
            return "tensor", numbers[each.place], device.layout(self._specs[each.place], each.permutation, each.on_device)

        def output(each):
            if each.place is not None:
                return device.new(each.made, ("result", each.place))
            return ("none",) if each.argument is None else ("item", numbers[each.argument])

        on_device = {each.place for each in lowered.arguments if each.on_device}
        simple = all(each.made is not None if each.place is not None else each.view is None and each.number is None for each in lowered.results)
        if self._executable is None or not simple or not all(place in on_device for place, _ in self._mutations):
            return None
        from . import _device
        from .device import eager  # noqa: F401: it starts plans.

        arguments = [argument(each) for each in lowered.arguments] + [("constant", each) for each in lowered.constants]
        if lowered.has_seed:
            arguments.append(("tensor", len(numbers), (None, (2,), (1,), False, 16)))
        writes = [(numbers[place], device.layout(self._specs[place], None), ("result", result)) for place, result in self._mutations]
        return _device.Plan(self._executable._native.run, arguments, [output(each) for each in lowered.results], writes)

    def __call__(self, arguments) -> list:
        """Runs it with the graph's arguments; returns the graph's results."""
        lowered = self._lowered
        if self._executable is None:
            return [self._result(each, arguments, ()) for each in lowered.results]
        if self._plan is not None:
            tensors = [each for each, spec in zip(arguments, self._specs) if spec is not None]
            return self._plan.call(tensors + [_seed()] if lowered.has_seed else tensors)
        if self._plain:
            given = [arguments[each.place] for each in lowered.arguments]
        else:
            given = [self._argument(arguments[each.place], each) for each in lowered.arguments]
        given += lowered.constants
        if lowered.has_seed:
            given.append(_seed())
        returned = self._executable.run(given) if self._on_device else self._executable.run(given, like=torch.Tensor)
        if self._mutations:
            self._change(arguments, returned)
        counters.calls += 1
        return [self._result(each, arguments, returned) for each in lowered.results]

    def _argument(self, tensor, argument):
        if argument.on_device:
            return storage().read(tensor, argument.permutation)
        return tensor if argument.permutation is None else tensor.permute(argument.permutation)

    def _change(self, arguments, returned) -> None:
        if self._on_device:
            for argument, place in self._mutations:
                target = arguments[argument]
                if is_ours(target):
                    storage().write(target, returned[place])
                else:
                    target.copy_(storage().to_host(returned[place]))
        else:
            torch._foreach_copy_([arguments[argument] for argument, _ in self._mutations], [returned[place] for _, place in self._mutations])

    def _result(self, result, arguments, returned):
        if result.place is not None:
            tensor = returned[result.place]
            if result.made is not None:
                return storage().made(result.made, tensor)
            if self._on_device:
                tensor = storage().to_host(tensor)
            return tensor if result.permutation is None else tensor.permute(result.permutation)
        if result.argument is not None:
            tensor, view = arguments[result.argument], result.view
            if view is None:
                return tensor
            return _laid_out(tensor, self._specs[result.argument]).as_strided(view.shape, view.stride, view.offset)
        return result.number


class _Supported(OperatorSupportBase):
    def __init__(self, refused):
        self.refused = refused

    def is_node_supported(self, submodules, node: Node) -> bool:
        return node.op == "call_function" and node.name not in self.refused and node.target is not torch.ops.aten.copy_.default


class _Part(torch.nn.Module):
    """A part of a graph that is cut."""

    def __init__(self, graph: "Graph"):
        super().__init__()
        self.graph_of_part = graph

    def forward(self, *arguments):
        results = self.graph_of_part.run(list(arguments))
        return results[0] if self.graph_of_part.single else tuple(results)


class _Mixed:
    """Parts on the device, and the ops between them in PyTorch."""

    def __init__(self, module: GraphModule, fallbacks: collections.Counter):
        self._module, self._fallbacks = module, fallbacks

    def __call__(self, arguments) -> list:
        with lock:
            counters.fallback_calls.update(self._fallbacks)
        results = self._module(*arguments)
        return list(results) if isinstance(results, (list, tuple)) else [results]


class Graph:
    """A graph of ATen ops as programs, one for the shapes of a call, made when they are first seen.

    Ops that have no lowering stay with PyTorch: the graph is cut there, and the parts are programs.
    Thread-safety: calls from several threads are served; two threads may compile the same program.
    """

    def __init__(self, module: GraphModule, options: Options, name: str = "torch"):
        module.tenon_name = name
        self.module, self.options = module, options
        output = next(node for node in module.graph.nodes if node.op == "output").args[0]
        self.single = not isinstance(output, (list, tuple))
        self.programs: collections.OrderedDict[tuple, object] = collections.OrderedDict()
        self._lock = threading.Lock()
        self._symbols = self._find_symbols()
        self._only = None  # The program of a graph whose shapes do not change.

    def _find_symbols(self) -> list[tuple[int, int | None]]:
        """Where sizes that change are found: an argument, and its dimension if it is a tensor."""
        found, seen = [], set()
        for i, node in enumerate(placeholders(self.module.graph)):
            meta = node.meta.get("val")
            sizes = enumerate(meta.shape) if isinstance(meta, torch.Tensor) else [(None, meta)]
            for d, size in sizes:
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and size.node.expr not in seen:
                    seen.add(size.node.expr)
                    found.append((i, d))
        return found

    def __call__(self, *arguments) -> list:
        return self.run(list(arguments))

    def run(self, arguments: list) -> list:
        """As a boxed call: the list is cleared, so that its tensors can be freed."""
        program = self._only
        if program is None:
            program = self._program(arguments)
        results = program(arguments)
        arguments.clear()
        return results

    run._boxed_call = True

    def _program(self, arguments):
        key = tuple(int(arguments[i]) if d is None else arguments[i].shape[d] for i, d in self._symbols)
        with self._lock:
            if key in self.programs:
                self.programs.move_to_end(key)
                return self.programs[key]
        program = self.compile(bindings_of(self.module.graph, arguments))
        with self._lock:
            self.programs[key] = program
            while len(self.programs) > self.options.programs:
                self.programs.popitem(last=False)
                with lock:
                    counters.evicted += 1
        if not self._symbols:
            self._only = program
        return program

    def compile(self, bindings: dict):
        lowered = lower(self.module, bindings, random=self.options.random == "device")
        if not lowered.refused:
            return Program(lowered, self._specs(bindings), self.options)
        self._refuse(lowered)
        return self._cut(lowered)

    def _specs(self, bindings: dict) -> list[Spec | None]:
        from .lowering import _Shapes, is_token

        shapes = _Shapes(bindings)
        nodes = placeholders(self.module.graph)
        return [shapes.spec(node.meta["val"]) if isinstance(node.meta.get("val"), torch.Tensor) and not is_token(node) else None for node in nodes]

    def _refuse(self, lowered: Lowered) -> None:
        names = collections.Counter(name for name, _ in lowered.refused.values())
        reasons = dict(lowered.refused.values())
        if self.options.fallback == "error":
            raise Unsupported("PyTorch would have to run " + "; ".join(f"{name}: {reasons[name]}" for name in names))
        with lock:
            counters.fallbacks.update(names.keys())
            counters.reasons.update(reasons)
        for name in names:
            log.warning("PyTorch runs %s: %s", name, reasons[name])

    def _cut(self, lowered: Lowered):
        module = GraphModule(self.module, _copied(self.module.graph))
        partitioner = CapabilityBasedPartitioner(module, _Supported(lowered.refused), allows_single_node_partition=True)
        cut = partitioner.fuse_partitions(partitioner.propose_partitions())
        for name, part in list(cut.named_children()):
            if isinstance(part, GraphModule):
                setattr(cut, name, _Part(Graph(part, self.options, name)))
        cut.graph.lint()
        cut.recompile()
        return _Mixed(cut, collections.Counter(name for name, _ in lowered.refused.values()))


def _copied(graph: torch.fx.Graph) -> torch.fx.Graph:
    copy = torch.fx.Graph()
    copy.output(copy.graph_copy(graph, {}))
    return copy
