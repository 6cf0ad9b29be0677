"""Element types of PyTorch and of StableHLO, and literals."""

import math
import struct

import torch

# A row an element type: its name in StableHLO's text.
NAMES: dict[torch.dtype, str] = {
    torch.bool: "i1",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "ui8",
    torch.uint16: "ui16",
    torch.uint32: "ui32",
    torch.uint64: "ui64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.complex64: "complex<f32>",
    torch.complex128: "complex<f64>",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e4m3fnuz: "f8E4M3FNUZ",
    torch.float8_e5m2: "f8E5M2",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ",
}

REAL_OF = {torch.complex64: torch.float32, torch.complex128: torch.float64}
COMPLEX_OF = {torch.float32: torch.complex64, torch.float64: torch.complex128}


def is_ours(tensor: torch.Tensor) -> bool:
    """Whether it is a tensor of the device (tenon_torch.device)."""
    return tensor.device.type == torch._C._get_privateuse1_backend_name()


def is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point


def is_integer(dtype: torch.dtype) -> bool:
    """Integers without bool."""
    return not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool


def tensor_type(shape, dtype: torch.dtype) -> str:
    """`tensor<2x3xf32>`."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{NAMES[dtype]}>"


def _float(value: float, dtype: torch.dtype) -> str:
    if math.isfinite(value):
        return f"{value:.17e}"
    if dtype == torch.float64:
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if dtype == torch.float32:
        return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08X}"
    bits = torch.tensor(value, dtype=dtype).view(torch.uint8 if dtype.itemsize == 1 else torch.int16).item()
    return f"0x{bits & (1 << 8 * dtype.itemsize) - 1:0{2 * dtype.itemsize}X}"


def literal(value, dtype: torch.dtype) -> str:
    """A scalar as StableHLO's text, with the value that `torch.tensor(value, dtype=dtype)` has."""
    if dtype == torch.bool:
        return "true" if value else "false"
    if dtype.is_complex:
        value, part = complex(value), REAL_OF[dtype]
        return f"({_float(value.real, part)}, {_float(value.imag, part)})"
    if dtype.is_floating_point:
        return _float(float(value), dtype)
    value = int(value)
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    if dtype.is_signed and value >> (bits - 1):
        value -= 1 << bits
    return str(value)


def lowest(dtype: torch.dtype):
    """The smallest value: that of a maximum over nothing."""
    if dtype == torch.bool:
        return False
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def highest(dtype: torch.dtype):
    """The largest value."""
    if dtype == torch.bool:
        return True
    return math.inf if dtype.is_floating_point else torch.iinfo(dtype).max
