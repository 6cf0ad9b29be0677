// The ops that a large array is made of and goes into, as far as all of them can be computed by
// blocks of its rows.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/passes/row_blocks/division.h"

namespace tenon::hlo {

struct RowRegion {
  std::vector<Instruction*> ops;  ///< In order, without constants.
  std::unordered_map<const Instruction*, RowDivision> divisions;
  /// Those of `ops` whose results others need, too: they are computed again within the blocks.
  std::unordered_set<const Instruction*> copies;
  int64_t rows = 0;         ///< The size of the divided dimension.
  int64_t whole_bytes = 0;  ///< All arrays that every block reads, or adds to, as a whole.
};

/// The region around the large array that `product`, a dot_general, results in, divided by a
/// dimension of it. No array of half its elements or more leaves the region or is kept between
/// blocks, but for those from outside. Where the ops behind an array need a result of the region as
/// a whole first, as the gradient of an attention within a network does, the region consists of
/// what comes after that, and of copies of what that needs. Nothing if an op cannot be divided so.
std::optional<RowRegion> row_region_of(Instruction& product, int64_t dimension);

}  // namespace tenon::hlo
