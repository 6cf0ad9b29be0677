// HLO text through the importer.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (1 << 16)) return 0;
  const std::string text = "hlo_module " + std::string(reinterpret_cast<const char*>(data), size);
  tenon::hlo::check_round_trip(text);
  return 0;
}
