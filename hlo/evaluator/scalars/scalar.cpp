#include "hlo/evaluator/scalars/scalar.h"

#include <algorithm>

namespace tenon::hlo {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

uint64_t scalar_to_bits(ElementType type, ScalarStorage storage, const Scalar& value) {
  if (storage == ScalarStorage::kReal) return encode_float(type, value.d);
  if (storage == ScalarStorage::kWide) return encode_float(type, value.w);
  const int width = bit_width(type);
  const auto bits = static_cast<uint64_t>(value.i);
  return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

Scalar scalar_from_bits(ElementType type, ScalarStorage storage, uint64_t bits) {
  if (storage == ScalarStorage::kReal) return Scalar(decode_float(type, bits));
  if (storage == ScalarStorage::kWide)
    return Scalar(static_cast<Float128>(decode_float(type, bits)));
  if (is_pred(type)) return Scalar(static_cast<int64_t>(bits & 1));
  return Scalar(wrap_integer(type, static_cast<int64_t>(bits)));
}

Scalar scalar_of(ScalarStorage storage, double value) {
  switch (storage) {
    case ScalarStorage::kInteger:
      return Scalar(static_cast<int64_t>(value));
    case ScalarStorage::kReal:
      return Scalar(value);
    case ScalarStorage::kWide:
      return Scalar(static_cast<Float128>(value));
    case ScalarStorage::kComplex:
      return Scalar(ComplexOf<double>{value, 0});
    case ScalarStorage::kComplexWide:
      return Scalar(ComplexOf<Float128>{value, 0});
  }
  return {};
}

Tensor tensor_from_literal(const Literal& literal, bool wide) {
  const ElementType type = literal.element_type();
  Tensor tensor(type, literal.shape().dims(), wide);
  const int64_t count = tensor.count();
  const std::byte* from = literal.data().data();
  if (type == ElementType::kF32) {
    double* to = tensor.data<double>();
    for (int64_t i = 0; i < count; ++i) to[i] = load<float>(from + i * 4);
    return tensor;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (is_complex(type)) {
      const std::complex<double> value = literal.get_complex(i);
      if (tensor.storage() == ScalarStorage::kComplex) {
        tensor.set(i, Scalar(ComplexOf<double>{value.real(), value.imag()}));
      } else {
        tensor.set(i, Scalar(ComplexOf<Float128>{value.real(), value.imag()}));
      }
    } else if (is_float(type)) {
      const double value = literal.get_double(i);
      tensor.set(i, tensor.storage() == ScalarStorage::kWide ? Scalar(static_cast<Float128>(value))
                                                             : Scalar(value));
    } else {
      tensor.set(i, Scalar(literal.get_integer(i)));
    }
  }
  return tensor;
}

Literal literal_from_tensor(const Tensor& tensor) {
  const ElementType type = tensor.type();
  Literal literal(Shape(type, tensor.dims()));
  std::byte* to = literal.mutable_data().data();
  const size_t size = storage_bytes(type);
  for (int64_t i = 0; i < tensor.count(); ++i, to += size) {
    const Scalar value = tensor.get(i);
    if (is_complex(type)) {
      const bool wide = tensor.storage() == ScalarStorage::kComplexWide;
      const double re = wide ? static_cast<double>(value.cw.re) : value.c.re;
      const double im = wide ? static_cast<double>(value.cw.im) : value.c.im;
      literal.set_complex(i, {re, im});
    } else {
      const uint64_t bits = scalar_to_bits(type, tensor.storage(), value);
      // Sub-byte integers are stored sign-extended to their byte.
      const uint64_t stored = is_integer(type) ? static_cast<uint64_t>(value.i) : bits;
      std::memcpy(to, &stored, size);
    }
  }
  return literal;
}

}  // namespace tenon::hlo
