// Jacobi's rotations of Hermitian matrices: half as many at once as there are rows, in the order of
// Brent and Luk (1985), by which every pair of rows meets once in a sweep.
#pragma once

#include "hlo/decomposition/linalg/matrices.h"

namespace tenon::hlo::decomposition {

/// The rotation that makes the element (p, q) of a Hermitian matrix zero: rows p and q become
/// c p - s q and conj(s) p + c q. `c` is real.
struct Rotation {
  Expr c;
  Expr s;
  Expr shift;  ///< Real: what element (p, p) loses and (q, q) gains.
};
/// The rotation for elements (p, p) and (q, q), which are real, and `corner`, (p, q).
Rotation rotation_of(const Expr& p, const Expr& q, const Expr& corner);

/// Sweeps after which rotations end in any case.
inline constexpr int64_t kMostSweeps = 30;
/// The distance of 1 from the next number of f32 or f64.
double epsilon_of(ElementType type);

/// Rows p and q that one-sided rotations make orthogonal: alpha and beta are their squared lengths,
/// `corner` is their product.
///
/// A row whose squared length is not above `floor` is rounding of the others: no rotation touches
/// it, since none would end, and it does not count.
struct RowPair {
  Rotation rotation;
  Expr cosine;  ///< The magnitude of that of their angle.
};
RowPair row_pair(const Expr& alpha, const Expr& beta, const Expr& corner, const Expr& floor);

/// Rounds of rotations of pairs (k, k + half) of rows along one dimension of arrays of rank 3.
class Rounds {
 public:
  Rounds(Builder& b, int64_t half) : b_(b), half_(half) {}

  /// Element k and element k + half, for each k, along a dimension.
  Expr first(Value x, int64_t dimension) const { return part(x, dimension, 0, half_); }
  Expr second(Value x, int64_t dimension) const { return part(x, dimension, half_, 2 * half_); }
  /// x with its rows along `dimension` rotated by c and s, which have x's shape but for half the
  /// rows, and in the order of the next round.
  Value rotated(Value x, const Expr& c, const Expr& s, int64_t dimension) const;

 private:
  Expr part(Value x, int64_t dimension, int64_t begin, int64_t end) const;

  Builder& b_;
  int64_t half_;
};

/// The positions of the elements of [batch, size] in ascending or descending order, NaN as what is
/// greatest.
Value sorted_places(Builder& b, Value keys, bool descends);
/// The rows of [batch, rows, columns], or the elements of [batch, rows], at `places` [batch, rows].
Value rows_at(Builder& b, Value x, Value places);

}  // namespace tenon::hlo::decomposition
