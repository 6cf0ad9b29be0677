// A device for tests whose queues work at the same time, and whose work a test holds up: until it
// lets go, or for a random while.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "core/backend/in_process/host_device.h"
#include "core/base/random.h"
#include "core/kernel/interpreter/interpreter.h"

namespace tenon::backend {

/// The work that a test holds up, by name: "upload", "download", "copy" (on the device), or the
/// label of a launch.
///
/// Thread-safety: everything, from any thread.
class Holds {
 public:
  ~Holds() { let_all_go(); }

  /// Work of that name waits when it begins.
  void hold(const std::string& name) {
    const std::lock_guard lock(mutex_);
    held_.insert(name);
  }
  void let_go(const std::string& name) {
    const std::lock_guard lock(mutex_);
    held_.erase(name);
    changed_.notify_all();
  }
  void let_all_go() {
    const std::lock_guard lock(mutex_);
    held_.clear();
    changed_.notify_all();
  }
  /// Work takes a random while from now on.
  void delay(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    random_.emplace(seed);
  }
  /// How many pieces of work of that name have begun.
  int64_t begun(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return begun_[name];
  }
  /// Waits until so many have.
  void await_begun(const std::string& name, int64_t count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_[name] >= count; });
  }

  /// Called by the device's work.
  void begin(const std::string& name) {
    std::chrono::microseconds pause{0};
    {
      std::unique_lock lock(mutex_);
      ++begun_[name];
      changed_.notify_all();
      changed_.wait(lock, [&] { return !held_.contains(name); });
      if (random_ && random_->one_in(3)) pause = std::chrono::microseconds(random_->below(300));
    }
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> held_;
  std::map<std::string, int64_t> begun_;
  std::optional<Random> random_;
};

class HeldDevice final : public HostDevice {
 public:
  HeldDevice(uint32_t queues, std::shared_ptr<Holds> holds)
      : HostDevice("held", 0, HostQueue::Thread::kOwn, queues), holds_(std::move(holds)) {}
  ~HeldDevice() override { end_work(); }

  Result<ModuleHandle> load(std::string_view, Kernels kernels) override {
    auto module = std::make_shared<std::vector<kernel::Kernel>>();
    for (const kernel::Kernel* kernel : kernels) module->push_back(*kernel);
    return modules_.add(std::move(module));
  }
  void unload(ModuleHandle module) override { modules_.take(module); }

  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    begin(queue, source.on_host() ? "upload" : destination.on_host() ? "download" : "copy");
    return HostDevice::copy(queue, destination, source, bytes);
  }

  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    const auto module = modules_.find(launch.module);
    const kernel::Kernel& kernel = (*module)[launch.kernel];
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < launch.buffers.size(); ++i) sizes.push_back(kernel.memories[i].bytes());
    TENON_ASSIGN(std::vector<Pinned> buffers, pin(launch.buffers, sizes));
    begin(queue, launch.label);
    push(queue, [module, &kernel, buffers = std::move(buffers)] {
      std::vector<kernel::BufferArgument> arguments;
      for (const Pinned& each : buffers) {
        arguments.push_back({each.data, static_cast<size_t>(each.bytes)});
      }
      return kernel::Interpreter(kernel).run(arguments);
    });
    return {};
  }

 private:
  void begin(uint32_t queue, std::string name) {
    push(queue, [holds = holds_, name = std::move(name)]() -> Status {
      holds->begin(name);
      return {};
    });
  }

  const std::shared_ptr<Holds> holds_;
  Handles<std::vector<kernel::Kernel>> modules_;
};

class HeldBackend final : public Backend {
 public:
  /// `space_bytes`: what the target says of its memory, which is not bounded by it.
  HeldBackend(uint32_t queues, std::shared_ptr<Holds> holds, int64_t space_bytes = 0)
      : queues_(queues), space_bytes_(space_bytes), holds_(std::move(holds)) {}
  std::string_view name() const override { return "held"; }
  std::string_view version() const override { return "1"; }
  Result<std::vector<DeviceInfo>> devices() override {
    TargetInfo target;
    target.name = "held";
    target.compiler_id = "held-1";
    target.accepts_all = true;
    target.queues = queues_;
    target.spaces[0].bytes = space_bytes_;
    return std::vector<DeviceInfo>{{"held:0", target}};
  }
  Result<std::unique_ptr<Device>> open(size_t) override {
    return std::make_unique<HeldDevice>(queues_, holds_);
  }
  Result<Compiled> compile(const TargetInfo&, Kernels) override { return Compiled{"held", {}}; }

 private:
  const uint32_t queues_;
  const int64_t space_bytes_;
  const std::shared_ptr<Holds> holds_;
};

}  // namespace tenon::backend
