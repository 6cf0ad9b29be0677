#include "core/kernel/verify/verification.h"

#include "core/kernel/verify/verifier.h"

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

Violation violation_of(const Kernel& kernel, NodeId at, KernelRule rule, ErrorCode code,
                       std::string_view message) {
  Status status(code, fmt::format("K{}: {}", static_cast<int>(rule), message));
  status = std::move(status).at(at == kNone ? SourcePosition{kernel.name, 1, 0}
                                            : position_of(kernel, at));
  return {rule, std::move(status).in_stage("verify")};
}

bool Verification::fail_as(KernelRule rule, ErrorCode code, std::string_view message) {
  if (!violation_) violation_ = violation_of(kernel_, at_, rule, code, message);
  return false;
}

bool Verification::countable(const Dims& extents, int64_t most, std::string_view what) {
  const Result<int64_t> count = checked_element_count(extents);
  if (count && *count <= most) return true;
  return fail_as(KernelRule::kK0, ErrorCode::kResourceExhausted,
                 fmt::format("{} has more than {} iterations", what, most));
}

}  // namespace tenon::kernel
