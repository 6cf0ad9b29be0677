// The device and its layers: options that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "core/backend/backend.h"
#include "core/base/status.h"

namespace tenon::tools {

struct DeviceOptions {
  std::string device;
  std::optional<std::string> layers;  ///< The value of --layer; if absent, TENON_LAYERS is used.
  std::string legalize;  ///< For interp: the features for which its kernels are legalised.
};

/// --layer
void add_layer_option(CLI::App& command, DeviceOptions& options);

struct ChosenDevice {
  std::shared_ptr<backend::Backend> backend;
  size_t index = 0;
};

/// The backend of `device` ("interp" if it is empty), within the layers of --layer, else of
/// TENON_LAYERS. Errors in the given options have the stage kUsageStage.
Result<ChosenDevice> choose_device(const DeviceOptions& options);

}  // namespace tenon::tools
