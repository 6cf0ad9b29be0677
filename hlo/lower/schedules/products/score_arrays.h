// Masks and biases of an attention that are arrays in memory.
#pragma once

#include <vector>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/schedules/products/attention.h"

namespace tenon::hlo::lower {

/// An array that scores are combined with, whose neighbours in memory are those of keys: lanes of
/// neighbouring queries would read places that are rows apart.
struct ScoreArray {
  Value value;   ///< `source`, or a broadcast of it to the dimensions of the scores.
  Value source;  ///< A parameter of the fusion.
  /// The dimension of the scores of each of `source`'s; -1 where its one element serves all.
  I64s dims;
  uint32_t queries_dim = 0, keys_dim = 0;  ///< Those of `source`.
};

/// The arrays that have numbers for each query and key, in the order of the fusion's ops. Nothing
/// if queries take several dimensions.
std::vector<ScoreArray> arrays_along_keys(const Attention& attention);

}  // namespace tenon::hlo::lower
