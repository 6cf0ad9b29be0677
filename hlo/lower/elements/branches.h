// Selection among the branches of a case by bisection, because the nesting depth of ifs in a kernel
// is limited.
#pragma once

#include <utility>

#include "core/kernel/ir/builder.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// Branches begin … end - 1; at least one.
struct BranchRange {
  size_t begin;
  size_t end;

  /// Splits a range of two or more branches in a lower and an upper half.
  std::pair<BranchRange, BranchRange> halves() const {
    const size_t middle = begin + (end - begin) / 2;
    return {{begin, middle}, {middle, end}};
  }
};

constexpr ElementType kBranchType = ElementType::kU32;

/// The number of the branch for `index` (s32): the last one if it is out of range.
kernel::ValueId taken_branch(kernel::Builder& b, const Instruction& op, kernel::ValueId index);

}  // namespace tenon::hlo::lower
