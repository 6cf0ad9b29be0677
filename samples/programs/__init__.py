"""Every sample by name. A builder makes its sample when called, as some take a while."""

from __future__ import annotations

from collections.abc import Callable

from . import digits, networks, numerics
from .sample import RandomInput, Sample

SAMPLES: dict[str, Callable[[], Sample]] = {
    "digits_inference": digits.digits_inference_sample,
    "digits_train_step": digits.digits_train_step_sample,
    "mlp_784_train_step": networks.mlp_784_train_step_sample,
    "convnet": digits.convnet_sample,
    "convnet_grad": digits.convnet_grad_sample,
    "lstm": networks.lstm_sample,
    "transformer_block": networks.transformer_block_sample,
    "solver": numerics.solver_sample,
    "random": numerics.random_sample,
    "bf16_mlp": networks.bf16_mlp_sample,
    "int8_dot": networks.int8_dot_sample,
    "sort_topk": numerics.sort_topk_sample,
    "fft": numerics.fft_sample,
    "linalg": numerics.linalg_sample,
    "dynamic": numerics.dynamic_sample,
}

__all__ = ["SAMPLES", "RandomInput", "Sample"]
