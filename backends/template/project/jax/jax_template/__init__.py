"""JAX on template: says which plug-in the platform `tenon` of the package tenon-jax opens. All else is there.

JAX calls initialize(), and tenon-jax's own, before it looks for devices; the platform reads TENON_DEVICE when it does.
"""

import os
import pathlib

PLUGIN = pathlib.Path(__file__).resolve().parent / "libtemplate.so"


def initialize():
    """Chooses this device, if the user has not chosen another. Without its plug-in there is none to choose."""
    if PLUGIN.exists():
        os.environ.setdefault("TENON_DEVICE", str(PLUGIN))
