// Computes integers of less than 32 bits in 32 bits.
#include "core/kernel/legalize/expr.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/transform/rewriter.h"
#include "core/types/float_convert.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

bool is_narrow_integer(ElementType type) { return is_integer(type) && bit_width(type) < 32; }

/// A value is represented by the same number in s32 or u32.
class IntegerWidener : public Rewriter {
 public:
  IntegerWidener(const Kernel& kernel, const TargetFeatures& features)
      : Rewriter(kernel), features_(features), ranges_(kernel) {}

 private:
  bool widens(ElementType type) const {
    return is_narrow_integer(type) && !features_.computes(type);
  }
  ElementType wide(ElementType type) const {
    if (!widens(type)) return type;
    return is_signed_integer(type) ? kS32 : kU32;
  }
  std::vector<ElementType> types_for(ElementType type) const override { return {wide(type)}; }
  Values constant(ElementType type, uint64_t bits) override {
    return {to().constant(wide(type), bits)};
  }
  Memory memory_for(const Memory& m) const override {
    if (!widens(m.type) || bit_width(m.type) >= 8) return m;
    Memory result = m;
    result.type = is_signed_integer(m.type) ? kS8 : kU8;
    if (m.packed) {  // Bytes with several elements each.
      const int64_t in_byte = 8 / bit_width(m.type);
      result.packed = false;
      result.dims = {(m.span() + in_byte - 1) / in_byte};
      result.strides = {};
    }
    return result;
  }

  KernelExpr expr(ValueId value) { return {&to(), map(value)}; }

  /// The low bits of x as a number of `type`. Shifts are unsigned: if x is an index now, a signed
  /// shift could not be proved to fit (K10).
  KernelExpr wrapped(KernelExpr x, ElementType type) {
    const int spare = 32 - bit_width(type);
    if (is_signed_integer(type)) return sar(bitcast(bitcast(x, kU32) << spare, kS32), spare);
    return x & ((int64_t{1} << bit_width(type)) - 1);
  }
  /// Only the low bits, as u32.
  KernelExpr pattern(KernelExpr x, ElementType type) {
    return bitcast(x, kU32) & ((int64_t{1} << bit_width(type)) - 1);
  }
  KernelExpr from_pattern(KernelExpr x, ElementType type) {
    return wrapped(bitcast(x, wide(type)), type);
  }

  void node(const Node& n) override {
    if (n.op == OpCode::kLoad && widens(n.type)) return load(n);
    if (n.op == OpCode::kStore && widens(n.type)) return store(n);
    if (!is_scalar_op(n.op)) return copy_node(n);
    const ElementType from = type_of_operand(n);
    if (!widens(from) && !widens(n.type)) return copy_node(n);
    if (n.op == OpCode::kConvert) return set(n.results[0], converted(n, from).id);
    if (n.op == OpCode::kBitcast) {
      const KernelExpr x = expr(n.operands[0]);
      return set(n.results[0], reinterpreted(x, from, n.type).id);
    }
    set(n.results[0], scalar(n, from).id);
  }

  void load(const Node& n) {
    const Memory& m = from().memory(n.memories[0]);
    const MemoryId source = memory(n.memories[0]);
    const Values indices = map(n.operands);
    if (!m.packed) {
      const KernelExpr x = convert(KernelExpr{&to(), to().load(source, indices)}, wide(n.type));
      return set(n.results[0], bit_width(n.type) < 8 ? wrapped(x, n.type).id : x.id);
    }
    const Dims strides = m.resolved_strides();
    ValueId linear = to().index(0);
    for (size_t d = 0; d < indices.size(); ++d) {
      const ValueId index = bounded_index(to(), indices[d], ranges_.of(n.operands[d]), m.dims[d]);
      linear = to().add(linear, to().mul(index, to().index(strides[d])));
    }
    const int64_t in_byte = 8 / bit_width(n.type);
    const KernelExpr place = {&to(), linear};
    const KernelExpr byte = {&to(), to().load(source, {place.op(OpCode::kDiv, in_byte).id})};
    const KernelExpr bit = convert(place.op(OpCode::kRem, in_byte) * bit_width(n.type), kU32);
    set(n.results[0], from_pattern(bitcast(convert(byte, wide(n.type)), kU32) >> bit, n.type).id);
  }
  void store(const Node& n) {
    const MemoryId target = memory(n.memories[0]);
    Values operands = map(n.operands);
    const KernelExpr value = convert({&to(), operands[0]}, to().kernel().memory(target).type);
    operands.erase(operands.begin());
    to().store(value.id, target, operands);
  }

  KernelExpr reinterpreted(KernelExpr x, ElementType from, ElementType to) {
    if (widens(from) && widens(to)) return from_pattern(pattern(x, from), to);
    // The other type is a supported float or an integer: convert through the narrow type itself.
    if (widens(from)) return bitcast(convert(x, from), to);
    return convert(bitcast(x, to), wide(to));
  }

  KernelExpr converted(const Node& n, ElementType from) {
    const KernelExpr x = expr(n.operands[0]);
    if (!widens(n.type)) {
      // Clamped before widening, because afterwards the result of a loop could not be proved to fit
      // an index.
      return convert(is_integer(n.type) ? known_within(x, ranges_.of(n.operands[0])) : x, n.type);
    }
    if (is_float(from)) {  // Saturated.
      const KernelExpr value = convert(x, wide(n.type));
      return min(max(value, value.like(integer_min(n.type))), value.like(integer_max(n.type)));
    }
    return wrapped(convert(x, wide(n.type)), n.type);
  }

  KernelExpr scalar(const Node& n, ElementType type) {
    const KernelExpr x = expr(n.operands[0]);
    if (n.op == OpCode::kSelect) return select(x, expr(n.operands[1]), expr(n.operands[2]));
    const KernelExpr y = n.operands.size() > 1 ? expr(n.operands[1]) : x;
    if (is_comparison(n.op)) return x.op(n.op, y);
    const int width = bit_width(type);
    const auto amount = [&] { return pattern(y, type); };
    const auto by = [&](KernelExpr bits) { return bitcast(bits, wide(type)); };
    switch (n.op) {
      case OpCode::kMulHi:  // The product fits in 32 bits.
        return is_signed_integer(type) ? sar(x * y, width) : (x * y) >> width;
      case OpCode::kShl:
        return select(amount() >= width, 0, wrapped(x << by(amount()), type));
      case OpCode::kShr:
        return from_pattern(pattern(x, type) >> amount(), type);
      case OpCode::kSar:
        // The sign is the type's highest bit, also for unsigned types.
        return from_pattern(
            bitcast(sar(sar(bitcast(x, kS32) << (32 - width), 32 - width), bitcast(amount(), kS32)),
                    kU32),
            type);
      case OpCode::kRotl: {
        const KernelExpr p = pattern(x, type);
        const KernelExpr left = amount() & (width - 1);
        return from_pattern((p << left) | (p >> (left.like(width) - left)), type);
      }
      case OpCode::kClz:
        return wrapped(by(clz(pattern(x, type)) - (32 - width)), type);
      case OpCode::kPopcount:
        return wrapped(by(pattern(x, type).op(OpCode::kPopcount)), type);
      default:
        return wrapped(n.operands.size() == 1 ? x.op(n.op) : x.op(n.op, y), type);
    }
  }

  const TargetFeatures& features_;
  Ranges ranges_;
};

}  // namespace

Kernel widen_integers(Kernel kernel, const TargetFeatures& features) {
  return any_type(kernel, is_narrow_integer) ? IntegerWidener(kernel, features).run()
                                             : std::move(kernel);
}

}  // namespace tenon::kernel
