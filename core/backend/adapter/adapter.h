// core/backend/adapter/: between the two skins of the seam: a C plug-in as a Backend, and a Backend
// as a C plug-in.
//
// A plug-in in C++ is a Backend class and this function:
//
//   extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
//     return tenon::backend::export_backend(host, error, [] { return make_my_backend(); });
//   }
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/backend/backend.h"
#include "core/backend/plugin.h"
#include "core/kernel/render/render.h"

namespace tenon::backend {

using BackendFactory = std::function<Result<std::shared_ptr<Backend>>()>;

/// Returns the table of a backend, for tenon_plugin to return. The first call makes it, and later
/// calls in the process return the same table. Throws nothing. Returns null, with a text in
/// `error`, if the factory fails or the host has another version.
const TenonBackend* export_backend(const TenonHost* host, const TenonSink* error,
                                   const BackendFactory& make);

/// Makes a Backend from a plug-in's table. Errors: kFailedPrecondition for another version, with
/// both versions, or for a missing required function. The host provides defaults for optional
/// functions that the table lacks.
Result<std::shared_ptr<Backend>> import_backend(const TenonBackend* table);

/// The host's services for plug-ins.
const TenonHost* host_services();
/// The options with which a plug-in last had kernels rendered by TenonHost::render; none if no
/// plug-in of this process did. A plug-in in C++ that calls kernel::render() itself is not seen.
std::optional<kernel::RenderOptions> last_render_options();
/// Sets the function that TenonHost::log calls; the default writes to standard error.
void set_log(std::function<void(std::string_view)> log);

}  // namespace tenon::backend
