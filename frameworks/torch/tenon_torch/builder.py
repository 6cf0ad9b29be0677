"""StableHLO text, an op at a time.

The ops of `tenon_torch.ops` write a program by a `Builder`. Its methods take and return a `Value`; each does the shape inference
that a writer needs, and none promotes types: both operands of an op have one type.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from .types import REAL_OF, COMPLEX_OF, literal, tensor_type


class Value(NamedTuple):
    """A result of an op: its name in the text, its shape and its element type."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.dtype)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def array(numbers) -> str:
    """An attribute `array<i64: …>`."""
    numbers = list(numbers)
    return f"array<i64{': ' if numbers else ''}{', '.join(map(str, numbers))}>"


def numbers(values) -> str:
    return f"[{', '.join(map(str, values))}]"


class Builder:
    """Writes the body of one function. `out` is what PyTorch says of the result of the op that is lowered: a fake tensor, or a
    tuple of them."""

    def __init__(self):
        self.lines: list[str] = []
        self.out = None
        self.state: Value | None = None  # The random numbers' ui64[2].
        self._count = 0
        self._constants: dict[tuple[str, str], Value] = {}

    # --- ops in general

    def value(self, shape, dtype: torch.dtype) -> Value:
        """A new name for a result."""
        self._count += 1
        return Value(f"%{self._count}", tuple(shape), dtype)

    def op(self, name: str, *operands: Value, shape=None, dtype: torch.dtype | None = None, attributes: str = "") -> Value:
        """`stablehlo.name` with one result, whose type is that of the first operand, if nothing else is said."""
        first = operands[0]
        result = self.value(first.shape if shape is None else shape, dtype or first.dtype)
        words = f" <{{{attributes}}}>" if attributes else ""
        self.lines.append(f'{result.name} = "stablehlo.{name}"({", ".join(o.name for o in operands)}){words} : '
                          f"({', '.join(o.type for o in operands)}) -> {result.type}")
        return result

    def chlo(self, name: str, operand: Value, *others: Value, dtype: torch.dtype | None = None, shape=None, words: str = "") -> Value:
        result = self.value(operand.shape if shape is None else shape, dtype or operand.dtype)
        operands = (operand, *others)
        self.lines.append(f'{result.name} = "chlo.{name}"({", ".join(o.name for o in operands)}){words} : '
                          f"({', '.join(o.type for o in operands)}) -> {result.type}")
        return result

    # --- constants

    def constant(self, value, dtype: torch.dtype) -> Value:
        """A scalar; one op for each value and type."""
        key = (literal(value, dtype), tensor_type((), dtype))
        if key not in self._constants:
            result = self.value((), dtype)
            self.lines.append(f"{result.name} = stablehlo.constant dense<{key[0]}> : {key[1]}")
            self._constants[key] = result
        return self._constants[key]

    def full(self, shape, value, dtype: torch.dtype) -> Value:
        return self.broadcast(self.constant(value, dtype), shape)

    def like(self, x: Value, value) -> Value:
        """As many elements as x, all of them `value`."""
        return self.full(x.shape, value, x.dtype)

    def tensor(self, data: torch.Tensor) -> Value:
        """The elements of a tensor, written into the program."""
        data = data.detach().cpu().contiguous()
        if data.dtype == torch.bool:
            return self.convert(self.tensor(data.to(torch.uint8)), torch.bool)
        if data.dim() == 0:
            return self.constant(data.item(), data.dtype)
        result = self.value(data.shape, data.dtype)
        bits = data.flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes() if data.numel() else b""
        text = f'"0x{bits.hex().upper()}"' if bits else ""
        self.lines.append(f"{result.name} = stablehlo.constant dense<{text}> : {result.type}")
        return result

    def iota(self, shape, dimension: int, dtype: torch.dtype) -> Value:
        if dtype == torch.bool or dtype.is_complex:
            return self.convert(self.iota(shape, dimension, torch.int32), dtype)
        result = self.value(shape, dtype)
        self.lines.append(f"{result.name} = stablehlo.iota dim = {dimension} : {result.type}")
        return result

    # --- types and shapes

    def convert(self, x: Value, dtype: torch.dtype) -> Value:
        """As `tensor.to(dtype)`: to bool by `!= 0`; the real part of complex numbers; floats to integers by truncation."""
        if x.dtype == dtype:
            return x
        if dtype == torch.bool:
            return self.compare(x, self.like(x, 0), "NE")
        if x.dtype.is_complex and not dtype.is_complex:
            return self.convert(self.op("real", x, dtype=REAL_OF[x.dtype]), dtype)
        if dtype.is_complex and not x.dtype.is_complex:
            part = self.convert(x, REAL_OF[dtype])
            return self.op("complex", part, self.like(part, 0), dtype=dtype)
        if x.dtype.is_floating_point and not dtype.is_floating_point and dtype.itemsize < 4:
            x = self.op("convert", x, dtype=torch.int64)  # PyTorch drops the high bits.
        return self.op("convert", x, dtype=dtype)

    def reshape(self, x: Value, shape) -> Value:
        shape = tuple(shape)
        return x if x.shape == shape else self.op("reshape", x, shape=shape)

    def broadcast_in_dim(self, x: Value, shape, dimensions) -> Value:
        return self.op("broadcast_in_dim", x, shape=tuple(shape), attributes=f"broadcast_dimensions = {array(dimensions)}")

    def broadcast(self, x: Value, shape) -> Value:
        """By NumPy's rule: dimensions are matched from the last one."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        return self.broadcast_in_dim(x, shape, range(len(shape) - x.rank, len(shape)))

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        permutation = list(permutation)
        if permutation == list(range(x.rank)):
            return x
        return self.op("transpose", x, shape=[x.shape[i] for i in permutation], attributes=f"permutation = {array(permutation)}")

    def slice(self, x: Value, start, limit, strides=None) -> Value:
        strides = list(strides or [1] * x.rank)
        shape = tuple(max(0, -(-(high - low) // step)) for low, high, step in zip(start, limit, strides))
        if shape == x.shape and all(step == 1 for step in strides):
            return x
        return self.op("slice", x, shape=shape,
                       attributes=f"start_indices = {array(start)}, limit_indices = {array(limit)}, strides = {array(strides)}")

    def narrow(self, x: Value, dimension: int, start: int, limit: int, step: int = 1) -> Value:
        """A slice of one dimension."""
        low, high, steps = [0] * x.rank, list(x.shape), [1] * x.rank
        low[dimension], high[dimension], steps[dimension] = start, limit, step
        return self.slice(x, low, high, steps)

    def dynamic_slice(self, x: Value, start: Sequence[Value], sizes) -> Value:
        return self.op("dynamic_slice", x, *start, shape=tuple(sizes), attributes=f"slice_sizes = {array(sizes)}")

    def dynamic_update_slice(self, x: Value, update: Value, start: Sequence[Value]) -> Value:
        return self.op("dynamic_update_slice", x, update, *start)

    def concatenate(self, parts: Sequence[Value], dimension: int) -> Value:
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[dimension] = sum(part.shape[dimension] for part in parts)
        return self.op("concatenate", *parts, shape=shape, attributes=f"dimension = {dimension} : i64")

    def pad(self, x: Value, value: Value, low, high, interior=None) -> Value:
        interior = list(interior or [0] * x.rank)
        shape = [a + size + b + max(size - 1, 0) * i for a, size, b, i in zip(low, x.shape, high, interior)]
        return self.op("pad", x, value, shape=shape, attributes=f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, "
                                                                f"interior_padding = {array(interior)}")

    def reverse(self, x: Value, dimensions) -> Value:
        dimensions = list(dimensions)
        return self.op("reverse", x, attributes=f"dimensions = {array(dimensions)}") if dimensions else x

    # --- elements

    def compare(self, a: Value, b: Value, direction: str) -> Value:
        return self.op("compare", a, b, dtype=torch.bool,
                       attributes=f"comparison_direction = #stablehlo<comparison_direction {direction}>")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.op("select", condition, a, b, shape=a.shape, dtype=a.dtype)

    def complex(self, real: Value, imag: Value) -> Value:
        return self.op("complex", real, imag, dtype=COMPLEX_OF[real.dtype])

    def real(self, x: Value) -> Value:
        return self.op("real", x, dtype=REAL_OF[x.dtype])

    def imag(self, x: Value) -> Value:
        return self.op("imag", x, dtype=REAL_OF[x.dtype])

    def add(self, a: Value, b: Value) -> Value:
        return self.op("add", a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        return self.op("subtract", a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        return self.op("multiply", a, b)

    def divide(self, a: Value, b: Value) -> Value:
        return self.op("divide", a, b)

    # --- reductions

    def reduce(self, x: Value, dimensions, name: str, init) -> Value:
        """One op over dimensions, which are dropped."""
        dimensions = sorted(dimensions)
        if not dimensions:
            return x
        start = self.constant(init, x.dtype)
        result = self.value([size for i, size in enumerate(x.shape) if i not in dimensions], x.dtype)
        self.lines.append(f"{result.name} = stablehlo.reduce({x.name} init: {start.name}) applies stablehlo.{name} across dimensions = "
                          f"{numbers(dimensions)} : ({x.type}, {start.type}) -> {result.type}")
        return result

    def reduce_window(self, x: Value, name: str, init, window, strides, padding, dilations=None, base=None) -> Value:
        """One op over windows. `padding`: a pair a dimension."""
        dilations, base = list(dilations or [1] * x.rank), list(base or [1] * x.rank)
        start = self.constant(init, x.dtype)
        spans = [(size - 1) * by + 1 if size else 0 for size, by in zip(x.shape, base)]
        shape = [max(0, (span + low + high - (size - 1) * dilation - 1) // step + 1) if span + low + high >= (size - 1) * dilation + 1 else 0
                 for span, (low, high), size, step, dilation in zip(spans, padding, window, strides, dilations)]
        result, scalar = self.value(shape, x.dtype), start.type
        pairs = ", ".join(f"[{low}, {high}]" for low, high in padding)
        self.lines.append(
            f'{result.name} = "stablehlo.reduce_window"({x.name}, {start.name}) <{{window_dimensions = {array(window)}, '
            f"window_strides = {array(strides)}, base_dilations = {array(base)}, window_dilations = {array(dilations)}, "
            f"padding = dense<[{pairs}]> : tensor<{x.rank}x2xi64>}}> ({{\n^bb0(%a: {scalar}, %b: {scalar}):\n"
            f"  %c = stablehlo.{name} %a, %b : {scalar}\n  stablehlo.return %c : {scalar}\n}}) : ({x.type}, {scalar}) -> {result.type}")
        return result

    def sort(self, operands: Sequence[Value], dimension: int, order: str) -> list[Value]:
        """Sorts along a dimension by the first operand, stably. `order`: "LT" or "GT", by the total order with NaN as the largest
        (`order` of PyTorch)."""
        results = [self.value(each.shape, each.dtype) for each in operands]
        scalars = [tensor_type((), each.dtype) for each in operands]
        parameters = ", ".join(f"%a{i}: {t}, %b{i}: {t}" for i, t in enumerate(scalars))
        kind = operands[0].dtype
        body = f'  %c = "stablehlo.compare"(%a0, %b0) <{{comparison_direction = #stablehlo<comparison_direction {order}>}}> : ' \
               f"({scalars[0]}, {scalars[0]}) -> tensor<i1>\n"
        if kind.is_floating_point:
            nan, known = ("%b0", "%a0") if order == "LT" else ("%a0", "%b0")
            for to, of, direction in (("%p", nan, "NE"), ("%q", known, "EQ")):
                body += f'  {to} = "stablehlo.compare"({of}, {of}) <{{comparison_direction = #stablehlo<comparison_direction {direction}>}}> : ' \
                        f"({scalars[0]}, {scalars[0]}) -> tensor<i1>\n"
            body += "  %r = stablehlo.and %p, %q : tensor<i1>\n  %s = stablehlo.or %c, %r : tensor<i1>\n"
        last = "%s" if kind.is_floating_point else "%c"
        self._several(results, f'"stablehlo.sort"({", ".join(o.name for o in operands)}) <{{dimension = {dimension} : i64, is_stable = true}}> '
                      f"({{\n^bb0({parameters}):\n{body}  stablehlo.return {last} : tensor<i1>\n}})", operands)
        return results

    def _several(self, results: Sequence[Value], text: str, operands: Sequence[Value]) -> None:
        types = ", ".join(each.type for each in results)
        inputs = ", ".join(each.type for each in operands)
        if len(results) == 1:
            self.lines.append(f"{results[0].name} = {text} : ({inputs}) -> {types}")
            return
        group = results[0].name
        self.lines.append(f"{group}:{len(results)} = {text} : ({inputs}) -> ({types})")
        for i, each in enumerate(results):
            results[i] = each._replace(name=f"{group}#{i}")

    def several(self, text: str, operands: Sequence[Value], shapes: Sequence[tuple[Sequence[int], torch.dtype]]) -> list[Value]:
        """An op with several results: its text up to the types."""
        results = [self.value(shape, dtype) for shape, dtype in shapes]
        self._several(results, text, operands)
        return results

    def custom_call(self, name: str, operands: Sequence[Value], shapes: Sequence[tuple[Sequence[int], torch.dtype]], configuration: str = "") -> list[Value]:
        """A function by name: one of linear algebra that Tenon knows (docs/linalg.md), or one of a device."""
        words = f' {{backend_config = "{configuration}"}}' if configuration else ""
        return self.several(f"stablehlo.custom_call @{name}({', '.join(each.name for each in operands)}){words}", operands, shapes)

    # --- loops

    def _region(self, arguments: Sequence[Value], write: Callable[[], Sequence[Value]]) -> str:
        """A region, whose constants are known within it alone."""
        outer, known = self.lines, dict(self._constants)
        self.lines = []
        results = write()
        lines, self.lines, self._constants = self.lines, outer, known
        head = ", ".join(f"{each.name}: {each.type}" for each in arguments)
        last = f"stablehlo.return {', '.join(each.name for each in results)} : {', '.join(each.type for each in results)}"
        return "\n".join([f"^bb0({head}):", *lines, last])

    def loop(self, values: Sequence[Value], condition: Callable[[list[Value]], Value], body: Callable[[list[Value]], Sequence[Value]]) -> list[Value]:
        """While `condition` of the values holds, `body` gives those of the next turn; returns those of the last."""
        regions = []
        for write in (lambda now: [condition(now)], body):
            now = [self.value(each.shape, each.dtype) for each in values]
            regions.append(self._region(now, lambda: write(now)))  # noqa: B023
        text = f'"stablehlo.while"({", ".join(each.name for each in values)}) ({{\n{regions[0]}\n}}, {{\n{regions[1]}\n}})'
        return self.several(text, values, [(each.shape, each.dtype) for each in values])

    def repeat(self, turns: int, values: Sequence[Value], body: Callable[[Value, list[Value]], Sequence[Value]]) -> list[Value]:
        """`body`, of the number of the turn and the values, gives the values of the next turn; returns those of the last."""

        def next_turn(now: list[Value]) -> list[Value]:
            return [self.add(now[0], self.constant(1, torch.int32)), *body(now[0], now[1:])]

        carried = [self.constant(0, torch.int32), *values]
        return self.loop(carried, lambda now: self.compare(now[0], self.constant(turns, torch.int32), "LT"), next_turn)[1:]

    # --- products

    def dot(self, a: Value, b: Value, contracting, batching=((), ())) -> Value:
        """dot_general: batching dimensions, then the free ones of a and of b."""
        (ca, cb), (ba, bb) = contracting, batching
        free = [n for i, n in enumerate(a.shape) if i not in ca and i not in ba] + [n for i, n in enumerate(b.shape) if i not in cb and i not in bb]
        result = self.value([a.shape[i] for i in ba] + free, a.dtype)
        batch = f"batching_dims = {numbers(ba)} x {numbers(bb)}, " if ba else ""
        self.lines.append(f"{result.name} = stablehlo.dot_general {a.name}, {b.name}, {batch}contracting_dims = {numbers(ca)} x {numbers(cb)}"
                          f" : ({a.type}, {b.type}) -> {result.type}")
        return result

    # --- gather and scatter

    def gather(self, x: Value, indices: Value, *, offset_dims, collapsed, start_index_map, slice_sizes, shape) -> Value:
        """gather, the coordinates of each start in the last dimension of `indices`."""
        return self.op("gather", x, indices, shape=tuple(shape), dtype=x.dtype, attributes=(
            f"dimension_numbers = #stablehlo.gather<offset_dims = {numbers(offset_dims)}, collapsed_slice_dims = {numbers(collapsed)}, "
            f"start_index_map = {numbers(start_index_map)}, index_vector_dim = {indices.rank - 1}>, slice_sizes = {array(slice_sizes)}"))

    def scatter(self, x: Value, indices: Value, updates: Value, *, window, inserted, to_operand, body: str | None) -> Value:
        """scatter, as `gather`. `body`: the op that joins old and new; None sets."""
        result, scalar = self.value(x.shape, x.dtype), tensor_type((), x.dtype)
        line = f"  %c = stablehlo.{body} %a, %b : {scalar}\n" if body else ""
        self.lines.append(
            f'{result.name} = "stablehlo.scatter"({x.name}, {indices.name}, {updates.name}) <{{scatter_dimension_numbers = '
            f"#stablehlo.scatter<update_window_dims = {numbers(window)}, inserted_window_dims = {numbers(inserted)}, "
            f"scatter_dims_to_operand_dims = {numbers(to_operand)}, index_vector_dim = {indices.rank - 1}>}}> "
            f"({{\n^bb0(%a: {scalar}, %b: {scalar}):\n{line}  stablehlo.return {'%c' if body else '%b'} : {scalar}\n}}) : "
            f"({x.type}, {indices.type}, {updates.type}) -> {result.type}")
        return result
