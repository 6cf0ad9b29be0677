"""Handles of a PJRT plug-in; the package tenon wraps them."""

from collections.abc import Mapping, Sequence

import numpy


class Device:
    """A device of a client."""

    @property
    def index(self) -> int:
        """Its place in Client.devices."""

    @property
    def id(self) -> int:
        """The number that programs of several devices know it by."""

    @property
    def kind(self) -> str:
        """What kind of device it is, in its maker's words."""

    @property
    def attributes(self) -> dict[str, str | int | float | bool | list[int]]:
        """What the device states of itself."""

    def __repr__(self) -> str: ...

class Array:
    """An array on a device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its dimensions."""

    @property
    def dtype(self) -> numpy.dtype:
        """The type of its elements, of numpy or of ml_dtypes."""

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""

    @property
    def nbytes(self) -> int:
        """The bytes of its elements on the host."""

    @property
    def is_deleted(self) -> bool:
        """
        Whether it was deleted, or taken by a program that may take an argument.
        """

    def block_until_ready(self) -> Array:
        """
        Waits for the contents, and returns the array. Raises the error of the work that makes them.
        """

    def delete(self) -> None:
        """Frees the memory, though Python may hold the array."""

    def to(self, device: Device) -> Array:
        """A copy on another device of the client."""

    def __array__(self, dtype: numpy.dtype | None = None, copy: bool | None = None) -> numpy.ndarray:
        """
        An array of numpy: the array's own memory, read-only, if the host sees it, else a copy.
        """

    def __dlpack__(self, **kwargs: object) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, arg: object, /) -> object: ...

    def __float__(self) -> float: ...

    def __int__(self) -> int: ...

    def __repr__(self) -> str: ...

class Executable:
    """A compiled program, loaded on its device."""

    def run(self, arguments: Sequence[object], like: type | None = None) -> list:
        """
        Runs the program; returns a list of arrays, or of objects of the type `like`.
        """

    @property
    def name(self) -> str:
        """The name of its module."""

    @property
    def text(self) -> str:
        """The program as it was optimized, as StableHLO text."""

    @property
    def outputs(self) -> list[tuple[numpy.dtype, tuple[int, ...]]]:
        """The dtype and the shape of each result."""

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of its arguments, results, temporaries and code."""

    def serialize(self) -> bytes:
        """Bytes that Client.load takes."""

class Client:
    """A client of a plug-in."""

    def __init__(self, path: str, options: Mapping[str, bool | int | float | str]) -> None: ...

    @property
    def devices(self) -> list[Device]:
        """The devices that this process reaches."""

    def compile(self, program: bytes, options: bytes, device: int) -> Executable: ...

    def load(self, bytes: bytes, options: bytes, device: int) -> Executable: ...

    def put(self, object: object, device: int, in_place: bool) -> Array: ...
