// hlo/passes/parts/: arrays that end in a few elements, as arrays of their parts.
//
// The parts of an array [n, 3] are three arrays [n]: what lies at each place of the last dimension.
// Of ops that move or compute such arrays, these are the ones that can be done part by part.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "hlo/builder/builder.h"

namespace tenon::hlo {

/// The number of parts of arrays of this type: the size of the last dimension if it is 2 to 8 and
/// there are at least 8 rows, else 0.
int64_t parts_of(const Type& type);

/// The operands whose parts the op reads, if its only result has parts and each of them can be
/// computed by itself; nothing if the op needs the arrays as a whole.
std::optional<std::vector<uint32_t>> operands_in_parts(const Instruction& op);

/// Whether the op stacks: its result consists of operands that are parts, or zeros around one.
bool stacks(const Instruction& op);

/// A part of a value, without the last dimension.
using PartOf = std::function<Value(Value, int64_t number)>;

/// Makes a part of the result of an op that has operands_in_parts.
Value part_of_result(Builder& b, const Instruction& op, int64_t number, const PartOf& part);

/// The number of operands, from the first on, whose parts suffice for an op that itself has no
/// parts: one for a slice of some parts, the arrays of a reduction over the last dimension, 0 for
/// any other op.
uint32_t arrays_taken_apart(const Instruction& op);

/// Makes the results of an op that takes arrays apart.
std::vector<Value> results_of_parts(Builder& b, const Instruction& op, const PartOf& part);

/// Stacks parts as an array with another last dimension.
Value stacked(Builder& b, const std::vector<Value>& parts);

}  // namespace tenon::hlo
