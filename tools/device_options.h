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

/// The same with the device's description; no device is opened. Errors: a number that the backend
/// does not have.
struct ChosenTarget {
  std::shared_ptr<backend::Backend> backend;
  backend::TargetInfo target;
};
Result<ChosenTarget> choose_target(const DeviceOptions& options);

/// The input of a device's compiler for kernels that are legal for it: the kernels as text (for a
/// device that takes kernels, or compiles them itself), or the source that the backend renders.
enum class DeviceForm : uint8_t { kKernels, kSource };
/// Errors: kUnimplemented if the backend renders no source, with what to do instead.
Result<std::string> text_of(const std::vector<const kernel::Kernel*>& kernels,
                            const ChosenTarget& device, DeviceForm form);

}  // namespace tenon::tools
