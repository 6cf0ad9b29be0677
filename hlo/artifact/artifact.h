// hlo/artifact/: reads portable artifacts (MLIR bytecode that holds VHLO) into a RawModule.
#pragma once

#include <string>
#include <string_view>

#include "hlo/ir/raw_module.h"

namespace tenon::hlo {

/// The newest StableHLO version of artifacts that can be read.
inline constexpr std::string_view kNewestStableHlo = "1.20.0";

/// Reads MLIR bytecode that contains VHLO (a portable artifact, versions 0.9.0 to 1.20.0), possibly
/// mixed with other dialects. `file_name` is used in errors and for unknown locations.
Result<RawModule> parse_artifact(std::string_view bytes, const std::string& file_name,
                                 const ImportLimits& limits = {});

/// Whether `bytes` begin with the magic number of MLIR bytecode.
bool is_artifact(std::string_view bytes);

}  // namespace tenon::hlo
