// Helpers for lowering reductions.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "hlo/lower/elements/arg_extremum.h"
#include "hlo/lower/elements/emitter.h"

namespace tenon::hlo::lower {

/// The types in which a reduction combines: those of its region's parameters, but f32 for a sum of
/// floats narrower than f32, so that the sum is rounded once, and for their extremes, which need no
/// conversion for each element then.
std::vector<ElementType> accumulator_types(const Computation& region);

/// The initial values and the elements of the operands of a reduce or reduce_window, in the types
/// in which it combines, because a region may promote its elements.
struct ReductionEmitter {
  ElementEmitter& e;
  const Instruction& op;
  const Computation& region;
  size_t count;
  std::vector<ElementType> types;
  std::optional<Extremum> extremum;  ///< The reduction finds its place.
  bool in_order;  ///< It does, and places ascend from leaf to leaf, which are combined serially.

  /// `serially`: the caller combines the leaves one after the other.
  ReductionEmitter(ElementEmitter& emitter, const Instruction& reduction, bool serially = false);

  Elements inits() const;
  Elements leaf(const Values& index) const;
  /// The combination of the left and the right values.
  Values combine(const Values& arguments) const;
  /// Combined values converted to the results of the region.
  Elements rounded(const Elements& combined) const;
  /// Whether swapping the two sides gives the same bits (K5).
  bool is_commutative() const;

 private:
  Element promoted(size_t operand, const Values& index) const;
  Values combine_places(const Values& arguments) const;
  Values combine_in_order(const Values& arguments) const;
};

/// A reduce or dot_general at an index of its result: its leaves and how they are combined.
struct LeafReduction {
  kernel::Builder::ReduceSpec spec;  ///< Over all leaves, serially.
  std::vector<ElementType> types;    ///< In which it combines.
  /// A part of the leaves may begin with these; if there are none, with its first leaf.
  Elements identities;
  std::function<Elements(const Elements&)> rounded;  ///< The results, of combined values.
};
/// The emitter and the op must live as long as it. `serially`: the caller combines the leaves one
/// after the other.
LeafReduction leaves_of(ElementEmitter& e, const Instruction& op, const Values& index);
LeafReduction leaves_of_reduce(ElementEmitter& e, const Instruction& reduce, const Values& index,
                               bool serially = false);
LeafReduction leaves_of_dot(ElementEmitter& e, const Instruction& dot, const Values& index);

/// The identity element of a region's op as a constant of `type`, the type in which the op is
/// computed; nothing unless the region is one op on its two parameters with a known identity.
std::optional<uint64_t> identity_of(const Computation& region, ElementType type);

/// The extents of the reduced dimensions of a reduce, and the index of an element from its indices
/// along the kept and the reduced dimensions.
Dims reduced_extents(const Instruction& reduce);
Values unreduced_index(const Instruction& reduce, const Values& kept, const Values& reduced);

}  // namespace tenon::hlo::lower
