#include "hlo/passes/rewrite/pattern.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "hlo/ir/region.h"
#include "hlo/passes/constants.h"

namespace tenon::hlo::rewrite {
namespace {

// --- Text

// A parameter of a definition in use: the pattern that it stands for, and from its first occurrence
// on the variable that the value has.
struct Argument {
  Pattern pattern;
  bool has_occurred = false;
};
using Arguments = std::map<std::string, Argument, std::less<>>;

constexpr int kMostDefinitions = 16;  // Within each other.

class PatternParser {
 public:
  PatternParser(std::string_view text, VariableNames& names,
                std::span<const PatternDefinition> definitions, size_t& ops)
      : text_(text), rest_(text), names_(names), definitions_(definitions), ops_(ops) {}

  Result<Pattern> run() {
    TENON_ASSIGN(Pattern pattern, expression());
    if (!rest_.empty()) return fail("expected the end");
    return pattern;
  }
  // The pattern of a definition: its parameters are in `arguments`.
  Result<Pattern> run_within(Arguments& arguments, int depth) {
    arguments_ = &arguments;
    depth_ = depth;
    return run();
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
  static bool is_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  std::string_view word() {
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
    if (rest_.starts_with('=')) return named(name);
    if (rest_.starts_with('(') || rest_.starts_with('[')) {
      const bool is_defined = std::ranges::any_of(
          definitions_, [&](const PatternDefinition& each) { return name_of(each) == name; });
      return is_defined ? use(name) : op(name);
    }
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
      TENON_ASSIGN(made, variable_or_argument(name));
    }
    skip_spaces();
    return made;
  }

  // An op, or the use of a definition, whose value has a name.
  Result<Pattern> named(std::string_view name) {
    accept("=");
    TENON_ASSIGN(Pattern made, expression());
    TENON_ASSIGN(const size_t place, variable(name));
    if (!give_name(made, place)) return fail("expected an op behind '='");
    return made;
  }

  // False if there is nothing to be named. What has a name already is an alternative without
  // others.
  static bool give_name(Pattern& pattern, size_t place) {
    if (pattern.kind != Pattern::Kind::kOp && pattern.kind != Pattern::Kind::kEither) return false;
    if (pattern.variable != Pattern::kUnnamed) {
      Pattern outer;
      outer.kind = Pattern::Kind::kEither;
      outer.operands.push_back(std::move(pattern));
      pattern = std::move(outer);
    }
    pattern.variable = place;
    return true;
  }

  Result<size_t> variable(std::string_view name) {
    const auto found = std::ranges::find(names_, name);
    const auto place = static_cast<size_t>(found - names_.begin());
    if (found == names_.end()) names_.emplace_back(name);
    if (place >= Match::kMostVariables) return fail("too many variables");
    return place;
  }

  Result<Pattern> variable_or_argument(std::string_view name) {
    Argument* const argument = [&]() -> Argument* {
      if (arguments_ == nullptr) return nullptr;
      const auto found = arguments_->find(name);
      return found == arguments_->end() ? nullptr : &found->second;
    }();
    Pattern made;
    if (argument == nullptr) {
      TENON_ASSIGN(made.variable, variable(name));
    } else if (!argument->has_occurred) {
      made = argument->pattern;
      argument->has_occurred = true;
    } else {
      if (argument->pattern.variable == Pattern::kUnnamed) return argument->pattern;  // A number.
      made.variable = argument->pattern.variable;
    }
    return made;
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

  Result<std::vector<Pattern>> operands() {
    std::vector<Pattern> list;
    if (!accept("(")) return fail("expected '('");
    if (accept(")")) return list;
    do {
      TENON_ASSIGN(Pattern operand, expression());
      list.push_back(std::move(operand));
    } while (accept(","));
    if (!accept(")")) return fail("expected ')'");
    return list;
  }

  Result<Pattern> op(std::string_view name) {
    Pattern made;
    made.kind = Pattern::Kind::kOp;
    const std::optional<OpCode> code = op_from_name("stablehlo." + std::string(name));
    if (!code) return fail("there is no op of this name");
    made.code = *code;
    made.number_of_op = ops_++;
    if (made.number_of_op >= Match::kMostOps && definitions_.empty()) return fail("too many ops");
    if (accept("[")) TENON_TRY(qualifiers(made));
    TENON_ASSIGN(made.operands, operands());
    return made;
  }

  // Comparison directions, or the op of a region.
  Status qualifiers(Pattern& made) {
    if (made.code == OpCode::kCompare) {
      do {
        const auto found = enum_from_word(EnumKind::kComparisonDirection, word());
        if (!found) return Status(fail("expected a comparison direction"));
        made.directions.push_back(static_cast<ComparisonDirection>(found->value));
      } while (accept("|"));
    } else {
      made.reducer = op_from_name("stablehlo." + std::string(word()));
      if (!made.reducer) return Status(fail("expected an op"));
    }
    return accept("]") ? Status() : Status(fail("expected ']'"));
  }

  // --- Definitions

  static std::string_view name_of(const PatternDefinition& definition) {
    return definition.head.substr(0, definition.head.find('('));
  }

  static std::vector<std::string_view> parameters_of(const PatternDefinition& definition) {
    std::vector<std::string_view> list;
    std::string_view rest = definition.head.substr(name_of(definition).size());
    while (rest.size() > 1) {
      rest.remove_prefix(rest.find_first_not_of("(, "));
      list.push_back(rest.substr(0, rest.find_first_of(",)")));
      rest.remove_prefix(list.back().size());
    }
    return list;
  }

  static bool occurs_again(std::string_view pattern, std::string_view parameter) {
    int count = 0;
    for (size_t at = pattern.find(parameter); at != std::string_view::npos;
         at = pattern.find(parameter, at + 1)) {
      const size_t end = at + parameter.size();
      const bool is_word = (at == 0 || !is_part(pattern[at - 1])) &&
                           (end == pattern.size() || !is_part(pattern[end]));
      count += is_word ? 1 : 0;
    }
    return count > 1;
  }

  Result<Pattern> use(std::string_view name) {
    if (depth_ == kMostDefinitions) return fail("definitions within definitions have no end");
    TENON_ASSIGN(std::vector<Pattern> given, operands());
    Pattern made;
    made.kind = Pattern::Kind::kEither;
    for (const PatternDefinition& each : definitions_) {
      if (name_of(each) != name) continue;
      const std::vector<std::string_view> parameters = parameters_of(each);
      if (parameters.size() != given.size()) return fail("another number of arguments");
      Arguments arguments;
      for (size_t i = 0; i < given.size(); ++i) {
        if (occurs_again(each.pattern, parameters[i])) TENON_TRY(name_argument(given[i]));
        arguments[std::string(parameters[i])].pattern = given[i];
      }
      TENON_ASSIGN(Pattern alternative, PatternParser(each.pattern, names_, definitions_, ops_)
                                            .run_within(arguments, depth_ + 1));
      made.operands.push_back(std::move(alternative));
    }
    return made.operands.size() == 1 ? Result<Pattern>(std::move(made.operands[0])) : made;
  }

  // A value that occurs again needs a name.
  Status name_argument(Pattern& given) {
    const bool is_number =
        given.kind == Pattern::Kind::kNumber || given.kind == Pattern::Kind::kOnes;
    if (given.variable != Pattern::kUnnamed || is_number) return {};
    TENON_ASSIGN(const size_t place, variable(fmt::format("{}'", names_.size())));
    return give_name(given, place) ? Status() : Status(fail("expected a variable or an op"));
  }

  std::string_view text_;
  std::string_view rest_;
  VariableNames& names_;
  const std::span<const PatternDefinition> definitions_;
  size_t& ops_;
  Arguments* arguments_ = nullptr;
  int depth_ = 0;
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

bool bind(size_t variable, Value value, Match& match) {
  Value& bound = match.variables[variable];
  if (!bound) bound = value;
  return bound == value;
}

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
  if (pattern.reducer) {
    const Instruction* const reducer =
        op.region_count() == 1 ? op_of_two_parameters(op.region(0)) : nullptr;
    if (reducer == nullptr || reducer->code() != *pattern.reducer) return false;
  }
  if (pattern.variable != Pattern::kUnnamed && !bind(pattern.variable, op.result(0), match)) {
    return false;
  }
  if (pattern.number_of_op < Match::kMostOps) match.ops[pattern.number_of_op] = &op;
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
    case Pattern::Kind::kVariable:
      return bind(pattern.variable, value, match);
    case Pattern::Kind::kEither:
      return std::ranges::any_of(pattern.operands, [&](const Pattern& each) {
        Match tried = match;
        const bool is_same =
            matches_value(each, value, tried) &&
            (pattern.variable == Pattern::kUnnamed || bind(pattern.variable, value, tried));
        if (is_same) match = std::move(tried);
        return is_same;
      });
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
    case Pattern::Kind::kEither:
      break;
  }
  return {};
}

}  // namespace

Result<Pattern> parse_pattern(std::string_view text, VariableNames& names,
                              std::span<const PatternDefinition> definitions) {
  size_t ops = 0;
  return PatternParser(text, names, definitions, ops).run();
}

bool matches(const Pattern& pattern, Instruction& op, Match& match) {
  return op.result_count() == 1 && matches_value(pattern, op.result(0), match);
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
