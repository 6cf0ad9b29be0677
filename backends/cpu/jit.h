// Object files in memory, loaded and ready to call.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <memory>

#include "backends/cpu/code.h"

namespace tenon::cpu {

/// Loaded code; the destructor unloads it.
class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  const CpuCode& code() const { return code_; }
  Entry entry(size_t kernel) const { return entries_[kernel]; }

 protected:
  CpuCode code_;  ///< Without its objects.
  std::vector<Entry> entries_;
};

/// Errors: objects that do not link.
Result<std::shared_ptr<Library>> load_library(CpuCode code);

}  // namespace tenon::cpu
