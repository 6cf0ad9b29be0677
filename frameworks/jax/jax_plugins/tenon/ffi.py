"""Registers functions of the host for the platform, by the extensions of the PJRT C API.

`jax.ffi.register_ffi_target(name, capsule, platform="tenon")` comes here: the handler, a C function
of XLA's FFI, is then called by programs on any device of Tenon, with arrays in host memory.
"""

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p

PLATFORM = "tenon"
# With those of packages for single devices (add_platform).
PLATFORMS = [PLATFORM]
STAGES = ("instantiate", "prepare", "initialize", "execute")

_EXTENSION_STAGES = 0  # Gpu_Custom_Call
_EXTENSION_FFI = 5


class _Extension(ctypes.Structure):
    pass


_Extension._fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", POINTER(_Extension))]


class _Api(ctypes.Structure):
    """The beginning of PJRT_Api."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", POINTER(_Extension)),
                ("version_size", c_size_t), ("version_extension", c_void_p), ("major", c_int), ("minor", c_int),
                ("error_destroy", c_void_p), ("error_message", c_void_p)]


class _ErrorArgs(ctypes.Structure):
    """PJRT_Error_Destroy_Args; with what follows PJRT_Error_Message_Args."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("error", c_void_p),
                ("message", c_void_p), ("message_size", c_size_t)]


class _RegisterStagesArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("name_size", c_size_t), ("api_version", c_int),
                ("instantiate", c_void_p), ("prepare", c_void_p), ("initialize", c_void_p), ("execute", c_void_p)]


class _RegisterTypeArgs(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("name", c_char_p), ("name_size", c_size_t),
                ("type_id", c_int64), ("type_info", c_void_p)]


class TypeInfo(ctypes.Structure):
    """XLA_FFI_TypeInfo."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("deleter", c_void_p)]


class _PjrtTypeInfo(ctypes.Structure):
    _fields_ = [("deleter", c_void_p), ("serialize", c_void_p), ("deserialize", c_void_p)]


def _function(address: int, result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)(address)


class Library:
    """The plug-in's library; it must have been loaded."""

    def __init__(self, path: str):
        library = ctypes.CDLL(path)
        library.GetPjrtApi.restype = POINTER(_Api)
        self._api = library.GetPjrtApi().contents
        self._functions = {}
        node = self._api.extension_start
        while node:
            extension = node.contents
            count = (extension.struct_size - ctypes.sizeof(_Extension)) // ctypes.sizeof(c_void_p)
            first = ctypes.addressof(extension) + ctypes.sizeof(_Extension)
            self._functions[extension.type] = list((c_void_p * count).from_address(first))
            node = extension.next

    def register_handler(self, name: str, stages: dict[str, int]) -> None:
        """Registers the addresses of a handler's stages."""
        args = _RegisterStagesArgs(struct_size=ctypes.sizeof(_RegisterStagesArgs), name=name.encode(),
                                   name_size=len(name.encode()), api_version=1, **stages)
        self._call(self._functions[_EXTENSION_STAGES][0], args)

    def register_type(self, name: str, type_id: int, deleter: int | None) -> int:
        """Registers a type of states, with the address of a function that deletes one; returns its id."""
        info = _PjrtTypeInfo(deleter=deleter)
        args = _RegisterTypeArgs(struct_size=ctypes.sizeof(_RegisterTypeArgs), name=name.encode(),
                                 name_size=len(name.encode()), type_id=type_id, type_info=ctypes.addressof(info))
        self._call(self._functions[_EXTENSION_FFI][0], args)
        return args.type_id

    def _call(self, address: int, args) -> None:
        error = _function(address, c_void_p, c_void_p)(ctypes.addressof(args))
        if error is None:
            return
        message = _ErrorArgs(struct_size=ctypes.sizeof(_ErrorArgs), error=error)
        _function(self._api.error_message, None, c_void_p)(ctypes.addressof(message))
        text = ctypes.string_at(message.message, message.message_size).decode(errors="replace")
        destroy = _ErrorArgs(struct_size=24, error=error)
        _function(self._api.error_destroy, None, c_void_p)(ctypes.addressof(destroy))
        raise RuntimeError(text)


def address_of(capsule) -> int:
    """The address in a PyCapsule."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return pointer_of(capsule, name_of(capsule))


def _text(name) -> str:
    return name.decode() if isinstance(name, bytes) else name


def install(library: Library, platform: str = PLATFORM) -> None:
    """Takes the registrations for the platform, those that came before too. They hold on all platforms of Tenon."""
    from jax._src.lib import xla_client

    def register(name, function, of_platform, api_version, traits=None) -> None:
        del of_platform, traits
        if api_version != 1:
            raise NotImplementedError(f"{_text(name)}: the platform {platform} takes functions of XLA's typed FFI "
                                      f"(api_version 1), not of api_version {api_version}")
        stages = function if isinstance(function, dict) else {"execute": function}
        unknown = set(stages) - set(STAGES)
        if unknown:
            raise ValueError(f"{_text(name)}: there is no stage {', '.join(sorted(unknown))}")
        library.register_handler(_text(name), {stage: address_of(each) for stage, each in stages.items()})

    def register_type(name, registration) -> None:
        of_type = registration if isinstance(registration, dict) else {"type_id": registration}
        type_id = c_int64.from_address(address_of(of_type["type_id"]))
        deleter = None
        if "type_info" in of_type:
            deleter = TypeInfo.from_address(address_of(of_type["type_info"])).deleter
        type_id.value = library.register_type(_text(name), type_id.value, deleter)

    xla_client.register_custom_call_handler(platform, register)
    xla_client.register_custom_type_handler(platform, register_type)
