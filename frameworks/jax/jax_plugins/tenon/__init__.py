"""The JAX platform `tenon`: devices that Tenon has a backend for.

JAX finds this module by its entry point (or as a part of the namespace package `jax_plugins`) and calls
`initialize`. The platform is used only on request, never chosen silently:

    JAX_PLATFORMS=tenon TENON_DEVICE=interp python program.py

TENON_DEVICE names the device: that of a built-in backend ("interp", "template:1"), of a plug-in
("/opt/libnpu.so:0"), or "reference", the reference evaluator. TENON_DEVICE_COUNT opens more than one, TENON_LAYERS
puts layers around the backend. TENON_PJRT_LIBRARY is the library to load, if not the one in this package.
"""

import logging
import os
import pathlib

PLATFORM = "tenon"
LIBRARY = "libtenon_pjrt.so"
# Below the CPU's, which is 0.
PRIORITY = -100

_log = logging.getLogger(__name__)


def library_path() -> str | None:
    """The library that implements the platform, or None if there is none."""
    named = os.environ.get("TENON_PJRT_LIBRARY")
    path = pathlib.Path(named) if named else pathlib.Path(__file__).parent / LIBRARY
    return str(path.resolve()) if path.is_file() else None


def initialize() -> None:
    """Registers the platform; without a library it only warns, and JAX continues without the platform."""
    path = library_path()
    if path is None:
        asked_for = PLATFORM in os.environ.get("JAX_PLATFORMS", "").split(",")
        _log.log(logging.WARNING if asked_for else logging.INFO,
                 "no platform %s: %s is not in this package and TENON_PJRT_LIBRARY names no file", PLATFORM, LIBRARY)
        return
    _register(path)
    _allow_donation()
    _allow_compilation_cache()
    _add_host_platform()
    _register_lowerings()
    _install(path)


def _register(path: str) -> None:
    from functools import partial

    from jax._src import xla_bridge

    c_api = xla_bridge.register_plugin(PLATFORM, priority=PRIORITY, library_path=path)
    # Again, so that a missing device does not affect a program that has not asked for it.
    xla_bridge.register_backend_factory(
        PLATFORM, partial(xla_bridge.make_pjrt_c_api_client, PLATFORM), priority=PRIORITY, fail_quietly=True,
        experimental=False, c_api=c_api)


def _allow_donation() -> None:
    # JAX drops donations on platforms that are not in this list.
    from jax._src.interpreters import mlir

    platforms = getattr(mlir, "_platforms_with_donation", None)
    if platforms is None:
        _log.warning("this version of JAX has no list of platforms with donation; donated arrays are copied")
    elif PLATFORM not in platforms:
        platforms.append(PLATFORM)


def _allow_compilation_cache() -> None:
    # JAX caches compiled programs (JAX_COMPILATION_CACHE_DIR) only for platforms in a list within a function.
    from jax._src import compilation_cache

    used = getattr(compilation_cache, "is_cache_used", None)
    if used is None:
        _log.warning("this version of JAX has no such compilation cache; programs are compiled in each process")
        return

    class Counterpart:
        """Stands for a backend of the platform."""

        platform = "cpu"
        supports_executable_serialization = True

    compilation_cache.is_cache_used = lambda backend: used(Counterpart if backend.platform == PLATFORM else backend)


def _add_host_platform() -> None:
    # JAX runs the host's side of callbacks on its CPU platform, which must be listed if any is.
    import jax

    if jax.config.jax_platforms == PLATFORM:
        jax.config.update("jax_platforms", f"{PLATFORM},cpu")


def _install(path: str) -> None:
    """Functions of the host: jax.ffi, callbacks, LAPACK; DLPack."""
    from . import callbacks, dlpack, ffi, linalg

    library = ffi.Library(path)
    ffi.install(library)
    callbacks.install(callbacks.Callbacks(library))
    linalg.install(library)
    dlpack.install()


def _register_lowerings() -> None:
    """Registers lowerings that JAX has only for the platforms that it knows."""
    from jax._src.interpreters import mlir
    from jax._src.lax import ann

    mlir.register_lowering(ann.approx_top_k_p, _top_k, platform=PLATFORM)


def _top_k(ctx, operand, *, reduction_dimension, is_max_k, **_):
    """approx_max_k and approx_min_k, computed exactly."""
    from jax import lax
    from jax import numpy as jnp
    from jax._src.interpreters import mlir

    kept = ctx.avals_out[0].shape[reduction_dimension]

    def largest(x):
        values, indices = lax.top_k(jnp.moveaxis(x if is_max_k else -x, reduction_dimension, -1), kept)
        values = values if is_max_k else -values
        return [jnp.moveaxis(each, -1, reduction_dimension) for each in (values, indices)]

    return mlir.lower_fun(largest, multiple_results=True)(ctx, operand)
