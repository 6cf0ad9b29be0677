// StableHLO text and HLO text (a text that begins with hlo_module) through the importer.
#include <cstddef>
#include <cstdint>

#include "fuzz/round_trip.h"
#include "hlo/artifact/artifact.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (1 << 16)) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!tenon::hlo::is_artifact(text)) tenon::hlo::check_round_trip(text);
  return 0;
}
