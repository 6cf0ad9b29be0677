// core/kernel/verify/: the verifier of kernels: the numbered K rules.
//
// The verifier: every rule of docs/kernel-ir.md that can be checked without running the kernel.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// The rules of docs/kernel-ir.md.
enum class KernelRule : uint8_t { kK0, kK1, kK2, kK3, kK4, kK5, kK6, kK7, kK8, kK9, kK10 };

struct Violation {
  KernelRule rule = KernelRule::kK0;
  Status status;  ///< "softmax:12: error: K1: …", as from verify().
};

/// The first violation that the verifier finds, if any.
std::optional<Violation> find_violation(const Kernel& kernel);

/// The number of kernels verified since the process began; for tests.
int64_t verified_count();

/// OK, or the first violation: "softmax:12: error: K1: …". The line is that of the text from which
/// the kernel was parsed, or else of print(kernel).
Status verify(const Kernel& kernel);

/// The position of `node`, with the line as in verify().
SourcePosition position_of(const Kernel& kernel, NodeId node);

}  // namespace tenon::kernel
