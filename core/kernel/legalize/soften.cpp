// Replaces f64 by patterns of u64.
#include "core/kernel/legalize/passes.h"
#include "core/kernel/legalize/soft_f64.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

using enum ElementType;

class Softener : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  std::vector<ElementType> types_for(ElementType type) const override {
    return {type == kF64 ? kU64 : type};
  }
  Values constant(ElementType type, uint64_t bits) override {
    return {to().constant(types_for(type)[0], bits)};
  }
  Memory memory_for(const Memory& m) const override {
    Memory result = m;
    result.type = types_for(m.type)[0];
    return result;
  }

  void node(const Node& n) override {
    if (!is_scalar_op(n.op)) return copy_node(n);
    const ElementType from = type_of_operand(n);
    if (from != kF64 && n.type != kF64) return copy_node(n);
    set(n.results[0], scalar(n, from).id);
  }

  KernelExpr scalar(const Node& n, ElementType from) {
    const auto operand = [&](size_t i) {
      return KernelExpr{&to(), i < n.operands.size() ? map(n.operands[i]) : kNone};
    };
    const KernelExpr x = operand(0);
    if (n.op == OpCode::kSelect) return select(x, operand(1), operand(2));
    if (n.op == OpCode::kBitcast) return bitcast(x, types_for(n.type)[0]);
    if (n.op != OpCode::kConvert) return soft_f64_op(n.op, x, operand(1), operand(2));
    if (from == n.type) return x;
    return from == kF64 ? soft_f64_to(x, n.type) : soft_f64_from(x);
  }
};

}  // namespace

Kernel soften_f64(Kernel kernel) {
  const auto is_f64 = [](ElementType type) { return type == kF64; };
  return any_type(kernel, is_f64) ? Softener(kernel).run() : std::move(kernel);
}

}  // namespace tenon::kernel
