// Constant data: dense<…>, dense_resource<…> and the resources at the end of a file.
#include <cmath>
#include <cstring>

#include "core/types/float_convert.h"
#include "hlo/text/parser.h"

namespace tenon::hlo {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool decode_hex(std::string_view text, std::string& out) {
  if (!text.starts_with("0x") || text.size() % 2 != 0) return false;
  out.resize((text.size() - 2) / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    const int high = hex_value(text[2 + 2 * i]);
    const int low = hex_value(text[3 + 2 * i]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<char>(high * 16 + low);
  }
  return true;
}

}  // namespace

// The type follows the value, so the value is skipped first, and read again when the type is known.
bool Parser::parse_dense(Attribute& out) {
  const size_t value = scan_.token_start();
  std::string_view skipped;
  if (!scan_.peek("<") || !scan_.balanced(skipped)) return scan_.fail_expected("'<'");
  Type type;
  if (!scan_.expect(':') || !parse_type(type)) return false;
  const size_t end = scan_.offset();
  if (!type.is_tensor() || !type.shape().is_static()) {
    return scan_.fail_at(
        value, fmt::format("a constant has a static tensor type, not {}", type.to_string()));
  }
  const auto count =
      checked_element_count(type.dims(), static_cast<int64_t>(storage_bytes(type.element_type())));
  if (!count) return scan_.fail_at(value, count.error().message());
  scan_.set_offset(value + 1);
  DenseAttr dense;
  if (!parse_dense_value(type.shape(), dense) || !scan_.expect('>')) return false;
  scan_.set_offset(end);
  out = Attribute(std::move(dense));
  return true;
}

bool Parser::parse_dense_value(const Shape& shape, DenseAttr& out) {
  const int64_t count = shape.element_count();
  if (scan_.peek("\"")) return parse_hex_data(shape, out);
  if (scan_.peek(">")) {
    if (count != 0) return scan_.fail("dense<> for {} elements", count);
    out = DenseAttr::of(Literal(shape));
    return true;
  }
  if (!scan_.peek("[")) {
    Literal element(Shape(shape.element_type(), {}));
    if (!parse_dense_element(element, 0)) return false;
    out = DenseAttr::splat(shape, std::move(element));
    return true;
  }
  // Every element takes at least one character, so a short text cannot need much memory.
  if (count > static_cast<int64_t>(scan_.text().size())) {
    return scan_.fail("a list is too short for {} elements", count);
  }
  Literal literal(shape);
  int64_t next = 0;
  if (shape.is_scalar()) {
    if (!scan_.expect('[') || !parse_dense_element(literal, 0) || !scan_.expect(']')) return false;
  } else if (!parse_dense_elements(shape, literal, 0, next)) {
    return false;
  }
  out = DenseAttr::of(std::move(literal));
  return true;
}

bool Parser::parse_dense_elements(const Shape& shape, Literal& out, size_t axis, int64_t& next) {
  if (axis == shape.dims().size()) return parse_dense_element(out, next++);
  const size_t start = scan_.token_start();
  if (!scan_.expect('[')) return false;
  int64_t found = 0;
  if (!scan_.peek("]")) {
    do {
      if (found == shape.dim(axis)) {
        return scan_.fail("more than {} elements along dimension {}", found, axis);
      }
      if (!parse_dense_elements(shape, out, axis + 1, next)) return false;
      ++found;
    } while (scan_.accept(','));
  }
  if (!scan_.expect(']')) return false;
  if (found != shape.dim(axis)) {
    return scan_.fail_at(start, fmt::format("{} elements along dimension {}, expected {}", found,
                                            axis, shape.dim(axis)));
  }
  return true;
}

// One number of a float type: a decimal, or its bit pattern in hexadecimal.
bool Parser::parse_dense_part(ElementType type, double& out, uint64_t& bits, bool& is_bits) {
  is_bits = scan_.peek("0x");
  if (!is_bits) {
    if (is_hlo_) {
      const bool negative = scan_.peek("-inf") && scan_.accept('-');
      if (scan_.accept_keyword("inf")) {
        out = negative ? -HUGE_VAL : HUGE_VAL;
        return true;
      }
      if (scan_.accept_keyword("nan")) {
        out = __builtin_nan("");
        return true;
      }
    }
    if (!scan_.real(out)) return false;
    // Parsed as double, then rounded to the element type, as MLIR does.
    out = round_to(type, out);
    return true;
  }
  int64_t raw = 0;
  const size_t start = scan_.token_start();
  if (!scan_.integer(raw)) return false;
  const int width = bit_width(type);
  if (width < 64 && (static_cast<uint64_t>(raw) >> width) != 0) {
    return scan_.fail_at(start, fmt::format("0x{:X} has more than the {} bits of {}",
                                            static_cast<uint64_t>(raw), width, name_of(type)));
  }
  bits = static_cast<uint64_t>(raw);
  return true;
}

bool Parser::parse_ranged_integer(ElementType type, int64_t& out) {
  const size_t start = scan_.token_start();
  if (!scan_.integer(out)) return false;
  const bool negative = scan_.text()[start] == '-';
  const int width = bit_width(type);
  const bool fits = is_pred(type) ? (out == 0 || out == 1 || out == -1)
                    : negative    ? wrap_integer(type, out) == out && type != ElementType::kU64
                                  : width == 64 || (static_cast<uint64_t>(out) >> width) == 0;
  if (fits) return true;
  return scan_.fail_at(
      start, fmt::format("{}{} is out of the range of {}", negative ? "-" : "",
                         negative ? 0 - static_cast<uint64_t>(out) : static_cast<uint64_t>(out),
                         name_of(type)));
}

bool Parser::parse_dense_element(Literal& out, int64_t index) {
  const ElementType type = out.element_type();
  if (is_pred(type)) {
    if (scan_.accept_keyword("true")) {
      out.set_integer(index, 1);
      return true;
    }
    if (scan_.accept_keyword("false")) {
      out.set_integer(index, 0);
      return true;
    }
  }
  if (is_pred(type) || is_integer(type)) {
    int64_t value = 0;
    if (!parse_ranged_integer(type, value)) return false;
    out.set_integer(index, is_pred(type) ? value != 0 : value);
    return true;
  }
  const ElementType part = complex_part(type);
  const size_t bytes = storage_bytes(part);
  std::byte* place = out.mutable_data().data() + static_cast<size_t>(index) * storage_bytes(type);
  const auto read = [&](std::byte* target) {
    double value = 0;
    uint64_t bits = 0;
    bool is_bits = false;
    if (!parse_dense_part(part, value, bits, is_bits)) return false;
    if (!is_bits) bits = encode_float(part, value);
    std::memcpy(target, &bits, bytes);
    return true;
  };
  if (!is_complex(type)) return read(place);
  return scan_.expect('(') && read(place) && scan_.expect(',') && read(place + bytes) &&
         scan_.expect(')');
}

bool Parser::parse_hex_data(const Shape& shape, DenseAttr& out) {
  const size_t start = scan_.token_start();
  std::string text;
  std::string bytes;
  if (!scan_.string_literal(text)) return false;
  if (!decode_hex(text, bytes)) {
    return scan_.fail_at(start, "constant data is not a hexadecimal string \"0x…\"");
  }
  if (!decode_dense_bytes(shape, bytes, out)) {
    return scan_.fail_at(
        start, fmt::format("{} bytes of constant data for {}", bytes.size(), shape.to_string()));
  }
  return true;
}

// All elements, one element for a splat, or for i1 one bit per element.
bool Parser::decode_dense_bytes(const Shape& shape, std::string_view bytes, DenseAttr& out) {
  const ElementType type = shape.element_type();
  const int64_t count = shape.element_count();
  const auto given = static_cast<int64_t>(bytes.size());
  const auto element = static_cast<int64_t>(storage_bytes(type));
  const bool packed = is_pred(type) && given == (count + 7) / 8 && given != count;
  if (!packed && given == element && count != 1) {
    Literal value(Shape(type, {}));
    std::memcpy(value.mutable_data().data(), bytes.data(), bytes.size());
    if (!is_float(type) && !is_complex(type)) {
      value.set_integer(0, is_pred(type) ? bytes[0] != 0 : value.get_integer(0));
    }
    out = DenseAttr::splat(shape, std::move(value));
    return true;
  }
  if (!packed && given != count * element) return false;
  if (packed && count == 0) {
    out = DenseAttr::of(Literal(shape));
    return true;
  }
  // 0xFF is a splat of true even if fewer than 8 bits are needed.
  if (packed && given == 1 && static_cast<uint8_t>(bytes[0]) == 0xFF) {
    out = DenseAttr::splat(shape, Literal::scalar_integer(type, 1));
    return true;
  }
  Literal literal(shape);
  std::byte* data = literal.mutable_data().data();
  if (packed) {
    for (int64_t i = 0; i < count; ++i) {
      const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(i / 8)]);
      data[i] = static_cast<std::byte>((byte >> (i % 8)) & 1);
    }
  } else {
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
    // Sub-byte integers are zero-extended in the data; storage is sign-extended, and pred is 0 or
    // 1.
    if (is_pred(type) || (is_integer(type) && bit_width(type) < 8)) {
      for (int64_t i = 0; i < count; ++i) literal.set_integer(i, literal.get_integer(i));
    }
  }
  out = DenseAttr::of(std::move(literal));
  return true;
}

bool Parser::decode_resource(TextResource& resource, const Shape& shape, DenseAttr& out) {
  const std::pair key(shape.element_type(), shape.element_count());
  if (const auto known = resource.literals.find(key); known != resource.literals.end()) {
    const Literal& values = known->second;
    out = {shape, values.shape().is_scalar() ? values : values.reshaped(shape.dims())};
    return true;
  }
  constexpr size_t kAlignment = 4;  // The first bytes state the alignment of the data.
  if (resource.bytes.size() < kAlignment) return false;
  const std::string_view data = std::string_view(resource.bytes).substr(kAlignment);
  if (!decode_dense_bytes(shape, data, out)) return false;
  resource.literals.emplace(key, out.values);
  return true;
}

bool Parser::parse_dense_resource(Attribute& out) {
  const size_t start = scan_.token_start();
  std::string key;
  if (!scan_.expect('<')) return false;
  if (scan_.peek("\"")) {
    if (!scan_.string_literal(key)) return false;
  } else {
    key = scan_.word();
  }
  Type type;
  if (!scan_.expect('>') || !scan_.expect(':') || !parse_type(type)) return false;
  const auto found = resources_.find(key);
  if (found == resources_.end()) {
    return scan_.fail_at(start, fmt::format("resource '{}' is not defined in this file", key));
  }
  if (!type.is_tensor() || !type.shape().is_static()) {
    return scan_.fail_at(start, "a dense_resource has a static tensor type");
  }
  const auto count =
      checked_element_count(type.dims(), static_cast<int64_t>(storage_bytes(type.element_type())));
  TextResource& resource = found->second;
  if (!resource.text.empty()) {
    if (!decode_hex(resource.text, resource.bytes)) {
      return scan_.fail_at(start, fmt::format("resource '{}' is not a hexadecimal string", key));
    }
    resource.text = {};
  }
  DenseAttr dense;
  if (!count || !decode_resource(resource, type.shape(), dense)) {
    const size_t given = resource.bytes.size();
    return scan_.fail_at(start, fmt::format("resource '{}' has {} bytes, {} expected", key,
                                            given < 4 ? 0 : given - 4, type.to_string()));
  }
  out = Attribute(std::move(dense));
  return true;
}

namespace {

// The start of the section of resources, which must be the last part of the text except for
// comments. Else npos.
size_t resources_of(std::string_view text) {
  while (true) {
    const size_t last = text.find_last_not_of(" \t\r\n");
    if (last == std::string_view::npos) return last;
    text = text.substr(0, last + 1);
    const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0.
    const size_t word = text.find_first_not_of(" \t", line);
    if (!text.substr(word).starts_with("//")) break;
    text = text.substr(0, line);
  }
  return text.ends_with("#-}") ? text.rfind("{-#") : std::string_view::npos;
}

}  // namespace

// {-# dialect_resources: { builtin: { key: "0x…" } } #-} is last, but is needed first. Other
// sections (external_resources: { mlir_reproducer: { verify_each: true } }) are skipped.
bool Parser::parse_resources() {
  const size_t start = resources_of(scan_.text());
  if (start == std::string_view::npos) return true;
  resources_at_ = start;
  const size_t resume = scan_.offset();
  scan_.set_offset(start + 3);
  const auto section = [&](const auto& self, int depth, bool keep) -> bool {
    while (!scan_.peek("}") && !scan_.peek("#-}")) {
      std::string key;
      if (scan_.peek("\"")) {
        if (!scan_.string_literal(key)) return false;
      } else {
        key = scan_.word();
        if (key.empty()) return scan_.fail_expected("a resource name");
      }
      if (!scan_.expect(':')) return false;
      if (scan_.accept('{')) {
        if (depth > 3) return scan_.fail("resources nested too deep");
        const bool kept = depth == 0 ? key == "dialect_resources" : keep;
        if (!self(self, depth + 1, kept) || !scan_.expect('}')) return false;
      } else if (scan_.peek("\"")) {
        std::string text;
        if (!scan_.string_literal(text)) return false;
        if (keep) resources_[key] = TextResource{std::move(text), {}, {}};
      } else if (scan_.word().empty()) {
        return scan_.fail_expected("resource data");
      }
      scan_.accept(',');
    }
    return true;
  };
  if (!section(section, 0, false)) return false;
  scan_.set_offset(resume);
  return true;
}

}  // namespace tenon::hlo
