#!/usr/bin/env python3
"""The Python package `tenon-tensorflow`: its wheel is built and installed into an environment with TensorFlow, and its tests run on
Tenon's devices.

    tensorflow_test.py BUILD [--full]     --full: Keras models on template and gpu-sim both ways too

Prints PASS, FAIL and SKIP lines. Where the environment cannot be made in two minutes (TensorFlow takes 1.7 GB), all is skipped."""

import pathlib
import sys

from on_devices import ROOT, has_environment, pytest

PACKAGE = ROOT / "frameworks/tensorflow"
SECONDS = 120  # Once it is made, further runs only renew the two packages of this tree.


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    status = has_environment(PACKAGE, build, SECONDS)
    if status is not None:
        return status
    tool = {"TENON_TOOL": str(build / "tenon")}
    pytest(PACKAGE, "cpu", "cpu", **tool)
    # Steps on the host are errors there.
    more = " or keras_fit or export or tensors_variables" if "--full" in sys.argv else ""
    pytest(PACKAGE, "template", "template", "-k", "five_steps or tensors_variables or linear_algebra" + more, **tool)
    pytest(PACKAGE, "gpu-sim", "gpu-sim", "-k", "five_steps" + more, **tool)
    return 0


if __name__ == "__main__":
    sys.exit(main())
