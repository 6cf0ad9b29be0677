"""What the JAX tests share: they run on the device that TENON_DEVICE names, as the platform `tenon`."""

import os
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def seen_and_hidden():
    """Skips what differs only by whether the host sees the device's memory on all devices but two: one of each."""
    if os.environ.get("TENON_DEVICE") not in ("cpu", "template"):
        pytest.skip("cpu and template stand for all devices")


@pytest.fixture
def run_program():
    """Runs a program in a separate process with its own settings; returns its output."""

    def run(program: str, **settings: str) -> str:
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={**os.environ, **settings},
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run
