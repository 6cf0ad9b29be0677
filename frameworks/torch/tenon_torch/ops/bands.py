"""Products along a dimension with matrices of few elements a row: resizes, their gradients, averages of windows."""

import math

import torch

from ..builder import Builder, Value

_SPARSE = 6  # A product with zeros does the work of several elements in the time of one that is looked up.
_FEW = 8  # Elements a row, which are looked up however short the dimension is: a zero times infinity is no number.
_MOST_TERMS = 32  # More are one lookup, and a sum.


class Bands:
    """A matrix by the elements of its rows: `places` and `factors` [rows, each], as i64 and floats. A factor of 0 fills up a row."""

    def __init__(self, columns: int, places: torch.Tensor, factors: torch.Tensor):
        """Drops what is 0 in every row."""
        kept = factors != 0
        each = max(1, int(kept.sum(1).max()))
        order = kept.to(torch.int8).sort(dim=1, descending=True, stable=True).indices[:, :each]
        self.columns, self.places, self.factors = columns, places.gather(1, order), factors.gather(1, order)

    @property
    def rows(self) -> int:
        return self.places.shape[0]

    @property
    def each(self) -> int:
        return self.places.shape[1]

    @property
    def transposed(self) -> "Bands":
        kept = self.factors != 0
        order = self.places[kept].argsort(stable=True)
        row = torch.arange(self.rows, device="cpu")[:, None].expand_as(self.places)[kept][order]
        column, factor = self.places[kept][order], self.factors[kept][order]
        counts = torch.bincount(column, minlength=self.columns)
        within = torch.arange(len(column), device="cpu") - (counts.cumsum(0) - counts)[column]
        shape = self.columns, max(1, int(counts.max()))
        places, factors = torch.zeros(shape, dtype=torch.int64, device="cpu"), torch.zeros(shape, dtype=self.factors.dtype, device="cpu")
        places[column, within], factors[column, within] = row, factor
        return Bands(self.rows, places, factors)

    def dense(self) -> torch.Tensor:
        matrix = torch.zeros(self.rows, self.columns, dtype=self.factors.dtype, device="cpu")
        return matrix.scatter_add(1, self.places, self.factors)


def bands_of(resize, size: int, out: int, reach: float, dtype: torch.dtype) -> Bands:
    """The matrix [out, size] of `resize`, which is linear and takes [1, channels, size] to [1, channels, out]; a result takes elements
    within `reach` of their middle. Elements that are far from one another share a channel, so that memory grows with the size alone."""
    count = min(size, 3 * math.ceil(reach) + 8)
    at, channel = torch.arange(size, device="cpu"), torch.arange(count, device="cpu")
    found = resize((at % count == channel[:, None]).to(dtype)[None])[0]
    middle = resize(at.double()[None, None])[0, 0]
    places = (middle.round().long() - count // 2).clamp(0, size - count)[:, None] + channel
    return Bands(size, places, found[places % count, torch.arange(out, device="cpu")[:, None]])


def averaging(size: int, out: int, dtype: torch.dtype) -> Bands:
    """[out, size]: each row averages a window; the sizes of windows differ by one."""
    index = torch.arange(out, device="cpu")
    starts, ends = index * size // out, ((index + 1) * size + out - 1) // out
    lengths = ends - starts
    within = torch.arange(int(lengths.max()), device="cpu")
    places = torch.minimum(starts[:, None] + within, ends[:, None] - 1)
    return Bands(size, places, torch.where(within < lengths[:, None], 1 / lengths[:, None].to(dtype), 0))


def multiply(b: Builder, x: Value, matrices: list[Bands]) -> Value:
    """x with each of its last dimensions multiplied by a matrix [new, old]."""
    for dim, matrix in enumerate(matrices, x.rank - len(matrices)):
        if matrix.each <= _FEW or matrix.each * _SPARSE <= matrix.columns:
            x = _by_elements(b, x, dim, matrix)
            continue
        x = b.dot(x, b.convert(b.tensor(matrix.dense()), x.dtype), ([dim], [1]))
        order = list(range(x.rank - 1))
        order.insert(dim, x.rank - 1)
        x = b.transpose(x, order)
    return x


def _by_elements(b: Builder, x: Value, dim: int, matrix: Bands) -> Value:
    if matrix.each > _MOST_TERMS:
        term = _term(b, x, dim, matrix.places, matrix.factors)
        return b.reduce(term, [dim + 1], "add", 0)
    total = None
    for place, factor in zip(matrix.places.T, matrix.factors.T):
        term = _term(b, x, dim, place, factor)
        total = term if total is None else b.add(total, term)
    return total


def _term(b: Builder, x: Value, dim: int, places: torch.Tensor, factors: torch.Tensor) -> Value:
    """x looked up along `dim`, by its factors; 0 where the factor is 0, whatever the element."""
    looked_up = list(range(dim, dim + places.dim()))
    shape = (*x.shape[:dim], *places.shape, *x.shape[dim + 1:])
    index = b.reshape(b.tensor(places.to(torch.int32)), (*places.shape, 1))
    taken = b.gather(x, index, offset_dims=[d for d in range(len(shape)) if d not in looked_up], collapsed=[dim], start_index_map=[dim],
                     slice_sizes=[*x.shape[:dim], 1, *x.shape[dim + 1:]], shape=shape)
    term = b.multiply(taken, b.broadcast_in_dim(b.convert(b.tensor(factors), x.dtype), shape, looked_up))
    if bool((factors != 0).all()):
        return term
    return b.select(b.broadcast_in_dim(b.tensor(factors != 0), shape, looked_up), term, b.like(term, 0))
