"""PyTorch's own database of ops on torch.device("tenon"), in eager mode: each sample's tensors are moved there with their strides, and
values, gradients and what shares memory are compared with PyTorch's CPU, twice. So are the op in place, with `out`, and with inputs that leave gaps.

An op ends as one of:
    pass      each sample agrees, and every op that it is made of ran on the device
    cpu       each sample agrees, and some of those ops ran on the CPU: they are named
    random    the CPU's own results depend on the seed: shapes and types agree
    refused   PyTorch has no kernel for the device, or the device has no such type or layout
    none      PyTorch's CPU has no results to compare with
    wrong     a sample does not agree
    error     anything else
"""

import functools
import itertools
from unittest import mock

import torch
from torch.testing._internal import common_methods_invocations
from torch.utils import _pytree as pytree

import opinfo
import tenon_torch
from tenon_torch._device import planned_calls  # Also for the tool.
from opinfo import UP_TO_SIGNS, Mismatch, Outcome, agree, compared, evaluated, has_ties, leaves, samples_of, widened

WORDS = ("pass", "cpu", "random", "refused", "none", "wrong", "error")


# PyTorch wants their further tensors on the CPU.
_FURTHER_ON_CPU = ("tensor_split",)


def copy_on(device: str, x: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, and the same lazy conjugate or negative."""
    plain = x.detach()
    if plain.is_conj():
        copy = copy_on(device, plain.conj()).conj()
    elif plain.is_neg():
        copy = copy_on(device, plain._neg_view())._neg_view()
    else:
        memory = torch.empty(0, dtype=x.dtype).set_(plain.untyped_storage()).clone()
        copy = memory.to(device).as_strided(x.shape, x.stride(), x.storage_offset())
    return copy.requires_grad_(x.requires_grad)


class _Call:
    """An op with a sample's arguments, as a function of its tensors and a device."""

    def __init__(self, op, sample):
        self.op, self.sample = op, sample
        self.flat, self.spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.places = [i for i, each in enumerate(self.flat) if isinstance(each, torch.Tensor)]
        self.tensors = [self.flat[i] for i in self.places]

    def detached(self) -> "_Call":
        self.tensors = [each.detach() for each in self.tensors]
        return self

    def _filled(self, tensors, device: str):
        values = [torch.device(device) if isinstance(each, torch.device) or isinstance(each, str) and each == "cpu" else each for each in self.flat]
        for place, tensor in zip(self.places, tensors):
            values[place] = tensor
        return pytree.tree_unflatten(values, self.spec)

    def plain(self, device: str, *tensors):
        return compared(self.op, self.sample, self._result(device, tensors))

    def _result(self, device: str, tensors):
        arguments, words = self._filled(tensors, device)
        return self.op(*arguments, **words)

    def in_place(self, device: str, *tensors):
        (first, *rest), words = self._filled(tensors, device)
        changed = pytree.tree_map(torch.clone, first)
        self.op.inplace_variant(changed, *rest, **words)
        return leaves(changed)

    def with_out(self, like: list[torch.Tensor], empty: bool, device: str, *tensors):
        """Into tensors of the results' shapes, or into empty ones, which get them."""
        if self.op.name in UP_TO_SIGNS:  # Then those are not the results.
            like = leaves(self._result("cpu", [each.cpu() for each in tensors]))
        out = [torch.empty(0 if empty else each.shape, dtype=each.dtype, device=device) for each in like]
        arguments, words = self._filled(tensors, device)
        with torch.no_grad():
            self.op(*arguments, **words, out=out[0] if len(out) == 1 else tuple(out))
        return compared(self.op, self.sample, tuple(out)) if self.op.name in UP_TO_SIGNS else out


def _unseeded(op, *given, **words):
    """In place of PyTorch's wrapper, which gives each call the same seed: two calls tell which ops are random."""
    return op(*given, **words)


def _on(call: _Call, function, device: str):
    """Results, gradients, and with which tensors each result shares memory."""
    devices = [device, *["cpu" if call.op.name in _FURTHER_ON_CPU else device] * (len(call.tensors) - 1)]
    given = [copy_on(*each) for each in zip(devices, call.tensors)]
    results, gradients = evaluated(functools.partial(function, device), given)
    return results, gradients, [[x.untyped_storage()._cdata == y.untyped_storage()._cdata for y in given] for x in results]


def _without_nan(x: torch.Tensor) -> torch.Tensor:
    return (x.to(torch.complex64) if x.dtype == torch.complex32 else x).nan_to_num()


def _is_random(call: _Call, function, expected, seeds) -> bool:
    """Whether the CPU has other results with one of these seeds."""
    for seed in seeds:
        torch.manual_seed(seed)
        values, *_ = _on(call, function, "cpu")
        if any(not torch.equal(_without_nan(a), _without_nan(b)) for a, b in zip(values, expected, strict=True)):
            return True
    return False


def _compare(what: str, call: _Call, function, results: list | None = None) -> str | None:
    """"same", if the device's results agree with those of the CPU, which go to `results`; "random", if two seeds give the CPU different ones;
    None where it has none."""
    try:
        torch.manual_seed(1)
        expected = _on(call, function, "cpu")
        is_random = _is_random(call, function, expected[0], [2])
    except Exception:  # Then there is nothing to compare with.
        return None
    for time in ("", "again: "):  # The first call makes a program, and the second one finds a plan that runs it.
        is_random |= _agrees(what + time, call, function, expected, is_random)
    if results is not None and not is_random:
        results.extend(expected[0])
    return "random" if is_random else "same"


def _agrees(what: str, call: _Call, function, expected, is_random: bool) -> bool:
    """Compares the device's results; whether they turn out to be random."""
    found = _on(call, function, "tenon")
    wider = functools.cache(lambda: evaluated(functools.partial(call.plain, "cpu"), widened(call.tensors)))
    for part, kind in enumerate(("value", "gradient")):
        for i, (left, right) in enumerate(zip(found[part], expected[part], strict=True)):
            if right is None:
                continue
            if left is not None and left.device.type != "tenon":
                raise Mismatch(f"{what}{kind}: on {left.device}")
            left = torch.zeros_like(right) if left is None else left.cpu()
            if (left.shape, left.dtype) != (right.shape, right.dtype):
                raise Mismatch(f"{what}{kind}: {left.dtype} of {tuple(left.shape)} for {right.dtype} of {tuple(right.shape)}")
            try:
                if not is_random and not has_ties(call.op, call.tensors, kind, i):
                    agree(left, right, lambda: wider()[part][i], what + kind)
            except Mismatch:
                is_random = _is_random(call, function, expected[0], range(3, 20))  # Two seeds may give the same.
                if not is_random:
                    raise
    if found[2] != expected[2]:
        raise Mismatch(f"{what}memory is shared with {found[2]}, not {expected[2]}")
    return is_random


def check(op, sample, number: int) -> set[str]:
    """Compares a sample in each way in which the op can be called. What there was: "same", "random"."""
    call, expected = _Call(op, sample), []
    found = {_compare("", call, call.plain, expected)}
    if op.inplace_variant is not None and leaves(sample.input) and not sample.broadcasts_input:
        found.add(_compare("in place: ", call, call.in_place))
    if number == 0 and call.tensors:
        gaps = _Call(op, sample.noncontiguous()).detached()
        found.add(_compare("with gaps: ", gaps, gaps.plain))
    if op.supports_out and expected:
        found.add(_compare("out: ", call.detached(), functools.partial(call.with_out, expected, number % 2 == 1)))
    return found - {None}


def ops(dtype: torch.dtype) -> list:
    """Those that can be compiled, and those on lists of tensors, of which optimizers are made."""
    lists = (getattr(common_methods_invocations, f"foreach_{kind}_op_db") for kind in ("unary", "binary", "pointwise", "reduce", "other"))
    return opinfo.ops(dtype) + [op for op in itertools.chain.from_iterable(lists) if dtype in op.dtypes]


def outcome(op, dtype: torch.dtype, most: int) -> Outcome:
    """Checks at most `most` samples of an op, spread over all that it has. Ops that ran on the CPU are in `left`."""
    with mock.patch.object(common_methods_invocations, "wrapper_set_seed", _unseeded):
        return _outcome(op, dtype, most)


def _outcome(op, dtype: torch.dtype, most: int) -> Outcome:
    try:
        samples = samples_of(op, dtype, most)
    except (RuntimeError, NotImplementedError, ImportError) as error:
        return Outcome("error", 0, f"has no samples: {error}"[:200])
    tenon_torch.counters.reset()
    seen: set[str] = set()
    for number, sample in enumerate(samples):
        try:
            seen |= check(op, sample, number)
        except Mismatch as error:
            return Outcome("wrong", number, " ".join(str(error).split())[:300])
        except Exception as error:  # Whatever an op does: it is told.
            text = " ".join(str(error).split())[:300]
            refused = isinstance(error, (NotImplementedError, tenon_torch.Unsupported)) \
                or any(each.layout != torch.strided for each in leaves((sample.input, sample.args)))
            return Outcome("refused" if refused else "error", number, f"{type(error).__name__}: {text}")
    left = sorted(tenon_torch.counters.fallbacks)
    if not seen:
        return Outcome("none", len(samples))
    word = "random" if "same" not in seen else "cpu" if left else "pass"
    return Outcome(word, len(samples), ", ".join(left), left)
