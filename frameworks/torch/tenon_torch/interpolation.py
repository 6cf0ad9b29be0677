"""Interpolation and samplers.

The gradient of interpolate() is one op: PyTorch's decomposition for Autograd makes lookups of it, whose gradient adds each element of the
result to four or sixteen places. Samplers compute places and weights once for all channels, and look up along one flat dimension."""

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


# --- grid_sampler_2d: interpolation 0 is bilinear, 1 nearest, 2 bicubic; padding 0 is zeros, 1 the border, 2 reflection


def _clamped(place, size: int):
    """Into [0, size - 1]. The gradient is 0 at both ends, as PyTorch's own is."""
    return torch.where((place > 0) & (place < size - 1), place, place.detach().clamp(0, size - 1))


def _reflected(place, size: int, align_corners: bool):
    """Into [0, size - 1], by reflection at the centers of the outermost elements or at their edges."""
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    if span == 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    turns, rest = torch.floor(distance / span), torch.fmod(distance, span)
    return _clamped(torch.where(turns % 2 == 0, rest + low, span - rest + low), size)


def _padded(place, size: int, padding: int, align_corners: bool):
    if padding == 0:
        return place
    return _clamped(place, size) if padding == 1 else _reflected(place, size, align_corners)


def _cubic_weights(t):
    """Of the places -1, 0, 1, 2 around one at the fraction t, by Keys' kernel with a = -0.75."""
    a = -0.75
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1  # noqa: E731
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a  # noqa: E731
    return far(t + 1), near(t), near(1 - t), far(2 - t)


def grid_sampler_2d(x, grid, interpolation: int = 0, padding: int = 0, align_corners: bool = False):
    """x [n, c, h, w] at the places grid [n, y, x, 2]."""
    count, channels, height, width = x.shape
    flat = x.reshape(count, channels, height * width)

    def place_of(coordinate, size: int):
        return (coordinate + 1) * ((size - 1) / 2) if align_corners else ((coordinate + 1) * size - 1) / 2

    def at(column, row):
        """The elements at whole places [n, y, x], 0 outside."""
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        place = torch.where(inside, row.to(torch.int64) * width + column.to(torch.int64), 0).reshape(count, 1, column.shape[1] * column.shape[2])
        found = flat.gather(2, place.expand(count, channels, place.shape[2])).reshape(count, channels, *column.shape[1:])
        return torch.where(inside[:, None], found, 0)

    columns, rows = place_of(grid[..., 0], width), place_of(grid[..., 1], height)
    if interpolation == 2:
        left, top = columns.floor(), rows.floor()
        across, down = _cubic_weights(columns - left), _cubic_weights(rows - top)
        total = 0
        for j in range(4):
            row = _padded(top + (j - 1), height, padding, align_corners)
            line = sum(at(_padded(left + (i - 1), width, padding, align_corners), row) * across[i][:, None] for i in range(4))
            total = total + line * down[j][:, None]
        return total
    columns, rows = _padded(columns, width, padding, align_corners), _padded(rows, height, padding, align_corners)
    if interpolation == 1:
        return at(columns.round(), rows.round())
    left, top = columns.floor(), rows.floor()
    right, bottom = columns - left, rows - top
    total = 0
    for row, down in ((top, 1 - bottom), (top + 1, bottom)):
        for column, across in ((left, 1 - right), (left + 1, right)):
            total = total + at(column, row) * (across * down)[:, None]
    return total


# --- In place of PyTorch's functions, before AOTAutograd


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """As torch.nn.functional.grid_sample."""
    needs_gradient = torch.is_grad_enabled() and (input.requires_grad or grid.requires_grad)
    is_plain = input.dim() == 4 and input.dtype == grid.dtype and input.dtype in (torch.float32, torch.float64)
    has_gradient = mode != "nearest" or not grid.requires_grad  # PyTorch's are zeros.
    if not (needs_gradient and is_plain and has_gradient):
        return F.grid_sample(input, grid, mode, padding_mode, align_corners)
    return grid_sampler_2d(input, grid, ("bilinear", "nearest", "bicubic").index(mode), ("zeros", "border", "reflection").index(padding_mode),
                           bool(align_corners))


_OWN = {F.interpolate: interpolate, F.grid_sample: grid_sample}


def with_own_functions(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph with the functions of this file in place of PyTorch's; changed in place."""
    found = [node for node in module.graph.nodes if node.op == "call_function" and node.target in _OWN]
    for node in found:
        node.target = _OWN[node.target]
    if found:
        module.recompile()
    return module
