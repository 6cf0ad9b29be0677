"""The JAX platform `tenon`: devices that Tenon has a backend for.

JAX finds this module by its entry point (or as a part of the namespace package `jax_plugins`) and calls
`initialize`. The platform is used only on request, never chosen silently:

    JAX_PLATFORMS=tenon python program.py

TENON_DEVICE names the device: that of a built-in backend ("cpu", which it is without the variable, or "template:1"), of a plug-in
("/opt/libnpu.so:0"), or "reference", the reference evaluator. TENON_DEVICE_COUNT opens more than one, TENON_LAYERS
puts layers around the backend, and TENON_PROFILE=steps adds each step to the profiles of jax.profiler. TENON_PJRT_LIBRARY is
the library to load, if not the one in this package.

A package for one device registers a platform of its own, by its device's name (add_platform):

    JAX_PLATFORMS=npu python program.py
"""

import logging
import os
import pathlib

from . import ffi

PLATFORM = ffi.PLATFORM
LIBRARY = "libtenon_pjrt.so"
# Below the CPU's, which is 0.
PRIORITY = -100

_log = logging.getLogger(__name__)
_devices: dict[str, tuple[str, dict]] = {}  # Of the platforms that were added.
_initialized: list[str] = []  # The library's path, once.


def library_path() -> str | None:
    """The library that implements the platform, or None if there is none."""
    named = os.environ.get("TENON_PJRT_LIBRARY")
    path = pathlib.Path(named) if named else pathlib.Path(__file__).parent / LIBRARY
    return str(path.resolve()) if path.is_file() else None


def initialize() -> str | None:
    """Registers the platform, and returns the library's path; without one it only warns, and JAX continues without the
    platform. JAX calls it, and add_platform if that comes first; it works once."""
    if _initialized:
        return _initialized[0]
    path = library_path()
    if path is None:
        _say_missing(PLATFORM)
        return None
    _add(PLATFORM, path, {}, PRIORITY)
    _allow_compilation_cache()
    _register_lowerings()
    _install(path)
    _initialized.append(path)
    return path


def add_platform(name: str, device: str, *, priority: int = PRIORITY, **options) -> None:
    """Registers a platform for a device: `JAX_PLATFORMS=npu` selects it, `jax.devices("npu")` lists it.

    For packages of devices, in the `initialize` of their entry point; this package's need not have run.

    name: of the platform, the device's, in lower case; "tenon" and JAX's own are taken.
    device: as in TENON_DEVICE, which this platform does not read: a plug-in's path, for instance.
    priority: JAX's default platform is that of the greatest; the CPU's is 0.
    options: further create options of the PJRT client, such as device_count, layers, time_limit.

    Without the library of this package it only warns.
    """
    if name in (PLATFORM, "cpu", "gpu", "cuda", "rocm", "tpu", "oneapi", "METAL") or not name.isidentifier():
        raise ValueError(f"'{name}' cannot be the name of a platform for a device of Tenon: it is taken or no identifier")
    if name in _devices:
        if _devices[name] != (device, options):
            raise ValueError(f"the platform '{name}' is there already, for the device {_devices[name][0]}")
        return
    path = initialize()
    if path is None:
        _say_missing(name)
        return
    from jax._src.interpreters import mlir

    _add(name, path, {"platform_name": name, "device": device, **options}, priority)
    ffi.install(ffi.Library(path), name)
    # One table for both, so that what is registered for `tenon` later is there too.
    mlir._platform_specific_lowerings[name] = mlir._platform_specific_lowerings[PLATFORM]
    ffi.PLATFORMS.append(name)
    _devices[name] = (device, options)


def _say_missing(platform: str) -> None:
    asked_for = platform in os.environ.get("JAX_PLATFORMS", "").split(",")
    _log.log(logging.WARNING if asked_for else logging.INFO,
             "no platform %s: %s is not in this package and TENON_PJRT_LIBRARY names no file", platform, LIBRARY)


def _add(platform: str, path: str, options: dict, priority: int) -> None:
    _register(platform, path, options, priority)
    _allow_donation(platform)
    _add_host_platform(platform)


def _register(platform: str, path: str, options: dict, priority: int) -> None:
    from functools import partial

    from jax._src import xla_bridge

    c_api = xla_bridge.register_plugin(platform, priority=priority, library_path=path, options=options)
    # Again, so that a missing device does not affect a program that has not asked for it.
    xla_bridge.register_backend_factory(
        platform, partial(xla_bridge.make_pjrt_c_api_client, platform, options), priority=priority, fail_quietly=True,
        experimental=False, c_api=c_api)
    # A topology of a platform that was added describes its device (jax.experimental.topologies).
    topologies = getattr(xla_bridge, "_topology_factories", None)
    if options and topologies is not None:
        topologies[platform] = partial(xla_bridge.xla_client.make_c_api_device_topology, c_api, **options)


def _allow_donation(platform: str) -> None:
    # JAX drops donations on platforms that are not in this list.
    from jax._src.interpreters import mlir

    platforms = getattr(mlir, "_platforms_with_donation", None)
    if platforms is None:
        _log.warning("this version of JAX has no list of platforms with donation; donated arrays are copied")
    elif platform not in platforms:
        platforms.append(platform)


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

    compilation_cache.is_cache_used = lambda backend: used(
        Counterpart if backend.platform in ffi.PLATFORMS else backend)


def _add_host_platform(platform: str) -> None:
    # JAX runs the host's side of callbacks on its CPU platform, which must be listed if any is.
    import jax

    if jax.config.jax_platforms == platform:
        jax.config.update("jax_platforms", f"{platform},cpu")


def _install(path: str) -> None:
    """Functions of the host: jax.ffi, callbacks, LAPACK; DLPack."""
    from . import callbacks, dlpack, linalg

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
    _keep_erfc()
    _keep_ragged_dot()


def _keep_erfc() -> None:
    """Lowers erfc to a composite of its name. As chlo.erfc, PJRT's serializer would expand it in StableHLO ops."""
    import functools

    from jax import lax
    from jax._src.interpreters import mlir
    from jax._src.lax import lax as internal
    from jax._src.lax import special
    from jax._src.lib.mlir.dialects import chlo

    expanded = internal.standard_unop(internal._float, "tenon_erfc")
    mlir.register_lowering(expanded, functools.partial(internal._nary_lower_hlo, chlo.erfc))
    kept = lax.composite(expanded.bind, name="chlo.erfc")
    mlir.register_lowering(special.erfc_p, mlir.lower_fun(kept, multiple_results=False), platform=PLATFORM)


def _keep_ragged_dot() -> None:
    """Lowers ragged_dot to its op, as for TPUs: JAX's own rule multiplies all rows by the matrix of each group."""
    from jax._src import core
    from jax._src.interpreters import mlir
    from jax._src.lax import lax as internal

    names = ("ragged_dot_general_p", "_ragged_dot_general_lower", "_ragged_dot_general_impl")
    primitive, as_op, in_jax = (getattr(internal, name, None) for name in names)
    if None in (primitive, as_op, in_jax):
        _log.warning("this version of JAX has no rule for ragged_dot as one op; it multiplies all rows by each matrix")
        return
    rolled_out = mlir.lower_fun(in_jax, multiple_results=False)

    def lower(ctx, *operands, **parameters):
        is_static = all(core.is_constant_shape(each.shape) for each in ctx.avals_in)
        return (as_op if is_static else rolled_out)(ctx, *operands, **parameters)

    mlir.register_lowering(primitive, lower, platform=PLATFORM)


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
