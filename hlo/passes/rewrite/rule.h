// hlo/passes/rewrite/: rewrite rules as data, and the driver that applies them.
//
// A rule states which simpler ops, or which of its operands, replace an op. Its pattern and its
// replacement are text with the short names of StableHLO ops:
//
//   {.name = "add-zero", .pattern = "add(x, 0)", .where = kIntegerOrPred, .replacement = "x",
//    .because = "0 is neutral, sums wrap"}
//
// The matcher, statistics, `--disable-rule`, the page docs/rewrites.md, and a test are derived from
// a row: rules_test.cpp instantiates the pattern with random types, attributes and operands, and
// evaluates both sides (sampler.h). To add a rule, add a row.
#pragma once

#include <span>
#include <string_view>

#include "hlo/builder/builder.h"

namespace tenon::hlo::rewrite {

/// The match of a pattern. Operations are numbered in the order in which the pattern names them,
/// from 0, the root.
struct Match {
  static constexpr size_t kMostVariables = 16;
  static constexpr size_t kMostOps = 4;

  Instruction* ops[kMostOps] = {};
  /// In the order of their first occurrence in the pattern; null if the variable took no part in
  /// the match.
  Value variables[kMostVariables];
  std::vector<Value> rest;  ///< Those of "xs..."

  Instruction& root() const { return *ops[0]; }
  Instruction& inner() const { return *ops[1]; }
  /// The first variable, `x`.
  Value x() const { return variables[0]; }
  ElementType type() const { return x().type().element_type(); }
};

struct Condition {
  std::string_view text;  ///< "x is an integer"
  bool (*holds)(const Match& match) = nullptr;
};

inline constexpr Condition kFloat{"x is a float",
                                  [](const Match& m) { return is_float(m.type()); }};

/// How much a result may differ from that of the original op.
enum class Exactness : uint8_t {
  kEveryBit,  ///< Not at all, for any operands.
  kRounded,   ///< Within the op's accuracy (OpInfo::ulp_bound).
  kRelaxed,   ///< As for real numbers: NaNs, infinities and the order of sums are ignored.
};
std::string_view name_of(Exactness exactness);

/// Patterns: `op(…)` is an op by its short name; a commutative one matches with its operands in
/// either order. `op[EQ|NE](…)` is one with that comparison direction. `x` is any value, the same
/// at each occurrence; `xs...` all remaining operands. A number is an array whose elements are all
/// exactly that number (0 is not -0.0); `ones` an array of integers or pred with all bits set;
/// `true` and `false` likewise. A pattern matches only arrays of numbers with known sizes, and
/// tuples of them.
///
/// Replacements: the same, built of variables and ops without attributes; a number has the type of
/// the result. Or, if `build` is set, the value that it builds; the text then describes that value.
struct Rule {
  std::string_view name;
  std::string_view pattern;
  Condition where{};  ///< No condition: always true.
  std::string_view replacement;
  /// Returns the replacement for the op's only result, or null if the rule does not apply after
  /// all.
  Value (*build)(Builder& b, const Match& match) = nullptr;
  Exactness exactness = Exactness::kEveryBit;
  std::string_view because;  ///< The reason why the result is the same.
  /// Whether it waits until idioms (hlo/passes/idioms) have been recognized, which it would hide.
  bool is_late = false;
};

/// A rewrite that looks like a rule but is wrong: no rule may apply it. Its test finds operands for
/// which the two sides differ.
struct NonRule {
  std::string_view name;
  std::string_view pattern;
  Condition where{};
  std::string_view replacement;
  std::string_view because;  ///< The reason why the result differs.
};

/// All rules, in the order in which they are tried.
std::span<const Rule* const> all_rules();
std::span<const NonRule> all_non_rules();
/// The rule with the name `name`, or null.
const Rule* find_rule(std::string_view name);

// --- The tables, one file each

std::span<const Rule> arithmetic_rules();
std::span<const Rule> shape_rules();
std::span<const Rule> product_rules();

}  // namespace tenon::hlo::rewrite
