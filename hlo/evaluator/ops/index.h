// hlo/evaluator/ops/: the evaluator's functions, a file for each group of ops.
//
// Iteration over index spaces.
#pragma once

#include "core/types/shape.h"

namespace tenon::hlo {

/// All indices of an array of `dims` in row-major order:
///   for (IndexSpace at(dims); !at.done(); at.next()) use(*at, at.linear());
class IndexSpace {
 public:
  explicit IndexSpace(Dims dims) : dims_(std::move(dims)), index_(dims_.size(), 0) {
    for (const int64_t dim : dims_) done_ |= dim == 0;
  }
  bool done() const { return done_; }
  const Dims& operator*() const { return index_; }
  int64_t operator[](size_t axis) const { return index_[axis]; }
  int64_t linear() const { return linear_; }
  void next() {
    ++linear_;
    for (size_t axis = dims_.size(); axis-- > 0;) {
      if (++index_[axis] < dims_[axis]) return;
      index_[axis] = 0;
    }
    done_ = true;
  }

 private:
  Dims dims_;
  Dims index_;
  int64_t linear_ = 0;
  bool done_ = false;
};

inline int64_t dot(const Dims& index, const Dims& strides) {
  int64_t sum = 0;
  for (size_t i = 0; i < index.size(); ++i) sum += index[i] * strides[i];
  return sum;
}

}  // namespace tenon::hlo
