// Tuning parameters in a file next to a plug-in.
#pragma once

#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

/// The parameter file of a plug-in: "libchip.tuning" for "libchip.so" or "libchip.so.1".
std::string tuning_file_of(const std::string& plugin);

/// `backend`, with devices that also state the parameters of the plug-in's file, after their own,
/// if the file exists. Errors: the file cannot be read, or a line is not a parameter.
Result<std::shared_ptr<Backend>> with_tuning_file(std::shared_ptr<Backend> backend,
                                                  const std::string& plugin);

}  // namespace tenon::backend
