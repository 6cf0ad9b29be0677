// Kernels as text: one for each statement and each rule K1 … K10 (docs/kernel-ir.md).
#pragma once

#include <span>

namespace tenon::conformance {

struct KernelText {
  const char* name;
  const char* text;
};

/// In the order of their names in the list of cases.
std::span<const KernelText> kernel_texts();

}  // namespace tenon::conformance
