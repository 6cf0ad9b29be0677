#include "core/backend/layers/trace/trace_file.h"

#include <chrono>
#include <cmath>

#include "core/backend/adapter/adapter.h"

namespace tenon::backend {
namespace {

constexpr std::string_view kHead = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
constexpr std::string_view kTail = "\n]}\n";

// Rows of host threads come after those of queues.
constexpr uint64_t kFirstThread = 1000;

// Rounded to a nanosecond.
double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

}  // namespace

Result<std::shared_ptr<TraceFile>> TraceFile::create(const std::string& path) {
  if (path.empty()) return std::shared_ptr<TraceFile>(new TraceFile(std::nullopt));
  TENON_ASSIGN(OutputFile output, OutputFile::create(path));
  auto file = std::shared_ptr<TraceFile>(new TraceFile(std::move(output)));
  TENON_TRY(file->file_->write(0, kHead));
  file->end_ = kHead.size();
  file->name_process(0, "host");
  TENON_TRY(Status(file->status_));
  return file;
}

TraceFile::~TraceFile() {
  if (!status_.ok()) host_services()->log(("trace: " + status_.message()).c_str());
}

double TraceFile::host_clock() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Overwrites the closing text of the file with the event, followed by that text again.
void TraceFile::add(const Json& event) {
  if (!file_) return;
  const std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::lock_guard lock(mutex_);
  if (!status_.ok()) return;
  const std::string text = fmt::format("{}\n{}", end_ == kHead.size() ? "" : ",", line);
  status_ = file_->write(end_, text + std::string(kTail));
  end_ += text.size();
}

void TraceFile::slice(TraceTrack row, std::string_view name, double begin, double end,
                      const Json& arguments) {
  if (!file_) return;
  add({{"ph", "X"},
       {"pid", row.process},
       {"tid", row.thread},
       {"name", name},
       {"ts", microseconds(begin)},
       {"dur", microseconds(end - begin)},
       {"args", arguments}});
}

void TraceFile::counter(uint64_t process, std::string_view name, double at, int64_t value) {
  if (!file_) return;
  add({{"ph", "C"},
       {"pid", process},
       {"name", name},
       {"ts", microseconds(at)},
       {"args", {{"bytes", value}}}});
}

void TraceFile::name_process(uint64_t process, std::string_view name) {
  add({{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", name}}}});
}

void TraceFile::name_track(TraceTrack row, std::string_view name) {
  add({{"ph", "M"},
       {"pid", row.process},
       {"tid", row.thread},
       {"name", "thread_name"},
       {"args", {{"name", name}}}});
}

TraceFile::TraceTrack TraceFile::track_of_this_thread(uint64_t process) {
  TraceTrack row = {process, 0};
  bool added = false;
  {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] =
        threads_.try_emplace({process, std::this_thread::get_id()}, kFirstThread + threads_.size());
    row.thread = at->second;
    added = is_new;
  }
  if (added) name_track(row, "host calls");
  return row;
}

}  // namespace tenon::backend
