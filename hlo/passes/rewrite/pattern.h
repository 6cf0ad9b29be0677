// Patterns of rewrite rules: from text, matched and built.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/passes/rewrite/rule.h"

namespace tenon::hlo::rewrite {

/// One side of a rule.
struct Pattern {
  enum class Kind : uint8_t { kOp, kVariable, kRest, kNumber, kOnes };

  Kind kind = Kind::kVariable;
  OpCode code{};                                ///< kOp
  std::vector<ComparisonDirection> directions;  ///< kOp: those that match; empty means any.
  std::vector<Pattern> operands;                ///< kOp
  size_t number_of_op = 0;                      ///< kOp: place in Match::ops.
  size_t variable = 0;                          ///< kVariable: place in Match::variables.
  double number = 0;                            ///< kNumber
  bool is_truth = false;                        ///< kNumber: `true` or `false`, of pred alone.
};

/// Names of the variables of a rule, in the order in which its pattern names them.
using VariableNames = std::vector<std::string>;

/// Reads a pattern; variables that are not in `names` yet are added. Errors: the fault and its
/// column.
Result<Pattern> parse_pattern(std::string_view text, VariableNames& names);

/// A rule whose texts have been read.
struct CompiledRule {
  const Rule* rule = nullptr;
  Pattern pattern;
  std::unique_ptr<Pattern> replacement;  ///< Null where the rule builds.
};
/// Errors: a text that cannot be read, a replacement with variables of its own.
Result<CompiledRule> compile_rule(const Rule& rule);

/// Whether `op` matches the pattern of `rule`, and its condition holds.
bool matches(const CompiledRule& rule, Instruction& op, Match& match);

/// Builds the rule's replacement of the match; null if the rule gives up.
Value build_replacement(const CompiledRule& rule, Builder& b, const Match& match);

}  // namespace tenon::hlo::rewrite
