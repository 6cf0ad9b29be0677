#include "tools/device_options.h"

#include <cstdlib>

#include "core/backend/interp/interp.h"
#include "core/backend/layers/layers.h"
#include "core/backend/registry.h"

namespace tenon::tools {

void add_layer_option(CLI::App& command, DeviceOptions& options) {
  command
      .add_option(
          "--layer", options.layers,
          "Layers between Tenon and the backend, the outermost first: validate (checks the "
          "rules of the interface), faults (fails by the plan in TENON_FAULTS), cache (keeps what "
          "was compiled in the folder TENON_CACHE), record "
          "(writes the file TENON_RECORD, tenon.record unless set, for 'tenon replay'), trace "
          "(writes a timeline for Perfetto or chrome://tracing to the file TENON_TRACE, "
          "tenon.trace.json unless set)")
      ->type_name("LAYER,…")
      ->envname("TENON_LAYERS");
}

Result<ChosenDevice> choose_device(const DeviceOptions& options) {
  const std::string text = options.device.empty() ? "interp" : options.device;
  TENON_ASSIGN(const backend::DeviceName name, backend::parse_device_name(text));
  ChosenDevice chosen;
  chosen.index = name.index;
  if (name.backend == "interp" && !options.legalize.empty()) {
    backend::InterpConfig config;
    config.devices = 65;
    TENON_ASSIGN(config.form, kernel::LegalForm::parse(options.legalize));
    chosen.backend = backend::make_interp_backend(config);
  } else {
    TENON_ASSIGN(chosen.backend, backend::Registry::instance().get(name.backend));
  }
  TENON_ASSIGN(chosen.backend, backend::with_layers(chosen.backend, options.layers));
  return chosen;
}

}  // namespace tenon::tools
