"""Dense linear algebra: JAX's rules for the CPU, or algorithms in JAX, chosen by device.

Where the host sees the device's memory, JAX's own rules for its CPU apply: they call LAPACK (jaxlib's, which is
SciPy's) on the arrays as they lie. Elsewhere the algorithms run on the device that JAX keeps for TPUs; they end in custom calls
that Tenon expands (docs/linalg.md). What JAX has no algorithm for (eig, schur, hessenberg, tridiagonal, geqp3) is computed by LAPACK on copies. Cholesky of
small matrices is the op of StableHLO on any device: many are computed side by side, as they lie, where LAPACK wants columns.
"""

import functools
import math
import threading

from . import ffi, frames

# From how many columns on LAPACK is faster (bench/peers/compare --only linalg): 64 for Cholesky factors, 256 for QR.
SMALL, MODERATE = 48, 128
# Matrices of up to FEW rows and columns are computed in kernels on any device, together with the ops around them (in a scan a
# call of LAPACK ends each kernel), many side by side; LU factors, whose rows are exchanged, of MANY at once up to FEWER.
FEW, FEWER, MANY = 8, 5, 16
LARGE = 256  # Columns up to which Jacobi's method is used alone, as JAX's own algorithms do in the end.
MISSING = "LAPACK is missing: jaxlib takes that of SciPy"

# Primitives of jax._src.lax.linalg: on hidden memory "device" applies the rule that JAX has for TPUs or by default,
# "host" LAPACK on copies; "device if small", "device if moderate" and "device if tiny" apply the rule of devices on any
# memory to matrices of few columns, of not so few rows and columns, and to tiny ones.
_PRIMITIVES = {
    "cholesky_p": "device if small", "eigh_p": "device if tiny", "svd_p": "device if tiny", "lu_p": "device if tiny for lu", "ormqr_p": "device",
    "geqrf_p": "device if moderate", "householder_product_p": "device if moderate", "tridiagonal_solve_p": "device",
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
    own = {"cholesky_p": functools.partial(_cholesky, linalg._cholesky_lowering),
           "eigh_p": functools.partial(_eigh, linalg.EighImplementation, by_platform["tpu"][linalg.eigh_p].rule),
           "svd_p": functools.partial(_svd, by_platform["tpu"].get(linalg.svd_p) or mlir._lowerings[linalg.svd_p])}
    for name, elsewhere in _PRIMITIVES.items():
        primitive = getattr(linalg, name, None)
        if primitive is None or primitive not in by_platform["cpu"]:
            continue  # Another version of JAX.
        on_host = by_platform["cpu"][primitive].rule
        on_device = own.get(name)
        if on_device is None:
            entry = by_platform["tpu"].get(primitive) or mlir._lowerings.get(primitive)
            on_device = None if entry is None else entry.rule
        rule = functools.partial(_lower, lapack, on_host, None if elsewhere == "host" else on_device)
        if elsewhere in _SIZES:
            rule = functools.partial(_by_size, _SIZES[elsewhere], on_device, rule)
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


def _is_small(matrices, parameters) -> bool:
    columns = matrices.shape[-1]
    return isinstance(columns, int) and columns <= SMALL  # Else the size is symbolic.


def _is_known(matrices) -> bool:
    """Of sizes that are not symbolic, and of a type that LAPACK has: JAX's rules refuse others."""
    return all(isinstance(each, int) for each in matrices.shape) and matrices.dtype.name in ("float32", "float64", "complex64", "complex128")


def _is_moderate(matrices, parameters) -> bool:
    return _is_known(matrices) and max(matrices.shape[-2:]) <= MODERATE


def _is_tiny(matrices, parameters) -> bool:
    if not _is_known(matrices) or getattr(parameters.get("algorithm"), "name", "JACOBI") not in ("DEFAULT", "JACOBI"):
        return False  # Another algorithm is asked for.
    return 0 < max(matrices.shape[-2:]) <= FEW


def _is_tiny_for_lu(matrices, parameters) -> bool:
    return _is_tiny(matrices, parameters) and (math.prod(matrices.shape[:-2]) < MANY or max(matrices.shape[-2:]) <= FEWER)


_SIZES = {"device if small": _is_small, "device if moderate": _is_moderate, "device if tiny": _is_tiny,
          "device if tiny for lu": _is_tiny_for_lu}


def _by_size(fits, on_device, otherwise, ctx, *operands, **parameters):
    rule = on_device if fits(ctx.avals_in[0], parameters) else otherwise
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


def _eigh(implementations, rule, ctx, operand, *, algorithm, subset_by_index, **parameters):
    """JAX's QDWH divides large matrices; small ones go to Jacobi's method at once."""
    size = ctx.avals_in[0].shape[-1]
    is_whole = subset_by_index in (None, (0, size))
    if algorithm is None and is_whole and isinstance(size, int) and size <= LARGE:
        algorithm = implementations.JACOBI
    if algorithm == implementations.JACOBI and not is_whole:
        raise NotImplementedError("subset_by_index with Jacobi's method")
    return rule(ctx, operand, algorithm=algorithm, subset_by_index=subset_by_index, **parameters)


def _svd(entry, ctx, operand, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
    """Jacobi's method; large matrices, and parts of the values, by what JAX keeps for TPUs."""
    from jax._src.interpreters import mlir

    shape = ctx.avals_in[0].shape
    is_small = all(isinstance(each, int) for each in shape) and min(shape[-2:]) <= LARGE
    if not is_small or subset_by_index not in (None, (0, min(shape[-2:]))) or getattr(algorithm, "name", "DEFAULT") not in ("DEFAULT", "JACOBI"):
        return entry.rule(ctx, operand, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=algorithm)
    rows, columns = shape[-2:]
    left, right = (rows, columns) if full_matrices and compute_uv else (min(rows, columns),) * 2
    values = ctx.avals_out[0]
    vectors = [ctx.avals_in[0].update(shape=(*shape[:-1], left)), ctx.avals_in[0].update(shape=(*shape[:-2], right, columns))]
    types = [mlir.aval_to_ir_type(ctx.module_context, each) for each in (vectors[0], values, vectors[1])]
    u, s, vh = mlir.custom_call("tenon.svd", result_types=types, operands=[operand]).results
    return [s, u, vh] if compute_uv else [s]
