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


@pytest.fixture
def endless_program() -> str:
    """A loop that a time limit alone ends."""
    return """
        func.func @main(%x: tensor<i32>) -> tensor<i32> {
          %r = stablehlo.while(%i = %x) : tensor<i32>
          cond {
            %p = stablehlo.compare EQ, %x, %x : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %p : tensor<i1>
          } do {
            %n = stablehlo.add %i, %x : tensor<i32>
            stablehlo.return %n : tensor<i32>
          }
          return %r : tensor<i32>
        }"""
