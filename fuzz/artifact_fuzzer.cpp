// Portable artifacts through the reader and the importer.
#include "fuzz/round_trip.h"
#include "fuzz/targets.h"
#include "hlo/artifact/artifact.h"

bool tenon::fuzz::fuzz_artifact(std::string_view bytes) {
  return tenon::hlo::is_artifact(bytes) && hlo::check_round_trip(bytes);
}
