#include "hlo/evaluator/processes/process.h"

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>
#include <thread>

namespace tenon::hlo {
namespace {

std::string list_of(const ProcessGroup& processes) {
  std::string text = processes.size() == 1 ? "process " : "processes ";
  for (size_t i = 0; i < processes.size(); ++i) {
    if (i != 0) text += ", ";
    text += to_string(processes[i]);
  }
  return text;
}

// No exception may leave a thread; the evaluator throws when it runs out of memory.
Status outcome_of(const std::function<Status(Process&)>& body, Process& process) {
  try {
    return body(process);
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kResourceExhausted, "the host is out of memory"};
  } catch (const std::exception& error) {
    return internal_error("an exception has left the process: {}", error.what());
  }
}

}  // namespace

ProcessGrid::ProcessGrid(GridExtent extent, std::vector<ValueList> infeed)
    : extent_(extent), infeed_(std::move(infeed)) {
  for (int64_t replica = 0; replica < extent.replicas; ++replica) {
    for (int64_t partition = 0; partition < extent.partitions; ++partition) {
      const ProcessId id{replica, partition};
      processes_.emplace_back(new Process(*this, id, processes_.size()));
    }
  }
  members_.resize(processes_.size());
}

Status ProcessGrid::run(const std::function<Status(Process&)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(processes_.size());
  for (const auto& process : processes_) {
    // The standard library throws if there are no more threads. A process that never starts must be
    // marked as ended, or the others would wait for it.
    try {
      threads.emplace_back(
          [this, &body, &process] { leave(process->index_, outcome_of(body, *process)); });
    } catch (const std::system_error& error) {
      leave(process->index_, resource_exhausted("no thread for process {} of {}: {}",
                                                process->index_, processes_.size(), error.what()));
    }
  }
  for (std::thread& thread : threads) thread.join();

  const std::lock_guard lock(mutex_);
  for (const bool with_woken : {false, true}) {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].status.ok() || (members_[i].was_woken && !with_woken)) continue;
      Status status = members_[i].status;
      if (members_.size() == 1) return status;
      return std::move(status).with_context("process " + to_string(processes_[i]->id()));
    }
  }
  return {};
}

void ProcessGrid::leave(size_t index, Status status) {
  const std::lock_guard lock(mutex_);
  Member& member = members_[index];
  member.ended = true;
  if (!status.ok() && failure_.ok()) {
    failure_ = make_error(ErrorCode::kAborted, "process {} has failed: {}",
                          to_string(processes_[index]->id()), status.message());
  }
  member.status = std::move(status);
  find_deadlock();
  changed_.notify_all();
}

Status ProcessGrid::wait(std::unique_lock<std::mutex>& lock, size_t index,
                         const PendingWait& what) {
  Member& member = members_[index];
  if (failure_.ok()) {
    member.wait = &what;
    find_deadlock();
    changed_.wait(lock, [&] { return what.is_over() || !failure_.ok(); });
    member.wait = nullptr;
  }
  if (what.has_come()) return {};
  if (failure_.ok()) {
    return failed_precondition("{}: {}", what.op, what.loss());
  }
  member.was_woken = true;
  return Status(failure_).with_context(what.op);
}

// mutex_ must be held. Processes whose event has arrived, or can no longer arrive, are about to
// continue.
void ProcessGrid::find_deadlock() {
  if (!failure_.ok()) return;
  std::string waits;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (member.ended) continue;
    if (member.wait == nullptr || member.wait->is_over()) return;
    waits += fmt::format("{}process {} in {} for {}", waits.empty() ? "" : "; ",
                         to_string(processes_[i]->id()), member.wait->op, member.wait->lack());
  }
  if (waits.empty()) return;
  failure_ = failed_precondition("deadlock, all processes that run wait: {}", waits);
  changed_.notify_all();
}

ProcessGrid::Site ProcessGrid::site_of(const Instruction& op) {
  Site site{op.code(), &op, op.parent(), position_of(op.location())};
  while (site.function != nullptr && !site.function->is_function()) {
    site.function = site.function->owner()->parent();
  }
  return site;
}

// If two different ops of one function meet, the processes took different paths through it, and
// their values are unrelated. Ops without a function are copies made for evaluation.
Status ProcessGrid::disagreement(const Site& mine, ProcessId me, const Meeting& meeting) {
  const Site& theirs = meeting.site;
  const bool is_same_way =
      mine.function == nullptr || mine.function != theirs.function || mine.op == theirs.op;
  if (mine.code == theirs.code && is_same_way) return {};
  const auto place = [](const Site& site) {
    return site.position.known() ? fmt::format(" ({}:{})", site.position.file, site.position.line)
                                 : std::string();
  };
  return failed_precondition(
      "process {} has come to {}{} while process {} of its group has come to "
      "{}{}; all must execute the same collectives in the same order",
      to_string(me), op_name(mine.code), place(mine), to_string(meeting.first),
      op_name(theirs.code), place(theirs));
}

Result<std::vector<Process::ValueList>> Process::rendezvous(const Instruction& op, int64_t channel,
                                                            const ProcessGroup& group,
                                                            ValueList values) {
  const auto place = std::find(group.begin(), group.end(), id_);
  if (place == group.end()) {
    return internal_error("{}: process {} is not in its group", op.name(), to_string(id_));
  }
  const int64_t sequence = meetings_[{group, channel}]++;
  const ProcessGrid::Site site = ProcessGrid::site_of(op);

  std::unique_lock lock(grid_->mutex_);
  const auto found = grid_->meetings_.try_emplace({group, channel, sequence}).first;
  ProcessGrid::Meeting& meeting = found->second;
  if (meeting.arrived == 0) {
    meeting.site = site;
    meeting.first = id_;
    meeting.values.resize(group.size());
  }
  TENON_TRY(ProcessGrid::disagreement(site, id_, meeting));
  meeting.values[static_cast<size_t>(place - group.begin())] = std::move(values);
  ++meeting.arrived;
  grid_->changed_.notify_all();

  const auto missing = [&](bool ended_only) {
    ProcessGroup list;
    for (size_t i = 0; i < group.size(); ++i) {
      if (!meeting.values[i] && (!ended_only || grid_->has_ended(group[i]))) {
        list.push_back(group[i]);
      }
    }
    return list;
  };
  ProcessGrid::PendingWait what;
  what.op = op.name();
  what.has_come = [&] { return meeting.arrived == group.size(); };
  what.lack = [&] { return list_of(missing(false)); };
  what.loss = [&] {
    const ProcessGroup ended = missing(true);
    return ended.empty() ? "" : list_of(ended) + " ended without taking part";
  };
  TENON_TRY(grid_->wait(lock, index_, what));

  std::vector<ValueList> all;
  for (const auto& each : meeting.values) all.push_back(*each);
  if (++meeting.left == group.size()) grid_->meetings_.erase(found);
  return all;
}

void Process::send(const Route& route, ValueList values) {
  const std::lock_guard lock(grid_->mutex_);
  grid_->queues_[route].push_back(std::move(values));
  grid_->changed_.notify_all();
}

Result<Process::ValueList> Process::receive(const Instruction& op, const Route& route) {
  std::unique_lock lock(grid_->mutex_);
  std::deque<ValueList>& queue = grid_->queues_[route];
  ProcessGrid::PendingWait what;
  what.op = op.name();
  what.has_come = [&] { return !queue.empty(); };
  what.lack = [&] {
    return fmt::format("a message on channel {}{}", route.channel,
                       route.source ? " from process " + to_string(*route.source) : "");
  };
  what.loss = [&] {
    return route.source && grid_->has_ended(*route.source)
               ? fmt::format("process {} ended without sending on channel {}",
                             to_string(*route.source), route.channel)
               : "";
  };
  TENON_TRY(grid_->wait(lock, index_, what));
  ValueList values = std::move(queue.front());
  queue.pop_front();
  return values;
}

Result<Process::ValueList> Process::infeed(const Instruction& op) {
  if (infeed_read_ == grid_->infeed_.size()) {
    return make_error(ErrorCode::kOutOfRange, "{}: the infeed is empty, all {} elements were read",
                      op.name(), grid_->infeed_.size());
  }
  return grid_->infeed_[infeed_read_++];
}

}  // namespace tenon::hlo
