#include "hlo/expand/needs_expansion.h"

#include <algorithm>
#include <bit>

#include "hlo/ops/ops.h"

namespace tenon::hlo::expand {

bool needs_expansion(const Instruction& op) {
  if (touches_quantized(op)) {
    return op.info().category != Category::kControl && !works_on_storage(op);
  }
  if (op.code() == OpCode::kFft) {
    const I64s& length = op.i64s(AttrKey::fft_length);
    return !std::all_of(length.begin(), length.end(),
                        [](int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); });
  }
  return op.info().is_decomposable();
}

Values expand(Builder& b, const Instruction& op) {
  if (touches_quantized(op)) return quantized(b, op);
  if (!op.info().is_decomposable()) return internal_error("{} has no expansion", op.name());
  return op.info().expand(b, op);
}

}  // namespace tenon::hlo::expand
