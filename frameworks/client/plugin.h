// frameworks/client/: calls a PJRT plug-in's table of functions, its errors as exceptions.
//
// For libraries that use a device through the plug-in, loaded at run time: the Python package
// `tenon` and the execution provider of ONNX Runtime.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "frameworks/pjrt/c_api/pjrt_c_api.h"

namespace tenon::client {

/// An error of the plug-in.
class PluginError : public std::runtime_error {
 public:
  PluginError(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// Arguments for a function of the table: zero, with their size.
template <class Args>
Args sized() {
  Args args = {};
  args.struct_size = sizeof(Args);
  return args;
}

/// The functions of a plug-in, which stays loaded.
///
/// Thread-safety: const functions may be called from any thread.
class Plugin {
 public:
  /// Loads the library. Throws PluginError if it is no plug-in, or one of another version.
  static std::shared_ptr<const Plugin> load(const std::string& path);

  /// Calls a function. Throws PluginError if it fails, or if the plug-in lacks it.
  template <class Args>
  void call(PJRT_Error* (*PJRT_Api::*function)(Args*), Args& args) const {
    if (!has(function)) throw PluginError(kUnimplemented, "the plug-in lacks a function");
    check((table_->*function)(&args));
  }
  /// As `call`, for what is done at the end of objects: errors are ignored.
  template <class Args>
  void end(PJRT_Error* (*PJRT_Api::*function)(Args*), Args& args) const noexcept {
    if (has(function)) drop((table_->*function)(&args));
  }
  template <class Function>
  bool has(Function PJRT_Api::* function) const {
    const auto* const begin = reinterpret_cast<const char*>(table_);
    const auto* const member = reinterpret_cast<const char*>(&(table_->*function));
    return member + sizeof(Function) <= begin + table_->struct_size && table_->*function != nullptr;
  }
  void destroy(PJRT_Error_Destroy_Args& error) const noexcept {
    table_->PJRT_Error_Destroy(&error);
  }
  /// Waits for the event, and destroys it. Null is done. Throws the event's error.
  void await(PJRT_Event* event) const;

 private:
  static constexpr int kUnimplemented = 12;

  explicit Plugin(const PJRT_Api* table) : table_(table) {}
  void check(PJRT_Error* error) const;
  void drop(PJRT_Error* error) const noexcept;

  const PJRT_Api* table_;
};

}  // namespace tenon::client
