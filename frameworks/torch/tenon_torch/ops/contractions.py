"""Products of matrices, and convolutions with their gradients."""

from ..builder import Builder, Value
from ..table import aten, lowers, overloads, promoted, twice


@lowers(aten.mm.default, *overloads(aten.mm, "dtype"))
def mm(b: Builder, x: Value, y: Value, *_) -> Value:
    return b.convert(b.dot(x, y, ([1], [0])), b.out.dtype)


@lowers(aten.bmm.default, *overloads(aten.bmm, "dtype"))
def bmm(b: Builder, x: Value, y: Value, *_) -> Value:
    return b.convert(b.dot(x, y, ([2], [1]), ([0], [0])), b.out.dtype)


def _add_product(b: Builder, bias: Value, product: Value, beta, alpha) -> Value:
    """beta * bias + alpha * product; a beta of 0 forgets even NaN."""
    if alpha != 1:
        product = b.multiply(product, b.like(product, alpha))
    if beta == 0:
        return product
    bias = promoted(b, bias, product.dtype, product.shape)
    return b.add(bias if beta == 1 else b.multiply(bias, b.like(bias, beta)), product)


@lowers(aten.addmm.default)
def addmm(b: Builder, bias: Value, x: Value, y: Value, *, beta=1, alpha=1) -> Value:
    return _add_product(b, bias, b.dot(x, y, ([1], [0])), beta, alpha)


@lowers(aten.baddbmm.default)
def baddbmm(b: Builder, bias: Value, x: Value, y: Value, *, beta=1, alpha=1) -> Value:
    return _add_product(b, bias, b.dot(x, y, ([2], [1]), ([0], [0])), beta, alpha)


@lowers(*overloads(aten.addbmm, "default"))
def addbmm(b: Builder, bias: Value, x: Value, y: Value, *, beta=1, alpha=1) -> Value:
    return _add_product(b, bias, b.reduce(b.dot(x, y, ([2], [1]), ([0], [0])), [0], "add", 0), beta, alpha)


@lowers(aten.mv.default)
def mv(b: Builder, x: Value, y: Value) -> Value:
    return b.dot(x, y, ([1], [0]))


@lowers(aten.addmv.default)
def addmv(b: Builder, bias: Value, x: Value, y: Value, *, beta=1, alpha=1) -> Value:
    return _add_product(b, bias, b.dot(x, y, ([1], [0])), beta, alpha)


@lowers(aten.dot.default)
def dot(b: Builder, x: Value, y: Value) -> Value:
    return b.dot(x, y, ([0], [0]))


# --- convolutions


def _convolution(b: Builder, x: Value, kernel: Value, numbers: tuple[str, str, str], shape, *, strides, padding, base=None, dilation=None,
                 groups: int = 1, batch_groups: int = 1) -> Value:
    """`numbers`: the letters of the first two dimensions of both operands and of the result; the others are spatial."""
    rank = x.rank - 2
    places = "".join(f", {i}" for i in range(rank))
    left, middle, right = (f"[{n[0]}, {n[1]}{places}]" for n in numbers)
    result = b.value(shape, x.dtype)
    pairs = ", ".join(f"[{low}, {high}]" for low, high in padding)
    b.lines.append(
        f"{result.name} = stablehlo.convolution({x.name}, {kernel.name}) dim_numbers = {left}x{middle}->{right}, window = {{stride = "
        f"{list(strides)}, pad = [{pairs}], lhs_dilate = {list(base or [1] * rank)}, rhs_dilate = {list(dilation or [1] * rank)}}} "
        f"{{batch_group_count = {batch_groups} : i64, feature_group_count = {groups} : i64}} : ({x.type}, {kernel.type}) -> {result.type}")
    return result


def _forward(b: Builder, x: Value, weight: Value, shape, stride, padding, dilation, groups: int) -> Value:
    pads = []
    for n, size, k, s, p, d in zip(shape[2:], x.shape[2:], weight.shape[2:], stride, padding, dilation):
        reach = d * (k - 1) + 1
        # The gradient of a transposed convolution whose output_padding exceeds its stride has no use for the last elements.
        pads.append((p, p if (size + 2 * p - reach) // s + 1 == n else (n - 1) * s + reach - size - p))
    return _convolution(b, x, weight, ("bf", "oi", "bf"), shape, strides=stride, padding=pads, dilation=dilation, groups=groups)


def _by_input(b: Builder, gradient: Value, weight: Value, shape, stride, padding, dilation, groups: int) -> Value:
    """The gradient by the input, which a transposed convolution is too: over a spread gradient, with the weights turned around."""
    sizes, kernel = gradient.shape[2:], weight.shape[2:]
    low = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding)]
    high = [full + d * (k - 1) - a - (size - 1) * s - 1 for full, d, k, a, size, s in zip(shape[2:], dilation, kernel, low, sizes, stride)]
    weight, numbers = b.reverse(weight, range(2, weight.rank)), "io"
    if groups > 1:  # [groups * out, in] becomes [groups * in, out].
        out, inner = weight.shape[0] // groups, weight.shape[1]
        split = b.reshape(weight, (groups, out, inner) + kernel)
        swapped = b.transpose(split, [0, 2, 1] + list(range(3, split.rank)))
        weight, numbers = b.reshape(swapped, (groups * inner, out) + kernel), "oi"
    return _convolution(b, gradient, weight, ("bf", numbers, "bf"), shape, strides=[1] * len(sizes), padding=list(zip(low, high)), base=stride,
                        dilation=dilation, groups=groups)


def _by_weight(b: Builder, x: Value, gradient: Value, shape, stride, padding, dilation, groups: int) -> Value:
    """The gradient by the weights: the batch is what is summed over, the channels of the input are the batch."""
    high = [d * (k - 1) + (size - 1) * s + 1 - full - p
            for d, k, size, s, full, p in zip(dilation, shape[2:], gradient.shape[2:], stride, x.shape[2:], padding)]
    return _convolution(b, x, gradient, ("fb", "io", "fb"), shape, strides=dilation, padding=list(zip(padding, high)), dilation=stride,
                        batch_groups=groups)


def _window(rank: int, *settings) -> list[list[int]]:
    return [twice(each, rank) for each in settings]


@lowers(aten.convolution.default, *overloads(aten.convolution_overrideable, "default"))
def convolution(b: Builder, x: Value, weight: Value, bias, stride, padding, dilation, transposed: bool, output_padding, groups: int) -> Value:
    stride, padding, dilation = _window(x.rank - 2, stride, padding, dilation)
    result = (_by_input if transposed else _forward)(b, x, weight, b.out.shape, stride, padding, dilation, groups)
    return result if bias is None else b.add(result, b.broadcast_in_dim(bias, result.shape, [1]))


@lowers(aten.convolution_backward.default)
def convolution_backward(b: Builder, gradient: Value, x: Value, weight: Value, bias_sizes, stride, padding, dilation, transposed: bool,
                         output_padding, groups: int, mask):
    return _convolution_backward(b, gradient, x, weight, stride, padding, dilation, transposed, groups, mask)


@lowers(*overloads(aten.convolution_backward_overrideable, "default"))
def convolution_backward_overrideable(b: Builder, gradient: Value, x: Value, weight: Value, stride, padding, dilation, transposed: bool,
                                      output_padding, groups: int, mask):
    return _convolution_backward(b, gradient, x, weight, stride, padding, dilation, transposed, groups, mask)


def _convolution_backward(b: Builder, gradient: Value, x: Value, weight: Value, stride, padding, dilation, transposed: bool, groups: int, mask):
    stride, padding, dilation = _window(x.rank - 2, stride, padding, dilation)
    by_input = by_weight = by_bias = None
    if mask[0]:
        by_input = (_forward if transposed else _by_input)(b, gradient, weight, x.shape, stride, padding, dilation, groups)
    if mask[1]:
        large, small = (gradient, x) if transposed else (x, gradient)
        by_weight = _by_weight(b, large, small, weight.shape, stride, padding, dilation, groups)
    if mask[2]:
        by_bias = b.reduce(gradient, [0] + list(range(2, gradient.rank)), "add", 0)
    return by_input, by_weight, by_bias


