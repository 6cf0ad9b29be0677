// Programs of elementwise ops, whose results are the same bits on every device: what a test of
// that runs (docs/numerics.md).
#pragma once

#include <memory>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

struct ElementwiseProgram {
  std::unique_ptr<hlo::Module> module;  ///< One function, @main.
  std::vector<Literal> arguments;
};

/// Ops that no program is to have.
using WithoutOps = std::vector<hlo::OpCode>;

/// Each elementwise op that takes arrays of `type`, comparisons, and conversions to each other
/// type, on the type's special values paired with one another: zeros, denormals, infinities, NaN,
/// numbers half way between neighbours of this type and of narrower ones, ends of ranges. All
/// patterns of a type of 8 bits or fewer. At most `ops` ops a program.
std::vector<ElementwiseProgram> programs_of_every_op(ElementType type, int ops,
                                                     const WithoutOps& without = {});

/// A random graph of some `size` ops on arrays of one shape, of all types. Some of its values are
/// results, so that a fusion has others that no array holds.
ElementwiseProgram random_elementwise_program(uint64_t seed, int size,
                                              const WithoutOps& without = {});

/// The first element in which two arrays of one shape differ, or -1. A NaN is equal to any other:
/// its sign and payload are not defined.
int64_t first_difference(const Literal& a, const Literal& b);

}  // namespace tenon::conformance
