// frameworks/pjrt/: the PJRT plug-in: the PJRT C API over the runtime.
//
// Engine: the devices behind a client of the plug-in, and the compiler for them.
//
// Arrays are always on runtime::Devices and programs are always runtime::Executables; only the
// compilation of a Module differs: by the driver for a backend, or, on the device `reference`, to a
// single host step that evaluates the Module.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/client.h"
#include "hlo/driver/compile.h"

namespace tenon::pjrt {

/// The device without a name, as in the other frameworks.
constexpr std::string_view kDefaultDevice = "cpu";

struct EngineOptions {
  /// "interp", "template:2", "/opt/libnpu.so:1" (core/backend/registry/registry.h), or "reference".
  std::string device = std::string(kDefaultDevice);
  /// Layers between the runtime and the backend, outermost first (core/backend/layers).
  std::string layers;
  /// Number of devices to open, beginning with the named one.
  int64_t device_count = 1;
  /// Milliseconds that an execution may take before its device counts as lost and all waiting
  /// callers get that error; 0: no limit.
  int64_t time_limit = 0;
  /// Whether profiles have the steps of programs: then devices are opened within a layer `trace`,
  /// which sees each launch, and programs run step by step.
  bool profile_steps = false;

  bool operator==(const EngineOptions&) const = default;
};

/// How many steps of a program run where, for people.
struct StepSummary {
  double steps = 0;
  double host_steps = 0;
  double bytes = 0;  ///< Read and written.
  /// Sums over the kernels (hlo::Placement), one turn of each loop.
  double flops = 0;
  double transcendentals = 0;
};
StepSummary summary_of(const std::vector<hlo::Placement>& placement);

/// A Module that is ready to run on a device.
struct CompiledModule {
  std::shared_ptr<runtime::Executable> executable;
  StepSummary steps;
  /// Size of the kernels and segments, and of their constants on the device.
  int64_t code_bytes = 0;
  /// Size of the temporaries and of the workspace of calls, in each execution.
  int64_t temporary_bytes = 0;
};

/// Devices of a backend by what it says of them (B9), open or not: enough to compile for.
struct NamedDevices {
  std::shared_ptr<backend::Backend> backend;  ///< Within its layers; null: the reference evaluator.
  std::vector<backend::DeviceInfo> devices;

  /// As those of an Engine.
  std::string description() const;
  std::string device_kind(size_t device) const;
};
/// The devices that an Engine would open. Errors: those of Engine::open that come before opening.
Result<NamedDevices> find_devices(const EngineOptions& options);

/// A Module that is compiled and nowhere loaded.
struct UnloadedModule {
  std::string saved;  ///< Engine::save; empty if the engine has no serial form.
  StepSummary steps;
  /// As in CompiledModule.
  int64_t code_bytes = 0;
  int64_t temporary_bytes = 0;
};
/// Compiles for a device of that index without opening it. Errors: those of Engine::compile.
Result<UnloadedModule> compile_for(const NamedDevices& devices, size_t device,
                                   std::unique_ptr<hlo::Module> module,
                                   const hlo::CompileOptions& options);

class Engine {
 public:
  /// Errors: no such device or layer; those of the backend.
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options);
  /// The engine that a client of this process opened with the same options, if it is still in use:
  /// a device is open once (B11). A new one otherwise. Errors: those of open().
  static Result<std::shared_ptr<Engine>> shared(const EngineOptions& options);
  virtual ~Engine() = default;

  /// The devices by their properties, as they were opened first.
  const NamedDevices& named() const { return named_; }
  /// The name and version of the engine, for people.
  std::string description() const { return named_.description(); }
  /// The kind of a device: an executable for one kind runs on every device of that kind.
  std::string device_kind(size_t device) const { return named_.device_kind(device); }
  const std::vector<std::shared_ptr<runtime::Device>>& devices() const {
    return client_->devices();
  }
  /// The device of that index in devices(), opened again if it is lost (runtime::Client).
  Result<std::shared_ptr<runtime::Device>> live_device(size_t device) {
    return client_->live_device(device);
  }
  std::shared_ptr<runtime::Device> last_device(size_t device) const {
    return client_->last_device(device);
  }
  /// `device` is an index in devices(). Errors: those of the driver; kUnimplemented, with its
  /// target, for a custom call without an implementation.
  virtual Result<CompiledModule> compile(std::unique_ptr<hlo::Module> module, size_t device,
                                         const hlo::CompileOptions& options) = 0;
  /// The serial form of an executable that `compile` made; empty if the engine has no serial form.
  virtual std::string save(const runtime::Executable& executable) const = 0;
  /// Loads an executable from its serial form, without its `steps`; compiles nothing. Errors:
  /// kFailedPrecondition if it must be compiled again, because it is of another compiler, target or
  /// release, or the backend refuses it; those of the reader.
  virtual Result<CompiledModule> load(std::string_view bytes, size_t device) = 0;

 protected:
  Engine(std::shared_ptr<runtime::Client> client, std::shared_ptr<backend::Backend> backend);
  runtime::Client& client() const { return *client_; }

 private:
  NamedDevices named_;
  const std::shared_ptr<runtime::Client> client_;
};

}  // namespace tenon::pjrt
