// core/backend/in_process/: devices whose memory and work are in the host's process.
//
// HostDevice is a device whose memory is host memory and whose work runs in this process. It
// implements everything except computation, and is the base class of `interp`, the CPU backend and
// simulated devices.
//
// A derived class loads modules and launches kernels. It pins the memory that its queued work uses,
// and must call end_work() in its destructor, before its members are destroyed.
//
// Thread-safety: rule B7.
#pragma once

#include <array>
#include <atomic>

#include "core/backend/driver/memory_account.h"
#include "core/backend/in_process/host_queue.h"

namespace tenon::backend {

/// An error that names the rule of plugin.h which the caller broke.
Status rule_violation(std::string_view rule, std::string_view what);

class HostDevice : public Device {
 public:
  static constexpr int64_t kAlignment = 64;
  /// Required alignment of imported memory: that of the largest element type, which host allocators
  /// provide.
  static constexpr int64_t kImportAlignment = 16;

  /// `name` is for messages; `memory_bytes` is the maximum that may be allocated, 0 for no limit;
  /// `thread` is that of each queue.
  HostDevice(std::string name, int64_t memory_bytes,
             HostQueue::Thread thread = HostQueue::Thread::kOwn, uint32_t queues = 1)
      : name_(std::move(name)), account_(memory_bytes) {
    for (uint32_t i = 0; i < queues; ++i) queues_.push_back(std::make_unique<HostQueue>(thread));
  }

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override;
  void free(MemoryHandle memory) override;
  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override;
  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override;
  Status copy_box(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                  const Box& box) override;
  Result<EventHandle> record(uint32_t queue) override;
  Status wait(uint32_t queue, EventHandle event) override;
  Result<bool> await(EventHandle event, int64_t timeout) override;
  void release(EventHandle event) override {
    if (!is_past(event)) events_.take(event);
  }
  Result<std::byte*> map(MemoryHandle memory) override;
  /// Derived classes access imported memory by elements, so it need only be aligned for elements.
  Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host) override;
  Result<EventTimes> event_times(EventHandle event) override;

 protected:
  struct HostAllocation {
    explicit HostAllocation(int64_t size);
    /// Imported memory.
    explicit HostAllocation(std::span<const std::byte> host);
    ~HostAllocation();
    HostAllocation(const HostAllocation&) = delete;
    HostAllocation& operator=(const HostAllocation&) = delete;

    int64_t bytes;
    std::byte* data;
    bool own = true;
    MemoryAccount::Share share;
  };
  /// Bytes, and a reference that keeps them valid.
  struct Pinned {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    std::shared_ptr<HostAllocation> memory;
  };

  Status check_queue(uint32_t queue) const;
  /// Errors: B10, B17.
  Result<Pinned> pin(const MemoryAddress& place, int64_t bytes) const;
  /// Pins one range of `bytes` bytes at each of `places`.
  Result<std::vector<Pinned>> pin(std::span<const MemoryAddress> places,
                                  std::span<const int64_t> bytes) const;
  /// The same, to `pinned`, which is as long.
  Status pin(std::span<const MemoryAddress> places, std::span<const int64_t> bytes,
             std::span<Pinned> pinned) const;
  /// Queues work after all earlier work of the queue.
  template <class Do>
  void push(uint32_t queue, Do&& work) {
    queues_[queue]->push(std::forward<Do>(work));
  }
  /// Whether work should end early: the device is being closed (B11), or the host requests it
  /// (B27).
  bool is_stopped(const volatile uint32_t* stop) const {
    return is_set(&closing_) || (stop != nullptr && is_set(stop));
  }
  /// Stop words for code that cannot call is_stopped: the work must end when either is nonzero. The
  /// second is the device's own, the first the launch's, or the second again.
  std::array<const volatile uint32_t*, 2> stop_words(const volatile uint32_t* stop) const {
    return {stop == nullptr ? &closing_ : stop, &closing_};
  }
  /// Ends the threads after their current work.
  void end_work();

 private:
  /// Handles of events that had happened, without an error, when they were recorded: the time in
  /// nanoseconds, and this bit. There is nothing else to know of them.
  static constexpr EventHandle kPast = EventHandle{1} << 63;
  static bool is_past(EventHandle event) { return (event & kPast) != 0; }
  EventHandle past_event();

  static bool is_set(const volatile uint32_t* word) {
    return __atomic_load_n(word, __ATOMIC_RELAXED) != 0;
  }
  Result<Pinned> pin_box(const MemoryAddress& place, const Box& box, const Dims& strides) const;

  const std::string name_;
  MemoryAccount account_;
  volatile uint32_t closing_ = 0;  // Once set, it stays set.
  Handles<HostAllocation> memories_;
  Handles<HostEvent> events_;
  std::atomic<uint64_t> last_past_ = 0;  // Each has a time of its own.
  std::vector<std::unique_ptr<HostQueue>> queues_;
};

}  // namespace tenon::backend
