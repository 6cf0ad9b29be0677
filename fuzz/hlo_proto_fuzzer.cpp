// HLO protos through the reader and the importer.
#include "fuzz/round_trip.h"
#include "fuzz/targets.h"
#include "hlo/proto/proto.h"

bool tenon::fuzz::fuzz_hlo_proto(std::string_view bytes) {
  return tenon::hlo::is_hlo_proto(bytes) && hlo::check_round_trip(bytes);
}
