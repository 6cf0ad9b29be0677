"""The extension module tenon._native: nanobind over the PJRT C API, whose headers lie two folders up."""

import os
import pathlib

import nanobind
from setuptools import Extension, setup

HERE = pathlib.Path(__file__).resolve().parent
ROOT = os.environ.get("TENON_SOURCE", str(HERE.parents[1]))
NANOBIND = pathlib.Path(nanobind.source_dir())

setup(ext_modules=[Extension(
    "tenon._native",
    sources=sorted(str(file.relative_to(HERE)) for file in (HERE / "src").glob("*.cpp")),
    include_dirs=[ROOT, nanobind.include_dir(), str(NANOBIND), str(NANOBIND.parent / "ext/robin_map/include")],
    define_macros=[("NB_COMPACT_ASSERTIONS", None), ("NDEBUG", None)],
    extra_compile_args=["-std=c++20", "-O2", "-g0", "-fvisibility=hidden", "-fno-strict-aliasing", "-ffunction-sections",
                        "-fdata-sections", "-Wall", "-Wextra", "-Wno-missing-field-initializers"],
    extra_link_args=["-Wl,--gc-sections", "-Wl,-s", "-ldl"],
    language="c++")])
