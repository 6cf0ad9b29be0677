// hlo/import/: gives what a reader read its meaning: a RawModule becomes a Module.
//
// Imports StableHLO text, a portable artifact or an HLO proto as a Module.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hlo/ir/instruction.h"
#include "hlo/ir/raw_module.h"

namespace tenon::hlo {

/// Converts a RawModule to a Module: makes attributes canonical, erases sharding ops over one
/// device, turns ops of check.* and interpreter.* into custom calls, and verifies every op.
Result<std::unique_ptr<Module>> build_module(const RawModule& raw);

/// Detects the format, reads the program and builds its Module.
Result<std::unique_ptr<Module>> import_module(std::string_view bytes, const std::string& file_name,
                                              const ImportLimits& limits = {});

}  // namespace tenon::hlo
