"""Tensors of the device and the arrays that their storages hold.

A storage holds one `tenon.Array`: what was last written as its whole contents, row-major, of any shape and type; or nothing, which reads
as zeros. A tensor that is that array as it lies is read without work; another view of the storage is read by a small program, and
written by one that makes the storage's next array. Programs are kept by shapes.
"""

import functools
import math
import os

import torch

import tenon

from .. import _device
from ..builder import Builder, Value
from ..lowering import Spec, memory_order
from ..ops import shapes
from ..table import Unsupported
from ..types import NAMES, REAL_OF, tensor_type
from .naming import chosen

_BY_NAME = {str(dtype).removeprefix("torch."): dtype for dtype in NAMES}


DEVICE = torch._C._get_privateuse1_backend_name()


def device_name() -> str:
    """The device of Tenon that the device is."""
    return os.environ.get("TENON_DEVICE") or chosen().plugin or "cpu"


@functools.cache
def client() -> tenon.Client:
    return tenon.client(device_name())


def spec_of(tensor: torch.Tensor) -> Spec:
    return Spec(tuple(tensor.shape), tensor.dtype, tuple(tensor.stride()), tensor.storage_offset())


def dtype_of(array: tenon.Array) -> torch.dtype:
    return _BY_NAME[array.dtype.name]


def ordered(spec: Spec, order) -> tuple[int, ...]:
    return tuple(spec.shape[d] for d in order) if order else spec.shape


def fills(spec: Spec, order, bytes: int) -> bool:
    """Whether a tensor is its storage's whole contents, in the order of its memory."""
    if spec.offset or math.prod(spec.shape) * spec.dtype.itemsize != bytes:
        return False
    expected = 1
    for d in reversed(order or range(len(spec.shape))):
        if spec.shape[d] != 1 and spec.stride[d] != expected:
            return False
        expected *= spec.shape[d]
    return True


def _program(body, parameters: list[Value]) -> tenon.Executable:
    """A program of one result that `body` writes."""
    builder = Builder()
    result = body(builder)
    head = ", ".join(f"{p.name}: {p.type}" for p in parameters)
    text = "\n".join([f"func.func @main({head}) -> {result.type} {{", *builder.lines, f"func.return {result.name} : {result.type}", "}", ""])
    return client().compile(text)


def _flat(b: Builder, x: Value, dtype: torch.dtype, count: int) -> Value:
    """An array as `count` elements of another type: its bytes, and zeros behind them."""
    if x.dtype != dtype and x.dtype.is_complex:
        parts = [b.reshape(part, (x.count, 1)) for part in (b.real(x), b.imag(x))]
        return _flat(b, b.concatenate(parts, 1), dtype, count)
    if x.dtype != dtype and dtype.is_complex:
        pairs = b.reshape(_flat(b, x, REAL_OF[dtype], 2 * count), (count, 2))
        return b.complex(*(b.reshape(b.narrow(pairs, 1, i, i + 1), (count,)) for i in range(2)))
    if x.dtype != dtype:
        if torch.bool in (x.dtype, dtype):
            x = b.convert(x, torch.uint8) if x.dtype == torch.bool else x
            target = torch.uint8 if dtype == torch.bool else dtype
        else:
            target = dtype
        x = b.reshape(x, (x.count,))
        if x.dtype.itemsize > target.itemsize:
            ratio = x.dtype.itemsize // target.itemsize
            x = b.op("bitcast_convert", x, shape=(x.count, ratio), dtype=target)
        elif x.dtype.itemsize < target.itemsize:
            ratio = target.itemsize // x.dtype.itemsize
            x = b.op("bitcast_convert", b.reshape(_first(b, x, count * ratio), (count, ratio)), shape=(count,), dtype=target)
        elif x.dtype != target:
            x = b.op("bitcast_convert", x, dtype=target)
        x = b.convert(b.reshape(x, (x.count,)), dtype)
    return _first(b, b.reshape(x, (x.count,)), count)


def _first(b: Builder, x: Value, count: int) -> Value:
    """The first `count` elements of a vector, and zeros behind them."""
    if x.count < count:
        x = b.pad(x, b.constant(0, x.dtype), [0], [count - x.count])
    return b.narrow(x, 0, 0, count)


@functools.lru_cache(4096)
def _reader(held: tuple, spec: Spec, order, bytes: int) -> tenon.Executable:
    x = Value("%x", held[1], held[0])

    def body(b: Builder) -> Value:
        flat = _flat(b, x, spec.dtype, bytes // spec.dtype.itemsize)
        value = shapes.as_strided(b, flat, spec.shape, spec.stride, spec.offset)
        return b.transpose(value, order) if order else value

    return _program(body, [x])


@functools.lru_cache(4096)
def _writer(held: tuple, spec: Spec, order, bytes: int) -> tenon.Executable:
    x, y = Value("%x", held[1], held[0]), Value("%y", ordered(spec, order), spec.dtype)

    def body(b: Builder) -> Value:
        # The last element may be part of one: its bytes are those of other views.
        flat = _flat(b, x, spec.dtype, -(-bytes // spec.dtype.itemsize))
        value = b.transpose(y, [order.index(d) for d in range(len(order))]) if order else y
        return shapes.as_strided_scatter(b, flat, value, spec.shape, spec.stride, spec.offset)

    return _program(body, [x, y])


@functools.lru_cache(4096)
def converter(shape: tuple[int, ...], dtype: torch.dtype, other: torch.dtype) -> tenon.Executable:
    """An array in another type, as `tensor.to`."""
    refuse_type(dtype)
    refuse_type(other)
    x = Value("%x", shape, dtype)
    return _program(lambda b: b.convert(x, other), [x])


@functools.lru_cache(1024)
def _zeros(shape: tuple[int, ...], dtype: torch.dtype) -> tenon.Array:
    return client().array(torch.zeros(shape, dtype=dtype, device="cpu"))


def read(tensor: torch.Tensor, order=None) -> tenon.Array:
    """The elements of a tensor of the device as an array, row-major in the order `order` of its dimensions."""
    if tensor.is_conj() or tensor.is_neg():
        tensor = _resolved(tensor)
    spec, bytes = spec_of(tensor), tensor.untyped_storage().nbytes()
    array, wanted = _device.array_of(tensor), ordered(spec, order)
    if array is None or math.prod(spec.shape) == 0:
        return _zeros(wanted, spec.dtype)
    held = (dtype_of(array), array.shape)
    if held == (spec.dtype, wanted) and fills(spec, order, bytes):
        return array
    return _reader(held, spec, order, bytes).run([array])[0]


def layout(spec: Spec, order, on_device: bool = True) -> tuple:
    """How a plan (src/plan.h) takes a tensor."""
    bytes = math.prod(spec.shape) * spec.dtype.itemsize
    return order, ordered(spec, order), spec.stride, on_device and fills(spec._replace(offset=0), order, bytes), bytes


def new(spec: Spec, source: tuple) -> tuple:
    """How a plan makes a tensor, as `made`."""
    return "new", spec.shape, spec.stride, spec.dtype, ordered(spec, memory_order(spec)), source


def reader(tensor: torch.Tensor, order):
    """What `read` runs for another tensor of the same layout: a function of [what the storage holds]."""
    array = _device.array_of(tensor)
    return _reader((dtype_of(array), array.shape), spec_of(tensor), order, tensor.untyped_storage().nbytes())._native.run


def writer(tensor: torch.Tensor, order):
    """What `write` runs for another tensor of the same layout: a function of [what the storage holds, the new elements]."""
    array = _device.array_of(tensor)
    return _writer((dtype_of(array), array.shape), spec_of(tensor), order, tensor.untyped_storage().nbytes())._native.run


def _resolved(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor without lazy bits: what they say is done."""
    from . import eager

    if tensor.is_neg():
        return eager.dispatch(torch.ops.aten.neg.default, tensor._neg_view())
    return eager.dispatch(torch.ops.aten._conj_physical.default, tensor.conj())


def write(tensor: torch.Tensor, array: tenon.Array, order=None) -> None:
    """Replaces the elements of a tensor by those of an array, row-major in the order `order` of the dimensions."""
    spec, bytes = spec_of(tensor), tensor.untyped_storage().nbytes()
    if math.prod(spec.shape) == 0:
        return
    if fills(spec, order, bytes):
        return _device.set_array(tensor, array)
    # Another thread may write another part meanwhile.
    is_written = False
    while not is_written:
        before = _device.array_of(tensor)
        held = before if before is not None else _zeros((bytes // spec.dtype.itemsize,), spec.dtype)
        next_array = _writer((dtype_of(held), held.shape), spec, order, bytes).run([held, array])[0]
        is_written = _device.replace_array(tensor, before, next_array)


def made(spec: Spec, array: tenon.Array) -> torch.Tensor:
    """A new tensor of the device with these strides, whose memory in the order of its strides is the array."""
    tensor = torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device=DEVICE)
    _device.set_array(tensor, array)
    return tensor


def refuse_type(dtype: torch.dtype) -> None:
    if dtype not in NAMES:
        raise Unsupported(f"{DEVICE} has no tensors of {dtype}")


def order_of(tensor: torch.Tensor):
    return memory_order(spec_of(tensor))


def from_host(tensor: torch.Tensor) -> tenon.Array:
    """A copy of a tensor of the CPU, row-major."""
    refuse_type(tensor.dtype)
    return client().array(tensor.detach().contiguous())


@functools.lru_cache(4096)
def _identity(dtype: torch.dtype, shape: tuple[int, ...]) -> tenon.Executable:
    kind = tensor_type(shape, dtype)
    return client().compile(f"func.func @main(%x: {kind}) -> {kind} {{\nfunc.return %x : {kind}\n}}\n")


def to_host(array: tenon.Array) -> torch.Tensor:
    """A copy on the CPU."""
    dtype = dtype_of(array)
    if array.nbytes == 0:
        return torch.empty(array.shape, dtype=dtype, device="cpu")
    try:
        return torch.from_dlpack(array).clone()
    except BufferError:
        import numpy

        bits = {1: numpy.uint8, 2: numpy.int16, 4: numpy.int32, 8: numpy.int64, 16: numpy.complex128}[dtype.itemsize]
        words = torch.from_numpy(numpy.array(array).view(bits))
        return words.view(dtype) if array.shape else words.reshape(1).view(dtype).reshape(())


def synchronize() -> None:
    """The device works in order: what is done behind all of it is done last."""
    _identity(torch.float32, ()).run([_zeros((), torch.float32)])[0].block_until_ready()
