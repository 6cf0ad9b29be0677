// hlo/evaluator/processes/: simulated processes, which evaluate collectives.
//
// Simulated replicas and partitions: a grid of processes that communicate.
//
// Each process runs on its own thread, with its own Evaluator over the shared Module. This file
// implements their communication: rendezvous (collectives), messages (send, recv,
// collective_permute) and the data offered to infeed. No value depends on the timing of processes,
// unless several receive from a channel without stated pairs.
//
// A wait ends in three ways: the awaited event arrives; it can no longer arrive, because the
// process that should cause it has ended or because all processes wait (deadlock); or another
// process has failed. The last two are errors, so a grid always ends if each of its processes does.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/processes/process_groups.h"

namespace tenon::hlo {

class ProcessGrid;

/// A queue of messages. Host channels have no fixed ends: the first receiver gets the oldest
/// message.
struct Route {
  /// Distinguishes collective_permute from send and recv on the same channel.
  bool is_permute = false;
  int64_t channel = 0;
  std::optional<ProcessId> source;
  std::optional<ProcessId> target;
  auto operator<=>(const Route&) const = default;
};

/// One process. Its functions are called on its own thread (ProcessGrid::run).
class Process {
 public:
  using ValueList = std::vector<EvalValue>;

  ProcessId id() const { return id_; }
  const ProcessGrid& grid() const { return *grid_; }

  /// Passes `values` to `group`, which includes this process, and returns the values of each member
  /// in the group's order. Blocks until all members have called it. The n-th call for a group and
  /// channel meets the n-th calls of the other members; they must be made by the same op, or in
  /// different functions by ops of the same name.
  Result<std::vector<ValueList>> rendezvous(const Instruction& op, int64_t channel,
                                            const ProcessGroup& group, ValueList values);

  /// Appends to the queue of `route`. Never blocks.
  void send(const Route& route, ValueList values);
  /// Takes the oldest message of `route`; blocks until there is one.
  Result<ValueList> receive(const Instruction& op, const Route& route);

  /// The next element of the data offered to infeed; each process reads it from the beginning. An
  /// error if all of it has been read. Never blocks.
  Result<ValueList> infeed(const Instruction& op);

 private:
  friend class ProcessGrid;
  Process(ProcessGrid& grid, ProcessId id, size_t index) : grid_(&grid), id_(id), index_(index) {}

  ProcessGrid* grid_;
  ProcessId id_;
  size_t index_;
  // Only this process's thread accesses these.
  std::map<std::pair<ProcessGroup, int64_t>, int64_t> meetings_;  // so far, by group and channel
  size_t infeed_read_ = 0;
};

/// The grid. One thread constructs it, provides its input and reads its results; `run` is called
/// once.
class ProcessGrid {
 public:
  using ValueList = Process::ValueList;

  explicit ProcessGrid(GridExtent extent, std::vector<ValueList> infeed = {});
  ProcessGrid(const ProcessGrid&) = delete;
  ProcessGrid& operator=(const ProcessGrid&) = delete;

  const GridExtent& extent() const { return extent_; }

  /// Calls `body` for each process on its own thread and returns when all have ended. If several
  /// fail, returns the error of the first process, by [replica][partition], that failed by itself
  /// rather than because of another one. A body that throws fails with that exception's text.
  Status run(const std::function<Status(Process&)>& body);

 private:
  friend class Process;

  // The event for which a process waits. Any thread may call the functions; mutex_ must be held.
  struct PendingWait {
    std::string_view op;
    std::function<bool()> has_come;
    std::function<std::string()> lack;  // "process (1, 0)", "a message on channel 3"
    std::function<std::string()> loss;  // the reason why it can no longer arrive; empty if it can
    bool is_over() const { return has_come() || !loss().empty(); }
  };
  // Identifies the op that made a call; comparable after the op is destroyed.
  struct Site {
    OpCode code{};
    const Instruction* op = nullptr;
    const Computation* function = nullptr;
    SourcePosition position;
  };
  struct Meeting {
    Site site;  // of the first process to arrive
    ProcessId first;
    std::vector<std::optional<ValueList>> values;
    size_t arrived = 0;
    size_t left = 0;
  };
  struct Member {
    const PendingWait* wait = nullptr;
    bool ended = false;
    bool was_woken = false;  // its error is that of another process
    Status status;
  };

  Status wait(std::unique_lock<std::mutex>& lock, size_t index, const PendingWait& what);
  void leave(size_t index, Status status);
  void find_deadlock();
  bool has_ended(ProcessId id) const { return members_[index_of(id)].ended; }
  size_t index_of(ProcessId id) const {
    return static_cast<size_t>(id.replica * extent_.partitions + id.partition);
  }
  static Site site_of(const Instruction& op);
  static Status disagreement(const Site& mine, ProcessId me, const Meeting& meeting);

  const GridExtent extent_;
  const std::vector<ValueList> infeed_;
  std::vector<std::unique_ptr<Process>> processes_;  // fixed before run

  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::vector<Member> members_;
  Status failure_;  // the reason why no process may wait any longer
  std::map<std::tuple<ProcessGroup, int64_t, int64_t>, Meeting> meetings_;  // group, channel, n-th
  std::map<Route, std::deque<ValueList>> queues_;
};

}  // namespace tenon::hlo
