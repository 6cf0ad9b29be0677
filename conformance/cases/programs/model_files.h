// The models of samples/ as StableHLO artifacts, which the suite has in it.
// scripts/embed generates their definition when Tenon is built.
#pragma once

#include <span>

#include "core/base/embedded_file.h"

namespace tenon::conformance {

/// Their paths are relative to samples/: "lstm/program.mlirbc".
std::span<const EmbeddedFile> model_files();

}  // namespace tenon::conformance
