// An open device at work: one thread gives work to its queue, in the order in which it was posted;
// another waits for it to be done. Client makes Devices; Buffers and Executables post the work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/backend/backend.h"
#include "core/runtime/allocator.h"
#include "core/runtime/event.h"

namespace tenon::runtime {

/// A thread that does what it is given, in order.
class Worker {
 public:
  Worker();
  /// Does what is left first. Not on the thread itself.
  ~Worker();
  void post(std::function<void()> work);
  bool is_this_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> work_;
  bool ending_ = false;
  std::thread thread_;
};

struct DeviceLimits {
  /// Nanoseconds that a piece of work may take before the device counts as lost; 0: any.
  int64_t time_limit = 0;
};

/// Thread-safety: `post` and what is const, from any thread; what is said to belong to the worker,
/// on it alone.
class Device : public std::enable_shared_from_this<Device> {
 public:
  static Result<std::shared_ptr<Device>> open(std::shared_ptr<backend::Backend> backend,
                                              size_t index, backend::DeviceInfo info,
                                              CallbackPool pool, const DeviceLimits& limits);
  ~Device();

  const backend::DeviceInfo& info() const { return info_; }
  /// Among the backend's devices.
  size_t number() const { return number_; }
  const CallbackPool& pool() const { return pool_; }
  Allocator& memory(size_t space = 0) { return *spaces_[space]; }
  /// The first space of that kind.
  std::optional<size_t> space_of(backend::SpaceKind kind) const;
  size_t space_count() const { return spaces_.size(); }
  /// The error that every call ends with since the device is lost; OK as long as it is not.
  Status lost() const;

  /// Work gives work to the queue on the worker's thread and returns an error that it could not;
  /// `done` hears the outcome, on a thread that it must not hold up, once all that work is done.
  /// `stop` is raised when the time limit has passed.
  using Work = std::function<Status()>;
  using Done = std::function<void(Status)>;
  void post(Work work, Done done, std::shared_ptr<std::atomic<uint32_t>> stop = nullptr);

  // --- Of the worker

  backend::Device& device() { return *device_; }
  /// Waits until all given work is done.
  Status drain_queue();
  /// Marks the device as lost if that is what the error says.
  Status noted(Status status);

  // --- Of anybody

  Result<backend::ModuleHandle> load(std::string_view binary, backend::Kernels kernels);
  /// Later, when no work is left that uses it.
  void unload(backend::ModuleHandle module);
  /// Waits for all that was posted so far. Not on the worker.
  Status drain();

 private:
  /// The last share may be dropped on one of the device's threads, which cannot end itself.
  static void dispose(Device* device);

  Device(backend::DeviceInfo info, CallbackPool pool, const DeviceLimits& limits)
      : info_(std::move(info)), pool_(std::move(pool)), limits_(limits) {}

  /// An event of all that has been given; it is asked for more than once, since host memory may
  /// not be let go before it is done (B19). A device that gives none counts as lost.
  Result<backend::EventHandle> record();
  /// The event's outcome, within the time limit.
  Status outcome(backend::EventHandle event, std::atomic<uint32_t>* stop);

  std::shared_ptr<backend::Backend> backend_;
  size_t number_ = 0;
  const backend::DeviceInfo info_;
  const CallbackPool pool_;
  const DeviceLimits limits_;
  std::unique_ptr<backend::Device> device_;  // Closed when the threads have ended.
  std::mutex one_at_a_time_;                 // load, unload, allocate, free (B7)
  mutable std::mutex lost_mutex_;
  Status lost_;
  std::vector<std::shared_ptr<Allocator>> spaces_;
  std::optional<Worker> completions_;
  std::optional<Worker> worker_;
};

}  // namespace tenon::runtime
