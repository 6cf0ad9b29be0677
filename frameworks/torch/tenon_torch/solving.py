"""Linear algebra by factors of matrices, as functions of PyTorch: determinants, solutions, inverses, LU and QR.

The factors that PyTorch's ops keep for their gradients are those of its CPU, on which the gradients' formulas rely.
"""

import torch

from .table import aten


_library = torch.library.Library("aten", "IMPL")


def _geqrf_meta(a):
    rows, columns = a.shape[-2:]
    return a.new_empty(*a.shape[:-2], columns, rows).mT, a.new_empty(*a.shape[:-2], min(rows, columns))


# Without it PyTorch would run the op to know its results' shapes.
if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::geqrf", "Meta"):
    _library.impl("geqrf", _geqrf_meta, "Meta")


def _factored(a):
    """Of a determinant: a real matrix that lies row-major is factored as its transpose."""
    return aten.linalg_lu_factor_ex(a.mT if a.is_contiguous() and not a.is_complex() else a)[:2]


def _sign_of(pivots):
    """-1 for each exchange of rows."""
    rows = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    return 1 - 2 * ((pivots != rows).sum(-1) % 2)


def _det(a):
    lu, pivots = _factored(a)
    return lu.diagonal(0, -2, -1).prod(-1) * _sign_of(pivots), lu, pivots


def _slogdet(a):
    lu, pivots = _factored(a)
    diagonal = lu.diagonal(0, -2, -1)
    return torch.sgn(diagonal).prod(-1) * _sign_of(pivots), diagonal.abs().log().sum(-1), lu, pivots


def _solve_ex(a, right, *, left=True, check_errors=False):
    if check_errors:
        return NotImplemented
    is_vector = right.dim() == 1 or (a.dim() - 1 == right.dim() and right.shape == a.shape[:-1])
    lu, pivots, info = aten.linalg_lu_factor_ex(a)
    result = aten.linalg_lu_solve(lu, pivots, right.unsqueeze(-1) if is_vector else right, left=left)
    return result.squeeze(-1) if is_vector else result, lu, pivots, info


def _inv_ex(a, *, check_errors=False):
    if check_errors:
        return NotImplemented
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand(a.shape)
    lu, pivots, info = aten.linalg_lu_factor_ex(a)
    return aten.linalg_lu_solve(lu, pivots, eye), info


def _lu(a, *, pivot=True):
    lu, pivots, _ = aten.linalg_lu_factor_ex(a, pivot=pivot)
    if pivot:
        return aten.lu_unpack(lu, pivots)
    return a.new_empty(0), *aten.lu_unpack(lu, pivots, True, False)[1:]


def _qr(a, mode="reduced"):
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    factors, taus = aten.geqrf(a)
    upper = factors.triu() if mode == "complete" else factors[..., :least, :].triu()
    if mode == "r":
        return a.new_empty(0), upper
    reflections = factors[..., :least]
    if mode == "complete" and rows > least:
        reflections = torch.cat([reflections, reflections.new_zeros(*a.shape[:-2], rows, rows - least)], -1)
    return aten.linalg_householder_product(reflections, taus), upper


def _tolerance(a, atol, rtol, largest):
    """Up to which singular values are zero: the greater of `atol` and `rtol` of the largest one, as PyTorch chooses them."""
    if atol is None and rtol is None:
        rtol = torch.finfo(a.dtype).eps * max(a.shape[-2:])
    if isinstance(atol, torch.Tensor) and rtol is None:
        rtol = torch.where(atol > 0, 0.0, torch.finfo(a.dtype).eps * max(a.shape[-2:]))
    elif rtol is None:
        rtol = 0.0 if atol > 0 else torch.finfo(a.dtype).eps * max(a.shape[-2:])
    least, relative = (torch.as_tensor(0.0 if each is None else each, dtype=largest.dtype, device=a.device).unsqueeze(-1) for each in (atol, rtol))
    return torch.maximum(least, relative * largest)


def _pinv(a, *, atol=None, rtol=None, hermitian=False):
    if a.numel() == 0:
        return a.new_empty(*a.shape[:-2], a.shape[-1], a.shape[-2])
    if hermitian:
        numbers, u = torch.linalg.eigh(a)
        sizes, v = numbers.abs(), u
        tolerance = _tolerance(a, atol, rtol, sizes.amax(-1, keepdim=True))
    else:
        u, numbers, vh = torch.linalg.svd(a, full_matrices=False)
        sizes, v = numbers, vh.mH
        tolerance = _tolerance(a, atol, rtol, numbers[..., :1])
    inverses = torch.where(sizes > tolerance, 1 / numbers, 0.0)
    return torch.matmul(v * inverses.to(a.dtype).unsqueeze(-2), u.mH)


DECOMPOSITIONS = {
    aten.linalg_pinv.atol_rtol_tensor: _pinv,
    aten._linalg_det.default: _det,
    aten._linalg_slogdet.default: _slogdet,
    aten._linalg_solve_ex.default: _solve_ex,
    aten.linalg_inv_ex.default: _inv_ex,
    aten.linalg_lu.default: _lu,
    aten.linalg_qr.default: _qr,
}
