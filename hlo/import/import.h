// hlo/import/: gives what a reader read its meaning: a RawModule becomes a Module.
//
// Imports StableHLO text or a portable artifact as a Module.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hlo/ir/instruction.h"
#include "hlo/ir/raw_module.h"

namespace tenon::hlo {

/// Gives a RawModule its meaning: canonical attributes, sharding ops of one device erased, calls to
/// check.* and interpreter.* turned into custom calls, every op verified.
Result<std::unique_ptr<Module>> build_module(const RawModule& raw);

/// Sniffs the format, reads and builds.
Result<std::unique_ptr<Module>> import_module(std::string_view bytes, const std::string& file_name,
                                              const ImportLimits& limits = {});

}  // namespace tenon::hlo
