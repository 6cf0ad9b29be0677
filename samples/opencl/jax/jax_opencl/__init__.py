"""JAX on OpenCL devices: selects the plug-in that the platform `tenon` of the package tenon-jax opens.

JAX calls initialize(), and tenon-jax's own, before it looks for devices; the platform reads TENON_DEVICE when it does.
"""

import os
import pathlib

PLUGIN = pathlib.Path(__file__).resolve().parent / "libopencl.so"


def initialize():
    """Selects this device, unless the user has selected another. Does nothing if the plug-in is missing."""
    if PLUGIN.exists():
        os.environ.setdefault("TENON_DEVICE", str(PLUGIN))
