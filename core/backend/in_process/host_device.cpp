#include "core/backend/in_process/host_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

namespace tenon::backend {

Status rule_violation(std::string_view rule, std::string_view what) {
  return Status(invalid_argument("{}: {}", rule, what));
}

HostDevice::HostAllocation::HostAllocation(int64_t size)
    : bytes(size),
      data(static_cast<std::byte*>(
          ::operator new(static_cast<size_t>(size), std::align_val_t(kAlignment), std::nothrow))) {}
HostDevice::HostAllocation::HostAllocation(std::span<const std::byte> host)
    : bytes(static_cast<int64_t>(host.size())),
      data(const_cast<std::byte*>(host.data())),
      own(false) {}
HostDevice::HostAllocation::~HostAllocation() {
  if (own) ::operator delete(data, std::align_val_t(kAlignment));
}

void HostDevice::end_work() {
  __atomic_store_n(&closing_, 1, __ATOMIC_RELAXED);
  // A queue may wait for another one's event.
  for (const auto& queue : queues_) queue->end();
  queues_.clear();
}

Result<MemoryHandle> HostDevice::allocate(uint32_t space, int64_t bytes) {
  if (space != 0 || bytes <= 0) {
    return tl::make_unexpected(
        rule_violation("B16", "an allocation of 0 bytes, or in an unknown space"));
  }
  auto share = account_.take(bytes);
  if (!share) return tl::make_unexpected(std::move(share.error()).with_context(name_));
  auto allocation = std::make_shared<HostAllocation>(bytes);
  if (allocation->data == nullptr) {
    return resource_exhausted("{}: there are no {} bytes of memory", name_, bytes);
  }
  allocation->share = *std::move(share);
  return memories_.add(std::move(allocation));
}

void HostDevice::free(MemoryHandle memory) {
  const auto allocation = memories_.take(memory);
  if (allocation != nullptr) allocation->share = {};  // Queued work may keep the bytes.
}

Result<MemoryHandle> HostDevice::import_memory(uint32_t space, std::span<const std::byte> host) {
  if (space != 0 || host.empty()) {
    return tl::make_unexpected(
        rule_violation("B28", "an import of 0 bytes, or to an unknown space"));
  }
  if (reinterpret_cast<uintptr_t>(host.data()) % kImportAlignment != 0) {
    return invalid_argument("{}: memory that is not aligned to {} bytes", name_, kImportAlignment);
  }
  return memories_.add(std::make_shared<HostAllocation>(host));
}

Status HostDevice::copy(uint32_t queue, const MemoryAddress& destination,
                        const MemoryAddress& source, int64_t bytes) {
  TENON_TRY(check_queue(queue));
  TENON_ASSIGN(const Pinned to, pin(destination, bytes));
  TENON_ASSIGN(const Pinned from, pin(source, bytes));
  push(queue, [to, from, bytes]() -> Status {
    if (bytes > 0) std::memcpy(to.data, from.data, static_cast<size_t>(bytes));
    return {};
  });
  return {};
}

Status HostDevice::fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
                        std::span<const std::byte> pattern) {
  TENON_TRY(check_queue(queue));
  TENON_ASSIGN(const Pinned to, pin(destination, bytes));
  push(queue, [to, bytes, word = std::vector(pattern.begin(), pattern.end())]() -> Status {
    fill_bytes({to.data, static_cast<size_t>(bytes)}, word);
    return {};
  });
  return {};
}

Status HostDevice::copy_box(uint32_t queue, const MemoryAddress& destination,
                            const MemoryAddress& source, const Box& box) {
  TENON_TRY(check_queue(queue));
  TENON_ASSIGN(const Pinned to, pin_box(destination, box, box.destination_strides));
  TENON_ASSIGN(const Pinned from, pin_box(source, box, box.source_strides));
  push(queue, [to, from, box]() -> Status {
    backend::copy_box(to.data, from.data, box);
    return {};
  });
  return {};
}

Result<EventHandle> HostDevice::record(uint32_t queue) {
  TENON_TRY(check_queue(queue));
  if (queues_[queue]->has_succeeded()) return past_event();
  return events_.add(queues_[queue]->record());
}

EventHandle HostDevice::past_event() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  const auto now = static_cast<uint64_t>(std::chrono::nanoseconds(time).count());
  uint64_t last = last_past_;
  uint64_t mine = 0;
  do {
    mine = std::max(now, last + 1);
  } while (!last_past_.compare_exchange_weak(last, mine));
  return kPast | mine;
}

Status HostDevice::wait(uint32_t queue, EventHandle event) {
  TENON_TRY(check_queue(queue));
  if (is_past(event)) return {};
  auto found = events_.find(event);
  if (found == nullptr) return rule_violation("B10", "a wait for no event");
  queues_[queue]->wait(std::move(found));
  return {};
}

Result<bool> HostDevice::await(EventHandle event, int64_t timeout) {
  if (is_past(event)) return true;
  const auto found = events_.find(event);
  if (found == nullptr) return tl::make_unexpected(rule_violation("B10", "no such event"));
  const std::optional<Status> outcome = found->await(timeout);
  if (!outcome) return false;
  if (!outcome->ok()) return tl::make_unexpected(*outcome);
  return true;
}

Result<std::byte*> HostDevice::map(MemoryHandle memory) {
  const auto allocation = memories_.find(memory);
  if (allocation == nullptr) return tl::make_unexpected(rule_violation("B10", "no such memory"));
  return allocation->data;
}

Result<EventTimes> HostDevice::event_times(EventHandle event) {
  if (is_past(event)) return EventTimes{{}, static_cast<double>(event & ~kPast) * 1e-9};
  const auto found = events_.find(event);
  if (found == nullptr) return tl::make_unexpected(rule_violation("B10", "no such event"));
  return found->times();
}

Status HostDevice::check_queue(uint32_t queue) const {
  return queue < queues_.size() ? Status()
                                : rule_violation("B10", fmt::format("there is no queue {}", queue));
}

Result<HostDevice::Pinned> HostDevice::pin(const MemoryAddress& place, int64_t bytes) const {
  if (place.on_host()) return Pinned{place.host, bytes, nullptr};
  auto memory = memories_.find(place.memory);
  if (memory == nullptr) return tl::make_unexpected(rule_violation("B10", "no such memory"));
  if (place.offset < 0 || bytes < 0 || bytes > memory->bytes - place.offset) {
    return tl::make_unexpected(rule_violation(
        "B17", fmt::format("{} bytes at {} of {}", bytes, place.offset, memory->bytes)));
  }
  std::byte* data = memory->data + place.offset;
  return Pinned{data, bytes, std::move(memory)};
}

Result<std::vector<HostDevice::Pinned>> HostDevice::pin(std::span<const MemoryAddress> places,
                                                        std::span<const int64_t> bytes) const {
  std::vector<Pinned> list(places.size());
  TENON_TRY(pin(places, bytes, list));
  return list;
}

Status HostDevice::pin(std::span<const MemoryAddress> places, std::span<const int64_t> bytes,
                       std::span<Pinned> pinned) const {
  for (size_t i = 0; i < places.size(); ++i) {
    TENON_ASSIGN(pinned[i], pin(places[i], bytes[i]));
  }
  return {};
}

// Pins the memory at the first element; all elements lie within it.
Result<HostDevice::Pinned> HostDevice::pin_box(const MemoryAddress& place, const Box& box,
                                               const Dims& strides) const {
  if (place.on_host()) return Pinned{place.host, 0, nullptr};
  int64_t low = 0;
  int64_t high = box.element_bytes;
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    if (box.sizes[d] == 0) return pin(place, 0);
    const int64_t reach = (box.sizes[d] - 1) * strides[d];
    (reach < 0 ? low : high) += reach;
  }
  MemoryAddress whole = place;
  whole.offset += low;
  TENON_ASSIGN(Pinned pinned, pin(whole, high - low));
  pinned.data -= low;
  return pinned;
}

}  // namespace tenon::backend
