// frameworks/pjrt/profile/: what a framework's profiler records of the plug-in's devices.
//
// A recording begins when the framework asks for it (entries/profiler.cpp). While there is one, the
// functions of the table add a span for each compilation, execution and transfer, and the layer
// `trace` one for each step, if the device was opened for that (EngineOptions::profile_steps). Not
// recorded: contents that come later (late_buffers.cpp), raw copies whose destination is named
// later, transfers of a running program, executables that are loaded.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/runtime/event.h"

namespace tenon::pjrt {

/// The rows of a device in a profile.
enum class ProfileRow : uint8_t { kPrograms, kSteps, kTransfers, kCompilations };

/// Work of a device, or for it, from its begin to its end.
struct ProfileSpan {
  ProfileRow row = ProfileRow::kPrograms;
  std::string device;  ///< The backend's name for it, "interp:0".
  std::string name;
  std::string kernel;  ///< If it is a step that launches one.
  uint32_t queue = 0;  ///< For steps.
  int64_t bytes = -1;  ///< Transferred, or read and written; -1 if that is not known.
  double flops = -1;   ///< -1 if that is not known.
  int64_t begin = 0;   ///< Nanoseconds of profile_clock().
  int64_t end = 0;
};

/// Nanoseconds of std::chrono::steady_clock.
int64_t profile_clock();

/// The spans that were recorded, in the order in which they ended: those that began within it.
struct ProfileRecording {
  std::vector<ProfileSpan> spans;
  /// Spans beyond the most that a recording keeps (kMostSpans).
  int64_t dropped = 0;
  int64_t begin = 0;  ///< Nanoseconds of profile_clock().
  int64_t end = 0;    ///< 0 until it ends.
  /// Nanoseconds since 1970 at which profile_clock() was 0.
  int64_t epoch = 0;
};

/// The recordings of the process. Thread-safety: all functions may be called from any thread.
class ProfileRecorder {
 public:
  static constexpr size_t kMostSpans = 4'000'000;

  static ProfileRecorder& instance();

  /// Whether spans are wanted: cheap, for callers that ask before each piece of work.
  bool is_recording() const { return recordings_.load(std::memory_order_relaxed) > 0; }
  /// Adds it to the oldest recording in which it began. A span for which there is no memory counts
  /// as dropped.
  void add(ProfileSpan span) noexcept;
  /// Adds the span when `done` has happened, which is its end.
  void add_when(const runtime::Event& done, ProfileSpan span);

  /// Begins a recording. Of several at once the oldest gets the spans: a framework that registered
  /// the plug-in under several names starts as many profilers, and puts what they have together.
  std::shared_ptr<ProfileRecording> begin();
  /// Ends it, after waiting for work that began before, for a second at most. Ending it again does
  /// nothing.
  void end(const std::shared_ptr<ProfileRecording>& recording);

 private:
  std::atomic<int> recordings_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  int64_t in_flight_ = 0;  // Spans of add_when without an end.
  std::vector<std::shared_ptr<ProfileRecording>> all_;
};

}  // namespace tenon::pjrt
