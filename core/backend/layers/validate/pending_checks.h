// Checks of work that is not known to be done. Of validate_device.cpp, which has a lock for all of
// it.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/backend/layers/validate/progress.h"
#include "core/backend/layers/validate/validate_device.h"
#include "core/backend/layers/validate/work_check.h"

namespace tenon::backend {

class PendingChecks {
 public:
  /// A check of work that the queue has been given since its last record. The device may write into
  /// it until the work is done.
  void add(const QueueProgress& progress, uint32_t queue, WorkCheck check) {
    pending_.push_back({queue, progress.next_record(queue), false, std::move(check)});
  }
  /// A check that says nothing, because the work was not accepted; the device may write into it.
  void add_void(const QueueProgress& progress, uint32_t queue, WorkCheck check) {
    pending_.push_back({queue, progress.next_record(queue), true, std::move(check)});
  }

  /// Notes that the queue's next work reads or writes these bytes of the host. Whether it may be
  /// checked: what pending work writes there is not known, and what it reads or writes there must
  /// not be painted over. What it left there cannot be judged once more work writes there.
  bool use_host(const QueueProgress& progress, uint32_t queue, std::span<const std::byte> host,
                bool writes) {
    const bool conflicts = std::ranges::any_of(host_uses_, [&](const HostUse& each) {
      return (writes || each.writes) && each.overlaps(host);
    });
    for (PendingCheck& each : pending_) {
      if (writes && each.check.touches(host)) each.is_void = true;
    }
    host_uses_.push_back({queue, progress.next_record(queue), host, writes});
    return !conflicts;
  }

  /// Queues, and the numbers of records in them.
  using Records = std::set<std::pair<uint32_t, int64_t>>;

  /// The first fault of the work that is done. Only the work of events that are known to be OK is
  /// judged: an error of other work is told by its own event alone (B23), and says enough.
  Status judge(const QueueProgress& progress, const Records& ok) {
    std::erase_if(host_uses_,
                  [&](const HostUse& each) { return progress.is_done(each.queue, each.record); });
    Status status;
    for (auto each = pending_.begin(); each != pending_.end();) {
      const auto next = std::next(each);
      if (progress.is_done(each->queue, each->record)) {
        const bool is_ok = ok.contains({each->queue, each->record});
        const bool is_judged = is_ok && !each->is_void && status.ok();
        if (is_judged) status = verdict_of(each->check);
        if (status.ok()) {
          pending_.erase(each);
        } else {  // Who breaks rules may write there late.
          kept_.splice(kept_.end(), pending_, each);
        }
      }
      each = next;
    }
    return status;
  }

 private:
  struct PendingCheck {
    uint32_t queue = 0;
    int64_t record = 0;
    bool is_void = false;
    WorkCheck check;
  };

  struct HostUse {
    uint32_t queue = 0;
    int64_t record = 0;
    std::span<const std::byte> bytes;
    bool writes = false;

    bool overlaps(std::span<const std::byte> other) const {
      const std::less<const std::byte*> before;
      return before(bytes.data(), other.data() + other.size()) &&
             before(other.data(), bytes.data() + bytes.size());
    }
  };

  // Work that is complete a little later was reported early.
  static Status verdict_of(const WorkCheck& check) {
    constexpr std::chrono::milliseconds kStep(5);
    constexpr int kSteps = 40;
    const Status first = check.verdict();
    for (int step = 1; !first.ok() && step <= kSteps; ++step) {
      std::this_thread::sleep_for(kStep);
      if (!check.verdict().ok()) continue;
      return rule_violation("B23", "an event was done before the work: {} is complete {} ms later",
                            check.what(), (step * kStep).count());
    }
    return first;
  }

  std::vector<HostUse> host_uses_;  // Of work that is not known to be done.
  std::list<PendingCheck> pending_;
  std::list<PendingCheck> kept_;  // Until the device is closed.
};

}  // namespace tenon::backend
