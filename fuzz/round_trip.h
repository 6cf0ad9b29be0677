// The check of every program fuzzer: a Module that can be imported must print and read back as an
// equal Module. False if the bytes are no program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "hlo/import/import.h"
#include "hlo/text/printer.h"

namespace tenon::hlo {

inline ImportLimits fuzz_limits() {
  ImportLimits limits;
  limits.max_depth = 64;
  limits.max_constant_bytes = 1 << 20;
  return limits;
}

inline bool check_round_trip(std::string_view bytes) {
  const auto module = import_module(bytes, "input", fuzz_limits());
  if (!module) return false;
  for (const TextForm form : {TextForm::kHlo, TextForm::kStableHlo}) {
    const std::string text = print_module(**module, {form, false});
    const auto again = import_module(text, "printed", fuzz_limits());
    std::string why;
    if (again && equal(**module, **again, &why)) continue;
    // A violated invariant becomes a crash, which the fuzzer saves.
    std::fprintf(stderr, "round trip: %s\n%s\n",
                 again ? why.c_str() : again.error().to_string().c_str(), text.c_str());
    std::abort();
  }
  return true;
}

}  // namespace tenon::hlo
