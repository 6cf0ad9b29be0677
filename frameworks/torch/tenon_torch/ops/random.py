"""Random numbers: each program takes a seed of two words as its last argument, drawn from PyTorch's generator at each call, and its
ops take one part after another of the sequence that rng_bit_generator makes of it (`Builder.state`).

The distributions are PyTorch's, the numbers are not those of its CPU kernels; with `random="torch"` the ops are not lowered, and
PyTorch draws them.
"""

import math

import torch
from torch._guards import detect_fake_mode
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state

from ..builder import Builder, Value
from ..table import Unsupported, aten, lowering_of, lowers, overloads, prims, promoted, wide


def _bits(b: Builder, shape, dtype: torch.dtype) -> Value:
    """Random words; the state of the program moves on."""
    if b.state is None:
        raise Unsupported("PyTorch draws random numbers (random=\"torch\")")
    shape = tuple(shape)
    state, words = b.several(f'"stablehlo.rng_bit_generator"({b.state.name}) <{{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}}>',
                             [b.state], [((2,), torch.uint64), (shape, dtype)])
    b.state = state
    return words


def uniform_unit(b: Builder, shape, dtype: torch.dtype) -> Value:
    """In [0, 1), each multiple of 2^-n with one probability, n the bits of a significand."""
    if dtype.is_complex:
        raise Unsupported("complex random numbers")
    wide_type = torch.float64 if dtype == torch.float64 else torch.float32
    digits = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}[dtype]
    word = torch.uint64 if wide_type == torch.float64 else torch.uint32
    bits = _bits(b, shape, word)
    high = b.op("shift_right_logical", bits, b.like(bits, 8 * word.itemsize - digits))
    number = b.convert(high, wide_type)
    return b.convert(b.multiply(number, b.like(number, 2.0 ** -digits)), dtype)


def _centre(b: Builder, shape, wide_type: torch.dtype) -> Value:
    """In (-1, 1), the centres of intervals that are as many as a significand has values."""
    digits = 52 if wide_type == torch.float64 else 23
    word = torch.int64 if wide_type == torch.float64 else torch.int32
    bits = _bits(b, shape, torch.uint64 if wide_type == torch.float64 else torch.uint32)
    high = b.op("bitcast_convert", b.op("shift_right_logical", bits, b.like(bits, 8 * word.itemsize - digits)), dtype=word)
    number = b.convert(high, wide_type)
    return b.subtract(b.multiply(b.add(number, b.like(number, 0.5)), b.like(number, 2.0 ** (1 - digits))), b.like(number, 1))


def normal_unit(b: Builder, shape, dtype: torch.dtype) -> Value:
    """By the inverse of the distribution function, at the centres of the intervals, so that no infinity comes out."""
    if dtype.is_complex:
        raise Unsupported("complex random numbers")
    centre = _centre(b, shape, torch.float64 if dtype == torch.float64 else torch.float32)
    return b.convert(b.multiply(b.chlo("erf_inv", centre), b.like(centre, math.sqrt(2))), dtype)


@lowers(*overloads(aten.rand, "default"), aten.rand_like.default)
def rand(b: Builder, *_, **__) -> Value:
    return uniform_unit(b, b.out.shape, b.out.dtype)


@lowers(*overloads(aten.randn, "default"), aten.randn_like.default)
def randn(b: Builder, *_, **__) -> Value:
    return normal_unit(b, b.out.shape, b.out.dtype)


def _integers(b: Builder, low: int, high: int) -> Value:
    """In [low, high), by the remainder of random words, as PyTorch: of 64 bits for a range beyond 2^28, else of 32."""
    span = high - low
    bits = _bits(b, b.out.shape, torch.uint64 if span >= 1 << 28 else torch.uint32)
    number = b.convert(b.op("remainder", bits, b.like(bits, span)), torch.int64)
    return b.convert(b.add(number, b.like(number, low)), b.out.dtype)


@lowers(*overloads(aten.randint, "default"))
def randint(b: Builder, high: int, *_, **__) -> Value:
    return _integers(b, 0, high)


@lowers(*overloads(aten.randint, "low"))
def randint_from(b: Builder, low: int, high: int, *_, **__) -> Value:
    return _integers(b, low, high)


@lowers(*overloads(aten.randint_like, "default"))
def randint_like(b: Builder, _, high: int, **__) -> Value:
    return _integers(b, 0, high)


@lowers(*overloads(aten.randint_like, "low_dtype"))
def randint_like_from(b: Builder, _, low: int, high: int, **__) -> Value:
    return _integers(b, low, high)


@lowers(*overloads(aten.randperm, "default"))
def randperm(b: Builder, count: int, **_) -> Value:
    """The order of random keys: each number is the low bits of its own, so that one array is sorted, unless too few random bits are left."""
    keys = _bits(b, (count,), torch.uint64)
    bits = max(count - 1, 0).bit_length()
    if 3 * bits <= 64:  # Two keys of a permutation agree with a probability below 1 / 4, and stay in order then.
        low = b.like(keys, (1 << bits) - 1)
        own = b.op("or", b.op("and", keys, b.op("not", low)), b.iota((count,), 0, torch.uint64))
        ordered, = b.sort([own], 0, "LT")
        return b.convert(b.op("and", ordered, low), b.out.dtype)
    return b.convert(b.sort([keys, b.iota((count,), 0, torch.int64)], 0, "LT")[1], b.out.dtype)


@lowers(*overloads(aten.bernoulli, "default", "p", "Tensor"))
def bernoulli(b: Builder, x: Value, p=None, **_) -> Value:
    chance = x if p is None else p
    dtype = wide(chance.dtype) if isinstance(chance, Value) and chance.dtype.is_floating_point else torch.float32
    number = uniform_unit(b, b.out.shape, dtype)
    return b.convert(b.compare(number, promoted(b, chance, dtype), "LT"), b.out.dtype)


@lowers(*overloads(aten.uniform, "default"))
def uniform(b: Builder, x: Value, low=0.0, high=1.0, **_) -> Value:
    number = uniform_unit(b, x.shape, x.dtype)
    return b.add(b.multiply(number, b.like(number, high - low)), b.like(number, low))


@lowers(*overloads(aten.normal_functional, "default"), *overloads(aten.normal, "Tensor_float", "float_Tensor", "Tensor_Tensor"))
def normal(b: Builder, mean=0.0, deviation=1.0, *rest, **_) -> Value:
    if rest or (isinstance(mean, Value) and isinstance(deviation, float) and rest):
        mean, deviation = deviation, rest[0]
    number = normal_unit(b, b.out.shape, b.out.dtype)
    return b.add(b.multiply(number, promoted(b, deviation, number.dtype)), promoted(b, mean, number.dtype))


@lowers(*overloads(prims.normal, "default"))
def normal_numbers(b: Builder, shape, *, mean, std, **_) -> Value:
    return normal(b, mean, std)


@lowers(*overloads(aten.exponential, "default"))
def exponential(b: Builder, x: Value, rate=1.0, **_) -> Value:
    number = _centre(b, x.shape, wide(x.dtype))  # In (-1, 1): neither 0 nor infinity comes out.
    unit = b.multiply(b.add(number, b.like(number, 1)), b.like(number, 0.5))
    positive = b.op("negate", b.op("log", unit))
    return b.convert(b.divide(positive, b.like(positive, rate)), x.dtype)


@lowers(*overloads(aten.native_dropout, "default"))
def native_dropout(b: Builder, x: Value, p: float, train):
    if train is False:
        return x, b.full(x.shape, True, torch.bool)
    kept = b.compare(uniform_unit(b, x.shape, torch.float32), b.full(x.shape, p, torch.float32), "GE")
    scale = 0.0 if p == 1 else 1.0 / (1.0 - p)
    wider = b.convert(x, wide(x.dtype))
    return b.convert(b.multiply(b.multiply(wider, b.convert(kept, wider.dtype)), b.like(wider, scale)), x.dtype), kept


# --- layers that are computed again in the backward pass (torch.utils.checkpoint) draw the same numbers there: the state goes along

_STATE_BYTES = 16


def name_states(module: torch.fx.GraphModule) -> None:
    """PyTorch states neither results nor the size of the state for the ops that keep one. A draw that has a lowering keeps the state of
    its program, another one that of PyTorch's generator."""

    def fake(node):
        return node.meta["val"]

    for node in module.graph.nodes:
        keeps = node.target is run_and_save_rng_state
        if node.op != "call_function" or not (keeps or node.target is run_with_rng_state):
            continue
        op, *given = node.args[0 if keeps else 1:]
        given, words = torch.fx.map_arg(given, fake), torch.fx.map_arg(node.kwargs, fake)
        with detect_fake_mode([each for each in given if isinstance(each, torch.Tensor)]) as mode:
            out, state = op(*given, **words), mode.from_tensor(torch.empty(_STATE_BYTES, dtype=torch.uint8))
        has_lowering = lowering_of(op) is not None
        if not keeps:
            node.meta["val"] = out
            if has_lowering and isinstance(node.args[0], torch.fx.Node):  # PyTorch gives the sizes of all states one name.
                node.args[0].meta["val"] = state
        elif has_lowering:
            node.meta["val"] = state, out
            for user in node.users:
                user.meta["val"] = node.meta["val"][user.args[1]]


def _drawn(b: Builder, op, arguments, words):
    function = lowering_of(op)
    if function is None or b.state is None:
        raise Unsupported(f"{op} has no lowering" if function is None else "PyTorch draws random numbers (random=\"torch\")")
    return function(b, *arguments, **words)


@lowers(run_and_save_rng_state)
def draw_and_keep_state(b: Builder, op, *arguments, **words):
    state, (_, b.out) = b.state, b.out
    result = _drawn(b, op, arguments, words)
    return b.reshape(b.op("bitcast_convert", state, shape=(2, 8), dtype=torch.uint8), (_STATE_BYTES,)), result


@lowers(run_with_rng_state)
def draw_again(b: Builder, state: Value, op, *arguments, **words):
    """From a state that was kept; that of the program stays as it is."""
    if state.shape != (_STATE_BYTES,):
        raise Unsupported("a state of PyTorch's generator")
    now, b.state = b.state, b.state and b.op("bitcast_convert", b.reshape(state, (2, 8)), shape=(2,), dtype=torch.uint64)
    try:
        return _drawn(b, op, arguments, words)
    finally:
        b.state = now
