"""The JAX platform `opencl`: the plug-in in this package, opened by the package tenon-jax.

    JAX_PLATFORMS=opencl python program.py
"""

import pathlib

PLUGIN = pathlib.Path(__file__).resolve().parent / "libopencl.so"


def initialize():
    """Registers the platform; JAX calls it before it looks for devices. Does nothing if the plug-in is missing."""
    if PLUGIN.exists():
        from jax_plugins import tenon

        tenon.add_platform("opencl", str(PLUGIN))
