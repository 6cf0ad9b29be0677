#include "core/backend/layers/trace/trace_file.h"

#include <algorithm>
#include <chrono>

#include "core/backend/adapter/adapter.h"

namespace tenon::backend {
namespace {

// Bytes of the UTF-8 character at the beginning; 0 if the text begins with no valid one.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer than need be, surrogates, above the last character.
  const uint8_t second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return size;
}

constexpr std::string_view kHead = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
constexpr std::string_view kTail = "\n]}\n";

// Rows of the host's threads come behind those of queues.
constexpr uint64_t kFirstThread = 1000;

double microseconds(double seconds) { return seconds * 1e6; }

}  // namespace

std::string json_string(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const size_t size = character(text);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (size == 0) {
      result += "\\ufffd";
    } else if (static_cast<uint8_t>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return result + '"';
}

Result<std::shared_ptr<TraceFile>> TraceFile::create(const std::string& path) {
  TENON_ASSIGN(OutputFile output, OutputFile::create(path));
  auto file = std::shared_ptr<TraceFile>(new TraceFile(std::move(output)));
  TENON_TRY(file->file_.write(0, kHead));
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

// Writes the event over the closing text of the file, and that text again behind it.
void TraceFile::add(std::string_view event) {
  const std::lock_guard lock(mutex_);
  if (!status_.ok()) return;
  const std::string text = fmt::format("{}\n{}", end_ == kHead.size() ? "" : ",", event);
  status_ = file_.write(end_, text + std::string(kTail));
  end_ += text.size();
}

void TraceFile::slice(TraceTrack row, std::string_view name, double begin, double end,
                      std::string_view arguments) {
  add(fmt::format(R"({{"ph": "X", "pid": {}, "tid": {}, "name": {}, "ts": {:.3f}, "dur": {:.3f}, )"
                  R"("args": {{{}}}}})",
                  row.process, row.thread, json_string(name), microseconds(begin),
                  microseconds(end - begin), arguments));
}

void TraceFile::counter(uint64_t process, std::string_view name, double at, int64_t value) {
  add(fmt::format(R"({{"ph": "C", "pid": {}, "name": {}, "ts": {:.3f}, "args": {{"bytes": {}}}}})",
                  process, json_string(name), microseconds(at), value));
}

void TraceFile::name_process(uint64_t process, std::string_view name) {
  add(fmt::format(R"({{"ph": "M", "pid": {}, "name": "process_name", "args": {{"name": {}}}}})",
                  process, json_string(name)));
}

void TraceFile::name_track(TraceTrack row, std::string_view name) {
  add(fmt::format(
      R"({{"ph": "M", "pid": {}, "tid": {}, "name": "thread_name", "args": {{"name": {}}}}})",
      row.process, row.thread, json_string(name)));
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
