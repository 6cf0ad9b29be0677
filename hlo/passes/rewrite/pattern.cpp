#include "hlo/passes/rewrite/pattern.h"

#include <algorithm>
#include <charconv>

#include "hlo/passes/constants.h"

namespace tenon::hlo::rewrite {
namespace {

// --- Text

class PatternParser {
 public:
  PatternParser(std::string_view text, VariableNames& names)
      : text_(text), rest_(text), names_(names) {}

  Result<Pattern> run() {
    TENON_ASSIGN(Pattern pattern, expression());
    if (!rest_.empty()) return fail("expected the end");
    return pattern;
  }

 private:
  Error fail(std::string_view what) const {
    return invalid_argument("pattern '{}', column {}: {}", text_, text_.size() - rest_.size() + 1,
                            what);
  }

  void skip_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }
  std::string_view word() {
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const auto* const end = std::find_if_not(rest_.begin(), rest_.end(), is_part);
    const std::string_view found = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    rest_.remove_prefix(found.size());
    return found;
  }

  Result<Pattern> expression() {
    if (!rest_.empty() && (rest_[0] == '-' || (rest_[0] >= '0' && rest_[0] <= '9'))) {
      return number();
    }
    const std::string_view name = word();
    if (name.empty()) return fail("expected an op, a variable or a number");
    if (rest_.starts_with('(') || rest_.starts_with('[')) return op(name);
    Pattern made;
    if (name == "ones") {
      made.kind = Pattern::Kind::kOnes;
    } else if (name == "true" || name == "false") {
      made.kind = Pattern::Kind::kNumber;
      made.number = name == "true" ? 1 : 0;
      made.is_truth = true;
    } else if (accept("...")) {
      made.kind = Pattern::Kind::kRest;
    } else {
      TENON_ASSIGN(made.variable, variable(name));
    }
    skip_spaces();
    return made;
  }

  Result<size_t> variable(std::string_view name) {
    const auto found = std::ranges::find(names_, name);
    const auto place = static_cast<size_t>(found - names_.begin());
    if (found == names_.end()) names_.emplace_back(name);
    if (place >= Match::kMostVariables) return fail("too many variables");
    return place;
  }

  Result<Pattern> number() {
    Pattern made;
    made.kind = Pattern::Kind::kNumber;
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), made.number);
    if (read.ec != std::errc()) return fail("expected a number");
    rest_.remove_prefix(static_cast<size_t>(read.ptr - rest_.data()));
    skip_spaces();
    return made;
  }

  Result<Pattern> op(std::string_view name) {
    Pattern made;
    made.kind = Pattern::Kind::kOp;
    const std::optional<OpCode> code = op_from_name("stablehlo." + std::string(name));
    if (!code) return fail("there is no op of this name");
    made.code = *code;
    made.number_of_op = ops_++;
    if (made.number_of_op >= Match::kMostOps) return fail("too many ops");
    if (accept("[")) {
      do {
        const auto found = enum_from_word(EnumKind::kComparisonDirection, word());
        if (!found) return fail("expected a comparison direction");
        made.directions.push_back(static_cast<ComparisonDirection>(found->value));
      } while (accept("|"));
      if (!accept("]")) return fail("expected ']'");
    }
    if (!accept("(")) return fail("expected '('");
    if (accept(")")) return made;
    do {
      TENON_ASSIGN(Pattern operand, expression());
      made.operands.push_back(std::move(operand));
    } while (accept(","));
    if (!accept(")")) return fail("expected ')'");
    return made;
  }

  std::string_view text_;
  std::string_view rest_;
  VariableNames& names_;
  size_t ops_ = 0;
};

// --- Matching

// Whether all values are arrays of numbers with known sizes, or the op only puts values together.
bool is_known(const Instruction& op) {
  if (op.code() == OpCode::kGetTupleElement || op.code() == OpCode::kTuple) return true;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!is_plain(op.operand_type(i))) return false;
  }
  return is_plain(op.result_type());
}

bool matches_value(const Pattern& pattern, Value value, Match& match);

bool matches_operands(const Pattern& pattern, Instruction& op, bool is_swapped, Match& match) {
  const std::vector<Pattern>& wanted = pattern.operands;
  const bool is_open = !wanted.empty() && wanted.back().kind == Pattern::Kind::kRest;
  const size_t named = wanted.size() - (is_open ? 1 : 0);
  if (is_open ? op.operand_count() < named : op.operand_count() != named) return false;
  for (size_t i = 0; i < named; ++i) {
    if (!matches_value(wanted[i], op.operand(is_swapped ? 1 - i : i), match)) return false;
  }
  for (size_t i = named; i < op.operand_count(); ++i) match.rest.push_back(op.operand(i));
  return true;
}

bool matches_op(const Pattern& pattern, Instruction& op, Match& match) {
  if (op.code() != pattern.code || op.result_count() != 1 || !is_known(op)) return false;
  if (!pattern.directions.empty()) {
    const auto direction = op.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
    if (std::ranges::find(pattern.directions, direction) == pattern.directions.end()) return false;
  }
  match.ops[pattern.number_of_op] = &op;
  if (!op.info().commutative || op.operand_count() != 2) {
    return matches_operands(pattern, op, false, match);
  }
  Match first = match;
  if (matches_operands(pattern, op, false, first)) {
    match = std::move(first);
    return true;
  }
  return matches_operands(pattern, op, true, match);
}

bool matches_value(const Pattern& pattern, Value value, Match& match) {
  switch (pattern.kind) {
    case Pattern::Kind::kOp:
      return matches_op(pattern, *value.def, match);
    case Pattern::Kind::kVariable: {
      Value& bound = match.variables[pattern.variable];
      if (!bound) bound = value;
      return bound == value;
    }
    case Pattern::Kind::kNumber:
      return is_number(value, pattern.number) &&
             is_pred(value.type().element_type()) >= pattern.is_truth;
    case Pattern::Kind::kOnes:
      return is_all_ones(value);
    case Pattern::Kind::kRest:
      break;
  }
  return false;
}

// --- Building

Value build(const Pattern& pattern, Builder& b, const Match& match) {
  switch (pattern.kind) {
    case Pattern::Kind::kOp: {
      std::vector<Value> operands;
      for (const Pattern& each : pattern.operands) operands.push_back(build(each, b, match));
      return b.make(pattern.code, operands);
    }
    case Pattern::Kind::kVariable:
      return match.variables[pattern.variable];
    case Pattern::Kind::kNumber:
    case Pattern::Kind::kOnes: {
      const Shape& shape = match.root().result_type().shape();
      const ElementType type = shape.element_type();
      // All bits of an integer are those of -1, which pred has as 1.
      const bool all_bits = pattern.kind == Pattern::Kind::kOnes && !is_pred(type);
      const double number = pattern.kind == Pattern::Kind::kOnes ? 1 : pattern.number;
      return b.constant(DenseAttr::splat(
          shape, all_bits ? Literal::scalar_integer(type, -1) : Literal::scalar(type, number)));
    }
    case Pattern::Kind::kRest:
      break;
  }
  return {};
}

}  // namespace

Result<Pattern> parse_pattern(std::string_view text, VariableNames& names) {
  return PatternParser(text, names).run();
}

Result<CompiledRule> compile_rule(const Rule& rule) {
  CompiledRule compiled{.rule = &rule};
  VariableNames names;
  TENON_ASSIGN(compiled.pattern, parse_pattern(rule.pattern, names));
  if (compiled.pattern.kind != Pattern::Kind::kOp) {
    return invalid_argument("rule {}: the pattern is no op", rule.name);
  }
  if (rule.build != nullptr) return compiled;
  const size_t known = names.size();
  TENON_ASSIGN(Pattern replacement, parse_pattern(rule.replacement, names));
  if (names.size() != known) {
    return invalid_argument("rule {}: the pattern has no variable '{}'", rule.name, names.back());
  }
  compiled.replacement = std::make_unique<Pattern>(std::move(replacement));
  return compiled;
}

bool matches(const CompiledRule& rule, Instruction& op, Match& match) {
  match = Match();
  if (!matches_op(rule.pattern, op, match)) return false;
  const auto holds = rule.rule->where.holds;
  return holds == nullptr || holds(match);
}

Value build_replacement(const CompiledRule& rule, Builder& b, const Match& match) {
  return rule.rule->build != nullptr ? rule.rule->build(b, match)
                                     : build(*rule.replacement, b, match);
}

}  // namespace tenon::hlo::rewrite
