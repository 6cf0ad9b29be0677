// Types of both text forms.
#include "core/types/float_convert.h"
#include "hlo/text/parser.h"

namespace tenon::hlo {

bool Parser::parse_type(Type& out) {
  if (!enter()) return false;
  const LeaveOnReturn leave_on_return{*this};

  const char c = scan_.peek();
  if (c == '!') return parse_bang_type(out);
  if (c == '(') {
    std::vector<Type> inputs;
    std::vector<Type> results;
    if (!parse_function_type(inputs, results)) return false;
    out = Type::function(std::move(inputs), std::move(results));
    return true;
  }
  const size_t start = scan_.token_start();
  const std::string_view word = scan_.word();
  if (word == "tensor" || word == "memref") return parse_tensor_body(out, word == "memref");
  if (word == "token") {
    out = Type::token();
    return true;
  }
  if (word == "none") {
    out = Type::none();
    return true;
  }
  if (word == "tuple" || word == "future") {
    std::vector<Type> elements;
    if (!scan_.expect('<')) return false;
    if (!scan_.peek(">") && !parse_type_list(elements)) return false;
    if (!scan_.expect('>')) return false;
    out = word == "tuple" ? Type::tuple(std::move(elements)) : Type::future(std::move(elements));
    return true;
  }
  if (word == "function") {
    std::vector<Type> inputs;
    std::vector<Type> results;
    if (!scan_.expect('<') || !parse_function_type(inputs, results) || !scan_.expect('>')) {
      return false;
    }
    out = Type::function(std::move(inputs), std::move(results));
    return true;
  }
  if (word == "buffer") {
    if (!scan_.expect('<') || !parse_type(out) || !scan_.expect('>')) return false;
    out = Type::buffer(out.shape());
    return true;
  }
  if (word == "q" && is_hlo_) {
    QuantizedType quantized;
    if (!scan_.expect('<') || !parse_quantized_storage(quantized) || !parse_scales(quantized) ||
        !scan_.expect('>')) {
      return false;
    }
    out = Type::quantized_tensor({}, std::move(quantized));
    return parse_hlo_dims(out);
  }
  scan_.set_offset(start);
  if (!parse_element(out)) return false;
  return scan_.peek("[") && is_hlo_ ? parse_hlo_dims(out) : true;
}

bool Parser::parse_type_list(std::vector<Type>& out) {
  do {
    out.emplace_back();
    if (!parse_type(out.back())) return false;
  } while (scan_.accept(','));
  return true;
}

bool Parser::parse_function_type(std::vector<Type>& inputs, std::vector<Type>& results) {
  if (!scan_.expect('(')) return false;
  if (!scan_.peek(")") && !parse_type_list(inputs)) return false;
  if (!scan_.expect(')') || !scan_.expect("->")) return false;
  if (!scan_.accept('(')) {
    results.emplace_back();
    return parse_type(results.back());
  }
  if (!scan_.peek(")") && !parse_type_list(results)) return false;
  return scan_.expect(')');
}

bool Parser::parse_bang_type(Type& out) {
  const size_t start = scan_.token_start();
  scan_.expect('!');
  const std::string_view name = scan_.suffix();
  if (name == "stablehlo.token" || name == "mhlo.token") {
    out = Type::token();
    return true;
  }
  if (name == "stablehlo.future") {
    std::vector<Type> elements;
    if (!scan_.expect('<') || !parse_type_list(elements) || !scan_.expect('>')) return false;
    out = Type::future(std::move(elements));
    return true;
  }
  if (name == "quant.uniform") {
    scan_.set_offset(start);
    return parse_element(out);
  }
  const auto alias = type_aliases_.find(std::string(name));
  if (alias == type_aliases_.end()) {
    return scan_.fail_at(start, fmt::format("unknown type '!{}'", name));
  }
  out = alias->second.value;
  return take_in(alias->second.extent);
}

// The element type of a tensor: plain, complex<…> or quantized, as a rank-0 Type.
bool Parser::parse_element(Type& element) {
  const size_t start = scan_.token_start();
  if (scan_.accept('!')) {
    const std::string_view name = scan_.suffix();
    if (name != "quant.uniform") {
      const auto alias = type_aliases_.find(std::string(name));
      if (alias == type_aliases_.end()) {
        return scan_.fail_at(start, fmt::format("unknown element type '!{}'", name));
      }
      element = alias->second.value;
      return take_in(alias->second.extent);
    }
    QuantizedType quantized;
    if (!enter()) return false;
    const bool good = scan_.expect('<') && parse_quantized(quantized) && scan_.expect('>');
    leave();
    if (!good) return false;
    element = Type::quantized_tensor({}, std::move(quantized));
    return true;
  }
  const std::string_view word = scan_.word();
  if (word == "complex") {
    Type part;
    if (!enter()) return false;
    const bool good = scan_.expect('<') && parse_element(part) && scan_.expect('>');
    leave();
    if (!good) return false;
    const auto type = complex_of(part.element_type());
    if (!type) {
      return scan_.fail_at(start,
                           fmt::format("complex<{}> is not an element type; the part is f32 or f64",
                                       name_of(part.element_type())));
    }
    element = Type::tensor(*type, {});
    return true;
  }
  auto type = element_type_from_mlir_name(word);
  if (!type || is_hlo_) {
    const auto hlo_type = element_type_from_name(word);
    if (hlo_type) type = hlo_type;
  }
  if (!type) {
    scan_.set_offset(start);
    if (word.empty()) return scan_.fail_expected("a type");
    return scan_.fail_at(start, fmt::format("unknown type '{}'", word));
  }
  element = Type::tensor(*type, {});
  return true;
}

// After `tensor`: '<' dims element [',' encoding] '>'. Dimensions are read character by character,
// because "0x3" in tensor<0x3xf32> is not a hexadecimal number.
bool Parser::parse_tensor_body(Type& out, bool is_buffer) {
  if (!scan_.expect('<')) return false;
  const std::string_view text = scan_.text();
  Dims dims;
  while (true) {
    const size_t start = scan_.token_start();
    size_t at = start;
    int64_t size = 0;
    if (at < text.size() && text[at] == '?') {
      size = kDynamic;
      ++at;
    } else {
      while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
        if (__builtin_mul_overflow(size, 10, &size) ||
            __builtin_add_overflow(size, text[at] - '0', &size)) {
          return scan_.fail_at(start, "a dimension size does not fit 63 bits");
        }
        ++at;
      }
      if (at == start) {
        if (text.substr(at).starts_with("*")) {
          return scan_.fail_at(start, "unranked tensors are not supported");
        }
        break;
      }
    }
    if (at >= text.size() || text[at] != 'x') {
      return scan_.fail_at(at, "expected 'x' after a dimension size");
    }
    dims.push_back(size);
    scan_.set_offset(at + 1);
    if (dims.size() > 1024) return scan_.fail_at(start, "more than 1024 dimensions");
  }
  Type element;
  if (!parse_element(element)) return false;
  if (!element.is_tensor() || element.rank() != 0) return scan_.fail("expected an element type");
  out = element.with_dims(dims);
  if (scan_.accept(',')) {
    Dims bounds;
    if (!parse_bounds(bounds)) return false;
    if (bounds.size() != dims.size()) {
      return scan_.fail("{} bounds for {} dimensions", bounds.size(), dims.size());
    }
    out.mutable_shape() = Shape(element.element_type(), std::move(dims), std::move(bounds));
  }
  if (is_buffer) {
    // A layout or memory space may follow; neither changes the results.
    std::string_view ignored;
    while (scan_.accept(',')) {
      scan_.accept('#');
      scan_.word();
      if (scan_.peek("<") && !scan_.balanced(ignored)) return false;
    }
    out = Type::buffer(out.shape());
  }
  return scan_.expect('>');
}

bool Parser::parse_bounds(Dims& bounds) {
  const size_t start = scan_.token_start();
  if (!scan_.expect('#')) return false;
  const std::string_view name = scan_.suffix();
  const bool old_form = name == "stablehlo.type_extensions" || name == "mhlo.type_extensions";
  if (name != "stablehlo.bounds" && !old_form) {
    return scan_.fail_at(start, fmt::format("tensor encoding '#{}' is not supported", name));
  }
  if (!scan_.expect('<')) return false;
  if (old_form && (!scan_.expect_keyword("bounds") || !scan_.expect('=') || !scan_.expect('['))) {
    return false;
  }
  do {
    int64_t bound = kDynamic;
    if (!scan_.accept('?') && !scan_.integer(bound)) return false;
    bounds.push_back(bound);
  } while (scan_.accept(','));
  return (!old_form || scan_.expect(']')) && scan_.expect('>');
}

// "i8<-127:127>:f32" and an axis ":1".
bool Parser::parse_quantized_storage(QuantizedType& out) {
  const size_t start = scan_.token_start();
  const std::string_view storage = scan_.word();
  // The quantization dialect writes u8, StableHLO ui8; HLO text uses u8 too.
  auto type = element_type_from_name(storage);
  if (!type) type = element_type_from_mlir_name(storage);
  if (!type || !is_integer(*type)) {
    return scan_.fail_at(start,
                         fmt::format("quantized storage type '{}' is not an integer", storage));
  }
  out.storage = *type;
  out.storage_min = integer_min(*type);
  out.storage_max = integer_max(*type);
  if (scan_.accept('<')) {
    if (!scan_.integer(out.storage_min) || !scan_.expect(':') || !scan_.integer(out.storage_max) ||
        !scan_.expect('>')) {
      return false;
    }
  }
  Type expressed;
  if (!scan_.expect(':') || !parse_element(expressed)) return false;
  if (!is_float(expressed.element_type())) {
    return scan_.fail("quantized expressed type {} is not a float", expressed.to_string());
  }
  out.expressed = expressed.element_type();
  return !scan_.accept(':') || scan_.integer(out.axis);
}

bool Parser::parse_quantized(QuantizedType& out) {
  return parse_quantized_storage(out) && parse_scales(out);
}

// ", scale[:zp]" or ", {scale[:zp], …}".
bool Parser::parse_scales(QuantizedType& out) {
  out.scales.clear();
  out.zero_points.clear();
  if (!scan_.expect(',')) return false;
  const auto parameter = [&] {
    double scale = 0;
    int64_t zero_point = 0;
    if (!scan_.real(scale)) return false;
    if (scan_.accept(':') && !scan_.integer(zero_point)) return false;
    out.scales.push_back(scale);
    out.zero_points.push_back(zero_point);
    return true;
  };
  if (out.axis < 0) {
    if (out.axis != -1) return scan_.fail("quantization dimension {} is negative", out.axis);
    return parameter();
  }
  if (!scan_.expect('{')) return false;
  do {
    if (!parameter()) return false;
  } while (scan_.accept(','));
  return scan_.expect('}');
}

// "[2,?<=4]" after an element type.
bool Parser::parse_hlo_dims(Type& type) {
  if (!scan_.expect('[')) return false;
  Dims dims;
  Dims bounds;
  bool bounded = false;
  if (!scan_.accept(']')) {
    do {
      int64_t size = kDynamic;
      int64_t bound = kDynamic;
      if (!scan_.accept('?')) {
        if (!scan_.integer(size)) return false;
        if (size < 0) return scan_.fail("dimension size {} is negative", size);
      } else if (scan_.accept("<=")) {
        if (!scan_.integer(bound)) return false;
        bounded = true;
      }
      dims.push_back(size);
      bounds.push_back(bound);
    } while (scan_.accept(','));
    if (!scan_.expect(']')) return false;
  }
  if (bounded) {
    type.mutable_shape() = Shape(type.element_type(), std::move(dims), std::move(bounds));
  } else {
    type = type.with_dims(std::move(dims));
  }
  return true;
}

}  // namespace tenon::hlo
