// The programs that `tenon tune` measures unless others are named: those of bench/devices.
// scripts/embed generates their definition when Tenon is built.
#pragma once

#include <span>

#include "core/base/embedded_file.h"

namespace tenon::tools {

/// StableHLO programs, "product.mlir" …; together they ask for every tuning parameter of a
/// schedule.
std::span<const EmbeddedFile> tune_programs();

}  // namespace tenon::tools
