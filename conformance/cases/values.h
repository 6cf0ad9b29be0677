// Classes of values with which a case fills its arguments, and classes of shapes.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/base/random.h"
#include "core/types/literal.h"

namespace tenon::conformance {

enum class ValueClass : uint8_t {
  kOrdinary,  ///< Moderate numbers of both signs; integers between -100 and 100.
  kZero,      ///< Zeros of both signs among ordinary numbers.
  kNan,
  kInfinity,
  kDenormal,
  kExtreme,   ///< The ends of the range, and numbers next to them.
  kMixed,     ///< All of these, in random order.
  kPatterns,  ///< Every bit pattern, or some for each exponent.
};
inline constexpr std::array kValueClasses = {
    ValueClass::kOrdinary, ValueClass::kZero,    ValueClass::kNan,   ValueClass::kInfinity,
    ValueClass::kDenormal, ValueClass::kExtreme, ValueClass::kMixed, ValueClass::kPatterns};
std::string_view name_of(ValueClass values);

/// Whether `type` has values of that class (a type without NaN has none of kNan). kPatterns: for
/// types that are not pred.
bool has_values(ElementType type, ValueClass values);

/// An array of values of the class; a third of them ordinary ones, but for kOrdinary and kPatterns.
Literal random_values(const Shape& shape, ValueClass values, Random& random);

/// While one lives, random_values() gives zeros in its thread: for programs that are verified and
/// not run, as each process of the suite does with the first of every case.
class WithoutValues {
 public:
  WithoutValues() : before_(std::exchange(is_on_, true)) {}
  ~WithoutValues() { is_on_ = before_; }
  WithoutValues(const WithoutValues&) = delete;
  WithoutValues& operator=(const WithoutValues&) = delete;
  static bool is_on() { return is_on_; }

 private:
  static inline thread_local bool is_on_ = false;
  bool before_;
};

/// Number of elements that kPatterns wants for an op of `operands` operands: enough for every
/// pattern of types up to 16 bits, or every pair of patterns of types up to 8 bits.
int64_t pattern_count(ElementType type, size_t operands);
/// Operand `index` of `operands` with pattern_count() patterns.
Literal patterns(ElementType type, size_t index, size_t operands, Random& random);

/// Integers in [low, high] of an integer type.
Literal random_integers(const Shape& shape, int64_t low, int64_t high, Random& random);

struct ShapeClass {
  std::string_view name;
  Dims dims;
};
/// Scalar, empty, one element, a prime number of them, not a multiple of any vector, many, a
/// dimension of size 0, ranks 2 to 6.
const std::vector<ShapeClass>& shape_classes();

}  // namespace tenon::conformance
