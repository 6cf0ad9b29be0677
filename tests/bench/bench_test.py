#!/usr/bin/env python3
"""Builds the benchmarks and runs each briefly: checks that there are figures and that results agree, not the figures
themselves. Prints PASS, FAIL and SKIP lines.

    bench_test.py BUILD
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICK = ["--benchmark_min_time=0.001", "--benchmark_format=json"]
# The contents of the lists of programs (bench/peers/programs.py, models.py).
GROUPS = {"breadth": 390, "narrow": 99, "short": 70, "moves": 72, "skinny": 30, "norms": 32, "products": 30, "special": 126, "rows": 19, "contractions": 60, "small": 7, "scans": 9, "convolutions": 16, "ffts": 13, "sorts": 10,
          "indexing": 23, "linalg": 53, "loops": 13, "attention": 6, "random": 4, "models": 15, "applications": 61}


def run(*command, **variables) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], cwd=ROOT, env={**os.environ, **variables}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)


def figures_of(*command, **variables) -> dict[str, float]:
    """The time of each benchmark, by name."""
    done = run(*command, *QUICK, **variables)
    if done.returncode != 0:
        raise RuntimeError(f"ends with {done.returncode}: {done.stderr[-1000:]}")
    measured = json.loads(done.stdout)["benchmarks"]
    errors = [each["error_message"] for each in measured if "error_message" in each]
    if errors:
        raise RuntimeError(f"{errors}")
    return {each["name"]: each["real_time"] for each in measured}


def expect(condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(text)


def test_import(build: pathlib.Path) -> None:
    figures = figures_of(build / "bench/import_bench")
    expect(len(figures) >= 2 and all(time > 0 for time in figures.values()), f"{figures}")


def test_kernels(build: pathlib.Path, device: str) -> None:
    figures = figures_of(build / "bench/kernel_bench", "--device", device, ROOT / "bench/rows/softmax_of_rows_1024x1024.mlir")
    kinds = Counter(name.split("/")[0] for name in figures)
    expect(kinds["launch"] == kinds["compile"] == 2, f"{figures}")


def test_contractions(build: pathlib.Path, folder: pathlib.Path) -> None:
    file = folder / "contractions.json"
    done = run(build / "bench/contractions", "--only", "16 16 16", "--rounds", "1", "--seconds", "0.001", "--json", file)
    expect(done.returncode == 0 and done.stderr == "", f"ends with {done.returncode}: {done.stderr}")
    figures = json.loads(file.read_text())
    for peer in ("tenon", "execute", "openblas", "onednn"):
        expect(len(figures) == 2 and all(each[peer] > 0 for each in figures), f"{figures}")


def test_compare(python: pathlib.Path, folder: pathlib.Path) -> None:
    """One program of each group; the results of the available JAX devices agree, and the devices get the same StableHLO."""
    chosen = ("40 ops", "sum of rows", "8 64 256", "digits step")
    file = folder / "compare.json"
    done = run(python, ROOT / "bench/peers/compare", *(word for each in chosen for word in ("--only", each)), "--rounds", "1", "--seconds",
               "0.001", "--json", file)
    expect(done.returncode == 0 and done.stderr == "", f"ends with {done.returncode}: {done.stderr[-1000:]}")
    figures = json.loads(file.read_text())
    for each in chosen:
        expect(any(each in figure["name"] for figure in figures), f"no figure of {each}: {figures}")
    for figure in figures:
        expect(figure["tenon"] > 0 and figure["xla"] > 0 and "wrong" not in figure and "lowered" not in figure, f"{figure}")


def test_lists(python: pathlib.Path) -> None:
    code = "import collections, programs; print(*(each.group for each in programs.all_programs()))"
    done = run(python, "-c", code, PYTHONPATH=str(ROOT / "bench/peers"), JAX_PLATFORMS="cpu")
    expect(done.returncode == 0, done.stderr[-1000:])
    expect(Counter(done.stdout.split()) == GROUPS, f"{Counter(done.stdout.split())}")


def test_onnx_forms(python: pathlib.Path, peer: str, packages: pathlib.Path | None = None) -> None:
    """They have the results of the JAX forms: the LSTM, the digits, and a small GPT-2 with its logits and two caches of keys and values."""
    folders = packages.glob("lib/python3*/site-packages") if packages else []
    done = run(python, ROOT / "tests/bench/onnx_forms.py", peer, *folders, JAX_PLATFORMS="cpu")
    expect(done.returncode == 0, f"ends with {done.returncode}: {done.stderr[-1000:]}")
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    expect([each["results"] for each in found] == [1, 1, 5] and not any(each["wrong"] for each in found), f"{found}")
    expect(0 < found[2]["file"] < found[2]["weights"] / 4, f"weights are in the file: {found[2]}")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    listing = run("ninja", "-C", build, "-t", "targets", "all").stdout
    targets = [name for name in ("import_bench", "kernel_bench", "contractions") if f"bench/{name}: " in listing]
    built = run("ninja", "-C", build, *(f"bench/{name}" for name in targets))
    python = ROOT / "frameworks/jax/.venv/bin/python"
    jax = run(ROOT / "frameworks/jax/make-venv", BUILD_DIR=str(build))
    onnx_packages = ROOT / "frameworks/onnxruntime/.venv"
    onnx = run(ROOT / "frameworks/onnxruntime/make-venv", BUILD_DIR=str(build))
    aot_python = ROOT / "bench/aot/.venv/bin/python"
    environments = {"jax": jax, "onnx": onnx if jax.returncode == 0 else jax}
    failed = False
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        tests = {"imports": ("import_bench", lambda: test_import(build)),
                 "kernels on cpu": ("kernel_bench", lambda: test_kernels(build, "cpu")),
                 "kernels on gpu-sim": ("kernel_bench", lambda: test_kernels(build, "gpu-sim")),
                 "contractions": ("contractions", lambda: test_contractions(build, folder)),
                 "lists of programs": ("jax", lambda: test_lists(python)),
                 "programs beside XLA": ("jax", lambda: test_compare(python, folder)),
                 "models as ONNX, ONNX Runtime": ("onnx", lambda: test_onnx_forms(python, "OnnxRuntime", onnx_packages)),
                 "models as ONNX, TVM": ("tvm", lambda: test_onnx_forms(aot_python, "Tvm"))}
        for name, (needs, test) in tests.items():
            made = environments.get(needs, built)
            if needs in environments and made.returncode == 77:
                print(f"SKIP bench, {name}: {made.stderr.strip().splitlines()[-1]}")
            elif needs == "tvm" and not aot_python.exists():
                print(f"SKIP bench, {name}: bench/aot/setup has not made its environment")
            elif needs not in (*environments, "tvm", *targets):
                print(f"SKIP bench, {name}: its libraries are not installed")
            else:
                try:
                    expect(made.returncode == 0, f"is not made: {(made.stdout + made.stderr)[-2000:]}")
                    test()
                    print(f"PASS bench, {name}")
                except (RuntimeError, ValueError, KeyError, OSError, subprocess.TimeoutExpired) as error:
                    failed = True
                    print(f"FAIL bench, {name}: {' / '.join(str(error).splitlines())}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
