// Promotion of elements to the type in which a reduction's body computes.
#pragma once

#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

/// `x` converted to the type of the body's parameters: since StableHLO 0.17 a body may promote its
/// elements.
struct Promotion {
  ElementContext context;
  ElementFunction function = nullptr;
  Scalar operator()(const Scalar& x) const { return function ? function(context, &x) : x; }
};

inline Promotion promotion(const Evaluator& e, ElementType from, ElementType to) {
  Promotion p;
  if (from == to) return p;
  p.context.operand_type = from;
  p.context.result_type = to;
  p.context.wide = e.wide();
  p.function = scalar::convert.of(p.context);
  return p;
}

}  // namespace tenon::hlo
