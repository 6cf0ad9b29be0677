// Parameters of lowering in a file beside a plug-in.
#pragma once

#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

/// The file of parameters of a plug-in: "libchip.tuning" beside "libchip.so" or "libchip.so.1".
std::string tuning_file_of(const std::string& plugin);

/// `backend`, whose devices state the parameters of the plug-in's file too, behind their own, where
/// there is such a file. Errors: the file cannot be read, or a line is no parameter.
Result<std::shared_ptr<Backend>> with_tuning_file(std::shared_ptr<Backend> backend,
                                                  const std::string& plugin);

}  // namespace tenon::backend
