// Source locations of instructions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::hlo {

enum class LocationKind : uint8_t { kUnknown, kFile, kName, kCallSite, kFused };

/// A location as in MLIR: a file position, a name around another location, a call site (children:
/// callee, caller) or several fused locations.
struct LocationNode {
  LocationKind kind = LocationKind::kUnknown;
  std::string name;  ///< File name, or the name of kName.
  uint32_t line = 0, column = 0, end_line = 0, end_column = 0;
  std::vector<std::shared_ptr<const LocationNode>> children;
};

/// Null means unknown. Shared between instructions.
using Location = std::shared_ptr<const LocationNode>;

Location file_location(std::string file, uint32_t line, uint32_t column);
/// The innermost file position in `location`, or an unknown one.
SourcePosition position_of(const Location& location);
/// MLIR text: `"f.py":3:4`, `"name"("f.py":3:4)`, `callsite(… at …)`, `fused[…]`, `unknown`.
std::string location_to_string(const Location& location);

}  // namespace tenon::hlo
