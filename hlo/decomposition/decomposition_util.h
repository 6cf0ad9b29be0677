// Helpers for decompositions that are not formulas. Private to hlo/decomposition.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "hlo/decomposition/decomposition.h"

namespace tenon::hlo::decomposition {

/// The results, or the builder's error.
Values finished(Builder& b, std::vector<Value> results);

/// Returns an error unless all operands and results that are arrays are static.
Status check_static(const Instruction& op);

/// `quantized` for an op with regions.
Values quantized_with_regions(Builder& b, const Instruction& op);

/// Selects elements of x at `indices` (rank 1) along `axis`; indices out of range are clamped.
Value take(Builder& b, Value x, Value indices, int64_t axis);
/// dot_general at the highest precision, in the operands' element type.
Value exact_dot(Builder& b, Value lhs, Value rhs, DotDims dims);
/// `count` rank-0 s64 zeros, used as start indices of slices.
std::vector<Value> zero_starts(Builder& b, size_t count);

inline size_t at(int64_t index) { return static_cast<size_t>(index); }
/// 0, 1, … count - 1
I64s counting(int64_t count);
/// The elements of a constant of integers.
std::optional<I64s> constant_list(Value value);

}  // namespace tenon::hlo::decomposition
