// core/base/process/: child processes, shared libraries, waiting, and the environment of this
// process.
//
// Settings by variables of the environment: every setting is read by these functions, so that a
// wrong value is refused everywhere by the same words.
//
// Thread-safety: as std::getenv, from any thread while none changes the environment.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon {

/// The value of the variable, or `otherwise` if it is not set, or set to nothing.
std::string environment_or(const char* name, std::string_view otherwise);

/// The whole numbers that a setting may have; both ends are included.
struct SettingRange {
  int64_t least = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
};

/// The number, in decimal digits, that the variable is set to, or `otherwise` as above.
/// `expected` says what the setting is, for the error. Errors: kInvalidArgument for any other text,
/// "TENON_QUEUES is 'many', expected a number of 1 to 16".
Result<int64_t> environment_number(const char* name, int64_t otherwise, SettingRange range = {},
                                   std::string_view expected = "a number");

/// Whether `word` is one of the words, apart by commas, that the variable is set to.
bool environment_lists(const char* name, std::string_view word);

}  // namespace tenon
