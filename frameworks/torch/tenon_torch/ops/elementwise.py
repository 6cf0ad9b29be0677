"""Ops of elements: arithmetic, comparisons, mathematical functions."""

import math

import torch

from ..builder import Builder, Value
from ..table import NAMED, TABLE, Unsupported, aten, is_number, lowers, overloads, prims, promoted, result_type, wide
from ..types import REAL_OF

# --- two operands, one op of StableHLO


def _operands(b: Builder, x, y, dtype=None) -> tuple[Value, Value]:
    """Both in the type and shape of the result."""
    return promoted(b, x, dtype or b.out.dtype), promoted(b, y, dtype or b.out.dtype)


def _binary(name: str):
    def lower(b: Builder, x, y) -> Value:
        return b.op(name, *_operands(b, x, y))

    return lower


for _packet, _name in (
    (aten.maximum, "maximum"), (aten.minimum, "minimum"), (aten.bitwise_and, "and"), (aten.bitwise_or, "or"),
    (aten.bitwise_xor, "xor"), (aten.bitwise_left_shift, "shift_left"), (aten.__lshift__, "shift_left"), (aten.atan2, "atan2"),
    (aten.fmod, "remainder"), (aten.__and__, "and"), (aten.__or__, "or"), (aten.__xor__, "xor"),
):
    lowers(*overloads(_packet, "Tensor", "Scalar", "default", "Tensor_Scalar", "Scalar_Tensor"))(_binary(_name))


def _beside(b: Builder, *given) -> torch.dtype:
    """The type to compute in: a number beside short floats has the digits and the range of f32."""
    return wide(b.out.dtype) if any(is_number(each) for each in given) else b.out.dtype


@lowers(*overloads(aten.mul, "Tensor", "Scalar"))
def multiply(b: Builder, x, y) -> Value:
    return b.convert(b.multiply(*_operands(b, x, y, _beside(b, x, y))), b.out.dtype)


@lowers(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor, *overloads(prims.div, "default"))
def true_divide(b: Builder, x, y) -> Value:
    return b.convert(b.divide(*_operands(b, x, y, _beside(b, x, y))), b.out.dtype)


def _scaled(b: Builder, x: Value, alpha) -> Value:
    return x if alpha == 1 else b.multiply(x, b.like(x, alpha))


def _sum_of(name: str):
    def lower(b: Builder, x, y, alpha=1) -> Value:
        x, y = _operands(b, x, y, _beside(b, x, y) if alpha == 1 else wide(b.out.dtype))
        return b.convert(b.op(name, x, _scaled(b, y, alpha)), b.out.dtype)

    return lower


lowers(aten.add.Tensor, aten.add.Scalar)(_sum_of("add"))
lowers(aten.sub.Tensor, aten.sub.Scalar)(_sum_of("subtract"))


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def reversed_subtract(b: Builder, x, y, alpha=1) -> Value:
    x, y = _operands(b, x, y, _beside(b, x, y) if alpha == 1 else wide(b.out.dtype))
    return b.convert(b.subtract(y, _scaled(b, x, alpha)), b.out.dtype)


@lowers(aten.bitwise_right_shift.Tensor, *overloads(aten.bitwise_right_shift, "Tensor_Scalar", "Scalar_Tensor"),
        *overloads(aten.__rshift__, "Tensor", "Scalar"))
def shift_right(b: Builder, x, y) -> Value:
    x, y = _operands(b, x, y)
    return b.op("shift_right_arithmetic" if x.dtype.is_signed else "shift_right_logical", x, y)


def multiply_add(b: Builder, x, y, z) -> Value:
    x, y = _operands(b, x, y)
    return b.add(b.multiply(x, y), promoted(b, z, b.out.dtype))


NAMED["prims.fma.default"] = multiply_add


def _logical(name: str):
    def lower(b: Builder, x, y) -> Value:
        return b.op(name, *_operands(b, x, y, torch.bool))

    return lower


lowers(aten.logical_and.default)(_logical("and"))
lowers(aten.logical_or.default)(_logical("or"))
lowers(aten.logical_xor.default)(_logical("xor"))


@lowers(aten.logical_not.default)
def logical_not(b: Builder, x) -> Value:
    return b.op("not", b.convert(x, torch.bool))


# --- comparisons: in the type that both operands are promoted to


def _comparison(direction: str):
    def lower(b: Builder, x, y) -> Value:
        dtype = result_type(x, y)
        return b.compare(promoted(b, x, dtype), promoted(b, y, dtype), direction)

    return lower


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    lowers(*overloads(getattr(aten, _name), "Tensor", "Scalar"))(_comparison(_name.upper()))


# --- quotients and powers


@lowers(aten.floor_divide.default, *overloads(aten.floor_divide, "Scalar"))
def floor_divide(b: Builder, x, y) -> Value:
    return divide_mode(b, x, y, rounding_mode="floor")


def _signs_differ(b: Builder, x: Value, y: Value) -> Value:
    zero = b.like(x, 0)
    return b.compare(b.compare(x, zero, "LT"), b.compare(y, zero, "LT"), "NE")


def _truncated(b: Builder, x: Value) -> Value:
    return b.select(b.compare(x, b.like(x, 0), "LT"), b.op("ceil", x), b.op("floor", x))


def _floored(b: Builder, x: Value, y: Value) -> Value:
    """Rounds a quotient of floats down, as PyTorch: from the remainder, since the quotient itself may have been rounded up."""
    remainder = b.op("remainder", x, y)
    zero, one = b.like(x, 0), b.like(x, 1)
    quotient = b.divide(b.subtract(x, remainder), y)
    below = b.op("and", b.compare(remainder, zero, "NE"), _signs_differ(b, remainder, y))
    quotient = b.select(below, b.subtract(quotient, one), quotient)
    floor = b.op("floor", quotient)
    floor = b.select(b.compare(b.subtract(quotient, floor), b.like(x, 0.5), "GT"), b.add(floor, one), floor)
    plain = b.divide(x, y)
    signed_zero = b.multiply(b.op("sign", plain), zero)
    result = b.select(b.compare(quotient, zero, "EQ"), signed_zero, floor)
    return b.select(b.compare(y, zero, "EQ"), plain, result)


@lowers(*overloads(aten.div, "Tensor_mode", "Scalar_mode"))
def divide_mode(b: Builder, x, y, rounding_mode=None) -> Value:
    if rounding_mode is None:
        return true_divide(b, x, y)
    dtype = b.out.dtype
    x, y = _operands(b, x, y, wide(dtype))
    if dtype.is_floating_point:
        return b.convert(_floored(b, x, y) if rounding_mode == "floor" else _truncated(b, b.divide(x, y)), dtype)
    quotient = b.divide(x, y)
    if rounding_mode == "trunc" or not dtype.is_signed:
        return quotient
    inexact = b.compare(b.op("remainder", x, y), b.like(x, 0), "NE")
    below = b.op("and", inexact, _signs_differ(b, x, y))
    return b.select(below, b.subtract(quotient, b.like(x, 1)), quotient)


@lowers(*overloads(aten.remainder, "Tensor", "Scalar", "Scalar_Tensor"))
def remainder(b: Builder, x, y) -> Value:
    """With the sign of the divisor."""
    dtype = b.out.dtype
    x, y = _operands(b, x, y, wide(dtype))
    rest = b.op("remainder", x, y)
    if dtype.is_signed or dtype.is_floating_point:
        wrong = b.op("and", b.compare(rest, b.like(rest, 0), "NE"), _signs_differ(b, rest, y))
        rest = b.select(wrong, b.add(rest, y), rest)
    return b.convert(rest, dtype)


@lowers(*overloads(prims.gcd, "default"), *overloads(aten.gcd, "default"))
def greatest_common_divisor(b: Builder, x: Value, y: Value) -> Value:
    """By Euclid, until no element has a rest."""
    pair = _operands(b, x, y)
    pair = [b.op("abs", each) if each.dtype.is_signed else each for each in pair]

    def has_rest(now: list[Value]) -> Value:
        return b.reduce(b.compare(now[1], b.like(now[1], 0), "NE"), range(now[1].rank), "or", False)

    def next_pair(now: list[Value]) -> list[Value]:
        x, y = now
        done = b.compare(y, b.like(y, 0), "EQ")
        return [b.select(done, x, y), b.select(done, y, b.op("remainder", x, b.select(done, b.like(y, 1), y)))]

    return b.loop(pair, has_rest, next_pair)[0]


@lowers(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar)
def power(b: Builder, x, y) -> Value:
    dtype = b.out.dtype
    if is_number(y) and not dtype.is_complex:
        base = promoted(b, x, dtype)
        if y == 1:
            return base
        if y == 2:
            return b.multiply(base, base)
        if y == 3:
            base = b.convert(base, wide(dtype))
            return b.convert(b.multiply(b.multiply(base, base), base), dtype)
        if dtype.is_floating_point and y in (0.5, -0.5, -1, -2):
            if y == 0.5:
                return b.op("sqrt", base)
            if y == -0.5:
                return b.op("rsqrt", base)
            base = b.convert(base, wide(dtype))
            return b.convert(b.divide(b.like(base, 1), base if y == -1 else b.multiply(base, base)), dtype)
    x, y = _operands(b, x, y)
    if dtype == torch.bool:
        return b.op("or", x, b.op("not", y))
    return b.op("power", x, y)


# --- one operand


def _unary(name: str):
    def lower(b: Builder, x: Value) -> Value:
        return b.op(name, b.convert(x, b.out.dtype))

    return lower


for _packet, _name in (
    (aten.exp, "exponential"), (aten.log, "log"), (aten.sin, "sine"), (aten.cos, "cosine"), (aten.tan, "tan"), (aten.tanh, "tanh"),
    (aten.sqrt, "sqrt"), (aten.rsqrt, "rsqrt"), (aten.neg, "negate"), (aten.floor, "floor"), (aten.ceil, "ceil"),
    (aten.sigmoid, "logistic"), (aten.log1p, "log_plus_one"), (aten.expm1, "exponential_minus_one"),
):
    lowers(_packet.default)(_unary(_name))


def _chlo(name: str):
    def lower(b: Builder, x: Value) -> Value:
        return b.chlo(name, b.convert(x, b.out.dtype))

    return lower


for _packet, _name in (
    (aten.erf, "erf"), (aten.erfc, "erfc"), (aten.erfinv, "erf_inv"), (aten.lgamma, "lgamma"),
    (aten.sinh, "sinh"), (aten.cosh, "cosh"), (aten.asin, "asin"), (aten.acos, "acos"), (aten.atan, "atan"), (aten.asinh, "asinh"),
    (aten.acosh, "acosh"), (aten.atanh, "atanh"), (aten.special_i1e, "bessel_i1e"),
):
    lowers(_packet.default)(_chlo(_name))


@lowers(aten.digamma.default)
def digamma(b: Builder, x: Value) -> Value:
    """At 0 an infinity with the other sign."""
    x = b.convert(x, b.out.dtype)
    pole = b.divide(b.like(x, -1), x)
    return b.select(b.compare(x, b.like(x, 0), "EQ"), pole, b.chlo("digamma", x))


@lowers(aten.polygamma.default)
def polygamma(b: Builder, order: int, x: Value) -> Value:
    x = b.convert(x, b.out.dtype)
    return digamma(b, x) if order == 0 else b.chlo("polygamma", b.like(x, order), x)


@lowers(*overloads(aten.special_zeta, "default", "other_scalar", "self_scalar"))
def zeta(b: Builder, x, q) -> Value:
    """An infinity at every pole, where StableHLO's has NaNs for an odd x."""
    x, q = _operands(b, x, q)
    pole = b.op("and", b.compare(q, b.like(q, 0), "LE"), b.compare(q, b.op("floor", q), "EQ"))
    pole = b.op("and", pole, b.compare(x, b.like(x, 1), "GT"))
    return b.select(pole, b.like(q, math.inf), b.chlo("zeta", x, q))


@lowers(aten.hardshrink_backward.default, aten.softshrink_backward.default)
def shrink_backward(b: Builder, gradient: Value, x: Value, lambd) -> Value:
    inside = b.op("and", b.compare(x, b.like(x, -lambd), "GE"), b.compare(x, b.like(x, lambd), "LE"))
    return b.select(inside, b.like(gradient, 0), gradient)


@lowers(aten.polar.default)
def polar(b: Builder, size: Value, angle: Value) -> Value:
    size, angle = (b.broadcast(each, b.out.shape) for each in (size, angle))
    return b.complex(b.multiply(size, b.op("cosine", angle)), b.multiply(size, b.op("sine", angle)))


@lowers(aten.nextafter.default)
def next_after(b: Builder, x, y) -> Value:
    return b.chlo("next_after", *_operands(b, x, y))


def _ignoring_nan(name: str):
    def lower(b: Builder, x, y) -> Value:
        x, y = _operands(b, x, y)
        if not x.dtype.is_floating_point:
            return b.op(name, x, y)
        best = b.select(b.compare(y, y, "NE"), x, b.op(name, x, y))
        return b.select(b.compare(x, x, "NE"), y, best)

    return lower


for _packets, _name in (((aten.fmax, prims.fmax), "maximum"), ((aten.fmin, prims.fmin), "minimum")):
    for _packet in _packets:
        lowers(_packet.default)(_ignoring_nan(_name))


@lowers(aten.hypot.default, *overloads(prims.hypot, "default"))
def hypotenuse(b: Builder, x, y) -> Value:
    """From the quotient of both, so that nothing overflows on the way."""
    x, y = (b.op("abs", each) for each in _operands(b, x, y, wide(b.out.dtype)))
    large, small = b.op("maximum", x, y), b.op("minimum", x, y)
    nothing = b.compare(large, b.like(large, 0), "EQ")
    ratio = b.select(nothing, large, b.divide(small, large))
    length = b.multiply(large, b.op("sqrt", b.add(b.like(ratio, 1), b.multiply(ratio, ratio))))
    infinite = b.op("or", *(b.compare(each, b.like(each, math.inf), "EQ") for each in (x, y)))
    return b.convert(b.select(infinite, b.like(large, math.inf), length), b.out.dtype)


@lowers(aten.abs.default)
def absolute(b: Builder, x: Value) -> Value:
    if x.dtype == torch.bool or (not x.dtype.is_signed and not x.dtype.is_complex):
        return x
    return b.op("abs", x, dtype=REAL_OF.get(x.dtype, x.dtype))


def _logarithm(base: float):
    def lower(b: Builder, x: Value) -> Value:
        x = b.convert(x, wide(b.out.dtype))
        return b.convert(b.divide(b.op("log", x), b.like(x, math.log(base))), b.out.dtype)

    return lower


lowers(aten.log2.default)(_logarithm(2))
lowers(aten.log10.default)(_logarithm(10))


@lowers(aten.exp2.default)
def exp2(b: Builder, x: Value) -> Value:
    x = b.convert(x, b.out.dtype)
    return b.op("power", b.like(x, 2), x)


@lowers(aten.sign.default)
def sign(b: Builder, x: Value) -> Value:
    if x.dtype == torch.bool:
        return x
    zero = b.like(x, 0)  # NaN gives 0.
    return b.subtract(b.convert(b.compare(x, zero, "GT"), x.dtype), b.convert(b.compare(x, zero, "LT"), x.dtype))


@lowers(aten.sgn.default)
def complex_sign(b: Builder, x: Value) -> Value:
    return b.op("sign", x) if x.dtype.is_complex else sign(b, x)


@lowers(*overloads(aten.round, "default", "decimals"))
def round_even(b: Builder, x: Value, decimals: int = 0) -> Value:
    if not x.dtype.is_floating_point:
        return x
    if decimals == 0:
        return b.op("round_nearest_even", x)
    scale = b.like(x, 10.0 ** abs(decimals))
    if decimals > 0:
        return b.divide(b.op("round_nearest_even", b.multiply(x, scale)), scale)
    return b.multiply(b.op("round_nearest_even", b.divide(x, scale)), scale)


@lowers(aten.trunc.default)
def trunc(b: Builder, x: Value) -> Value:
    return _truncated(b, x) if x.dtype.is_floating_point else x


for _packet in (aten.floor, aten.ceil):  # Of integers they are the identity.
    _real = TABLE[_packet.default]
    TABLE[_packet.default] = lambda b, x, real=_real: real(b, x) if x.dtype.is_floating_point else x


@lowers(aten.bitwise_not.default)
def bitwise_not(b: Builder, x: Value) -> Value:
    return b.op("not", x)


@lowers(aten.reciprocal.default)
def reciprocal(b: Builder, x: Value) -> Value:
    x = b.convert(x, b.out.dtype)
    return b.divide(b.like(x, 1), x)


@lowers(aten.relu.default)
def relu(b: Builder, x: Value) -> Value:
    return b.op("maximum", x, b.like(x, 0))


@lowers(aten.isnan.default)
def is_nan(b: Builder, x: Value) -> Value:
    if not x.dtype.is_floating_point and not x.dtype.is_complex:
        return b.full(x.shape, False, torch.bool)
    return b.compare(x, x, "NE")


@lowers(aten.isinf.default)
def is_inf(b: Builder, x: Value) -> Value:
    if x.dtype.is_complex:
        real, imag = b.real(x), b.imag(x)
        return b.op("or", is_inf(b, real), is_inf(b, imag))
    if not x.dtype.is_floating_point:
        return b.full(x.shape, False, torch.bool)
    return b.compare(b.op("abs", x), b.like(x, math.inf), "EQ")


@lowers(aten.signbit.default)
def sign_bit(b: Builder, x: Value) -> Value:
    if not x.dtype.is_floating_point:
        return b.compare(x, b.like(x, 0), "LT") if x.dtype != torch.bool else b.full(x.shape, False, torch.bool)
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.dtype.itemsize]
    word = b.op("bitcast_convert", x, dtype=bits)
    return b.compare(word, b.like(word, 0), "LT")


@lowers(*overloads(aten.copysign, "Tensor", "Scalar"))
def copy_sign(b: Builder, x, y) -> Value:
    x, y = _operands(b, x, y)
    size = b.op("abs", x)
    return b.select(sign_bit(b, y), b.op("negate", size), size)


@lowers(*overloads(aten.clamp, "default", "Tensor"))
def clamp(b: Builder, x: Value, low=None, high=None) -> Value:
    x = promoted(b, x, b.out.dtype)
    if low is not None:
        x = b.op("maximum", x, promoted(b, low, x.dtype))
    if high is not None:
        x = b.op("minimum", x, promoted(b, high, x.dtype))
    return x


@lowers(aten.where.self, *overloads(aten.where, "ScalarOther", "ScalarSelf", "Scalar"))
def where(b: Builder, condition: Value, x, y) -> Value:
    x, y = _operands(b, x, y)
    return b.select(b.broadcast(b.convert(condition, torch.bool), x.shape), x, y)


# --- complex numbers


@lowers(aten.complex.default)
def complex_of(b: Builder, x: Value, y: Value) -> Value:
    part = REAL_OF[b.out.dtype]
    return b.complex(promoted(b, x, part), promoted(b, y, part))


@lowers(aten.real.default, *overloads(prims.real, "default"))
def real(b: Builder, x: Value) -> Value:
    return b.real(x) if x.dtype.is_complex else x


@lowers(aten.imag.default, *overloads(prims.imag, "default"))
def imag(b: Builder, x: Value) -> Value:
    return b.imag(x)


@lowers(aten.angle.default)
def angle(b: Builder, x: Value) -> Value:
    if x.dtype.is_complex:
        return b.op("atan2", b.imag(x), b.real(x))
    x = b.convert(x, b.out.dtype)
    positive = b.select(b.compare(x, b.like(x, 0), "LT"), b.like(x, math.pi), b.like(x, 0))
    return b.select(b.compare(x, x, "NE"), x, positive)


@lowers(aten._conj.default, aten._conj_physical.default, aten.conj_physical.default)
def conjugate(b: Builder, x: Value) -> Value:
    return b.complex(b.real(x), b.op("negate", b.imag(x))) if x.dtype.is_complex else x


@lowers(aten.view_as_real.default)
def view_as_real(b: Builder, x: Value) -> Value:
    parts = [b.reshape(part, x.shape + (1,)) for part in (b.real(x), b.imag(x))]
    return b.concatenate(parts, x.rank)


@lowers(aten.view_as_complex.default)
def view_as_complex(b: Builder, x: Value) -> Value:
    parts = [b.reshape(b.narrow(x, x.rank - 1, i, i + 1), x.shape[:-1]) for i in range(2)]
    return b.complex(*parts)


# --- types


@lowers(aten._to_copy.default, aten.to.dtype, *overloads(prims.convert_element_type, "default"))
def to_type(b: Builder, x: Value, *_, **__) -> Value:
    return b.convert(x, b.out.dtype)


@lowers(*overloads(prims.device_put, "default"), aten.clone.default, aten.alias.default, aten.detach.default,
        aten.lift_fresh_copy.default, aten.contiguous.default, aten.positive.default, aten.resolve_conj.default,
        aten.resolve_neg.default)
def identity(b: Builder, x: Value, *_, **__) -> Value:
    return x


@lowers(aten.copy.default)
def copy(b: Builder, x: Value, source: Value, *_) -> Value:
    return b.broadcast(b.convert(source, x.dtype), x.shape)


@lowers(aten.view.dtype)
def view_type(b: Builder, x: Value, dtype: torch.dtype) -> Value:
    if torch.bool in (x.dtype, dtype):
        raise Unsupported("bits of bool")
    if x.dtype.itemsize == dtype.itemsize:
        return b.op("bitcast_convert", x, dtype=dtype)
    if x.dtype.itemsize > dtype.itemsize:
        ratio = x.dtype.itemsize // dtype.itemsize
        return b.reshape(b.op("bitcast_convert", x, shape=x.shape + (ratio,), dtype=dtype), b.out.shape)
    ratio = dtype.itemsize // x.dtype.itemsize
    split = b.reshape(x, x.shape[:-1] + (x.shape[-1] // ratio, ratio))
    return b.op("bitcast_convert", split, shape=split.shape[:-1], dtype=dtype)


@lowers(*overloads(prims.frexp, "default"), aten.frexp.Tensor)
def frexp(b: Builder, x: Value):
    """A fraction in [0.5, 1) and an exponent, by the bits of f32 or f64."""
    if x.dtype not in (torch.float32, torch.float64):
        raise Unsupported(f"frexp of {x.dtype}")
    bits, mantissa, bias = (torch.int32, 23, 126) if x.dtype == torch.float32 else (torch.int64, 52, 1022)
    tiny = b.compare(b.op("abs", x), b.like(x, torch.finfo(x.dtype).tiny), "LT")
    scaled = b.select(tiny, b.multiply(x, b.like(x, 2.0 ** (mantissa + 1))), x)
    word = b.op("bitcast_convert", scaled, dtype=bits)
    width = 8 * x.dtype.itemsize
    field = (1 << (width - 1 - mantissa)) - 1
    exponent = b.op("and", b.op("shift_right_logical", word, b.like(word, mantissa)), b.like(word, field))
    kept = b.op("or", b.op("and", word, b.like(word, ~(field << mantissa))), b.like(word, bias << mantissa))
    fraction = b.op("bitcast_convert", kept, dtype=x.dtype)
    power_of_two = b.subtract(exponent, b.select(tiny, b.like(word, bias + mantissa + 1), b.like(word, bias)))
    special = b.op("or", b.compare(x, b.like(x, 0), "EQ"), b.op("not", b.op("is_finite", x, dtype=torch.bool)))
    exponents = b.select(special, b.like(word, 0), power_of_two)
    return b.select(special, x, fraction), b.convert(exponents, torch.int32)

