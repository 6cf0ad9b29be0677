// A device of a PJRT plug-in as a target. Programs go to the plug-in as StableHLO text, CHLO ops as
// they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "conformance/target/target.h"

namespace tenon::conformance {

/// An option with which a plug-in's client is created.
struct PjrtOption {
  std::string name;
  std::variant<std::string, int64_t, float, bool> value;
};

/// Reads "NAME=TEXT", "NAME:int=5", "NAME:float=0.5", "NAME:bool=true", "NAME:string=TEXT".
Result<PjrtOption> parse_pjrt_option(std::string_view text);

/// The first device of the plug-in at `path` that this process addresses. Errors: those of
/// PjrtApi::load and of creating the client; kFailedPrecondition if there is no device.
Result<std::unique_ptr<Target>> make_pjrt_target(const std::string& path,
                                                 const std::vector<PjrtOption>& options);

}  // namespace tenon::conformance
