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

__all__ = ["library", "provider", "session", "session_options"]
__version__ = "0.1.0"

_lock = threading.Lock()
_registered: dict[str, onnxruntime.OrtEpDevice] = {}
Option = bool | int | str | os.PathLike


def library() -> str:
    """The provider's library, which ONNX Runtime loads; with libtenon_pjrt.so beside it."""
    return os.environ.get("TENON_ORT_LIBRARY") or str(pathlib.Path(__file__).with_name("libtenon_ort.so"))


def provider(name: str = "tenon") -> onnxruntime.OrtEpDevice:
    """Registers the provider under a name, unless it is already, and returns its device, for `SessionOptions.add_provider_for_devices`.

    The name tells the default device of its sessions: `tenon` is that of TENON_DEVICE, or the CPU; `tenon-template` is `template`.
    """
    with _lock:
        if name not in _registered:
            before = {device.ep_name: device for device in onnxruntime.get_ep_devices()}
            onnxruntime.register_execution_provider_library(name, library())
            found = [device for device in onnxruntime.get_ep_devices() if device.ep_name not in before]
            if not found:  # Other words for a provider that is there already.
                onnxruntime.unregister_execution_provider_library(name)
                raise ValueError(f"tenon: {name!r} is another name of a provider that is registered: there are {', '.join(sorted(before))}")
            _registered[name] = found[0]
        return _registered[name]


def session_options(device: str | None = None, options: onnxruntime.SessionOptions | None = None, *, name: str = "tenon",
                    **settings: Option) -> onnxruntime.SessionOptions:
    """Adds the provider to the options of a session.

    Args:
        device: as TENON_DEVICE names it: `cpu`, `template:1`, the path of a plug-in.
        options: those to add to; new ones without them.
        name: the name under which the provider is registered.
        settings: the provider's options (docs/onnxruntime.md): `strict=True`, `cache_size=4` …
    """
    made = onnxruntime.SessionOptions() if options is None else options
    given = {key: str(int(value)) if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else str(value)
             for key, value in settings.items()}
    if device is not None:
        given["device"] = device
    made.add_provider_for_devices([provider(name)], given)
    return made


def session(model: str | bytes | os.PathLike, device: str | None = None, options: onnxruntime.SessionOptions | None = None, *,
            name: str = "tenon", **settings: Option) -> onnxruntime.InferenceSession:
    """A session of a model with the provider; the arguments are those of `session_options`."""
    return onnxruntime.InferenceSession(model, session_options(device, options, name=name, **settings))
