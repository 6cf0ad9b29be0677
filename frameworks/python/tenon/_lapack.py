"""LAPACK for the backend `cpu`: that of PyTorch where it is imported, else the OpenBLAS in NumPy's wheel."""

import os
import pathlib
import sys

VARIABLE = "TENON_LAPACK"


def _of_torch() -> pathlib.Path | None:
    torch = sys.modules.get("torch")
    file = getattr(torch, "__file__", None)
    has_lapack = file and getattr(getattr(torch, "_C", None), "has_lapack", False)
    return pathlib.Path(file).parent / "lib/libtorch_cpu.so" if has_lapack else None


def _of_numpy() -> pathlib.Path | None:
    import numpy

    return next(pathlib.Path(numpy.__file__).parent.with_name("numpy.libs").glob("libscipy_openblas*.so*"), None)


def name_library() -> None:
    """Names the library to the backend, unless the user has: in the environment, where a setting of Tenon is."""
    if VARIABLE in os.environ:
        return
    for path in (_of_torch(), _of_numpy()):
        if path is not None and path.exists():
            os.environ[VARIABLE] = str(path)
            return
