"""ONNX Runtime on `template`: the plug-in in this package, opened by the execution provider of the package tenon-ort.

    session = ort_template.session("model.onnx")
    session.get_providers()                          # ['template', 'CPUExecutionProvider']
"""

import pathlib

NAME = "template"
PLUGIN = str(pathlib.Path(__file__).resolve().parent / "libtemplate.so")


def session_options(options=None, **settings):
    """`options`, an onnxruntime.SessionOptions, with the provider added; `settings` are those of tenon_ort."""
    import tenon_ort

    return tenon_ort.session_options(PLUGIN, options, name=NAME, **settings)


def session(model, options=None, **settings):
    """An onnxruntime.InferenceSession on the device; ONNX Runtime's CPU runs what the provider does not take."""
    import tenon_ort

    return tenon_ort.session(model, PLUGIN, options, name=NAME, **settings)
