// Patterns of rewrite rules: from text, matched and built.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/passes/rewrite/rule.h"

namespace tenon::hlo::rewrite {

/// One side of a rule.
struct Pattern {
  enum class Kind : uint8_t { kOp, kVariable, kRest, kNumber, kOnes, kEither };
  static constexpr size_t kUnnamed = SIZE_MAX;

  Kind kind = Kind::kVariable;
  OpCode code{};                                ///< kOp
  std::vector<ComparisonDirection> directions;  ///< kOp: those that match; empty means any.
  std::optional<OpCode> reducer;                ///< kOp: the op that its region consists of.
  std::vector<Pattern> operands;                ///< kOp; kEither: the patterns, in order.
  size_t number_of_op = 0;                      ///< kOp: place in Match::ops.
  /// Place in Match::variables: of kVariable; of a named kOp or kEither the value that matched.
  size_t variable = kUnnamed;
  double number = 0;      ///< kNumber
  bool is_truth = false;  ///< kNumber: `true` or `false`, of pred alone.
};

/// Names of the variables of a rule, in the order in which its pattern names them.
using VariableNames = std::vector<std::string>;

/// A pattern with parameters, which others use by its name: of several of one name any may match.
/// Each parameter stands for a pattern; at its second occurrence it is the value that matched the
/// first. Other names in it are names of the pattern that uses it.
struct PatternDefinition {
  std::string_view head;     ///< "softmax(x)"
  std::string_view pattern;  ///< "divide(e=exponential(…), along(row_sum(e)))"
};

/// Reads a pattern; variables that are not in `names` yet are added. With `definitions` it may use
/// them, as an op, and have more ops than Match::ops holds: the first are noted there. Errors: the
/// fault and its column.
Result<Pattern> parse_pattern(std::string_view text, VariableNames& names,
                              std::span<const PatternDefinition> definitions = {});

/// Whether `op` matches `pattern`, which is no kVariable.
bool matches(const Pattern& pattern, Instruction& op, Match& match);

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
