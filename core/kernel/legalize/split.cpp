// Replaces 64-bit integers by pairs of u32.
#include "core/kernel/legalize/expr.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

bool is_wide(ElementType type) { return type == kS64 || type == kU64; }

/// A 64-bit integer, its halves u32.
struct WordPair {
  KernelExpr low, high;
};

KernelExpr one_if(KernelExpr p) { return convert(p, kU32); }
WordPair select(KernelExpr p, WordPair x, WordPair y) {
  return {kernel::select(p, x.low, y.low), kernel::select(p, x.high, y.high)};
}
WordPair like(WordPair x, uint64_t number) {
  return {x.low.like(static_cast<int64_t>(number & 0xFFFFFFFF)),
          x.low.like(static_cast<int64_t>(number >> 32))};
}
KernelExpr is_negative(WordPair x) { return x.high >= int64_t{0x80000000}; }
KernelExpr is_zero(WordPair x) { return (x.low | x.high) == 0; }

WordPair add(WordPair x, WordPair y) {
  const KernelExpr low = x.low + y.low;
  return {low, x.high + y.high + one_if(low < x.low)};
}
WordPair subtract(WordPair x, WordPair y) {
  return {x.low - y.low, x.high - y.high - one_if(x.low < y.low)};
}
WordPair negate(WordPair x) { return subtract(like(x, 0), x); }
WordPair magnitude(WordPair x) { return select(is_negative(x), negate(x), x); }

WordPair multiply(WordPair x, WordPair y) {
  return {x.low * y.low, multiply_high(x.low, y.low) + x.low * y.high + x.high * y.low};
}

/// The high half of an unsigned product, computed by words.
WordPair high_half(WordPair x, WordPair y) {
  const auto product = [](KernelExpr a, KernelExpr b) {
    return WordPair{a * b, multiply_high(a, b)};
  };
  const auto word = [](KernelExpr e) { return WordPair{e, e.like(0)}; };
  const WordPair cross = product(x.low, y.high);
  const WordPair other = product(x.high, y.low);
  // None of these sums carries out of 64 bits.
  const WordPair first = add(cross, word(multiply_high(x.low, y.low)));
  const WordPair second = add(other, word(first.low));
  return add(add(product(x.high, y.high), word(first.high)), word(second.high));
}
WordPair high_half(WordPair x, WordPair y, bool is_signed) {
  const WordPair product = high_half(x, y);
  if (!is_signed) return product;
  const WordPair zero = like(x, 0);
  return subtract(subtract(product, select(is_negative(x), y, zero)),
                  select(is_negative(y), x, zero));
}

// --- Shifts, by amounts as in the kernel IR: every bit of the amount counts

/// The amount as one word; amounts of 64 and more become 64.
KernelExpr amount_of(WordPair y) {
  return kernel::select(either(y.high != 0, y.low > 64), 64, y.low);
}

// A shift of 32 bits by 32 or more, or by a negative number, gives 0.
WordPair shift_left(WordPair x, KernelExpr n) {
  const KernelExpr rest = n.like(32) - n;
  return {x.low << n, (x.high << n) | (x.low >> rest) | (x.low << (n - 32))};
}
WordPair shift_right(WordPair x, KernelExpr n) {
  const KernelExpr rest = n.like(32) - n;
  return {(x.low >> n) | (x.high << rest) | (x.high >> (n - 32)), x.high >> n};
}
WordPair shift_arithmetic(WordPair x, KernelExpr n) {
  const KernelExpr rest = n.like(32) - n;
  const KernelExpr near = (x.low >> n) | (x.high << rest);
  return {kernel::select(n < 32, near, sar(x.high, n - 32)), sar(x.high, n)};
}
WordPair rotate(WordPair x, WordPair y) {
  const KernelExpr n = y.low & 63;
  const WordPair left = shift_left(x, n);
  const WordPair right = shift_right(x, n.like(64) - n);
  return {left.low | right.low, left.high | right.high};
}

// --- Comparisons

KernelExpr equal(WordPair x, WordPair y) { return both(x.low == y.low, x.high == y.high); }
KernelExpr less(WordPair x, WordPair y, bool is_signed) {
  const auto top = [&](WordPair p) { return is_signed ? bitcast(p.high, kS32) : p.high; };
  return either(top(x) < top(y), both(x.high == y.high, x.low < y.low));
}
KernelExpr compare(OpCode code, WordPair x, WordPair y, bool is_signed) {
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

// --- Division, one bit of the quotient at a time

struct Division {
  WordPair quotient, remainder;
};
/// By zero: all ones, and the dividend.
Division divide_unsigned(Builder& b, WordPair x, WordPair y) {
  const KernelExpr zero = x.low.like(0);
  const Values inits = {x.low.id, x.high.id, zero.id, zero.id};
  const Values end = b.for_loop(b.index(0), b.index(64), 1, inits, [&](const Values& a) {
    // The dividend is shifted out to the left while the quotient is shifted in from the right.
    const WordPair bits = {{&b, a[1]}, {&b, a[2]}};
    const WordPair rest = {{&b, a[3]}, {&b, a[4]}};
    const KernelExpr carry = rest.high >> 31;
    const WordPair next = {(rest.low << 1) | (bits.high >> 31),
                           (rest.high << 1) | (rest.low >> 31)};
    const KernelExpr fits = either(carry != 0, complement(less(next, y, false)));
    const WordPair left = select(fits, subtract(next, y), next);
    const WordPair moved = {(bits.low << 1) | one_if(fits), (bits.high << 1) | (bits.low >> 31)};
    return Values{moved.low.id, moved.high.id, left.low.id, left.high.id};
  });
  return {{{&b, end[0]}, {&b, end[1]}}, {{&b, end[2]}, {&b, end[3]}}};
}
WordPair divide(Builder& b, OpCode code, WordPair x, WordPair y, bool is_signed) {
  if (!is_signed) {
    const Division d = divide_unsigned(b, x, y);
    return code == OpCode::kDiv ? d.quotient : d.remainder;
  }
  const Division d = divide_unsigned(b, magnitude(x), magnitude(y));
  if (code == OpCode::kRem) return select(is_negative(x), negate(d.remainder), d.remainder);
  const KernelExpr opposite = is_negative(x) != is_negative(y);
  const WordPair quotient = select(opposite, negate(d.quotient), d.quotient);
  return select(is_zero(y), like(x, ~uint64_t{0}), quotient);
}

// --- Conversions

WordPair from_narrow(KernelExpr x) {
  if (x.is_signed()) {
    const KernelExpr word = convert(x, kS32);
    return {bitcast(word, kU32), bitcast(sar(word, 31), kU32)};
  }
  const KernelExpr word = convert(x, kU32);
  return {word, word.like(0)};
}

/// 2^n for exponents of normal numbers, n u32.
KernelExpr power_of_two(KernelExpr n) { return bitcast((n + 127) << 23, kF32); }

/// Rounds once: converts the highest 32 bits, with the rest as a sticky lowest bit.
KernelExpr to_f32(WordPair x, bool is_signed) {
  const WordPair size = is_signed ? magnitude(x) : x;
  const KernelExpr n = clz(size.high);
  const WordPair top = shift_left(size, n);
  const KernelExpr word = top.high | one_if(top.low != 0);
  const KernelExpr value = convert(word, kF32) * power_of_two(n.like(32) - n);
  const KernelExpr small = size.high == 0;
  const KernelExpr number = kernel::select(small, convert(size.low, kF32), value);
  if (!is_signed) return number;
  return kernel::select(is_negative(x), number.op(OpCode::kNeg), number);
}

/// Toward zero, saturated; NaN gives 0.
WordPair from_f32(KernelExpr x, bool is_signed) {
  const KernelExpr bits = bitcast(x, kU32);
  const KernelExpr m = bits & 0x7FFFFFFF;
  const KernelExpr exponent = m >> 23;
  const KernelExpr significand = (m & 0x7FFFFF) | 0x800000;
  const WordPair word = {significand, significand.like(0)};
  const WordPair zero = like(word, 0);
  const KernelExpr left = kernel::select(exponent >= 150, exponent - 150, 0);
  const KernelExpr right = kernel::select(exponent >= 150, 0, exponent.like(150) - exponent);
  const WordPair size =
      select(exponent >= 150, shift_left(word, left), {significand >> right, zero.low});
  const KernelExpr too_large = exponent >= (is_signed ? 127 + 63 : 127 + 64);
  const KernelExpr negative = bits >= int64_t{0x80000000};
  const uint64_t most = is_signed ? ~uint64_t{0} >> 1 : ~uint64_t{0};
  const WordPair positive = select(too_large, like(word, most), size);
  const WordPair below =
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

  KernelExpr expr(ValueId value) { return {&to(), map(value)}; }
  WordPair pair(ValueId value) { return {{&to(), part(value, 0)}, {&to(), part(value, 1)}}; }
  void set_pair(ValueId original, WordPair p) { set_parts(original, {p.low.id, p.high.id}); }

  void node(const Node& n) override {
    if (n.op == OpCode::kLoad && is_wide(n.type)) return load(n);
    if (n.op == OpCode::kStore && is_wide(n.type)) return store(n);
    if (!is_scalar_op(n.op)) return copy_node(n);
    const ElementType from = type_of_operand(n);
    if (!is_wide(from) && !is_wide(n.type)) return copy_node(n);
    if (n.op == OpCode::kConvert || n.op == OpCode::kBitcast) return convert_node(n, from);
    if (is_comparison(n.op)) {
      const KernelExpr p = compare(n.op, pair(n.operands[0]), pair(n.operands[1]), from == kS64);
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
    const WordPair x = pair(operand);
    if (n.type == kF32) return set(result, to_f32(x, from == kS64).id);
    if (is_pred(n.type)) return set(result, complement(is_zero(x)).id);
    // If a number is not negative, its range is stated of the low word, which proves the word's
    // conversion.
    const IntegerRange& range = ranges_.of(operand);
    const KernelExpr word = range.low < 0 ? bitcast(x.low, kS32) : x.low;
    set(result, convert(known_within(word, range), n.type).id);
  }

  WordPair scalar(const Node& n) {
    const bool is_signed = n.type == kS64;
    if (n.op == OpCode::kSelect) {
      return select(expr(n.operands[0]), pair(n.operands[1]), pair(n.operands[2]));
    }
    const WordPair x = pair(n.operands[0]);
    const WordPair y = n.operands.size() > 1 ? pair(n.operands[1]) : x;
    const auto words = [&](OpCode code) {
      return WordPair{x.low.op(code, y.low), x.high.op(code, y.high)};
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
        const KernelExpr in_low = clz(x.low) + 32;
        return {kernel::select(x.high == 0, in_low, clz(x.high)), x.low.like(0)};
      }
      default:  // popcount
        return {x.low.op(OpCode::kPopcount) + x.high.op(OpCode::kPopcount), x.low.like(0)};
    }
  }

  Ranges ranges_;
};

}  // namespace

Kernel split_integers(Kernel kernel) {
  return any_type(kernel, is_wide) ? Splitter(kernel).run() : std::move(kernel);
}

}  // namespace tenon::kernel
