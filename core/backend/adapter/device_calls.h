// The calls of a plug-in's device, for the texts of its errors: function, device, queue, kernel and
// op. Internal to the adapter.
//
// Thread-safety: everything, from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::backend {

class DeviceCalls {
 public:
  /// `device`: its name, for people.
  explicit DeviceCalls(std::string device) : device_(std::move(device)) {}

  void load(ModuleHandle module, Kernels kernels) {
    auto names = std::make_shared<std::vector<std::string>>();
    for (const kernel::Kernel* each : kernels) names->push_back(each->name);
    const std::lock_guard lock(mutex_);
    modules_[module] = std::move(names);
  }
  void unload(ModuleHandle module) {
    const std::lock_guard lock(mutex_);
    modules_.erase(module);
  }

  /// The queue is given work, which is the last before its next event.
  void launch(uint32_t queue, const KernelLaunch& launch) {
    const std::lock_guard lock(mutex_);
    LastWork& last = queues_[queue];
    last = {"launch", launched(launch), launch.label == nullptr ? "" : launch.label,
            last.count + 1};
  }
  void work(uint32_t queue, const char* function, const char* label) {
    const std::lock_guard lock(mutex_);
    LastWork& last = queues_[queue];
    last = {function, {}, label == nullptr ? "" : label, last.count + 1};
  }
  void record(uint32_t queue, EventHandle event) {
    const std::lock_guard lock(mutex_);
    events_[event] = {queue, std::exchange(queues_[queue], {})};
  }
  void release(EventHandle event) {
    const std::lock_guard lock(mutex_);
    events_.erase(event);
  }

  /// Errors of functions with what they were asked to do, in brackets at their end. A function that
  /// is not offered has nothing to add.
  Status of_device(Status status, const char* function) const {
    return named(std::move(status), function);
  }
  Status of_queue(Status status, const char* function, uint32_t queue) const {
    return named(std::move(status), fmt::format("{}, queue {}", function, queue));
  }
  Status of_launch(Status status, uint32_t queue, const KernelLaunch& launch) const {
    if (status.ok()) return status;
    const std::lock_guard lock(mutex_);
    return named(std::move(status),
                 fmt::format("launch of {}, queue {}", launched(launch).name(), queue));
  }
  /// An error of work comes with an event behind it, which names the last of that work (B6).
  Status of_event(Status status, EventHandle event) const {
    if (status.ok()) return status;
    const std::lock_guard lock(mutex_);
    const auto found = events_.find(event);
    if (found == events_.end()) return named(std::move(status), "await of an event");
    const auto& [queue, last] = found->second;
    if (last.count == 0) return named(std::move(status), fmt::format("await, queue {}", queue));
    const std::string what = last.launched.module == 0
                                 ? std::string(last.function)
                                 : fmt::format("launch of {}", last.launched.name());
    const std::string label = last.label.empty() ? "" : fmt::format(", {}", last.label);
    return named(std::move(status),
                 last.count == 1
                     ? fmt::format("await of a {}{}, queue {}", what, label, queue)
                     : fmt::format("await of {} pieces of work, the last a {}{}, queue {}",
                                   last.count, what, label, queue));
  }

 private:
  using Names = std::shared_ptr<const std::vector<std::string>>;

  // A kernel with its module's names as they were at the launch: the module may be unloaded before
  // its event is awaited.
  struct NamedLaunch {
    ModuleHandle module = 0;  // 0: no launch.
    uint32_t kernel = 0;
    Names names;  // Null: the module was not loaded.

    std::string name() const {
      if (names == nullptr) return fmt::format("module {}, which is not loaded", module);
      return kernel < names->size() ? "@" + (*names)[kernel] : std::string("a segment");
    }
  };
  struct LastWork {
    const char* function = "";
    NamedLaunch launched;
    std::string label;
    int64_t count = 0;  // Pieces of work since the last event.
  };

  Status named(Status status, std::string_view call) const {
    if (status.ok() || status.code() == ErrorCode::kUnimplemented) return status;
    return Status(status.code(), fmt::format("{} [{}: {}]", status.message(), device_, call));
  }
  NamedLaunch launched(const KernelLaunch& launch) const {
    const auto found = modules_.find(launch.module);
    return {launch.module, launch.kernel, found == modules_.end() ? nullptr : found->second};
  }

  const std::string device_;
  mutable std::mutex mutex_;
  std::map<ModuleHandle, Names> modules_;
  std::map<uint32_t, LastWork> queues_;
  std::map<EventHandle, std::pair<uint32_t, LastWork>> events_;
};

}  // namespace tenon::backend
