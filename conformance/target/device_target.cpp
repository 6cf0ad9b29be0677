// Tenon's devices and the evaluator as targets.
#include <fmt/format.h>

#include "conformance/target/target.h"
#include "core/backend/adapter/adapter.h"
#include "hlo/driver/run.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/processes/run_parallel.h"

namespace tenon::conformance {
namespace {

class DeviceTarget : public Target {
 public:
  explicit DeviceTarget(BackendDevice device) : device_(std::move(device)) {}

  Status open() {
    runtime::ClientOptions one;
    one.devices = {device_.index};
    TENON_ASSIGN(target_.client, runtime::Client::open(device_.backend, one));
    info_ = target_.client->devices()[0]->info();
    return {};
  }

  std::vector<std::string> description() const override {
    std::vector<std::string> lines = {
        fmt::format("device {} of backend {}", info_.target.name, device_.backend->name())};
    const std::string target = backend::to_string(info_.target);
    for (size_t begin = 0; begin < target.size();) {
      const size_t end = std::min(target.find('\n', begin), target.size());
      lines.push_back(target.substr(begin, end - begin));
      begin = end + 1;
    }
    return lines;
  }

  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
    if (target_.client == nullptr) TENON_TRY(open());
    hlo::RunInfo info;
    std::vector<hlo::CheckFailure> failures;
    int64_t count = 0;
    const hlo::Checks checks(&failures, &count);
    TargetRun run;
    TENON_ASSIGN(run.results, hlo::run_on_device(target_, module, arguments, checks, {}, &info));
    run.steps = info.steps;
    run.placement = std::move(info.placement);
    for (const hlo::CheckFailure& each : failures) run.failed_checks.push_back(each.text);
    return run;
  }

  Result<DeviceProgram> program_of(const hlo::Module& module) override {
    TENON_ASSIGN(hlo::Compilation made, hlo::compile(module, *device_.backend, info_.target));
    return DeviceProgram{std::move(made.compiled.program), backend::last_render_options()};
  }

  Result<BackendDevice> release_device() override {
    target_.client = nullptr;
    constexpr int64_t kTenSeconds = 10'000'000'000;
    if (!runtime::await_all_closed(kTenSeconds))
      return internal_error("the device was not closed within 10 s");
    return device_;
  }

 private:
  const BackendDevice device_;
  backend::DeviceInfo info_;
  hlo::RunTarget target_;
};

class EvaluatorTarget : public Target {
 public:
  std::vector<std::string> description() const override { return {"the reference evaluator"}; }

  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
    hlo::Evaluator evaluator(module);
    std::vector<hlo::CheckFailure> failures;
    int64_t count = 0;
    hlo::install_checks(evaluator, &failures, &count);
    hlo::install_run_parallel(evaluator);
    TargetRun run;
    TENON_ASSIGN(
        run.results,
        evaluator.run(*module.entry(), std::vector<Literal>(arguments.begin(), arguments.end())));
    for (const hlo::CheckFailure& each : failures) run.failed_checks.push_back(each.text);
    run.steps.kernels = 1;
    return run;
  }
};

}  // namespace

Result<DeviceProgram> Target::program_of(const hlo::Module&) {
  return unimplemented("the target compiles programs by itself");
}

Result<BackendDevice> Target::release_device() {
  return unimplemented("the target has no interface of Tenon's");
}

Result<std::unique_ptr<Target>> make_device_target(BackendDevice device) {
  auto target = std::make_unique<DeviceTarget>(std::move(device));
  TENON_TRY(target->open());
  return target;
}

std::unique_ptr<Target> make_evaluator_target() { return std::make_unique<EvaluatorTarget>(); }

}  // namespace tenon::conformance
