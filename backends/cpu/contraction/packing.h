// Copies parts of a contraction's operands in the order in which tiles read them, converted to the
// type of the computation.
#pragma once

#include "backends/cpu/codegen/elements.h"
#include "backends/cpu/contraction/tiling.h"

namespace tenon::cpu {

class Packing {
 public:
  Packing(llvm::IRBuilderBase& builder, const ContractionLoops& loops, const Tiling& tiling);

  /// Strides of packed rows of the left operand, in elements: from one row to the next, and from
  /// one product to the next.
  int64_t lhs_row() const;
  int64_t lhs_sum() const;
  int64_t panel_bytes() const;
  int64_t lhs_bytes() const;

  /// Packs the right operand from `from` on: `count` products of a tile's columns. `left` columns
  /// exist; the others become zeros.
  void panel(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* count) const;
  /// Packs the left operand from `from` on: `count` products of a tile's rows, or of `left` rows.
  void rows(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* count) const;

 private:
  void square(llvm::Value* to, llvm::Value* from, llvm::Value* k, llvm::Value* column) const;
  void lines(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* first,
             llvm::Value* count) const;
  void rows_across(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* count) const;
  bool is_across() const { return row_.lhs == 1 && sum_.lhs != 1; }

  llvm::IRBuilderBase& b_;
  const ContractionLoop row_, column_, sum_;
  const Tiling& t_;
  const Elements lhs_, rhs_, packed_;
};

}  // namespace tenon::cpu
