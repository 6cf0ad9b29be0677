#!/usr/bin/env python3
"""The ONNX forms of bench/aot/programs.py, run by peers of bench/aot/compare, beside their JAX forms run by XLA: prints for each model a
line of JSON with the number of results, what is wrong with them, the bytes of the peer's file, and the bytes of weights that are arguments.

    onnx_forms.py PEER [FOLDER]     a class of compare; a folder with packages that this Python lacks
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/aot")]
sys.path += sys.argv[2:]

import jax  # noqa: E402
import numpy as np  # noqa: E402
import programs  # noqa: E402


def load_compare():
    loader = importlib.machinery.SourceFileLoader("compare", str(ROOT / "bench/aot/compare"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
    loader.exec_module(module)
    return module


def main() -> None:
    compare = load_compare()
    for model in (programs.lstm(layers=2, units=8, steps=3), programs.digits(), programs.gpt2_decode(layers=2, tokens=101, heads=2, places=16)):
        expected = jax.device_get(jax.tree.leaves(jax.jit(model.function)(*model.arguments)))
        peer = getattr(compare, sys.argv[1])()
        with tempfile.TemporaryDirectory() as folder:
            file_bytes, _ = peer.prepare(model, None, pathlib.Path(folder))
        wrong = compare.differences(peer.results, expected)
        wrong = wrong or [float(np.abs(a - b).max()) for a, b in zip(peer.results, expected) if not np.allclose(a, b, rtol=1e-4, atol=1e-4)]
        weights = jax.tree.leaves(model.arguments[0]) if model.weights_apart else []
        print(json.dumps({"name": model.name, "results": len(peer.results), "wrong": wrong, "file": file_bytes,
                          "weights": sum(each.nbytes for each in weights)}))


if __name__ == "__main__":
    main()
