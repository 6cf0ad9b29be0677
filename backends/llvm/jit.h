// Object files in memory, loaded and ready to call.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::codegen {

/// A function of this process that objects call by name.
struct HostFunction {
  const char* name;
  void* address;
};

/// Loaded code; the destructor unloads it.
class LoadedObjects {
 public:
  LoadedObjects() = default;
  LoadedObjects(const LoadedObjects&) = delete;
  LoadedObjects& operator=(const LoadedObjects&) = delete;
  virtual ~LoadedObjects() = default;

  /// Errors: kNotFound if there is no such symbol.
  virtual Result<void*> address(const std::string& symbol) = 0;
};

/// Loads objects, which may call each other, `functions`, and the C library's functions for
/// arithmetic and copies. Errors: bytes that are not objects; a function that nothing defines.
Result<std::unique_ptr<LoadedObjects>> load_objects(std::span<const std::string> objects,
                                                    std::span<const HostFunction> functions);

}  // namespace tenon::codegen
