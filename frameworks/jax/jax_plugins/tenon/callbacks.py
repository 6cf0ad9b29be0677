"""Python functions that programs call: pure_callback, io_callback, debug.print, debug.callback, checkify.

A program calls one handler of XLA's FFI, `tenon_python_callback`, with the number of a function. The handler copies
the arrays, calls the function, and copies what it returns. An exception becomes the error of the execution, with its
traceback as text.

JAX keeps the functions of a program as long as the program. A program that was loaded keeps them too, by the state of
the stage INSTANTIATE: executions may still be in flight when JAX lets go of it.
"""

import atexit
import ctypes
import itertools
import secrets
import threading
import weakref
from ctypes import c_int64, c_void_p

from . import ffi, frames

TARGET = "tenon_python_callback"
IN_PLACE_TARGET = "tenon_python_buffer_callback"


class HostBuffer:
    """What a buffer_callback gets: an array where it lies, as long as the call; RuntimeError afterwards."""

    def __init__(self, array, writeable: bool):
        array.flags.writeable = writeable
        self._kept = array
        self.writeable = writeable

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)

    @property
    def _array(self):
        if self._kept is None:
            raise RuntimeError("a buffer of a buffer_callback is there as long as the call: keep a copy")
        return self._kept

    def end(self) -> None:
        """Lets go of the memory, which others get."""
        self._kept = None

    def __array__(self, dtype=None, copy=None):
        if copy or dtype not in (None, self._array.dtype):
            return self._array.astype(dtype or self._array.dtype)
        return self._array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class HostContext:
    """The execution context of a buffer_callback."""

    def __init__(self):
        from jax.experimental import buffer_callback

        self.stage = buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self):
        import jax

        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available: the host has no streams")


class Callbacks:
    """The functions that programs call, by number."""

    def __init__(self, library: ffi.Library):
        self._library = library
        self._lock = threading.RLock()  # Collecting garbage may unload a program anywhere.
        # A program of another process, which was saved, must not find a function by its number.
        self._numbers = itertools.count(secrets.randbits(46) << 16)
        self._functions = weakref.WeakValueDictionary()
        self._loaded = {}  # By the states that programs hold.
        self._used = False
        # Kept: programs have their addresses.
        self._instantiate = frames.Handler(self._load)
        self._execute = frames.Handler(self._run)
        self._deleter = ctypes.CFUNCTYPE(None, c_void_p)(self._unload)
        self._type_id = c_int64(library.register_type(TARGET, 0, ctypes.cast(self._deleter, c_void_p).value))
        self._execute_in_place = frames.Handler(self._run_in_place)
        for target, handler in ((TARGET, self._execute), (IN_PLACE_TARGET, self._execute_in_place)):
            library.register_handler(target, {"instantiate": self._instantiate.address, "execute": handler.address})
        atexit.register(self._at_exit)

    def add(self, function) -> int:
        """A number for the function, as long as somebody keeps it."""
        with self._lock:
            number = next(self._numbers)
            self._functions[number] = function
        self._used = True
        return number

    def _at_exit(self) -> None:
        """Ends the calls of Python, whose interpreter ends."""
        if self._used:
            _finish_work()
        self._library.register_type(TARGET, self._type_id.value, None)

    # --- Called by programs, on threads of devices

    def _load(self, frame: frames.Frame):
        number = frame.integer("index")
        with self._lock:
            function = self._functions.get(number)
            if function is None:
                return frame.error(frames.UNAVAILABLE, f"there is no Python function {number} in this process")
            state = next(self._numbers)
            self._loaded[state] = function
        return frame.set_state(self._type_id, state)

    def _unload(self, state) -> None:
        with self._lock:
            self._loaded.pop(state, None)

    def _run(self, frame: frames.Frame):
        function = self._functions[frame.integer("index")]
        # Copies, which the function may keep.
        values = function(*[each.copy() for each in frame.arguments()])
        for result, value in zip(frame.results(), values, strict=True):
            result[...] = value
        return None

    def _run_in_place(self, frame: frames.Frame):
        function = self._functions[frame.integer("index")]
        buffers = [HostBuffer(each, False) for each in frame.arguments()]
        buffers += [HostBuffer(each, True) for each in frame.results()]
        try:
            function(HostContext(), *buffers)
        finally:
            for each in buffers:
                each.end()
        return None


def _finish_work() -> None:
    """Waits for what the devices have to do."""
    import jax
    from jax._src import dispatch, xla_bridge

    try:
        dispatch.runtime_tokens.block_until_ready()
    except Exception:  # JAX has logged what a callback raised, and would raise it again at exit, twice.
        dispatch.runtime_tokens.clear()
    try:
        def tenon_last_program():
            return jax.numpy.zeros(())

        backends = [xla_bridge._backends[name] for name in ffi.PLATFORMS if name in xla_bridge._backends]
        for device in [each for backend in backends for each in backend.devices()]:
            jax.block_until_ready(jax.jit(tenon_last_program, device=device)())
    except Exception:  # There is no backend, or its device is lost.
        pass


# --- Lowering


class _Checked:
    """A callback of JAX's, whose results are checked against what the program expects.

    It is called with 64-bit types if the program was made with them, whatever the calling thread has.
    """

    def __init__(self, callback, avals):
        from jax._src import config

        self._callback = callback
        self._avals = avals
        self._x64 = config.enable_x64.value

    def __call__(self, *arguments):
        from jax._src import config

        with config.enable_x64(self._x64):
            return self._call(*arguments)

    def _call(self, *arguments):
        import numpy as np
        from jax._src import dtypes

        given = self._callback(*arguments)
        if len(given) != len(self._avals):
            raise RuntimeError("Mismatched number of outputs from callback. Expected: "
                               f"{len(self._avals)}, Actual: {len(given)}")
        values = [dtypes.canonicalize_value(np.asarray(each)) for each in given]
        for i, (value, aval) in enumerate(zip(values, self._avals)):
            if value.shape != aval.shape:
                raise RuntimeError(f"Incorrect output shape for return value #{i}: Expected: {aval.shape}, "
                                   f"Actual: {value.shape}")
            if value.dtype != aval.dtype:
                raise RuntimeError(f"Incorrect output dtype for return value #{i}: Expected: {aval.dtype}, "
                                   f"Actual: {value.dtype}")
        return values


def install(callbacks: Callbacks) -> None:
    """Lowers JAX's callbacks for the platform."""
    import dataclasses
    import inspect

    import numpy as np
    from jax._src import callback as jax_callback
    from jax._src import checkify, core, debugging, sharding_impls
    from jax._src import ffi as jax_ffi
    from jax._src.interpreters import mlir

    by_jax = jax_callback.emit_python_callback

    def emit(ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect, returns_token=True,
             partitioned=False, sharding=None):
        if not set(ctx.module_context.platforms).issubset(ffi.PLATFORMS):
            return by_jax(ctx, callback, token, operands, operand_avals, result_avals,
                          has_side_effect=has_side_effect, returns_token=returns_token, partitioned=partitioned,
                          sharding=sharding)
        checked = _Checked(callback, result_avals)
        number = callbacks.add(checked)
        # JAX keeps it with the program, and keeps the program out of caches on disk.
        ctx.module_context.add_host_callback(checked)
        tokens = [core.abstract_token] if token else []
        ctx = dataclasses.replace(ctx, avals_in=[*tokens, *operand_avals], avals_out=[*tokens, *result_avals])
        operands = [token, *operands] if token else list(operands)
        call = jax_ffi.build_ffi_lowering_function(TARGET, has_side_effect=has_side_effect)
        op = call(ctx, *operands, index=np.int64(number))
        if sharding is not None:
            if token and result_avals and isinstance(sharding, sharding_impls.SdyArrayList):
                first = sharding.shardings[0]
                of_token = sharding_impls.SdyArray(mesh_shape=(), dim_shardings=(),
                                                   logical_device_ids=first.logical_device_ids)
                sharding = sharding_impls.SdyArrayList((of_token, *sharding.shardings))
            if len(inspect.signature(mlir.set_sharding).parameters) == 2:  # JAX 0.10.0.
                mlir.set_sharding(op, sharding)
            else:
                mlir.set_sharding(ctx.module_context, op, sharding)
        results = list(op.results)
        if token:
            token, *results = results
        return results, token, checked

    jax_callback.emit_python_callback = emit
    mlir.register_lowering(debugging.debug_callback_p, debugging.debug_callback_lowering, platform=ffi.PLATFORM)
    mlir.register_lowering(debugging.debug_print_p, debugging.debug_print_lowering_rule, platform=ffi.PLATFORM)
    mlir.register_lowering(checkify.check_p, checkify.check_lowering_rule, platform=ffi.PLATFORM)
    _install_in_place(callbacks)


def _install_in_place(callbacks: Callbacks) -> None:
    import numpy as np
    from jax._src import buffer_callback, tree_util, util
    from jax._src import ffi as jax_ffi
    from jax._src.interpreters import mlir

    def lower(ctx, *operands, callback, in_tree, out_tree, has_side_effect, input_output_aliases, **_):
        def in_place(context, *arrays):
            given, results = util.split_list(arrays, [in_tree.num_leaves])
            positional, named = tree_util.tree_unflatten(in_tree, given)
            if callback(context, tree_util.tree_unflatten(out_tree, results), *positional, **named) is not None:
                raise ValueError("buffer_callback callback must not return any values.")

        number = callbacks.add(in_place)
        ctx.module_context.add_host_callback(in_place)
        rule = jax_ffi.ffi_lowering(IN_PLACE_TARGET, has_side_effect=has_side_effect,
                                    operand_output_aliases=dict(input_output_aliases))
        return rule(ctx, *operands, index=np.int64(number))

    mlir.register_lowering(buffer_callback.buffer_callback_p, lower, platform=ffi.PLATFORM)
