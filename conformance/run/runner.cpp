#include "conformance/run/runner.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "conformance/run/child.h"

namespace tenon::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// A worker process and the case that it runs.
struct WorkerProcess {
  Child child;
  bool is_ready = false;
  bool is_leaving = false;  // Its device is lost: it ends, and gets no other case.
  std::optional<Request> request;
  int answered = 0;
  Clock::time_point begin;
};

class Runner {
 public:
  Runner(const std::vector<Request>& requests, const RunnerOptions& options,
         const std::function<void(CaseRecord)>& on_record, const volatile bool* stop)
      : waiting_(requests.begin(), requests.end()),
        options_(options),
        on_record_(on_record),
        stop_(stop) {
    std::ranges::stable_partition(waiting_, [](const Request& each) { return !each.alone; });
  }

  Result<RunnerSummary> run() {
    size_t wanted = static_cast<size_t>(std::max(1, options_.jobs));
    while (!waiting_.empty() || std::ranges::any_of(workers_, &Runner::is_busy)) {
      if (stop_ != nullptr && *stop_) {
        summary_.interrupted = true;
        break;
      }
      // The first worker shows whether the device opens at all.
      if (most_ != 0) wanted = std::min(wanted, most_);
      const bool may_start = workers_.empty() || opened_;
      // One worker is enough for cases that run alone.
      const bool has_use = !waiting_.empty() && (workers_.empty() || !waiting_.front().alone);
      if (may_start && workers_.size() < wanted && has_use) {
        TENON_TRY(start());
        continue;
      }
      wait();
      for (size_t i = 0; i < workers_.size();) {
        TENON_ASSIGN(const bool lives, serve(*workers_[i]));
        if (lives) {
          ++i;
        } else {
          workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
    }
    return summary_;
  }

 private:
  static bool is_busy(const std::unique_ptr<WorkerProcess>& worker) {
    return worker->request.has_value();
  }

  Status start() {
    auto worker = std::make_unique<WorkerProcess>();
    TENON_ASSIGN(worker->child, Child::start(options_.worker));
    worker->begin = Clock::now();
    workers_.push_back(std::move(worker));
    summary_.workers = std::max(summary_.workers, static_cast<int>(workers_.size()));
    return {};
  }

  // Until a worker says something, ends, or is late.
  void wait() {
    constexpr int kTick = 50;  // Milliseconds.
    std::vector<pollfd> files;
    for (const auto& worker : workers_) {
      files.push_back({worker->child.answers(), POLLIN, 0});
      files.push_back({worker->child.output(), POLLIN, 0});
    }
    poll(files.data(), files.size(), kTick);
  }

  // Takes what a worker says and gives it work; false if it has ended.
  Result<bool> serve(WorkerProcess& worker) {
    const bool ended = !worker.child.read();
    while (const auto line = worker.child.next_answer()) TENON_TRY(take(worker, *line));
    if (ended) {
      TENON_TRY(bury(worker));
      return false;
    }
    const std::chrono::duration<double> taken = Clock::now() - worker.begin;
    const bool busy = worker.request.has_value() || !worker.is_ready;
    if (busy && taken.count() > options_.timeout) {
      worker.child.kill();
      if (!worker.request) {
        return make_error(ErrorCode::kDeadlineExceeded, "the device does not open within {:g} s",
                          options_.timeout);
      }
      give_up(worker, Outcome::kTimeout, fmt::format("no result within {:g} s", options_.timeout));
      ++summary_.restarts;
      return false;
    }
    const bool is_free = worker.is_ready && !worker.is_leaving && !worker.request;
    if (is_free && may_begin()) give(worker);
    return true;
  }

  // Whether the next case may begin now.
  bool may_begin() const {
    if (waiting_.empty()) return false;
    return !waiting_.front().alone || std::ranges::none_of(workers_, &Runner::is_busy);
  }

  void give(WorkerProcess& worker) {
    worker.request = std::move(waiting_.front());
    waiting_.pop_front();
    worker.begin = Clock::now();
    worker.child.write(fmt::format("{}\n", worker.request->number));
  }

  Status take(WorkerProcess& worker, const std::string& line) {
    const auto value = nlohmann::json::parse(std::string_view(line), nullptr, false);
    if (value.is_discarded()) return internal_error("a worker answers '{}'", line);
    if (value.contains("ready")) {
      summary_.device = value.at("ready").get<std::vector<std::string>>();
      summary_.counts_steps = value.value("counts_steps", true);
      worker.is_ready = true;
      if (!opened_ && options_.on_open) TENON_TRY(options_.on_open(summary_));
      opened_ = true;
      return {};
    }
    if (value.contains("error")) {
      error_ = value.at("error").get<std::string>();
      return {};
    }
    TENON_ASSIGN(CaseRecord record, record_from_json(value));
    const bool asked = worker.request && worker.request->name == record.name;
    if (!asked)
      return internal_error("a worker answers for {}, which it was not given", record.name);
    worker.request.reset();
    ++worker.answered;
    worker.is_leaving = record.result.outcome == Outcome::kDeviceLost;
    on_record_(std::move(record));
    return {};
  }

  // A worker has ended: within a case, or before the device was open.
  Status bury(WorkerProcess& worker) {
    const std::string end = worker.child.await();
    if (worker.request) {
      give_up(worker, Outcome::kCrash, end);
      ++summary_.restarts;
      return {};
    }
    if (worker.is_ready) {  // The device is lost: its case has been told.
      ++summary_.restarts;
      // Else the run would never end.
      if (worker.answered == 0 && ++idle_ends_ > kMostIdleEnds) {
        return {ErrorCode::kUnavailable,
                fmt::format("workers end before their first case: {}", end)};
      }
      return {};
    }
    const bool others_run = workers_.size() > 1;
    if (others_run) {  // It may be open in a few processes only.
      most_ = workers_.size() - 1;
      return {};
    }
    return {ErrorCode::kUnavailable,
            fmt::format("the device does not open: {}", error_.empty() ? end : error_)};
  }

  void give_up(WorkerProcess& worker, Outcome outcome, std::string message) {
    CaseRecord record;
    record.name = worker.request->name;
    record.result.outcome = outcome;
    record.result.message = std::move(message);
    record.seconds = std::chrono::duration<double>(Clock::now() - worker.begin).count();
    worker.request.reset();
    on_record_(std::move(record));
  }

  std::deque<Request> waiting_;
  const RunnerOptions& options_;
  const std::function<void(CaseRecord)>& on_record_;
  const volatile bool* const stop_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  RunnerSummary summary_;
  static constexpr int kMostIdleEnds = 3;
  int idle_ends_ = 0;
  bool opened_ = false;
  size_t most_ = 0;  // Number of workers with which the device opened, if fewer than asked for.
  std::string error_;
};

}  // namespace

Result<RunnerSummary> run_cases(const std::vector<Request>& requests, const RunnerOptions& options,
                                const std::function<void(CaseRecord)>& on_record,
                                const volatile bool* stop) {
  return Runner(requests, options, on_record, stop).run();
}

}  // namespace tenon::conformance
