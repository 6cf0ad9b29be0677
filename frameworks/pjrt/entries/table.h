// frameworks/pjrt/entries/: the functions of the PJRT C API's table.
//
// How functions of the plug-in become entries of PJRT_Api: each is written as `Status
// name(PJRT_…_Args&)`, and `entry<name>` is the C function that calls it and catches all
// exceptions.
#pragma once

#include <exception>
#include <new>

#include "core/base/status.h"
#include "frameworks/pjrt/c_api/pjrt_c_api.h"

namespace tenon::pjrt {

/// An error for the caller to destroy; null for an OK status; out_of_memory() if there is no memory
/// for it.
PJRT_Error* error_of(const Status& status) noexcept;
PJRT_Error* error_of(ErrorCode code, const char* text) noexcept;
/// An error that needs no allocation: it is created with the table.
PJRT_Error* out_of_memory() noexcept;

/// A caller's invalid code becomes kUnknown.
ErrorCode code_of(PJRT_Error_Code code);
/// A caller's error; OK for the code OK.
Status status_of(PJRT_Error_Code code, const char* message, size_t message_size);
/// The status of an error that error_of() made, which it destroys; OK for null.
Status take_error(PJRT_Error* error);

namespace detail {

template <auto function>
struct Entry;

template <class Args, Status (*function)(Args&)>
struct Entry<function> {
  static PJRT_Error* call(Args* args) noexcept {
    try {
      return error_of(function(*args));
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    } catch (const std::exception& error) {
      return error_of(ErrorCode::kInternal, error.what());
    } catch (...) {
      return error_of(ErrorCode::kInternal, "an exception of a non-standard type");
    }
  }
};

template <size_t size>
struct FixedText {
  constexpr FixedText(const char (&text)[size]) {
    for (size_t i = 0; i < size; ++i) characters[i] = text[i];
  }
  char characters[size] = {};
};

template <FixedText name>
struct Refusal {
  template <class Args>
  using Function = PJRT_Error* (*)(Args*);
  template <class Args>
  static PJRT_Error* call(Args*) noexcept {
    return error_of(ErrorCode::kUnimplemented, name.characters);
  }
  template <class Args>
  operator Function<Args>() const {
    return &call<Args>;
  }
};

}  // namespace detail

/// The entry for a function.
template <auto function>
inline constexpr auto entry =  // NOLINT(readability-identifier-naming): reads as a function
    &detail::Entry<function>::call;

/// The entry for an unsupported function: UNIMPLEMENTED, with this text.
template <detail::FixedText text>
inline constexpr detail::Refusal<text> refuse{};  // NOLINT(readability-identifier-naming)

/// Whether the caller of `args` knows the member, which was added after the first version.
template <class Args, class Member>
bool has(const Args& args, Member Args::* member) {
  const auto end =
      reinterpret_cast<const char*>(&(args.*member) + 1) - reinterpret_cast<const char*>(&args);
  return args.struct_size >= static_cast<size_t>(end);
}

/// Writes an output that older callers lack.
template <class Args, class Member>
void set_if_known(Args& args, Member Args::* member, Member value) {
  if (has(args, member)) args.*member = value;
}

/// Set the entries of their groups.
void add_errors(PJRT_Api& api);
void add_client(PJRT_Api& api);
void add_devices(PJRT_Api& api);
void add_topology(PJRT_Api& api);
void add_buffers(PJRT_Api& api);
void add_transfers(PJRT_Api& api);
void add_late_buffers(PJRT_Api& api);
/// Registers their functions of the host, too.
void add_host_transfers(PJRT_Api& api);
void add_compile(PJRT_Api& api);
void add_executables(PJRT_Api& api);
void add_execution(PJRT_Api& api);
/// The extension Shardings, before `next`; it stays for the process.
PJRT_Extension_Base* shardings_extension(PJRT_Extension_Base* next);
/// The same for Layouts.
PJRT_Extension_Base* layouts_extension(PJRT_Extension_Base* next);
/// The same for MemoryDescriptions.
PJRT_Extension_Base* memory_descriptions_extension(PJRT_Extension_Base* next);
/// The same for Profiler.
PJRT_Extension_Base* profiler_extension(PJRT_Extension_Base* next);

}  // namespace tenon::pjrt
