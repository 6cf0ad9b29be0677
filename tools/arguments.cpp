#include "tools/arguments.h"

#include <charconv>
#include <cstdlib>

#include "core/types/npy.h"

namespace tenon::tools {
namespace {

struct Spec {
  size_t index = 0;
  std::string value;
};

Result<Spec> split(std::string_view flag, const std::string& text) {
  const size_t equals = text.find('=');
  Spec spec;
  if (equals != std::string::npos) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + equals, spec.index);
    if (error == std::errc() && end == text.data() + equals) {
      spec.value = text.substr(equals + 1);
      return spec;
    }
  }
  return invalid_argument("{} {}: expected N=…, N the number of a parameter", flag, text);
}

uint64_t mix(uint64_t z) {
  // SplitMix64's output function.
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

Result<Literal> parse_value(const Shape& shape, const std::string& text) {
  const ElementType type = shape.element_type();
  if (text == "true" || text == "false") {
    return Literal::scalar_integer(type, text == "true" ? 1 : 0).splat_to(shape);
  }
  char* end = nullptr;
  if (is_integer(type) || is_pred(type)) {
    int64_t value = 0;
    const char* last = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), last, value);
    if (type == ElementType::kU64 && error != std::errc()) {
      uint64_t bits = 0;
      const auto unsigned_result = std::from_chars(text.data(), last, bits);
      stop = unsigned_result.ptr;
      error = unsigned_result.ec;
      value = static_cast<int64_t>(bits);
    }
    if (error != std::errc() || stop != last) {
      return invalid_argument("'{}' is no {} value", text, name_of(type));
    }
    const Literal literal = Literal::scalar_integer(type, value);
    const bool negative_unsigned = type == ElementType::kU64 && text.starts_with('-') && value != 0;
    if (negative_unsigned || (!is_pred(type) && literal.get_integer(0) != value)) {
      return invalid_argument("{} is out of the range of {}", text, name_of(type));
    }
    return literal.splat_to(shape);
  }
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') {
    return invalid_argument("'{}' is no {} value", text, name_of(type));
  }
  return Literal::scalar(type, value).splat_to(shape);
}

Result<Literal> parse_argument(const hlo::Type& type, const Spec& spec) {
  if (!spec.value.empty() && spec.value[0] == '@') {
    return read_npy(spec.value.substr(1), type.element_type());
  }
  if (!type.shape().is_static()) {
    return invalid_argument(
        "its type {} has unknown sizes; give them with --shape, or an .npy file", type.to_string());
  }
  TENON_TRY(
      checked_element_count(type.dims(), static_cast<int64_t>(storage_bytes(type.element_type()))));
  if (spec.value == "random" || spec.value.starts_with("random:")) {
    uint64_t seed = 0;
    if (spec.value != "random") {
      const char* last = spec.value.data() + spec.value.size();
      const auto [end, error] = std::from_chars(spec.value.data() + 7, last, seed);
      if (error != std::errc() || end != last) {
        return invalid_argument("'{}' is no seed", spec.value.substr(7));
      }
    }
    return random_literal(type.shape(), seed + spec.index);
  }
  return parse_value(type.shape(), spec.value);
}

}  // namespace

Literal random_literal(const Shape& shape, uint64_t seed) {
  Literal literal(shape);
  const ElementType type = shape.element_type();
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    const uint64_t bits = mix(mix(seed) + 0x9E3779B97F4A7C15u * static_cast<uint64_t>(i + 1));
    const double real = static_cast<double>(bits >> 11) * 0x1p-52 - 1;
    if (is_complex(type)) {
      const double imaginary = static_cast<double>(mix(bits) >> 11) * 0x1p-52 - 1;
      literal.set_complex(i, {real, imaginary});
    } else if (is_float(type)) {
      literal.set_double(i, real);
    } else if (is_pred(type)) {
      literal.set_integer(i, static_cast<int64_t>(bits >> 63));
    } else {
      const auto small = static_cast<int64_t>(bits >> 56);  // 0 … 255
      literal.set_integer(i, is_signed_integer(type) ? small - 128 : small);
    }
  }
  return literal;
}

Result<std::vector<Literal>> parse_arguments(const hlo::Computation& function,
                                             const std::vector<std::string>& specs) {
  const size_t count = function.parameter_count();
  std::vector<std::optional<Literal>> given(count);
  for (const std::string& text : specs) {
    TENON_ASSIGN(const Spec spec, split("--arg", text));
    if (spec.index >= count) {
      return invalid_argument("--arg {}: @{} has {} parameters, numbered from 0", text,
                              function.name(), count);
    }
    if (given[spec.index]) return invalid_argument("--arg {}: given twice", spec.index);
    const hlo::Type& type = function.parameter(spec.index).type();
    auto literal = parse_argument(type, spec);
    if (!literal) {
      return Error(std::move(literal.error()).with_context(fmt::format("--arg {}", text)));
    }
    // A quantized argument is an array of its storage type.
    if (!type.is_tensor() || !compatible(hlo::Type(type.shape()), hlo::Type(literal->shape()))) {
      return invalid_argument("--arg {}: the array is {}, parameter {} is {}", text,
                              literal->shape().to_string(), spec.index, type.to_string());
    }
    given[spec.index] = std::move(*literal);
  }
  std::vector<Literal> arguments;
  for (size_t i = 0; i < count; ++i) {
    if (!given[i]) {
      return invalid_argument(
          "parameter {} of @{}, {}, has no value; give --arg {}=@FILE.npy, "
          "--arg {}=VALUE or --arg {}=random",
          i, function.name(), function.parameter(i).type().to_string(), i, i, i);
    }
    arguments.push_back(std::move(*given[i]));
  }
  return arguments;
}

Result<std::map<size_t, Dims>> parse_shapes(const std::vector<std::string>& specs) {
  std::map<size_t, Dims> shapes;
  for (const std::string& text : specs) {
    TENON_ASSIGN(const Spec spec, split("--shape", text));
    Dims dims;
    std::string_view rest = spec.value;
    for (bool more = spec.value != "scalar"; more;) {
      int64_t size = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
      const auto used = static_cast<size_t>(end - rest.data());
      more = used < rest.size();
      if (error != std::errc() || size < 0 ||
          (more && (rest[used] != 'x' || used + 1 == rest.size()))) {
        return invalid_argument("--shape {}: expected sizes such as 2x3", text);
      }
      dims.push_back(size);
      if (more) rest.remove_prefix(used + 1);
    }
    if (!shapes.emplace(spec.index, std::move(dims)).second) {
      return invalid_argument("--shape {}: given twice", spec.index);
    }
  }
  return shapes;
}

}  // namespace tenon::tools
