// frameworks/pjrt/program/: what comes with a program: its options, tokens, calls on `reference`.
//
// The CompileOptionsProto of a program (openxla/xla: xla/pjrt/proto/compile_options.proto): the few
// fields that are used.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/driver/compile.h"

namespace tenon::pjrt {

struct PjrtCompileOptions {
  int64_t replicas = 1;
  int64_t partitions = 1;
  /// Global ids of every replica of the first partition, then of the second …; empty: no devices
  /// named.
  std::vector<int64_t> devices;
  /// From the overrides "tenon_strict" and "tenon_native_math", which are booleans, and
  /// "tenon_disable_rules", names of rewrite rules separated by commas.
  hlo::CompileOptions compile;
};

/// Errors: kInvalidArgument for bytes that are not such a message and for options that do not
/// exist; kUnimplemented for tupled arguments and for layouts that are not row-major.
Result<PjrtCompileOptions> parse_compile_options(std::string_view bytes);

}  // namespace tenon::pjrt
