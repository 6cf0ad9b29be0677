// The work that queues have been given, and how much of it is known to be done. Part of
// validate_device.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace tenon::backend {

class QueueProgress {
 public:
  /// By queue, the number of the record that comes behind some work.
  using Marks = std::map<uint32_t, int64_t>;

  /// The queue gets work other than a record.
  void work(uint32_t queue) { queues_[queue].last_work = queues_[queue].given; }
  /// The queue's work uses an object that has these marks.
  void use(uint32_t queue, Marks& marks) { marks[queue] = queues_[queue].given; }
  /// Whether the queue has used it since its last record.
  bool uses(uint32_t queue, const Marks& marks) {
    const auto found = marks.find(queue);
    return found != marks.end() && found->second == queues_[queue].given;
  }
  bool is_done(const Marks& marks) {
    return std::ranges::all_of(
        marks, [&](const auto& mark) { return mark.second <= queues_[mark.first].done; });
  }

  struct Recorded {
    Marks covers;       ///< The work that is done when the event is done.
    bool idle = false;  ///< No work was given since the record before.
  };
  Recorded record(uint32_t queue) {
    QueueMarks& q = queues_[queue];
    Recorded recorded = {q.seen, q.last_work != q.given};
    recorded.covers[queue] = q.given++;
    return recorded;
  }
  /// Work that the queue is given from now on comes behind an event that covers so much (B24).
  void wait(uint32_t queue, const Marks& covers) { raise(queues_[queue].seen, covers); }
  /// An event is done.
  void done(const Marks& covers) {
    for (const auto& [queue, mark] : covers) {
      queues_[queue].done = std::max(queues_[queue].done, mark);
    }
  }

 private:
  struct QueueMarks {
    int64_t given = 1;      // Records so far, and one.
    int64_t last_work = 0;  // `given` when work was last given.
    int64_t done = 0;       // The last record whose event was seen to be done.
    Marks seen;             // The work that the queue has waited for.
  };
  static void raise(Marks& marks, const Marks& by) {
    for (const auto& [queue, mark] : by) marks[queue] = std::max(marks[queue], mark);
  }

  std::map<uint32_t, QueueMarks> queues_;
};

}  // namespace tenon::backend
