"""Call frames of XLA's FFI, for handlers in Python (frameworks/pjrt/c_api/xla_ffi.h)."""

import ctypes
import functools
import traceback
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p

INSTANTIATE, EXECUTE = 0, 3  # XLA_FFI_ExecutionStage
INTERNAL, UNAVAILABLE = 13, 14  # XLA_FFI_Error_Code
_SCALAR = 3  # XLA_FFI_AttrType
_TOKEN = 17  # XLA_FFI_DataType


class _Buffer(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("dtype", c_int), ("data", c_void_p),
                ("rank", c_int64), ("dims", POINTER(c_int64))]


class _Buffers(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("size", c_int64), ("types", c_void_p),
                ("buffers", POINTER(POINTER(_Buffer)))]


class _Name(ctypes.Structure):
    _fields_ = [("text", c_void_p), ("size", c_size_t)]


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("value", c_void_p)]


class _Attributes(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("size", c_int64),
                ("types", POINTER(c_int)), ("names", POINTER(POINTER(_Name))), ("values", POINTER(c_void_p))]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("version_size", c_size_t), ("version_extension", c_void_p),
                ("major", c_int), ("minor", c_int), ("traits", c_uint32), ("state_type_id", c_int64)]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata))]


class _FfiApi(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("version_size", c_size_t),
                ("version_extension", c_void_p), ("major", c_int), ("minor", c_int), ("internal_api", c_void_p),
                ("error_create", c_void_p), ("error_get_message", c_void_p), ("error_destroy", c_void_p),
                ("handler_register", c_void_p), ("stream_get", c_void_p), ("type_register", c_void_p),
                ("execution_context_get", c_void_p), ("state_set", c_void_p), ("state_get", c_void_p)]


class _ErrorCreateArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("message", c_char_p), ("code", c_int)]


class _StateSetArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("context", c_void_p), ("stage", c_int),
                ("type_id", POINTER(c_int64)), ("state", c_void_p)]


_Function = ctypes.CFUNCTYPE(c_void_p, c_void_p)


@functools.cache
def _dtypes() -> dict:
    """NumPy's types by XLA_FFI_DataType."""
    import ml_dtypes
    import numpy as np

    names = {1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32",
             9: "uint64", 10: "float16", 11: "float32", 12: "float64", 15: "complex64", 18: "complex128"}
    custom = {16: "bfloat16", 19: "float8_e5m2", 20: "float8_e4m3fn", 21: "int4", 22: "uint4",
              23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz", 26: "int2", 27: "uint2",
              28: "float8_e4m3", 29: "float8_e3m4", 32: "float4_e2m1fn", 33: "float8_e8m0fnu"}
    found = {number: np.dtype(name) for number, name in names.items()}
    found.update((number, np.dtype(getattr(ml_dtypes, name))) for number, name in custom.items()
                 if hasattr(ml_dtypes, name))
    return found


def _view(buffer: _Buffer):
    """The array where it lies."""
    import numpy as np

    dtype = _dtypes()[buffer.dtype]
    shape = tuple(buffer.dims[i] for i in range(buffer.rank))
    count = 1
    for size in shape:
        count *= size
    if count == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(buffer.data)
    return np.frombuffer(memory, dtype).reshape(shape)


def _views(buffers: _Buffers) -> list:
    every = (buffers.buffers[i].contents for i in range(buffers.size))
    return [_view(each) for each in every if each.dtype != _TOKEN]


class Frame(ctypes.Structure):
    """A call of a handler."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", POINTER(_MetadataExtension)),
                ("api", POINTER(_FfiApi)), ("context", c_void_p), ("stage", c_int), ("args", _Buffers),
                ("rets", _Buffers), ("attributes", _Attributes)]

    def arguments(self) -> list:
        """The arguments where they lie, as long as the call, without tokens."""
        return _views(self.args)

    def results(self) -> list:
        return _views(self.rets)

    def integer(self, name: str) -> int:
        """An attribute of type s64."""
        attributes = self.attributes
        for i in range(attributes.size):
            at = attributes.names[i].contents
            if ctypes.string_at(at.text, at.size) == name.encode() and attributes.types[i] == _SCALAR:
                return c_int64.from_address(_Scalar.from_address(attributes.values[i]).value).value
        raise ValueError(f"the call has no attribute {name}")

    def set_state(self, type_id: c_int64, state: int):
        """Sets the state of the call, in the stage INSTANTIATE; what the handler returns."""
        args = _StateSetArgs(struct_size=ctypes.sizeof(_StateSetArgs), context=self.context, stage=INSTANTIATE,
                             type_id=ctypes.pointer(type_id), state=state)
        return _Function(self.api.contents.state_set)(ctypes.addressof(args))

    def error(self, code: int, text: str):
        """An error, for the handler to return."""
        args = _ErrorCreateArgs(struct_size=ctypes.sizeof(_ErrorCreateArgs), message=text.encode(errors="replace"),
                                code=code)
        return _Function(self.api.contents.error_create)(ctypes.addressof(args))


class Handler:
    """A handler that calls a Python function with the Frame. It must outlive the programs that call it.

    The function returns None or an error; an exception becomes an error with its traceback.
    """

    def __init__(self, function):
        self._function = function
        self._pointer = _Function(self._call)  # Takes the interpreter's lock.
        self.address = ctypes.cast(self._pointer, c_void_p).value

    def _call(self, address):
        frame = Frame.from_address(address)
        try:
            if frame.extension_start:
                metadata = frame.extension_start.contents.metadata.contents
                metadata.major, metadata.minor = 0, 3
                return None
            return self._function(frame)
        except BaseException as error:  # Also KeyboardInterrupt: no caller could see it.
            return frame.error(INTERNAL, f"a Python callback failed: {_text_of(error)}")


def _text_of(error: BaseException) -> str:
    """The traceback; less, if an error of the program cannot be printed: ctypes would return 0, which means success."""
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return type(error).__name__
