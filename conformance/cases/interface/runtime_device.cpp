#include "conformance/cases/interface/runtime_device.h"

#include "conformance/cases/program_maker.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::conformance {

using runtime::BufferPtr;
using runtime::Executable;

Result<RuntimeDevice> RuntimeDevice::open(const BackendDevice& source) {
  RuntimeDevice opened;
  runtime::ClientOptions one;
  one.devices = {source.index};
  TENON_ASSIGN(opened.client_, runtime::Client::open(source.backend, one));
  return opened;
}

Result<std::shared_ptr<Executable>> RuntimeDevice::load(const std::string& text) const {
  TENON_ASSIGN(const auto module, hlo::import_module(text, "case"));
  return load(*module);
}

Result<std::shared_ptr<Executable>> RuntimeDevice::load(const hlo::Module& module) const {
  TENON_ASSIGN(auto made, hlo::compile(module, client_->backend(), target()));
  {
    const std::scoped_lock lock(declined_->mutex);
    if (declined_->text.empty()) declined_->text = declined_step(made.placement);
  }
  return Executable::load(device(), std::move(made.compiled), {});
}

Result<BufferPtr> RuntimeDevice::put(const Literal& array, runtime::MemoryKind kind) const {
  TENON_ASSIGN(auto made,
               buffer_from_host(device(), kind, {array.data().data(), array.shape(), {}, {}}));
  return made.buffer;
}

Result<runtime::Execution> RuntimeDevice::execute(const Executable& executable,
                                                  std::vector<BufferPtr> arguments) {
  TENON_ASSIGN(runtime::Execution run, executable.execute(arguments));
  executions_.push_back(run);
  executions_.back().results.clear();  // The case alone holds them.
  return run;
}

Result<std::vector<Literal>> RuntimeDevice::run(const Executable& executable,
                                                const std::vector<Literal>& arguments) {
  std::vector<BufferPtr> buffers;
  for (const Literal& each : arguments) {
    TENON_ASSIGN(BufferPtr buffer, put(each));
    buffers.push_back(std::move(buffer));
  }
  TENON_ASSIGN(const runtime::Execution done, execute(executable, buffers));
  return fetch(done.results);
}

program::StepCounts RuntimeDevice::steps() const {
  program::StepCounts sum;
  for (const runtime::Execution& each : executions_) {
    if (each.done.await().ok()) sum += *each.steps;
  }
  return sum;
}

std::string RuntimeDevice::declined() const {
  const std::scoped_lock lock(declined_->mutex);
  return declined_->text;
}

Result<std::vector<Literal>> fetch(const std::vector<BufferPtr>& buffers) {
  std::vector<Literal> arrays;
  for (const BufferPtr& each : buffers) {
    TENON_ASSIGN(Literal array, each->to_literal());
    arrays.push_back(std::move(array));
  }
  return arrays;
}

CaseResult run_on_runtime(CaseContext& context,
                          const std::function<Status(RuntimeDevice& device)>& check) {
  const auto released = context.target.release_device();
  if (!released) return failed_run(released.error());
  CaseResult result;
  std::string declined;
  {
    auto device = RuntimeDevice::open(*released);
    if (!device) return failed_run(device.error());
    const Status status = check(*device);
    if (!status.ok()) {
      result = failed_run(status);
      result.blame = Blame::kInterface;
    }
    result.steps = device->steps();
    declined = device->declined();
  }
  // The client's device is closed on another thread.
  if (const auto closed = context.target.release_device(); !closed)
    return failed_run(closed.error());
  if (result.outcome != Outcome::kPass) return result;
  return with_steps_judged(std::move(result), context.target, declined);
}

}  // namespace tenon::conformance
