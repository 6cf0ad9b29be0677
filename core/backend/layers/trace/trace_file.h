// A file in Chrome's trace format, which chrome://tracing and Perfetto show: slices on rows, and
// counters, in microseconds. The file is complete JSON after each of them, even if the process
// crashes.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/file.h"

namespace tenon::backend {

class TraceFile {
 public:
  using Json = nlohmann::ordered_json;

  /// A row: a process (a device, or 0, the host) and a thread (a queue, or a host thread).
  struct TraceTrack {
    uint64_t process = 0;
    uint64_t thread = 0;
  };

  /// An empty path makes no file. Errors: the file cannot be written.
  static Result<std::shared_ptr<TraceFile>> create(const std::string& path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Seconds of the host's steady clock since the file was created.
  double now() const { return host_clock() - start_; }
  /// When it was created, by host_clock().
  double start() const { return start_; }
  static double host_clock();

  /// `arguments` is an object. In strings, bytes that are not UTF-8 become U+FFFD.
  void slice(TraceTrack row, std::string_view name, double begin, double end,
             const Json& arguments);
  void counter(uint64_t process, std::string_view name, double at, int64_t value);
  void name_process(uint64_t process, std::string_view name);
  void name_track(TraceTrack row, std::string_view name);
  /// The row of the calling thread, which is named at the first call.
  TraceTrack track_of_this_thread(uint64_t process);

 private:
  explicit TraceFile(std::optional<OutputFile> file)
      : file_(std::move(file)), start_(host_clock()) {}
  void add(const Json& event);

  const std::optional<OutputFile> file_;
  const double start_;
  std::mutex mutex_;
  uint64_t end_ = 0;  // End of the events.
  Status status_;     // The first error; logged when the file is closed.
  std::map<std::pair<uint64_t, std::thread::id>, uint64_t> threads_;
};

}  // namespace tenon::backend
