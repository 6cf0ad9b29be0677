// Import: StableHLO text or a portable artifact becomes a Module.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hlo/import/raw.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The newest version of StableHLO that artifacts may have.
inline constexpr std::string_view kNewestStableHlo = "1.20.0";

/// Limits on what an input may ask for; each violation is an error, never a crash.
struct ImportLimits {
  int max_depth = 256;  ///< Nesting of regions, types and attributes.
  /// Of one constant in an artifact. A text asks for no more memory than a fixed multiple of its
  /// length and, for aliases that it uses often, that of 2^22 types and attributes: a use of a
  /// dense_resource, or of an alias of a constant, shares the elements.
  int64_t max_constant_bytes = int64_t{4} << 30;
};

/// Reads StableHLO text, pretty or generic. `file_name` is used in locations.
Result<RawModule> parse_mlir_text(std::string_view text, const std::string& file_name,
                                  const ImportLimits& limits = {});

/// Reads MLIR bytecode that holds VHLO (a portable artifact, versions 0.9.0 to 1.20.0), possibly
/// mixed with other dialects. `file_name` is used in errors and for unknown locations.
Result<RawModule> parse_artifact(std::string_view bytes, const std::string& file_name,
                                 const ImportLimits& limits = {});

/// Whether `bytes` begin with the magic number of MLIR bytecode.
bool is_artifact(std::string_view bytes);

/// Gives a RawModule its meaning: canonical attributes, sharding ops of one device erased, calls to
/// check.* and interpreter.* turned into custom calls, every op verified.
Result<std::unique_ptr<Module>> build_module(const RawModule& raw);

/// Sniffs the format, reads and builds.
Result<std::unique_ptr<Module>> import_module(std::string_view bytes, const std::string& file_name,
                                              const ImportLimits& limits = {});

}  // namespace tenon::hlo
