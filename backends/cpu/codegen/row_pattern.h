// Lanes over rows of a few elements as vectors whose lanes have known places of rows: which vectors
// there are, and where each access of theirs lies. No code is emitted here.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/kernel/ir/kernel.h"

namespace tenon::cpu {

/// Bytes of a register from which masks have registers of their own: a store under one is one
/// operation. Below, it takes as long as ten, and is two that overlap.
constexpr int64_t kMaskRegisters = 64;

/// The places of one access in memory, in elements, from its place for the first row's first
/// element on; and for which elements of a row it runs.
struct RowPlaces {
  int64_t by_row = 0;  ///< From row to row.
  std::vector<int64_t> within;
  std::vector<bool> active;
};

/// The vectors of a lanes loop. Either the lanes of a vector belong to several rows (rows of 5
/// elements and 16 lanes: 5 vectors are 16 rows) and the loop goes on by `rows` rows, or each row
/// has vectors of its own, the last of which may have lanes that do nothing.
struct RowPattern {
  size_t row = 0;  ///< The dimension of rows; all later ones are within a row.
  kernel::ValueId row_index = kernel::kNone;
  Dims sizes;         ///< The dimensions of a row.
  int64_t count = 1;  ///< Its elements.
  int64_t width = 0;  ///< Lanes.
  int64_t rows = 1;
  bool by_row = false;                  ///< Each row has vectors of its own.
  std::optional<kernel::NodeId> bound;  ///< An `if` on the number of rows, not with `by_row`.
  std::map<const kernel::Node*, RowPlaces> accesses;
  /// Values of what depends on the place within a row alone, for each element, as scalars' bits.
  std::map<kernel::ValueId, std::vector<uint64_t>> known;

  int64_t elements() const { return rows * count; }
  int64_t vectors() const { return (elements() + width - 1) / width; }
  /// Whether lane `at` of all vectors together is an element for which the access runs.
  bool is_active(const kernel::Node& access, int64_t at) const;
  /// The place of each lane of the vector that begins with lane `first`.
  std::vector<int64_t> places_of(const kernel::Node& access, int64_t first) const;
  /// The arguments of the loop's body that are vectors.
  std::vector<kernel::ValueId> lanes_of(const std::vector<kernel::ValueId>& arguments) const;
};

/// Vectors of `width` elements of memory that hold places.
struct MemoryWindow {
  int64_t begin = 0;
  int64_t size = 0;  ///< Up to the last of the places within.
};
std::vector<MemoryWindow> windows_of(std::vector<int64_t> places, int64_t width);

/// The place of a number within dimensions of these sizes.
std::vector<int64_t> place_within(int64_t number, const Dims& sizes);

/// A pattern, and one of single rows for the last ones, which are fewer than a pattern has.
struct RowPatterns {
  RowPattern pattern;
  std::optional<RowPattern> of_one_row;
};

/// The pattern that takes fewest operations for each element; nothing where vectors along one
/// dimension take fewer, which is the last one if `is_along`. `bounds[d]` is the `if` on the number
/// of rows along dimension d.
std::optional<RowPatterns> find_row_patterns(
    const kernel::Kernel& kernel, const kernel::Node& lanes, int64_t vector_bytes, bool is_along,
    const std::vector<std::optional<kernel::NodeId>>& bounds);

}  // namespace tenon::cpu
