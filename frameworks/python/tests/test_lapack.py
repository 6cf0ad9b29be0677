"""Eigenvalues and singular values: on `cpu` by the LAPACK that the package names, on other devices, and without one, by Tenon's algorithms."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tenon

TYPES = {np.float32: ("f32", "f32"), np.float64: ("f64", "f64"), np.complex64: ("complex<f32>", "f32"), np.complex128: ("complex<f64>", "f64")}


def tensor(shape, element: str) -> str:
    return f"tensor<{''.join(f'{each}x' for each in shape)}{element}>"


def program(name: str, argument: str, results: list[str], configuration: str = "") -> str:
    types = ", ".join(results)
    names = ", ".join(f"%0#{i}" for i in range(len(results)))
    return f"""func.func @main(%x: {argument}) -> ({types}) {{
  %0:{len(results)} = stablehlo.custom_call @{name}(%x) {{backend_config = "{configuration}"}} : ({argument}) -> ({types})
  return {names} : {types}
}}"""


def calls_lapack(executable) -> bool:
    """By the name of a function that the code calls."""
    return b"tenon_lapack" in executable.serialize()


def matrices(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape) if np.issubdtype(dtype, np.complexfloating) else x).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def close(found, expected, dtype):
    np.testing.assert_allclose(found, expected, rtol=0, atol=200 * np.finfo(dtype).eps * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("batch", [(), (20,)], ids=str)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvalues(dtype, lower, batch):
    element, real = TYPES[dtype]
    shape = (*batch, 24, 24)
    executable = tenon.compile(program("Eigh", tensor(shape, element), [tensor(shape, element), tensor(shape[:-1], real)], f"{int(lower)},1,100,1e-6"), device="cpu")
    assert calls_lapack(executable)
    x = matrices(shape, dtype)
    triangle = np.tril(x, -1) if lower else np.triu(x, 1)
    whole = triangle + adjoint(triangle) + np.eye(24) * np.diagonal(x.real, axis1=-2, axis2=-1)[..., None]
    x = np.where((np.tril if lower else np.triu)(np.ones(shape)) > 0, x, np.array(np.nan, dtype))  # The other triangle is not read.
    vectors, values = (np.asarray(each) for each in executable(x))
    close(values, np.linalg.eigvalsh(whole), dtype)
    close(whole @ vectors, vectors * values[..., None, :], dtype)
    close(adjoint(vectors) @ vectors, np.broadcast_to(np.eye(24), shape), dtype)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (20, 16, 17)], ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_singular_values(dtype, shape, full):
    element, real = TYPES[dtype]
    *batch, rows, columns = shape
    least = min(rows, columns)
    left, right = (rows, columns) if full else (least, least)
    types = [tensor((*batch, rows, left), element), tensor((*batch, least), real), tensor((*batch, right, columns), element)]
    executable = tenon.compile(program("tenon.svd", tensor(shape, element), types), device="cpu")
    assert calls_lapack(executable)
    x = matrices(shape, dtype)
    u, s, vh = (np.asarray(each) for each in executable(x))
    close(s, np.linalg.svd(x, compute_uv=False), dtype)
    close((u[..., :least] * s[..., None, :]) @ vh[..., :least, :], x, dtype)
    close(adjoint(u) @ u, np.broadcast_to(np.eye(left), (*batch, left, left)), dtype)
    close(vh @ adjoint(vh), np.broadcast_to(np.eye(right), (*batch, right, right)), dtype)


def test_a_matrix_that_is_not_finite_has_nan_alone():
    x = matrices((2, 20, 20), np.float32)
    x[0, 3, 2] = np.nan
    types = [tensor((2, 20, 20), "f32"), tensor((2, 20), "f32"), tensor((2, 20, 20), "f32")]
    for name, results in (("Eigh", types[:2]), ("tenon.svd", types)):
        for found in tenon.compile(program(name, tensor((2, 20, 20), "f32"), results), device="cpu")(x):
            assert np.isnan(np.asarray(found)[0]).all() and np.isfinite(np.asarray(found)[1]).all()


def test_results_of_other_shapes_are_refused():
    for results in ([tensor((2,), "f32"), tensor((1,), "f32")], [tensor((32, 32), "f32"), tensor((32,), "f64")]):
        with pytest.raises(tenon.Error, match="custom_call @Eigh: results are"):
            tenon.compile(program("Eigh", tensor((32, 32), "f32"), results), device="cpu")
    with pytest.raises(tenon.Error, match="custom_call @tenon.svd: results are"):
        tenon.compile(program("tenon.svd", tensor((32, 32), "f32"), [tensor((2,), "i32"), tensor((1,), "i8"), tensor((1,), "f64")]), device="cpu")


def test_a_library_that_is_not_there_is_named(tmp_path):
    """By the compilation; where code that was kept needs none, by the execution."""
    script = f"""
import numpy as np, tenon
try:
    executable = tenon.compile({program("Eigh", tensor((20, 20), "f32"), [tensor((20, 20), "f32"), tensor((20,), "f32")])!r}, device="cpu")
    print("compiled")
    executable(np.eye(20, dtype=np.float32))
    print("executed")
except tenon.Error as error:
    print(error)
"""
    found = []
    for layers, library in (("", "/nowhere.so"), ("cache", None), ("cache", "/nowhere.so")):
        environment = {**os.environ, "TENON_LAYERS": layers, "TENON_CACHE": str(tmp_path)} | ({"TENON_LAPACK": library} if library else {})
        found.append(subprocess.run([sys.executable, "-c", script], check=True, env=environment, text=True, capture_output=True).stdout.splitlines())
    without_code, with_library, with_code = found
    assert len(without_code) == 1 and "TENON_LAPACK is /nowhere.so" in without_code[0], without_code
    assert with_library == ["compiled", "executed"]
    assert with_code[0] == "compiled" and "TENON_LAPACK is /nowhere.so" in with_code[1], with_code


def test_without_a_library(tmp_path):
    """The setting decides; a program that was compiled where there is a library is compiled again where there is none."""
    types = [tensor((20, 20), "f32"), tensor((20,), "f32")]
    x = matrices((20, 20), np.float32)
    x = x + x.T
    (tmp_path / "p.mlir").write_text(program("Eigh", tensor((20, 20), "f32"), types))
    saved = tenon.compile((tmp_path / "p.mlir").read_text(), device="cpu").serialize()
    (tmp_path / "saved").write_bytes(saved)
    np.save(tmp_path / "x.npy", x)
    script = f"""
import numpy as np, tenon
x = np.load({str(tmp_path / "x.npy")!r})
executable = tenon.compile(open({str(tmp_path / "p.mlir")!r}).read(), device="cpu")
assert b"tenon_lapack" not in executable.serialize()
values = np.linalg.eigvalsh(x)
np.testing.assert_allclose(executable(x)[1], values, atol=1e-4)
loaded = tenon.client("cpu").load(open({str(tmp_path / "saved")!r}, "rb").read())
np.testing.assert_allclose(loaded(x)[1], values, atol=1e-4)
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "TENON_LAPACK": "none"})
