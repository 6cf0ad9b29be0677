#include "core/kernel/verification.h"

#include "core/kernel/verifier.h"

namespace tenon::kernel {

Dependence Dependences::vary(std::span<const ValueId> variables, const Dims& extents) {
  Dependence varying = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    const Dependence bit = next_bit_ < 63 ? Dependence{1} << next_bit_++ : 0;
    set(variables[d], bit == 0 ? kAll : bit);
    if (extents[d] > 1) varying |= bit;
  }
  return varying;
}

bool Verification::fail_as(ErrorCode code, std::string message) {
  if (status_.ok()) {
    status_ = Status(code, std::move(message));
    status_ = std::move(status_).at(at_ == kNone ? SourcePosition{kernel_.name, 1, 0}
                                                 : position_of(kernel_, at_));
    status_ = std::move(status_).in_stage("verify");
  }
  return false;
}

bool Verification::countable(const Dims& extents, int64_t most, std::string_view what) {
  const Result<int64_t> count = checked_element_count(extents);
  if (count && *count <= most) return true;
  return fail_as(ErrorCode::kResourceExhausted,
                 fmt::format("K0: {} has more than {} iterations", what, most));
}

}  // namespace tenon::kernel
