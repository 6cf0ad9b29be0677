"""`torch.device("tenon")`: tensors that live on a device of Tenon.

    import torch

    model = model.to("tenon")
    y = model(x.to("tenon"))                       # eager: an op at a time, as programs that are kept
    model = torch.compile(model, backend="tenon")  # its weights stay on the device between calls

PyTorch registers the device when it is imported, by the package's entry point. TENON_DEVICE says which device of Tenon it is.
A package for one device gives it a name of its own (`naming`).
"""

import contextlib
import functools
import sys
import types
import warnings

import torch
from torch._C._dynamo import eval_frame

_started = False


def start() -> None:
    """Registers the device with PyTorch; once is enough. Called by `import torch`."""
    global _started
    if _started:
        return
    _started = True
    try:
        from .. import _device
    except ImportError as error:
        warnings.warn(f"torch.device(\"tenon\") is missing: {error}", stacklevel=2)
        return
    built, here = (".".join(version.split(".")[:2]) for version in (_device.torch_version, torch.__version__))
    if built != here:
        warnings.warn(f"torch.device(\"tenon\") was built for PyTorch {built}, not {here}: install tenon-torch for it", stacklevel=2)
        return
    from .naming import chosen

    try:
        name = chosen().name
    except ImportError as error:
        warnings.warn(f"there is no device of Tenon: {error}", stacklevel=2)
        return
    torch.utils.rename_privateuse1_backend(name)
    _device.start(1)
    torch._register_device_module(name, _module(_device, name))
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _register_kernels()


# Kept: the registrations end with them.
_aten = torch.library.Library("aten", "IMPL")
_everything = torch.library.Library("_", "IMPL")


def later(name: str, *given):
    """A kernel of `eager`, which is imported when it is first called: it takes a second."""

    def kernel(*arguments, **words):
        # Within a function that is compiled Dynamo would trace this, with tensors that it made up.
        tracing = eval_frame.set_eval_frame(None)
        try:
            from . import eager

            return getattr(eager, name)(*given, *arguments, **words)
        finally:
            eval_frame.set_eval_frame(tracing)

    # Nor is the frame of `kernel` itself for Dynamo; those that it calls are decided by the callback.
    eval_frame.set_code_exec_strategy(kernel.__code__, eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT))
    return kernel


@functools.cache
def taken_ops() -> frozenset[str]:
    """Ops that are run as they are, where PyTorch would make them of their form with `out`."""
    from .. import _device

    return frozenset(_device.take_ops())


def _register_kernels() -> None:
    for name in ("_copy_from_and_resize", "_local_scalar_dense", "equal"):
        _aten.impl(name, later(name.removeprefix("_")), "PrivateUse1")
    for name in ("_copy_from", "_copy_from_and_resize"):  # They resolve lazy bits themselves: to resolve one is a copy.
        for key in ("Conjugate", "Negative"):
            _aten.impl(name, torch.library.fallthrough_kernel, key)
    # All others are plans.cpp's, which hands them on by a key that no tensor has. PyTorch has kernels of these for every device.
    for name in ("convolution_overrideable", "convolution_backward_overrideable", "conj_physical_", "mode", "mode.values",
                 *taken_ops()):
        base, _, overload = name.partition(".")
        _aten.impl(name, later("first_call", getattr(getattr(torch.ops.aten, base), overload or "default")), "PrivateUse2")
    _aten.impl("_copy_from", later("first_copy"), "PrivateUse2")
    _everything.fallback(later("first_call"), "PrivateUse2")


def _module(native, name: str) -> types.ModuleType:
    """torch.tenon: what PyTorch asks of a device's module."""
    module = types.ModuleType(f"torch.{name}", "The device of Tenon.")

    def synchronize(device=None) -> None:
        """Waits until the device has done its work."""
        from .storage import synchronize as wait

        wait()

    def get_device_name(device=None) -> str:
        """The name of Tenon's device and its kind."""
        from .storage import client, device_name

        return f"{device_name()}: {client().devices[0].kind}"

    def set_device(device) -> None:
        native.set_device(device if isinstance(device, int) else torch.device(device).index or 0)

    @contextlib.contextmanager
    def device(device):
        """Within it this device is the current one."""
        before = native.current_device()
        set_device(device)
        try:
            yield
        finally:
            native.set_device(before)

    def nothing(*_, **__) -> None:
        """Seeds are drawn from PyTorch's generator of the CPU."""

    functions = {"synchronize": synchronize, "get_device_name": get_device_name, "set_device": set_device, "device": device,
                 "is_available": lambda: True, "is_initialized": lambda: True, "_is_in_bad_fork": lambda: False, "device_count": lambda: 1,
                 "current_device": native.current_device, "manual_seed": nothing, "manual_seed_all": nothing, "init": nothing,
                 "empty_cache": nothing, "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16],
                 "get_rng_state": lambda device=None: torch.get_rng_state(),
                 "set_rng_state": lambda state, device=None: torch.set_rng_state(state)}
    for name, function in functions.items():
        setattr(module, name, function)
    sys.modules[module.__name__] = module
    return module
