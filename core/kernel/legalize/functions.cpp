// Expands math functions and fma into simpler operations.
#include "core/kernel/legalize/expr.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/legalize/round_to_odd.h"
#include "core/kernel/legalize/soft_f64.h"
#include "core/kernel/math/math.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

bool lacks_math(const Node& n, const TargetFeatures& features) {
  return is_math(n.op) && !features.has_math(n.op, n.type);
}
bool lacks_fma(const Node& n, const TargetFeatures& features) {
  return n.op == OpCode::kFma && !features.fma;
}

class FunctionExpander : public Rewriter {
 public:
  FunctionExpander(const Kernel& kernel, const TargetFeatures& features)
      : Rewriter(kernel), features_(features) {}

 private:
  void node(const Node& n) override {
    if (lacks_math(n, features_)) return set(n.results[0], math(n));
    if (lacks_fma(n, features_)) {
      const Values v = map(n.operands);
      return set(n.results[0], fma(n.type, v).id);
    }
    copy_node(n);
  }

  // Expansions are of f32 and f64. They use fma, which may have to be expanded itself.
  ValueId math(const Node& n) {
    const ElementType wide = n.type == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
    Values v = map(n.operands);
    for (ValueId& each : v) each = to().convert(each, wide);
    const ValueId result = expand_math(to(), n.op, v[0], v.size() > 1 ? v[1] : kNone);
    return to().convert(result, n.type);
  }

  KernelExpr fma(ElementType type, const Values& v) {
    const KernelExpr x = {&to(), v[0]};
    const KernelExpr y = {&to(), v[1]};
    const KernelExpr z = {&to(), v[2]};
    if (type == ElementType::kF64) {
      const auto bits = [](KernelExpr e) { return bitcast(e, ElementType::kU64); };
      return bitcast(soft_f64_op(OpCode::kFma, bits(x), bits(y), bits(z)), type);
    }
    // The product is exact in f64. Its sum with z is rounded to odd, so that rounding it to f32
    // gives the result of a single rounding.
    const auto wide = [](KernelExpr e) { return convert(e, ElementType::kF64); };
    return convert(add_to_odd(wide(x) * wide(y), wide(z)), type);
  }

  const TargetFeatures& features_;
};

}  // namespace

Kernel without(const Kernel& kernel, const MathFunctions& functions) {
  TargetFeatures features;
  for (size_t t = 0; t < kElementTypeCount; ++t) {
    features.computed.insert(static_cast<ElementType>(t));
  }
  features.math = true;
  features.expanded = functions;
  return FunctionExpander(kernel, features).run();
}

Kernel expand_functions(Kernel kernel, const TargetFeatures& features) {
  const auto is_missing = [&](const Node& n) {
    return lacks_math(n, features) || lacks_fma(n, features);
  };
  // The expansion of a function may have an fma.
  for (int turn = 0; turn < 2 && std::ranges::any_of(kernel.nodes, is_missing); ++turn) {
    kernel = FunctionExpander(kernel, features).run();
  }
  return kernel;
}

}  // namespace tenon::kernel
