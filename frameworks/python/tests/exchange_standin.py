"""A package of arrays with DLPack's exchange table, made of ctypes and numpy: what torch is to the tests."""

import ctypes
from collections import Counter

import ml_dtypes
import numpy as np

CODES = {"bool": 6, "int8": 0, "int16": 0, "int32": 0, "int64": 0, "uint8": 1, "uint16": 1, "uint32": 1, "uint64": 1, "float16": 2,
         "float32": 2, "float64": 2, "bfloat16": 4, "complex64": 5, "complex128": 5, "float8_e3m4": 7, "float8_e4m3": 8,
         "float8_e4m3b11fnuz": 9, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13,
         "float8_e8m0fnu": 14}


def dtype_of(name: str) -> np.dtype:
    return np.dtype(name) if hasattr(np, name) or name == "bool" else np.dtype(getattr(ml_dtypes, name))


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", Deleter),
                    ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
                ("to_managed", ctypes.c_void_p), ("from_managed", ctypes.c_void_p), ("to_tensor", ctypes.c_void_p),
                ("work_stream", ctypes.c_void_p)]


calls: Counter[str] = Counter()
lent: dict[int, object] = {}  # What the consumers of managed tensors still hold, by the tensor's address.


class Plain:
    """An array that only the table can read. `describe` may change what the table says of it."""

    def __init__(self, array: np.ndarray, **describe: object):
        self.array = array
        self.describe = describe
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*(stride // array.itemsize for stride in array.strides))

    def fill(self, tensor: Tensor) -> None:
        name = self.array.dtype.name
        tensor.data, tensor.device, tensor.device_id, tensor.ndim = self.array.ctypes.data, 1, 0, self.array.ndim
        tensor.code, tensor.bits, tensor.lanes, tensor.offset = CODES[name], 8 * self.array.itemsize, 1, 0
        tensor.shape, tensor.strides = self.shape, self.strides
        for field, value in self.describe.items():
            setattr(tensor, field, value)


class Owner:
    """Holds a managed tensor."""

    def __init__(self, managed: "ctypes._Pointer[Managed]"):
        self.managed = managed

    def __del__(self):
        calls["deleted"] += 1
        self.managed.contents.deleter(self.managed)


class Made(Plain):
    """An array that the table made of a managed tensor, which its memory holds."""

    fails = False

    def __init__(self, managed: "ctypes._Pointer[Managed]"):
        tensor = managed.contents.tensor
        self.version, self.flags = managed.contents.major, managed.contents.flags
        shape = tuple(tensor.shape[: tensor.ndim])
        assert tensor.offset == 0 and tensor.lanes == 1 and tensor.device == 1
        dtype = next(dtype_of(name) for name, code in CODES.items()
                     if code == tensor.code and 8 * dtype_of(name).itemsize == tensor.bits)
        count = int(np.prod(shape, dtype=np.int64))
        bytes = ctypes.c_char * (count * dtype.itemsize)
        memory = type("Memory", (bytes,), {}).from_address(tensor.data if count else ctypes.addressof(tensor))
        memory.owner = Owner(managed)
        super().__init__(np.frombuffer(memory, dtype).reshape(shape) if count else np.empty(shape, dtype))
        assert [*tensor.strides[: tensor.ndim]] == [*self.strides] or count == 0


def _to_tensor(this: Plain, out: "ctypes._Pointer[Tensor]") -> int:
    calls["to_tensor"] += 1
    this.fill(out.contents)
    return 0


@Deleter
def _delete(managed: "ctypes._Pointer[Managed]") -> None:
    calls["given back"] += 1
    del lent[ctypes.addressof(managed.contents)]


def _to_managed(this: Plain, out: "ctypes._Pointer[ctypes.c_void_p]") -> int:
    calls["to_managed"] += 1
    managed = Managed(major=1, minor=3, deleter=_delete)
    this.fill(managed.tensor)
    lent[ctypes.addressof(managed)] = (managed, this)
    out[0] = ctypes.addressof(managed)
    return 0


def _from_managed(managed: "ctypes._Pointer[Managed]", out: "ctypes._Pointer[ctypes.c_void_p]") -> int:
    calls["from_managed"] += 1
    if Made.fails:
        return -1
    made = Made(managed)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    out[0] = id(made)
    return 0


def _cast(function: object, *types: type) -> int:
    pointer = ctypes.PYFUNCTYPE(ctypes.c_int, *types)(function)
    _kept.append(pointer)
    return ctypes.cast(pointer, ctypes.c_void_p).value


_kept: list[object] = []
table = Table(1, 3, None, None, _cast(_to_managed, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p)),
              _cast(_from_managed, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p)),
              _cast(_to_tensor, ctypes.py_object, ctypes.POINTER(Tensor)), None)


def capsule(given: Table) -> object:
    """The attribute `__dlpack_c_exchange_api__` of a type with that table."""
    _kept.append(given)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(given), b"dlpack_exchange_api", None)


Plain.__dlpack_c_exchange_api__ = capsule(table)
