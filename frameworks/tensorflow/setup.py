"""The library tenon_tf/_device….so, which TensorFlow loads: it calls TensorFlow's C++ API, so that a wheel fits one version of
TensorFlow. Without it the rest of the package works."""

import importlib.metadata
import importlib.util
import pathlib

from setuptools import Extension, setup

TENSORFLOW = pathlib.Path(importlib.util.find_spec("tensorflow").submodule_search_locations[0])


def version() -> str:
    for name in ("tensorflow-cpu", "tensorflow"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    raise SystemExit("setup.py: TensorFlow is not installed")


setup(ext_modules=[Extension(
    "tenon_tf._device",
    sources=["src/device.cpp"],
    include_dirs=[str(TENSORFLOW / "include")],
    define_macros=[("TENON_TF_VERSION", f'"{version()}"')],
    extra_compile_args=["-std=c++17", "-O1", "-g0", "-fvisibility=hidden", "-Wall"],
    extra_link_args=[f"-L{TENSORFLOW}", "-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2", "-Wl,-s",
                     "-Wl,-rpath,$ORIGIN/../tensorflow"],
    language="c++")])
