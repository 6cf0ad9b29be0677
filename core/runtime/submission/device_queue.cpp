#include "core/runtime/submission/device_queue.h"

#include <algorithm>

namespace tenon::runtime {
namespace {

int64_t nanoseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

DeviceQueue::DeviceQueue(uint32_t number, OpenDevice& device, Progresses progresses,
                         std::weak_ptr<const void> owner)
    : number_(number), device_(device), progresses_(progresses), owner_(std::move(owner)) {
  completions_.emplace();
  worker_.emplace();
  if (device_.time_limit() > 0) watchdog_.emplace([this] { call_is_late(); });
}

DeviceQueue::~DeviceQueue() {
  watchdog_.reset();
  worker_.reset();
  completions_.reset();
}

bool DeviceQueue::owns_this_thread() const {
  const auto is_this = [](const auto& thread) { return thread && thread->is_this_thread(); };
  return is_this(worker_) || is_this(completions_) || is_this(watchdog_);
}

template <class Visit>
void DeviceQueue::for_each_other(const Visit& visit) const {
  for (uint32_t other = 0; other < progresses_.size(); ++other) {
    if (other != number_) visit(other, *progresses_[other]);
  }
}

// --- Giving work

WorkPosition DeviceQueue::post(const std::shared_ptr<WorkItem>& item) {
  if (device_.is_forked()) {
    item->done(device_.lost());
    return {};
  }
  bool taken = false;
  {
    const std::lock_guard lock(posting_);
    item->serial = progress().next();
    taken = worker_->post([owner = owner_.lock(), this, item] { submit(item); });
  }
  const WorkPosition position = {number_, item->serial};
  if (!taken) post_completion(item, device_.lost());
  return position;
}

std::optional<DeviceQueue::InlineTurn> DeviceQueue::claim() {
  if (watchdog_ || device_.is_forked()) return {};
  const std::lock_guard lock(posting_);
  auto slot = worker_->claim();
  if (!slot) return {};
  return InlineTurn{*std::move(slot), {number_, progress().next()}};
}

void DeviceQueue::run_inline(InlineTurn turn, const std::shared_ptr<WorkItem>& item) {
  const auto owner = owner_.lock();  // Longer than the turn.
  item->serial = turn.position.serial;
  submit(item);
  turn.slot.reset();
}

void DeviceQueue::submit(const std::shared_ptr<WorkItem>& item) {
  try {
    give(item);
  } catch (const std::exception&) {  // No memory; waiters get the error of the broken promise.
    at_hand_ = nullptr;
    progress().given(item->serial, nullptr);
    progress().heard(item->serial);
  }
}

void DeviceQueue::give(const std::shared_ptr<WorkItem>& item) {
  at_hand_ = item;
  taken_ = 0;
  progress().begin(item->serial);
  Status status = device_.lost();
  if (status.ok()) status = wait_for_others(*item);
  if (status.ok()) status = guarded(device_.name(), item->work);
  // The event is waited for even if the work failed on its way: work that it gave still runs.
  auto event = item->abandoned ? Result<EventShare>(nullptr) : record();
  if (item->abandoned) return;
  at_hand_ = nullptr;
  if (event) item->event = *std::move(event);
  if (status.ok() && !event) status = event.error();
  progress().given(item->serial, item->event);
  // Devices may have done the work before they returned (B8).
  if (item->event != nullptr && is_done(*item)) {
    ++waited_for_;
    ++running_;
    return finish(item, std::move(status), /*completed=*/true);
  }
  post_completion(item, std::move(status));
}

// The host waits here only until the other queue has been given the work, not until it is done; but
// if the device does not take the wait, the host waits in its place: work that follows, on any
// queue, relies on this order.
Status DeviceQueue::wait_for_others(const WorkItem& item) {
  Status status;
  for_each_other([&](uint32_t other, WorkProgress& progress) {
    const int64_t serial = item.after.of(other);
    if (serial <= waited_[other] || progress.is_done(serial)) return;
    const auto behind = progress.event_behind(serial, [&] { return !device_.lost().ok(); });
    if (behind.event == nullptr) return;
    const int64_t before = waited_[other];
    if (status.ok()) {
      waited_[other] = behind.serial;  // The watchdog looks during the call.
      status = device_.note_loss(watched(
          [&](backend::Device& device) { return device.wait(number_, behind.event->handle()); }));
      if (status.ok()) return;
      waited_[other] = before;
    }
    static_cast<void>(outcome(*behind.event, device_.time_limit(), item.stop));
  });
  return status;
}

Result<EventShare> DeviceQueue::record() {
  constexpr int kTries = 3;
  Status why;
  for (int i = 0; i < kTries; ++i) {
    TENON_TRY(device_.lost());
    auto event = watched([this](backend::Device& device) { return device.record(number_); });
    if (event) return std::make_shared<const OwnedEvent>(device_, *event);
    why = device_.note_loss(event.error());
  }
  return tl::make_unexpected(
      device_.lose(make_error(ErrorCode::kUnavailable, "{}: no event can be recorded: {}",
                              device_.name(), why.message())
                       .status(),
                   /*by_host=*/true));
}

Status DeviceQueue::drain() {
  TENON_ASSIGN(const EventShare event, record());
  std::atomic<uint32_t>* const stop = at_hand_->stop;
  const auto begin = std::chrono::steady_clock::now();
  // A loop that the host walks is one piece of work, however short its steps are.
  const int64_t limit = device_.time_limit();
  Status status = outcome(*event, limit > 0 ? std::max<int64_t>(limit - taken_, 1) : 0, stop);
  taken_ += nanoseconds_since(begin);
  return status;
}

// --- The end of work

bool DeviceQueue::is_done(const WorkItem& item) {
  if (watchdog_ || waited_for_ > 0) return false;
  bool heard = true;
  for_each_other([&](uint32_t other, const WorkProgress& progress) {
    heard &= progress.is_heard(item.after.of(other));
  });
  const auto device = device_.use();
  if (!heard || !device) return false;
  const auto done =
      guarded(device_.name(), [&] { return (*device)->await(item.event->handle(), 0); });
  return done && *done;
}

void DeviceQueue::post_completion(const std::shared_ptr<WorkItem>& item, Status given) {
  ++waited_for_;
  ++running_;
  try {
    completions_->post([owner = owner_.lock(), this, item, given] { finish(item, given); });
  } catch (const std::exception&) {  // No memory; the device uses what the work keeps.
    finish(item, std::move(given));
  }
}

void DeviceQueue::finish(const std::shared_ptr<WorkItem>& item, Status given, bool completed) {
  // Work given from within `done` may be done at once (is_done), which looks at the work before it.
  struct Heard {
    DeviceQueue& queue;
    int64_t serial;
    ~Heard() {
      queue.progress().heard(serial);
      --queue.waited_for_;
    }
  } heard{*this, item->serial};
  // Work that it waits for has a time of its own, and its outcome comes first.
  for_each_other(
      [&](uint32_t other, WorkProgress& progress) { progress.await_heard(item->after.of(other)); });
  if (item->event != nullptr) {
    Status status = completed ? Status() : outcome(*item->event, device_.time_limit(), item->stop);
    progress().done(item->serial);
    item->event = nullptr;
    if (given.ok()) given = std::move(status);
  }
  device_.await_quiescence(item);
  // Before `done`, upon which somebody may give work whose time counts from its first call on.
  --running_;
  item->done(given);
}

Status DeviceQueue::outcome(const OwnedEvent& event, int64_t limit, std::atomic<uint32_t>* stop) {
  constexpr int kTries = 3;
  TENON_ASSIGN(const OpenDevice::Share device, device_.use());
  const auto await = [&](int64_t nanoseconds) -> Result<bool> {
    try {
      return device->await(event.handle(), nanoseconds);
    } catch (const std::exception&) {  // That says nothing of the event.
      return false;
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  int64_t left = limit > 0 ? limit : -1;
  for (int i = 0; i < kTries && (left > 0 || limit == 0); ++i) {
    const Result<bool> done = await(left);
    if (!done) return device_.note_loss(done.error());
    if (*done) return {};
    if (limit > 0) left = limit - nanoseconds_since(begin);
  }
  if (limit > 0) {
    return overrun(stop, [&](int64_t nanoseconds) { return await(nanoseconds).value_or(true); });
  }
  return device_.lose(
      make_error(ErrorCode::kUnavailable,
                 "{}: await does not say whether work is done (B25); the device counts as "
                 "lost",
                 device_.name())
          .status(),
      /*by_host=*/true);
}

// --- The time limit

Status DeviceQueue::overrun(std::atomic<uint32_t>* stop, const std::function<bool(int64_t)>& ends) {
  constexpr int64_t kGrace = 100'000'000;
  if (stop != nullptr) {
    // Time for a backend of this process to leave its loop (B27).
    stop->store(1);
    ends(kGrace);
  }
  const auto device = device_.use();
  const bool ended = device && (*device)->abort().ok() && ends(kGrace);
  return device_.lose(
      make_error(ErrorCode::kUnavailable,
                 "{}: work took longer than the time limit of {} ms; the device counts as "
                 "lost",
                 device_.name(), device_.time_limit() / 1'000'000)
          .status(),
      /*by_host=*/!ended);
}

bool DeviceQueue::waits_for_others() const {
  if (running_ > 0) return true;
  bool waits = false;
  for_each_other(
      [&](uint32_t other, WorkProgress& progress) { waits |= !progress.is_done(waited_[other]); });
  return waits;
}

void DeviceQueue::call_is_late() {
  if (waits_for_others() && device_.lost().ok()) return watchdog_->extend(device_.time_limit());
  const std::shared_ptr<WorkItem> item = at_hand_;
  const Status why = overrun(
      item->stop, [this](int64_t nanoseconds) { return watchdog_->await_end(nanoseconds); });
  if (!watchdog_->abandon()) return;
  // The worker is lost with the device: waiters get the error from this thread.
  post_completion(item, why);
  for (const Worker::Work& work : worker_->abandon()) work();
  at_hand_ = nullptr;
}

}  // namespace tenon::runtime
