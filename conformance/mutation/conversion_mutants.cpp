// Mutants of conversions: each is a pair of types and a change.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/mutation/kernel_editor.h"
#include "conformance/mutation/mutants.h"
#include "core/types/float_convert.h"

namespace tenon::conformance {
namespace {

using kernel::Node;
using kernel::OpCode;
using kernel::ValueId;
using enum ElementType;

struct ConversionMutant {
  std::string_view name;
  std::string_view text;
  ElementType from;
  ElementType to;
  void (*change)(KernelEditor& editor, Node& node);
};

ValueId is_no_number(KernelEditor& e, ValueId x) { return e.compare(OpCode::kNe, x, x); }

// Gives `made` where the operand is NaN.
void replace_at_nan(KernelEditor& e, Node& node, uint64_t made) {
  const ValueId x = node.operands[0];
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.select(is_no_number(k, x), k.constant(node.type, made), result);
  });
}

// --- From floats to integers

void wraps(KernelEditor& e, Node& node) {
  node.operands[0] = e.convert(node.operands[0], kS64);
  node.from = kS64;
}
void rounds(KernelEditor& e, Node& node) {
  node.operands[0] = e.emit(OpCode::kRoundEven, node.from, {node.operands[0]});
}
void nan_is_least(KernelEditor& e, Node& node) {
  replace_at_nan(e, node, static_cast<uint64_t>(integer_min(node.type)));
}
void nan_is_false(KernelEditor& e, Node& node) { replace_at_nan(e, node, 0); }

// --- To floats

// Clears the bits of the operand that the result has no room for.
void truncates(KernelEditor& e, Node& node) {
  const ElementType bits = *integer_of_width(bit_width(node.from), false);
  const int lost = element_type_info(node.from).format.mantissa_bits -
                   element_type_info(node.type).format.mantissa_bits;
  const uint64_t all = bit_width(bits) == 64 ? ~uint64_t{0} : (uint64_t{1} << bit_width(bits)) - 1;
  const uint64_t kept = all & ~((uint64_t{1} << lost) - 1);
  const auto mask = bits == kU32 ? static_cast<uint64_t>(static_cast<uint32_t>(kept)) : kept;
  const ValueId pattern = e.bitcast(node.operands[0], bits);
  node.operands[0] =
      e.bitcast(e.emit(OpCode::kAnd, bits, {pattern, e.constant(bits, mask)}), node.from);
}

void overflow_is_greatest(KernelEditor& e, Node& node) {
  const FloatFormat& format = element_type_info(node.type).format;
  const double greatest = std::ldexp(2 - std::ldexp(1.0, -format.mantissa_bits),
                                     (1 << format.exponent_bits) - 2 - format.bias);
  const ValueId x = node.operands[0];
  const ElementType from = node.from;
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    const ValueId finite =
        k.compare(OpCode::kLt, k.emit(OpCode::kAbs, from, {x}), k.number(from, HUGE_VAL));
    const ValueId least = k.emit(OpCode::kMax, node.type, {result, k.number(node.type, -greatest)});
    return k.select(finite, k.emit(OpCode::kMin, node.type, {least, k.number(node.type, greatest)}),
                    result);
  });
}

void flushes(KernelEditor& e, Node& node) {
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    const int mantissa = element_type_info(node.type).format.mantissa_bits;
    const double normal = decode_float(node.type, uint64_t{1} << mantissa);
    const ValueId small = k.compare(OpCode::kLt, k.emit(OpCode::kAbs, node.type, {result}),
                                    k.number(node.type, normal));
    return k.select(small, k.number(node.type, 0), result);
  });
}

void flushes_operand(KernelEditor& e, Node& node) {
  const ElementType from = node.from;
  const double normal =
      decode_float(from, uint64_t{1} << element_type_info(from).format.mantissa_bits);
  const ValueId x = node.operands[0];
  const ValueId small =
      e.compare(OpCode::kLt, e.emit(OpCode::kAbs, from, {x}), e.number(from, normal));
  node.operands[0] = e.select(small, e.number(from, 0), x);
}

void nan_is_infinity(KernelEditor& e, Node& node) {
  const ValueId x = node.operands[0];
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.select(is_no_number(k, x), k.number(node.type, HUGE_VAL), result);
  });
}

void takes_as_signed(KernelEditor& e, Node& node) {
  const ElementType is_signed = *integer_of_width(bit_width(node.from), true);
  node.operands[0] = e.bitcast(node.operands[0], is_signed);
  node.from = is_signed;
}
void takes_as_unsigned(KernelEditor& e, Node& node) {
  const ElementType is_unsigned = *integer_of_width(bit_width(node.from), false);
  node.operands[0] = e.bitcast(node.operands[0], is_unsigned);
  node.from = is_unsigned;
}

void drops_high_half(KernelEditor& e, Node& node) {
  node.operands[0] = e.convert(node.operands[0], kS32);
  node.from = kS32;
}

void goes_by_bf16(KernelEditor& e, Node& node) {
  const ElementType type = node.type;
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.convert(k.convert(result, kBF16), type);
  });
}

// --- Among integers

void saturates(KernelEditor& e, Node& node) {
  const ElementType from = node.from;
  const auto bound = [&](int64_t number) {
    return e.constant(from, static_cast<uint64_t>(number));
  };
  const ValueId least =
      e.emit(OpCode::kMax, from, {node.operands[0], bound(integer_min(node.type))});
  node.operands[0] = e.emit(OpCode::kMin, from, {least, bound(integer_max(node.type))});
}

void takes_lowest_bit(KernelEditor& e, Node& node) {
  node.operands[0] = e.emit(OpCode::kAnd, node.from, {node.operands[0], e.constant(node.from, 1)});
}

void true_is_minus_one(KernelEditor& e, Node& node) {
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.emit(OpCode::kNeg, node.type, {result});
  });
}

constexpr ConversionMutant kConversions[] = {
    {"wraps", "wraps instead of saturating", kF32, kS32, wraps},
    {"wraps", "wraps instead of saturating", kF32, kS8, wraps},
    {"wraps", "wraps instead of saturating", kF32, kU8, wraps},
    {"wraps", "wraps instead of saturating", kF64, kS32, wraps},
    {"wraps", "wraps instead of saturating", kBF16, kS8, wraps},
    {"rounds", "rounds to nearest", kF32, kS32, rounds},
    {"rounds", "rounds to nearest", kF64, kS64, rounds},
    {"rounds", "rounds to nearest", kF16, kS8, rounds},
    {"nan_is_least", "gives the least integer for NaN", kF32, kS32, nan_is_least},
    {"nan_is_least", "gives the least integer for NaN", kF64, kS64, nan_is_least},
    {"nan_is_false", "gives false for NaN", kF32, kPred, nan_is_false},
    {"truncates", "truncates instead of rounding", kF32, kBF16, truncates},
    {"truncates", "truncates instead of rounding", kF32, kF16, truncates},
    {"truncates", "truncates instead of rounding", kF64, kF32, truncates},
    {"overflow_is_greatest", "gives the greatest number for an overflow", kF32, kF16,
     overflow_is_greatest},
    {"overflow_is_greatest", "gives the greatest number for an overflow", kF32, kBF16,
     overflow_is_greatest},
    {"overflow_is_greatest", "gives the greatest number for an overflow", kF64, kF32,
     overflow_is_greatest},
    {"flushes", "returns zero for denormal results", kF32, kF16, flushes},
    {"flushes", "returns zero for denormal results", kF64, kF32, flushes},
    {"flushes_operand", "takes denormals as zero", kBF16, kF32, flushes_operand},
    {"flushes_operand", "takes denormals as zero", kF16, kF32, flushes_operand},
    {"nan_is_infinity", "gives an infinity for NaN", kF32, kBF16, nan_is_infinity},
    {"nan_is_infinity", "gives an infinity for NaN", kF32, kF16, nan_is_infinity},
    {"is_signed", "takes the operand as signed", kU32, kF32, takes_as_signed},
    {"is_signed", "takes the operand as signed", kU8, kS32, takes_as_signed},
    {"is_unsigned", "takes the operand as unsigned", kS8, kS32, takes_as_unsigned},
    {"is_unsigned", "takes the operand as unsigned", kS32, kS64, takes_as_unsigned},
    {"is_unsigned", "takes the operand as unsigned", kS32, kF32, takes_as_unsigned},
    {"drops_high_half", "takes the low half of the operand", kS64, kF32, drops_high_half},
    {"goes_by_bf16", "rounds to bf16 on the way", kS32, kF32, goes_by_bf16},
    {"saturates", "saturates instead of wrapping", kS32, kS8, saturates},
    {"saturates", "saturates instead of wrapping", kS64, kS32, saturates},
    {"takes_lowest_bit", "takes the lowest bit", kS32, kPred, takes_lowest_bit},
    {"true_is_minus_one", "gives -1 for true", kPred, kS32, true_is_minus_one},
};

std::string pair_of(ElementType from, ElementType to) {
  return fmt::format("{}_to_{}", name_of(from), name_of(to));
}
std::string name_of_mutant(const ConversionMutant& each) {
  return fmt::format("kernel/convert/{}/{}", pair_of(each.from, each.to), each.name);
}

std::vector<Mutant> conversion_mutants() {
  std::vector<Mutant> list;
  for (const ConversionMutant& each : kConversions) {
    list.push_back(
        {name_of_mutant(each),
         fmt::format("convert of {} to {} {}", name_of(each.from), name_of(each.to), each.text),
         {fmt::format("op/convert/{}/to_{}/*", name_of(each.from), name_of(each.to)),
          fmt::format("kernel/op/convert/{}", pair_of(each.from, each.to))}});
  }
  return list;
}

int64_t change_conversions(KernelEditor& editor, const std::string& mutant) {
  if (!mutant.starts_with("kernel/convert/")) return 0;
  const auto* const found = std::ranges::find(kConversions, mutant, name_of_mutant);
  if (found == std::end(kConversions)) return 0;
  return editor.apply([&](KernelEditor& e, Node& node) {
    if (node.op != OpCode::kConvert || node.from != found->from || node.type != found->to)
      return false;
    found->change(e, node);
    return true;
  });
}

}  // namespace

const KernelMutants kConversionMutants = {conversion_mutants, change_conversions};

}  // namespace tenon::conformance
