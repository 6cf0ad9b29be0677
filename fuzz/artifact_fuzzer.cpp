// libFuzzer target: no bytes may make the artifact reader crash, hang or allocate out of
// proportion.
//
// Build with clang++ -fsanitize=fuzzer,address,undefined together with the sources of
// hlo_import_artifact_sources, hlo/ir/{attribute,location,type}.cpp and core/types; seed it with
// the artifacts of stablehlo/tests/vhlo.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hlo/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLargest = 1 << 20;
  if (size > kLargest) return -1;
  const auto module = tenon::hlo::parse_artifact(
      std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.bc");
  return module || !module.error().message().empty() ? 0 : -1;
}
