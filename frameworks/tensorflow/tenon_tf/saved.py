"""Programs as files, which load without TensorFlow: a zip file of the StableHLO text, the variables' values, and what the arguments
and results are."""

import io
import json
import os
import threading
import zipfile
from typing import Any

import ml_dtypes  # noqa: F401  Its element types are known to numpy then.
import numpy as np

import tenon

from . import structure

_VERSION = 1
_PROGRAM, _STATE, _ABOUT = "program.mlir", "state.npz", "about.json"


def _store(file: zipfile.ZipFile, arrays: list[np.ndarray]) -> None:
    """Elements that numpy's format lacks (bfloat16) are stored as bytes; about.json has their types."""
    data = io.BytesIO()
    np.savez(data, *[np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in arrays])
    file.writestr(_STATE, data.getvalue())


def _write(path: Any, text: str, about: dict, arrays: list[np.ndarray]) -> None:
    about = about | {"version": _VERSION, "state": [{"dtype": each.dtype.name, "shape": list(each.shape), "name": name}
                                                     for each, name in zip(arrays, about["names"])]}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_PROGRAM, text)
        file.writestr(_ABOUT, json.dumps(about))
        _store(file, arrays)


def write(program: Any, path: "str | os.PathLike[str]") -> None:
    """Saves a `functions.Program`: `Function.save`."""
    if program.composite:
        raise ValueError("tenon: a result is sparse or ragged, which a saved program cannot have; return its parts")
    nest, is_tensor = program.arguments
    about = {"arguments": structure.portable(nest), "is_tensor": is_tensor, "results": structure.portable(program.results),
             "places": program.places, "updates": program.traced.updates, "names": program.names}
    _write(path, program.text, about, program.values())


class Saved:
    """A saved program on a device: call it as the function that it was made of.

    What was no tensor among the function's arguments is fixed; its places are ignored. Results are `tenon.Array`s. The variables stay
    on the device, and change as those of the function would.

    Thread-safety: one call at a time.
    """

    def __init__(self, text: str, about: dict, arrays: list[np.ndarray], client: tenon.Client, **options: Any):
        self.text, self._about = text, about
        self.executable = client.compile(text, **options)
        self._state = [client.array(each) for each in arrays]
        self._arguments = structure.from_portable(about["arguments"])
        self._results = structure.from_portable(about["results"])
        self._lock = threading.Lock()

    @property
    def state(self) -> dict[str, np.ndarray]:
        """The values of the variables, by name; a name that several have gets a number behind it."""
        found: dict[str, np.ndarray] = {}
        for name, array in zip(self._about["names"], self._state):
            unique, count = name, 1
            while unique in found:
                unique, count = f"{name}_{count}", count + 1
            found[unique] = np.array(array)
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        leaves: list = []
        if structure.portable(structure.flatten((arguments, named), leaves)) != self._about["arguments"]:
            raise TypeError(f"tenon: the program was saved for arguments of the structure {self._arguments}")
        given = [leaf for leaf, is_tensor in zip(leaves, self._about["is_tensor"]) if is_tensor]
        with self._lock:
            returned = self.executable.run([*given, *self._state])
            for place, result in self._about["updates"]:
                self._state[place] = returned[result]
        return structure.pack(self._results, iter([None if place is None else returned[place] for place in self._about["places"]]))

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the program with the variables as they are now."""
        _write(path, self.text, self._about, [np.array(each) for each in self._state])


def load(path: "str | os.PathLike[str]", device: str | None = None, **options: Any) -> Saved:
    """Loads what `Function.save` wrote, for a device. TensorFlow is not needed.

    Args:
        device: as `tenon.Client` takes it (TENON_DEVICE, else "cpu").
        options: those of `tenon.Client.compile`, such as strict.
    """
    with zipfile.ZipFile(path) as file:
        about = json.loads(file.read(_ABOUT))
        if about.get("version") != _VERSION:
            raise ValueError(f"tenon: {path} has the version {about.get('version')} of the format; this package reads {_VERSION}")
        text = file.read(_PROGRAM).decode()
        stored = np.load(io.BytesIO(file.read(_STATE)), allow_pickle=False)
    arrays = [stored[f"arr_{i}"].view(np.dtype(each["dtype"])).reshape(each["shape"]) for i, each in enumerate(about["state"])]
    return Saved(text, about, arrays, tenon.client(device), **options)
