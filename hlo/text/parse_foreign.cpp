// Ops of other dialects that occur in programs for StableHLO tools: check, interpreter, sdy, mhlo.
#include "hlo/ops/mhlo_names.h"
#include "hlo/text/parser.h"

namespace tenon::hlo {

bool Parser::parse_foreign(std::string_view name, RawOp& out, std::vector<Type>& result_types) {
  if (name.starts_with("check.") || name == "interpreter.print" || name == "interpreter.probe") {
    return parse_check(out, result_types);
  }
  if (name.starts_with("sdy.")) return parse_sdy(name, out, result_types);
  if (name == kMhloCopy || unary_of_mhlo(name)) {
    return parse_operand(out) && (scan_.peek() != '{' || parse_attribute_dict(out.attributes)) &&
           parse_same_type(out, result_types);
  }
  return fail_at_name(name, fmt::format("unknown op '{}'", name));
}

// check.expect_eq %a, %b : T   check.expect_eq_const %a, dense<…> : T
// check.expect_close %a, %b, max_ulp_difference = n : T, T   …, tolerance = x : T
// interpreter.print %a : T     %r = interpreter.probe %a, probe_id = "id" : T
bool Parser::parse_check(RawOp& out, std::vector<Type>& result_types) {
  if (!parse_operand(out)) return false;
  while (scan_.accept(',')) {
    if (scan_.peek() == '%') {
      if (!parse_operand(out)) return false;
    } else if (scan_.peek_word() == "dense") {
      Attribute value;
      if (!parse_attribute(value)) return false;
      insert(out.attributes, "value", std::move(value));
    } else {
      // The type after the colon is the operands', not the number's.
      const std::string key(scan_.word());
      Attribute value;
      bool is_float = false;
      int64_t integer = 0;
      double real = 0;
      if (!scan_.expect('=')) return false;
      if (!scan_.peek_number(is_float)) {
        if (!parse_attribute(value)) return false;
      } else if (is_float) {
        if (!scan_.real(real)) return false;
        value = FloatAttr::of(ElementType::kF64, real);
      } else {
        if (!scan_.integer(integer)) return false;
        value = Attribute(integer);
      }
      insert(out.attributes, key, std::move(value));
    }
  }
  if (scan_.peek() == '{' && !parse_attribute_dict(out.attributes)) return false;
  // The constant of a _const check has already taken the type.
  std::vector<Type> types;
  if (scan_.accept(':') && !parse_type_list(types)) return false;
  if (out.name == "interpreter.probe") result_types.push_back(type_of(out.operands[0]));
  return true;
}

bool Parser::parse_sdy(std::string_view name, RawOp& out, std::vector<Type>& result_types) {
  const auto verbatim = [&](std::string_view key) {
    std::string_view text;
    const size_t start = scan_.token_start();
    if (scan_.peek() == '@') {
      std::string symbol;
      if (!parse_symbol(symbol)) return false;
      insert(out.attributes, std::string(key), SymbolAttr{std::move(symbol)});
      return true;
    }
    if (!scan_.balanced(text)) return false;
    insert(out.attributes, std::string(key),
           OpaqueAttr{std::string(scan_.text().substr(start, scan_.offset() - start))});
    return true;
  };
  if (out.name == "sdy.mesh") {
    std::string mesh;
    if (!parse_symbol(mesh) || !scan_.expect('=')) return false;
    insert(out.attributes, "sym_name", Attribute(std::move(mesh)));
    if (!verbatim("mesh")) return false;
    return scan_.peek() != '{' || parse_attribute_dict(out.attributes);
  }
  if (out.name == "sdy.manual_computation") return parse_manual_computation(out, result_types);
  if (out.name == "sdy.return") return parse_return(out);
  if (out.name == "sdy.sharding_constraint" || out.name == "sdy.reshard") {
    return parse_operand(out) && verbatim("sharding") && parse_same_type(out, result_types);
  }
  if (out.name == "sdy.sharding_group") {
    int64_t id = 0;
    std::vector<Type> types;
    if (!parse_operand(out) || !scan_.expect_keyword("group_id") || !scan_.expect('=') ||
        !scan_.integer(id)) {
      return false;
    }
    insert(out.attributes, "group_id", Attribute(id));
    return scan_.expect(':') && parse_type_list(types);
  }
  return fail_at_name(name, fmt::format("the parser does not know a pretty form of {}", out.name));
}

// (%a) in_shardings=[<…>] out_shardings=[<…>] manual_axes={"a"} (%arg: T) {…} : FT
bool Parser::parse_manual_computation(RawOp& out, std::vector<Type>& result_types) {
  if (!scan_.expect('(') || !parse_operands(out, ')') || !scan_.expect(')')) return false;
  for (const std::string_view key : {"in_shardings", "out_shardings", "manual_axes"}) {
    std::string_view text;
    if (!scan_.expect_keyword(key) || !scan_.expect('=') || !scan_.balanced(text)) return false;
    insert(out.attributes, std::string(key), OpaqueAttr{std::string(text)});
  }
  open_scope();
  RawRegion region;
  if (!scan_.expect('(')) return false;
  while (scan_.peek() != ')') {
    Name name;
    Type type;
    if (!parse_name(name) || !scan_.expect(':') || !parse_type(type)) return false;
    if (!define_argument(name.text, type, region)) return false;
    if (!scan_.accept(',')) break;
  }
  if (!scan_.expect(')') || !scan_.expect('{') || !parse_ops(region.ops) || !scan_.expect('}')) {
    return false;
  }
  close_scope();
  out.regions.push_back(std::move(region));
  return parse_functional(out, result_types);
}

}  // namespace tenon::hlo
