// hlo/passes/idioms/: recognizes what programs write out in many ops, as composites.
//
// An idiom is a computation with a name of its own (a softmax, an attention) that frameworks write
// as many ops. The pass `recognize-idioms` looks for instances, offers each to the target as a
// composite, and puts the composite in the place of its ops where the target takes it whole. The
// ops become the composite's decomposition, which is what a device that declines it later, the
// evaluator and the tests run. Where the target takes no composite the pass does nothing.
//
// A row of the table is an idiom's only declaration: the matcher, `tenon idioms`, docs/idioms.md
// and a test by the row's example follow from it. Patterns are those of rewrite rules
// (hlo/passes/rewrite/rule.h), with definitions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/passes/rewrite/pattern.h"

namespace tenon::hlo::idioms {

/// The values that matched the names of a pattern.
class Captures {
 public:
  Captures(const rewrite::VariableNames& names, const rewrite::Match& match, Instruction& root)
      : names_(names), match_(match), root_(root) {}

  /// Null if the name took no part in the match.
  Value operator[](std::string_view name) const;
  /// The op that defines the value of that name, which has one.
  Instruction& op(std::string_view name) const { return *(*this)[name].def; }
  Instruction& root() const { return root_; }

 private:
  const rewrite::VariableNames& names_;
  const rewrite::Match& match_;
  Instruction& root_;
};

/// A place where a program writes out an idiom.
struct Instance {
  std::vector<Value> operands;
  std::vector<Value> results;
  Dict attributes;  ///< Of the composite, sorted by name.
  /// All operands are defined before it, all uses of the results come behind it.
  Instruction* anchor = nullptr;
};

struct Idiom {
  std::string_view name;        ///< The composite's: "tenon.softmax".
  std::string_view summary;     ///< What it computes.
  std::string_view signature;   ///< "(x) -> y"
  std::string_view attributes;  ///< What each says: "dimension: of the sums".
  /// The op that computes the result.
  std::string_view pattern;
  /// Names of the pattern that are the operands, in order.
  std::vector<std::string_view> operands;
  /// The attributes of a match of the pattern; nothing if it is no instance.
  std::optional<Dict> (*attributes_of)(const Captures& match) = nullptr;
  /// Instead of a pattern: the op that instances are looked for at, and the instance at one.
  std::optional<OpCode> root{};
  std::optional<Instance> (*find)(Instruction& root) = nullptr;
  /// A function in StableHLO text that is an instance and nothing else.
  std::string_view example;
};

/// All idioms; of several that match an op the first is offered first.
std::span<const Idiom> all_idioms();
/// What their patterns are written with.
std::span<const rewrite::PatternDefinition> definitions();
/// OK if every pattern can be read.
Status check_idioms();

/// The instance of `idiom` at `op`, if there is one. Its ops have no uses outside of it.
std::optional<Instance> find_instance(const Idiom& idiom, Instruction& op);

/// docs/idioms.md.
std::string documentation();

// --- The matchers, a file each

std::optional<Dict> softmax(const Captures& match);
std::optional<Dict> layer_norm(const Captures& match);
std::optional<Dict> attention(const Captures& match);
std::optional<Instance> top_k(Instruction& sort);
std::optional<Instance> scan(Instruction& root);

}  // namespace tenon::hlo::idioms
