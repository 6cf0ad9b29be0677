// Where the steps of a compiled Program run, for people and for `strict`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::hlo {

enum class PlacementKind : uint8_t {
  kNative,  ///< A call that the backend took.
  kKernel,
  kHost,
};
std::string_view name_of(PlacementKind kind);

/// Where a step of the Program runs, and why: the backend's reason for declining a call, why a
/// kernel runs on the host, whether the step is part of a segment.
struct Placement {
  PlacementKind kind = PlacementKind::kKernel;
  std::string label;   ///< "stablehlo.add at model.mlir:3:8"
  std::string kernel;  ///< The kernel's name, for kKernel and kHost.
  std::string reason;
  int64_t bytes = 0;  ///< Read and written.
  /// Arithmetic and calls of math functions, by core/kernel/analysis/cost.h, of the kernel as it
  /// was lowered; of a call: of the kernels that it replaces.
  double flops = 0;
  double transcendentals = 0;
};

/// "native 7, kernel 104, host 0 of 111"
std::string summary(const std::vector<Placement>& placement);

/// The first step that the host runs because the device declined it; null if there is none.
const Placement* first_declined(const std::vector<Placement>& placement);

}  // namespace tenon::hlo
