// Device: an open device with its queues, its memory and its loaded modules. Each queue has threads
// that submit work and wait for its completion (submission/device_queue.h). Client makes Devices;
// Buffers and Executables post work to them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/backend/backend.h"
#include "core/runtime/event.h"
#include "core/runtime/memory/allocator.h"
#include "core/runtime/submission/device_queue.h"
#include "core/runtime/submission/open_device.h"

namespace tenon::runtime {

/// The queue of a piece of work, and the work of other queues that must complete first.
struct PostOptions {
  QueueRole role = QueueRole::kCompute;
  WorkMarks after;
};

/// Bounds the executions in flight, which may outlive the device.
struct Throttle {
  std::atomic<int> count = 0;
  std::atomic<int> waiting = 0;  ///< Threads that wait for `fewer`.
  std::mutex mutex;
  std::condition_variable fewer;

  /// Whether there were less than `most`, of which there is one more now.
  bool enter(int most);
  void leave();
};

/// One of the executions in flight, until it is reset or destroyed.
class ThrottleToken {
 public:
  ThrottleToken() = default;
  explicit ThrottleToken(std::shared_ptr<Throttle> throttle) : throttle_(std::move(throttle)) {}
  ~ThrottleToken() { reset(); }
  ThrottleToken(ThrottleToken&&) noexcept = default;
  ThrottleToken& operator=(ThrottleToken&& other) noexcept {
    std::swap(throttle_, other.throttle_);
    return *this;
  }
  void reset() {
    if (const auto throttle = std::exchange(throttle_, nullptr)) throttle->leave();
  }

 private:
  std::shared_ptr<Throttle> throttle_;
};

/// A device is lost when it says so (B12) or when the host abandons it. From then on every call
/// returns that error, and the device is closed when its last call has returned, so that another
/// client can open it again.
///
/// A forked child of the process lacks the device's threads: there every call returns an error that
/// says so, and nothing is closed.
///
/// Thread-safety: any thread may call `post` and const functions; only the worker calls the
/// functions that are marked as its own.
class Device : public std::enable_shared_from_this<Device> {
 public:
  static Result<std::shared_ptr<Device>> open(std::shared_ptr<backend::Backend> backend,
                                              size_t index, backend::DeviceInfo info,
                                              CallbackPool pool, const DeviceLimits& limits);
  ~Device();

  const backend::DeviceInfo& info() const { return info_; }
  /// The index among the backend's devices.
  size_t number() const { return number_; }
  const CallbackPool& pool() const { return pool_; }
  Allocator& memory(size_t space = 0) { return *spaces_[space]; }
  /// The first memory space of that kind.
  std::optional<size_t> space_of(backend::SpaceKind kind) const;
  size_t space_count() const { return spaces_.size(); }
  /// The error that every call returns because the device is lost; OK if it is not.
  Status lost() const { return device_->lost(); }
  /// Whether copies from and to the caller's memory are staged.
  bool stages() const { return device_->stages(); }

  WorkPosition post(Work work, Done done, PostOptions options = {});
  WorkPosition post(const std::shared_ptr<WorkItem>& item, QueueRole role);
  /// Whether the queue for `role` need not wait for the work.
  bool is_done(QueueRole role, const WorkMarks& work) const;
  /// Takes the turn of the compute queue's worker, for run_inline(); empty if that has work.
  std::optional<DeviceQueue::InlineTurn> claim_inline_turn();
  /// Does what post() does, on the calling thread, in a claimed turn, and allocates nothing. The
  /// work must be brief and must not wait.
  void run_inline(DeviceQueue::InlineTurn turn, const std::shared_ptr<WorkItem>& item);
  /// Returns a token that an execution holds until it completes. Waits while too many executions
  /// run, so that a caller who runs ahead does not fill memory with results that nobody needs yet.
  /// Never waits on a worker, since others wait for that.
  ThrottleToken acquire_throttle_token();
  /// Returns a lock to hold from the look-up of buffers' memory until the work that uses it is
  /// posted, so that no donation comes between.
  std::unique_lock<std::mutex> in_order() { return std::unique_lock(order_); }

  // --- Called by the worker of the queue

  /// Copies between memory of the device, and of the host as long as `work` or `done` keeps that.
  /// Copies nothing for 0 bytes. `role` is that of the work; a copy within the host takes the
  /// compute queue.
  Status copy(const backend::MemoryAddress& to, const backend::MemoryAddress& from, int64_t bytes,
              QueueRole role = QueueRole::kCompute);
  Status launch(const backend::KernelLaunch& launch);
  /// Copies a box. kUnimplemented if the device does not offer that.
  Status copy_box(const backend::MemoryAddress& to, const backend::MemoryAddress& from,
                  const backend::Box& box, QueueRole role = QueueRole::kCompute);
  Status call(const backend::LibraryCallLaunch& call);
  Status pack(std::string_view plan, uint32_t operand, const backend::MemoryAddress& to,
              const backend::MemoryAddress& from);
  /// Copies to any memory of the host, and waits for it.
  Status fetch(std::span<std::byte> to, const backend::MemoryAddress& from);
  Status put(const backend::MemoryAddress& to, std::span<const std::byte> from);
  /// Waits for the work that was given to the queue so far, so that the host may read what it
  /// wrote.
  Status await_given();

  // --- Called by any thread

  Result<backend::ModuleHandle> load(std::string_view binary, backend::Kernels kernels);
  /// Unloads `module` when no work uses it any more; at once if the host lacks the memory to defer
  /// it.
  void unload(backend::ModuleHandle module) noexcept;
  /// Imports memory of the host into a space (B28); 0 if the device declines it.
  Result<backend::MemoryHandle> import_memory(size_t space, std::span<const std::byte> host);
  /// Frees `memory` when no work uses it any more, then calls `gone`, which must not block.
  void free_imported(backend::MemoryHandle memory, std::function<void()> gone);
  /// Returns an owner of a view of device memory, which the host may read: while it lives, the
  /// device is not closed, even if it is lost. Null if it is lost already. When the host abandons a
  /// device with such an owner, its work ends within a second, complete or not, as under a time
  /// limit.
  std::shared_ptr<const void> keep_open() const { return device_->keep_open(); }
  /// Whether such an owner lives.
  bool is_viewed() const { return device_->is_viewed(); }
  /// Waits for all work posted so far. Must not run on a worker.
  Status drain();

 private:
  /// Deletes the device, on another thread if the calling one is the device's own, which cannot
  /// join itself.
  static void dispose(Device* device);

  Device(backend::DeviceInfo info, CallbackPool pool)
      : info_(std::move(info)), pool_(std::move(pool)) {}

  void add_spaces();
  void add_queues();
  DeviceQueue& queue(QueueRole role) const;
  uint32_t number_of(QueueRole role) const;
  bool is_worker() const;
  bool owns_this_thread() const;

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
