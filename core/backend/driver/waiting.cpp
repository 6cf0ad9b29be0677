#include "core/backend/driver/waiting.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace tenon::backend {

StopRelay::StopRelay(uint32_t* word) : word_(word) {
  if (word_ != nullptr) std::atomic_ref(*word_).store(0);
}
void StopRelay::add(const volatile uint32_t* flag) {
  if (flag != nullptr) flags_.push_back(flag);
}
bool StopRelay::is_wanted() const {
  return std::ranges::any_of(flags_, [](const volatile uint32_t* flag) { return *flag != 0; });
}
void StopRelay::stop_kernels() const {
  if (word_ != nullptr) std::atomic_ref(*word_).store(1);
}
void StopRelay::relay() const {
  if (is_wanted()) stop_kernels();
}
Status StopRelay::outcome() const {
  return is_wanted() ? Status(ErrorCode::kCancelled, "the host stopped the work") : Status();
}

void CompletionSignal::raise() {
  // Notifies under the lock: the waiting thread may destroy this once it has seen the flag.
  const std::lock_guard lock(mutex_);
  is_raised_ = true;
  changed_.notify_all();
}

Result<bool> CompletionSignal::await(int64_t timeout, const WaitPace& pace,
                                     const std::function<Result<bool>()>& is_done) {
  using std::chrono::nanoseconds;
  const auto start = std::chrono::steady_clock::now();
  nanoseconds pause = pace.pause;
  while (true) {
    TENON_ASSIGN(const bool done, is_done());
    if (done) return true;
    const nanoseconds waited = std::chrono::steady_clock::now() - start;
    if (timeout >= 0 && waited.count() >= timeout) return false;
    if (waited < pace.busy) {
      std::this_thread::yield();
      continue;
    }
    const nanoseconds left = nanoseconds(timeout) - waited;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout < 0 ? pause : std::min(pause, left),
                      [&] { return is_raised_; });
    pause = std::min(2 * pause, pace.longest);
  }
}

}  // namespace tenon::backend
