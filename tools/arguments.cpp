#include "tools/arguments.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/base/random.h"
#include "core/types/float_convert.h"
#include "core/types/npy.h"
#include "tools/cli.h"

namespace tenon::tools {
namespace {

struct Spec {
  size_t index = 0;
  std::string value;
};

/// A malformed argument: exit code 2.
template <class... Args>
Error usage(fmt::format_string<Args...> format, Args&&... args) {
  Status status = invalid_argument(format, std::forward<Args>(args)...);
  return Error(std::move(status).in_stage(kUsageStage));
}

Error in_argument(size_t index, std::string_view value, Status status) {
  return Error(std::move(status).with_context(fmt::format("--arg {}={}", index, value)));
}

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
  return usage("{} {}: expected N=…, N the number of a parameter", flag, text);
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
      return invalid_argument("'{}' is not a value of type {}", text, name_of(type));
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
    return invalid_argument("'{}' is not a value of type {}", text, name_of(type));
  }
  const ElementType part = complex_part(type);
  const bool named = text.find_first_of("nN") != std::string::npos;  // nan, inf
  const double rounded = round_to(part, value);
  const bool fits =
      named ? std::isnan(value) == std::isnan(rounded) && std::isinf(value) == std::isinf(rounded)
            : std::isfinite(value) && std::isfinite(rounded) &&
                  std::fabs(value) <= 2 * float_max(part);
  if (!fits) return invalid_argument("{} is out of the range of {}", text, name_of(type));
  return Literal::scalar(type, value).splat_to(shape);
}

/// The maximum size of one argument in bytes.
constexpr int64_t kMaxArgumentBytes = int64_t{16} << 30;

Result<Literal> parse_argument(const hlo::Type& type, size_t index, const std::string& value) {
  if (!type.is_tensor()) {
    return unimplemented("a parameter of type {} cannot be given here", type.to_string());
  }
  if (!type.shape().is_static()) {
    return invalid_argument(
        "its type {} has unknown sizes; give them with --shape, or an .npy file", type.to_string());
  }
  const auto unit = static_cast<int64_t>(storage_bytes(type.element_type()));
  TENON_ASSIGN(const int64_t count, checked_element_count(type.dims(), unit));
  if (count > kMaxArgumentBytes / unit) {
    return resource_exhausted("an array of {} needs more than the {} MiB allowed", type.to_string(),
                              kMaxArgumentBytes >> 20);
  }
  if (value == "random" || value.starts_with("random:")) {
    uint64_t seed = 0;
    if (value != "random") {
      const char* last = value.data() + value.size();
      const auto [end, error] = std::from_chars(value.data() + 7, last, seed);
      if (error != std::errc() || end != last) {
        return invalid_argument("'{}' is not a seed", value.substr(7));
      }
    }
    return random_literal(type.shape(), seed + index);
  }
  return parse_value(type.shape(), value);
}

}  // namespace

Literal random_literal(const Shape& shape, uint64_t seed) {
  Literal literal(shape);
  const ElementType type = shape.element_type();
  Random random(mix_bits(seed));
  for (int64_t i = 0; i < literal.element_count(); ++i) {
    const uint64_t bits = random.bits();
    const double real = static_cast<double>(bits >> 11) * 0x1p-52 - 1;
    if (is_complex(type)) {
      const double imaginary = static_cast<double>(random.bits() >> 11) * 0x1p-52 - 1;
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

Result<GivenArguments> GivenArguments::read(const hlo::Computation& function,
                                            const std::vector<std::string>& specs) {
  const size_t count = function.parameter_count();
  GivenArguments arguments;
  arguments.given_.resize(count);
  for (const std::string& text : specs) {
    TENON_ASSIGN(Spec spec, split("--arg", text));
    if (spec.index >= count) {
      return invalid_argument("--arg {}: @{} has {} parameters, numbered from 0", text,
                              function.name(), count);
    }
    std::optional<Given>& given = arguments.given_[spec.index];
    if (given) return usage("--arg {}: given twice", spec.index);
    given.emplace();
    if (spec.value.starts_with('@')) {
      const ElementType type = function.parameter(spec.index).type().element_type();
      auto literal = read_npy(spec.value.substr(1), type);
      if (!literal) return in_argument(spec.index, spec.value, std::move(literal.error()));
      given->file = std::move(*literal);
    }
    given->value = std::move(spec.value);
  }
  return arguments;
}

Status GivenArguments::add_to(hlo::ArgumentKnowledge& known,
                              const hlo::Computation& function) const {
  for (size_t i = 0; i < given_.size(); ++i) {
    if (!given_[i]) continue;
    const hlo::Type& type = function.parameter(i).type();
    if (given_[i]->file) {
      known.shapes.emplace(i, given_[i]->file->shape().dims());
      if (is_integer(type.element_type())) known.values.emplace(i, *given_[i]->file);
      continue;
    }
    const bool is_shape = type.is_tensor() && type.shape().is_static() && type.rank() <= 1 &&
                          is_integer(type.element_type());
    if (!is_shape) continue;
    auto literal = parse_argument(type, i, given_[i]->value);
    if (!literal) return in_argument(i, given_[i]->value, std::move(literal.error()));
    known.values.emplace(i, std::move(*literal));
  }
  return {};
}

Result<std::map<size_t, Literal>> GivenArguments::values(
    const hlo::Computation& function, const std::map<size_t, Dims>& shapes) const {
  std::map<size_t, Literal> values;
  for (size_t i = 0; i < given_.size(); ++i) {
    if (!given_[i]) continue;
    if (given_[i]->file) {
      values.emplace(i, *given_[i]->file);
      continue;
    }
    const auto sizes = shapes.find(i);
    const hlo::Type own = function.parameter(i).type();
    const hlo::Type type = sizes == shapes.end() ? own : own.with_dims(sizes->second);
    if (!type.shape().is_static() || given_[i]->value.starts_with("random")) continue;
    auto literal = parse_argument(type, i, given_[i]->value);
    if (!literal) return in_argument(i, given_[i]->value, std::move(literal.error()));
    values.emplace(i, *std::move(literal));
  }
  return values;
}

Result<std::vector<Literal>> GivenArguments::complete(const hlo::Computation& function) const {
  std::vector<Literal> arguments;
  for (size_t i = 0; i < given_.size(); ++i) {
    const hlo::Type& type = function.parameter(i).type();
    if (!given_[i]) {
      return invalid_argument(
          "parameter {} of @{}, {}, has no value; give --arg {}=@FILE.npy, "
          "--arg {}=VALUE or --arg {}=random",
          i, function.name(), type.to_string(), i, i, i);
    }
    auto literal = given_[i]->file ? Result<Literal>(*given_[i]->file)
                                   : parse_argument(type, i, given_[i]->value);
    if (!literal) return in_argument(i, given_[i]->value, std::move(literal.error()));
    // A quantized argument is an array of its storage type.
    if (!type.is_tensor() || !compatible(hlo::Type(type.shape()), hlo::Type(literal->shape()))) {
      return invalid_argument("--arg {}={}: the array is {}, parameter {} is {}", i,
                              given_[i]->value, literal->shape().to_string(), i, type.to_string());
    }
    arguments.push_back(std::move(*literal));
  }
  return arguments;
}

Result<std::vector<Literal>> parse_arguments(const hlo::Computation& function,
                                             const std::vector<std::string>& specs) {
  TENON_ASSIGN(const GivenArguments given, GivenArguments::read(function, specs));
  return given.complete(function);
}

std::vector<std::string> parameter_names(const hlo::Computation& function) {
  std::vector<std::string> names;
  for (size_t i = 0; i < function.parameter_count(); ++i) {
    if (!function.parameter(i).type().is_tensor()) continue;
    const hlo::Location& location = function.parameter_instruction(i).location();
    const bool is_named = location != nullptr && location->kind == hlo::LocationKind::kName;
    names.push_back(is_named ? location->name : "");
  }
  return names;
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
        return usage("--shape {}: expected sizes such as 2x3", text);
      }
      dims.push_back(size);
      if (more) rest.remove_prefix(used + 1);
    }
    if (!shapes.emplace(spec.index, std::move(dims)).second) {
      return usage("--shape {}: given twice", spec.index);
    }
  }
  return shapes;
}

}  // namespace tenon::tools
