// The verifier: every rule of docs/kernel-ir.md that can be checked without running the kernel.
#pragma once

#include "core/kernel/kernel.h"
#include "core/types/status.h"

namespace tenon::kernel {

/// OK, or the first violation: "softmax:12: error: K1: …", where the line is that of the text which
/// the kernel was parsed from, else of print(kernel).
Status verify(const Kernel& kernel);

/// Where `node` stands, in the sense above.
SourcePosition position_of(const Kernel& kernel, NodeId node);

}  // namespace tenon::kernel
