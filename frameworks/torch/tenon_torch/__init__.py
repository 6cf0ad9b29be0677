"""PyTorch on any device of Tenon.

    import torch

    model = torch.compile(model, backend="tenon")                          # training too
    model = torch.compile(model, backend="tenon", options={"device": "template", "fallback": "error"})

    import tenon_torch
    print(tenon_torch.counters)                                            # graphs, programs, ops left to PyTorch
    tenon_torch.export(torch.export.export(model, (x,)), "model.mlir")     # for `tenon run`

The package need not be imported for torch.compile: PyTorch finds the backend by its entry point.
"""

from .backend import backend
from .counters import counters
from .export import export
from .options import Options
from .table import TABLE, Unsupported

__all__ = ["Options", "TABLE", "Unsupported", "backend", "counters", "export"]
__version__ = "0.1.0"
