// An open device at work: one thread gives work to its queue, in the order in which it was posted;
// another waits for it to be done. With a time limit a third looks whether the calls of the first
// return. Client makes Devices; Buffers and Executables post the work.
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
#include "core/runtime/submission/device_session.h"
#include "core/runtime/submission/forked.h"
#include "core/runtime/submission/watchdog.h"
#include "core/runtime/submission/worker.h"

namespace tenon::runtime {

struct DeviceLimits {
  /// Nanoseconds that a piece of work may take the device, in the calls that give it and after
  /// them, before the device counts as lost; 0: any. With a limit, copies from and to the caller's
  /// memory go through memory of the runtime, which a device that hangs may still write when the
  /// caller has long had his error.
  int64_t time_limit = 0;
  /// Nanoseconds to wait for a device that is still open (B11): clients close their devices when
  /// the last of their work is done, soon after their destruction.
  int64_t open_wait = 5'000'000'000;
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
  Status lost() const;
  /// Whether the device must not be given memory of the caller.
  bool stages() const { return limits_.time_limit > 0; }

  /// Work gives work to the queue on the worker's thread and returns an error that it could not;
  /// `done` hears the outcome, on a thread that it must not hold up, once all that work is done.
  /// Both are kept until then. `stop` is raised when the time limit has passed.
  using Work = std::function<Status()>;
  using Done = std::function<void(const Status&)>;
  void post(Work work, Done done, std::shared_ptr<std::atomic<uint32_t>> stop = nullptr);
  /// The worker's place in the order of work, if the worker is idle and there is no time limit,
  /// which only a thread that can be abandoned keeps; else null.
  std::unique_ptr<Worker::InlineSlot> claim_inline_slot();
  struct WorkItem;
  /// Work for run_inline(), which needs no memory then.
  static std::shared_ptr<WorkItem> make_work_item(Work work, Done done,
                                                  std::shared_ptr<std::atomic<uint32_t>> stop);
  /// post() on the calling thread, in a slot that was claimed. For work that is brief and waits
  /// for nothing.
  void run_inline(std::unique_ptr<Worker::InlineSlot> claim, const std::shared_ptr<WorkItem>& item);
  /// Held by an execution until it is done. Waits for others where many are on their way, so that a
  /// caller who runs ahead does not fill memory with results that are not needed yet. The worker,
  /// which others wait for, never does.
  std::shared_ptr<const void> acquire_throttle_token();
  /// Held while the memory of buffers is looked up and the work that uses it is posted, so that no
  /// donation comes between them.
  std::unique_lock<std::mutex> in_order() { return std::unique_lock(order_); }

  // --- Called by the worker

  /// Host memory that `work` or `done` keeps, or the device's. 0 bytes are no copy.
  Status copy(const backend::MemoryAddress& to, const backend::MemoryAddress& from, int64_t bytes);
  Status launch(const backend::KernelLaunch& launch);
  /// kUnimplemented if the device does not offer it.
  Status copy_box(const backend::MemoryAddress& to, const backend::MemoryAddress& from,
                  const backend::Box& box);
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
  std::shared_ptr<const void> keep_open() const;
  /// Whether somebody has such a view.
  bool is_viewed() const { return *views_ > 0; }
  /// Waits for all that was posted so far. Not on the worker.
  Status drain();

 private:
  using Share = std::shared_ptr<backend::Device>;

  /// The last share may be dropped on one of the device's threads, which cannot end itself.
  static void dispose(Device* device);

  Device(backend::DeviceInfo info, CallbackPool pool, const DeviceLimits& limits)
      : info_(std::move(info)), pool_(std::move(pool)), limits_(limits) {}

  /// A share of the backend's device, for a call of it. Error if the device is lost.
  Result<Share> use() const;
  /// Marks the device as lost if `status`, an answer of its own, says so. Returns `status`.
  Status note_loss(Status status);
  Status lose(Status why, bool by_host);
  /// After work has ended with the loss of the device: waits until it touches no memory of the
  /// host, or keeps what it may touch until the device is closed.
  void await_quiescence(const std::shared_ptr<const void>& work);

  /// Called by the worker: a call of the backend for the work at hand. Exceptions become errors.
  template <class Call>
  std::invoke_result_t<Call, backend::Device&> watched(const Call& call);
  /// Called by the watchdog: a call of the work at hand is past the time limit.
  void call_is_late();

  void post(const std::shared_ptr<WorkItem>& item);
  void submit(const std::shared_ptr<WorkItem>& item);
  /// Whether all that was given is done, and all before has been heard of.
  bool is_done(backend::EventHandle event);
  /// Lets the waiter finish it.
  void post_completion(const std::shared_ptr<WorkItem>& item, backend::EventHandle event,
                       Status given);
  void finish(const std::shared_ptr<WorkItem>& item, backend::EventHandle event, Status given);
  /// An event of all that has been given; it is asked for more than once, since host memory may
  /// not be let go before it is done (B19). A device that gives none counts as lost.
  Result<backend::EventHandle> record();
  /// The event's outcome, within nanoseconds if they are more than 0.
  Status outcome(backend::EventHandle event, int64_t limit, std::atomic<uint32_t>* stop);
  /// Work took too long: raises its stop flag and aborts it. `ends` waits for it some nanoseconds.
  Status overrun(std::atomic<uint32_t>* stop, const std::function<bool(int64_t)>& ends);
  /// Called by the worker: waits until all given work is done, within the limit of the work at
  /// hand.
  Status drain_queue();

  /// Bounds the executions in flight, which may outlive the device.
  struct Throttle {
    std::mutex mutex;
    std::condition_variable fewer;
    int count = 0;
  };

  const Birth birth_;
  const backend::DeviceInfo info_;
  const CallbackPool pool_;
  const DeviceLimits limits_;
  const std::shared_ptr<Throttle> throttle_ = std::make_shared<Throttle>();
  size_t number_ = 0;
  std::shared_ptr<DeviceSession> session_;
  std::mutex order_;
  std::mutex one_at_a_time_;  // load, unload, allocate, import_memory, map, free (B7)
  const std::shared_ptr<std::atomic<int>> views_ = std::make_shared<std::atomic<int>>(0);
  std::atomic<bool> imports_ = true;  // False once the device has said that it never imports.
  mutable std::mutex lost_mutex_;
  Status lost_;
  bool given_up_ = false;  // The host gave the device up: it may go on.
  Share device_;           // Null once it is lost.
  std::vector<std::shared_ptr<Allocator>> spaces_;

  // The worker's; the watchdog reads it during a call.
  std::shared_ptr<WorkItem> at_hand_;
  int64_t taken_ = 0;  // Nanoseconds that the device took for it so far.
  // Pieces of work whose end the waiter waits for, and watches.
  std::atomic<int64_t> running_ = 0;
  // Those, and the ones whose end has not been heard of yet.
  std::atomic<int64_t> waited_for_ = 0;

  std::optional<Worker> completions_;
  std::optional<Worker> worker_;
  std::optional<Watchdog> watchdog_;  // With a time limit.
};

struct Device::WorkItem {
  Work work;
  Done done;
  std::shared_ptr<std::atomic<uint32_t>> stop;
  /// The worker was abandoned: a call of the work did not return in time, and its outcome is known.
  bool abandoned = false;
};

}  // namespace tenon::runtime
