#!/usr/bin/env python3
"""Writes StableHLO text as a portable artifact: serialize.py IN.mlir OUT.mlirbc

Needs jax (samples/make-venv). bench/chain_5000.mlirbc is made by:
  build-bench/bench/import_bench --print > /tmp/chain.mlir
  samples/.venv/bin/python bench/serialize.py /tmp/chain.mlir bench/chain_5000.mlirbc
"""

import pathlib
import sys

from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with mlir.make_ir_context():
        module = ir.Module.parse(pathlib.Path(sys.argv[1]).read_text())
        artifact = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
    pathlib.Path(sys.argv[2]).write_bytes(artifact)
    return 0


if __name__ == "__main__":
    sys.exit(main())
