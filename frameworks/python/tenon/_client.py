"""Clients and executables."""

import os
import pathlib
import threading
from collections.abc import Sequence
from typing import Any

from . import _lapack, _native
from ._options import compile_options

Program = str | bytes | os.PathLike[str]


def _library() -> str:
    """The plug-in: TENON_PJRT_LIBRARY, or the one in this package."""
    _lapack.name_library()
    path = os.environ.get("TENON_PJRT_LIBRARY") or str(pathlib.Path(__file__).with_name("libtenon_pjrt.so"))
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} is missing: it is a part of the package, or TENON_PJRT_LIBRARY names it")
    return path


class Executable:
    """A program, compiled and loaded. Calling it runs it.

    A result is a `tenon.Array`; a program with several results returns a tuple of them. Arguments are arrays of this
    package, or what numpy or DLPack can read. Those of the host are read in place, and the call returns when the program
    has run; with arrays of the device alone it returns before, and an error is raised where a result is used.
    """

    def __init__(self, native: _native.Executable):
        self._native = native

    def __call__(self, *arguments: Any) -> "_native.Array | tuple[_native.Array, ...]":
        results = self._native.run(arguments)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, arguments: Sequence[Any], like: type | None = None) -> list[Any]:
        """As a call, with a list of arguments and of results.

        Args:
            like: the type of the results, such as torch.Tensor: one that has DLPack's exchange table
                (`__dlpack_c_exchange_api__`). Each result owns its memory and may be written: the device's own, where the
                host sees it, else a copy. The call waits for them.

        Raises: TypeError, if the type has no such table; BufferError, if DLPack lacks the type of a result's elements.
        """
        return self._native.run(arguments, like)

    @property
    def name(self) -> str:
        """The name of the program's module."""
        return self._native.name

    @property
    def text(self) -> str:
        """The program behind the rewrite rules, as StableHLO text."""
        return self._native.text

    @property
    def outputs(self) -> list[tuple[Any, tuple[int, ...]]]:
        """The dtype and the shape of each result."""
        return self._native.outputs

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of its "arguments", "results", "temporaries" and "code"."""
        return self._native.memory

    def serialize(self) -> bytes:
        """Bytes that `Client.load` takes, without compiling where the device is the same."""
        return self._native.serialize()

    def __repr__(self) -> str:
        results = ", ".join(f"{dtype.name}[{', '.join(map(str, shape))}]" for dtype, shape in self.outputs)
        return f"tenon.Executable({self.name!r} -> {results})"


class Client:
    """Devices of one backend, with memory and programs of their own.

    Args:
        device: a backend by its name ("cpu", "interp", "template"), with a number behind a colon for one device of
            several ("cpu:1"), or the path of a plug-in's library. Without it the variable TENON_DEVICE counts, and then "cpu".
        plugin: the path of another PJRT plug-in, which may be one of another maker.
        layers: layers around the device ("validate,trace").
        time_limit: seconds after which a call that does not end is an error.
        options: further options of the plug-in, by name.

    Raises: tenon.Error, if there is no such device, or it cannot be opened.
    """

    def __init__(self, device: str | None = None, *, plugin: str | os.PathLike[str] | None = None, layers: str | None = None,
                 time_limit: float | None = None, **options: bool | int | float | str):
        if plugin is None:
            options["device"] = device or os.environ.get("TENON_DEVICE") or "cpu"
        elif device is not None:
            options["device"] = device
        if layers is not None:
            options["layers"] = layers
        if time_limit is not None:
            options["time_limit"] = str(max(1, round(1000 * time_limit)))  # Milliseconds.
        self._native = _native.Client(os.path.abspath(plugin) if plugin is not None else _library(), options)

    @property
    def devices(self) -> "list[_native.Device]":
        """The devices that this process reaches."""
        return self._native.devices

    def compile(self, program: Program, *, device: int = 0, strict: bool = False, native_math: bool = False,
                disable_rules: Sequence[str] = (), **options: bool | str) -> Executable:
        """Compiles a StableHLO program.

        Args:
            program: its text; the bytes of a portable artifact; or the path of a file with either.
            device: the place of the device in `devices`.
            strict: an error, if the device cannot run every step, instead of steps on the host.
            native_math: the device's own exp, log and the like, which may be less accurate.
            disable_rules: names of rewrite rules to leave out.
            options: further compiler options of the plug-in, by name.

        Raises: tenon.Error, whose `place` is the line and column in the text.
        """
        if isinstance(program, os.PathLike):
            program = pathlib.Path(program).read_bytes()
        code = program.encode() if isinstance(program, str) else program
        flags: dict[str, bool | str] = dict(options)
        if strict:
            flags["tenon_strict"] = True
        if native_math:
            flags["tenon_native_math"] = True
        if disable_rules:
            flags["tenon_disable_rules"] = ",".join(disable_rules)
        return Executable(self._native.compile(code, compile_options(self.devices[device].id, flags), device))

    def load(self, serialized: bytes, *, device: int = 0) -> Executable:
        """Loads a program that `Executable.serialize` saved. Its code runs in this process: load only what you trust."""
        return Executable(self._native.load(serialized, compile_options(self.devices[device].id, {}), device))

    def array(self, object: Any, *, device: int = 0, copy: bool = True) -> "_native.Array":
        """Puts what numpy or DLPack can read on a device.

        Args:
            device: the place of the device in `devices`.
            copy: False reads the memory in place where the device can (of 4 KiB and less it copies): it must not change then while
                the array lives.
        """
        return self._native.put(object, device, not copy)

    def __repr__(self) -> str:
        return f"tenon.Client({', '.join(map(repr, self.devices))})"


_clients: dict[str, Client] = {}
_lock = threading.Lock()


def client(device: str | None = None) -> Client:
    """The client of a device, made when it is first asked for, and kept."""
    name = device or os.environ.get("TENON_DEVICE") or "cpu"
    with _lock:
        if name not in _clients:
            _clients[name] = Client(name)
        return _clients[name]


def compile(program: Program, device: str | None = None, **options: Any) -> Executable:
    """Compiles a program for a device. See `Client` for the device, `Client.compile` for the rest."""
    return client(device).compile(program, **options)


def array(object: Any, device: str | None = None, *, copy: bool = True) -> _native.Array:
    """Puts an array on a device. See `Client` for the device, `Client.array` for the rest."""
    return client(device).array(object, copy=copy)
