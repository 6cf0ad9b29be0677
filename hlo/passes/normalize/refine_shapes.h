// hlo/passes/normalize/: brings a Module to the primitive, static form that lowering takes.
//
// Refinement of dynamic programs: makes the sizes that a program computes static.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/types/literal.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Known shapes and values of the entry's arguments.
struct ArgumentKnowledge {
  /// Sizes of parameters, by number; parameters with static types may be omitted.
  std::map<size_t, Dims> shapes;
  /// Values of parameters, by number. Only integers are used, if they determine a shape.
  std::map<size_t, Literal> values;
  /// The function to refine; empty means the Module's entry.
  std::string entry;
};

/// Whether any value of the Module has a dimension of unknown size.
bool is_dynamic(const Module& module);

/// A copy of `module` in which every size is known: calls are inlined into the entry, integer
/// values that follow from constants, known sizes and `known.values` are computed, the shapes that
/// depend on them become static, and dynamic ops become static ones (dynamic_pad with known amounts
/// becomes pad). Other functions are removed, except those that composites and custom calls name.
///
/// An error names the first op whose result shape cannot be known, and the parameter to provide.
Result<std::unique_ptr<Module>> refine(const Module& module, const ArgumentKnowledge& known);

}  // namespace tenon::hlo
