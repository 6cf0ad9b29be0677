// hlo/decomposition/linalg/: linear algebra of batched matrices: factors, triangular systems,
// eigenvalues and singular values.
//
// Matrices for the decompositions of this folder: all dimensions except the last two are batch
// dimensions.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {

/// Rows, columns, blocks and elements of batched matrices of one shape.
class Matrices {
 public:
  Matrices(Builder& b, const Type& type) : b_(b), dims_(type.dims()) {
    rows_ = dims_[dims_.size() - 2];
    columns_ = dims_.back();
    batch_.assign(dims_.begin(), dims_.end() - 2);
  }

  /// Start indices that are zero except for the last two.
  std::vector<Value> starts(Value row, Value column) const {
    std::vector<Value> starts = zero_starts(b_, batch_.size());
    starts.insert(starts.end(), {row, column});
    return starts;
  }
  /// Row `i`, of shape [batch, columns].
  Value row(Value x, Value i) const {
    return part(x, starts(i, b_.i64_constant(0)), 1, columns_, with(columns_));
  }
  /// Column `j`, of shape [batch, rows].
  Value column(Value x, Value j) const {
    return part(x, starts(b_.i64_constant(0), j), rows_, 1, with(rows_));
  }
  /// `count` rows from row `i` on, of shape [batch, count, columns].
  Value rows(Value x, Value i, int64_t count) const {
    return b_.dynamic_slice(x, starts(i, b_.i64_constant(0)), block(count, columns_));
  }
  /// The block of `count` rows and columns on the diagonal from row `i` on.
  Value diagonal_block(Value x, Value i, int64_t count) const {
    return b_.dynamic_slice(x, starts(i, i), block(count, count));
  }
  Value with_rows(Value x, Value rows, Value i) const {
    return b_.dynamic_update_slice(x, rows, starts(i, b_.i64_constant(0)));
  }
  Value with_row(Value x, Value row, Value i) const {
    return b_.dynamic_update_slice(x, b_.reshape(row, block(1, columns_)),
                                   starts(i, b_.i64_constant(0)));
  }
  Value with_column(Value x, Value column, Value j) const {
    return b_.dynamic_update_slice(x, b_.reshape(column, block(rows_, 1)),
                                   starts(b_.i64_constant(0), j));
  }
  /// Element i of every row of a [batch, size] array, of shape [batch].
  Value element(Value x, Value i) const {
    std::vector<Value> starts = zero_starts(b_, batch_.size());
    starts.push_back(i);
    return b_.reshape(b_.dynamic_slice(x, starts, with(1)), batch_);
  }
  /// A [batch] array broadcast to [batch, size].
  Value repeat(Value x, int64_t size) const {
    return b_.broadcast_in_dim(x, with(size), counting(static_cast<int64_t>(batch_.size())));
  }
  /// 0, 1, … along the last dimension of [batch, size].
  Expr positions(int64_t size) const {
    return {b_, b_.iota(ElementType::kS64, with(size), static_cast<int64_t>(batch_.size()))};
  }
  Expr everywhere(Value i, int64_t size) const { return {b_, b_.broadcast_scalar(i, with(size))}; }
  Dims with(int64_t size) const {
    Dims dims = batch_;
    dims.push_back(size);
    return dims;
  }

 private:
  Dims block(int64_t rows, int64_t columns) const {
    Dims dims = batch_;
    dims.insert(dims.end(), {rows, columns});
    return dims;
  }
  Value part(Value x, std::vector<Value> starts, int64_t rows, int64_t columns, Dims shape) const {
    return b_.reshape(b_.dynamic_slice(x, std::move(starts), block(rows, columns)),
                      std::move(shape));
  }

  Builder& b_;
  Dims dims_;
  Dims batch_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
};
/// 0, 1, … along a dimension of `dims`.
inline Expr places(Builder& b, const Dims& dims, int64_t dimension) {
  return {b, b.iota(ElementType::kS64, dims, dimension)};
}
/// A scalar everywhere.
inline Expr filled(Builder& b, Value x, const Dims& dims) {
  return {b, b.broadcast_scalar(x, dims)};
}
/// broadcast_in_dim.
inline Expr spread(const Expr& x, const Dims& dims, I64s to) {
  Builder& b = x.builder();
  return {b, b.broadcast_in_dim(x.value(), dims, std::move(to))};
}
/// Matrices of the last two dimensions with 1 on their diagonals and 0 elsewhere.
Value identity(Builder& b, ElementType type, const Dims& dims);

/// The transpose of each matrix.
Value transposed(Builder& b, Value x);
/// The adjoint of each matrix.
Value adjoint_of(Builder& b, Value x);

inline Expr conjugate(const Expr& x) {
  return is_complex(x.type()) ? complex(real(x), -imag(x)) : x;
}
inline Expr real_part(const Expr& x) { return is_complex(x.type()) ? real(x) : x; }
/// A real number as an element of `type`.
inline Expr as_type(const Expr& x, ElementType type) {
  return is_complex(type) ? complex(x, x.constant(0)) : x;
}

/// Sum over the last dimension of [batch, m, k] by [batch, k].
Value matrix_vector(Builder& b, Value matrix, Value vector);
/// The sum over k of x[i, k] y[k, j], or of x[i, k] y[j, k].
Value product(Builder& b, Value x, Value y, bool transposes_y = false);

/// The block of `rows` and `columns` (begin, end) of every matrix.
using Range = std::pair<int64_t, int64_t>;
Value block(Builder& b, Value x, Range rows, Range columns);

/// The sizes up to which algorithms are unrolled, and are loops over columns or rows. Loops do the
/// work of what is still zero, too.
inline constexpr int64_t kMany = 16;
inline constexpr int64_t kUnrolled = 8;
inline constexpr int64_t kLoop = 32;

/// The rows of a first half: of whole blocks.
int64_t half_of(int64_t size, int64_t block_size);
int64_t batch_count(const Type& type);
/// Whether the batch is so large that the steps of an algorithm are ops on all of it.
bool is_many(Value matrices);
bool is_unrolled(Value matrices);

/// Matrices with their batch as the last dimension: an element of all of them is a vector.
class ByElements {
 public:
  ByElements(Builder& b, Value x) : b_(b), type_(x.type()) {
    const int64_t count = batch_count(type_);
    const int64_t rows = type_.dims()[type_.dims().size() - 2];
    sizes_ = {rows, type_.dims().back(), count};
    elements_ = b.transpose(b.reshape(x, {count, rows * sizes_[1]}), {1, 0});
  }

  /// Element (i, j), of shape [batch].
  Expr element(int64_t i, int64_t j) const { return {b_, part(i * sizes_[1] + j, 1, {sizes_[2]})}; }
  /// Row i, of shape [columns, batch].
  Expr row(int64_t i) const { return {b_, part(i * sizes_[1], sizes_[1], {sizes_[1], sizes_[2]})}; }
  /// Matrices of the same shape from parts of shape [batch], or [columns, batch], in order.
  Value joined(const std::vector<Value>& parts) const {
    if (!b_.ok()) return {};
    std::vector<Value> rows;
    for (const Value each : parts) {
      const bool is_element = each.type().rank() == 1;
      rows.push_back(is_element ? b_.reshape(each, {1, sizes_[2]}) : each);
    }
    return b_.reshape(b_.transpose(b_.concatenate(rows, 0), {1, 0}), type_.dims());
  }

 private:
  Value part(int64_t first, int64_t count, Dims shape) const {
    if (!b_.ok()) return {};
    return b_.reshape(b_.slice(elements_, {first, 0}, {first + count, sizes_[2]}, {1, 1}),
                      std::move(shape));
  }

  Builder& b_;
  Type type_;
  Dims sizes_;  // Rows, columns, batch.
  Value elements_;
};

Value next(Builder& b, Value i);
/// A loop that increments state[0], which is added to `state`, from 0 up to `count`.
std::vector<Value> count_loop(
    Builder& b, int64_t count, std::vector<Value> state,
    const std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>& body);

/// x with m x = r, where m is triangular; the other triangle is not read. `by_blocks`: within a
/// system of so many blocks that its parts are loops over blocks.
Value solve(Builder& b, Value m, Value r, bool lower, bool unit, bool by_blocks = false);

}  // namespace tenon::hlo::decomposition
