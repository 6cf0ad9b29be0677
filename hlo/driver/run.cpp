#include "hlo/driver/run.h"

#include <chrono>
#include <mutex>
#include <set>

#include "hlo/driver/host_calls.h"

namespace tenon::hlo {
namespace {

// Devices of the backend for the program's processes, other than the device of the program itself.
class SpareDevices {
 public:
  explicit SpareDevices(const RunTarget& target) : target_(target) {}

  Result<size_t> take() {
    const std::lock_guard lock(mutex_);
    if (!counted_) {
      TENON_ASSIGN(const auto devices, target_.client->backend().devices());
      for (size_t i = 0; i < devices.size(); ++i) {
        if (i != target_.client->devices()[target_.device]->number()) free_.insert(i);
      }
      count_ = devices.size();
      counted_ = true;
    }
    if (free_.empty()) {
      return resource_exhausted("backend {} has {} devices: not one for each process",
                                target_.client->backend().name(), count_);
    }
    return free_.extract(free_.begin()).value();
  }
  void give_back(size_t device) {
    const std::lock_guard lock(mutex_);
    free_.insert(device);
  }

 private:
  const RunTarget& target_;
  std::mutex mutex_;
  bool counted_ = false;
  size_t count_ = 0;
  std::set<size_t> free_;
};

// Measures the seconds since it was made or last asked.
class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Waits for pending work when the scope is left.
struct Pending {
  std::vector<runtime::Event> events;
  ~Pending() {
    for (const runtime::Event& event : events) static_cast<void>(event.await());
  }
};

class DeviceRun {
 public:
  DeviceRun(const Checks& checks, const CompileOptions& options, SpareDevices& spare)
      : checks_(checks), options_(options), spare_(spare) {}

  Result<std::vector<Literal>> run(const RunTarget& target, const Module& module,
                                   std::span<const Literal> arguments, const std::string& entry,
                                   Evaluator* process, RunInfo* info) {
    const std::shared_ptr<runtime::Device>& device = target.client->devices()[target.device];
    CompileOptions options = options_;
    options.lower.entry = entry;
    Stopwatch watch;
    TENON_ASSIGN(Compilation compilation,
                 compile(module, target.client->backend(), device->info().target, options));
    if (info != nullptr) info->times.compile = watch.lap();
    return load(target, std::move(compilation), arguments, process, info);
  }

  Result<std::vector<Literal>> load(const RunTarget& target, Compilation compilation,
                                    std::span<const Literal> arguments, Evaluator* process,
                                    RunInfo* info) {
    const std::shared_ptr<runtime::Device>& device = target.client->devices()[target.device];
    if (info != nullptr) {
      info->placement = std::move(compilation.placement);
      info->warnings = std::move(compilation.warnings);
      info->folded = compilation.folded;
    }
    const auto run_process = [this, &target](const Module& started, std::span<const Literal> values,
                                             const std::string& function, Evaluator* evaluator) {
      return run_elsewhere(target.client->shared_backend(), started, values, function, evaluator);
    };
    TENON_ASSIGN(auto calls,
                 host_calls(compilation.compiled.program, checks_, process, run_process));
    Stopwatch watch;
    TENON_ASSIGN(
        const auto executable,
        runtime::Executable::load(device, std::move(compilation.compiled), std::move(calls)));
    if (info != nullptr) info->times.load = watch.lap();
    auto results = execute(*executable, arguments, target, info);
    if (info != nullptr) {
      const std::lock_guard lock(mutex_);
      info->steps = steps_;
    }
    return results;
  }

 private:
  // Runs a process on its own client; its device is closed when the process has ended.
  Result<std::vector<Literal>> run_elsewhere(std::shared_ptr<backend::Backend> backend,
                                             const Module& module,
                                             std::span<const Literal> arguments,
                                             const std::string& entry, Evaluator* process) {
    TENON_ASSIGN(const size_t number, spare_.take());
    runtime::ClientOptions options;
    options.devices = {number};
    options.callback_threads = 1;
    auto client = runtime::Client::open(std::move(backend), options);
    auto results = client ? run({*client, 0}, module, arguments, entry, process, nullptr)
                          : Result<std::vector<Literal>>(tl::make_unexpected(client.error()));
    client = tl::make_unexpected(Status());
    spare_.give_back(number);
    return results;
  }

  // If copying an argument lost the device, later calls fail for that reason: returns the error of
  // the copy.
  static Status cause_of(const Status& error, const std::vector<runtime::BufferPtr>& arguments) {
    if (error.code() != ErrorCode::kUnavailable) return error;
    for (const runtime::BufferPtr& argument : arguments) {
      if (Status status = argument->defined().await(); !status.ok()) return status;
    }
    return error;
  }

  Result<std::vector<Literal>> execute(const runtime::Executable& executable,
                                       std::span<const Literal> arguments, const RunTarget& target,
                                       RunInfo* info) {
    const auto& device = executable.device();
    Stopwatch watch;
    RunTimes times;
    Pending uses;  // Keeps the arguments until no buffer needs them.
    std::vector<runtime::BufferPtr> buffers;
    for (const Literal& argument : arguments) {
      runtime::HostArray array;
      array.data = argument.data().data();
      array.shape = argument.shape();
      array.lifetime = runtime::HostLifetime::kUntilDeleted;
      auto made = runtime::buffer_from_host(device, runtime::MemoryKind::kDevice, array);
      if (!made) return tl::make_unexpected(cause_of(made.error(), buffers));
      buffers.push_back(made->buffer);
      uses.events.push_back(made->host_done);
    }
    runtime::ExecuteOptions options;
    options.observer = target.observer;
    if (target.repeat > 1) {
      // A later execution takes the arguments too.
      for (uint32_t i = 0; i < buffers.size(); ++i) options.keep.push_back(i);
      for (const runtime::BufferPtr& buffer : buffers) TENON_TRY(buffer->defined().await());
    }
    times.arguments = watch.lap();
    Result<runtime::Execution> execution;
    double seconds = 0;
    for (int64_t i = 0; i < target.repeat; ++i) {
      if (i > 1 && target.most_seconds > 0 && seconds >= target.most_seconds) break;
      execution = executable.execute(buffers, options);
      if (!execution) return tl::make_unexpected(cause_of(execution.error(), buffers));
      TENON_TRY(execution->done.await());
      seconds += times.executions.emplace_back(watch.lap());
    }
    std::vector<Literal> results;
    for (const runtime::BufferPtr& buffer : execution->results) {
      TENON_ASSIGN(results.emplace_back(), buffer->to_literal());
    }
    {
      const std::lock_guard lock(mutex_);
      steps_ += *execution->steps;
    }
    times.results = watch.lap();
    if (info != nullptr) {
      times.compile = info->times.compile;
      times.load = info->times.load;
      info->times = std::move(times);
      info->memory = device->memory().statistics();
    }
    return results;
  }

  const Checks& checks_;
  const CompileOptions& options_;
  SpareDevices& spare_;
  std::mutex mutex_;
  program::StepCounts steps_;  // Steps of the program and its processes.
};

}  // namespace

Result<std::vector<Literal>> run_on_device(const RunTarget& target, const Module& module,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           const CompileOptions& options, RunInfo* info) {
  SpareDevices spare(target);
  return DeviceRun(checks, options, spare)
      .run(target, module, arguments, options.lower.entry, nullptr, info);
}

Result<std::vector<Literal>> run_on_device(const RunTarget& target, const program::Program& program,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           const CompileOptions& options, RunInfo* info) {
  const auto& device = target.client->devices()[target.device];
  TENON_ASSIGN(Compilation compilation,
               compile(program, target.client->backend(), device->info().target, options));
  SpareDevices spare(target);
  return DeviceRun(checks, options, spare)
      .load(target, std::move(compilation), arguments, nullptr, info);
}

Result<std::vector<Literal>> run_on_device(const RunTarget& target,
                                           const runtime::CompiledProgram& compiled,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           RunInfo* info) {
  SpareDevices spare(target);
  const CompileOptions options;  // Processes that the program starts have these.
  return DeviceRun(checks, options, spare)
      .load(target, Compilation{compiled, {}, {}, {}}, arguments, nullptr, info);
}

}  // namespace tenon::hlo
