// Instances of a rule: its pattern as a program with random types, attributes and operands.
//
// Used by tests of rules, and for the examples in docs/rewrites.md.
#pragma once

#include <memory>
#include <vector>

#include "core/base/random.h"
#include "hlo/passes/rewrite/pattern.h"

namespace tenon::hlo::rewrite {

/// A function @main with the variables of a pattern as parameters, which returns the value of the
/// pattern.
struct Sample {
  std::unique_ptr<Module> module;
  Instruction* root = nullptr;
};

/// Draws an instance. Attributes that change nothing (the identity permutation, a conversion to the
/// same type, a slice of all elements) are drawn often, because rules are about them. Null if the
/// drawn instance does not verify: draw again.
Sample draw_sample(const Pattern& pattern, size_t variables, Random& random);

/// An instance to which the rule applies; the caller provides the arguments of its @main. Null if
/// `tries` draws give none.
Sample draw_match(const CompiledRule& rule, Random& random, int tries, Match& match);

/// Arguments for @main: numbers of which many are special (NaN, infinities, both zeros, denormals,
/// the ends of integer ranges).
std::vector<Literal> draw_arguments(const Module& module, Random& random);

}  // namespace tenon::hlo::rewrite
