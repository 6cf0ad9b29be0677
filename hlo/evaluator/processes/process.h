// hlo/evaluator/processes/: simulated processes, which evaluate collectives.
//
// Simulated replicas and partitions: a grid of processes that communicate.
//
// Each process runs on a thread of its own, with its own Evaluator over the shared Module. This
// file has their communication: rendezvous (collectives), messages (send, recv, collective_permute)
// and the data offered to infeed. No value depends on which process comes first, unless several
// receive from a channel that does not say who.
//
// Waiting ends in three ways: the awaited event arrives; it can no longer arrive, since the
// process that owes it has ended, or since all processes wait (deadlock); or another process has
// failed. The last two are errors, so a grid always comes to an end if each of its processes does.
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

/// A queue of messages. Channels of the host have no ends: the first receiver gets the oldest.
struct Route {
  bool is_permute = false;  ///< Keeps collective_permute apart from send and recv on one channel.
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

  /// Gives `values` to `group`, which includes this process, and returns the values of each member
  /// in the group's order. Blocks until all have come. The n-th call for a group and channel meets
  /// the n-th calls of the others; they must be made by the same op, or in different functions by
  /// ops of the same name.
  Result<std::vector<ValueList>> rendezvous(const Instruction& op, int64_t channel,
                                            const ProcessGroup& group, ValueList values);

  /// Appends to the queue of `route`. Never blocks.
  void send(const Route& route, ValueList values);
  /// Takes the oldest message of `route`; blocks while there is none.
  Result<ValueList> receive(const Instruction& op, const Route& route);

  /// The next element of the data offered to infeed, of which each process has its own view; an
  /// error when all of it has been read. Never blocks.
  Result<ValueList> infeed(const Instruction& op);

 private:
  friend class ProcessGrid;
  Process(ProcessGrid& grid, ProcessId id, size_t index) : grid_(&grid), id_(id), index_(index) {}

  ProcessGrid* grid_;
  ProcessId id_;
  size_t index_;
  // Only this process's thread touches these.
  std::map<std::pair<ProcessGroup, int64_t>, int64_t> meetings_;  // so far, by group and channel
  size_t infeed_read_ = 0;
};

/// The grid. Constructed, fed and asked for results by one thread; `run` is called once.
class ProcessGrid {
 public:
  using ValueList = Process::ValueList;

  explicit ProcessGrid(GridExtent extent, std::vector<ValueList> infeed = {});
  ProcessGrid(const ProcessGrid&) = delete;
  ProcessGrid& operator=(const ProcessGrid&) = delete;

  const GridExtent& extent() const { return extent_; }

  /// Calls `body` for each process on a thread of its own and returns when all have ended. Of
  /// several errors it gives that of the first process, by [replica][partition], that failed by
  /// itself rather than because of another one. A body that throws has failed with that.
  Status run(const std::function<Status(Process&)>& body);

 private:
  friend class Process;

  // The event that a waiting process waits for. The functions are called with mutex_ held, by any
  // thread.
  struct PendingWait {
    std::string_view op;
    std::function<bool()> has_come;
    std::function<std::string()> lack;  // "process (1, 0)", "a message on channel 3"
    std::function<std::string()> loss;  // why it can no longer come; empty while it can
    bool is_over() const { return has_come() || !loss().empty(); }
  };
  // The op that made a call, comparable after it is gone.
  struct Site {
    OpCode code{};
    const Instruction* op = nullptr;
    const Computation* function = nullptr;
    SourcePosition position;
  };
  struct Meeting {
    Site site;  // of the first to come
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

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Member> members_;
  Status failure_;  // why nobody may wait any longer
  std::map<std::tuple<ProcessGroup, int64_t, int64_t>, Meeting> meetings_;  // group, channel, n-th
  std::map<Route, std::deque<ValueList>> queues_;
};

}  // namespace tenon::hlo
