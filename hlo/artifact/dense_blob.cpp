// Converts constant data of an artifact to a Literal.

#include <cstring>

#include "core/types/float_convert.h"
#include "hlo/artifact/bytecode_reader.h"

namespace tenon::hlo::bytecode {
namespace {

bool is_one_element(ElementType type, std::string_view blob) {
  return blob.size() == storage_bytes(type);
}

// Sub-byte elements are zero-extended in the file; a Literal has integers sign- or zero-extended
// and floats in the low bits.
void normalize(ElementType type, std::span<std::byte> bytes) {
  if (bit_width(type) >= 8) return;
  const auto mask = static_cast<uint8_t>((1u << bit_width(type)) - 1);
  for (std::byte& b : bytes) {
    const auto low = static_cast<uint8_t>(static_cast<uint8_t>(b) & mask);
    b = static_cast<std::byte>(is_integer(type) ? wrap_integer(type, low) : low);
  }
}

Literal pred_scalar(bool value) { return Literal::scalar_integer(ElementType::kPred, value); }

// Four encodings: 0xff or 0x00 for all elements, bits packed LSB first, or one byte each.
Result<DenseAttr> bools_from_blob(const Shape& shape, int64_t n, std::string_view blob) {
  const auto size = static_cast<int64_t>(blob.size());
  if (size == 1 && static_cast<uint8_t>(blob[0]) == 0xFF) {
    return DenseAttr::splat(shape, pred_scalar(true));
  }
  if (size == 1 && blob[0] == 0) return DenseAttr::splat(shape, pred_scalar(false));
  const bool packed = size == n / 8 + (n % 8 != 0) && size != n;
  if (!packed && size != n) {
    return invalid_argument("{} bytes given for {}, which takes 1, {} or {}", size,
                            shape.to_string(), n / 8 + (n % 8 != 0), n);
  }
  Literal literal(shape);
  const std::span<std::byte> out = literal.mutable_data();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto b = static_cast<uint8_t>(blob[packed ? i / 8 : i]);
    out[i] = static_cast<std::byte>(packed ? (b >> (i % 8)) & 1 : b != 0);
  }
  return DenseAttr::of(std::move(literal));
}

}  // namespace

Result<DenseAttr> dense_from_blob(const Shape& shape, std::string_view blob, int64_t max_bytes) {
  const ElementType type = shape.element_type();
  const auto size = static_cast<int64_t>(storage_bytes(type));
  TENON_ASSIGN(const int64_t n, checked_element_count(shape.dims(), size));
  if (static_cast<int64_t>(blob.size()) > max_bytes) {
    return resource_exhausted("a constant of {} bytes exceeds the limit of {}", blob.size(),
                              max_bytes);
  }
  if (is_pred(type) && n != 0) return bools_from_blob(shape, n, blob);
  const auto* bytes = reinterpret_cast<const std::byte*>(blob.data());
  if (is_one_element(type, blob)) {
    Literal element = Literal::scalar_from_bytes(type, bytes);
    normalize(type, element.mutable_data());
    return DenseAttr::splat(shape, std::move(element));
  }
  if (static_cast<int64_t>(blob.size()) != n * size) {
    return invalid_argument("{} bytes given for {}, which takes {} or, if all are equal, {}",
                            blob.size(), shape.to_string(), n * size, size);
  }
  Literal literal(shape);
  const std::span<std::byte> out = literal.mutable_data();
  if (!out.empty()) std::memcpy(out.data(), bytes, out.size());
  normalize(type, out);
  return DenseAttr::of(std::move(literal));
}

}  // namespace tenon::hlo::bytecode
