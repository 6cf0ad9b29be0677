"""Which ATen ops are rewritten by others before they are lowered: PyTorch's own table, less what `tenon_torch.ops` lowers, and a few of
ours."""

import functools
import math

import torch
from torch._decomp import core_aten_decompositions, global_decomposition_table

from . import histograms, incomplete_gamma, linear_cross_entropy, ops, polynomials, pools, recurrent, solving, special  # noqa: F401 (`ops` fills the table)
from .ops.windows import select_and_scatter
from .samplers import grid_sampler, grid_sampler_backward
from .table import TABLE, aten, lowers, overloads

# --- an op of our own: the gradient of a maximum pool from its input, so that the forward pass need not keep the places

_library = torch.library.Library("tenon_torch", "DEF")
_library.define("max_pool2d_backward(Tensor gradient, Tensor x, int[2] kernel, int[2] stride, int[2] padding, bool ceil_mode) -> Tensor")


def _max_pool2d_backward(gradient, x, kernel, stride, padding, ceil_mode):
    _, places = aten.max_pool2d_with_indices(x, kernel, stride, padding, [1, 1], ceil_mode)
    return aten.max_pool2d_with_indices_backward(gradient, x, kernel, stride, padding, [1, 1], ceil_mode, places)


_library.impl("max_pool2d_backward", _max_pool2d_backward, "CompositeExplicitAutograd")
_library.impl("max_pool2d_backward", lambda gradient, x, *_: torch.empty_like(x), "Meta")


@lowers(torch.ops.tenon_torch.max_pool2d_backward.default)
def _lower_max_pool2d_backward(b, gradient, x, kernel, stride, padding, ceil_mode):
    return select_and_scatter(b, gradient, x, 2, kernel, stride, padding)


def _max_pool2d_with_indices_backward(gradient, x, kernel, stride, padding, dilation, ceil_mode, places):
    if any(each != 1 for each in dilation) or not x.dtype.is_floating_point:
        return NotImplemented
    return torch.ops.tenon_torch.max_pool2d_backward(gradient, x, kernel, stride, padding, ceil_mode)


# --- attention: on CPU tensors scaled_dot_product_attention traces to ops of the CPU's own kernel


def _scale(q, scale) -> float:
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def _scores(q, k, is_causal, mask, scale):
    scores = torch.matmul(q, k.transpose(-1, -2)) * _scale(q, scale)
    if is_causal:
        rows = torch.arange(scores.shape[-2], device=q.device)
        columns = torch.arange(scores.shape[-1], device=q.device)
        scores = torch.where(columns <= rows[:, None], scores, -math.inf)
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _widened(*tensors):
    return [each.float() if each.dtype in (torch.float16, torch.bfloat16) else each for each in tensors]


def _shared(q, *tensors):
    """Keys and values that several heads of queries share, once for each of them."""
    count = q.shape[-3] // tensors[0].shape[-3]
    return [each if count == 1 else each.repeat_interleave(count, -3) for each in tensors]


def _summed(gradient, like):
    """The gradient of what was shared."""
    count = gradient.shape[-3] // like.shape[-3]
    return gradient if count == 1 else gradient.unflatten(-3, (-1, count)).sum(-3)


def _attention(q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    """The result and the logarithm of each row's sum."""
    dtype = q.dtype
    if dropout_p != 0:
        return NotImplemented
    k, v = _shared(q, k, v)
    scores, = _widened(_scores(q, k, is_causal, attn_mask, scale))
    top = scores.amax(-1, True)
    top = torch.where(top == -math.inf, 0, top)  # A row that is masked as a whole gives zeros.
    powers = torch.exp(scores - top)
    total = powers.sum(-1, True)
    weights = torch.where(total == 0, 0, powers / total).to(dtype)
    return torch.matmul(weights, v), (torch.log(total) + top).squeeze(-1)


def _attention_backward(gradient, q, k, v, out, log_sum, dropout_p, is_causal, *, attn_mask=None, scale=None):
    dtype = q.dtype
    own_k, own_v = k, v
    k, v = _shared(q, k, v)
    scores, = _widened(_scores(q, k, is_causal, attn_mask, scale))
    log_sum = log_sum.unsqueeze(-1)
    weights = torch.where(log_sum == -math.inf, 0, torch.exp(scores - log_sum))
    by_weight, = _widened(torch.matmul(gradient, v.transpose(-1, -2)))
    wide_gradient, wide_out = _widened(gradient, out)
    by_score = weights * (by_weight - (wide_gradient * wide_out).sum(-1, True)) * _scale(q, scale)
    by_score, weights = by_score.to(dtype), weights.to(dtype)
    by_key, by_value = torch.matmul(by_score.transpose(-1, -2), q), torch.matmul(weights.transpose(-1, -2), gradient)
    return torch.matmul(by_score, k), _summed(by_key, own_k), _summed(by_value, own_v)


# --- distances of rows, and gradients of bags of embeddings


def _length(difference, p):
    size = difference.abs()
    if p == 0:
        return (difference != 0).to(difference.dtype).sum(-1)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return difference.square().sum(-1).sqrt()
    return size.amax(-1) if p == math.inf else size.pow(p).sum(-1).pow(1 / p)


def _length_backward(gradient, difference, p, length):
    """By the difference; 0 where the length is."""
    gradient, length, size = gradient.unsqueeze(-1), length.unsqueeze(-1), difference.abs()
    if p == 0:
        return torch.zeros_like(difference)
    if p == 1:
        return gradient * difference.sign()
    if p == math.inf:
        return torch.where(size == length, gradient * difference.sign(), 0)
    powers = difference if p == 2 else difference.sign() * size.pow(p - 1)
    result = gradient * powers / (length if p == 2 else length.pow(p - 1))
    return torch.where((length == 0) | (difference == 0), 0, result)


def _cdist_forward(x, y, p, compute_mode=None):
    if x.numel() == 0 or y.numel() == 0:
        return x.new_zeros((*torch.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2]))
    return _length(x.unsqueeze(-2) - y.unsqueeze(-3), p)


def _cdist_backward(gradient, x, y, p, distances):
    return _length_backward(gradient, x.unsqueeze(-2) - y.unsqueeze(-3), p, distances).sum(-2)


def _pairs(x):
    return torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)


def _pdist_forward(x, p=2.0):
    if x.shape[0] < 2 or x.shape[1] == 0:
        return x.new_zeros(x.shape[0] * max(0, x.shape[0] - 1) // 2)
    first, second = _pairs(x)
    return _length(x[first] - x[second], p)


def _pdist_backward(gradient, x, p, distances):
    if x.shape[0] < 2 or x.shape[1] == 0:
        return torch.zeros_like(x)
    first, second = _pairs(x)
    each = _length_backward(gradient, x[first] - x[second], p, distances)
    zeros = torch.zeros_like(x)
    return aten.index_put(aten.index_put(zeros, [first], each, True), [second], -each, True)


def _bags(indices, offsets):
    """The bag of each index: eager mode does not always keep it."""
    begun = aten.index_put(offsets.new_zeros(indices.shape[0] + 1), [offsets], torch.ones_like(offsets), True)
    return begun[:-1].cumsum(0) - 1


def _embedding_bag_backward(gradient, indices, offsets, bag, sizes, places, rows, scale_grad_by_freq, mode, sparse, weights, padding_idx=-1):
    if sparse:
        return NotImplemented
    if mode == 2:  # To the row of each element of a maximum; an empty bag's go nowhere.
        full = (sizes[:gradient.shape[0]] > 0).unsqueeze(-1)
        columns = torch.arange(gradient.shape[1], device=gradient.device).expand(gradient.shape)
        return aten.index_put(gradient.new_zeros(rows, gradient.shape[1]), [places, columns], torch.where(full, gradient, 0), True)
    bag = _bags(indices, offsets[:gradient.shape[0]])
    each, kept = gradient[bag], indices != padding_idx
    if mode == 1:
        sizes = aten.index_put(torch.zeros(gradient.shape[0], dtype=torch.int64, device=gradient.device), [bag], kept.to(torch.int64), True)
        each = each / sizes[bag].clamp(min=1).to(each.dtype).unsqueeze(-1)
    if weights is not None:
        each = each * weights.unsqueeze(-1)
    if scale_grad_by_freq:
        counts = aten.index_put(each.new_zeros(rows), [indices], torch.ones_like(indices, dtype=each.dtype), True)
        each = each / counts[indices].unsqueeze(-1)
    if padding_idx >= 0:
        each = torch.where(kept.unsqueeze(-1), each, 0)
    return aten.index_put(gradient.new_zeros(rows, gradient.shape[1]), [indices], each, True)


def _embedding_bag_weights_backward(gradient, weight, indices, offsets, bag, mode, padding_idx=-1):
    each = (gradient[_bags(indices, offsets[:gradient.shape[0]])] * weight[indices]).sum(-1)
    return each if padding_idx < 0 else torch.where(indices == padding_idx, 0, each)


# --- cells of recurrent layers: off the CPU nn.LSTM and nn.GRU take these ops


def _lstm_cell(input_gates, hidden_gates, state, input_bias=None, hidden_bias=None):
    gates = input_gates + hidden_gates
    return recurrent.lstm_cell(gates if input_bias is None else gates + input_bias + hidden_bias, state)


def _lstm_cell_backward(by_hidden, by_state, state, new, workspace, has_bias):
    if by_hidden is None and by_state is None:
        return None, None, None
    by_hidden = torch.zeros_like(new) if by_hidden is None else by_hidden
    gates, by_before = recurrent.lstm_cell_backward(by_hidden, by_state, state, workspace)
    return gates, by_before, gates.sum(0) if has_bias else None


def _gru_cell(input_gates, hidden_gates, state, input_bias=None, hidden_bias=None):
    if input_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    return recurrent.gru_cell(input_gates, hidden_gates, state)


def _gru_cell_backward(gradient, workspace, has_bias):
    by_input, by_hidden, by_state = recurrent.gru_cell_backward(gradient, workspace)
    return by_input, by_hidden, by_state, *((by_input.sum(0), by_hidden.sum(0)) if has_bias else (None, None))


# --- samplers: for the short floats PyTorch computes in f32


def _grid_sampler(x, grid, *modes):
    return grid_sampler(*_widened(x, grid), *modes).to(x.dtype)


def _grid_sampler_backward(gradient, x, grid, *modes):
    by_x, by_grid = grid_sampler_backward(*_widened(gradient, x, grid), *modes)
    return by_x if by_x is None else by_x.to(x.dtype), by_grid.to(grid.dtype)


# --- a row of integers: their steps are f64 on the CPU, and the ends are integers too


def _linspace(start, end, steps, *, dtype=None, **words):
    if dtype is None or dtype.is_floating_point or dtype.is_complex or steps < 2:
        return global_decomposition_table["post_autograd"][aten.linspace.default](start, end, steps, dtype=dtype, **words)
    start, end = int(start), int(end)
    step, place = (end - start) / (steps - 1), torch.arange(steps, device=words.get("device"))
    exact = place.double()
    return torch.where(place < steps // 2, start + step * exact, end - step * (steps - 1 - exact)).to(dtype)


# --- the sum of a batch's products: one product, rounded once


def _addbmm(x, a, b, *, beta=1, alpha=1):
    count, rows, inner = a.shape
    if not x.dtype.is_floating_point and not x.dtype.is_complex:
        alpha, beta = int(alpha), int(beta)
    left, right, start = _widened(a.transpose(0, 1).reshape(rows, count * inner), b.reshape(count * inner, b.shape[2]), x)
    product = torch.mm(left, right)
    product = product if alpha == 1 else product * alpha
    return (product if beta == 0 else product + start * beta).to(x.dtype)


# --- gradients of margin losses


def _by_row(gradient, x, reduction):
    """The loss's gradient for each row of x: 1 is the mean (at::Reduction)."""
    return (gradient / x.shape[0] if reduction == 1 else gradient).reshape(-1, 1)


def _rows(x):
    return x.reshape(-1, x.shape[-1] if x.dim() else 1)


def _multi_margin_loss_backward(gradient, x, target, p, margin, weight=None, reduction=1):
    rows, target = _rows(x), target.reshape(-1, 1)
    over = margin - rows.gather(1, target) + rows
    columns = torch.arange(rows.shape[1], device=x.device)
    slope = torch.where((over > 0) & (columns != target), over * 2 if p == 2 else torch.ones_like(over), 0)
    slope = slope if weight is None else slope * weight[target]
    slope = torch.where(columns == target, -slope.sum(1, True), slope) / rows.shape[1]
    return (slope * _by_row(gradient, rows, reduction)).reshape(x.shape)


def _multilabel_margin_loss_backward(gradient, x, target, reduction, is_target):
    """A row's targets end before the first negative one."""
    rows, target, is_target = (_rows(each) for each in (x, target, is_target))
    counts = (target < 0).cumsum(1) == 0
    place = torch.where(counts, target, 0)
    over = 1 - rows.gather(1, place).unsqueeze(2) + rows.unsqueeze(1)
    pairs = ((over > 0) & counts.unsqueeze(2) & (is_target == 0).unsqueeze(1)).to(x.dtype)
    slope = pairs.sum(1).scatter_add(1, place, -pairs.sum(2)) / rows.shape[1]
    return (slope * _by_row(gradient, rows, reduction)).reshape(x.shape)


# --- bilinear layers


def _trilinear(x, y, z, expand_x, expand_y, expand_z, summed, unroll_dim=1):
    """The sum of the products over dimensions of what is expanded: two contractions."""
    rank = x.dim() + len(expand_x)
    letters = "abcdefghijklmnopqrstuvwxyz"[:rank]
    own = ["".join(each for i, each in enumerate(letters) if i not in expand) for expand in (expand_x, expand_y, expand_z)]
    result = "".join(each for i, each in enumerate(letters) if i not in summed)
    # The first sums over what the third does not have.
    between = "".join(each for each in letters if each in own[0] + own[1] and (each in result or each in own[2]))
    return torch.einsum(f"{between},{own[2]}->{result}", torch.einsum(f"{own[0]},{own[1]}->{between}", x, y), z)


# --- draws


def _multinomial(chances, count, replacement=False, *, generator=None):
    """Places with the chances' shares, which are not checked. Without replacement: those of the greatest quotients by exponential numbers."""
    if count == 0:
        return NotImplemented
    chances, = _widened(chances)
    if not replacement or count == 1:
        quotients = chances / aten.exponential(chances)
        return quotients.argmax(-1, True) if count == 1 else quotients.topk(count, -1).indices
    sums = chances.cumsum(-1)
    drawn = torch.rand((*chances.shape[:-1], count), dtype=chances.dtype, device=chances.device) * sums[..., -1:]
    return torch.searchsorted(sums, drawn, right=True).clamp(max=chances.shape[-1] - 1)


def _rrelu(x, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    """Negative elements times a random slope, which the noise keeps; times the mean slope outside of training."""
    if not training:
        return torch.where(x < 0, x * ((lower + upper) / 2), x), noise
    slope = torch.where(x <= 0, torch.rand_like(x) * (upper - lower) + lower, 1)
    return x * slope, slope


_OURS = {
    **solving.DECOMPOSITIONS,
    **special.DECOMPOSITIONS,
    **histograms.DECOMPOSITIONS,
    **pools.DECOMPOSITIONS,
    **linear_cross_entropy.DECOMPOSITIONS,
    **incomplete_gamma.DECOMPOSITIONS,
    **polynomials.DECOMPOSITIONS,
    aten.addbmm.default: _addbmm,
    aten._trilinear.default: _trilinear,
    aten.multi_margin_loss_backward.default: _multi_margin_loss_backward,
    aten.multilabel_margin_loss_backward.default: _multilabel_margin_loss_backward,
    aten.multinomial.default: _multinomial,
    aten.rrelu_with_noise_functional.default: _rrelu,
    aten.cholesky.default: lambda x, upper=False: aten.linalg_cholesky_ex(x, upper=upper)[0],
    aten.linspace.default: _linspace,
    aten._thnn_fused_lstm_cell.default: _lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_backward,
    aten._thnn_fused_gru_cell.default: _gru_cell,
    aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
    aten.grid_sampler_2d.default: _grid_sampler,
    aten.grid_sampler_3d.default: _grid_sampler,
    aten.grid_sampler_2d_backward.default: _grid_sampler_backward,
    aten.grid_sampler_3d_backward.default: _grid_sampler_backward,
    aten._cdist_forward.default: _cdist_forward,
    aten._cdist_backward.default: _cdist_backward,
    aten._pdist_forward.default: _pdist_forward,
    aten._pdist_backward.default: _pdist_backward,
    aten._embedding_bag_backward.default: _embedding_bag_backward,
    aten._embedding_bag_per_sample_weights_backward.default: _embedding_bag_weights_backward,
    aten.max_pool2d_with_indices_backward.default: _max_pool2d_with_indices_backward,
    aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _attention_backward,
}


@functools.cache
def decompositions() -> dict:
    """What `torch.export.ExportedProgram.run_decompositions` and AOTAutograd take."""
    table = dict(global_decomposition_table["post_autograd"])
    table.update(core_aten_decompositions())
    for op in list(table):
        if op in TABLE:
            del table[op]
    table.update(_OURS)
    # Constants made while tracing become fake tensors by these.
    for op in (aten.lift.default, aten.lift_fresh.default):
        table.pop(op, None)
    for op in overloads(aten.sym_size, "int") + overloads(aten.sym_stride, "int") + overloads(aten.sym_numel, "default"):
        table.pop(op, None)
    return table
