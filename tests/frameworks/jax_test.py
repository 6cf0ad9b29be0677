#!/usr/bin/env python3
"""JAX on Tenon's devices: frameworks/jax/tests on each of them, with a pip-installed JAX.

    jax_test.py BUILD [--full]

All tests run on the device cpu; on every other device a part of them, another one each, and with --full all. Prints PASS,
FAIL and SKIP lines."""

import pathlib
import sys

from on_devices import ROOT, has_environment, pytest

JAX = ROOT / "frameworks/jax"


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    status = has_environment(JAX, build)
    if status is not None:
        return status
    others = {"interp": "interp", "template": "template", f"{build}/backends/libtenon_template.so:0": "template as a plug-in",
              "gpu-sim": "gpu-sim", "reference": "reference"}
    pytest(JAX, "cpu", "cpu", JAX_PLATFORMS="tenon,cpu")
    for i, (device, label) in enumerate(others.items()):
        part = "1/1" if "--full" in sys.argv else f"{i + 1}/{len(others)}"
        pytest(JAX, device, label, "--part", part, JAX_PLATFORMS="tenon,cpu")
    return 0


if __name__ == "__main__":
    sys.exit(main())
