// Windows that are the prefixes, or the suffixes, of an array: what a cumulative sum is.
#pragma once

#include <cstdint>
#include <optional>

#include "core/program/library_call.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// A reduce_window whose windows along one dimension begin before the array and end at each element
/// (a prefix), or begin at each element and end behind the array (`reverse`: a suffix).
struct PrefixWindows {
  int64_t dimension = 0;
  bool reverse = false;
};

/// The windows of `op`, a reduce_window, if they are prefixes and padding changes no result: the
/// init value is the identity of a known op, or the op ignores repetitions (a maximum). Of any
/// other region a constant init value is taken for its identity, as StableHLO's specification of
/// reduce_window asks of it (docs/numerics.md, "Exact operations").
std::optional<PrefixWindows> prefix_windows(const Instruction& op);

/// The op that a region consists of, if it is one that a library call knows.
std::optional<program::Combiner> combiner_of(const Computation& region);

}  // namespace tenon::hlo::lower
