// hlo/text/: StableHLO text and HLO text: parser and printers.
//
// Reads StableHLO text and HLO text into a RawModule.
#pragma once

#include <string>
#include <string_view>

#include "hlo/ir/raw_module.h"

namespace tenon::hlo {

/// Reads StableHLO text, pretty or generic. `file_name` is used in locations.
Result<RawModule> parse_mlir_text(std::string_view text, const std::string& file_name,
                                  const ImportLimits& limits = {});

}  // namespace tenon::hlo
