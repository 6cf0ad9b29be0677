"""The short form of frameworks/jax/soak: what a process holds stays what it was."""

import pathlib
import subprocess
import sys

SOAK = pathlib.Path(__file__).resolve().parents[1] / "soak"


def soak(*options: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, SOAK, *options], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=600)


def test_holds_what_it_held():
    done = soak("--dispatches", "4000", "--compilations", "40", "--threads", "4", "--rounds", "10")
    assert done.returncode == 0, done.stdout
    for part in ("4000 dispatches: flat", "40 compilations: flat", "4 threads: flat", "soak: flat"):
        assert part in done.stdout, done.stdout


def test_sees_what_grows():
    """Without room to grow it reports growth, and a leak of arrays by number."""
    program = f"""
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("soak", {str(SOAK)!r})
soak = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
loader.exec_module(soak)
import jax
part = soak.Part("a leak", 1e9)
part.sample("before")
kept = [jax.device_put(1.0)]
part.sample("after")
assert not part.verdict()
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and "arrays grew from 0 to 1" in done.stdout, done.stdout
