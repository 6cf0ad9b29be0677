// hlo/passes/rewrite/: rewrite rules as data, and the driver that applies them.
//
// A rule says by which simpler ops, or by which of its operands, an op is replaced. Its pattern and
// its replacement are text in the short names of StableHLO:
//
//   {.name = "add-zero", .pattern = "add(x, 0)", .where = kIntegerOrPred, .replacement = "x",
//    .because = "0 is neutral, sums wrap"}
//
// From a row follow the matcher, statistics, `--disable-rule`, the page docs/rewrites.md, and a
// test: rules_test.cpp instantiates the pattern with random types, attributes and operands, and
// evaluates both sides (sampler.h). Adding a rule is adding a row.
#pragma once

#include <span>
#include <string_view>

#include "hlo/builder/builder.h"

namespace tenon::hlo::rewrite {

/// The match of a pattern. Operations are numbered as the pattern names them, from 0, the root.
struct Match {
  static constexpr size_t kMostVariables = 16;
  static constexpr size_t kMostOps = 4;

  Instruction* ops[kMostOps] = {};
  /// In the order in which the pattern first names them; null what took no part in the match.
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

/// How a result may differ from that of the op as it was written.
enum class Exactness : uint8_t {
  kEveryBit,  ///< Not at all, for any operands.
  kRounded,   ///< Within the op's accuracy (OpInfo::ulp_bound).
  kRelaxed,   ///< As of real numbers: NaNs, infinities and the order of sums are disregarded.
};
std::string_view name_of(Exactness exactness);

/// Patterns: `op(…)` is an op by its short name, a commutative one with its operands in either
/// order; `op[EQ|NE](…)` one with that comparison direction; `reduce[add](…)` one with a region of
/// that op alone; `x` any value, the same at each occurrence; `y=op(…)` an op whose result is y
/// from there on; `xs...` all operands that are left; a number an array all of whose elements are
/// exactly that (0 is not -0.0); `ones` an array of integers or pred with all bits set; `true` and
/// `false`. Everything that a pattern matches is an array of numbers of known sizes, or a tuple of
/// such.
///
/// Replacements: the same, built of variables and ops without attributes; a number is of the type
/// of the result. Or, if `build` is set, the value that it builds; the text then describes it.
struct Rule {
  std::string_view name;
  std::string_view pattern;
  Condition where{};  ///< No condition: holds always.
  std::string_view replacement;
  /// Gives the replacement of the op's only result, or null if the rule does not apply after all.
  Value (*build)(Builder& b, const Match& match) = nullptr;
  Exactness exactness = Exactness::kEveryBit;
  std::string_view because;  ///< Why the result is the same.
};

/// A rewrite that looks like a rule but is wrong: no rule may do it. Its test finds operands for
/// which the two sides differ.
struct NonRule {
  std::string_view name;
  std::string_view pattern;
  Condition where{};
  std::string_view replacement;
  std::string_view because;  ///< Why the result is not the same.
};

/// All rules, in the order in which they are tried at an op.
std::span<const Rule* const> all_rules();
std::span<const NonRule> all_non_rules();
/// The rule called `name`, or null.
const Rule* find_rule(std::string_view name);

// --- The tables, a file each

std::span<const Rule> arithmetic_rules();
std::span<const Rule> shape_rules();

}  // namespace tenon::hlo::rewrite
