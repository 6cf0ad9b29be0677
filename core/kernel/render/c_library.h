// Rendered C at work: compiles source with the C compiler at hand ($CC, else cc) and loads it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/base/status.h"

namespace tenon::kernel {

/// The shared object that a C compiler makes of C99 source: `compiler` is the command, with flags.
/// Floating-point operations are never contracted. Errors: kUnavailable, with the compiler's
/// output.
Result<std::string> compile_c(const std::string& source, const std::string& compiler);

/// Functions of C99 source. Thread-safe; they are gone with the last copy.
class CLibrary {
 public:
  /// Compiles and loads `source` with further `flags`. Floating-point operations are never
  /// contracted. Errors: kUnavailable, with the compiler's output.
  static Result<CLibrary> compile(const std::string& source, const std::string& flags = "-O1");

  /// Calls the function with up to four pointers. Errors: kNotFound; kInvalidArgument for more.
  Status call(const std::string& name, std::span<void* const> pointers) const;

 private:
  explicit CLibrary(std::shared_ptr<void> handle) : handle_(std::move(handle)) {}

  std::shared_ptr<void> handle_;
};

}  // namespace tenon::kernel
