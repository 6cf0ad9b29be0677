"""`torch.nn.functional.linear_cross_entropy` by batches: the loss of a linear layer's results, of which only some rows are in memory at a time,
with its gradients in the same pass. One loop, whatever the number of batches.
"""

import torch
import torch.nn.modules.linear_cross_entropy  # Defines its ops, which PyTorch does when the function is first called.

from .loops import loop, step
from .table import wide

_ops = torch.ops.torch_nn


def _logits(x, matrix, bias):
    logits = torch.matmul(x, matrix.t()) + bias
    return logits.to(wide(x.dtype))


def _losses(logits, target, share):
    """Of each row, and the logarithm of the row's sum."""
    log_sum = torch.logsumexp(logits, 1, True)
    return share * (log_sum - logits.gather(1, target.unsqueeze(1))).squeeze(1), log_sum


def _loss_of_rows(sequences, state, constants):
    x, target, share = sequences
    return [], [_losses(_logits(x, *constants), target, share)[0]]


def _loss_and_gradients(sequences, state, constants):
    x, target, share = sequences
    by_matrix, by_bias = state
    matrix, _ = constants
    logits = _logits(x, *constants)
    losses, log_sum = _losses(logits, target, share)
    by_logits = torch.exp(logits - log_sum) * share.unsqueeze(1)
    by_logits = by_logits - torch.where(torch.arange(logits.shape[1], device=x.device) == target.unsqueeze(1), share.unsqueeze(1), 0)
    narrow = by_logits.to(x.dtype)
    by_matrix = by_matrix + torch.matmul(narrow.t(), x).to(by_matrix.dtype)
    return [by_matrix, by_bias + by_logits.sum(0)], [losses, torch.matmul(narrow, matrix)]


_LOSS, _GRADIENTS = step(_loss_of_rows), step(_loss_and_gradients)


def _rows(x, target, weight, ignore_index, size: int):
    """The rows in batches of `size`, the last one filled up with rows of no share: inputs, targets, and what each row counts."""
    kept = target != ignore_index
    target = torch.where(kept, target, 0)
    dtype = wide(x.dtype)
    share = kept.to(dtype) if weight is None else torch.where(kept, weight.to(dtype)[target], 0)
    count = -(-x.shape[0] // size)
    missing = count * size - x.shape[0]
    x, target, share = (torch.cat([each, each.new_zeros(missing, *each.shape[1:])]) if missing else each for each in (x, target, share))
    return [each.reshape(count, size, *each.shape[1:]) for each in (x, target, share)]


def _linear_cross_entropy(x, matrix, target, bias, weight, reduction, ignore_index, label_smoothing, size, acc_policy, acc_dtype, retain, by_x, by_matrix, by_bias):
    if label_smoothing != 0 or x.shape[0] == 0 or x.dtype != matrix.dtype:
        return NotImplemented
    classes = matrix.shape[0]
    rows, targets, shares = _rows(x, target, weight, ignore_index, min(size, x.shape[0]))
    if reduction == "mean":
        shares = shares / shares.sum()
    constants = [matrix, matrix.new_zeros(classes) if bias is None else bias.to(matrix.dtype)]
    nothing, flat = x.new_zeros((0, 0)), x.new_zeros((0,))
    if not (by_x or by_matrix or by_bias):
        _, (losses,) = loop(_LOSS, [rows, targets, shares], [], constants)
        return losses.sum().to(x.dtype), nothing, nothing.clone(), flat
    state = [torch.zeros(shape, dtype=wide(x.dtype), device=x.device) for shape in (matrix.shape, (classes,))]
    (matrix_gradient, bias_gradient), (losses, gradients) = loop(_GRADIENTS, [rows, targets, shares], state, constants)
    return (losses.sum().to(x.dtype), gradients.flatten(0, 1)[:x.shape[0]] if by_x else nothing,
            matrix_gradient.to(x.dtype) if by_matrix else nothing.clone(), bias_gradient.to(x.dtype) if by_bias else flat)


def _losses_of_rows(x, matrix, target, bias, weight, ignore_index, size, acc_policy, acc_dtype):
    if x.shape[0] == 0 or x.dtype != matrix.dtype:
        return NotImplemented
    rows, targets, shares = _rows(x, target, weight, ignore_index, min(size, x.shape[0]))
    constants = [matrix, matrix.new_zeros(matrix.shape[0]) if bias is None else bias.to(matrix.dtype)]
    _, (losses,) = loop(_LOSS, [rows, targets, shares], [], constants)
    return losses.flatten()[:x.shape[0]].to(x.dtype)


DECOMPOSITIONS = {
    _ops._linear_cross_entropy_batch_chunked.default: _linear_cross_entropy,
    _ops._linear_cross_entropy_batch_chunked_no_reduction.default: _losses_of_rows,
}
