// Seam mutants of copies, launches and events.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>

#include "conformance/mutation/seam_devices.h"

namespace tenon::conformance {
namespace {

using backend::Box;
using backend::EventHandle;
using backend::KernelLaunch;
using backend::MemoryAddress;
using Bytes = std::vector<std::byte>;

// A launch with what it refers to.
struct KeptLaunch {
  KernelLaunch launch;
  std::vector<MemoryAddress> buffers;
  std::vector<uint64_t> scalars;

  explicit KeptLaunch(const KernelLaunch& from)
      : launch(from),
        buffers(from.buffers.begin(), from.buffers.end()),
        scalars(from.scalars.begin(), from.scalars.end()) {
    launch.label = "";
  }
  KernelLaunch view() const {
    KernelLaunch whole = launch;
    whole.buffers = buffers;
    whole.scalars = scalars;
    return whole;
  }
};

struct HostSource {
  MemoryAddress destination;
  const std::byte* host = nullptr;
  int64_t bytes = 0;
};

class WorkMutantDevice : public backend::ForwardingDevice {
 public:
  WorkMutantDevice(std::unique_ptr<backend::Device> inner, const std::string& name,
                   std::shared_ptr<SessionState> state)
      : ForwardingDevice(std::move(inner)), mutant_(name), state_(std::move(state)) {}
  ~WorkMutantDevice() override {
    if (work_since_event_) state_->closed_with_work = true;
    close();  // Bytes of copies are in use until then.
  }

  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override;
  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override;
  Status copy_box(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                  const Box& box) override;
  Status launch(uint32_t queue, const KernelLaunch& launch) override;
  Result<EventHandle> record(uint32_t queue) override;
  Status wait(uint32_t queue, EventHandle event) override {
    if (mutant_.is("seam/wait/is_skipped")) return {};
    return inner().wait(queue, event);
  }
  Result<bool> await(EventHandle event, int64_t timeout) override;
  void release(EventHandle event) override {
    if (!mutant_.is("seam/record/is_stale")) inner().release(event);  // Else it is given again.
  }
  Result<backend::EventTimes> event_times(EventHandle event) override {
    TENON_ASSIGN(backend::EventTimes times, inner().event_times(event));
    if (mutant_.is("seam/event_time/goes_back")) times.end = -times.end;
    if (mutant_.is("seam/event_start/is_late")) times.start = times.end + 1;
    return times;
  }

 private:
  void before_work(uint32_t queue);
  Status changed_copy(uint32_t queue, MemoryAddress to, MemoryAddress from, int64_t bytes);
  Status staged_copy(uint32_t queue, const MemoryAddress& to, const MemoryAddress& from,
                     int64_t bytes);
  void flip_a_bit(uint32_t queue, const MemoryAddress& to);
  void read_sources_again(uint32_t queue);
  Status changed_launch(uint32_t queue, const KernelLaunch& launch);
  Status run_kept(uint32_t queue);
  bool is_done(uint32_t queue);

  const ChosenMutant mutant_;
  const std::shared_ptr<SessionState> state_;
  std::recursive_mutex mutex_;
  std::atomic<bool> work_since_event_ = false;
  std::atomic<int64_t> launches_ = 0;
  std::atomic<int64_t> awaited_ = 0;
  std::map<uint32_t, EventHandle> stale_;
  std::map<uint32_t, KeptLaunch> kept_;
  std::map<std::pair<uint64_t, uint32_t>, KeptLaunch> first_of_;
  std::vector<HostSource> sources_;  // Their events are not done.
  std::vector<HostSource> due_;      // Their events are done.
  std::deque<Bytes> staging_;
  struct EarlyResult {
    std::byte* host;
    const Bytes* bytes;
  };
  std::vector<EarlyResult> early_;
  std::set<EventHandle> done_;
  std::optional<Status> error_;
};

// --- Copies

void WorkMutantDevice::before_work(uint32_t queue) {
  work_since_event_ = true;
  const std::lock_guard lock(mutex_);
  if (mutant_.is("seam/record/is_stale")) {
    if (const auto event = inner().record(queue)) stale_[queue] = *event;
  }
  if (mutant_.is("seam/copy/keeps_host_pointer")) read_sources_again(queue);
}

void WorkMutantDevice::read_sources_again(uint32_t queue) {
  for (const HostSource& each : std::exchange(due_, {})) {
    Bytes& bytes = staging_.emplace_back(static_cast<size_t>(each.bytes));
    const iovec to = {bytes.data(), bytes.size()};
    const iovec from = {const_cast<std::byte*>(each.host), bytes.size()};
    // The system reads it, since the host may have freed it.
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != std::ssize(bytes)) continue;
    static_cast<void>(
        inner().copy(queue, each.destination, MemoryAddress::of_host(bytes.data()), each.bytes));
  }
}

bool WorkMutantDevice::is_done(uint32_t queue) {
  const auto event = inner().record(queue);
  if (!event) return false;
  const auto done = inner().await(*event, -1);
  inner().release(*event);
  return done && *done;
}

void WorkMutantDevice::flip_a_bit(uint32_t queue, const MemoryAddress& to) {
  constexpr int64_t kAt = 4096;
  std::byte byte{};
  const MemoryAddress at = {to.memory, to.offset + kAt, nullptr};
  if (!inner().copy(queue, MemoryAddress::of_host(&byte), at, 1).ok() || !is_done(queue)) return;
  byte ^= std::byte{4};
  static_cast<void>(inner().copy(queue, at, MemoryAddress::of_host(&byte), 1));
  static_cast<void>(is_done(queue));
}

// Uses memory that stays valid, since the host may free its own too early.
Status WorkMutantDevice::staged_copy(uint32_t queue, const MemoryAddress& to,
                                     const MemoryAddress& from, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  Bytes& staged = staging_.emplace_back(static_cast<size_t>(bytes));
  if (from.on_host()) {
    std::copy_n(from.host, bytes, staged.begin());
    return inner().copy(queue, to, MemoryAddress::of_host(staged.data()), bytes);
  }
  early_.push_back({to.host, &staged});
  return inner().copy(queue, MemoryAddress::of_host(staged.data()), from, bytes);
}

Status WorkMutantDevice::changed_copy(uint32_t queue, MemoryAddress to, MemoryAddress from,
                                      int64_t bytes) {
  const bool within = !to.on_host() && !from.on_host();
  if (mutant_.is("seam/copy/is_short")) --bytes;
  if (mutant_.is("seam/copy/is_skipped") && to.on_host()) return {};
  if (mutant_.is("seam/copy/ignores_offset") && !from.on_host()) from.offset = 0;
  if (mutant_.is("seam/copy/is_from_start") && !to.on_host()) to.offset = 0;
  if (mutant_.is("seam/copy/rounds_offset_down")) {
    from.offset &= ~int64_t{3};
    to.offset &= ~int64_t{3};
  }
  if (within && mutant_.is("seam/copy/swallows_errors")) return {};
  if (within && mutant_.is("seam/copy/within_is_in_words")) bytes &= ~int64_t{3};
  if (mutant_.is("seam/copy/has_a_largest_size")) bytes = std::min<int64_t>(bytes, 64 << 10);
  if (bytes == 0) return {};
  if (to.on_host() && mutant_.is("seam/copy/is_out_of_order")) {
    // Behind nothing; its own queue waits for it.
    const uint32_t other = queue == 2 ? 1 : 2;
    TENON_TRY(inner().copy(other, to, from, bytes));
    TENON_ASSIGN(const EventHandle event, inner().record(other));
    TENON_TRY(inner().wait(queue, event));
    inner().release(event);
    return {};
  }
  if (!within && mutant_.is("seam/await/is_early")) return staged_copy(queue, to, from, bytes);
  return inner().copy(queue, to, from, bytes);
}

Status WorkMutantDevice::copy(uint32_t queue, const MemoryAddress& destination,
                              const MemoryAddress& source, int64_t bytes) {
  before_work(queue);
  if (mutant_.is("seam/launch/is_swapped")) TENON_TRY(run_kept(queue));
  TENON_TRY(changed_copy(queue, destination, source, bytes));
  if (mutant_.is("seam/launch/is_late")) TENON_TRY(run_kept(queue));
  if (destination.on_host() || !source.on_host()) return {};
  if (mutant_.is("seam/copy/is_long")) {
    static constexpr std::byte kBeyond{0x77};
    // It fails at the end of the allocation.
    static_cast<void>(inner().copy(queue, {destination.memory, destination.offset + bytes, nullptr},
                                   MemoryAddress::of_host(&kBeyond), 1));
  }
  if (bytes > 4096 && mutant_.is("seam/copy/flips_a_bit")) flip_a_bit(queue, destination);
  if (mutant_.is("seam/copy/keeps_host_pointer")) {
    const std::lock_guard lock(mutex_);
    sources_.push_back({destination, source.host, bytes});
  }
  return {};
}

Status WorkMutantDevice::fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
                              std::span<const std::byte> pattern) {
  before_work(queue);
  if (mutant_.has("seam/fill/is_short")) bytes -= std::ssize(pattern);
  if (mutant_.has("seam/fill/repeats_first_byte")) pattern = pattern.first(1);
  const Status status = bytes == 0 ? Status() : inner().fill(queue, destination, bytes, pattern);
  // Nothing is wrong on a device without the function.
  if (status.ok() && mutant_.has("seam/fill/")) count_mutation();
  return status;
}

Status WorkMutantDevice::copy_box(uint32_t queue, const MemoryAddress& destination,
                                  const MemoryAddress& source, const Box& box) {
  before_work(queue);
  Box changed = box;
  if (mutant_.has("seam/copy_box/ignores_destination_strides")) {
    int64_t stride = box.element_bytes;
    for (size_t i = box.sizes.size(); i-- > 0; stride *= box.sizes[i])
      changed.destination_strides[i] = stride;
  }
  if (mutant_.has("seam/copy_box/loses_signs")) {
    for (int64_t& each : changed.destination_strides) each = std::abs(each);
    for (int64_t& each : changed.source_strides) each = std::abs(each);
  }
  if (mutant_.has("seam/copy_box/is_short") && !box.sizes.empty()) --changed.sizes[0];
  const Status status = inner().copy_box(queue, destination, source, changed);
  if (status.ok() && mutant_.has("seam/copy_box/")) count_mutation();
  return status;
}

// --- Launches

Status WorkMutantDevice::run_kept(uint32_t queue) {
  const std::lock_guard lock(mutex_);
  const auto node = kept_.extract(queue);
  return node.empty() ? Status() : inner().launch(queue, node.mapped().view());
}

Status WorkMutantDevice::changed_launch(uint32_t queue, const KernelLaunch& launch) {
  KeptLaunch changed(launch);
  std::vector<MemoryAddress>& buffers = changed.buffers;
  std::vector<uint64_t>& scalars = changed.scalars;
  if (mutant_.is("seam/launch/swaps_buffers") && buffers.size() > 1)
    std::swap(buffers[0], buffers[1]);
  if (mutant_.is("seam/launch/last_buffer_is_first")) buffers.back() = buffers.front();
  if (mutant_.is("seam/launch/has_eight_buffers")) {
    for (size_t i = 8; i < buffers.size(); ++i) buffers[i] = buffers[7];
  }
  if (mutant_.is("seam/launch/ignores_offsets")) {
    for (MemoryAddress& each : buffers) each.offset = 0;
  }
  if (mutant_.is("seam/launch/runs_other_kernel")) changed.launch.kernel = 0;
  if (mutant_.is("seam/launch/zeroes_scalars")) std::ranges::fill(scalars, 0);
  if (mutant_.is("seam/launch/truncates_scalars")) {
    for (uint64_t& each : scalars) each &= 0xFFFF;
  }
  if (mutant_.is("seam/launch/reverses_scalars")) std::ranges::reverse(scalars);
  {
    const std::lock_guard lock(mutex_);
    const auto [first, is_first] = first_of_.try_emplace({launch.module, launch.kernel}, changed);
    if (mutant_.is("seam/launch/keeps_buffers")) buffers = first->second.buffers;
    if (mutant_.is("seam/launch/keeps_scalars")) scalars = first->second.scalars;
  }
  if (mutant_.is("seam/launch/is_on_first_queue")) queue = 0;
  if (mutant_.is("seam/launch/is_late") || mutant_.is("seam/launch/is_swapped")) {
    const std::lock_guard lock(mutex_);
    const auto kept = kept_.extract(queue);
    if (mutant_.is("seam/launch/is_swapped") && !kept.empty()) {
      TENON_TRY(inner().launch(queue, changed.view()));
      return inner().launch(queue, kept.mapped().view());
    }
    if (!kept.empty()) TENON_TRY(inner().launch(queue, kept.mapped().view()));
    kept_.emplace(queue, std::move(changed));
    return {};
  }
  if (mutant_.is("seam/launch/runs_twice")) TENON_TRY(inner().launch(queue, changed.view()));
  return inner().launch(queue, changed.view());
}

Status WorkMutantDevice::launch(uint32_t queue, const KernelLaunch& launch) {
  before_work(queue);
  if (mutant_.is("seam/launch/is_skipped")) return {};
  if (mutant_.is("seam/launch/every_third_is_skipped") && ++launches_ % 3 == 0) return {};
  return changed_launch(queue, launch);
}

// --- Events

Result<EventHandle> WorkMutantDevice::record(uint32_t queue) {
  TENON_TRY(run_kept(queue));
  const std::lock_guard lock(mutex_);
  const auto stale = stale_.find(queue);
  if (stale == stale_.end()) return inner().record(queue);
  // The last work gets an event too, so that its error belongs to none that is given.
  static_cast<void>(inner().record(queue));
  return stale->second;
}

Result<bool> WorkMutantDevice::await(EventHandle event, int64_t timeout) {
  if (mutant_.is("seam/await/is_early")) {
    const std::lock_guard lock(mutex_);
    for (const EarlyResult& each : std::exchange(early_, {}))
      std::ranges::copy(*each.bytes, each.host);
    return true;
  }
  if (timeout < 0 && mutant_.is("seam/await/does_not_wait")) timeout = 0;
  auto done = inner().await(event, timeout);
  const std::lock_guard lock(mutex_);
  if (!done || *done) {
    work_since_event_ = false;
    due_.insert(due_.end(), sources_.begin(), sources_.end());
    sources_.clear();
    if (mutant_.is("seam/await/is_pending_again") && !done_.insert(event).second) return false;
  }
  if (!done && mutant_.is("seam/event/swallows_errors")) return true;
  if (!done) error_ = done.error();
  if (done && *done && error_ && mutant_.is("seam/event/keeps_error"))
    return Error(Status(*error_));
  if (done && *done && mutant_.is("seam/event/fails") && ++awaited_ % 5 == 0)
    return Error(Status(ErrorCode::kInternal, "the mutant fails"));
  return done;
}

}  // namespace

std::unique_ptr<backend::Device> make_work_mutant(std::unique_ptr<backend::Device> inner,
                                                  const std::string& name,
                                                  std::shared_ptr<SessionState> state) {
  return std::make_unique<WorkMutantDevice>(std::move(inner), name, std::move(state));
}

}  // namespace tenon::conformance
