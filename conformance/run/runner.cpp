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
  bool is_leaving =
      false;  // It ends, and gets no other case: its device is lost, or there is none.
  std::optional<Request> request;
  bool has_begun = false;           // The case of the request.
  std::optional<CaseRecord> found;  // Its failure, while it reduces the program.
  // The result of the case before, until the next one begins: an end before that is its fault.
  std::optional<CaseRecord> answered;
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
    while (!waiting_.empty() || std::ranges::any_of(workers_, &Runner::is_busy)) {
      if (stop_ != nullptr && *stop_) {
        summary_.interrupted = true;
        for (const auto& worker : workers_) deliver(*worker);
        return summary_;
      }
      if (may_start()) {
        TENON_TRY(start());
        continue;
      }
      TENON_TRY(serve_all());
    }
    // A device that crashes when it is closed is found too.
    for (const auto& worker : workers_) leave(*worker);
    while (!workers_.empty()) TENON_TRY(serve_all());
    return summary_;
  }

 private:
  static bool is_busy(const std::unique_ptr<WorkerProcess>& worker) {
    return worker->request.has_value();
  }

  bool may_start() const {
    auto wanted = static_cast<size_t>(std::max(1, options_.jobs));
    // The first worker shows whether the device opens at all.
    if (most_ != 0) wanted = std::min(wanted, most_);
    const bool may = workers_.empty() || opened_;
    // One worker is enough for cases that run alone.
    const bool has_use = !waiting_.empty() && (workers_.empty() || !waiting_.front().alone);
    return may && workers_.size() < wanted && has_use;
  }

  Status serve_all() {
    wait();
    for (size_t i = 0; i < workers_.size();) {
      TENON_ASSIGN(const bool lives, serve(*workers_[i]));
      if (lives) {
        ++i;
      } else {
        workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    return {};
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
    const bool busy = worker.request.has_value() || !worker.is_ready || worker.is_leaving;
    if (busy && taken.count() > options_.timeout) {
      worker.child.kill();
      TENON_TRY(end_late(worker));
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

  // The worker ends when it has no more requests.
  static void leave(WorkerProcess& worker) {
    worker.child.end_requests();
    worker.is_leaving = true;
    worker.begin = Clock::now();
  }

  // The result of the worker's last case is final.
  void deliver(WorkerProcess& worker) {
    if (worker.answered) on_record_(*std::exchange(worker.answered, std::nullopt));
  }

  Status take(WorkerProcess& worker, const std::string& line) {
    const auto value = nlohmann::json::parse(std::string_view(line), nullptr, false);
    Status wrong = internal_error("a worker answers '{}'", line.substr(0, 200));
    if (!value.is_object()) return wrong;
    if (value.contains("ready")) return open(worker, value);
    if (value.contains("error")) {
      error_ = value.at("error").is_string() ? value.at("error").get<std::string>() : line;
      return {};
    }
    if (value.contains("begin")) {
      if (!worker.request || value.at("begin") != worker.request->name) return wrong;
      deliver(worker);
      worker.has_begun = true;
      return {};
    }
    const bool is_found = value.contains("found");
    TENON_ASSIGN(CaseRecord record, record_from_json(is_found ? value.at("found") : value));
    const bool asked = worker.request && worker.request->name == record.name && worker.has_begun;
    if (!asked)
      return internal_error("a worker answers for {}, which it was not given", record.name);
    if (is_found) {
      worker.found = std::move(record);
      return {};
    }
    worker.request.reset();
    worker.found.reset();
    worker.has_begun = false;
    if (record.result.outcome == Outcome::kDeviceLost) leave(worker);
    worker.answered = std::move(record);
    return {};
  }

  Status open(WorkerProcess& worker, const nlohmann::json& value) {
    const nlohmann::json& lines = value.at("ready");
    std::vector<std::string> device;
    for (const nlohmann::json& each : lines) {
      if (!each.is_string())
        return internal_error("a worker describes its device by {}", each.dump());
      device.push_back(each.get<std::string>());
    }
    summary_.device = std::move(device);
    const auto counts = value.find("counts_steps");
    summary_.counts_steps = counts == value.end() || !counts->is_boolean() || counts->get<bool>();
    worker.is_ready = true;
    failed_opens_ = 0;
    if (!opened_ && options_.on_open) TENON_TRY(options_.on_open(summary_));
    opened_ = true;
    return {};
  }

  // A worker was killed because it took too long.
  Status end_late(WorkerProcess& worker) {
    const std::string limit = fmt::format("{:g} s", options_.timeout);
    if (!worker.is_ready)
      return fail_to_open(fmt::format("the device does not open within {}", limit));
    ++summary_.restarts;
    if (!worker.request) {  // Its device is lost, or the run has ended.
      blame_case_before(worker, Outcome::kTimeout,
                        fmt::format("the process does not end within {}", limit));
      return {};
    }
    deliver(worker);
    if (worker.has_begun) {
      give_up(worker, Outcome::kTimeout, fmt::format("no result within {}", limit));
    } else {
      give_up(worker, Outcome::kTimeout, fmt::format("the case did not begin within {}", limit));
    }
    return {};
  }

  // A worker has ended: within a case, behind one, or before the device was open.
  Status bury(WorkerProcess& worker) {
    const Child::ChildEnd end = worker.child.await();
    if (!worker.is_ready) {
      return fail_to_open(
          fmt::format("the device does not open: {}", error_.empty() ? end.text : error_));
    }
    if (!worker.is_leaving) ++summary_.restarts;
    if (worker.has_begun) {
      deliver(worker);
      give_up(worker, Outcome::kCrash, end.text);
      return {};
    }
    const bool was_asked = worker.request.has_value();
    if (was_asked) waiting_.push_front(*std::exchange(worker.request, std::nullopt));
    if (worker.is_leaving && end.is_clean) {
      if (worker.answered && worker.answered->result.outcome == Outcome::kDeviceLost)
        ++summary_.restarts;
      deliver(worker);
      return {};
    }
    if (worker.answered) {
      blame_case_before(worker, Outcome::kCrash, end.text + ", after the case's result");
      return {};
    }
    // Else the run would never end.
    if (++idle_ends_ > kMostIdleEnds) {
      return {ErrorCode::kUnavailable,
              fmt::format("workers end before their first case: {}", end.text)};
    }
    return {};
  }

  // A worker whose device does not open. Later ones may have lost it: then what is left has no
  // result, and the run still ends with a report.
  Status fail_to_open(const std::string& message) {
    if (!opened_) return {ErrorCode::kUnavailable, message};
    ++summary_.restarts;
    if (workers_.size() > 1) {  // It may be open in a few processes only.
      most_ = workers_.size() - 1;
      return {};
    }
    if (++failed_opens_ < kMostFailedOpens) return {};
    for (const Request& each : std::exchange(waiting_, {})) {
      CaseRecord record;
      record.name = each.name;
      record.result.outcome = Outcome::kDeviceLost;
      record.result.message = message;
      on_record_(std::move(record));
    }
    return {};
  }

  // An end behind the result of a case is its fault, unless the case has failed by itself.
  void blame_case_before(WorkerProcess& worker, Outcome outcome, const std::string& message) {
    if (worker.answered && is_pass(worker.answered->result.outcome)) {
      worker.answered->result.outcome = outcome;
      worker.answered->result.message = message;
    }
    deliver(worker);
  }

  // Within a case: its failure, if that is known, else the end of the worker.
  void give_up(WorkerProcess& worker, Outcome outcome, const std::string& message) {
    CaseRecord record;
    if (worker.found) {
      record = *std::exchange(worker.found, std::nullopt);
      record.result.message += "; its program is not reduced: " + message;
    } else {
      record.name = worker.request->name;
      record.result.outcome = outcome;
      record.result.message = message;
    }
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
  static constexpr int kMostFailedOpens = 3;
  int failed_opens_ = 0;  // In a row, with no other worker.
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
