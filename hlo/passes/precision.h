// The precisions of a product's operands.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Puts the precisions that a dot_general or a convolution states for its two operands in each
/// other's place, where the operands were exchanged.
inline void exchange_precisions(Instruction& product) {
  const auto* const stated = product.attr<ArrayAttr>(AttrKey::precision_config);
  if (stated == nullptr || stated->size() != 2) return;
  ArrayAttr exchanged = {stated->at(1), stated->at(0)};
  product.mutable_attributes().set(AttrKey::precision_config, std::move(exchanged));
}

}  // namespace tenon::hlo
