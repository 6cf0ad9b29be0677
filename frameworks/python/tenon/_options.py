"""Compile options as the bytes of XLA's CompileOptionsProto, of which a few fields are enough."""

from collections.abc import Mapping

_BUILD_OPTIONS, _OVERRIDES = 3, 7
_DEVICE_ORDINAL, _REPLICAS, _PARTITIONS = 1, 4, 5
_KEY, _VALUE = 1, 2
_TEXT, _BOOL = 1, 2


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def compile_options(device: int, options: Mapping[str, bool | str]) -> bytes:
    """One replica of one partition, on the device with this id, and compiler options by name."""
    build = _integer(_DEVICE_ORDINAL, device) + _integer(_REPLICAS, 1) + _integer(_PARTITIONS, 1)
    out = _message(_BUILD_OPTIONS, build)
    for name, value in options.items():
        one = _integer(_BOOL, value) if isinstance(value, bool) else _message(_TEXT, value.encode())
        out += _message(_OVERRIDES, _message(_KEY, name.encode()) + _message(_VALUE, one))
    return out
