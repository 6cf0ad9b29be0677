#include "tools/device_options.h"

#include <cstdlib>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/layers.h"
#include "core/backend/registry/registry.h"
#include "core/kernel/text/text.h"
#include "tools/cli.h"

namespace tenon::tools {

void add_layer_option(CLI::App& command, DeviceOptions& options) {
  command
      .add_option(
          "--layer", options.layers,
          "Layers between Tenon and the backend, outermost first: validate (checks the "
          "rules of the interface), faults (fails by the plan in TENON_FAULTS), cache (keeps "
          "compiled code in the folder TENON_CACHE), record "
          "(writes the file TENON_RECORD, default tenon.record, for 'tenon replay'), trace "
          "(writes a timeline for Perfetto or chrome://tracing to the file TENON_TRACE, "
          "default tenon.trace.json); default: the layers in TENON_LAYERS")
      ->type_name("LAYER,…");
}

namespace {

// An error of a name, a number or a list on the command line.
Error usage(Status status) { return Error(std::move(status).in_stage(kUsageStage)); }

// If a device exists but does not start, the command line is not wrong.
Result<std::shared_ptr<backend::Backend>> backend_named(const std::string& name) {
  if (name == "reference") {
    return usage(invalid_argument(
        "the reference device evaluates modules op by op; this needs a backend: 'tenon devices'"));
  }
  auto backend = backend::Registry::instance().get(name);
  const bool is_path = name.find('/') != std::string::npos;
  if (backend || is_path || backend.error().code() != ErrorCode::kNotFound) return backend;
  return usage(not_found("there is no device '{}'; 'tenon devices' lists them", name));
}

std::string layers_of(const DeviceOptions& options) {
  if (options.layers) return *options.layers;
  const char* const set = std::getenv("TENON_LAYERS");
  return set == nullptr ? "" : set;
}

}  // namespace

Result<ChosenDevice> choose_device(const DeviceOptions& options) {
  const std::string text = options.device.empty() ? "interp" : options.device;
  const auto name = backend::parse_device_name(text);
  if (!name) return usage(name.error());
  ChosenDevice chosen;
  chosen.index = name->index;
  if (!options.legalize.empty()) {
    if (name->backend != "interp") {
      return usage(invalid_argument("--legalize needs --device=interp, not '{}'", text));
    }
    const auto form = kernel::TargetFeatures::parse(options.legalize);
    if (!form) return usage(form.error());
    backend::InterpreterConfig config;
    config.devices = 65;
    config.features = *form;
    chosen.backend = backend::make_interpreter_backend(config);
  } else {
    TENON_ASSIGN(chosen.backend, backend_named(name->backend));
  }
  auto layered = backend::with_layers(chosen.backend, layers_of(options));
  if (!layered && (layered.error().code() == ErrorCode::kInvalidArgument ||
                   layered.error().code() == ErrorCode::kNotFound)) {
    return usage(layered.error());
  }
  TENON_ASSIGN(chosen.backend, std::move(layered));
  return chosen;
}

Result<ChosenTarget> choose_target(const DeviceOptions& options) {
  TENON_ASSIGN(const ChosenDevice chosen, choose_device(options));
  TENON_ASSIGN(std::vector<backend::DeviceInfo> devices, chosen.backend->devices());
  if (chosen.index >= devices.size()) {
    return not_found("backend {} has {} devices, there is no number {}", chosen.backend->name(),
                     devices.size(), chosen.index);
  }
  return ChosenTarget{chosen.backend, std::move(devices[chosen.index].target)};
}

Result<std::string> text_of(const std::vector<const kernel::Kernel*>& kernels,
                            const ChosenTarget& device, DeviceForm form) {
  if (form == DeviceForm::kKernels) {
    std::string text;
    for (const kernel::Kernel* each : kernels) text += kernel::print(*each);
    return text;
  }
  if (kernels.empty()) return std::string();
  Result<std::string> source = device.backend->source(device.target, kernels);
  if (source || source.error().code() != ErrorCode::kUnimplemented) return source;
  return unimplemented("{}; --emit=kernels prints the kernels as it gets them",
                       source.error().message());
}

}  // namespace tenon::tools
