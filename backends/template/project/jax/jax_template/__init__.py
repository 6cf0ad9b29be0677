"""The JAX platform `template`: the plug-in in this package, opened by the package tenon-jax.

    JAX_PLATFORMS=template python program.py
"""

import pathlib

PLATFORM = "template"
PLUGIN = pathlib.Path(__file__).resolve().parent / "libtemplate.so"


def initialize():
    """Registers the platform; JAX calls it before it looks for devices. Does nothing if the plug-in is missing."""
    if PLUGIN.exists():
        from jax_plugins import tenon

        tenon.add_platform(PLATFORM, str(PLUGIN))
