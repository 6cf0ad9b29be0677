// Expands single math functions, for a target that takes kernels as they are written. Apart from
// the legaliser, since the runtime library has this alone.
#include "core/kernel/legalize/legalize.h"
#include "core/kernel/math/math.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

class FunctionRemover : public Rewriter {
 public:
  FunctionRemover(const Kernel& kernel, const MathFunctions& functions)
      : Rewriter(kernel), functions_(functions) {}

 private:
  void node(const Node& n) override {
    if (!is_scalar_op(n.op) || !functions_.contains(n.op, n.type)) return copy_node(n);
    const ElementType type = n.type == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
    Values operands;
    for (const ValueId operand : n.operands) operands.push_back(to().convert(map(operand), type));
    const ValueId y = operands.size() > 1 ? operands[1] : kNone;
    set(n.results[0], to().convert(expand_math(to(), n.op, operands[0], y), n.type));
  }

  const MathFunctions& functions_;
};

}  // namespace

Kernel without(const Kernel& kernel, const MathFunctions& functions) {
  return FunctionRemover(kernel, functions).run();
}

}  // namespace tenon::kernel
