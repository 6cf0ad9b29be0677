// conformance/generate/: generators of programs: random graphs, fusions, loops, every op's edge
// values.
//
// Random typed programs over the op table, for differential tests.
//
// A program is a function of a few arrays; every value that it computes is a result, so that a test
// can check each op separately. Shapes are irregular on purpose (sizes of 0, 1, primes), and many
// values are special (NaN, infinities, signed zeros, denormals, extreme integers).
#pragma once

#include <memory>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

struct GeneratorOptions {
  uint64_t seed = 0;
  /// The approximate number of instructions.
  int size = 20;
  /// The maximum number of elements of an array.
  int64_t max_elements = 400;
  /// Only integers and pred: every op is exact, in any order.
  bool integers = false;
};

/// A verified program of one function, @main. The same options give the same program.
std::unique_ptr<hlo::Module> generate(const GeneratorOptions& options);

/// Arguments for the entry of `module`.
std::vector<Literal> generate_arguments(const hlo::Module& module, uint64_t seed);

}  // namespace tenon::conformance
