// Programs of elementwise ops, whose results must have the same bits on every device
// (docs/numerics.md).
#pragma once

#include <memory>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

struct ElementwiseProgram {
  std::unique_ptr<hlo::Module> module;  ///< One function, @main.
  std::vector<Literal> arguments;
};

/// Ops that no generated program contains.
using WithoutOps = std::vector<hlo::OpCode>;

/// Each elementwise op on arrays of `type`, comparisons, and conversions to each other type,
/// applied to all pairs of the type's special values: zeros, denormals, infinities, NaN, midpoints
/// between adjacent numbers of this type and of narrower ones, ends of ranges. For a type of 8 bits
/// or fewer, all bit patterns. At most `ops` ops per program.
std::vector<ElementwiseProgram> programs_of_every_op(ElementType type, int ops,
                                                     const WithoutOps& without = {});

/// A random graph of about `size` ops on arrays of one shape, of all types. Only some of its values
/// are results, so that a fusion also contains values that are never stored.
ElementwiseProgram random_elementwise_program(uint64_t seed, int size,
                                              const WithoutOps& without = {});

/// The first element in which two arrays of one shape differ, or -1. A NaN equals any other: its
/// sign and payload are not defined.
int64_t first_difference(const Literal& a, const Literal& b);

}  // namespace tenon::conformance
