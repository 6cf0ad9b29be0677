"""Ops on tensors of the device, one at a time: each becomes a program, which is kept by the op, its shapes and its other arguments.

What has no lowering runs on the CPU: its tensors go there and back. `tenon_torch.counters` counts that by name, and
TENON_TORCH_FALLBACK=error makes an error of it.
"""

import collections
import dataclasses
import functools
import math
import os
import threading
import types
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.func import functionalize
from torch.fx import _symbolic_trace
from torch.fx.experimental import proxy_tensor
from torch.utils import _pytree as pytree

from .. import _device
from ..counting import counters, lock
from ..decompositions import decompositions
from ..lowering import Result, Spec, dense, lower
from ..table import Unsupported, aten
from ..types import is_ours
from . import later, storage

# Ops whose indices, or probabilities, PyTorch's other devices take of the CPU too; of some the last tensor is values, which have to be there.
_TAKE_THE_CPU = {aten.index, aten._unsafe_index, aten.bernoulli_}
_TAKE_INDICES = {aten.index_put, aten.index_put_, aten._index_put_impl_, aten._unsafe_index_put}
MOST_PROGRAMS = int(os.environ.get("TENON_TORCH_EAGER_PROGRAMS", "4096"))
_INSTEAD = {aten.convolution_overrideable.default: lambda *a: aten.convolution.default(*a)}


def _convolution_backward(gradient, x, weight, stride, padding, dilation, transposed, output_padding, groups, mask):
    return aten.convolution_backward.default(gradient, x, weight, [weight.shape[1] * groups if transposed else weight.shape[0]] if mask[2] else None,
                                             stride, padding, dilation, transposed, output_padding, groups, mask)


def _power(x, exponent):
    """Tracing makes integers of two truths, the op does not."""
    if x.dtype == torch.bool and isinstance(exponent, bool):
        return x.clone() if exponent else torch.ones_like(x)
    return aten.pow.Tensor_Scalar(x, exponent)


_INSTEAD[aten.pow.Tensor_Scalar] = _power
_INSTEAD[aten.pow_.Scalar] = lambda x, exponent: x.copy_(_power(x, exponent))
_INSTEAD[aten.convolution_backward_overrideable.default] = _convolution_backward


def _batch_norm(x, weight, bias, mean, variance, training, momentum, epsilon):
    if mean is None:
        return aten._native_batch_norm_legit.no_stats(x, weight, bias, training, momentum, epsilon)
    return aten._native_batch_norm_legit.default(x, weight, bias, mean, variance, training, momentum, epsilon)


# The schema does not say that it changes the running mean and variance in training, so that they would be lost.
_INSTEAD[aten.native_batch_norm.default] = _batch_norm
_UNSAID_WRITES = {aten.native_batch_norm.default: lambda arguments: (3, 4) if arguments and arguments[5] and arguments[3] is not None else ()}


def _running_extreme(op):
    def write(x, values, places, dim) -> None:
        found = op(x, dim)
        values.copy_(found[0])
        places.copy_(found[1])

    return write


def _random_between(x, low, high, *, generator=None):
    return x.copy_(aten.randint.low(low, high, x.shape))


def _random(x, *, generator=None):
    """Integers that the type has, all of them alike."""
    digits = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8, torch.bool: 1}
    high = 1 << digits[x.dtype] if x.dtype in digits else torch.iinfo(x.dtype).max
    return x.copy_(aten.randint.low(0, high, x.shape))


# PyTorch's name for one of them, random.from, is no name in Python.
_INSTEAD[getattr(aten.random_, "from")] = _random_between
_INSTEAD[aten.random_.to] = lambda x, high, *, generator=None: _random_between(x, 0, high)
_INSTEAD[aten.random_.default] = _random
_INSTEAD[aten._cummax_helper.default] = _running_extreme(aten.cummax.default)
_INSTEAD[aten._cummin_helper.default] = _running_extreme(aten.cummin.default)


# --- numbers that change from call to call: a learning rate, a fill. They become arguments of the programs


def _wider(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    return x.to(torch.float32 if kind in (torch.float16, torch.bfloat16) else kind)


def _computed(function):
    """`function` in a type that is wide enough; tensors of numbers have no say in the result's."""

    def compute(*given):
        kind = functools.reduce(torch.promote_types, (each.dtype for each, is_number in given if not is_number))
        return function(*(_wider(each, kind) for each, _ in given)).to(kind)

    return compute


_FUNCTIONS = {
    "add": lambda x, y, alpha=None: x + (y if alpha is None else y * alpha),
    "sub": lambda x, y, alpha=None: x - (y if alpha is None else y * alpha),
    "mul": torch.mul,
    "div": torch.div,
    "addcmul": lambda x, a, b, value=None: x + (a * b if value is None else value * (a * b)),
    "addcdiv": lambda x, a, b, value=None: x + (a / b if value is None else value * (a / b)),
    "lerp": lambda x, end, weight: torch.where(weight < 0.5, x + (end - x) * weight, end - (end - x) * (1 - weight)),
    "fill": lambda x, value: value.expand(x.shape),
}
_FORMS = {**dict.fromkeys(("add", "sub", "mul", "div"), ("Tensor", "out")), **dict.fromkeys(("addcmul", "addcdiv"), ("default", "out")),
          "lerp": ("Scalar", "Scalar_out"), "fill": ("Scalar", "Scalar_out")}
# The op, the one that writes its first argument, the one that writes `out`.
_NUMBERS = {}
for _name, (_overload, _out) in _FORMS.items():
    _NUMBERS[getattr(getattr(aten, _name), _overload)] = _name
    _NUMBERS[getattr(getattr(aten, _name + "_"), _overload)] = _name
    _NUMBERS[getattr(getattr(aten, _name), _out)] = _name


def _lifted(op, arguments, words):
    """The function of the op, and its arguments with numbers as tensors; or the op as it is."""
    tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
    rest = {name: each for name, each in words.items() if name != "out"}
    numbers = [isinstance(each, (int, float)) and not isinstance(each, bool) for each in (*arguments, *rest.values())]
    as_it_is = op, arguments, words
    if not any(numbers) or sum(numbers) + len(tensors) != len(numbers) or not all(each.dtype.is_floating_point for each in tensors):
        return as_it_is
    if any(math.isfinite(each) and abs(each) > torch.finfo(tensors[0].dtype).max for each in (*arguments, *rest.values()) if not isinstance(each, torch.Tensor)):
        return as_it_is  # PyTorch says so, or not, by its own rules.
    shape = torch.broadcast_shapes(*(each.shape for each in tensors))
    writes = op._schema.is_mutable
    if writes and (words["out"] if "out" in words else arguments[0]).shape != shape:
        return as_it_is
    compute = _computed(_FUNCTIONS[_NUMBERS[op]])

    def function(*given, out=None, **named):
        result = compute(*zip((*given, *named.values()), numbers))
        return (given[0] if out is None else out).copy_(result) if writes else result

    def tensor(value):
        return torch.tensor(float(value), dtype=torch.float64, device="cpu") if not isinstance(value, torch.Tensor) else value

    return function, tuple(map(tensor, arguments)), {name: tensor(each) if name in rest else each for name, each in words.items()}


@dataclasses.dataclass
class _Kept:
    """An op as a program.

    Attributes:
        arguments: for each argument of the program the tensor's number and the order of its dimensions.
        outputs: for each result of the op: a Spec to make, the number of the tensor that it is, a tensor's number and the Spec of a view, or a value.
        written: the number of each tensor that is changed, its new shape, and the result of the program with its new elements.
    """

    executable: Any
    arguments: list
    constants: list
    has_seed: bool
    outputs: list
    written: list
    structure: Any


_programs: "collections.OrderedDict[Any, _Kept | Unsupported]" = collections.OrderedDict()


@functools.cache
def _places_of_tensors(op) -> tuple[tuple[int, str], ...]:
    """The arguments that have to be tensors."""
    return tuple((i, each.name) for i, each in enumerate(op._schema.arguments) if isinstance(each.type, torch.TensorType))


def _as_tensors(op, arguments, words):
    """PyTorch hands on a number where an op wants a tensor, which Python's way to the op refuses. The tensor has the type that the number has
    beside the others, so that it has no say in the result's."""
    places = [(i, name) for i, name in _places_of_tensors(op) if type(arguments[i] if i < len(arguments) else words.get(name)) in (int, float, complex, bool)]
    if not places:
        return arguments, words
    arguments, words = list(arguments), dict(words)
    kinds = [each for each in (*arguments, *words.values()) if isinstance(each, torch.Tensor)]
    for i, name in places:
        given, key = (arguments, i) if i < len(arguments) else (words, name)
        dtype = torch.result_type(kinds[0], given[key]) if kinds else None
        given[key] = torch.tensor(given[key], dtype=dtype, device="cpu")
    return tuple(arguments), words


@functools.cache
def _without_out(op):
    """The form without `out` of an op that has results and changes arguments too: PyTorch makes functions of others, but mixes up the two there."""
    is_out = [each.is_out for each, writes in zip(op._schema.arguments, _writes(op)) if writes]
    return op.overloadpacket.default if any(is_out) and not all(is_out) else None


def _run_without_out(op, arguments, words):
    names = [each.name for each in op._schema.arguments if each.is_out]
    results = _without_out(op)(*arguments, **{name: each for name, each in words.items() if name not in names})
    return tuple(copy_from_and_resize(result, words[name]) for name, result in zip(names, results, strict=True))


def _writes(op, arguments=()) -> list[bool]:
    """Which arguments the op changes; of some ops PyTorch's schema does not say so."""
    unsaid = _UNSAID_WRITES[op](arguments) if op in _UNSAID_WRITES else ()
    return [i in unsaid or each.alias_info is not None and each.alias_info.is_write for i, each in enumerate(op._schema.arguments)]


def _hashable(value):
    if isinstance(value, torch.Generator):
        return torch.Generator
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(each) for each in value)
    if isinstance(value, float):  # 0.0 and -0.0, 1 and 1.0 are different, NaN is like itself.
        return (float, value.hex())
    if isinstance(value, complex):
        return (complex, value.real.hex(), value.imag.hex())
    return (type(value), value)


def first_call(op, *arguments, **words):
    """The kernel of every op that has no other for the device, where plans.cpp has no plan for the call. It is left one."""
    return _dispatch(op, arguments, words, _device.open_call())


def dispatch(op, *arguments, **words):
    """Runs an op, also of a view that PyTorch would resolve."""
    return _dispatch(op, arguments, words, None)


def _dispatch(op, arguments, words, call):
    given_arguments, given_words = arguments, words
    if _without_out(op) is not None:
        return _run_without_out(op, arguments, words)
    function = _INSTEAD.get(op, op)
    if op not in _NUMBERS:
        arguments, words = _as_tensors(op, arguments, words)
    given = arguments, words
    if op in _NUMBERS:
        function, *given = _lifted(op, arguments, words)
    # A tensor instead of a number would have a say in the result's type.
    numbers = tuple(not isinstance(each, torch.Tensor) for each in (*arguments, *words.values())) if function is not op and op in _NUMBERS else ()
    flat, structure = pytree.tree_flatten(tuple(given))
    generator = next((each for each in flat if isinstance(each, torch.Generator)), None)
    tensors = [each for each in flat if isinstance(each, torch.Tensor)]
    key = (op, structure, tuple(storage.spec_of(each)[:3] + (each.device.type,) if isinstance(each, torch.Tensor) else _hashable(each) for each in flat),
           torch.get_default_dtype(), numbers)
    with lock:
        kept = _programs.get(key)
        if kept is not None:
            _programs.move_to_end(key)
    if kept is None:
        kept = _compiled(key, op, function, flat, structure)
    if isinstance(kept, Unsupported):
        return _on_cpu(op, kept, arguments, words)
    key, items, expected = call if call is not None else (None, None, None)
    if expected is not None and not _makes(kept, expected):
        return op._op_dk(torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional, *given_arguments, **given_words)
    # Of the tensors as they are before an op resizes one.
    plan = _plan(kept, op._schema.returns, tensors, items) if key is not None else None
    results = _run(kept, tensors, generator)
    if plan is not None:
        _device.keep_plan(key, plan)
    return results


def _makes(kept: _Kept, expected: list[torch.Tensor]) -> bool:
    """Whether the new results have the types, shapes and strides that PyTorch's own kernel gives them: tracing promotes some types otherwise."""
    fresh = [rest[0] for kind, *rest in kept.outputs if kind == "fresh"]
    return not fresh or len(fresh) == len(expected) and all(
        (spec.shape, spec.dtype) == (tuple(each.shape), each.dtype) and (each.numel() == 0 or spec.stride == each.stride())
        for spec, each in zip(fresh, expected))


# Tracing sets switches of the whole process.
_tracing = threading.RLock()


# PyTorch's tracing without the switch by which functions that are compiled, in any thread, refuse to be called while something is traced:
# the switch is a global name of PyTorch's module, of which this function gets a copy.
_trace = getattr(_symbolic_trace.Tracer.trace, "_torchdynamo_orig_callable", _symbolic_trace.Tracer.trace)
_quiet_trace = types.FunctionType(_trace.__code__, dict(vars(_symbolic_trace)), "trace", _trace.__defaults__, _trace.__closure__)


def _make_fx(function, fakes):
    """The graph of the function; `_tracing` is held."""
    tracer = proxy_tensor.PythonKeyTracer
    is_outermost = "trace" not in vars(tracer)
    tracer.trace = _quiet_trace
    try:
        return proxy_tensor.make_fx(function, decomposition_table=decompositions(), tracing_mode="fake")(*fakes)
    finally:
        if is_outermost:
            del tracer.trace


def _compiled(key, op, function, flat, structure) -> "_Kept | Unsupported":
    with _tracing:
        with lock:
            kept = _programs.get(key)
        if kept is None:
            try:
                kept = _compile(op, function, flat, structure)
            except Unsupported as error:
                kept = error
            with lock:
                _programs[key] = kept
                while len(_programs) > MOST_PROGRAMS:
                    _programs.popitem(last=False)
                    counters.evicted += 1
        return kept


def _fake(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")


def _raise_as_on_the_cpu(op, flat, structure) -> None:
    """PyTorch's own error for such arguments, which says it better than one of tracing."""
    filled = [torch.zeros_like(_fake(each)) if isinstance(each, torch.Tensor) else None if isinstance(each, torch.Generator) else
              torch.device("cpu") if isinstance(each, torch.device) else each for each in flat]
    arguments, words = pytree.tree_unflatten(filled, structure)
    op(*arguments, **words)


def _check_devices(op, tensors) -> None:
    """Raises where an op is given a tensor of the CPU beside those of the device: numbers may be there, and indices."""
    if op.overloadpacket in _TAKE_THE_CPU or not any(map(is_ours, tensors)):
        return
    if op.overloadpacket in _TAKE_INDICES:
        tensors = [tensors[0], tensors[-1]]
    other = next((each for each in tensors if each.dim() > 0 and not is_ours(each)), None)
    if other is not None:
        raise RuntimeError(f"{op}: expected all tensors to be on the same device, but found at least two devices, {storage.DEVICE}:0 and {other.device}")


def _compile(op, function, flat, structure) -> _Kept:
    _check_devices(op, [each for each in flat if isinstance(each, torch.Tensor)])
    if op.is_view:
        return _view(op, flat, structure)
    for each in flat:
        if isinstance(each, torch.Tensor):
            storage.refuse_type(each.dtype)
    places = [i for i, each in enumerate(flat) if isinstance(each, torch.Tensor)]
    schema = op._schema
    # Which tensors the op changes: its arguments by position and by name.
    names = [each.name for each in schema.arguments]
    changed: set[int] = set()
    sample_arguments, sample_words = pytree.tree_unflatten(list(range(len(flat))), structure)
    for i, write in enumerate(_writes(op, pytree.tree_unflatten(flat, structure)[0])):
        if write:
            given = sample_arguments[i] if i < len(sample_arguments) else sample_words.get(names[i])
            changed.update(places.index(each) for each in pytree.tree_leaves(given) if each in places)
    described: dict[str, Any] = {}

    def traced(*tensors):
        filled = [None if isinstance(each, torch.Generator) else each for each in flat]
        own = [each.clone() if i in changed else each for i, each in enumerate(tensors)]
        for place, tensor in zip(places, own):
            filled[place] = tensor
        arguments, words = pytree.tree_unflatten(filled, structure)
        for name in ("device", "pin_memory"):
            words.pop(name, None)
        result = function(*arguments, **words)
        leaves, described["structure"] = pytree.tree_flatten(result)
        aliases = [next((i for i in changed if own[i] is each), None) for each in leaves]
        if op._schema.is_mutable and all(each is None for each in aliases):  # Functional wrappers hide the identity.
            aliases = _aliases(schema, leaves, changed, places, sample_arguments, sample_words, names)
        described["aliases"] = aliases
        fresh = [each for each, alias in zip(leaves, aliases) if alias is None and isinstance(each, torch.Tensor)]
        described["kinds"] = ["alias" if alias is not None else "fresh" if isinstance(each, torch.Tensor) else ("value", each)
                              for each, alias in zip(leaves, aliases)]
        return fresh + [own[i] for i in sorted(changed)]

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [_fake(flat[i]) for i in places]
    try:
        with torch._C._DisableAutocast():
            module = _make_fx(functionalize(traced, remove="mutations_and_views"), fakes)
    except (RuntimeError, NotImplementedError, TypeError, AssertionError, AttributeError, ValueError, SyntaxError) as error:
        if isinstance(error, (ValueError, IndexError)) or "must" in str(error) or "expected" in str(error).lower() and not isinstance(error, NotImplementedError):
            _raise_as_on_the_cpu(op, flat, structure)
            raise
        raise Unsupported(f"cannot be traced: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}") from None
    module.graph.eliminate_dead_code()
    lowered = lower(module, random=True)
    if lowered.refused:
        raise Unsupported("; ".join(f"{name}: {why}" for name, why in sorted(set(lowered.refused.values()))))
    return _keep(lowered, module, described, sorted(changed), places)


def _aliases(schema, leaves, changed, places, arguments, words, names):
    """Which argument each result is, by the schema."""
    found = []
    for i in range(len(leaves)):  # None is a leaf too, of ops without results.
        result = schema.returns[i] if i < len(schema.returns) else None
        alias = None
        if result is not None and result.alias_info is not None:
            for k, argument in enumerate(schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write and argument.alias_info.before_set == result.alias_info.before_set:
                    given = arguments[k] if k < len(arguments) else words.get(names[k])
                    alias = places.index(given)
        found.append(alias)
    return found


def _keep(lowered, module, described, changed, places) -> _Kept:
    output = next(node for node in module.graph.nodes if node.op == "output").args[0]
    specs = [dense(Spec(tuple(node.meta["val"].shape), node.meta["val"].dtype, tuple(node.meta["val"].stride()))) for node in output]
    results, count = lowered.results, len(output) - len(changed)
    written = [(number, specs[count + i], results[count + i]) for i, number in enumerate(changed)]
    outputs, fresh = [], iter(zip(specs, results))
    for kind, alias in zip(described["kinds"], described["aliases"]):
        if kind == "fresh":
            outputs.append(("fresh", *next(fresh)))
        else:
            outputs.append(("tensor", alias) if kind == "alias" else kind)
    executable = storage.client().compile(lowered.text) if lowered.returned else None
    with lock:
        counters.programs += executable is not None
    return _Kept(executable, lowered.arguments, [storage.from_host(each) for each in lowered.constants], lowered.has_seed, outputs, written,
                 described["structure"])


def _view(op, flat, structure) -> _Kept:
    """A view that PyTorch has no common kernel for: where it lies, by a fake tensor."""
    places = [i for i, each in enumerate(flat) if isinstance(each, torch.Tensor)]
    with FakeTensorMode():
        fakes = [_fake(flat[i]) for i in places]
        filled = list(flat)
        for place, tensor in zip(places, fakes):
            filled[place] = tensor
        arguments, words = pytree.tree_unflatten(filled, structure)
        leaves, shape = pytree.tree_flatten(op(*arguments, **words))
    if any(each.dtype != fakes[0].dtype for each in leaves):
        raise Unsupported("a view of another type")
    outputs = [("view", 0, Spec(tuple(each.shape), each.dtype, tuple(each.stride()), each.storage_offset())) for each in leaves]
    return _Kept(None, [], [], False, outputs, [], shape)


def _argument(tensor: torch.Tensor, order):
    if is_ours(tensor):
        return storage.read(tensor, order)
    return tensor.detach().permute(order).contiguous() if order else tensor.detach().contiguous()


def _run(kept: _Kept, tensors: list[torch.Tensor], generator: torch.Generator | None):
    returned = []
    if kept.executable is not None:
        given = [_argument(tensors[each.place], each.permutation) for each in kept.arguments] + kept.constants
        if kept.has_seed:
            given.append(torch.empty(2, dtype=torch.int64, device="cpu").random_(generator=generator))
        returned = kept.executable.run(given)
        counters.calls += 1

    def array_of(spec: Spec, result: Result):
        """The program's result, or an argument that the op hands on."""
        if result.place is not None:
            return returned[result.place]
        order = storage.memory_order(spec)
        source = tensors[result.argument]
        if result.view is not None:
            source = source.as_strided(result.view.shape, result.view.stride, source.storage_offset() + result.view.offset)
        return _argument(source, order) if is_ours(source) else storage.from_host(_argument(source, order))

    arrays = [(number, spec, array_of(spec, result)) for number, spec, result in kept.written]
    outputs = []
    for kind, *rest in kept.outputs:
        if kind == "fresh":
            outputs.append(storage.made(rest[0], array_of(*rest)))
        elif kind == "tensor":
            outputs.append(tensors[rest[0]])
        elif kind == "view":
            base, spec = tensors[rest[0]], rest[1]
            outputs.append(base.as_strided(spec.shape, spec.stride, base.storage_offset() + spec.offset))
        else:
            outputs.append(rest[0])
    for number, spec, array in arrays:
        tensor = tensors[number]
        if tuple(tensor.shape) != spec.shape:
            tensor.resize_(spec.shape)
        storage.write(tensor, array, storage.memory_order(spec))
    return pytree.tree_unflatten(outputs, kept.structure)


# --- plans, which run an op again without Python (src/plans.cpp)


def _places_of_items(tensors, items) -> list[int | None] | None:
    """The item of the call that each tensor is; None for one that was made of a number, which the call's key has."""
    places: list[int | None] = []
    found = 0
    for tensor in tensors:
        is_item = found < len(items) and (items[found] is tensor or isinstance(items[found], float))
        places.append(found if is_item else None)
        found += is_item
    return places if found == len(items) else None


def _layout(tensor: torch.Tensor, order) -> tuple:
    return storage.layout(storage.spec_of(tensor), order, is_ours(tensor))


class _NoPlan(Exception):
    """A call needs more than a plan says."""


def _plan(kept: _Kept, returns, tensors, items) -> "_device.Plan | None":
    places = _places_of_items(tensors, items)
    if kept.has_seed or places is None:
        return None

    def tensor(number, order):
        place = places[number]
        if place is None:
            return "constant", storage.from_host(_argument(tensors[number], order))
        return ("number", place) if isinstance(items[place], float) else ("tensor", place, _layout(tensors[number], order))

    def source(spec: Spec, result: Result):
        if result.place is not None:
            return "result", result.place
        if result.view is not None or not is_ours(tensors[result.argument]):
            raise _NoPlan
        return tensor(result.argument, storage.memory_order(spec))

    def output(kind, *rest):
        if kind == "fresh":
            spec, result = rest
            return storage.new(spec, source(spec, result))
        if kind == "tensor" and places[rest[0]] is not None:
            return "item", places[rest[0]]
        if kind == "value" and rest[0] is None:
            return ("none",)
        raise _NoPlan

    def written(number, spec, result):
        if not is_ours(tensors[number]) or tuple(tensors[number].shape) != spec.shape:
            raise _NoPlan
        return places[number], _layout(tensors[number], storage.memory_order(spec)), source(spec, result)

    outputs = kept.outputs if returns else []
    is_list = len(returns) == 1 and isinstance(returns[0].type, torch.ListType) and isinstance(returns[0].type.getElementType(), torch.TensorType)
    if not is_list and (len(outputs) != len(returns) or not all(isinstance(each.type, torch.TensorType) for each in returns)):
        return None
    try:
        return _device.Plan(None if kept.executable is None else kept.executable._native.run,  # Without a frame of Python.
                            [tensor(each.place, each.permutation) for each in kept.arguments] + [("constant", each) for each in kept.constants],
                            [output(*each) for each in outputs], [written(*each) for each in kept.written])
    except _NoPlan:
        return None


def number(value: float):
    """A number as an argument of a program."""
    return storage.from_host(torch.tensor(value, dtype=torch.float64, device="cpu"))


write, reader, writer = storage.write, storage.reader, storage.writer
_device.start_plans(later("_argument"), later("write"), later("reader"), later("writer"), later("number"), counters,
                    [op.name() for op in _NUMBERS], MOST_PROGRAMS)


# --- the CPU


def _on_cpu(op, reason: Unsupported, arguments, words):
    name = str(op)
    if os.environ.get("TENON_TORCH_FALLBACK") == "error":
        raise Unsupported(f"PyTorch would have to run {name} on the CPU: {reason}")
    with lock:
        if name not in counters.fallbacks:
            counters.fallbacks[name] += 1
            counters.reasons[name] = str(reason)
        counters.fallback_calls[name] += 1
    pairs = []

    def down(each):
        if isinstance(each, torch.Tensor) and is_ours(each):
            copy = each.cpu()
            pairs.append((each, copy))
            return copy
        return torch.device("cpu") if isinstance(each, torch.device) else each

    given, named = pytree.tree_map(down, (arguments, words))
    result = op(*given, **named)
    back = {id(copy): own for own, copy in pairs}
    if op._schema.is_mutable or op in _UNSAID_WRITES:
        for i, write in enumerate(_writes(op, arguments)):
            name = op._schema.arguments[i].name
            for each in pytree.tree_leaves(given[i] if i < len(given) else named.get(name)) if write else ():
                if id(each) in back:
                    own = back[id(each)]
                    if own.shape != each.shape:
                        own.resize_(each.shape)
                    own.copy_(each)

    def up(each):
        if not isinstance(each, torch.Tensor):
            return each
        return back[id(each)] if id(each) in back else each.to(storage.DEVICE)

    return pytree.tree_map(up, result)


# --- copies


def copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking=False) -> torch.Tensor:
    if is_ours(target) and (target.is_conj() or target.is_neg()):
        # Its memory gets the conjugate, or the negative, of the elements.
        plain, value = (target._neg_view(), -source) if target.is_neg() else (target.conj(), source.conj().resolve_conj())
        copy_from(value, plain)
        return target
    if source.device.type == "cpu":
        order = storage.order_of(target)
        value = source.detach().to(target.dtype).expand(target.shape)
        value = value.permute(order) if order else value
        storage.write(target, storage.from_host(value), order)
    elif target.device.type == "cpu":
        target.copy_(storage.to_host(storage.read(source)))
    else:
        order = storage.order_of(target)
        array = storage.read(source.expand(target.shape), order)
        if source.dtype != target.dtype:
            array = storage.converter(array.shape, source.dtype, target.dtype).run([array])[0]
        storage.write(target, array, order)
    return target


def first_copy(source: torch.Tensor, target: torch.Tensor, non_blocking=False) -> torch.Tensor:
    """The kernel of copies for which plans.cpp has no plan. One within the device is left one."""
    call = _device.open_call()
    copy_from(source, target, non_blocking)
    if call is not None and call[0] is not None and is_ours(source) and is_ours(target) and source.shape == target.shape and not (target.is_conj() or target.is_neg()):
        order = storage.order_of(target)
        given, written = ("tensor", 0, _layout(source, order)), _layout(target, order)
        if source.dtype == target.dtype:
            plan = _device.Plan(None, [], [("item", 1)], [(1, written, given)])
        else:
            run = storage.converter(written[1], source.dtype, target.dtype)._native.run
            plan = _device.Plan(run, [given], [("item", 1)], [(1, written, ("result", 0))])
        _device.keep_plan(call[0], plan)
    return target


def copy_from_and_resize(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    if source.shape != target.shape:
        target.resize_(source.shape)
    return copy_from(source, target)


def local_scalar_dense(tensor: torch.Tensor):
    return storage.to_host(storage.read(tensor)).item()



def equal(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.shape == y.shape and bool((x == y).all())
