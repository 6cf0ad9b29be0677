// Arguments of a program from the command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::tools {

/// `--arg N=@x.npy`, `--arg N=VALUE` (a number for every element, or true/false) and
/// `--arg N=random[:seed]`, for the parameters of `function`.
///
/// Every parameter must be given; errors name what is missing, twice there or of a wrong shape.
Result<std::vector<Literal>> parse_arguments(const hlo::Computation& function,
                                             const std::vector<std::string>& specs);

/// `--shape N=2x3` as sizes by parameter; "N=scalar" for rank 0.
Result<std::map<size_t, Dims>> parse_shapes(const std::vector<std::string>& specs);

/// Pseudo-random numbers of any element type: floats in [-1, 1), integers in a small range around
/// 0, the same for a seed on every machine.
Literal random_literal(const Shape& shape, uint64_t seed);

}  // namespace tenon::tools
