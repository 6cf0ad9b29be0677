"""Dense linear algebra against JAX's CPU and NumPy: by LAPACK where the host sees the device's memory, else by
algorithms on the device."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax._src.lax import linalg as lax_linalg

pytestmark = pytest.mark.usefixtures("seen_and_hidden")


def is_seen() -> bool:
    return jax.devices()[0].host_visible == "yes"


def matrix(*shape, dtype=np.float32, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * random.normal(size=shape)
    return x.astype(dtype)


def hermitian(n, dtype=np.float32, batch=(2,)):
    x = matrix(*batch, n, n, dtype=dtype)
    return x + np.conj(np.swapaxes(x, -1, -2))


def steps_of(function, *arguments):
    """(steps on the device, steps on the host) of the compiled program."""
    costs = jax.jit(function).lower(*arguments).compile().cost_analysis()
    return costs["steps"] - costs["steps on the host"], costs["steps on the host"]


def asks_lapack(function, *arguments) -> None:
    """LAPACK is called where the host sees the memory; elsewhere the device does all of it."""
    on_device, on_host = steps_of(function, *arguments)
    assert on_host == (1 if is_seen() else 0), (on_device, on_host)
    assert on_device > 0


def on_cpu(function, *arguments):
    cpu = jax.devices("cpu")[0]
    return jax.jit(function)(*[jax.device_put(each, cpu) for each in arguments])


def close(got, expected, tolerance=2e-5):
    scale = max(1.0, float(np.abs(np.asarray(expected)).max(initial=0)))
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), atol=tolerance * scale, rtol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("n", [1, 5, 9])
def test_eigh(n, dtype):
    x = hermitian(n, dtype)
    w, v = jax.jit(jnp.linalg.eigh)(x)
    close(w, np.linalg.eigvalsh(x))
    v = np.asarray(v)
    close(x @ v, v * np.asarray(w)[:, None, :])
    close(np.conj(np.swapaxes(v, -1, -2)) @ v, np.broadcast_to(np.eye(n), v.shape))
    if n == 9 and dtype == np.float32:
        asks_lapack(jnp.linalg.eigh, x)


def test_eigh_of_one_triangle_and_its_gradient():
    x = matrix(4, 4)
    lower = jnp.linalg.eigvalsh(jnp.asarray(x), UPLO="L", symmetrize_input=False)
    close(lower, np.linalg.eigvalsh(x, UPLO="L"))
    close(jnp.linalg.eigvalsh(jnp.asarray(x), UPLO="U", symmetrize_input=False), np.linalg.eigvalsh(x, UPLO="U"))

    def loss(x):
        return (jnp.linalg.eigvalsh(x) ** 3).sum()

    s = hermitian(4, batch=())
    close(jax.grad(loss)(s), on_cpu(jax.grad(loss), s), 1e-4)
    for each in jnp.linalg.eigh(jnp.full((3, 3), jnp.nan)):
        assert np.isnan(np.asarray(each)).all()


@pytest.mark.parametrize("scale", [1e-30, 1e19])
def test_eigh_of_tiny_and_huge_numbers(scale):
    x = np.array([[1, 2], [2, 1]], np.float32)
    close(np.asarray(jnp.linalg.eigvalsh(x * np.float32(scale))) / scale, [-1, 3])


def test_factors_without_reflectors():
    from jax.lax import linalg

    close(jax.jit(linalg.householder_product)(matrix(3, 2), np.zeros((0,), np.float32)), np.eye(3, 2))
    close(jax.scipy.linalg.hessenberg(matrix(1, 1), calc_q=True)[1], np.eye(1))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (2, 5, 5), (3, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_qr(shape, dtype):
    x = matrix(*shape, dtype=dtype)
    for mode in ("reduced", "complete"):
        q, r = jax.jit(lambda x: jnp.linalg.qr(x, mode=mode))(x)
        expected_q, expected_r = np.linalg.qr(x, mode=mode)
        assert q.shape == expected_q.shape and r.shape == expected_r.shape
        close(np.asarray(q) @ np.asarray(r), x)
        close(r, expected_r)  # LAPACK's signs.
        close(q, expected_q)


def test_qr_is_asked_of_the_device():
    x = matrix(6, 4)
    for each, by_lapack in ((x, False), (matrix(140, 3), True)):
        on_device, on_host = steps_of(lambda x: jnp.linalg.qr(x), each)
        assert on_host == (2 if by_lapack and is_seen() else 0)  # geqrf and orgqr.
        assert on_device > 0
    tiny = x * np.float32(1e-30)  # Squares vanish.
    close(np.abs(jnp.linalg.qr(tiny)[1]) * 1e30, np.abs(np.linalg.qr(x)[1]), 1e-4)


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 3)])
def test_svd(shape):
    x = matrix(*shape)
    u, s, vt = jax.jit(lambda x: jnp.linalg.svd(x, full_matrices=False))(x)
    close(s, np.linalg.svd(x, compute_uv=False))
    close(np.asarray(u) * np.asarray(s)[..., None, :] @ np.asarray(vt), x)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("size", [1, 3, 4, 7])
@pytest.mark.parametrize("count", [1, 17])
def test_small_matrices(count, size, dtype):
    """They are computed in kernels on any device, many side by side."""
    x, h = matrix(count, size, size, dtype=dtype), hermitian(size, dtype, batch=(count,))
    right = matrix(count, size, 2, dtype=dtype, seed=1)
    for function, argument in ((jnp.linalg.eigh, h), (jnp.linalg.svd, x), (jnp.linalg.qr, x), (jnp.linalg.inv, x)):
        by_lapack = function is jnp.linalg.inv and size > 5 and count > 1 and is_seen()
        assert (steps_of(function, argument)[1] > 0) == by_lapack, function
    w, v = jax.jit(jnp.linalg.eigh)(h)
    close(w, np.linalg.eigvalsh(h))
    close(h @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None, :], 1e-4)
    u, s, vh = jax.jit(jnp.linalg.svd)(x)
    close(s, np.linalg.svd(x, compute_uv=False))
    close(np.asarray(u) * np.asarray(s)[..., None, :] @ np.asarray(vh), x, 1e-4)
    close(jax.jit(lambda x: jnp.linalg.svd(x, compute_uv=False))(x[:, :2]), np.linalg.svd(x[:, :2], compute_uv=False))
    q, r = jax.jit(jnp.linalg.qr)(x)
    close(np.asarray(q) @ np.asarray(r), x)
    close(jax.jit(jnp.linalg.det)(x), np.linalg.det(x), 1e-4)
    solved = np.asarray(jax.jit(jnp.linalg.solve)(x, right))
    close(x @ solved, right, 1e-4 * max(1, np.abs(solved).max()))
    if dtype == np.float32 and size == 3:
        gradient = jax.grad(lambda x: jax.vmap(lambda x: jnp.linalg.svd(x, compute_uv=False).sum())(x).sum())
        close(gradient(x), on_cpu(gradient, x), 1e-3)


@pytest.mark.parametrize("function", [lambda x, b: jnp.linalg.solve(x, b), lambda x, b: jnp.linalg.eigh(x)[0],
                                      lambda x, b: jnp.linalg.svd(x, compute_uv=False)], ids=["solve", "eigh", "svd"])
def test_small_matrices_of_a_scan(function):
    """No turn waits for LAPACK."""
    x, b = hermitian(3, batch=()) + 9 * np.eye(3, dtype=np.float32), matrix(20, 3)

    def run(x, b):
        return jax.lax.scan(lambda x, b: (x + 0.1 * jnp.outer(b, b), function(x, b)), x, b)[1]

    on_device, on_host = steps_of(run, x, b)
    assert on_device > 0 and on_host == 0
    close(jax.jit(run)(x, b), on_cpu(run, x, b), 1e-4)


def test_functions_that_need_svd():
    x, b = matrix(6, 3), matrix(6, 2, seed=1)
    close(jnp.linalg.pinv(x), np.linalg.pinv(x), 1e-4)
    close(jnp.linalg.lstsq(x, b)[0], np.linalg.lstsq(x, b)[0], 1e-4)
    close(jnp.linalg.norm(x, 2), np.linalg.norm(x, 2))
    assert int(jnp.linalg.matrix_rank(jnp.ones((4, 4)))) == 1


def test_lu_solve_and_inverse():
    x, b = matrix(3, 6, 6), matrix(3, 6, 2, seed=1)
    close(jax.jit(jnp.linalg.solve)(x, b), np.linalg.solve(x, b), 1e-4)
    close(jnp.linalg.det(x), np.linalg.det(x), 1e-4)
    factors, pivots = jsl.lu_factor(x[0])
    expected, expected_pivots = on_cpu(jsl.lu_factor, x[0])
    close(factors, expected)
    np.testing.assert_array_equal(pivots, expected_pivots)
    asks_lapack(lambda x: jax.lax.linalg.lu(x)[0], matrix(3, 9, 9))


def test_cholesky_of_what_is_not_positive():
    good = matrix(4, 4) @ matrix(4, 4).T + 4 * np.eye(4, dtype=np.float32)
    good = (good + good.T) / 2
    both = np.stack([good @ good.T, np.ones((4, 4), np.float32)])
    got = np.asarray(jax.jit(jnp.linalg.cholesky)(both))
    np.testing.assert_allclose(got[0], np.linalg.cholesky(both[0]), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(np.isnan(got[1]), np.isnan(on_cpu(jnp.linalg.cholesky, both[1])))
    assert np.isnan(got[1][np.tril_indices(4)]).all()


def test_cholesky_of_few_columns_is_the_devices():
    def calls(size):
        x = np.stack([np.eye(size, dtype=np.float32)] * 3)
        return jax.jit(jnp.linalg.cholesky).lower(x).as_text().count("@lapack_spotrf_ffi")

    assert calls(32) == 0
    sizes = jax.export.symbolic_shape("n, n")
    exported = jax.export.export(jax.jit(jnp.linalg.cholesky), platforms=["tenon"],
                                 disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("lapack_spotrf_ffi")])(
        jax.ShapeDtypeStruct(sizes, np.float32))
    assert "cholesky" in exported.mlir_module() or "potrf" in exported.mlir_module()
    if jax.devices()[0].host_visible == "yes":
        assert calls(64) == 1


def test_eigenvalues_of_any_matrix():
    x = matrix(2, 5, 5)
    w, v = jnp.linalg.eig(x)
    close(x @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None, :], 1e-4)
    expected = np.sort_complex(np.linalg.eigvals(x[0]))
    close(np.sort_complex(np.asarray(w)[0]), expected, 1e-4)
    # There is no algorithm for devices: LAPACK gets copies.
    assert steps_of(jnp.linalg.eigvals, x)[1] == 1


def test_schur_hessenberg_and_tridiagonal():
    x = matrix(5, 5)
    t, z = map(np.asarray, jsl.schur(x))
    close(z @ t @ z.T, x, 1e-4)
    assert np.allclose(np.tril(t, -2), 0)
    h, q = map(np.asarray, jsl.hessenberg(x, calc_q=True))
    close(q @ h @ q.T, x, 1e-4)
    s = hermitian(5, batch=())
    close(jsl.eigh_tridiagonal(*jax.lax.linalg.tridiagonal(s)[1:3], eigvals_only=True), np.linalg.eigvalsh(s), 1e-4)


def test_tridiagonal_solve_with_pivoting():
    # A zero on the diagonal: LAPACK pivots, JAX's algorithm for other platforms does not.
    asks_lapack(lambda *x: jax.lax.linalg.tridiagonal_solve(*x), *([np.ones(3, np.float32)] * 3),
                np.ones((3, 1), np.float32))
    lower, diagonal, upper = (np.array(each, np.float32) for each in ([0, 1, 2], [0, 1, 3], [1, 1, 0]))
    b = np.array([[1.0], [2.0], [3.0]], np.float32)
    full = np.diag(diagonal) + np.diag(lower[1:], -1) + np.diag(upper[:2], 1)
    got = lax_linalg.tridiagonal_solve(lower, diagonal, upper, b, perturb_singular=True)
    close(got, np.linalg.solve(full, b))


def test_pivoted_qr_and_multiplication():
    x, c = matrix(5, 4), matrix(5, 2, seed=1)
    q, r, p = map(np.asarray, jsl.qr(x, pivoting=True, mode="economic"))
    close(q @ r, x[:, p], 1e-4)
    got = jax.jit(lambda x, c: lax_linalg.ormqr(*lax_linalg.geqrf(x), c, left=True, transpose=True))(x, c)
    close(np.asarray(got)[:4], np.linalg.qr(x)[0].T @ c, 1e-4)


def test_64_bits():
    with jax.enable_x64(True):
        x = hermitian(4, np.float64)
        close(jnp.linalg.eigh(x)[0], np.linalg.eigvalsh(x), 1e-12)
        q, r = jnp.linalg.qr(x)
        close(q @ r, x, 1e-12)


def test_sparse_solve():
    """By SciPy; the module is imported behind the platform's other rules."""
    from jax.experimental import sparse
    from jax.experimental.sparse.linalg import spsolve

    dense = matrix(9, 9) * (np.random.default_rng(1).random((9, 9)) < 0.3) + 4 * np.eye(9, dtype=np.float32)
    rows, b = sparse.BCSR.fromdense(dense), matrix(9)
    close(jax.jit(spsolve)(rows.data, rows.indices, rows.indptr, b), np.linalg.solve(dense, b))
    by_b = jax.grad(lambda b: spsolve(rows.data, rows.indices, rows.indptr, b).sum())(jnp.asarray(b))
    close(by_b, np.linalg.solve(dense.T, np.ones(9)))
