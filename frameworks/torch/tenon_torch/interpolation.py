"""Interpolation: the gradient of interpolate() is one op. PyTorch's decomposition for Autograd makes lookups of it, whose gradient adds
each element of the result to four or sixteen places."""

import torch
import torch.nn.functional as F

aten = torch.ops.aten
_NAMES = {"nearest": "upsample_nearest{}d", "nearest-exact": "_upsample_nearest_exact{}d", "linear": "upsample_linear{}d",
          "bilinear": "upsample_bilinear{}d", "trilinear": "upsample_trilinear{}d", "bicubic": "upsample_bicubic{}d"}


class Interpolation(torch.autograd.Function):
    """interpolate() of a tensor for which `backward_of` has an op."""

    @staticmethod
    def forward(ctx, x, size, scale_factor, mode, align_corners, recompute_scale_factor):
        out = F.interpolate(x, size, scale_factor, mode, align_corners, recompute_scale_factor)
        rank = x.dim() - 2
        if size is not None or scale_factor is None or recompute_scale_factor:
            scales = [None] * rank
        else:
            scales = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * rank
        corners = [] if mode.startswith("nearest") else [bool(align_corners)]
        ctx.words = list(out.shape[2:]), list(x.shape), *corners, *scales
        ctx.op = backward_of(mode, rank)
        return out

    @staticmethod
    def backward(ctx, gradient):
        return ctx.op(gradient.contiguous(), *ctx.words), None, None, None, None, None


def backward_of(mode: str, rank: int):
    packet = getattr(aten, _NAMES.get(mode, "no op").format(rank) + "_backward", None)
    return packet and packet.default


def _is_known(sizes) -> bool:
    """Whether the numbers are known when a graph is made; the op's own shape function takes no others."""
    flat = [number for each in sizes for number in (each if isinstance(each, (list, tuple)) else [each])]
    return all(number is None or type(number) in (int, float) for number in flat)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """As torch.nn.functional.interpolate."""
    has_op = not antialias and backward_of(mode, input.dim() - 2) and _is_known([*input.shape, size, scale_factor])
    is_transformed = torch._C._functorch.maybe_current_level() is not None  # By torch.func, whose rules PyTorch's own op has.
    if not has_op or is_transformed or not (torch.is_grad_enabled() and input.requires_grad):
        return F.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    return Interpolation.apply(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


# --- In place of PyTorch's function, before AOTAutograd


def with_own_functions(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph with the function of this file in place of PyTorch's; changed in place."""
    for part in module.modules():  # Bodies of torch.utils.checkpoint are graphs of their own.
        if not isinstance(part, torch.fx.GraphModule):
            continue
        found = [node for node in part.graph.nodes if node.op == "call_function" and node.target is F.interpolate]
        for node in found:
            node.target = interpolate
        if found:
            part.recompile()
    return module
