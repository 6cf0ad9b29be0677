// hlo/evaluator/scalars/: the evaluator's numbers.
//
// Scalars and tensors of the reference evaluator.
//
// Values of all element types are computed in one of five storages. A float of at most 32 bits is
// held in a double that represents a value of its type exactly. After each op the result is rounded
// to the type once, which for + - * / and square root is correct rounding (53 >= 2 * 24 + 2 bits).
// Wide mode omits this rounding: such floats are evaluated as double, f64 as binary128.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "core/types/float_convert.h"
#include "core/types/literal.h"

namespace tenon::hlo {

template <class R>
struct ComplexOf {
  R re;
  R im;
};

enum class ScalarStorage : uint8_t {
  kInteger,      ///< int64_t: pred, integers (u64 as its bits).
  kReal,         ///< double
  kWide,         ///< Float128: f64 in wide mode.
  kComplex,      ///< ComplexOf<double>
  kComplexWide,  ///< ComplexOf<Float128>: c128 in wide mode.
};

/// Bytes of one element.
constexpr size_t storage_size(ScalarStorage storage) {
  switch (storage) {
    case ScalarStorage::kInteger:
    case ScalarStorage::kReal:
      return 8;
    case ScalarStorage::kWide:
    case ScalarStorage::kComplex:
      return 16;
    case ScalarStorage::kComplexWide:
      return 32;
  }
  return 0;
}

inline ScalarStorage storage_of(ElementType type, bool wide) {
  if (is_float(type))
    return wide && type == ElementType::kF64 ? ScalarStorage::kWide : ScalarStorage::kReal;
  if (is_complex(type)) {
    return wide && type == ElementType::kC128 ? ScalarStorage::kComplexWide
                                              : ScalarStorage::kComplex;
  }
  return ScalarStorage::kInteger;
}

/// One element; the storage of its tensor determines the active member.
union Scalar {
  int64_t i = 0;
  double d;
  Float128 w;
  ComplexOf<double> c;
  ComplexOf<Float128> cw;

  Scalar() {}
  explicit Scalar(int64_t value) : i(value) {}
  explicit Scalar(double value) : d(value) {}
  explicit Scalar(Float128 value) : w(value) {}
  explicit Scalar(ComplexOf<double> value) : c(value) {}
  explicit Scalar(ComplexOf<Float128> value) : cw(value) {}

  template <class T>
  T as() const {
    T value;
    std::memcpy(&value, this, sizeof(T));
    return value;
  }
};

/// A dense row-major array in one storage.
class Tensor {
 public:
  Tensor() = default;
  /// A tensor of zeros.
  Tensor(ElementType type, Dims dims, bool wide)
      : type_(type), storage_(storage_of(type, wide)), dims_(std::move(dims)) {
    count_ = 1;
    for (const int64_t dim : dims_) count_ *= dim;
    data_.resize(static_cast<size_t>(count_) * stride());
  }

  ElementType type() const { return type_; }
  ScalarStorage storage() const { return storage_; }
  const Dims& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t count() const { return count_; }
  size_t stride() const { return storage_size(storage_); }

  Scalar get(int64_t index) const {
    Scalar value;
    std::memcpy(static_cast<void*>(&value), data_.data() + static_cast<size_t>(index) * stride(),
                stride());
    return value;
  }
  void set(int64_t index, const Scalar& value) {
    std::memcpy(data_.data() + static_cast<size_t>(index) * stride(), &value, stride());
  }
  /// Copies element `from` of `source`, a tensor of the same storage.
  void copy(int64_t index, const Tensor& source, int64_t from) {
    std::memcpy(data_.data() + static_cast<size_t>(index) * stride(),
                source.data_.data() + static_cast<size_t>(from) * stride(), stride());
  }
  int64_t integer(int64_t index) const { return get(index).i; }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(data_.data());
  }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(data_.data());
  }
  /// The same elements with other dimensions.
  Tensor reshaped(Dims dims) const {
    Tensor result = *this;
    result.dims_ = std::move(dims);
    return result;
  }
  /// The same storage bits as another element type with the same storage.
  Tensor retyped(ElementType type) const {
    Tensor result = *this;
    result.type_ = type;
    return result;
  }

 private:
  ElementType type_ = ElementType::kPred;
  ScalarStorage storage_ = ScalarStorage::kInteger;
  Dims dims_;
  int64_t count_ = 0;
  std::vector<std::byte> data_;
};

/// Exact: the storage can represent every value of the element type.
Tensor tensor_from_literal(const Literal& literal, bool wide);
/// Rounds to the element type, which has no effect outside wide mode.
Literal literal_from_tensor(const Tensor& tensor);

/// The bits of an element in its type's format (for complex types, of each part separately).
uint64_t scalar_to_bits(ElementType type, ScalarStorage storage, const Scalar& value);
Scalar scalar_from_bits(ElementType type, ScalarStorage storage, uint64_t bits);
/// Zero, or a real number, in the given storage.
Scalar scalar_of(ScalarStorage storage, double value);

}  // namespace tenon::hlo
