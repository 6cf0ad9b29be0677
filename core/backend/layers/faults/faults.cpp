#include "core/backend/layers/faults/faults.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "core/backend/layers/forward.h"
#include "core/base/random.h"

namespace tenon::backend {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames = {
    "open",   "compile", "plan", "load",  "allocate", "import", "copy",
    "launch", "record",  "wait", "event", "lost",     "delay"};

// The state that all devices of a layer share: the plan and its progress.
class FaultState final : public FaultCounts {
 public:
  explicit FaultState(const FaultPlan& plan) : plan_(plan), random_(plan.seed) {}

  int64_t calls(FaultKind kind) const override { return calls_[index(kind)]; }
  int64_t faults(FaultKind kind) const override { return faults_[index(kind)]; }

  /// Whether this call of the kind fails.
  bool strikes(FaultKind kind) {
    const size_t i = index(kind);
    const int64_t number = ++calls_[i];
    bool hit = plan_.nth[i] != 0 && number == plan_.nth[i];
    if (plan_.one_in[i] != 0) {
      const std::lock_guard lock(mutex_);
      hit |= random_.one_in(plan_.one_in[i]);
    }
    if (hit) ++faults_[i];
    return hit;
  }

  void delay() {
    if (!strikes(FaultKind::kDelay)) return;
    std::unique_lock lock(mutex_);
    const int64_t microseconds = random_.below(1000);
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }

 private:
  static size_t index(FaultKind kind) { return static_cast<size_t>(kind); }

  const FaultPlan plan_;
  std::array<std::atomic<int64_t>, kFaultKinds> calls_ = {};
  std::array<std::atomic<int64_t>, kFaultKinds> faults_ = {};
  std::mutex mutex_;
  Random random_;
};

Status planned(FaultKind kind, ErrorCode code = ErrorCode::kInternal) {
  return Status(code, fmt::format("a planned fault: {}", kNames[static_cast<size_t>(kind)]));
}

class FaultsDevice final : public ForwardingDevice {
 public:
  FaultsDevice(std::unique_ptr<Device> inner, std::shared_ptr<FaultState> plan, uint32_t queues)
      : ForwardingDevice(std::move(inner)), plan_(std::move(plan)), queues_(queues) {}

  Result<ModuleHandle> load(std::string_view binary, Kernels kernels) override {
    TENON_TRY(call(FaultKind::kLoad));
    return ForwardingDevice::load(binary, kernels);
  }
  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    TENON_TRY(call(FaultKind::kAllocate, ErrorCode::kResourceExhausted));
    return ForwardingDevice::allocate(space, bytes);
  }
  Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host) override {
    TENON_TRY(call(FaultKind::kImport));
    return ForwardingDevice::import_memory(space, host);
  }
  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    TENON_ASSIGN(const auto turn, queue_call(queue, FaultKind::kCopy));
    return ForwardingDevice::copy(queue, destination, source, bytes);
  }
  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    TENON_ASSIGN(const auto turn, queue_call(queue, FaultKind::kLaunch));
    return ForwardingDevice::launch(queue, launch);
  }
  Status copy_box(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                  const Box& box) override {
    TENON_ASSIGN(const auto turn, queue_call(queue, FaultKind::kCopy));
    return ForwardingDevice::copy_box(queue, destination, source, box);
  }
  Status call(uint32_t queue, const LibraryCallLaunch& call) override {
    TENON_ASSIGN(const auto turn, queue_call(queue, FaultKind::kLaunch));
    return ForwardingDevice::call(queue, call);
  }
  Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
              const MemoryAddress& destination, const MemoryAddress& source) override {
    TENON_ASSIGN(const auto turn, queue_call(queue, FaultKind::kCopy));
    return ForwardingDevice::pack(queue, plan, operand, destination, source);
  }
  Result<EventHandle> record(uint32_t queue) override {
    TENON_ASSIGN(const auto turn, queue_call(queue, FaultKind::kRecord));
    Result<EventHandle> event = ForwardingDevice::record(queue);
    // Only work can fail (B23).
    if (event && worked_.erase(queue) > 0 && plan_->strikes(FaultKind::kEvent)) {
      const std::lock_guard lock(mutex_);
      failing_.insert(*event);
    }
    return event;
  }
  Status wait(uint32_t queue, EventHandle event) override {
    TENON_TRY(call(FaultKind::kWait));
    TENON_ASSIGN(const auto turn, queue_turn());
    return ForwardingDevice::wait(queue, event);
  }
  Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
              std::span<const std::byte> pattern) override {
    TENON_ASSIGN(const auto turn, queue_call(queue, FaultKind::kCopy));
    return ForwardingDevice::fill(queue, destination, bytes, pattern);
  }
  // When a device is lost, a pending event is done with its error (B12). An event that the plan
  // fails does so when it would have been done.
  Result<bool> await(EventHandle event, int64_t timeout) override {
    plan_->delay();
    Result<bool> done = ForwardingDevice::await(event, lost_ ? 0 : timeout);
    if (!done || *done) {
      const std::lock_guard lock(mutex_);
      if (failing_.contains(event)) return tl::make_unexpected(planned(FaultKind::kEvent));
      return done;
    }
    TENON_TRY(alive());
    return done;
  }
  void release(EventHandle event) override {
    {
      const std::lock_guard lock(mutex_);
      failing_.erase(event);
    }
    ForwardingDevice::release(event);
  }

 private:
  Status alive() {
    if (plan_->strikes(FaultKind::kLost)) lose();
    return lost_ ? planned(FaultKind::kLost, ErrorCode::kUnavailable) : Status();
  }

  // Loses the device after the earlier work is done: that work may still access host memory, which
  // a lost device must not (B12).
  void lose() {
    const std::lock_guard lock(queue_mutex_);
    if (lost_) return;
    for (uint32_t queue = 0; queue < queues_; ++queue) {
      const auto event = ForwardingDevice::record(queue);
      if (!event) continue;
      static_cast<void>(ForwardingDevice::await(*event, -1));
      ForwardingDevice::release(*event);
    }
    lost_ = true;
  }

  Status call(FaultKind kind, ErrorCode code = ErrorCode::kInternal) {
    plan_->delay();
    TENON_TRY(alive());
    return plan_->strikes(kind) ? planned(kind, code) : Status();
  }

  // Locks the inner device's queues. Returns an error if the device is lost: a lost device gets no
  // work.
  Result<std::unique_lock<std::mutex>> queue_turn() {
    std::unique_lock lock(queue_mutex_);
    if (lost_) return tl::make_unexpected(planned(FaultKind::kLost, ErrorCode::kUnavailable));
    return lock;
  }
  Result<std::unique_lock<std::mutex>> queue_call(uint32_t queue, FaultKind kind) {
    TENON_TRY(call(kind));
    TENON_ASSIGN(auto turn, queue_turn());
    if (kind != FaultKind::kRecord) worked_.insert(queue);
    return turn;
  }

  const std::shared_ptr<FaultState> plan_;
  const uint32_t queues_;
  std::atomic<bool> lost_ = false;
  std::set<uint32_t> worked_;  // Queues with work since their last record.
  std::mutex queue_mutex_;     // Guards the inner device's queue functions (B7).
  std::mutex mutex_;
  std::set<EventHandle> failing_;
};

class FaultsBackend final : public ForwardingBackend {
 public:
  FaultsBackend(std::shared_ptr<Backend> inner, std::shared_ptr<FaultState> plan)
      : ForwardingBackend(std::move(inner)), plan_(std::move(plan)) {}

  Result<std::unique_ptr<Device>> open(size_t index) override {
    plan_->delay();
    if (plan_->strikes(FaultKind::kOpen)) {
      return tl::make_unexpected(planned(FaultKind::kOpen, ErrorCode::kUnavailable));
    }
    TENON_ASSIGN(const std::vector<DeviceInfo> devices, ForwardingBackend::devices());
    TENON_ASSIGN(std::unique_ptr<Device> device, ForwardingBackend::open(index));
    const uint32_t queues = index < devices.size() ? devices[index].target.queues : 1;
    return std::make_unique<FaultsDevice>(std::move(device), plan_, queues);
  }

  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    plan_->delay();
    if (plan_->strikes(FaultKind::kCompile)) {
      return tl::make_unexpected(planned(FaultKind::kCompile));
    }
    return ForwardingBackend::compile(target, kernels);
  }

  Result<LibraryCallPlan> plan(const TargetInfo& target, const LibraryCallSite& site) override {
    plan_->delay();
    if (plan_->strikes(FaultKind::kPlan)) return tl::make_unexpected(planned(FaultKind::kPlan));
    return ForwardingBackend::plan(target, site);
  }

  Result<std::string> compile_segment(const TargetInfo& target,
                                      const program::Program& segment) override {
    plan_->delay();
    if (plan_->strikes(FaultKind::kCompile)) {
      return tl::make_unexpected(planned(FaultKind::kCompile));
    }
    return ForwardingBackend::compile_segment(target, segment);
  }

 private:
  const std::shared_ptr<FaultState> plan_;
};

}  // namespace

std::string_view name_of(FaultKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<FaultPlan> FaultPlan::parse(std::string_view text) {
  FaultPlan plan;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" ,"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const size_t mark = word.find_first_of("@%=");
    const std::string_view name = word.substr(0, mark);
    uint64_t number = 0;
    const std::string_view digits =
        mark == std::string_view::npos ? std::string_view() : word.substr(mark + 1);
    const auto [last, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool counted = !digits.empty() && error == std::errc() &&
                         last == digits.data() + digits.size() && number <= INT64_MAX;
    const auto kind = std::ranges::find(kNames, name);
    const auto at = static_cast<size_t>(kind - kNames.begin());
    if (counted && name == "seed" && word[mark] == '=') {
      plan.seed = number;
    } else if (counted && number > 0 && kind != kNames.end() && word[mark] == '@') {
      plan.nth[at] = static_cast<int64_t>(number);
    } else if (counted && number > 0 && kind != kNames.end() && word[mark] == '%') {
      plan.one_in[at] = static_cast<int64_t>(number);
    } else {
      return invalid_argument(
          "'{}' is not a fault: KIND@N (the N-th), KIND%N (one in N) or seed=N, of the kinds {}",
          word, fmt::join(kNames, ", "));
    }
  }
  return plan;
}

FaultsLayer make_faults_layer(std::shared_ptr<Backend> inner, const FaultPlan& plan) {
  auto state = std::make_shared<FaultState>(plan);
  return {std::make_shared<FaultsBackend>(std::move(inner), state), state};
}

}  // namespace tenon::backend
