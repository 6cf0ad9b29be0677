// hlo/passes/row_blocks/: large arrays between products, a block of rows at a time.
//
// Each op on a dimension that is divided into blocks: the dimension of each operand that a block of
// its result is computed from.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/builder/builder.h"

namespace tenon::hlo {

/// A way to compute an op by blocks of one dimension of its arrays; results have the same
/// dimensions.
struct RowDivision {
  /// As an operand's dimension: every block reads the operand as a whole. As the result's: each
  /// block gives a result of full size, and these are combined.
  static constexpr int64_t kNone = -1;

  int64_t result = kNone;
  std::vector<int64_t> operands;
  /// The op that combines, if the result is combined.
  OpCode combiner = OpCode::kAdd;

  bool is_combined() const { return result == kNone; }
};

/// All divisions of an op; none if it needs its arrays as they are.
std::vector<RowDivision> divisions_of(const Instruction& op);
/// The division by a dimension of the result.
std::optional<RowDivision> division_by_result(const Instruction& op, int64_t dimension);

/// The rows `first` to `first + count` of the divided dimension.
struct RowBlock {
  Value first;  ///< s32.
  int64_t count = 0;
};
/// Builds `op` for a block: its results for these rows, or what they add to one that is combined.
/// `operands` are those of the block. Products that are combined are of type sum_type(). Nothing
/// after an error.
std::vector<Value> block_of(Builder& b, const Instruction& op, const RowDivision& division,
                            const std::vector<Value>& operands, const RowBlock& rows);
/// The element type in which results of blocks are combined: sums of narrow floats are rounded to
/// their type behind the last block, as those of a product are.
ElementType sum_type(const Instruction& op, const RowDivision& division);
/// The value of a combined result, an op's only one, before the first block; `operands` are the
/// op's own, as a whole.
Value neutral_of(Builder& b, const Instruction& op, const RowDivision& division,
                 const std::vector<Value>& operands);

/// A splat with `count` elements along `dimension`.
Value splat_block(Builder& b, const Instruction& splat, int64_t dimension, int64_t count);

}  // namespace tenon::hlo
