"""Dense linear algebra: JAX's rules for the CPU, or algorithms in JAX, chosen by device.

Where the host sees the device's memory, JAX's own rules for its CPU apply: they call LAPACK (jaxlib's, which is
SciPy's) on the arrays as they lie. Elsewhere the algorithms run on the device that JAX keeps for TPUs; they end in custom calls
that Tenon expands (docs/linalg.md). What JAX has no algorithm for (eig, schur, hessenberg, tridiagonal, geqp3) is computed by LAPACK on copies. Cholesky of
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
    own = {"cholesky_p": functools.partial(_cholesky, linalg._cholesky_lowering)}
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
