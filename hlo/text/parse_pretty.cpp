// The pretty forms that the op table describes: operands, named attributes, types.
#include <algorithm>

#include "hlo/text/parser.h"

namespace tenon::hlo {

bool Parser::parse_pretty_op(std::string_view name, RawOp& out, std::vector<Type>& result_types) {
  out.name = name;
  if (name == "return" || name == "func.return") out.name = "func.return";
  if (name == "call") out.name = "func.call";
  const auto code = op_from_name(out.name);
  if (!code) return parse_foreign(name, out, result_types);
  const OpInfo& info = op_info(*code);
  switch (info.syntax) {
    case Syntax::kCustom:
      return parse_custom(*code, out, result_types);
    case Syntax::kGeneric:
      return fail_at_name(name,
                          fmt::format("{} has no pretty form; write it as \"{}\"(…)", name, name));
    case Syntax::kArrow:
    case Syntax::kOperandsArrow: {
      std::vector<Type> operand_types;
      if (!parse_by_format(info, out, result_types)) return false;
      if (!scan_.expect(':') || !parse_type_list(operand_types)) return false;
      result_types.emplace_back();
      return scan_.expect("->") && parse_type(result_types.back()) &&
             check_operand_types(out, operand_types);
    }
    default:
      return parse_by_format(info, out, result_types) && parse_types(info, out, result_types);
  }
}

bool Parser::parse_by_format(const OpInfo& info, RawOp& out, std::vector<Type>&) {
  std::string_view rest = info.format;
  bool first = true;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (!parse_format_item(info, rest.substr(0, end), first, out)) return false;
    first = false;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return scan_.peek() != '{' || parse_attribute_dict(out.attributes);
}

bool Parser::parse_format_item(const OpInfo& info, std::string_view item, bool first, RawOp& out) {
  if (item == "%") {
    // create_token, after_all: without operands, the type follows at once.
    if (scan_.peek() != '%' && first) return true;
    if (!first && !scan_.expect(',')) return false;
    do {
      if (!parse_operand(out)) return false;
      const size_t comma = scan_.token_start();
      if (!scan_.accept(',')) return true;
      const bool more = scan_.peek() == '%';
      if (!more) {
        scan_.set_offset(comma);
        return true;
      }
    } while (true);
  }
  const bool optional = item.ends_with('?');
  if (optional) item.remove_suffix(1);
  const size_t equals = item.find('=');
  const std::string_view keyword =
      equals == std::string_view::npos ? std::string_view{} : item.substr(0, equals);
  const std::string_view attribute =
      equals == std::string_view::npos ? item : item.substr(equals + 1);
  if (!first) {
    if (optional && scan_.peek() != ',') return true;
    if (!scan_.expect(',')) return false;
  }
  if (!keyword.empty() && (!scan_.expect_keyword(keyword) || !scan_.expect('='))) return false;
  const AttrSpec* spec = info.find_attribute(*attr_key_from_name(attribute));
  Attribute value;
  if (!parse_attribute_value(*spec, value)) return false;
  insert(out.attributes, std::string(attribute), std::move(value));
  return true;
}

// The value of an attribute of a known kind in its short form: a bare word, [1, 2], 3, true, "s".
bool Parser::parse_attribute_value(const AttrSpec& spec, Attribute& out) {
  switch (spec.kind) {
    case AttrKind::kEnum:
      return scan_.peek() == '#' ? parse_attribute(out) : parse_enum_word(spec.enum_kind, out);
    case AttrKind::kPrecisions: {
      ArrayAttr words;
      if (!scan_.expect('[')) return false;
      while (!scan_.peek("]")) {
        words.emplace_back();
        if (scan_.peek() == '#' ? !parse_attribute(words.back())
                                : !parse_enum_word(EnumKind::kPrecision, words.back())) {
          return false;
        }
        if (!scan_.accept(',')) break;
      }
      out = Attribute(std::move(words));
      return scan_.expect(']');
    }
    case AttrKind::kI64s: {
      I64s values;
      if (!scan_.peek("[")) return parse_attribute(out);
      if (!parse_i64_list(values)) return false;
      out = std::move(values);
      return true;
    }
    case AttrKind::kI64:
    case AttrKind::kI32: {
      int64_t value = 0;
      if (!scan_.integer(value)) return false;
      out = Attribute(value);
      return true;
    }
    case AttrKind::kBool: {
      // Not parsed as a general attribute, because a colon that follows belongs to the op.
      const bool truth = scan_.accept_keyword("true");
      out = Attribute(truth);
      return truth || scan_.expect_keyword("false");
    }
    default:
      return parse_attribute(out);
  }
}

bool Parser::parse_types(const OpInfo& info, const RawOp& op, std::vector<Type>& result_types) {
  switch (info.syntax) {
    case Syntax::kSameType:
      return parse_same_type(op, result_types);
    case Syntax::kResultType: {
      if (!scan_.expect(':')) return false;
      if (!scan_.peek("(")) {
        result_types.emplace_back();
        return parse_type(result_types.back());
      }
      std::vector<Type> operand_types;
      return parse_function_type(operand_types, result_types) &&
             check_operand_types(op, operand_types);
    }
    default:
      return parse_functional(op, result_types);
  }
}

// ': S', where S is the type of all operands and the result, or a function type.
bool Parser::parse_same_type(const RawOp& op, std::vector<Type>& result_types) {
  const size_t colon = scan_.token_start();
  if (!scan_.expect(':')) return false;
  if (scan_.peek("(")) {
    scan_.set_offset(colon);
    return parse_functional(op, result_types);
  }
  Type type;
  if (!parse_type(type)) return false;
  result_types.push_back(type);
  return check_operand_types(op, std::vector<Type>(op.operands.size(), type));
}

bool Parser::parse_functional(const RawOp& op, std::vector<Type>& result_types) {
  std::vector<Type> operand_types;
  return scan_.expect(':') && parse_function_type(operand_types, result_types) &&
         check_operand_types(op, operand_types);
}

}  // namespace tenon::hlo
