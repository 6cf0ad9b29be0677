#include "frameworks/pjrt/profile/profile_recorder.h"

#include <algorithm>
#include <chrono>

namespace tenon::pjrt {

int64_t profile_clock() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

ProfileRecorder& ProfileRecorder::instance() {
  static auto* const recorder = new ProfileRecorder();
  return *recorder;
}

void ProfileRecorder::add(ProfileSpan span) {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<ProfileRecording>& each : all_) {
    if (span.begin < each->begin) continue;
    if (each->spans.size() < kMostSpans) {
      each->spans.push_back(span);
    } else {
      ++each->dropped;
    }
  }
}

void ProfileRecorder::add_when(const runtime::Event& done, ProfileSpan span) {
  {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
  }
  done.on_ready([this, span = std::move(span)](const Status&) mutable {
    span.end = profile_clock();
    add(std::move(span));
    {
      const std::lock_guard lock(mutex_);
      --in_flight_;
    }
    ended_.notify_all();
  });
}

std::shared_ptr<ProfileRecording> ProfileRecorder::begin() {
  auto recording = std::make_shared<ProfileRecording>();
  recording->begin = profile_clock();
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  recording->epoch =
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count() - recording->begin;
  const std::lock_guard lock(mutex_);
  all_.push_back(recording);
  ++recordings_;
  return recording;
}

void ProfileRecorder::end(const std::shared_ptr<ProfileRecording>& recording) {
  std::unique_lock lock(mutex_);
  if (std::ranges::find(all_, recording) == all_.end()) return;
  ended_.wait_for(lock, std::chrono::seconds(1), [this] { return in_flight_ == 0; });
  if (std::erase(all_, recording) == 0) return;  // Another thread ended it meanwhile.
  --recordings_;
  recording->end = profile_clock();
}

}  // namespace tenon::pjrt
