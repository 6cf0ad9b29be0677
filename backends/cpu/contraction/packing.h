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
  int64_t lhs_tile() const;
  int64_t panel_bytes() const;
  /// The place of the panel that begins at a column, of those packed at `to`.
  llvm::Value* panel_at(llvm::Value* to, llvm::Value* column) const;
  int64_t lhs_bytes() const;

  /// Packs the right operand from `from` on: `count` products of a workgroup's panels. `left`
  /// columns exist, `used` of them are the workgroup's; others of its last panel become zeros.
  void panels(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* used,
              llvm::Value* count) const;
  /// Packs the left operand from `from` on: `count` products of `tiles_packed` tiles of rows, or of
  /// `left` rows. Tiles are lhs_tile() elements apart.
  void rows(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* count) const;

 private:
  void abreast(llvm::Value* to, llvm::Value* from, llvm::Value* used, llvm::Value* count) const;
  void panel(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* count) const;
  void square(llvm::Value* to, llvm::Value* from, llvm::Value* k, llvm::Value* column) const;
  void lines(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* first,
             llvm::Value* count) const;
  void rows_across(llvm::Value* to, llvm::Value* from, llvm::Value* left, llvm::Value* count) const;
  int64_t line() const;  // Elements of a line of a cache.
  bool is_across() const { return row_.lhs == 1 && sum_.lhs != 1; }

  llvm::IRBuilderBase& b_;
  const ContractionLoop row_, column_, sum_;
  const Tiling& t_;
  const Elements lhs_, rhs_, packed_;
};

}  // namespace tenon::cpu
