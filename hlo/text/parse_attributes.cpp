// Attributes of both text forms: builtin ones, StableHLO's and CHLO's; others are kept verbatim.
#include "core/types/float_convert.h"
#include "hlo/text/parser.h"

namespace tenon::hlo {
namespace {

// Text that is kept verbatim, except for white space, which printers choose freely: single spaces
// between words, none inside brackets.
std::string with_plain_spaces(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) in_string = !in_string;
    const bool space = !in_string && (c == ' ' || c == '\n' || c == '\t' || c == '\r');
    if (!space) {
      const bool closes = !in_string && (c == '>' || c == ']' || c == ')' || c == '}');
      if (closes && out.ends_with(' ')) out.pop_back();
      out += c;
      continue;
    }
    const bool after_bracket = out.empty() || out.ends_with('<') || out.ends_with('[') ||
                               out.ends_with('(') || out.ends_with('{') || out.ends_with(' ');
    if (!after_bracket) out += ' ';
  }
  return out;
}

}  // namespace

bool Parser::parse_attribute(Attribute& out) {
  if (!enter()) return false;
  const LeaveOnReturn leave_on_return{*this};
  bool is_float = false;
  switch (scan_.peek()) {
    case '"': {
      std::string text;
      if (!scan_.string_literal(text)) return false;
      out = Attribute(std::move(text));
      return true;
    }
    case '@': {
      std::string name;
      if (!parse_symbol(name)) return false;
      out = SymbolAttr{std::move(name)};
      return true;
    }
    case '[':
      return parse_array_attribute(out);
    case '{': {
      Dict dict;
      if (!parse_attribute_dict(dict)) return false;
      out = Attribute(std::move(dict));
      return true;
    }
    case '#':
      return parse_hash_attribute(out);
    case '!':
    case '(': {
      Type type;
      if (!parse_type(type)) return false;
      out = Attribute(std::move(type));
      return true;
    }
    default:
      if (scan_.peek_number(is_float)) return parse_number(out);
      return parse_word_attribute(out);
  }
}

// "@a::@b" is "a::b".
bool Parser::parse_symbol(std::string& out) {
  out.clear();
  do {
    if (!scan_.expect('@')) return false;
    std::string part;
    if (scan_.peek() == '"') {
      if (!scan_.string_literal(part)) return false;
    } else {
      part = scan_.suffix();
      if (part.empty()) return scan_.fail_expected("a symbol name");
    }
    out += part;
    if (!scan_.peek("::@")) return true;
    scan_.accept("::");
    out += "::";
  } while (true);
}

bool Parser::parse_number(Attribute& out) {
  const size_t start = scan_.token_start();
  bool is_float = false;
  scan_.peek_number(is_float);
  int64_t integer = 0;
  double real = 0;
  if (is_float ? !scan_.real(real) : !scan_.integer(integer)) return false;
  Type type = Type::tensor(is_float ? ElementType::kF64 : ElementType::kS64, {});
  if (scan_.accept(':') && !parse_type(type)) return false;
  const ElementType element = type.element_type();
  if (is_complex(element) || !type.is_tensor() || type.rank() != 0) {
    return scan_.fail_at(start, fmt::format("a number cannot have type {}", type.to_string()));
  }
  if (tenon::is_float(element)) {
    // A hexadecimal literal of float type is its bit pattern.
    if (!is_float && !scan_.text().substr(start).starts_with("0x")) {
      return scan_.fail_at(start, fmt::format("a decimal integer cannot have type {}; write {}.0",
                                              name_of(element), integer));
    }
    const auto raw = static_cast<uint64_t>(integer);
    if (!is_float && bit_width(element) < 64 && (raw >> bit_width(element)) != 0) {
      return scan_.fail_at(start, fmt::format("0x{:X} has more than the {} bits of {}", raw,
                                              bit_width(element), name_of(element)));
    }
    out = FloatAttr{is_float ? encode_float(element, real) : raw, element};
    return true;
  }
  if (is_float)
    return scan_.fail_at(start, fmt::format("a float cannot have type {}", name_of(element)));
  // The type follows the number: reads the number again with the range of the type.
  const size_t end = scan_.offset();
  scan_.set_offset(start);
  if (!parse_ranged_integer(element, integer)) return false;
  scan_.set_offset(end);
  out = IntegerAttr{is_pred(element) ? integer != 0 : wrap_integer(element, integer), element};
  return true;
}

bool Parser::parse_word_attribute(Attribute& out) {
  const size_t start = scan_.token_start();
  const std::string_view word = scan_.word();
  if (word.empty()) return scan_.fail_expected("an attribute");
  if (word == "true" || word == "false") {
    out = Attribute(word == "true");
    // "true : i1" is legal too.
    Type ignored;
    return !scan_.accept(':') || parse_type(ignored);
  }
  if (word == "unit") {
    out = Unit{};
    return true;
  }
  if (word == "dense") return parse_dense(out);
  if (word == "array") return parse_dense_array(out);
  if (word == "dense_resource") return parse_dense_resource(out);
  if (word == "loc") {
    scan_.set_offset(start);
    Location location;
    if (!parse_location(location)) return false;
    out = OpaqueAttr{fmt::format("loc({})", location_to_string(location))};
    return true;
  }
  static constexpr std::string_view kBracketed[] = {"affine_map", "affine_set", "strided",
                                                    "distinct", "sparse"};
  for (const std::string_view name : kBracketed) {
    if (word != name) continue;
    std::string_view ignored;
    while (scan_.peek() == '<' || scan_.peek() == '[') {
      if (!scan_.balanced(ignored)) return false;
    }
    out = OpaqueAttr{with_plain_spaces(scan_.text().substr(start, scan_.offset() - start))};
    return true;
  }
  // A type.
  static constexpr std::string_view kTypeWords[] = {
      "tensor", "memref", "tuple", "none", "complex", "token", "future", "function", "buffer", "q"};
  // A bare element type is kept as its name, as in artifacts; tensors are types.
  const bool is_element = element_type_from_mlir_name(word) || element_type_from_name(word);
  if (is_element && !scan_.peek("[")) {
    out = OpaqueAttr{std::string(word)};
    return true;
  }
  bool is_type = is_element;
  for (const std::string_view name : kTypeWords) is_type |= word == name;
  if (is_type) {
    scan_.set_offset(start);
    Type type;
    if (!parse_type(type)) return false;
    out = Attribute(std::move(type));
    return true;
  }
  if (word == "tf32") {
    out = OpaqueAttr{std::string(word)};
    return true;
  }
  return scan_.fail_at(start, fmt::format("unknown attribute '{}'", word));
}

bool Parser::parse_array_attribute(Attribute& out) {
  if (!scan_.expect('[')) return false;
  ArrayAttr elements;
  if (!scan_.peek("]")) {
    do {
      elements.emplace_back();
      if (!parse_attribute(elements.back())) return false;
    } while (scan_.accept(','));
  }
  if (!scan_.expect(']')) return false;
  out = Attribute(std::move(elements));
  return true;
}

// After `array`: '<' type [':' values] '>'.
bool Parser::parse_dense_array(Attribute& out) {
  const size_t start = scan_.token_start();
  Type type;
  if (!scan_.expect('<') || !parse_type(type)) return false;
  const ElementType element = type.element_type();
  I64s integers;
  BoolsAttr bools;
  ArrayAttr others;  // Ops have lists of s64; in other lists each number has its own type.
  if (scan_.accept(':')) {
    do {
      if (is_pred(element)) {
        const bool truth = scan_.accept_keyword("true");
        if (!truth && !scan_.expect_keyword("false")) return false;
        bools.values.push_back(truth ? 1 : 0);
      } else if (is_float(element)) {
        double value = 0;
        if (!scan_.real(value)) return false;
        others.emplace_back(FloatAttr::of(element, value));
      } else {
        integers.push_back(0);
        if (!scan_.integer(integers.back())) return false;
        others.emplace_back(IntegerAttr{integers.back(), element});
      }
    } while (scan_.accept(','));
  }
  if (!scan_.expect('>')) return false;
  if (!type.is_tensor() || type.rank() != 0) {
    return scan_.fail_at(start, fmt::format("array<{}> is not supported", type.to_mlir()));
  }
  if (is_pred(element)) {
    out = std::move(bools);
  } else if (element == ElementType::kS64) {
    out = std::move(integers);
  } else if (is_float(element) || is_integer(element)) {
    out = Attribute(std::move(others));
  } else {
    return scan_.fail_at(start, fmt::format("array<{}> is not supported", type.to_mlir()));
  }
  return true;
}

bool Parser::parse_attribute_dict(Dict& out, const OpInfo* info) {
  return scan_.expect('{') && parse_dict_entries(out, '}', info);
}

bool Parser::parse_dict_value(const OpInfo* info, std::string_view key, Attribute& out) {
  const auto attribute = attr_key_from_name(key);
  const AttrSpec* spec = info && attribute ? info->find_attribute(*attribute) : nullptr;
  const bool words = spec && (spec->kind == AttrKind::kEnum || spec->kind == AttrKind::kPrecisions);
  return words && scan_.peek() != '"' ? parse_attribute_value(*spec, out) : parse_attribute(out);
}

bool Parser::parse_dict_entries(Dict& out, char closing, const OpInfo* info) {
  while (!scan_.accept(closing)) {
    std::string key;
    const size_t start = scan_.token_start();
    if (scan_.peek() == '"') {
      if (!scan_.string_literal(key)) return false;
    } else {
      key = scan_.word();
      if (key.empty()) return scan_.fail_expected("an attribute name");
    }
    Attribute value{Unit{}};
    if (scan_.accept('=') && !parse_dict_value(info, key, value)) return false;
    if (find(out, key) != nullptr) {
      return scan_.fail_at(start, fmt::format("attribute '{}' is given twice", key));
    }
    insert(out, std::move(key), std::move(value));
    if (!scan_.accept(',')) return scan_.expect(closing);
  }
  return true;
}

bool Parser::parse_hash_attribute(Attribute& out) {
  const size_t start = scan_.token_start();
  scan_.expect('#');
  std::string_view name = scan_.suffix();
  for (const std::string_view dialect : {"stablehlo", "chlo", "mhlo"}) {
    if (!name.starts_with(dialect)) continue;
    std::string_view rest = name.substr(dialect.size());
    if (rest.starts_with('.')) {
      const size_t before = scan_.offset();
      if (scan_.peek("<") && parse_stablehlo_attribute(rest.substr(1), out)) return true;
      if (scan_.failed()) return false;
      scan_.set_offset(before);
    } else if (rest.empty() && scan_.accept('<')) {
      // #stablehlo<kind WORD>, or #stablehlo<kind …fields…> of old printers.
      const std::string_view kind_name = scan_.word();
      const auto kind = enum_kind_from_name(kind_name);
      if (!kind) return scan_.fail("unknown attribute '#{}<{}'", dialect, kind_name);
      return parse_enum_word(*kind, out) && scan_.expect('>');
    }
  }
  std::string_view body;
  if (scan_.peek("<")) {
    if (!scan_.balanced(body)) return false;
    out = OpaqueAttr{with_plain_spaces(scan_.text().substr(start, scan_.offset() - start))};
    return true;
  }
  const auto alias = attribute_aliases_.find(std::string(name));
  if (alias != attribute_aliases_.end()) {
    out = alias->second.value;
    return take_in(alias->second.extent);
  }
  if (name.find('.') == std::string_view::npos) {
    return scan_.fail_at(start, fmt::format("attribute alias '#{}' is not defined", name));
  }
  out = OpaqueAttr{with_plain_spaces(scan_.text().substr(start, scan_.offset() - start))};
  return true;
}

bool Parser::parse_enum_word(EnumKind kind, Attribute& out) {
  const size_t start = scan_.token_start();
  const std::string_view word = scan_.word();
  const auto value = enum_from_word(kind, word);
  if (!value) {
    return scan_.fail_at(start, fmt::format("'{}' is not a valid {}", word, enum_kind_name(kind)));
  }
  out = *value;
  return true;
}

}  // namespace tenon::hlo
