"""What the tests share: they run on the device that TENON_DEVICE names (default: cpu)."""

import os
import pathlib

import pytest

import tenon


@pytest.fixture
def device() -> str:
    return os.environ.get("TENON_DEVICE", "cpu")


@pytest.fixture
def client() -> tenon.Client:
    return tenon.client()


@pytest.fixture
def samples() -> pathlib.Path:
    return pathlib.Path(__file__).resolve().parents[3] / "samples"
