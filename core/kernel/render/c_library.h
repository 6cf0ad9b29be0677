// Compiles rendered C with the installed C compiler ($CC, else cc) and loads it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/base/status.h"

namespace tenon::kernel {

/// Compiles C99 source to a shared object: `compiler` is the command, with flags. Floating-point
/// operations are never contracted. Errors: kUnavailable, with the compiler's output.
Result<std::string> compile_c(const std::string& source, const std::string& compiler);

/// The functions of C99 source. Thread-safe; the library is unloaded with the last copy.
class CLibrary {
 public:
  /// Compiles and loads `source` with further `flags`, by `compiler` or else the installed one.
  /// Floating-point operations are never contracted. Errors: kUnavailable, with the compiler's
  /// output.
  static Result<CLibrary> compile(const std::string& source, const std::string& flags = "-O1",
                                  const std::string& compiler = "");

  /// Calls the function with at most four pointers. Errors: kNotFound; kInvalidArgument for more
  /// pointers.
  Status call(const std::string& name, std::span<void* const> pointers) const;

 private:
  explicit CLibrary(std::shared_ptr<void> handle) : handle_(std::move(handle)) {}

  std::shared_ptr<void> handle_;
};

}  // namespace tenon::kernel
