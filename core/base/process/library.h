// Shared libraries that are loaded by name, such as the driver of a device, so that a plug-in
// starts, and says what it lacks, on any machine.
//
//   struct Driver final : NamedLibrary {
//     Driver() : NamedLibrary("TENON_DRIVER_LIBRARY", {"libdriver.so.1"}) {}
//     LibraryFunction<int*> device_count{*this, "drvDeviceCount"};
//     Status status_of(int code, std::string_view function) const override { … }
//   };
//
// Thread-safety: once constructed, from any thread.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// A library that is loaded by its name, and stays loaded as long as the process.
class NamedLibrary {
 public:
  /// The file that the variable of the environment names, or else the first of `names` that can be
  /// loaded.
  NamedLibrary(const char* variable, std::vector<std::string> names);
  virtual ~NamedLibrary() = default;
  NamedLibrary(const NamedLibrary&) = delete;
  NamedLibrary& operator=(const NamedLibrary&) = delete;

  /// kUnavailable if the library, or a function that was looked for, is missing.
  Status state() const;
  /// The address of a function; null, and a fault, if there is none of that name.
  void* find(const char* name);
  /// OK for 0; otherwise an error with the library's own words for the code.
  virtual Status status_of(int code, std::string_view function) const = 0;

 private:
  void* handle_ = nullptr;
  std::string fault_;
};

/// A function of a library that returns a code, by its name there, which errors state too. It may
/// be called if the library's state is OK.
template <class... P>
class LibraryFunction {
 public:
  LibraryFunction(NamedLibrary& library, const char* name)
      : library_(library), name_(name), call_(reinterpret_cast<Call>(library.find(name))) {}
  int code_of(std::type_identity_t<P>... arguments) const { return call_(arguments...); }
  Status operator()(std::type_identity_t<P>... arguments) const {
    const int code = code_of(arguments...);
    return code == 0 ? Status() : library_.status_of(code, name_);
  }

 private:
  using Call = int (*)(P...);
  const NamedLibrary& library_;
  const char* const name_;
  const Call call_;
};

}  // namespace tenon
