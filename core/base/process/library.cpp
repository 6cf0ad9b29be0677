#include "core/base/process/library.h"

#include <dlfcn.h>

#include "core/base/process/environment.h"

namespace tenon {

NamedLibrary::NamedLibrary(const char* variable, std::vector<std::string> names) {
  const std::string set = environment_or(variable, "");
  if (!set.empty()) names = {set};
  for (const std::string& name : names) {
    if (handle_ == nullptr) handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle_ == nullptr) {
    // Where nothing was opened, an error would be that of somebody else, or none.
    fault_ = fmt::format("{}; {} may name another file", names.empty() ? "no library" : dlerror(),
                         variable);
  }
}

Status NamedLibrary::state() const {
  return fault_.empty() ? Status() : Status(ErrorCode::kUnavailable, fault_);
}

void* NamedLibrary::find(const char* name) {
  void* const found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
  if (found == nullptr && fault_.empty()) fault_ = fmt::format("there is no function {}", name);
  return found;
}

}  // namespace tenon
