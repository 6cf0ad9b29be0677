// Replaces floats of less than 32 bits by patterns that are computed in f32.
//
// Sums, products, quotients and roots in f32 round innocuously to a format of at most 11 bits: 24
// is at least twice that plus two (Figueroa, "When is double rounding innocuous?", 1995).
#include <cmath>

#include "core/kernel/legalize/expr.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/legalize/round_to_odd.h"
#include "core/kernel/transform/rewriter.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

/// Converts patterns of a format to f32 and back; all words are u32.
class Codec {
 public:
  explicit Codec(ElementType type)
      : width_(bit_width(type)), format_(element_type_info(type).format) {
    sign_mask_ = int64_t{1} << (width_ - 1);
    const int64_t ones = sign_mask_ - 1;
    exponent_mask_ = ones & ~((int64_t{1} << format_.mantissa_bits) - 1);
    const bool has_nan = format_.specials == FloatSpecials::kNanOnly;
    most_ = format_.specials == FloatSpecials::kIeee ? exponent_mask_ - 1
            : has_nan                                ? ones - 1
                                                     : ones;
  }

  KernelExpr decode(KernelExpr w) const {
    if (format_.specials == FloatSpecials::kExponentOnly) {
      const KernelExpr bits = select(w == 0, 0x400000, w << 23);  // 2^-127 is subnormal in f32.
      return bitcast(select(w == 0xFF, kNan32, bits), kF32);
    }
    const KernelExpr sign = (w >> (width_ - 1)) << 31;
    const KernelExpr m = w & (sign_mask_ - 1);
    const KernelExpr shifted = m << shift();
    KernelExpr bits = shifted + (int64_t{127 - format_.bias} << 23);
    if (format_.bias != 127) {
      const double unit = std::ldexp(1.0, 1 - format_.bias - format_.mantissa_bits);
      const KernelExpr product =
          convert(m, kF32) * KernelExpr{w.builder, w.builder->real(kF32, unit)};
      bits = select(m < (int64_t{1} << format_.mantissa_bits), bitcast(product, kU32), bits);
    }
    switch (format_.specials) {
      case FloatSpecials::kIeee:  // Infinity, and NaNs with their payload.
        bits = select(m >= exponent_mask_, shifted | 0x7F800000, bits);
        break;
      case FloatSpecials::kNanOnly:
        bits = select(m > most_, kNan32, bits);
        break;
      case FloatSpecials::kUnsignedZero:
        bits = select(w == sign_mask_, kNan32, bits);
        break;
      default:
        break;
    }
    return bitcast(sign | bits, kF32);
  }

  /// Rounds to nearest even; overflow and NaN follow the format.
  KernelExpr encode(KernelExpr x) const {
    const KernelExpr bits = bitcast(x, kU32);
    const KernelExpr size = bits & 0x7FFFFFFF;
    const KernelExpr nan = size > 0x7F800000;
    if (format_.specials == FloatSpecials::kExponentOnly) return encode_exponent(bits, size);
    const KernelExpr sign = (bits >> 31) << (width_ - 1);
    const KernelExpr odd = (size >> shift()) & 1;
    const KernelExpr rounded = (size + ((int64_t{1} << (shift() - 1)) - 1) + odd) >> shift();
    KernelExpr m = rounded - (int64_t{127 - format_.bias} << format_.mantissa_bits);
    if (format_.bias != 127) {
      // Adding a number whose last place is the unit of subnormals rounds to that unit.
      const float magic = std::ldexp(1.0F, 24 - format_.bias - format_.mantissa_bits);
      const KernelExpr base = {x.builder, x.builder->real(kF32, magic)};
      const KernelExpr count = bitcast(bitcast(size, kF32) + base, kU32) - bitcast(base, kU32);
      m = select(size < (int64_t{128 - format_.bias} << 23), count, m);
    }
    const KernelExpr result = sign | m;
    const KernelExpr overflow = m > most_;
    switch (format_.specials) {
      case FloatSpecials::kIeee: {
        const KernelExpr quiet =
            sign | (exponent_mask_ | int64_t{1} << (format_.mantissa_bits - 1));
        return select(nan, quiet, select(overflow, sign | exponent_mask_, result));
      }
      case FloatSpecials::kNanOnly:
        return select(either(nan, overflow), sign | (sign_mask_ - 1), result);
      case FloatSpecials::kUnsignedZero:
        return select(either(nan, overflow), sign_mask_, select(m == 0, 0, result));
      default:  // A NaN becomes -0.
        return select(nan, sign | sign_mask_, select(overflow, sign | most_, result));
    }
  }

 private:
  static constexpr int64_t kNan32 = 0x7FC00000;
  int shift() const { return 23 - format_.mantissa_bits; }

  // Powers of two 2^-127 … 2^127; ties go up, and zero becomes the least value.
  static KernelExpr encode_exponent(KernelExpr bits, KernelExpr size) {
    const KernelExpr normal = (size + 0x400000) >> 23;
    const KernelExpr code = select(size < 0x800000, convert(size >= 0x600000, kU32), normal);
    const KernelExpr negative = both(bits != size, size != 0);
    return select(either(negative, either(size > 0x7F7FFFFF, code > 254)), 0xFF, code);
  }
  static KernelExpr select(KernelExpr p, int64_t x, int64_t y) {
    return kernel::select(p, KernelExpr{p.builder, p.builder->integer(kU32, x)}, y);
  }
  static KernelExpr select(KernelExpr p, KernelExpr x, KernelExpr y) {
    return kernel::select(p, x, y);
  }
  static KernelExpr select(KernelExpr p, KernelExpr x, int64_t y) {
    return kernel::select(p, x, y);
  }
  static KernelExpr select(KernelExpr p, int64_t x, KernelExpr y) {
    return kernel::select(p, x, y);
  }

  int width_;
  FloatFormat format_;
  int64_t sign_mask_, exponent_mask_, most_;
};

bool is_narrow_float(ElementType type) { return is_float(type) && bit_width(type) < 32; }

class FloatWidener : public Rewriter {
 public:
  FloatWidener(const Kernel& kernel, const TargetFeatures& features)
      : Rewriter(kernel), features_(features) {}

 private:
  bool widens(ElementType type) const { return is_narrow_float(type) && !features_.computes(type); }
  /// The integer type that holds a pattern.
  ElementType kept(ElementType type) const {
    if (!widens(type)) return type;
    if (bit_width(type) == 16) return kU16;
    return bit_width(type) == 4 ? kU4 : kU8;
  }
  std::vector<ElementType> types_for(ElementType type) const override { return {kept(type)}; }
  Values constant(ElementType type, uint64_t bits) override {
    return {to().constant(kept(type), bits)};
  }
  Memory memory_for(const Memory& m) const override {
    Memory result = m;
    result.type = kept(m.type);
    return result;
  }

  /// Narrow floats converted to f32, other numbers unchanged.
  KernelExpr decoded(ValueId value, ElementType type) {
    const KernelExpr x = {&to(), map(value)};
    if (widens(type) && features_.converts(type)) return convert(bitcast(x, type), kF32);
    if (widens(type)) return Codec(type).decode(convert(x, kU32));
    return is_narrow_float(type) ? convert(x, kF32) : x;
  }
  KernelExpr encoded(KernelExpr x, ElementType type) {
    if (!widens(type)) return convert(x, type);
    if (features_.converts(type)) return bitcast(convert(x, type), kept(type));
    return convert(Codec(type).encode(x), kept(type));
  }

  /// Whether the target lacks this operation on `type`, although it computes with `type`.
  bool lacks(const Node& n, ElementType type) const {
    if (n.op == OpCode::kConvert) {
      const auto later = [&](ElementType t) {
        return !features_.computes(t) && bit_width(t) == 64;
      };
      return (is_narrow_float(type) && later(n.type)) || (is_narrow_float(n.type) && later(type));
    }
    if (!is_narrow_float(type)) return false;
    return (n.op == OpCode::kFma && !features_.fma) ||
           (is_math(n.op) && !features_.has_math(n.op, type));
  }

  void node(const Node& n) override {
    if (!is_scalar_op(n.op)) return copy_node(n);
    const ElementType type = type_of_operand(n);
    if (!widens(type) && !widens(n.type) && !lacks(n, type)) return copy_node(n);
    if (n.op == OpCode::kSelect) {
      const Values v = map(n.operands);
      return set(n.results[0], to().select(v[0], v[1], v[2]));
    }
    if (n.op == OpCode::kBitcast) {
      return set(n.results[0], to().bitcast(map(n.operands[0]), kept(n.type)));
    }
    if (n.op == OpCode::kConvert) return set(n.results[0], converted(n, type).id);
    Values operands;
    for (const ValueId operand : n.operands) operands.push_back(decoded(operand, type).id);
    if (is_comparison(n.op)) return set(n.results[0], to().op(n.op, operands));
    const KernelExpr result =
        n.op == OpCode::kFma ? fma(operands, type) : KernelExpr{&to(), to().op(n.op, operands)};
    set(n.results[0], encoded(result, type).id);
  }

  KernelExpr converted(const Node& n, ElementType from) {
    const KernelExpr x = decoded(n.operands[0], from);
    if (!is_narrow_float(n.type)) return convert(x, n.type);
    const bool exact =
        is_pred(from) || is_narrow_float(from) || (is_integer(from) && bit_width(from) <= 16);
    if (exact) return encoded(convert(x, kF32), n.type);
    return encoded(from == kF32 ? x : convert_to_odd_f32(x), n.type);
  }

  /// Products of two numbers are exact in f32, except those of bf16 and f8E8M0FNU, which may exceed
  /// its range.
  KernelExpr fma(const Values& v, ElementType type) {
    const auto operand = [&](size_t i) { return KernelExpr{&to(), v[i]}; };
    if (element_type_info(type).format.exponent_bits < 8) {
      return add_to_odd(operand(0) * operand(1), operand(2));
    }
    const auto wide = [&](size_t i) { return convert(operand(i), kF64); };
    return convert_to_odd_f32(add_to_odd(wide(0) * wide(1), wide(2)));
  }

  const TargetFeatures& features_;
};

}  // namespace

Kernel widen_floats(Kernel kernel, const TargetFeatures& features) {
  return any_type(kernel, is_narrow_float) ? FloatWidener(kernel, features).run()
                                           : std::move(kernel);
}

}  // namespace tenon::kernel
