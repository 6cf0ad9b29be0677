"""The extension module tenon_torch._device: PyTorch's C++ API, so that a wheel fits one minor version of PyTorch."""

import pathlib

import torch
from setuptools import Extension, setup

TORCH = pathlib.Path(torch.__file__).parent

setup(ext_modules=[Extension(
    "tenon_torch._device",
    sources=["src/device.cpp", "src/plans.cpp"],
    include_dirs=[str(TORCH / "include"), str(TORCH / "include/torch/csrc/api/include")],
    library_dirs=[str(TORCH / "lib")],
    libraries=["torch", "torch_cpu", "torch_python", "c10"],
    extra_compile_args=["-std=c++20", "-O1", "-g0", "-fvisibility=hidden", "-Wall"],
    extra_link_args=["-Wl,-s", "-Wl,-rpath,$ORIGIN/../torch/lib"],
    language="c++")])
