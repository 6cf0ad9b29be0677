"""PyTorch on any device of Tenon.

    import torch

    model = model.to("tenon")                                              # torch.device("tenon"): see tenon_torch.device

    model = torch.compile(model, backend="tenon")                          # training too
    model = torch.compile(model, backend="tenon", options={"device": "template", "fallback": "error"})

    import tenon_torch
    print(tenon_torch.counters)                                            # graphs, programs, ops left to PyTorch
    tenon_torch.export(torch.export.export(model, (x,)), "model.mlir")     # for `tenon run`

The package need not be imported for torch.compile: PyTorch finds the backend by its entry point.
"""

import importlib

import torch  # noqa: F401  First: it loads tenon_torch.device, which could not be loaded within its own import.

_PLACES = {"Options": "options", "TABLE": "table", "Unsupported": "table", "backend": "compiler", "counters": "counting", "export": "exporting"}
__all__ = sorted(_PLACES)
__version__ = "0.1.0"


def __getattr__(name: str):
    # `import torch` imports this package for the device (tenon_torch.device), and the compiler's modules take seconds.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_PLACES[name]}", __name__)
    globals().update({each: getattr(module, each) for each, place in _PLACES.items() if place == _PLACES[name]})
    return globals()[name]
