"""Variables whose values are on a device between calls.

A variable that a program reads or writes has a `Cell` with its value as an array of the device. The variable of TensorFlow is stale
then. Whoever looks at it goes through its handle: as an attribute, which becomes a property here, or among the tensors that a traced
function captured, which `ConcreteFunction._call_flat` takes. Both write the value back first. A cell ends there, since the handle may
be used to write.

Thread-safety: all functions, by one lock.
"""

import functools
import threading
import weakref

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, ResourceVariable

import tenon

from .counting import counters

_CELL = "_tenon_cell"
_lock = threading.RLock()
# Variables with a cell, by the identity of their handle, which lives as long as they do.
_live: dict[int, weakref.ref] = {}


class Cell:
    __slots__ = ("array", "client", "is_new", "is_lost")

    def __init__(self, array: tenon.Array, client: tenon.Client, is_new: bool):
        self.array, self.client, self.is_new = array, client, is_new
        self.is_lost = False  # Every look at it is an error, until the variable is assigned.


def _handle_of(variable: BaseResourceVariable) -> tf.Tensor:
    return variable.__dict__["_handle"]


def _owner_of(variable: BaseResourceVariable) -> BaseResourceVariable:
    """The object with the cell: `v.assign(…)` gives another variable, of the same handle."""
    if _live and _CELL not in variable.__dict__:
        reference = _live.get(id(variable.__dict__.get("_handle")))
        return (reference and reference()) or variable
    return variable


def _read_handle(variable: BaseResourceVariable) -> tf.Tensor:
    owner = _owner_of(variable)
    if _CELL in owner.__dict__:
        release(owner)
    try:
        return variable.__dict__["_handle"]
    except KeyError:
        raise AttributeError("_handle") from None


def _write_handle(variable: BaseResourceVariable, handle: tf.Tensor) -> None:
    variable.__dict__["_handle"] = handle


def _watch() -> None:
    """Puts the property and the wrapper in place, once."""
    if isinstance(BaseResourceVariable.__dict__.get("_handle"), property):
        return
    BaseResourceVariable._handle = property(_read_handle, _write_handle)
    original = ConcreteFunction._call_flat

    def _call_flat(self, tensor_inputs, captured_inputs):
        if _live:
            for tensor in (*tensor_inputs, *captured_inputs):
                reference = _live.get(id(tensor))
                variable = reference and reference()
                if variable is not None:
                    release(variable)
        return original(self, tensor_inputs, captured_inputs)

    ConcreteFunction._call_flat = _call_flat
    for kind in (BaseResourceVariable, ResourceVariable):  # TensorFlow wraps the one for the other.
        if "assign" in kind.__dict__:
            kind.assign = _ending_loss(kind.assign)


def _ending_loss(assign):
    @functools.wraps(assign)
    def wrapper(self, *values, **words):
        owner = _owner_of(self)
        cell = owner.__dict__.get(_CELL)
        if cell is not None and cell.is_lost:
            _drop(owner)
        return assign(self, *values, **words)

    return wrapper


def array_of(variable: BaseResourceVariable, client: tenon.Client) -> tenon.Array:
    """The variable's value on a device of the client."""
    with _lock:
        variable = _owner_of(variable)
        cell = variable.__dict__.get(_CELL)
        if cell is not None and cell.client is client and not cell.array.is_deleted and not cell.is_lost:
            return cell.array
        _watch()
        array = client.array(np.asarray(variable.read_value()))  # Writes another client's value back.
        counters.variables_read += 1
        _put(variable, Cell(array, client, is_new=False))
        return array


def write(variable: BaseResourceVariable, array: tenon.Array, client: tenon.Client) -> None:
    """Makes the array the variable's value."""
    with _lock:
        variable = _owner_of(variable)
        cell = variable.__dict__.get(_CELL)
        if cell is None:  # TensorFlow looked at it while the program ran.
            _put(variable, Cell(array, client, is_new=True))
        else:
            cell.array, cell.client, cell.is_new, cell.is_lost = array, client, True, False


def _put(variable: BaseResourceVariable, cell: Cell) -> None:
    variable.__dict__[_CELL] = cell
    place = id(_handle_of(variable))
    _live[place] = weakref.ref(variable, lambda _: _live.pop(place, None))


def release(variable: BaseResourceVariable) -> None:
    """Writes the value back, if it is newer than TensorFlow's, and ends the cell.

    Raises: RuntimeError, if the value is lost; tenon.Error, that of the program which was to make it.
    """
    with _lock:
        cell = variable.__dict__.get(_CELL)
        if cell is None:
            return
        cell.is_lost = True
        if cell.array.is_deleted:
            raise RuntimeError(f"tenon: the value of the variable {variable.name!r} is lost: a program took its memory, and failed; assign it "
                               "again, or use donate=False")
        value = np.asarray(cell.array) if cell.is_new else None
        _drop(variable)
        if value is not None:
            with context.eager_mode():  # The look may be that of a function that is traced, or of a graph that is saved.
                variable.assign(value, read_value=False)
            counters.variables_written += 1


def _drop(variable: BaseResourceVariable) -> None:
    variable.__dict__.pop(_CELL, None)
    _live.pop(id(_handle_of(variable)), None)
