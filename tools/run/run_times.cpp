#include "tools/run/run_times.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace tenon::tools {
namespace {

constexpr std::string_view kKernel = "kernel";
constexpr std::string_view kCall = "call";
constexpr std::string_view kCopy = "copy";
constexpr std::string_view kHost = "host";
constexpr std::string_view kLoop = "loop";
constexpr std::string_view kBranch = "branch";

std::string time_text(double seconds) {
  const char* const units[] = {"s", "ms", "us"};
  size_t unit = 0;
  for (; seconds < 1 && unit < 2; ++unit) seconds *= 1000;
  return fmt::format("{:.3g} {}", seconds, units[unit]);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

std::string_view kind_of(const program::Step& step) {
  if (std::holds_alternative<program::Launch>(step.action)) return kKernel;
  if (std::holds_alternative<program::LibraryCallStep>(step.action)) return kCall;
  if (std::holds_alternative<program::Copy>(step.action)) return kCopy;
  if (std::holds_alternative<program::While>(step.action)) return kLoop;
  return std::holds_alternative<program::Conditional>(step.action) ? kBranch : kHost;
}

std::string name_in(const program::Step& step) {
  if (const auto* call = std::get_if<program::LibraryCallStep>(&step.action)) {
    return std::string(program::name_of(call->call));
  }
  const auto* custom = std::get_if<program::CustomCall>(&step.action);
  return custom == nullptr ? "" : custom->target;
}

int64_t executions_of(const hlo::RunTimes& times) {
  return std::max<int64_t>(std::ssize(times.executions), 1);
}

}  // namespace

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void print_times(const hlo::RunTimes& times) {
  const std::vector<double>& runs = times.executions;
  fmt::print(stderr, "{}: median {}, least {}, first {}\n", counted(std::ssize(runs), "execution"),
             time_text(median(runs)), time_text(*std::ranges::min_element(runs)),
             time_text(runs[0]));
  fmt::print(stderr, "compile {}, load {}, arguments to the device {}, results to the host {}\n",
             time_text(times.compile), time_text(times.load), time_text(times.arguments),
             time_text(times.results));
}

nlohmann::json times_json(const hlo::RunTimes& times) {
  return {{"compile", times.compile},
          {"load", times.load},
          {"arguments", times.arguments},
          {"executions", times.executions},
          {"results", times.results}};
}

Result<std::shared_ptr<backend::Backend>> StepTimes::around(
    std::shared_ptr<backend::Backend> inner) {
  backend::TraceOptions options;
  options.path.clear();
  options.tag = [self = shared_from_this()] { return self->tag(); };
  options.seen = [self = shared_from_this()](const backend::TracedSlice& slice) {
    self->see(slice);
  };
  return backend::make_trace_layer(std::move(inner), options);
}

void StepTimes::begin(const program::Step& step) {
  const std::lock_guard lock(mutex_);
  const auto [found, added] = numbers_.try_emplace(&step, rows_.size());
  if (added) rows_.push_back({kind_of(step), name_in(step), step.label, 0, 0, {}});
  ++rows_[found->second].runs;
  running_.push_back({found->second, std::this_thread::get_id(), now()});
}

void StepTimes::end(const program::Step&) {
  const std::lock_guard lock(mutex_);
  rows_[running_.back().row].host += now() - running_.back().begin;
  running_.pop_back();
}

// The number of the innermost step that the calling thread runs, from 1.
uint64_t StepTimes::tag() {
  const std::lock_guard lock(mutex_);
  const bool is_of_step = !running_.empty() && running_.back().thread == std::this_thread::get_id();
  return is_of_step ? running_.back().row + 1 : 0;
}

void StepTimes::see(const backend::TracedSlice& slice) {
  using Kind = backend::TracedSlice::TracedKind;
  const std::lock_guard lock(mutex_);
  if (slice.tag > 0 && slice.kind != Kind::kToDevice && slice.kind != Kind::kToHost) {
    StepRow& row = rows_[slice.tag - 1];
    if (!slice.kernel.empty()) row.name = slice.kernel;
    row.seconds.push_back(slice.seconds);
    return;
  }
  std::string name = slice.kind == Kind::kLaunch ? "launches of other processes" : slice.name;
  if (slice.tag > 0) name += ", for steps";
  Transfers& transfers = transfers_[name];
  ++transfers.copies;
  transfers.bytes += slice.bytes;
  transfers.seconds += slice.seconds;
}

// A kernel that the device declined is interpreted by the host.
bool StepTimes::is_on_host(const StepRow& row) {
  return row.kind == kHost || (row.kind == kKernel && row.seconds.empty());
}

// Loops, branches, and calls that the device did not take, consist of other steps.
bool StepTimes::has_parts(const StepRow& row) {
  return row.kind == kLoop || row.kind == kBranch || (row.kind == kCall && row.seconds.empty());
}

std::vector<double> StepTimes::times_of(const StepRow& row) {
  if (!is_on_host(row)) return row.seconds;
  return std::vector<double>(static_cast<size_t>(row.runs),
                             row.host / static_cast<double>(row.runs));
}

double StepTimes::sum() const {
  double sum = 0;
  for (const StepRow& row : rows_) sum += has_parts(row) ? 0 : sum_of(times_of(row));
  return sum;
}

void StepTimes::print(const hlo::RunTimes& times) const {
  const std::lock_guard lock(mutex_);
  const int64_t executions = executions_of(times);
  const double all = sum();
  fmt::print(stderr, "{:<7}{:>9}{:>11}{:>8}  step, in one execution\n", "", "launches", "median",
             "share");
  for (const StepRow& row : rows_) {
    const std::string_view kind = is_on_host(row) ? kHost : row.kind;
    const std::string of =
        row.name.empty() ? row.label : fmt::format("{}: {}", row.name, row.label);
    if (has_parts(row)) {
      fmt::print(stderr, "{:<7}{:>9}{:>19}  {}\n", kind, row.runs / executions, "", of);
      continue;
    }
    const std::vector<double> seconds = times_of(row);
    fmt::print(stderr, "{:<7}{:>9}{:>11}{:>6.1f} %  {}\n", kind, std::ssize(seconds) / executions,
               time_text(median(seconds)), all > 0 ? 100 * sum_of(seconds) / all : 0.0, of);
  }
  fmt::print(stderr, "steps {} of an execution's {}, one by one with an event after each\n",
             time_text(all / static_cast<double>(executions)), time_text(median(times.executions)));
  for (const auto& [name, each] : transfers_) {
    fmt::print(stderr, "{}: {}, {} bytes, {} in all\n", name, counted(each.copies, "time"),
               each.bytes, time_text(each.seconds));
  }
}

nlohmann::json StepTimes::to_json(const hlo::RunTimes& times) const {
  const std::lock_guard lock(mutex_);
  const int64_t executions = executions_of(times);
  const double all = sum();
  nlohmann::json steps = nlohmann::json::array();
  for (const StepRow& row : rows_) {
    const std::vector<double> seconds = has_parts(row) ? std::vector<double>() : times_of(row);
    const int64_t count = has_parts(row) ? row.runs : std::ssize(seconds);
    steps.push_back({{"kind", is_on_host(row) ? kHost : row.kind},
                     {"name", row.name},
                     {"label", row.label},
                     {"launches", count / executions},
                     {"median", median(seconds)},
                     {"share", all > 0 ? sum_of(seconds) / all : 0.0}});
  }
  nlohmann::json transfers = nlohmann::json::array();
  for (const auto& [name, each] : transfers_) {
    transfers.push_back({{"name", name},
                         {"copies", each.copies},
                         {"bytes", each.bytes},
                         {"seconds", each.seconds}});
  }
  return {{"steps", steps}, {"transfers", transfers}, {"executions", times.executions}};
}

}  // namespace tenon::tools
