"""Dense linear algebra: JAX's rules for the CPU, or algorithms in JAX, chosen by device.

Where the host sees the device's memory, JAX's own rules for its CPU apply: they call LAPACK (jaxlib's, which is
SciPy's) on the arrays as they lie. Elsewhere the algorithms run on the device that JAX keeps for TPUs, and QR below;
what JAX has no algorithm for (eig, schur, hessenberg, tridiagonal, geqp3) is computed by LAPACK on copies. Cholesky of
small matrices is the op of StableHLO on any device: many are computed side by side, as they lie, where LAPACK wants columns.
"""

import functools
import threading

from . import ffi, frames

SMALL = 48  # Columns; from 64 on LAPACK is faster (bench/peers/compare --only linalg).
MISSING = "LAPACK is missing: jaxlib takes that of SciPy"

# Primitives of jax._src.lax.linalg: on hidden memory "device" applies the rule that JAX has for TPUs or by default,
# "host" LAPACK on copies; "device if small" applies the rule of devices on any memory to matrices of few columns.
_PRIMITIVES = {
    "cholesky_p": "device if small", "eigh_p": "device", "svd_p": "device", "lu_p": "device", "ormqr_p": "device",
    "geqrf_p": "device", "householder_product_p": "device", "tridiagonal_solve_p": "device",
    "eig_p": "host", "schur_p": "host", "hessenberg_p": "host", "tridiagonal_p": "host", "geqp3_p": "host",
}


class Lapack:
    """LAPACK's functions, for programs that call them by name.

    jaxlib takes them from SciPy, which is imported when the first such program is lowered or loaded.
    """

    def __init__(self, library: ffi.Library):
        from jax._src.lib import lapack

        self._lapack = lapack._lapack
        self._lock = threading.Lock()
        self._is_there = None
        self._instantiate = frames.Handler(self._check)  # Kept: programs have its address.
        for name, function, api_version in lapack.registrations()["cpu"]:
            if api_version == 1:
                library.register_handler(name, {"instantiate": self._instantiate.address,
                                                "execute": ffi.address_of(function)})

    def is_there(self) -> bool:
        with self._lock:
            if self._is_there is None:
                try:
                    self._lapack.initialize()
                    self._is_there = True
                except Exception:
                    self._is_there = False
            return self._is_there

    def _check(self, frame):
        if not self.is_there():
            return frame.error(frames.UNAVAILABLE, MISSING)
        return None


def host_sees_memory(ctx) -> bool:
    """Whether the host sees the memory of the devices that are compiled for."""
    try:
        devices = ctx.module_context.get_backend(optional=True).devices()
    except Exception:  # Nothing is known of a device that is not there.
        return False
    return all(getattr(device, "host_visible", "no") == "yes" for device in devices)


def install(library: ffi.Library) -> None:
    from jax._src.interpreters import mlir
    from jax._src.lax import linalg
    from jax._src.tpu import linalg as _  # noqa: F401  Registers the rules for TPUs.

    lapack = Lapack(library)
    by_platform = mlir._platform_specific_lowerings
    own = {"eigh_p": functools.partial(_eigh, linalg, by_platform["tpu"][linalg.eigh_p].rule),
           "geqrf_p": mlir.lower_fun(_geqrf, multiple_results=True),
           "householder_product_p": mlir.lower_fun(_householder_product, multiple_results=False),
           "cholesky_p": functools.partial(_cholesky, linalg._cholesky_lowering)}
    for name, elsewhere in _PRIMITIVES.items():
        primitive = getattr(linalg, name, None)
        if primitive is None or primitive not in by_platform["cpu"]:
            continue  # Another version of JAX.
        on_host = by_platform["cpu"][primitive].rule
        on_device = own.get(name)
        if on_device is None:
            entry = by_platform["tpu"].get(primitive) or mlir._lowerings.get(primitive)
            on_device = None if entry is None or name == "lu_p" else entry.rule
        if name == "lu_p":
            on_device = mlir._lowerings[primitive].rule  # That for TPUs is a custom call.
        rule = functools.partial(_lower, lapack, on_host, None if elsewhere == "host" else on_device)
        if elsewhere == "device if small":
            rule = functools.partial(_by_size, on_device, rule)
        mlir.register_lowering(primitive, rule, platform=ffi.PLATFORM)
    by_platform[ffi.PLATFORM] = _Rules(by_platform[ffi.PLATFORM])


class _Rules(dict):
    """The platform's rules by primitive. Those for primitives of modules that are imported later are registered when JAX asks for them."""

    def __contains__(self, primitive):
        if not super().__contains__(primitive):
            later = {"spsolve": _spsolve}.get(primitive.name)
            if later is None:
                return False
            from jax._src.interpreters import mlir

            mlir.register_lowering(primitive, mlir.lower_fun(later, multiple_results=False), platform=ffi.PLATFORM)
        return True


def _spsolve(data, indices, indptr, b, **_):
    """jax.experimental.sparse.linalg.spsolve, by SciPy, as on JAX's CPU."""
    import jax
    import numpy as np

    def solve(*arrays):
        from scipy import sparse
        from scipy.sparse import linalg

        data, indices, indptr, b = map(np.asarray, arrays)
        return linalg.spsolve(sparse.csr_matrix((data, indices, indptr), shape=(b.size, b.size)), b).astype(b.dtype)

    return jax.pure_callback(solve, jax.ShapeDtypeStruct(b.shape, b.dtype), data, indices, indptr, b)


def _by_size(if_small, otherwise, ctx, *operands, **parameters):
    columns = ctx.avals_in[0].shape[-1]
    rule = if_small if isinstance(columns, int) and columns <= SMALL else otherwise  # Else the size is symbolic.
    return rule(ctx, *operands, **parameters)


def _lower(lapack: Lapack, on_host, on_device, ctx, *operands, **parameters):
    # JAX's own algorithm for this does not pivot.
    needs_host = on_device is None or parameters.get("perturb_singular", False)
    wants_host = needs_host or host_sees_memory(ctx)
    rule = on_host if wants_host and lapack.is_there() else on_device
    if rule is None:
        raise NotImplementedError(MISSING)
    return rule(ctx, *operands, **parameters)


# --- Algorithms for devices


def _cholesky(rule, ctx, operand):
    """All NaN if the matrix is not positive definite, as JAX's CPU has it."""
    from jax import numpy as jnp
    from jax._src.interpreters import mlir

    [factor] = rule(ctx, operand)

    def spread(x):
        failed = jnp.isnan(jnp.real(jnp.diagonal(x, axis1=-2, axis2=-1))).any(axis=-1)
        return jnp.where(failed[..., None, None], jnp.array(jnp.nan, x.dtype), x)

    return mlir.lower_fun(spread, multiple_results=False)(ctx.replace(avals_in=ctx.avals_out), factor)


def _eigh(linalg, rule, ctx, operand, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    """JAX's QDWH, which divides large matrices; small ones by Jacobi's method."""
    from jax._src.interpreters import mlir

    if algorithm != linalg.EighImplementation.JACOBI:
        return rule(ctx, operand, lower=lower, sort_eigenvalues=sort_eigenvalues, subset_by_index=subset_by_index,
                    algorithm=None)
    size = ctx.avals_in[0].shape[-1]
    if subset_by_index not in (None, (0, size)):
        raise NotImplementedError("subset_by_index with Jacobi's method")
    solve = _batched(functools.partial(_jacobi, lower=lower, sort=sort_eigenvalues), 2)
    return mlir.lower_fun(solve, multiple_results=True)(ctx, operand)


def _hermitian(x, lower):
    """The matrix of which x has one triangle."""
    from jax import numpy as jnp

    triangle = jnp.tril(x, -1) if lower else jnp.triu(x, 1)
    return triangle + jnp.conj(triangle).T + jnp.diag(jnp.real(jnp.diagonal(x)).astype(x.dtype))


def _rotations(a, half):
    """Cosines and sines (complex in general) that make the elements a[k, k + half] zero."""
    from jax import numpy as jnp

    p = jnp.real(jnp.diagonal(a))[:half]
    q = jnp.real(jnp.diagonal(a))[half:]
    corner = jnp.diagonal(a[:half, half:])
    size = jnp.abs(corner)
    is_zero = size == 0
    divisor = jnp.where(is_zero, jnp.ones_like(size), size)
    tau = (q - p) / (2 * divisor)
    sign = jnp.where(tau >= 0, jnp.ones_like(tau), -jnp.ones_like(tau))
    tangent = jnp.where(is_zero, jnp.zeros_like(tau), sign / (jnp.abs(tau) + jnp.hypot(jnp.ones_like(tau), tau)))
    cosine = 1 / jnp.hypot(jnp.ones_like(tangent), tangent)
    return cosine.astype(a.dtype), (tangent * cosine).astype(a.dtype) * (corner / divisor.astype(a.dtype))


def _next_pairs(x, half, axis):
    """Moves rows or columns so that, after 2 * half - 1 rounds, each pair was (k, k + half) once."""
    from jax import numpy as jnp

    rows = jnp.moveaxis(x, axis, 0)
    top, bottom = rows[:half], rows[half:]
    if half > 1:
        top, bottom = (jnp.concatenate([top[:1], bottom[:1], top[1:-1]]),
                       jnp.concatenate([bottom[1:], top[-1:]]))
    return jnp.moveaxis(jnp.concatenate([top, bottom]), 0, axis)


def _jacobi(x, *, lower, sort):
    """Eigenvectors and eigenvalues of a Hermitian matrix by Jacobi's method: in each round half as many rotations at
    once as there are rows (Brent and Luk), rounds until what is off the diagonal is negligible."""
    from jax import lax
    from jax import numpy as jnp

    n = x.shape[0]
    if n == 0:
        return x, jnp.real(jnp.diagonal(x))
    half = (n + 1) // 2
    # A row and column of zeros makes the size even; no rotation touches them.
    a = jnp.pad(_hermitian(x, lower), ((0, 2 * half - n),) * 2)
    vectors = jnp.eye(2 * half, dtype=x.dtype)
    real = jnp.real(x).dtype
    # Rounding leaves more off the diagonal of a larger matrix.
    tolerance = jnp.array(jnp.finfo(real).eps * n**0.5, real)
    # Scaled, so that no square overflows or vanishes.
    largest = jnp.max(jnp.abs(a))
    scale = jnp.where((largest == 0) | ~jnp.isfinite(largest), jnp.ones_like(largest), largest)
    a = a / scale.astype(a.dtype)
    most_sweeps = 30

    def norm(a):
        return jnp.sqrt(jnp.sum(jnp.square(jnp.abs(a))))

    whole = norm(a)

    def rotate(c, s, x, axis):
        c, s = (jnp.expand_dims(each, 1 - axis) for each in (c, s))
        first, second = jnp.split(x, 2, axis=axis)
        return jnp.concatenate([c * first - s * second, jnp.conj(s) * first + c * second], axis=axis)

    def sweep_round(_, state):
        a, vectors = state
        c, s = _rotations(a, half)
        a = rotate(c, s, a, 0)
        a = rotate(c, jnp.conj(s), a, 1)
        vectors = rotate(c, jnp.conj(s), vectors, 1)
        a = _next_pairs(_next_pairs(a, half, 0), half, 1)
        return a, _next_pairs(vectors, half, 1)

    def unfinished(state):
        a, _, sweeps = state
        off = norm(a - jnp.diag(jnp.diagonal(a)))
        return (off > tolerance * whole) & (sweeps < most_sweeps)

    def sweep(state):
        a, vectors, sweeps = state
        a, vectors = lax.fori_loop(jnp.int32(0), jnp.int32(2 * half - 1), sweep_round, (a, vectors))
        return a, vectors, sweeps + jnp.int32(1)

    a, vectors, _ = lax.while_loop(unfinished, sweep, (a, vectors, jnp.int32(0)))
    values = jnp.real(jnp.diagonal(a))[:n] * scale
    vectors = vectors[:n, :n]
    # An infinite or undefined matrix has no eigenvalues.
    values = jnp.where(jnp.isfinite(whole), values, jnp.full_like(values, jnp.nan))
    vectors = jnp.where(jnp.isfinite(whole), vectors, jnp.full_like(vectors, jnp.nan))
    if sort:
        order = jnp.argsort(values)
        values, vectors = values[order], vectors[:, order]
    return vectors, values


def _reflector(x, j):
    """Householder's reflector for the column x from row j on: (v, tau, beta), as LAPACK's larfg.

    v is zero above row j and 1 there; (1 - conj(tau) v v^H) x is beta in row j and zero below.
    """
    from jax import lax
    from jax import numpy as jnp

    rows = lax.iota(jnp.int32, x.shape[0])
    below = rows > j
    alpha = x[j]
    real = jnp.real(alpha)
    # Scaled, so that no square overflows or vanishes.
    largest = jnp.max(jnp.where(rows >= j, jnp.abs(x), jnp.zeros_like(jnp.abs(x))))
    scale = jnp.where(largest == 0, jnp.ones_like(largest), largest)
    rest = jnp.where(below, x / scale.astype(x.dtype), jnp.zeros_like(x))
    square = jnp.sum(jnp.real(rest * jnp.conj(rest)))
    trivial = (square == 0) & (jnp.imag(alpha) == 0)
    length = scale * jnp.sqrt(square + jnp.square(jnp.abs(alpha) / scale))
    beta = jnp.where(real >= 0, -length, length).astype(x.dtype)
    safe = jnp.where(trivial, jnp.ones_like(beta), beta)
    tau = jnp.where(trivial, jnp.zeros_like(beta), (safe - alpha) / safe)
    divisor = jnp.where(trivial, jnp.ones_like(alpha), alpha - safe)
    v = jnp.where(below, x / divisor, jnp.zeros_like(x))
    v = jnp.where(rows == j, jnp.ones_like(v), v)
    return v, tau, jnp.where(trivial, alpha, beta)


def _batched(function, rank):
    """A function on arrays without batch dimensions, on arrays with; the first has so many dimensions of its own."""
    import jax

    def apply(*arrays):
        mapped = function
        for _ in range(arrays[0].ndim - rank):
            mapped = jax.vmap(mapped)
        return mapped(*arrays)

    return apply


def _geqrf(a):
    """QR as LAPACK's geqrf has it: R above, Householder's vectors below, and their factors."""
    from jax import lax
    from jax import numpy as jnp

    def one(a):
        m, n = a.shape
        rows = lax.iota(jnp.int32, m)
        columns = lax.iota(jnp.int32, n)

        def step(j, state):
            a, taus = state
            x = lax.dynamic_slice(a, (jnp.int32(0), j), (m, 1))[:, 0]
            v, tau, beta = _reflector(x, j)
            products = jnp.matmul(jnp.conj(v)[None, :], a, precision=lax.Precision.HIGHEST)
            right = (columns > j)[None, :]
            a = jnp.where(right, a - jnp.conj(tau) * v[:, None] * products, a)
            column = jnp.where(rows > j, v, jnp.where(rows == j, beta, x))
            a = lax.dynamic_update_slice(a, column[:, None], (jnp.int32(0), j))
            return a, lax.dynamic_update_slice(taus, tau[None], (j,))

        k = min(m, n)
        if k == 0:
            return a, jnp.zeros((0,), a.dtype)
        return lax.fori_loop(jnp.int32(0), jnp.int32(k), step, (a, jnp.zeros((k,), a.dtype)))

    return _batched(one, 2)(a)


def _householder_product(a, taus):
    """The first columns of the product of reflectors, as LAPACK's orgqr."""
    from jax import lax
    from jax import numpy as jnp

    def one(a, taus):
        m, n = a.shape
        k = taus.shape[0]
        rows = lax.iota(jnp.int32, m)
        eye = jnp.eye(m, n, dtype=a.dtype)
        if k == 0:
            return eye

        def step(i, q):
            j = jnp.int32(k - 1) - i
            x = lax.dynamic_slice(a, (jnp.int32(0), j), (m, 1))[:, 0]
            v = jnp.where(rows > j, x, jnp.where(rows == j, jnp.ones_like(x), jnp.zeros_like(x)))
            products = jnp.matmul(jnp.conj(v)[None, :], q, precision=lax.Precision.HIGHEST)
            return q - taus[j] * v[:, None] * products

        return lax.fori_loop(jnp.int32(0), jnp.int32(k), step, eye)

    return _batched(one, 2)(a, taus)
