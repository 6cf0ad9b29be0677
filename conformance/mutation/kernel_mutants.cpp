// Mutants of operations: each is an operation, a type and a change.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "conformance/mutation/kernel_editor.h"
#include "conformance/mutation/mutants.h"
#include "core/types/float_convert.h"

namespace tenon::conformance {
namespace {

using kernel::Node;
using kernel::OpCode;
using kernel::ValueId;
using enum ElementType;

// A way to be wrong that several operations share.
struct KernelChange {
  std::string_view name;
  std::string_view text;
  bool (*applies)(OpCode op, ElementType type);
  bool (*change)(KernelEditor& editor, Node& node);
};

constexpr ElementType kMutatedTypes[] = {kF32, kF64, kF16, kBF16, kS32,
                                         kS64, kS8,  kU32, kU8,   kPred};

bool is_binary(OpCode op) { return kernel::scalar_op(op).operands == 2; }
bool is_among(OpCode op, std::initializer_list<OpCode> list) {
  return std::ranges::find(list, op) != list.end();
}
bool gives_pred(OpCode op) { return kernel::scalar_op(op).result == kernel::ResultType::kPred; }
bool is_cast(OpCode op) { return is_among(op, {OpCode::kConvert, OpCode::kBitcast}); }
bool is_math_function(OpCode op) { return kernel::scalar_op(op).ulp_bound > 0; }
bool is_rounded(OpCode op) {
  return is_among(
      op, {OpCode::kAdd, OpCode::kSub, OpCode::kMul, OpCode::kDiv, OpCode::kFma, OpCode::kSqrt});
}

// --- Another operation in its place

struct OtherOp {
  OpCode op;
  OpCode other;
};
constexpr OtherOp kOthers[] = {{OpCode::kAdd, OpCode::kSub},
                               {OpCode::kSub, OpCode::kAdd},
                               {OpCode::kMul, OpCode::kAdd},
                               {OpCode::kDiv, OpCode::kMul},
                               {OpCode::kRem, OpCode::kDiv},
                               {OpCode::kMin, OpCode::kMax},
                               {OpCode::kMax, OpCode::kMin},
                               {OpCode::kFloor, OpCode::kTrunc},
                               {OpCode::kCeil, OpCode::kFloor},
                               {OpCode::kTrunc, OpCode::kFloor},
                               {OpCode::kRoundEven, OpCode::kRoundAway},
                               {OpCode::kRoundAway, OpCode::kRoundEven},
                               {OpCode::kAnd, OpCode::kOr},
                               {OpCode::kOr, OpCode::kXor},
                               {OpCode::kXor, OpCode::kOr},
                               {OpCode::kShl, OpCode::kRotl},
                               {OpCode::kShr, OpCode::kSar},
                               {OpCode::kSar, OpCode::kShr},
                               {OpCode::kEq, OpCode::kLe},
                               {OpCode::kNe, OpCode::kLt},
                               {OpCode::kLt, OpCode::kLe},
                               {OpCode::kLe, OpCode::kLt},
                               {OpCode::kGt, OpCode::kGe},
                               {OpCode::kGe, OpCode::kGt},
                               {OpCode::kExp, OpCode::kExpm1},
                               {OpCode::kExpm1, OpCode::kExp},
                               {OpCode::kLog, OpCode::kLog1p},
                               {OpCode::kLog1p, OpCode::kLog},
                               {OpCode::kSin, OpCode::kTan},
                               {OpCode::kCos, OpCode::kSin},
                               {OpCode::kTanh, OpCode::kLogistic},
                               {OpCode::kMulHi, OpCode::kMul},
                               {OpCode::kClz, OpCode::kPopcount},
                               {OpCode::kPopcount, OpCode::kClz}};

const OtherOp* other_of(OpCode op) {
  const auto* const found = std::ranges::find(kOthers, op, &OtherOp::op);
  return found == std::end(kOthers) ? nullptr : found;
}

// --- Helpers of changes

ElementType bits_type(ElementType type) { return *integer_of_width(bit_width(type), false); }

ValueId is_nan(KernelEditor& e, ValueId x) { return e.compare(OpCode::kNe, x, x); }

bool of_floats(OpCode op, ElementType type) { return is_float(type) && !is_cast(op); }

bool drops_nan(KernelEditor& e, Node& node) {
  const ValueId x = node.operands[0];
  const ValueId y = node.operands[1];
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.select(is_nan(k, x), y, k.select(is_nan(k, y), x, result));
  });
  return true;
}

bool loses_sign_of_zero(KernelEditor& e, Node& node) {
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.emit(OpCode::kAdd, node.type, {result, k.number(node.type, 0.0)});
  });
  return true;
}

// The last bit of the significand is always 0.
bool rounds_down(KernelEditor& e, Node& node) {
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    const ElementType bits = bits_type(node.type);
    const ValueId one = k.constant(bits, 1);
    const ValueId pattern = k.bitcast(result, bits);
    const ValueId cleared =
        k.emit(OpCode::kXor, bits, {pattern, k.emit(OpCode::kAnd, bits, {pattern, one})});
    return k.bitcast(cleared, node.type);
  });
  return true;
}

ValueId flushed(KernelEditor& k, ValueId x) {
  const ElementType type = k.type_of(x);
  const double normal =
      decode_float(type, uint64_t{1} << element_type_info(type).format.mantissa_bits);
  const ValueId size = k.emit(OpCode::kAbs, type, {x});
  const ValueId small = k.compare(OpCode::kLt, size, k.number(type, normal));
  return k.select(small, k.number(type, 0.0), x);
}

bool flushes_results(KernelEditor& e, Node& node) {
  e.replace_result(node, flushed);
  return true;
}
bool flushes_operands(KernelEditor& e, Node& node) {
  for (ValueId& operand : node.operands) operand = flushed(e, operand);
  return true;
}

// Wrong by 64 units: beyond every bound of a function.
bool is_inaccurate(KernelEditor& e, Node& node) {
  const int mantissa = element_type_info(node.type).format.mantissa_bits;
  const double factor = 1 + std::ldexp(64.0, -mantissa);
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.emit(OpCode::kMul, node.type, {result, k.number(node.type, factor)});
  });
  return true;
}

bool fails_at_infinity(KernelEditor& e, Node& node) {
  const ValueId x = node.operands[0];
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    const ValueId infinite =
        k.compare(OpCode::kEq, k.emit(OpCode::kAbs, node.type, {x}), k.number(node.type, HUGE_VAL));
    return k.select(infinite, k.number(node.type, 0.5), result);
  });
  return true;
}

bool fails_when_large(KernelEditor& e, Node& node) {
  const ValueId x = node.operands[0];
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    const ValueId large =
        k.compare(OpCode::kGt, k.emit(OpCode::kAbs, node.type, {x}), k.number(node.type, 512));
    return k.select(large, k.number(node.type, 0.25), result);
  });
  return true;
}

bool swaps_operands(KernelEditor&, Node& node) {
  const size_t last = node.operands.size() - 1;
  std::swap(node.operands[last - 1], node.operands[last]);
  return true;
}

bool becomes_other(KernelEditor&, Node& node) {
  node.op = other_of(node.op)->other;
  return true;
}

bool returns_operand(KernelEditor& e, Node& node) {
  const ValueId x = node.operands[0];
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.select(k.compare(OpCode::kEq, x, x), x, result);
  });
  return true;
}

bool shifts_modulo_width(KernelEditor& e, Node& node) {
  const int bits = bit_width(node.type);
  node.operands[1] =
      e.emit(OpCode::kAnd, node.type,
             {node.operands[1], e.constant(node.type, static_cast<uint64_t>(bits - 1))});
  return true;
}

bool gives_zero_for_zero_divisor(KernelEditor& e, Node& node) {
  const ValueId y = node.operands[1];
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    const ValueId zero = k.constant(node.type, 0);
    return k.select(k.compare(OpCode::kEq, y, zero), zero, result);
  });
  return true;
}

bool is_one_off(KernelEditor& e, Node& node) {
  e.replace_result(node, [&](KernelEditor& k, ValueId result) {
    return k.emit(OpCode::kXor, node.type, {result, k.constant(node.type, 1)});
  });
  return true;
}

bool rounds_twice(KernelEditor& e, Node& node) {  // fma
  const ValueId product = e.emit(OpCode::kMul, node.type, {node.operands[0], node.operands[1]});
  node.operands = {product, node.operands[2]};
  node.op = OpCode::kAdd;
  return true;
}

bool is_shift(OpCode op) { return is_among(op, {OpCode::kShl, OpCode::kShr, OpCode::kSar}); }
bool keeps_zero_sign(OpCode op) {
  return is_among(
      op, {OpCode::kMul, OpCode::kDiv, OpCode::kNeg, OpCode::kMin, OpCode::kMax, OpCode::kFloor,
           OpCode::kCeil, OpCode::kRoundEven, OpCode::kRoundAway, OpCode::kSqrt, OpCode::kRem,
           OpCode::kSin, OpCode::kTan, OpCode::kTanh, OpCode::kExpm1, OpCode::kLog1p, OpCode::kErf,
           OpCode::kCbrt, OpCode::kAtan2});
}

const KernelChange kChanges[] = {
    {"becomes_other", "is another operation",
     [](OpCode op, ElementType) { return other_of(op) != nullptr; }, becomes_other},
    {"swaps_operands", "takes its last two operands in the wrong order",
     [](OpCode op, ElementType) {
       return is_among(op, {OpCode::kSub, OpCode::kDiv, OpCode::kRem, OpCode::kShl, OpCode::kShr,
                            OpCode::kSar, OpCode::kLt, OpCode::kLe, OpCode::kGt, OpCode::kGe,
                            OpCode::kSelect, OpCode::kAtan2, OpCode::kPow});
     },
     swaps_operands},
    {"drops_nan", "returns the other operand if one is NaN",
     [](OpCode op, ElementType type) {
       return of_floats(op, type) && is_binary(op) && !gives_pred(op);
     },
     drops_nan},
    {"loses_sign_of_zero", "returns +0 for -0",
     [](OpCode op, ElementType type) { return is_float(type) && keeps_zero_sign(op); },
     loses_sign_of_zero},
    {"rounds_down", "truncates the last bit",
     [](OpCode op, ElementType type) { return is_float(type) && is_rounded(op); }, rounds_down},
    {"flushes_results", "returns zero for denormal results",
     [](OpCode op, ElementType type) {
       return is_float(type) && is_rounded(op) && op != OpCode::kSqrt;
     },
     flushes_results},
    {"flushes_operands", "takes denormal operands as zero",
     [](OpCode op, ElementType type) {
       return is_float(type) && (is_rounded(op) || gives_pred(op) ||
                                 is_among(op, {OpCode::kMin, OpCode::kMax, OpCode::kAbs}));
     },
     flushes_operands},
    {"is_inaccurate", "is wrong by 64 units in the last place",
     [](OpCode op, ElementType type) {
       return bit_width(type) >= 32 && is_float(type) && is_math_function(op);
     },
     is_inaccurate},
    {"fails_at_infinity", "is wrong at infinity",
     [](OpCode op, ElementType type) {
       return bit_width(type) >= 32 && is_float(type) && is_math_function(op);
     },
     fails_at_infinity},
    {"fails_when_large", "is wrong for arguments beyond 512",
     [](OpCode op, ElementType type) {
       return bit_width(type) >= 32 && is_float(type) &&
              is_among(op, {OpCode::kSin, OpCode::kCos, OpCode::kTan, OpCode::kLog, OpCode::kCbrt,
                            OpCode::kRsqrt});
     },
     fails_when_large},
    {"returns_operand", "returns its operand",
     [](OpCode op, ElementType type) {
       if (op == OpCode::kAbs && is_unsigned_integer(type)) return false;  // It does.
       return is_among(op, {OpCode::kNeg, OpCode::kAbs, OpCode::kNot, OpCode::kFloor, OpCode::kSqrt,
                            OpCode::kClz, OpCode::kPopcount});
     },
     returns_operand},
    {"shifts_modulo_width", "takes the amount modulo the width",
     [](OpCode op, ElementType type) { return is_integer(type) && is_shift(op); },
     shifts_modulo_width},
    {"gives_zero_for_zero_divisor", "gives 0 where the divisor is 0",
     [](OpCode op, ElementType type) {
       return is_integer(type) && is_among(op, {OpCode::kDiv, OpCode::kRem});
     },
     gives_zero_for_zero_divisor},
    {"is_one_off", "is off by one",
     [](OpCode op, ElementType type) {
       return is_integer(type) && is_among(op, {OpCode::kMul, OpCode::kMulHi, OpCode::kDiv,
                                                OpCode::kClz, OpCode::kPopcount, OpCode::kShl});
     },
     is_one_off},
    {"rounds_twice", "rounds the product before it adds",
     [](OpCode op, ElementType type) { return is_float(type) && op == OpCode::kFma; },
     rounds_twice},
};

// Casts have mutants of their own (conversion_mutants.cpp).
bool occurs(OpCode op, ElementType type) {
  return kernel::contains(kernel::scalar_op(op).types, type) && !is_cast(op);
}

// The op of StableHLO that becomes this kernel operation, for the order in which cases are run.
std::string_view hlo_op_of(OpCode op) {
  switch (op) {
    case OpCode::kSub:
      return "subtract";
    case OpCode::kMul:
      return "multiply";
    case OpCode::kMulHi:
      return "chlo_mulhi";
    case OpCode::kDiv:
      return "divide";
    case OpCode::kRem:
      return "remainder";
    case OpCode::kMin:
      return "minimum";
    case OpCode::kMax:
      return "maximum";
    case OpCode::kNeg:
      return "negate";
    case OpCode::kRoundEven:
      return "round_nearest_even";
    case OpCode::kRoundAway:
      return "round_nearest_afz";
    case OpCode::kShl:
      return "shift_left";
    case OpCode::kShr:
      return "shift_right_logical";
    case OpCode::kSar:
      return "shift_right_arithmetic";
    case OpCode::kClz:
      return "count_leading_zeros";
    case OpCode::kPopcount:
      return "popcnt";
    case OpCode::kEq:
    case OpCode::kNe:
    case OpCode::kLt:
    case OpCode::kLe:
    case OpCode::kGt:
    case OpCode::kGe:
      return "compare";
    case OpCode::kExp:
      return "exponential";
    case OpCode::kExpm1:
      return "exponential_minus_one";
    case OpCode::kLog1p:
      return "log_plus_one";
    case OpCode::kSin:
      return "sine";
    case OpCode::kCos:
      return "cosine";
    case OpCode::kPow:
      return "power";
    default:
      return kernel::scalar_op(op).name;
  }
}

std::vector<Mutant> operation_mutants() {
  std::vector<Mutant> list;
  for (int i = 0; i < kernel::kScalarOpCount; ++i) {
    const auto op = static_cast<OpCode>(i);
    for (const ElementType type : kMutatedTypes) {
      if (!occurs(op, type)) continue;
      for (const KernelChange& change : kChanges) {
        if (!change.applies(op, type)) continue;
        const std::string_view name = kernel::scalar_op(op).name;
        const std::string_view of = tenon::name_of(type);
        list.push_back({fmt::format("kernel/{}/{}/{}", name, of, change.name),
                        fmt::format("{} of {} {}", name, of, change.text),
                        {fmt::format("op/{}/{}/*", hlo_op_of(op), of),
                         fmt::format("kernel/op/{}/{}", name, of)}});
      }
    }
  }
  return list;
}

int64_t change_operations(KernelEditor& editor, const std::string& mutant) {
  return editor.apply([&](KernelEditor& e, Node& node) {
    if (!kernel::is_scalar_op(node.op) || is_cast(node.op)) return false;
    const std::string prefix =
        fmt::format("kernel/{}/{}/", kernel::scalar_op(node.op).name, tenon::name_of(node.type));
    if (!mutant.starts_with(prefix)) return false;
    const auto* const change = std::ranges::find(
        kChanges, std::string_view(mutant).substr(prefix.size()), &KernelChange::name);
    return change != std::end(kChanges) && change->change(e, node);
  });
}

}  // namespace

const KernelMutants kOperationMutants = {operation_mutants, change_operations};

}  // namespace tenon::conformance
