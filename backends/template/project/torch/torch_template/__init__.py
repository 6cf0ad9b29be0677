"""PyTorch on `template`: the plug-in in this package, opened by the package tenon-torch.

    model = torch.compile(model, backend="template")
    model = model.to("template")
"""

import pathlib

PLUGIN = str(pathlib.Path(__file__).resolve().parent / "libtemplate.so")


def backend(module, example_inputs, *, options=None, mode=None):
    """The backend of torch.compile; `options` are those of tenon_torch."""
    import tenon_torch

    return tenon_torch.backend(module, example_inputs, options={"device": PLUGIN, **(options or {})}, mode=mode)
