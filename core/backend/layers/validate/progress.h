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
  bool is_done(const Marks& marks) const {
    return std::ranges::all_of(marks,
                               [&](const auto& mark) { return is_done(mark.first, mark.second); });
  }

  /// The number of the record that comes behind what the queue is given next.
  int64_t next_record(uint32_t queue) const { return marks_of(queue).given; }
  /// Whether the queue's work before that record is known to be done.
  bool is_done(uint32_t queue, int64_t record) const { return record <= marks_of(queue).done; }
  /// Whether it comes before what queue `next` is given next.
  bool is_before(uint32_t queue, int64_t record, uint32_t next) const {
    const Marks& seen = marks_of(next).seen;
    const auto found = seen.find(queue);
    return is_done(queue, record) || (found != seen.end() && record <= found->second);
  }

  struct Recorded {
    Marks covers;       ///< The work that is done when the event is done.
    bool idle = false;  ///< No work was given since the record before.
    uint32_t queue = 0;
    int64_t record = 0;  ///< Its number in the queue.
  };
  Recorded record(uint32_t queue) {
    QueueMarks& q = queues_[queue];
    Recorded recorded = {q.seen, q.last_work != q.given, queue, q.given};
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
  const QueueMarks& marks_of(uint32_t queue) const {
    static const QueueMarks kNone;
    const auto found = queues_.find(queue);
    return found == queues_.end() ? kNone : found->second;
  }
  static void raise(Marks& marks, const Marks& by) {
    for (const auto& [queue, mark] : by) marks[queue] = std::max(marks[queue], mark);
  }

  std::map<uint32_t, QueueMarks> queues_;
};

}  // namespace tenon::backend
