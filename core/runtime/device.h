// An open device at work: its queues, each with threads that give it work and wait for that
// (submission/device_queue.h), its memory and modules. Client makes Devices; Buffers and
// Executables post the work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include "core/backend/backend.h"
#include "core/runtime/event.h"
#include "core/runtime/memory/allocator.h"
#include "core/runtime/submission/device_queue.h"
#include "core/runtime/submission/open_device.h"

namespace tenon::runtime {

/// Where work goes, and what it comes behind besides earlier work of its queue.
struct PostOptions {
  QueueRole role = QueueRole::kCompute;
  WorkMarks after;
  std::shared_ptr<std::atomic<uint32_t>> stop;
};

/// A device that is lost, by its own word (B12) or since the host gave it up, answers everything
/// with that error, and is closed as soon as no call of it is left, so that another client may open
/// it again.
///
/// It has threads, which a forked child of the process lacks: there every call ends with an error
/// that says so, and nothing is closed.
///
/// Thread-safety: `post` and what is const, from any thread; functions marked as the worker's, on
/// it alone.
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
  Status lost() const { return device_->lost(); }
  /// Whether the device must not be given memory of the caller.
  bool stages() const { return device_->stages(); }

  WorkPosition post(Work work, Done done, PostOptions options = {});
  /// Whether the queue for `role` need not wait for the work.
  bool is_done(QueueRole role, const WorkMarks& work) const;
  /// The place of the queue for computing in its order of work, for run_inline(); nothing if there
  /// is work before it.
  std::optional<DeviceQueue::InlineTurn> claim_inline_turn();
  /// Work for run_inline(), which needs no memory then.
  static std::shared_ptr<WorkItem> make_work_item(Work work, Done done, PostOptions options);
  /// post() on the calling thread, in a turn that was claimed. For work that is brief and waits
  /// for nothing.
  void run_inline(DeviceQueue::InlineTurn turn, const std::shared_ptr<WorkItem>& item);
  /// Held by an execution until it is done. Waits for others where many are on their way, so that a
  /// caller who runs ahead does not fill memory with results that are not needed yet. A worker,
  /// which others wait for, never does.
  std::shared_ptr<const void> acquire_throttle_token();
  /// Held while the memory of buffers is looked up and the work that uses it is posted, so that no
  /// donation comes between them.
  std::unique_lock<std::mutex> in_order() { return std::unique_lock(order_); }

  // --- Called by the worker of the queue

  /// Host memory that `work` or `done` keeps, or the device's. 0 bytes are no copy. `role` is that
  /// of the work; two places of the host need the queue for computing.
  Status copy(const backend::MemoryAddress& to, const backend::MemoryAddress& from, int64_t bytes,
              QueueRole role = QueueRole::kCompute);
  Status launch(const backend::KernelLaunch& launch);
  /// kUnimplemented if the device does not offer it.
  Status copy_box(const backend::MemoryAddress& to, const backend::MemoryAddress& from,
                  const backend::Box& box, QueueRole role = QueueRole::kCompute);
  Status call(const backend::LibraryCallLaunch& call);
  Status pack(std::string_view plan, uint32_t operand, const backend::MemoryAddress& to,
              const backend::MemoryAddress& from);
  /// Waits for the bytes; any memory of the host.
  Status fetch(std::span<std::byte> to, const backend::MemoryAddress& from);
  Status put(const backend::MemoryAddress& to, std::span<const std::byte> from);

  // --- Called by any thread

  Result<backend::ModuleHandle> load(std::string_view binary, backend::Kernels kernels);
  /// Unloads later, when no work is left that uses it; at once if there is no memory to remember
  /// it.
  void unload(backend::ModuleHandle module) noexcept;
  /// Bytes of the host's as memory of a space (B28); 0 if the device declines them.
  Result<backend::MemoryHandle> import_memory(size_t space, std::span<const std::byte> host);
  /// Frees later, when no work is left that uses it; then calls `gone`, which must not hold up its
  /// thread.
  void free_imported(backend::MemoryHandle memory, std::function<void()> gone);
  /// A view of its memory: the device is not closed while it lives, even if it is lost, so that
  /// memory that the host reads stays; null if it is lost already. When the host gives up a device
  /// that is viewed, work ends a second later, done or not, as if there were a time limit.
  std::shared_ptr<const void> keep_open() const { return device_->keep_open(); }
  /// Whether somebody has such a view.
  bool is_viewed() const { return device_->is_viewed(); }
  /// Waits for all that was posted so far. Not on a worker.
  Status drain();

 private:
  /// The last share may be dropped on one of the device's threads, which cannot end itself.
  static void dispose(Device* device);

  Device(backend::DeviceInfo info, CallbackPool pool)
      : info_(std::move(info)), pool_(std::move(pool)) {}

  void add_spaces();
  void add_queues();
  DeviceQueue& queue(QueueRole role) const;
  uint32_t number_of(QueueRole role) const;
  bool is_worker() const;
  bool owns_this_thread() const;

  /// Bounds the executions in flight, which may outlive the device.
  struct Throttle {
    std::mutex mutex;
    std::condition_variable fewer;
    int count = 0;
  };

  const backend::DeviceInfo info_;
  const CallbackPool pool_;
  const std::shared_ptr<Throttle> throttle_ = std::make_shared<Throttle>();
  size_t number_ = 0;
  std::unique_ptr<OpenDevice> device_;
  std::mutex order_;
  std::mutex one_at_a_time_;          // load, unload, allocate, import_memory, map, free (B7)
  std::atomic<bool> imports_ = true;  // False once the device has said that it never imports.
  std::vector<std::shared_ptr<Allocator>> spaces_;
  std::vector<std::unique_ptr<WorkProgress>> progresses_;
  std::vector<std::unique_ptr<DeviceQueue>> queues_;
};

}  // namespace tenon::runtime
