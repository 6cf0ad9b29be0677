#include "conformance/cases/values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/generate/bit_patterns.h"

namespace tenon::conformance {
namespace {

constexpr std::string_view kNames[] = {"ordinary", "zero",    "nan",   "infinity",
                                       "denormal", "extreme", "mixed", "patterns"};
static_assert(std::size(kNames) == kValueClasses.size());

uint64_t low_bits(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

bool is_signed_float(ElementType type) {
  return element_type_info(type).format.specials != FloatSpecials::kExponentOnly;
}

bool has_zero(ElementType type) { return is_signed_float(type); }

// --- Bit patterns of one class

uint64_t ordinary(ElementType type, Random& random) {
  if (is_float(type)) {
    const double scale = std::ldexp(1.0, static_cast<int>(random.between(-3, 3)));
    const double magnitude = random.unit() * scale;
    const bool negative = random.one_in(2);
    return encode_float(type, negative && is_signed_float(type) ? -magnitude : magnitude);
  }
  return static_cast<uint64_t>(random.between(is_signed_integer(type) ? -100 : 0, 100));
}

uint64_t signed_float(ElementType type, double magnitude, Random& random) {
  return encode_float(type, random.one_in(2) && is_signed_float(type) ? -magnitude : magnitude);
}

uint64_t denormal(ElementType type, Random& random) {
  const int mantissa = element_type_info(type).format.mantissa_bits;
  const uint64_t magnitude =
      1 + static_cast<uint64_t>(random.below(static_cast<int64_t>(low_bits(mantissa))));
  const uint64_t sign = random.one_in(2) ? uint64_t{1} << (bit_width(type) - 1) : 0;
  return sign | magnitude;
}

uint64_t extreme(ElementType type, Random& random) {
  if (is_float(type)) {
    const int mantissa = element_type_info(type).format.mantissa_bits;
    const uint64_t most = encode_float(type, float_max(type));
    switch (random.below(4)) {
      case 0:
        return signed_float(type, float_max(type), random);
      case 1:
        return signed_float(type, decode_float(type, most - 1), random);
      case 2:  // The least normal number.
        return signed_float(type, decode_float(type, uint64_t{1} << mantissa), random);
      default:  // Its square overflows, its double does not.
        return signed_float(type, std::sqrt(float_max(type)) * 1.5, random);
    }
  }
  const auto least = static_cast<uint64_t>(integer_min(type));
  const auto most = static_cast<uint64_t>(integer_max(type));
  return random.of({least, least + 1, most, most - 1, uint64_t{0}, ~uint64_t{0}});
}

uint64_t one_of(ElementType type, ValueClass values, Random& random);

uint64_t mixed(ElementType type, Random& random) {
  std::vector<ValueClass> classes;
  for (const ValueClass each : kValueClasses) {
    if (each != ValueClass::kMixed && each != ValueClass::kPatterns && has_values(type, each)) {
      classes.push_back(each);
    }
  }
  return one_of(type, random.of(classes), random);
}

uint64_t one_of(ElementType type, ValueClass values, Random& random) {
  switch (values) {
    case ValueClass::kOrdinary:
      return ordinary(type, random);
    case ValueClass::kZero:
      return is_float(type) ? signed_float(type, 0.0, random) : 0;
    case ValueClass::kNan:
      return encode_float(type, std::numeric_limits<double>::quiet_NaN());
    case ValueClass::kInfinity:
      return signed_float(type, HUGE_VAL, random);
    case ValueClass::kDenormal:
      return denormal(type, random);
    case ValueClass::kExtreme:
      return extreme(type, random);
    case ValueClass::kMixed:
      return mixed(type, random);
    case ValueClass::kPatterns:
      return random.bits();
  }
  return 0;
}

// --- Patterns

// At 32 bits and more: this number for each exponent and sign.
constexpr int64_t kPerExponent = 4;

int64_t stratified_count(ElementType type) {
  if (!is_float(type)) return 2048;
  return (int64_t{2} << element_type_info(type).format.exponent_bits) * kPerExponent;
}

uint64_t stratified(ElementType type, int64_t i, Random& random) {
  if (!is_float(type)) {
    // Every number of leading zeros, and of ones.
    const int bits = bit_width(type);
    const uint64_t cut = random.bits() & low_bits(bits);
    const uint64_t number = cut >> (i % bits);
    return i % 2 == 0 ? number : ~number;
  }
  const FloatFormat& format = element_type_info(type).format;
  const uint64_t exponent = static_cast<uint64_t>(i / kPerExponent);
  return (exponent << format.mantissa_bits) | (random.bits() & low_bits(format.mantissa_bits));
}

}  // namespace

std::string_view name_of(ValueClass values) { return kNames[static_cast<size_t>(values)]; }

bool has_values(ElementType type, ValueClass values) {
  const ElementType part = complex_part(type);
  switch (values) {
    case ValueClass::kOrdinary:
      return true;
    case ValueClass::kZero:
      return !is_pred(type) && (!is_float(part) || has_zero(part));
    case ValueClass::kNan:
      return is_float(part) && has_nan(part);
    case ValueClass::kInfinity:
      return is_float(part) && has_infinity(part);
    case ValueClass::kDenormal:
      return is_float(part) && element_type_info(part).format.mantissa_bits > 0;
    case ValueClass::kExtreme:
    case ValueClass::kMixed:
      return !is_pred(type);
    case ValueClass::kPatterns:
      return !is_pred(type) && !is_complex(type);
  }
  return false;
}

Literal random_values(const Shape& shape, ValueClass values, Random& random) {
  Literal array(shape);
  if (WithoutValues::is_on()) return array;
  const ElementType part = complex_part(shape.element_type());
  const int64_t count = array.element_count() * (is_complex(shape.element_type()) ? 2 : 1);
  const bool all = values == ValueClass::kOrdinary || values == ValueClass::kPatterns;
  for (int64_t i = 0; i < count; ++i) {
    const bool is_of_class = all || !random.one_in(3);
    set_pattern(array, part, i, one_of(part, is_of_class ? values : ValueClass::kOrdinary, random));
  }
  return array;
}

int64_t pattern_count(ElementType type, size_t operands) {
  const int bits = bit_width(type);
  if (bits * static_cast<int>(operands) <= 16)
    return int64_t{1} << (bits * static_cast<int>(operands));
  if (bits <= 8) return int64_t{1} << 16;
  if (bits == 16 && operands == 1) return int64_t{1} << 16;
  return stratified_count(type);
}

Literal patterns(ElementType type, size_t index, size_t operands, Random& random) {
  const int64_t count = pattern_count(type, operands);
  Literal array(Shape(type, {count}));
  const int bits = bit_width(type);
  const bool all = bits * static_cast<int>(operands) <= 16;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t pattern = 0;
    if (all) {
      pattern = static_cast<uint64_t>(i) >> (static_cast<size_t>(bits) * index);
    } else if (bits <= 16) {
      pattern = random.bits();
    } else {
      // The first operand goes through the strata; the others are near it, or anywhere.
      const bool near = index == 0 || i % 2 == 0;
      pattern = near ? stratified(type, i, random) : random.bits();
    }
    set_pattern(array, type, i, pattern);
  }
  return array;
}

Literal random_integers(const Shape& shape, int64_t low, int64_t high, Random& random) {
  Literal array(shape);
  for (int64_t i = 0; i < array.element_count(); ++i) {
    array.set_integer(i, random.between(low, high));
  }
  return array;
}

const std::vector<ShapeClass>& shape_classes() {
  static const std::vector<ShapeClass> classes = {
      {"scalar", {}},
      {"empty", {0}},
      {"one", {1}},
      {"prime", {13}},
      {"unaligned", {1027}},
      {"large", {129, 65}},
      {"zero_dim", {3, 0, 2}},
      {"rank2", {4, 8}},
      {"rank3", {2, 3, 5}},
      {"rank4", {2, 1, 3, 4}},
      {"rank5", {1, 3, 2, 2, 2}},
      {"rank6", {2, 1, 2, 3, 1, 2}},
  };
  return classes;
}

}  // namespace tenon::conformance
