#include "fuzz/targets.h"

#include <algorithm>

namespace tenon::fuzz {
namespace {

constexpr size_t kKibibyte = 1024;
constexpr FuzzTarget kTargets[] = {
    {"artifact", fuzz_artifact, 1024 * kKibibyte},
    {"compiled_program", fuzz_compiled_program, 64 * kKibibyte},
    {"hlo_proto", fuzz_hlo_proto, 1024 * kKibibyte},
    {"hlo_text", fuzz_hlo_text, 64 * kKibibyte},
    {"kernel_serial", fuzz_kernel_serial, 64 * kKibibyte},
    {"kernel_text", fuzz_kernel_text, 64 * kKibibyte},
    {"npy", fuzz_npy, 64 * kKibibyte},
    {"onnx", fuzz_onnx, 1024 * kKibibyte},
    {"program_serial", fuzz_program_serial, 64 * kKibibyte},
    {"raw_module", fuzz_raw_module, 4 * kKibibyte},
    {"recording", fuzz_recording, 64 * kKibibyte},
    {"target_text", fuzz_target_text, 64 * kKibibyte},
    {"text", fuzz_text, 64 * kKibibyte},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

const FuzzTarget* find_fuzz_target(std::string_view name) {
  const auto* const found = std::ranges::find(kTargets, name, &FuzzTarget::name);
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace tenon::fuzz
