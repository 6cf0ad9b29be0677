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

/// The element that a body combines with accumulator `k`, from the accumulator's type to that of
/// its own parameter: a float may be of another.
inline Promotion element_conversion(const Evaluator& e, const Computation& body, size_t k) {
  return promotion(e, body.parameter(k).type().element_type(),
                   body.parameter(body.parameter_count() / 2 + k).type().element_type());
}

}  // namespace tenon::hlo
