// Tenon's devices and the evaluator as targets.
#include <fmt/format.h>

#include "conformance/target/target.h"
#include "hlo/driver/run.h"
#include "hlo/evaluator/evaluator.h"

namespace tenon::conformance {
namespace {

class DeviceTarget : public Target {
 public:
  explicit DeviceTarget(std::shared_ptr<runtime::Client> client) : target_{std::move(client), 0} {}

  std::vector<std::string> description() const override {
    const backend::DeviceInfo& info = target_.client->devices()[0]->info();
    std::vector<std::string> lines = {
        fmt::format("device {} of backend {}", info.target.name, target_.client->backend().name())};
    const std::string target = backend::to_string(info.target);
    for (size_t begin = 0; begin < target.size();) {
      const size_t end = std::min(target.find('\n', begin), target.size());
      lines.push_back(target.substr(begin, end - begin));
      begin = end + 1;
    }
    return lines;
  }

  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
    hlo::RunInfo info;
    std::vector<hlo::CheckFailure> failures;
    int64_t count = 0;
    const hlo::Checks checks(&failures, &count);
    TargetRun run;
    TENON_ASSIGN(run.results, hlo::run_on_device(target_, module, arguments, checks, {}, &info));
    run.steps = info.steps;
    run.placement = std::move(info.placement);
    return run;
  }

 private:
  hlo::RunTarget target_;
};

class EvaluatorTarget : public Target {
 public:
  std::vector<std::string> description() const override { return {"the reference evaluator"}; }

  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
    hlo::Evaluator evaluator(module);
    TargetRun run;
    TENON_ASSIGN(
        run.results,
        evaluator.run(*module.entry(), std::vector<Literal>(arguments.begin(), arguments.end())));
    run.steps.kernels = 1;
    return run;
  }
};

}  // namespace

Result<std::unique_ptr<Target>> make_device_target(std::shared_ptr<backend::Backend> backend,
                                                   size_t device) {
  runtime::ClientOptions one;
  one.devices = {device};
  TENON_ASSIGN(auto client, runtime::Client::open(std::move(backend), one));
  return std::make_unique<DeviceTarget>(std::move(client));
}

std::unique_ptr<Target> make_evaluator_target() { return std::make_unique<EvaluatorTarget>(); }

}  // namespace tenon::conformance
