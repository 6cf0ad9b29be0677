#include "core/types/literal.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/types/float_convert.h"

namespace tenon {

Result<Literal> Literal::from_bytes(Shape shape, std::span<const std::byte> bytes) {
  if (static_cast<int64_t>(bytes.size()) != shape.byte_size()) {
    return invalid_argument("{} bytes given for {}, which takes {}", bytes.size(),
                            shape.to_string(), shape.byte_size());
  }
  Literal literal(std::move(shape));
  std::copy(bytes.begin(), bytes.end(), literal.bytes_->begin());
  return literal;
}

Literal Literal::scalar_from_bytes(ElementType type, const std::byte* bytes) {
  Literal literal(Shape(type, {}));
  std::memcpy(literal.bytes_->data(), bytes, storage_bytes(type));
  return literal;
}

Literal Literal::scalar(ElementType type, double value) {
  Literal literal(Shape(type, {}));
  if (is_complex(type)) {
    literal.set_complex(0, value);
  } else if (is_float(type)) {
    literal.set_double(0, value);
  } else {
    literal.set_integer(
        0, is_pred(type) ? value != 0 : float_to_integer(type, static_cast<Float128>(value)));
  }
  return literal;
}

Literal Literal::scalar_integer(ElementType type, int64_t value) {
  Literal literal(Shape(type, {}));
  if (is_integer(type) || is_pred(type)) {
    literal.set_integer(0, is_pred(type) ? value != 0 : value);
  } else if (is_float(type)) {
    const uint64_t bits = encode_float(type, static_cast<Float128>(value));
    std::memcpy(literal.bytes_->data(), &bits, storage_bytes(type));
  } else {
    literal.set_complex(0, static_cast<double>(value));
  }
  return literal;
}

Literal Literal::from_i64s(std::span<const int64_t> values) {
  Literal literal(Shape(ElementType::kS64, {static_cast<int64_t>(values.size())}));
  if (!values.empty()) std::memcpy(literal.bytes_->data(), values.data(), values.size_bytes());
  return literal;
}

std::span<std::byte> Literal::mutable_data() {
  if (bytes_.use_count() != 1) bytes_ = std::make_shared<std::vector<std::byte>>(*bytes_);
  // The count is read without ordering: the fence orders reads by former owners before the writes
  // that follow.
  std::atomic_thread_fence(std::memory_order_acquire);
  return *bytes_;
}

int64_t Literal::get_integer(int64_t index) const {
  uint64_t raw = 0;
  const size_t size = storage_bytes(element_type());
  std::memcpy(&raw, bytes_->data() + static_cast<size_t>(index) * size, size);
  if (is_pred(element_type())) return raw != 0;
  return wrap_integer(element_type(), static_cast<int64_t>(raw));
}

void Literal::set_integer(int64_t index, int64_t value) {
  const size_t size = storage_bytes(element_type());
  const int64_t wrapped = wrap_integer(element_type(), value);
  std::memcpy(mutable_data().data() + static_cast<size_t>(index) * size, &wrapped, size);
}

double Literal::get_double(int64_t index) const {
  const ElementType type = element_type();
  if (is_complex(type)) return get_complex(index).real();
  if (!is_float(type)) {
    const int64_t value = get_integer(index);
    return type == ElementType::kU64 ? static_cast<double>(static_cast<uint64_t>(value))
                                     : static_cast<double>(value);
  }
  uint64_t raw = 0;
  const size_t size = storage_bytes(type);
  std::memcpy(&raw, bytes_->data() + static_cast<size_t>(index) * size, size);
  return decode_float(type, raw);
}

namespace {

// Converts towards zero, saturated to the range of T; NaN gives 0.
template <class T>
T integer_of(double value) {
  if (value != value) return 0;
  // Converted to double, the maximum of T is the next power of two.
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(std::max(value, static_cast<double>(std::numeric_limits<T>::min())));
}

}  // namespace

void Literal::set_double(int64_t index, double value) {
  if (!is_float(element_type())) {
    const bool high = element_type() == ElementType::kU64 && value > 0;
    return set_integer(index, high ? static_cast<int64_t>(integer_of<uint64_t>(value))
                                   : integer_of<int64_t>(value));
  }
  const uint64_t bits = encode_float(element_type(), value);
  const size_t size = storage_bytes(element_type());
  std::memcpy(mutable_data().data() + static_cast<size_t>(index) * size, &bits, size);
}

std::complex<double> Literal::get_complex(int64_t index) const {
  if (element_type() == ElementType::kC64) return get<std::complex<float>>(index);
  if (element_type() == ElementType::kC128) return get<std::complex<double>>(index);
  return get_double(index);
}

void Literal::set_complex(int64_t index, std::complex<double> value) {
  if (element_type() == ElementType::kC64) {
    set(index, std::complex<float>(value));
  } else {
    set(index, value);
  }
}

Literal Literal::reshaped(Dims dims) const {
  Literal result = *this;
  result.shape_ = shape_.with_dims(std::move(dims));
  return result;
}

Literal Literal::splat_to(const Shape& shape) const {
  Literal result(shape);
  const size_t size = storage_bytes(element_type());
  std::vector<std::byte>& out = *result.bytes_;
  for (size_t offset = 0; offset < out.size(); offset += size) {
    std::memcpy(out.data() + offset, bytes_->data(), size);
  }
  return result;
}

bool Literal::is_splat() const {
  const size_t size = storage_bytes(element_type());
  if (bytes_->empty()) return false;
  return std::memcmp(bytes_->data(), bytes_->data() + size, bytes_->size() - size) == 0;
}

std::string float_to_string(ElementType type, double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (type == ElementType::kF64) return fmt::format("{}", value);
  if (type == ElementType::kF32) return fmt::format("{}", static_cast<float>(value));
  // The type has few values, all with short exact texts.
  if (bit_width(type) <= 8) return fmt::format("{}", value);
  for (int digits = 1; digits < 17; ++digits) {
    const std::string text = fmt::format("{:.{}g}", value, digits);
    if (round_to(type, std::strtod(text.c_str(), nullptr)) == value) return text;
  }
  return fmt::format("{}", value);
}

std::string Literal::element_to_string(int64_t index) const {
  const ElementType type = element_type();
  if (is_pred(type)) return get_integer(index) != 0 ? "true" : "false";
  if (type == ElementType::kU64)
    return fmt::format("{}", static_cast<uint64_t>(get_integer(index)));
  if (is_integer(type)) return fmt::format("{}", get_integer(index));
  if (is_float(type)) return float_to_string(type, get_double(index));
  const std::complex<double> value = get_complex(index);
  const ElementType part = complex_part(type);
  return fmt::format("({}, {})", float_to_string(part, value.real()),
                     float_to_string(part, value.imag()));
}

namespace {

void append_nested(const Literal& literal, size_t axis, int64_t& next, int64_t limit,
                   std::string& out) {
  const Shape& shape = literal.shape();
  if (axis == shape.dims().size()) {
    out += literal.element_to_string(next++);
    return;
  }
  out += '[';
  for (int64_t i = 0; i < shape.dim(axis); ++i) {
    if (i != 0) out += ", ";
    if (next >= limit) {
      out += "…";
      break;
    }
    append_nested(literal, axis + 1, next, limit, out);
  }
  out += ']';
}

}  // namespace

std::string Literal::to_string(int64_t max_elements) const {
  std::string out;
  int64_t next = 0;
  append_nested(*this, 0, next, max_elements, out);
  return out;
}

bool Literal::operator==(const Literal& other) const {
  return shape_ == other.shape_ && (bytes_ == other.bytes_ || *bytes_ == *other.bytes_);
}

}  // namespace tenon
