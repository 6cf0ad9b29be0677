"""`tenon_tf.function`: a Python function of TensorFlow as programs of Tenon, one for each signature."""

import collections
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.eager import record
from tensorflow.python.eager.polymorphic_function.autograph_util import py_func_from_autograph
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

import tenon

from . import state, structure
from .counting import counters, lock
from .errors import Unsupported
from .options import Options
from .tracing import Traced, check_calls, trace

if not tf.__version__.startswith("2.21."):
    raise ImportError(f"tenon_tf is made for TensorFlow 2.21, of which it uses internals; {tf.__version__} is installed")

_EagerTensor = type(tf.constant(0))
_SIMPLE = (bool, int, float, complex, str, bytes, type(None))


_BOUND = "_tenon_functions"  # The attribute of an object with its bound functions.


class _Bound(dict):
    """Bound functions; deep copies and pickles of the object begin without any."""

    def __deepcopy__(self, memo: Any) -> "_Bound":
        return _Bound()

    def __reduce__(self) -> Any:
        return _Bound, ()


def _key_of(leaf: Any) -> Any:
    """The part of an argument that decides the program: of tensors their type, of the rest their value."""
    if isinstance(leaf, _EagerTensor):
        return leaf.dtype.as_datatype_enum, leaf._shape_tuple()
    if isinstance(leaf, (np.ndarray, np.generic, tenon.Array)):
        return tf.as_dtype(leaf.dtype).as_datatype_enum, leaf.shape
    if isinstance(leaf, tf.TensorSpec):
        if not leaf.shape.is_fully_defined():
            raise ValueError(f"tenon: a program has fixed sizes: give a tf.TensorSpec without None, not {leaf}")
        return leaf.dtype.as_datatype_enum, tuple(leaf.shape)
    if isinstance(leaf, float):  # 0.0 and -0.0 are different, and NaN is like itself.
        return "value", type(leaf), leaf.hex()
    if isinstance(leaf, complex):
        return "value", type(leaf), leaf.real.hex(), leaf.imag.hex()
    if isinstance(leaf, _SIMPLE):
        return "value", type(leaf), leaf
    if isinstance(leaf, tf.__internal__.CompositeTensor) and not isinstance(leaf, BaseResourceVariable):
        raise Unsupported(f"tenon: an argument is a {type(leaf).__name__}; give its parts, which are tensors")
    try:
        hash(leaf)
    except TypeError:
        return "object", _Identity(leaf)
    return "object", leaf if not isinstance(leaf, BaseResourceVariable) else _Identity(leaf)


class _Identity:
    """An object that compares by identity, and lives as long."""

    __slots__ = ("object",)

    def __init__(self, object: Any):
        self.object = object

    def __hash__(self) -> int:
        return id(self.object)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Identity) and self.object is other.object


class Program:
    """A function for one signature, compiled."""

    def __init__(self, traced: Traced, arguments: tuple[Any, list[bool]], client: tenon.Client, options: Options):
        self.traced, self._client, self._options = traced, client, options
        self.arguments = arguments  # Their structure, and which of its leaves are tensors.
        self.text = traced.text
        try:
            self.executable = client.compile(traced.text, strict=options.strict, native_math=options.native_math)
        except tenon.Error as error:
            if error.code == "UNIMPLEMENTED":
                check_calls(traced.text, traced.concrete.graph)
                raise Unsupported(f"tenon: {error}", place=str(error.place or "")) from error
            raise
        self.variables = [each for each in traced.captured if isinstance(each, BaseResourceVariable)]
        # Variables are read anew for each call; tensors that were captured stay as they are.
        self._captured = [each if isinstance(each, BaseResourceVariable) else client.array(np.asarray(each)) for each in traced.captured]
        self._updates = [(traced.captured[place], result) for place, result in traced.updates]
        leaves: list = []
        self.results = structure.flatten(traced.structured_outputs, leaves)
        order = {id(each): place for place, each in enumerate(traced.flat_outputs)}
        self.composite = any(each is not None and id(each) not in order for each in leaves)
        self.places = [None if each is None else order.get(id(each)) for each in leaves]
        with lock:
            counters.programs += 1

    @property
    def names(self) -> list[str]:
        """The names of what follows the arguments: variables, and tensors that were captured."""
        return [each.name if isinstance(each, BaseResourceVariable) else f"tensor_{i}" for i, each in enumerate(self.traced.captured)]

    def values(self) -> list[np.ndarray]:
        """The values of what follows the arguments."""
        return [np.asarray(each.read_value() if isinstance(each, BaseResourceVariable) else each) for each in self.traced.captured]

    def run(self, tensors: Sequence[Any]) -> Any:
        client = self._client
        given = list(tensors)
        for each in self._captured:
            given.append(state.array_of(each, client) if isinstance(each, BaseResourceVariable) else each)
        returned = self.executable.run(given)
        for variable, result in self._updates:
            state.write(variable, returned[result], client)
        if self._options.write_back == "each_call":
            for variable in self.variables:
                state.release(variable)
        counters.calls += 1
        if self.composite:
            tensors = [_tensor(each) for each in returned[:self.traced.outputs]]
            return tf.nest.pack_sequence_as(self.traced.structured_outputs, tensors, expand_composites=True)
        if self._options.arrays:
            leaves = [None if place is None else returned[place] for place in self.places]
        else:
            leaves = [None if place is None else _tensor(returned[place]) for place in self.places]
        return structure.pack(self.results, iter(leaves))


def _tensor(array: tenon.Array) -> tf.Tensor:
    return tf.constant(np.asarray(array))


class Function:
    """A Python function that runs on a device of Tenon, as `tf.function` runs one on TensorFlow's.

    It is traced and compiled for each signature: the types of tensors, the values of what else is given. Variables that it uses stay on
    the device between calls; TensorFlow gets their values when it looks at them. Called while another function is traced, it becomes
    a part of that.

    Thread-safety: calls from any thread; those that write the same variables must not overlap.
    """

    def __init__(self, function: Callable, options: Options, autograph: bool = True, input_signature: Sequence[Any] | None = None):
        functools.update_wrapper(self, function, updated=())
        self.python_function, self.options = function, options
        self._autograph = autograph
        self._signature = None if input_signature is None else tuple(input_signature)
        self._programs: collections.OrderedDict[Any, Program] = collections.OrderedDict()
        self._lock = threading.RLock()

    def __get__(self, instance: Any, owner: type) -> "Function":
        """The function as a method of an object: bound, with programs of its own."""
        if instance is None:
            return self
        # Kept with the object, for this function and this object alone: a copy of the object has the same attributes.
        kept = getattr(instance, "__dict__", {}).setdefault(_BOUND, _Bound())
        place = id(self), id(instance)
        if place not in kept or kept[place].python_function.__self__ is not instance:
            kept[place] = Function(self.python_function.__get__(instance, owner), self.options, self._autograph, self._signature)
        return kept[place]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not tf.executing_eagerly():
            return self.python_function(*arguments, **named)
        if record.could_possibly_record():
            raise RuntimeError("tenon: a tf.GradientTape does not see what a compiled function does; take gradients inside the function")
        program, leaves = self._find(arguments, named)
        return program.run(leaves)

    def program(self, *arguments: Any, **named: Any) -> Program:
        """The program for arguments like these, compiled if there is none. Tensors may be `tf.TensorSpec`s."""
        return self._find(arguments, named)[0]

    @property
    def programs(self) -> list[Program]:
        """The programs that there are, the last used one last."""
        with self._lock:
            return list(self._programs.values())

    def sync(self) -> None:
        """Writes the values of all variables back now, which looking at them does too."""
        for program in self.programs:
            for variable in program.variables:
                state.release(variable)

    def save(self, path: Any, *arguments: Any, **named: Any) -> None:
        """Writes the program for arguments like these, and the values of its variables, as a file for `tenon_tf.load`.

        Without arguments, the program that was used last.
        """
        from .saved import write

        write(self._chosen(arguments, named), path)

    def _chosen(self, arguments: tuple, named: dict) -> Program:
        if arguments or named:
            return self.program(*arguments, **named)
        programs = self.programs
        if not programs:
            raise ValueError("tenon: there is no program yet: call the function, or give arguments, for example tf.TensorSpec")
        return programs[-1]

    def _find(self, arguments: tuple, named: dict) -> tuple[Program, list]:
        if self._signature is not None:
            arguments, named = self._fitted(arguments, named), {}
        leaves: list = []
        nest = structure.flatten((arguments, named), leaves)
        keys = [_key_of(leaf) for leaf in leaves]
        tensors = [leaf for leaf, key in zip(leaves, keys) if type(key[0]) is int]
        key = nest, tuple(keys)
        with self._lock:
            program = self._programs.get(key)
            if program is not None:
                self._programs.move_to_end(key)
                return program, tensors
            program = self._compile(nest, leaves, keys)
            self._programs[key] = program
            while len(self._programs) > self.options.programs:
                self._programs.popitem(last=False)
                with lock:
                    counters.evicted += 1
        return program, tensors

    def _fitted(self, arguments: tuple, named: dict) -> tuple:
        """The arguments as tensors of `input_signature`."""
        if named or len(arguments) != len(self._signature):
            raise TypeError(f"tenon: the function takes {len(self._signature)} positional arguments, by its input_signature")

        def fit(spec, value):
            if not isinstance(value, (tenon.Array, tf.TensorSpec)):
                value = tf.convert_to_tensor(value, spec.dtype)
            if tf.as_dtype(value.dtype) != spec.dtype or not spec.shape.is_compatible_with(value.shape):
                raise TypeError(f"tenon: an argument is {tf.as_dtype(value.dtype).name}{list(value.shape)}, where input_signature has {spec}")
            return value

        return tf.__internal__.nest.map_structure_up_to(self._signature, fit, self._signature, tuple(arguments))

    def _compile(self, nest: Any, leaves: list, keys: list) -> Program:
        specs, fixed = [], []
        for leaf, key in zip(leaves, keys):
            is_tensor = type(key[0]) is int
            fixed.append((is_tensor, None if is_tensor else leaf))
            if is_tensor:
                specs.append(tf.TensorSpec(key[1], tf.as_dtype(key[0])))
        function = py_func_from_autograph(self.python_function) if self._autograph else self.python_function

        def of_tensors(*tensors):
            rest = iter(tensors)
            arguments, named = structure.pack(nest, iter([next(rest) if is_tensor else leaf for is_tensor, leaf in fixed]))
            with ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED if self._autograph else ag_ctx.Status.DISABLED):
                return function(*arguments, **named)

        of_tensors.__name__ = getattr(function, "__name__", "function")
        options = self.options
        traced = trace(of_tensors, specs, donate=options.donate)
        return Program(traced, (nest, [is_tensor for is_tensor, _ in fixed]), tenon.client(options.device), options)


def function(function: Callable | None = None, *, autograph: bool = True, input_signature: Sequence[Any] | None = None, **options: Any) -> Any:
    """Makes a `Function` of a Python function; a decorator, as tf.function is one.

    Args:
        function: what to compile. A `tf.function` counts as the Python function in it.
        autograph: whether Python's `if` and `for` on tensors become ops, as in tf.function.
        input_signature: tf.TensorSpecs of the arguments, to whose element types they are converted.
        options: see `Options`: device, donate, strict, native_math, write_back, arrays, programs.

    Raises: TypeError or ValueError for an option that is unknown or wrong; at a call Unsupported for what is not supported.
    """
    chosen = Options.of(options)

    def decorate(given: Callable) -> Function:
        return Function(getattr(given, "python_function", given), chosen, autograph, input_signature)

    return decorate if function is None else decorate(function)
