"""What the JAX tests share: they run on the device that TENON_DEVICE names, as the platform `tenon`."""

import gc
import os
import re
import subprocess
import sys
import textwrap

import pytest


def pytest_addoption(parser):
    parser.addoption("--part", metavar="I/N", default="1/1", help="run every N-th test, from the I-th on")


def pytest_collection_modifyitems(config, items):
    """Tests of one file are spread over the parts, so that each part has some of every file."""
    first, step = map(int, config.getoption("--part").split("/"))
    config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % step != first - 1])
    items[:] = items[first - 1::step]


def pytest_collection_finish():
    """What is imported stays: to look for cycles of objects in it takes a part of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def is_stood_for() -> bool:
    """Whether cpu or template stand for the device, where only matters whether the host sees its memory. They do not for a
    device that is not of this tree."""
    device = os.environ.get("TENON_DEVICE", "cpu")
    return device in ("interp", "gpu-sim", "reference") or "libtenon_template" in device


@pytest.fixture
def seen_and_hidden():
    """Skips a test on devices for which others stand."""
    if is_stood_for():
        pytest.skip("cpu and template stand for this device")


@pytest.fixture
def run_program():
    """Runs a program in a separate process with its own settings; returns its output."""

    def run(program: str, **settings: str) -> str:
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={**os.environ, **settings},
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        assert done.returncode == 0, done.stdout
        # PoCL's compiler counts its warnings there, whatever it is told.
        return re.sub(r"^\d+ warnings? generated\.\n", "", done.stdout, flags=re.MULTILINE)

    return run
