// HLO text through the importer.
#include <string>

#include "fuzz/round_trip.h"
#include "fuzz/targets.h"

bool tenon::fuzz::fuzz_hlo_text(std::string_view bytes) {
  return hlo::check_round_trip("hlo_module " + std::string(bytes));
}
