"""What a sample is: a JAX function, the arrays to run it on, and a few words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class RandomInput:
    """An input that is described instead of stored; whoever runs the sample makes it.

    `distribution` is "normal" (with `parameters` mean and stddev) or "integers"
    (with `parameters` low and high, low <= value < high).
    """

    shape: tuple[int, ...]
    dtype: str
    distribution: str
    seed: int
    parameters: dict[str, float]

    def make(self) -> np.ndarray:
        """One such array."""
        rng = np.random.default_rng(self.seed)
        if self.distribution == "normal":
            values = rng.normal(self.parameters["mean"], self.parameters["stddev"], self.shape)
        elif self.distribution == "integers":
            values = rng.integers(self.parameters["low"], self.parameters["high"], self.shape)
        else:
            raise ValueError(f"no distribution is called {self.distribution!r}")
        return values.astype(self.dtype)


@dataclass(frozen=True)
class ExtraFile:
    """An array kept beside a sample that is no input or output of its program."""

    array: np.ndarray
    description: str


@dataclass(frozen=True)
class Sample:
    """A program to export.

    The parameters of `function` are the program's inputs, in order, and the
    tuple it returns holds the program's outputs, in the order of `output_names`.
    """

    description: str
    function: Callable[..., tuple[Any, ...]]
    inputs: tuple[np.ndarray | RandomInput, ...]
    output_names: tuple[str, ...]
    tolerance: float = 1e-5
    """How far a floating-point result may lie from the stored one, both
    relatively and absolutely. Results of other types must be equal."""
    lowering_platform: str = "cpu"
    """The platform that JAX lowers for. Results are always computed on the CPU."""
    symbolic_shapes: tuple[str | None, ...] | None = None
    """For a shape-polymorphic export: each input's shape with its symbolic
    dimensions, such as "batch, 64"; None for an input with a static shape."""
    extra_files: dict[str, ExtraFile] = field(default_factory=dict)

    @property
    def has_stored_inputs(self) -> bool:
        """Whether inputs and results are stored, or only the program is."""
        return not any(isinstance(array, RandomInput) for array in self.inputs)

    def arrays(self) -> list[np.ndarray]:
        """The inputs, with the random ones made."""
        return [item.make() if isinstance(item, RandomInput) else item for item in self.inputs]


def random_normal(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 1.0) -> np.ndarray:
    """Float32 values, normal around 0 with the standard deviation `scale`."""
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def dense_weights(rng: np.random.Generator, fan_in: int, *rest: int) -> np.ndarray:
    """Starting weights of shape (fan_in, *rest), scaled for a ReLU after them."""
    return random_normal(rng, (fan_in, *rest), scale=float(np.sqrt(2.0 / fan_in)))


def zeros(*shape: int) -> np.ndarray:
    """Float32 zeros."""
    return np.zeros(shape, np.float32)


def mean_cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean softmax cross-entropy of integer labels (lowers to a gather)."""
    log_probabilities = jax.nn.log_softmax(logits)
    picked = jnp.take_along_axis(log_probabilities, labels[:, None], axis=1)
    return -jnp.mean(picked)
