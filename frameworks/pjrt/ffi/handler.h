// frameworks/pjrt/ffi/: XLA's foreign functions: handlers that frameworks register for the platform
// and programs call by name.
//
// Handlers become functions of the host (core/runtime/foreign/host_functions.h).
//
// Thread-safety: everything, from any thread.
#pragma once

#include <string_view>

#include "core/runtime/foreign/host_functions.h"
#include "frameworks/pjrt/c_api/xla_ffi.h"

namespace tenon::pjrt {

/// The function of a handler. INSTANTIATE runs when a program is loaded; PREPARE, INITIALIZE and
/// EXECUTE run one after the other in each execution.
runtime::HostFunction function_of(const XLA_FFI_Handler_Bundle& bundle);

/// Registers a handler. Errors: one without EXECUTE; one for another version of the interface; a
/// name that has a handler already. The same handler may be registered again.
Status add_handler(std::string_view platform, std::string_view name,
                   const XLA_FFI_Handler_Bundle& bundle);

}  // namespace tenon::pjrt
