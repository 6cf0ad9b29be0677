// hlo/passes/idioms/: recognizes computations that programs write as many ops, and makes them
// composites.
//
// An idiom is a computation with a name of its own (a softmax, an attention) that frameworks write
// as many ops. The pass `recognize-idioms` looks for instances and offers each to the target as a
// composite. If the target takes the composite whole, it replaces the ops, and the ops become its
// decomposition: a device that declines it later, the evaluator and the tests run the
// decomposition. If the target takes no composites, the pass does nothing.
//
// A row of the table is the only declaration of an idiom; the matcher, `tenon idioms`,
// docs/idioms.md and a test with the row's example are derived from it. Patterns are those of
// rewrite rules (hlo/passes/rewrite/rule.h), with definitions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/passes/rewrite/pattern.h"

namespace tenon::hlo::idioms {

/// The values that the names of a pattern matched.
class PatternCaptures {
 public:
  PatternCaptures(const rewrite::VariableNames& names, const rewrite::Match& match,
                  Instruction& root)
      : names_(names), match_(match), root_(root) {}

  /// Null if the match has no such name.
  Value operator[](std::string_view name) const;
  /// The op that defines the value of this name, which must have one.
  Instruction& op(std::string_view name) const { return *(*this)[name].def; }
  Instruction& root() const { return root_; }

 private:
  const rewrite::VariableNames& names_;
  const rewrite::Match& match_;
  Instruction& root_;
};

/// An occurrence of an idiom in a program.
struct Instance {
  std::vector<Value> operands;
  std::vector<Value> results;
  Dict attributes;  ///< The composite's, sorted by name.
  /// All operands are defined before this op; all uses of the results come after it.
  Instruction* anchor = nullptr;
};

struct Idiom {
  std::string_view name;        ///< The composite's: "tenon.softmax".
  std::string_view summary;     ///< The value of the composite, for people.
  std::string_view signature;   ///< "(x) -> y"
  std::string_view attributes;  ///< The meaning of each: "dimension: of the sums".
  /// The pattern of the op that computes the result.
  std::string_view pattern;
  /// The names of the pattern that are the operands, in order.
  std::vector<std::string_view> operands;
  /// The attributes for a match of the pattern; nothing if the match is not an instance.
  std::optional<Dict> (*attributes_of)(const PatternCaptures& match) = nullptr;
  /// Instead of a pattern: the op at which instances are searched, and the function that finds one.
  std::optional<OpCode> root{};
  std::optional<Instance> (*find)(Instruction& root) = nullptr;
  /// A function in StableHLO text that consists of one instance.
  std::string_view example;
};

/// All idioms. If several match an op, the first is offered first.
std::span<const Idiom> all_idioms();
/// The definitions that the patterns use.
std::span<const rewrite::PatternDefinition> definitions();
/// OK if every pattern parses.
Status check_idioms();

/// The instance of `idiom` at `op`, if there is one. No value inside it has uses outside it.
std::optional<Instance> find_instance(const Idiom& idiom, Instruction& op);

/// docs/idioms.md.
std::string documentation();

// --- The matchers, one file each

std::optional<Dict> softmax(const PatternCaptures& match);
std::optional<Dict> layer_norm(const PatternCaptures& match);
std::optional<Dict> attention(const PatternCaptures& match);
std::optional<Instance> top_k(Instruction& sort);
std::optional<Instance> scan(Instruction& root);

}  // namespace tenon::hlo::idioms
