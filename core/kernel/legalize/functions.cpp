// Math functions and fma as operations that are simpler.
#include "core/kernel/legalize/expr.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/legalize/round_to_odd.h"
#include "core/kernel/legalize/soft_f64.h"
#include "core/kernel/math/math.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

class FunctionExpander : public Rewriter {
 public:
  FunctionExpander(const Kernel& kernel, const LegalForm& form) : Rewriter(kernel), form_(form) {}

 private:
  void node(const Node& n) override {
    if (is_scalar_op(n.op) && is_math(n.op) && !(form_.math && form_.computes(n.type))) {
      return set(n.results[0], math(n));
    }
    if (n.op == OpCode::kFma && !form_.fma) {
      const Values v = map(n.operands);
      return set(n.results[0], fma(n.type, v).id);
    }
    copy_node(n);
  }

  // Expansions use fma, which may need one itself.
  ValueId math(const Node& n) {
    const Values v = map(n.operands);
    return expand_math(to(), n.op, v[0], v.size() > 1 ? v[1] : kNone);
  }

  Expr fma(ElementType type, const Values& v) {
    const Expr x = {&to(), v[0]};
    const Expr y = {&to(), v[1]};
    const Expr z = {&to(), v[2]};
    if (type == ElementType::kF64) {
      const auto bits = [](Expr e) { return bitcast(e, ElementType::kU64); };
      return bitcast(soft_f64_op(OpCode::kFma, bits(x), bits(y), bits(z)), type);
    }
    // The product is exact in f64, and its sum with z, rounded to odd, rounds to f32 as if at once.
    const auto wide = [](Expr e) { return convert(e, ElementType::kF64); };
    return convert(add_to_odd(wide(x) * wide(y), wide(z)), type);
  }

  const LegalForm& form_;
};

}  // namespace

Kernel expand_functions(const Kernel& kernel, const LegalForm& form) {
  Kernel expanded = FunctionExpander(kernel, form).run();
  if (form.fma) return expanded;
  return FunctionExpander(expanded, form).run();
}

}  // namespace tenon::kernel
