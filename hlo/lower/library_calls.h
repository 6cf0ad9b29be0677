// Ops as library calls, which a backend may take whole instead of kernels.
#pragma once

#include <optional>
#include <vector>

#include "core/program/library_call.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// How an op is a library call: what `.library_call` of the op table names. The instance has arrays
/// with elements alone.
struct LibraryCallRule {
  std::optional<program::LibraryCall> (*of)(const Instruction& op) = nullptr;
};
namespace calls {
// NOLINTBEGIN(readability-identifier-naming): the ops' names
extern const LibraryCallRule composite, contraction, convolution, custom_call, fft, scan, sort;
// NOLINTEND(readability-identifier-naming)
}  // namespace calls

/// The library call on the op's operands that gives its results. Nothing for an op without such a
/// call, an op whose region is not one that the calls name (a comparator other than LT or GT of one
/// pair of arguments, a reduction other than a prefix scan), one without elements, or one of a type
/// that lowering treats in its own way (products of operands of different types).
std::optional<program::LibraryCall> library_call_of(const Instruction& op);

/// A library call and its arrays, as they lie in memory.
struct CallSite {
  program::LibraryCall call;
  std::vector<Shape> operands;
  std::vector<Shape> results;
  std::vector<bool> constant;  ///< For each operand, whether it is a constant that is kept.
};
/// The library call that the op is, if it is one and its arrays fit.
std::optional<CallSite> call_site_of(const Instruction& op);

/// The attributes of a convolution, those that are absent too.
program::Convolution convolution_of(const Instruction& op);

}  // namespace tenon::hlo::lower
