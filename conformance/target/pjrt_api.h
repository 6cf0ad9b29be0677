// The table of functions of a PJRT plug-in, as a framework calls it.
//
// A plug-in may be older or newer than the header here. A function is called only if the plug-in's
// table is long enough to have it, and no member past the table's size is read. Arguments state the
// size up to the last member that this header knows, and are zero where the plug-in writes nothing.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "frameworks/pjrt/c_api/pjrt_c_api.h"

namespace tenon::conformance {

/// Arguments whose last member is `last`: zero, with their size. Padding after the last member does
/// not count, since a newer version may have a member there.
template <class Args, class Member>
Args pjrt_args(Member Args::* last) {
  Args args = {};
  args.struct_size = static_cast<size_t>(reinterpret_cast<const char*>(&(args.*last) + 1) -
                                         reinterpret_cast<const char*>(&args));
  return args;
}

/// Thread-safety: const functions may be called from any thread.
class PjrtApi {
 public:
  /// Loads the library, which stays loaded, checks its version, and initializes the plug-in.
  /// Errors: kNotFound; kFailedPrecondition if the file is not a PJRT plug-in, or its version is
  /// another major one or older than kOldestMinor; those of initialization.
  static Result<PjrtApi> load(const std::string& path);

  /// The first version from which on functions were only appended to the table.
  static constexpr int kOldestMinor = 57;

  const PJRT_Api_Version& version() const { return table_->pjrt_api_version; }

  template <class Function>
  bool has(Function PJRT_Api::* function) const {
    return end_of(function) <= table_->struct_size && table_->*function != nullptr;
  }
  /// Calls a function. Errors: the function's own; kUnimplemented if the plug-in lacks it.
  template <class Args>
  Status call(PJRT_Error* (*PJRT_Api::*function)(Args*), Args& args) const {
    if (!has(function)) return lacks(end_of(function));
    return take((table_->*function)(&args));
  }

  /// The error's code and message; destroys it. OK for null.
  Status take(PJRT_Error* error) const;
  /// Waits for the event and destroys it; returns its error. OK for null.
  Status await(PJRT_Event* event) const;

 private:
  explicit PjrtApi(const PJRT_Api* table) : table_(table) {}

  // The offset just after `function`.
  template <class Function>
  size_t end_of(Function PJRT_Api::* function) const {
    return static_cast<size_t>(reinterpret_cast<const char*>(&(table_->*function) + 1) -
                               reinterpret_cast<const char*>(table_));
  }
  Status lacks(size_t end) const;

  const PJRT_Api* table_;
};

/// Destroys an object of a plug-in. A failure to destroy has no effect on results, and is ignored.
struct PjrtDestroyer {
  const PjrtApi* api = nullptr;

  void operator()(PJRT_Client* client) const;
  void operator()(PJRT_LoadedExecutable* executable) const;
  void operator()(PJRT_Executable* executable) const;
  void operator()(PJRT_Buffer* buffer) const;
};
template <class Object>
using PjrtOwned = std::unique_ptr<Object, PjrtDestroyer>;

}  // namespace tenon::conformance
