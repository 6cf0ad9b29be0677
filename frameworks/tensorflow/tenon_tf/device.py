"""TensorFlow's device "/device:TENON:0": variables and tensors on a device of Tenon, whose functions with jit_compile=True run there.

    import tenon_tf
    tenon_tf.device.register("cpu")                 # before TensorFlow runs anything

    with tf.device("/device:TENON:0"):
        model = ...
        model.compile("adam", loss, jit_compile=True)
        model.fit(x, y)

TensorFlow calls Tenon's PJRT plug-in itself. Ops outside of compiled functions run on the CPU, as TensorFlow's soft placement has it.
"""

import ctypes
import dataclasses
import functools
import os
import pathlib
import re

NAME = "/device:TENON:0"
_FLAG = "--tf_xla_use_device_api"
_registered: str | None = None


@dataclasses.dataclass(frozen=True)
class Counts:
    """How many programs were compiled for the device, and how many executions began."""

    programs: int
    executions: int


def _path() -> pathlib.Path:
    for path in pathlib.Path(__file__).parent.glob("_device*.so"):
        return path
    raise ImportError(f"tenon_tf: {pathlib.Path(__file__).parent} has no _device….so: frameworks/tensorflow/make-wheel makes the package with it")


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_path()))
    library.tenon_tf_version.restype = ctypes.c_char_p
    library.tenon_tf_configure.restype = ctypes.c_char_p
    library.tenon_tf_configure.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    return library


def _made_for() -> str:
    """The version of TensorFlow that the library is made for, read without loading it: with another one it might not load."""
    found = re.search(rb"tenon_tf made for TensorFlow ([\w.+-]+)", _path().read_bytes())
    return found[1].decode() if found else "unknown"


def _set_flag() -> None:
    flags = os.environ.get("TF_XLA_FLAGS", "")
    os.environ["TF_XLA_FLAGS"] = f"{flags} {_FLAG}=true".strip()  # The last one counts.


def register(device: str | None = None, *, strict: bool = False, native_math: bool = False, **options: bool | str) -> None:
    """Adds the device to TensorFlow, once in a process, before TensorFlow runs its first op.

    Args:
        device: a device of Tenon, as `tenon.Client` takes it (TENON_DEVICE, else "cpu").
        strict: a program is an error, if the device cannot run every step, instead of steps on the host.
        native_math: the device's own exp, log and the like, which may be less accurate.
        options: further compiler options of the plug-in, by name.

    Raises: ImportError for a version of TensorFlow that this package is not made for; RuntimeError, if TensorFlow has run already, or
        another device is registered; tenon.Error, if there is no such device.
    """
    global _registered
    device = device or os.environ.get("TENON_DEVICE") or "cpu"
    if _registered is not None:
        if _registered != device:
            raise RuntimeError(f"tenon: the device {_registered!r} is registered in this process; TensorFlow takes no second one ({device!r})")
        return
    import tensorflow as tf

    made_for = _made_for()
    if tf.__version__ != made_for:
        raise ImportError(f"tenon_tf: the device is made for TensorFlow {made_for}, of which it calls internals; {tf.__version__} is installed. "
                          "tenon_tf.function and tenon_tf.prepare need no such match")
    from tensorflow.python.eager import context

    if context.context()._initialized:
        raise RuntimeError("tenon: TensorFlow has run its first op and takes no further devices; call tenon_tf.device.register() before that")
    _set_flag()  # Read once, when XLA is first used.
    import tenon
    from tenon._client import _library as plugin
    from tenon._options import compile_options

    tenon.Client(device)  # Raises here what would end the process later; closed at once: the device is TensorFlow's.
    library = _library()
    flags = options | {name: True for name, wanted in (("tenon_strict", strict), ("tenon_native_math", native_math)) if wanted}
    fields = compile_options(0, flags)[len(compile_options(0, {})):]  # TensorFlow has the rest.
    failure = library.tenon_tf_configure(plugin().encode(), device.encode(), fields, len(fields))
    if failure:
        raise RuntimeError(f"tenon: {failure.decode()}")
    from tensorflow.python.framework import load_library

    load_library.load_pluggable_device_library(str(_path()))
    _registered = device
    if not tf.config.list_logical_devices("TENON"):
        raise RuntimeError("tenon: TensorFlow did not make the device")
    _try()
    _replace_updates()


def _replace_updates() -> None:
    """`assign_add` and `assign_sub` of variables of the device outside of functions: TensorFlow's kernel reads memory of the host."""
    import tensorflow as tf
    from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, ResourceVariable

    def replaced(original, sign):
        @functools.wraps(original)
        def update(self, delta, use_locking=None, name=None, read_value=True):
            if tf.executing_eagerly() and self.device.endswith(NAME.removeprefix("/device:")):
                delta = tf.convert_to_tensor(delta, self.dtype)
                return self.assign(self.read_value() + (delta if sign > 0 else -delta), use_locking, name, read_value)
            return original(self, delta, use_locking, name, read_value)

        return update

    for kind in (BaseResourceVariable, ResourceVariable):
        for name, sign in (("assign_add", 1), ("assign_sub", -1)):
            if name in vars(kind):
                setattr(kind, name, replaced(vars(kind)[name], sign))


def _try() -> None:
    """Runs a program on the device, which fails if TensorFlow read its flags before they had that of the device."""
    import tensorflow as tf

    try:
        with tf.device(NAME):
            tf.function(lambda x: x + 1, jit_compile=True)(tf.constant(0))
    except tf.errors.InvalidArgumentError as error:
        if "No JIT device" not in error.message:
            raise
        raise RuntimeError(f"tenon: TensorFlow has used XLA before the device was registered; call tenon_tf.device.register() before that, or set "
                           f"TF_XLA_FLAGS={_FLAG}=true ({error.message})") from error


def counts() -> Counts:
    """The work of the device in this process."""
    if _registered is None:
        return Counts(0, 0)
    programs, executions = ctypes.c_int64(), ctypes.c_int64()
    _library().tenon_tf_counts(ctypes.byref(programs), ctypes.byref(executions))
    return Counts(programs.value, executions.value)
