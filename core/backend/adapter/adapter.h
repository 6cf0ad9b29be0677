// core/backend/adapter/: between the two skins of the seam: a C plug-in as a Backend, and a
// Backend as a C plug-in.
//
// A plug-in written in C++ is this, and a class:
//
//   extern "C" const TenonBackend* tenon_plugin(const TenonHost* host, const TenonSink* error) {
//     return tenon::backend::export_backend(host, error, [] { return make_my_backend(); });
//   }
//
// Thread-safety: all of it.
#pragma once

#include <functional>
#include <memory>

#include "core/backend/backend.h"
#include "core/backend/plugin.h"

namespace tenon::backend {

using BackendFactory = std::function<Result<std::shared_ptr<Backend>>()>;

/// The table of a backend, for tenon_plugin to return: that of the first call, for the process. No
/// exception leaves it. Null, after a text to `error`, if the factory fails or the host's version
/// is another.
const TenonBackend* export_backend(const TenonHost* host, const TenonSink* error,
                                   const BackendFactory& make);

/// A plug-in's table as a Backend. Errors: kFailedPrecondition for another version, naming both, or
/// a required function that is missing. The host stands in for optional functions that the table
/// lacks.
Result<std::shared_ptr<Backend>> import_backend(const TenonBackend* table);

/// The services of the host for plug-ins.
const TenonHost* host_services();
/// Where TenonHost::log writes; standard error unless set.
void set_log(std::function<void(std::string_view)> log);

}  // namespace tenon::backend
