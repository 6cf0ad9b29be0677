// 64-bit integers as pairs of u32.
#include "core/kernel/legalize/expr.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

bool is_wide(ElementType type) { return type == kS64 || type == kU64; }

/// A 64-bit integer, its halves u32.
struct Pair {
  Expr low, high;
};

Expr one_if(Expr p) { return convert(p, kU32); }
Pair select(Expr p, Pair x, Pair y) {
  return {kernel::select(p, x.low, y.low), kernel::select(p, x.high, y.high)};
}
Pair like(Pair x, uint64_t number) {
  return {x.low.like(static_cast<int64_t>(number & 0xFFFFFFFF)),
          x.low.like(static_cast<int64_t>(number >> 32))};
}
Expr is_negative(Pair x) { return x.high >= int64_t{0x80000000}; }
Expr is_zero(Pair x) { return (x.low | x.high) == 0; }

Pair add(Pair x, Pair y) {
  const Expr low = x.low + y.low;
  return {low, x.high + y.high + one_if(low < x.low)};
}
Pair subtract(Pair x, Pair y) { return {x.low - y.low, x.high - y.high - one_if(x.low < y.low)}; }
Pair negate(Pair x) { return subtract(like(x, 0), x); }
Pair magnitude(Pair x) { return select(is_negative(x), negate(x), x); }

Pair multiply(Pair x, Pair y) {
  return {x.low * y.low, multiply_high(x.low, y.low) + x.low * y.high + x.high * y.low};
}

/// The high half of the product of unsigned numbers, by words.
Pair high_half(Pair x, Pair y) {
  const auto product = [](Expr a, Expr b) { return Pair{a * b, multiply_high(a, b)}; };
  const auto word = [](Expr e) { return Pair{e, e.like(0)}; };
  const Pair cross = product(x.low, y.high);
  const Pair other = product(x.high, y.low);
  // None of these sums carries out of 64 bits.
  const Pair first = add(cross, word(multiply_high(x.low, y.low)));
  const Pair second = add(other, word(first.low));
  return add(add(product(x.high, y.high), word(first.high)), word(second.high));
}
Pair high_half(Pair x, Pair y, bool is_signed) {
  const Pair product = high_half(x, y);
  if (!is_signed) return product;
  const Pair zero = like(x, 0);
  return subtract(subtract(product, select(is_negative(x), y, zero)),
                  select(is_negative(y), x, zero));
}

// --- Shifts, by amounts as the kernel IR has them: all of the amount counts

/// Amounts from 64 on are 64.
Expr amount_of(Pair y) { return kernel::select(either(y.high != 0, y.low > 64), 64, y.low); }

// A shift of 32 bits by 32 or more gives 0, by a number below zero too.
Pair shift_left(Pair x, Expr n) {
  const Expr rest = n.like(32) - n;
  return {x.low << n, (x.high << n) | (x.low >> rest) | (x.low << (n - 32))};
}
Pair shift_right(Pair x, Expr n) {
  const Expr rest = n.like(32) - n;
  return {(x.low >> n) | (x.high << rest) | (x.high >> (n - 32)), x.high >> n};
}
Pair shift_arithmetic(Pair x, Expr n) {
  const Expr rest = n.like(32) - n;
  const Expr near = (x.low >> n) | (x.high << rest);
  return {kernel::select(n < 32, near, sar(x.high, n - 32)), sar(x.high, n)};
}
Pair rotate(Pair x, Pair y) {
  const Expr n = y.low & 63;
  const Pair left = shift_left(x, n);
  const Pair right = shift_right(x, n.like(64) - n);
  return {left.low | right.low, left.high | right.high};
}

// --- Comparisons

Expr equal(Pair x, Pair y) { return both(x.low == y.low, x.high == y.high); }
Expr less(Pair x, Pair y, bool is_signed) {
  const auto top = [&](Pair p) { return is_signed ? bitcast(p.high, kS32) : p.high; };
  return either(top(x) < top(y), both(x.high == y.high, x.low < y.low));
}
Expr compare(OpCode code, Pair x, Pair y, bool is_signed) {
  switch (code) {
    case OpCode::kEq:
      return equal(x, y);
    case OpCode::kNe:
      return complement(equal(x, y));
    case OpCode::kLt:
      return less(x, y, is_signed);
    case OpCode::kLe:
      return complement(less(y, x, is_signed));
    case OpCode::kGt:
      return less(y, x, is_signed);
    default:
      return complement(less(x, y, is_signed));
  }
}

// --- Division, a bit of the quotient at a time

struct Division {
  Pair quotient, remainder;
};
/// By zero: all ones, and the dividend.
Division divide_unsigned(Builder& b, Pair x, Pair y) {
  const Expr zero = x.low.like(0);
  const Values inits = {x.low.id, x.high.id, zero.id, zero.id};
  const Values end = b.for_loop(b.index(0), b.index(64), 1, inits, [&](const Values& a) {
    // The dividend leaves to the left as the quotient comes in from the right.
    const Pair bits = {{&b, a[1]}, {&b, a[2]}};
    const Pair rest = {{&b, a[3]}, {&b, a[4]}};
    const Expr carry = rest.high >> 31;
    const Pair next = {(rest.low << 1) | (bits.high >> 31), (rest.high << 1) | (rest.low >> 31)};
    const Expr fits = either(carry != 0, complement(less(next, y, false)));
    const Pair left = select(fits, subtract(next, y), next);
    const Pair moved = {(bits.low << 1) | one_if(fits), (bits.high << 1) | (bits.low >> 31)};
    return Values{moved.low.id, moved.high.id, left.low.id, left.high.id};
  });
  return {{{&b, end[0]}, {&b, end[1]}}, {{&b, end[2]}, {&b, end[3]}}};
}
Pair divide(Builder& b, OpCode code, Pair x, Pair y, bool is_signed) {
  if (!is_signed) {
    const Division d = divide_unsigned(b, x, y);
    return code == OpCode::kDiv ? d.quotient : d.remainder;
  }
  const Division d = divide_unsigned(b, magnitude(x), magnitude(y));
  if (code == OpCode::kRem) return select(is_negative(x), negate(d.remainder), d.remainder);
  const Expr opposite = is_negative(x) != is_negative(y);
  const Pair quotient = select(opposite, negate(d.quotient), d.quotient);
  return select(is_zero(y), like(x, ~uint64_t{0}), quotient);
}

// --- Conversions

Pair from_narrow(Expr x) {
  if (x.is_signed()) {
    const Expr word = convert(x, kS32);
    return {bitcast(word, kU32), bitcast(sar(word, 31), kU32)};
  }
  const Expr word = convert(x, kU32);
  return {word, word.like(0)};
}

/// 2^n for exponents of normal numbers, n u32.
Expr power_of_two(Expr n) { return bitcast((n + 127) << 23, kF32); }

/// Rounded once: the highest 32 bits, the rest in the lowest of them.
Expr to_f32(Pair x, bool is_signed) {
  const Pair size = is_signed ? magnitude(x) : x;
  const Expr n = clz(size.high);
  const Pair top = shift_left(size, n);
  const Expr word = top.high | one_if(top.low != 0);
  const Expr value = convert(word, kF32) * power_of_two(n.like(32) - n);
  const Expr small = size.high == 0;
  const Expr number = kernel::select(small, convert(size.low, kF32), value);
  if (!is_signed) return number;
  return kernel::select(is_negative(x), number.op(OpCode::kNeg), number);
}

/// Toward zero, saturated; NaN gives 0.
Pair from_f32(Expr x, bool is_signed) {
  const Expr bits = bitcast(x, kU32);
  const Expr m = bits & 0x7FFFFFFF;
  const Expr exponent = m >> 23;
  const Expr significand = (m & 0x7FFFFF) | 0x800000;
  const Pair word = {significand, significand.like(0)};
  const Pair zero = like(word, 0);
  const Expr left = kernel::select(exponent >= 150, exponent - 150, 0);
  const Expr right = kernel::select(exponent >= 150, 0, exponent.like(150) - exponent);
  const Pair size =
      select(exponent >= 150, shift_left(word, left), {significand >> right, zero.low});
  const Expr too_large = exponent >= (is_signed ? 127 + 63 : 127 + 64);
  const Expr negative = bits >= int64_t{0x80000000};
  const uint64_t most = is_signed ? ~uint64_t{0} >> 1 : ~uint64_t{0};
  const Pair positive = select(too_large, like(word, most), size);
  const Pair below =
      is_signed ? select(too_large, like(word, uint64_t{1} << 63), negate(size)) : zero;
  return select(m > 0x7F800000, zero, select(negative, below, positive));
}

class Splitter : public Rewriter {
 public:
  explicit Splitter(const Kernel& kernel) : Rewriter(kernel), ranges_(kernel) {}

 private:
  std::vector<ElementType> types_for(ElementType type) const override {
    if (is_wide(type)) return {kU32, kU32};
    return {type};
  }
  Values constant(ElementType type, uint64_t bits) override {
    if (!is_wide(type)) return Rewriter::constant(type, bits);
    return {to().constant(kU32, bits & 0xFFFFFFFF), to().constant(kU32, bits >> 32)};
  }
  Memory memory_for(const Memory& m) const override {
    if (!is_wide(m.type)) return m;
    Memory result = m;
    result.type = kU32;
    result.dims.push_back(2);
    for (int64_t& stride : result.strides) stride *= 2;
    if (!result.strides.empty()) result.strides.push_back(1);
    return result;
  }

  Expr expr(ValueId value) { return {&to(), map(value)}; }
  Pair pair(ValueId value) {
    const Values v = parts(value);
    return {{&to(), v[0]}, {&to(), v[1]}};
  }
  void set_pair(ValueId original, Pair p) { set_parts(original, {p.low.id, p.high.id}); }

  void node(const Node& n) override {
    if (n.op == OpCode::kLoad && is_wide(n.type)) return load(n);
    if (n.op == OpCode::kStore && is_wide(n.type)) return store(n);
    if (!is_scalar_op(n.op)) return copy_node(n);
    const ElementType from = type_of_operand(n);
    if (!is_wide(from) && !is_wide(n.type)) return copy_node(n);
    if (n.op == OpCode::kConvert || n.op == OpCode::kBitcast) return convert_node(n, from);
    if (is_comparison(n.op)) {
      const Expr p = compare(n.op, pair(n.operands[0]), pair(n.operands[1]), from == kS64);
      return set(n.results[0], p.id);
    }
    set_pair(n.results[0], scalar(n));
  }

  Values element(const Node& n, size_t first, int64_t half) {
    const Values operands = parts(n.operands);
    Values indices(operands.begin() + static_cast<std::ptrdiff_t>(first), operands.end());
    indices.push_back(to().index(half));
    return indices;
  }
  void load(const Node& n) {
    const MemoryId m = memory(n.memories[0]);
    const ValueId low = to().load(m, element(n, 0, 0));
    set_parts(n.results[0], {low, to().load(m, element(n, 0, 1))});
  }
  void store(const Node& n) {
    const MemoryId m = memory(n.memories[0]);
    const Values operands = parts(n.operands);  // The value's halves come first.
    to().store(operands[0], m, element(n, 2, 0));
    to().store(operands[1], m, element(n, 2, 1));
  }

  void convert_node(const Node& n, ElementType from) {
    const ValueId result = n.results[0];
    const ValueId operand = n.operands[0];
    if (is_wide(from) && is_wide(n.type)) return set_pair(result, pair(operand));
    if (is_wide(n.type)) {
      return set_pair(result, from == kF32 ? from_f32(expr(operand), n.type == kS64)
                                           : from_narrow(expr(operand)));
    }
    const Pair x = pair(operand);
    if (n.type == kF32) return set(result, to_f32(x, from == kS64).id);
    if (is_pred(n.type)) return set(result, complement(is_zero(x)).id);
    // The range of a number that is not negative is stated of the word, whose conversion it proves.
    const Range& range = ranges_.of(operand);
    const Expr word = range.low < 0 ? bitcast(x.low, kS32) : x.low;
    set(result, convert(known_within(word, range), n.type).id);
  }

  Pair scalar(const Node& n) {
    const bool is_signed = n.type == kS64;
    if (n.op == OpCode::kSelect) {
      return select(expr(n.operands[0]), pair(n.operands[1]), pair(n.operands[2]));
    }
    const Pair x = pair(n.operands[0]);
    const Pair y = n.operands.size() > 1 ? pair(n.operands[1]) : x;
    const auto words = [&](OpCode code) {
      return Pair{x.low.op(code, y.low), x.high.op(code, y.high)};
    };
    switch (n.op) {
      case OpCode::kAdd:
        return add(x, y);
      case OpCode::kSub:
        return subtract(x, y);
      case OpCode::kMul:
        return multiply(x, y);
      case OpCode::kMulHi:
        return high_half(x, y, is_signed);
      case OpCode::kDiv:
      case OpCode::kRem:
        return divide(to(), n.op, x, y, is_signed);
      case OpCode::kMin:
        return select(less(x, y, is_signed), x, y);
      case OpCode::kMax:
        return select(less(x, y, is_signed), y, x);
      case OpCode::kNeg:
        return negate(x);
      case OpCode::kAbs:
        return is_signed ? magnitude(x) : x;
      case OpCode::kAnd:
      case OpCode::kOr:
      case OpCode::kXor:
        return words(n.op);
      case OpCode::kNot:
        return {complement(x.low), complement(x.high)};
      case OpCode::kShl:
        return shift_left(x, amount_of(y));
      case OpCode::kShr:
        return shift_right(x, amount_of(y));
      case OpCode::kSar:
        return shift_arithmetic(x, amount_of(y));
      case OpCode::kRotl:
        return rotate(x, y);
      case OpCode::kClz: {
        const Expr in_low = clz(x.low) + 32;
        return {kernel::select(x.high == 0, in_low, clz(x.high)), x.low.like(0)};
      }
      default:  // popcount
        return {x.low.op(OpCode::kPopcount) + x.high.op(OpCode::kPopcount), x.low.like(0)};
    }
  }

  Ranges ranges_;
};

}  // namespace

Kernel split_integers(const Kernel& kernel) { return Splitter(kernel).run(); }

}  // namespace tenon::kernel
