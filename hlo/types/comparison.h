// Comparisons of numbers by their direction.
#pragma once

#include "hlo/types/attribute.h"

namespace tenon::hlo {

/// Whether `x` compares to `y` so; of floats with the order of IEEE 754, in which NaN is unequal to
/// all.
template <class T>
bool holds(ComparisonDirection direction, const T& x, const T& y) {
  switch (direction) {
    case ComparisonDirection::kEq:
      return x == y;
    case ComparisonDirection::kNe:
      return x != y;
    case ComparisonDirection::kGe:
      return x >= y;
    case ComparisonDirection::kGt:
      return x > y;
    case ComparisonDirection::kLe:
      return x <= y;
    case ComparisonDirection::kLt:
      return x < y;
  }
  return false;
}

}  // namespace tenon::hlo
