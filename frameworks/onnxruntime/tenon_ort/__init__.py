"""Tenon's execution provider for ONNX Runtime: models run on devices that Tenon has a backend for.

    import tenon_ort

    session = tenon_ort.session("model.onnx", device="cpu")
    session.run(None, {"x": x})

`session` returns an onnxruntime.InferenceSession. What the provider does not take, ONNX Runtime's CPU provider runs.
"""

import os
import pathlib
import threading

import onnxruntime

__all__ = ["library", "memory", "provider", "session", "session_options"]
__version__ = "0.1.0"

_lock = threading.Lock()
_registered: dict[str, onnxruntime.OrtEpDevice] = {}
Option = bool | int | str | os.PathLike


def library() -> str:
    """The provider's library, which ONNX Runtime loads; with libtenon_pjrt.so beside it."""
    return os.environ.get("TENON_ORT_LIBRARY") or str(pathlib.Path(__file__).with_name("libtenon_ort.so"))


def _name_of(device: str | None) -> str:
    """A name of its own for each device, since a registration has the memory of one."""
    if device is None or device == (os.environ.get("TENON_DEVICE") or "cpu"):
        return "tenon"
    return "tenon-" + (pathlib.PurePath(device).stem if "/" in device or device.endswith(".so") else device)


def provider(name: str = "tenon", device: str | None = None) -> onnxruntime.OrtEpDevice:
    """Registers the provider under a name, unless it is already, and returns its device, for `SessionOptions.add_provider_for_devices`.

    Without `device` the name tells the default device of its sessions: `tenon` is that of TENON_DEVICE, or the CPU; `tenon-template` is
    `template`. The device decides which memory `memory` names.
    """
    with _lock:
        if name not in _registered:
            before = {each.ep_name: each for each in onnxruntime.get_ep_devices()}
            words = name if device is None else f"{name}={device}"
            onnxruntime.register_execution_provider_library(words, library())
            found = [each for each in onnxruntime.get_ep_devices() if each.ep_name not in before]
            if not found:  # Other words for a provider that is there already.
                onnxruntime.unregister_execution_provider_library(words)
                raise ValueError(f"tenon: {name!r} is another name of a provider that is registered: there are {', '.join(sorted(before))}")
            _registered[name] = found[0]
        return _registered[name]


def memory(device: str | None = None, *, name: str | None = None) -> dict[str, str | int]:
    """The memory of a device, as OrtValue and IOBinding name it: arrays there stay on the device between runs.

        x = onnxruntime.OrtValue.ortvalue_from_numpy(array, **tenon_ort.memory("template"))
        binding.bind_output("y", **tenon_ort.memory("template"))

    That of the host, if the device reads and writes arrays there.
    """
    found = provider(name or _name_of(device), device).memory_info(onnxruntime.OrtDeviceMemoryType.DEFAULT)
    return {"device_type": "cpu", "device_id": 0} if found is None else {"device_type": "gpu", "device_id": found.device_id}


def session_options(device: str | None = None, options: onnxruntime.SessionOptions | None = None, *, name: str | None = None,
                    **settings: Option) -> onnxruntime.SessionOptions:
    """Adds the provider to the options of a session.

    Args:
        device: as TENON_DEVICE names it: `cpu`, `template:1`, the path of a plug-in.
        options: those to add to; new ones without them.
        name: the name under which the provider is registered; without it `tenon`, or `tenon-DEVICE` for another device than the default.
        settings: the provider's options (docs/onnxruntime.md): `strict=True`, `cache_size=4` …
    """
    made = onnxruntime.SessionOptions() if options is None else options
    given = {key: str(int(value)) if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else str(value)
             for key, value in settings.items()}
    if device is not None:
        given["device"] = device
    made.add_provider_for_devices([provider(name or _name_of(device), device)], given)
    return made


def session(model: str | bytes | os.PathLike, device: str | None = None, options: onnxruntime.SessionOptions | None = None, *,
            name: str | None = None, **settings: Option) -> onnxruntime.InferenceSession:
    """A session of a model with the provider; the arguments are those of `session_options`."""
    return onnxruntime.InferenceSession(model, session_options(device, options, name=name, **settings))
