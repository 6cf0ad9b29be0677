#!/usr/bin/env python3
"""The PJRT plug-in under torch_xla, another host framework than the ones it was written beside: models train as in PyTorch.

    torch_xla_test.py BUILD [--full]     without --full all is skipped: the environment takes 7 GB, and longer than two minutes

Programs arrive once as portable artifacts of StableHLO, once as HLO protos. Prints PASS, FAIL and SKIP lines."""

import pathlib
import sys

from on_devices import FULL, ROOT, has_environment, pytest

PACKAGE = ROOT / "frameworks/torch_xla"


def main() -> int:
    if not FULL:
        print("SKIP torch_xla: its environment of 7 GB is made with --full")
        return 0
    build = pathlib.Path(sys.argv[1]).resolve()
    status = has_environment(PACKAGE, build)
    if status is not None:
        return status
    plugin = str(build / "frameworks/pjrt/libtenon_pjrt.so")
    pytest(PACKAGE, "cpu", "artifacts on cpu", TENON_TEST_PLUGIN=plugin, XLA_STABLEHLO_COMPILE="1")
    pytest(PACKAGE, "cpu", "HLO protos on cpu", TENON_TEST_PLUGIN=plugin)
    pytest(PACKAGE, "template", "artifacts on template", "-k", "perceptron or lstm or compiled", TENON_TEST_PLUGIN=plugin, XLA_STABLEHLO_COMPILE="1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
