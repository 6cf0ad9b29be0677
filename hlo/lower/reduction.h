// What the lowerings of reductions share.
#pragma once

#include <optional>
#include <vector>

#include "hlo/lower/emitter.h"

namespace tenon::hlo::lower {

/// The init values and the elements of the operands of a reduce or reduce_window, in the types of
/// its region's parameters: a region may promote its elements.
struct Reduction {
  Emitter& e;
  const Instruction& op;
  const Computation& region;
  size_t count;
  std::vector<ElementType> types;

  Reduction(Emitter& emitter, const Instruction& reduction);

  Elements inits() const;
  Elements leaf(const Values& index) const;
  /// Of left and right values, the combined ones.
  Values combine(const Values& arguments) const;
  /// Whether swapping the two sides gives the same bits (K5).
  bool is_commutative() const;

 private:
  Element promoted(size_t operand, const Values& index) const;
};

/// What changes nothing that it is combined with, as a constant of the region's type, if the region
/// is one op of its two parameters of which that is known.
std::optional<uint64_t> identity_of(const Computation& region);

/// Of a reduce: the extents of the reduced dimensions, and the index of an element from the kept
/// dimensions' and the reduced ones'.
Dims reduced_extents(const Instruction& reduce);
Values unreduced_index(const Instruction& reduce, const Values& kept, const Values& reduced);

}  // namespace tenon::hlo::lower
