"""Reads .npy files with the standard library alone: enough for the samples' plain arrays."""

import ast
import pathlib
import struct
from dataclasses import dataclass

CODES = {"f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q",
         "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "b1": "?"}


@dataclass
class Array:
    """A row-major array: its shape, and its elements as Python numbers."""

    shape: tuple[int, ...]
    values: list


def load(path: pathlib.Path) -> Array:
    """Reads a little-endian, row-major file of a type in CODES (complex64 as pairs of floats)."""
    data = path.read_bytes()
    if data[:6] != b"\x93NUMPY":
        raise ValueError(f"{path} is not a .npy file")
    start = 10 if data[6] == 1 else 12
    length = int.from_bytes(data[8:start], "little")
    header = ast.literal_eval(data[start:start + length].decode("latin1"))
    body = data[start + length:]
    kind = header["descr"][1:]
    if kind == "c8":
        flat = struct.unpack(f"<{len(body) // 4}f", body)
        values = [complex(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]
    elif kind == "V2":  # bfloat16: the upper half of a float
        halves = struct.unpack(f"<{len(body) // 2}H", body)
        values = [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
    else:
        code = CODES[kind]
        values = list(struct.unpack(f"<{len(body) // struct.calcsize('<' + code)}{code}", body))
    return Array(tuple(header["shape"]), values)


def save_rows(path: pathlib.Path, source: pathlib.Path, index: int) -> None:
    """Writes row `index` of the array in `source` as a file of its own."""
    data = source.read_bytes()
    start = 10 if data[6] == 1 else 12
    length = int.from_bytes(data[8:start], "little")
    header = ast.literal_eval(data[start:start + length].decode("latin1"))
    shape = header["shape"]
    body = data[start + length:]
    size = len(body) // shape[0]
    text = repr({"descr": header["descr"], "fortran_order": False, "shape": shape[1:]}).encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
                     + body[index * size:(index + 1) * size])
