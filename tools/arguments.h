// The arguments of a program from the command line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hlo/ir/instruction.h"
#include "hlo/passes/normalize/refine_shapes.h"

namespace tenon::tools {

/// Arguments as given: `--arg N=@x.npy`, `--arg N=VALUE` (a number for every element, or
/// true/false) and `--arg N=random[:seed]`. Files have been read.
class GivenArguments {
 public:
  /// Reads the arguments for the parameters of `function`. Errors of form, in the stage "usage",
  /// name the argument.
  static Result<GivenArguments> read(const hlo::Computation& function,
                                     const std::vector<std::string>& specs);

  /// Adds the facts that make a dynamic function static: the shapes of arrays, and integer values,
  /// which may be shapes.
  Status add_to(hlo::ArgumentKnowledge& known, const hlo::Computation& function) const;

  /// The values that are given for parameters of `function` with the sizes of `shapes` or their
  /// own, by number; random ones, and those of unknown sizes, are none.
  Result<std::map<size_t, Literal>> values(const hlo::Computation& function,
                                           const std::map<size_t, Dims>& shapes) const;

  /// One array for each parameter of `function`, which must be static now. Every parameter must be
  /// given; errors name the arguments that are missing or have a wrong shape.
  Result<std::vector<Literal>> complete(const hlo::Computation& function) const;

 private:
  struct Given {
    std::string value;
    std::optional<Literal> file;
  };
  std::vector<std::optional<Given>> given_;
};

/// GivenArguments::read and complete, for a static function.
Result<std::vector<Literal>> parse_arguments(const hlo::Computation& function,
                                             const std::vector<std::string>& specs);

/// The names that the source gives to a function's arguments that are no tokens, by locations
/// (`loc("x")`); "" for those without.
std::vector<std::string> parameter_names(const hlo::Computation& function);

/// `--shape N=2x3` as sizes by parameter; "N=scalar" for rank 0.
Result<std::map<size_t, Dims>> parse_shapes(const std::vector<std::string>& specs);

/// Pseudorandom numbers of any element type: floats in [-1, 1), integers in a small range around 0;
/// for a seed, the same on every machine.
Literal random_literal(const Shape& shape, uint64_t seed);

}  // namespace tenon::tools
