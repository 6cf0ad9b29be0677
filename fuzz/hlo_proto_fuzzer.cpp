// HLO protos through the reader and the importer.
#include <cstddef>
#include <cstdint>

#include "fuzz/round_trip.h"
#include "hlo/proto/proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (1 << 20)) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (tenon::hlo::is_hlo_proto(bytes)) tenon::hlo::check_round_trip(bytes);
  return 0;
}
