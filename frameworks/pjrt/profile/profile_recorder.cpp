#include "frameworks/pjrt/profile/profile_recorder.h"

#include <algorithm>
#include <chrono>
#include <new>

namespace tenon::pjrt {

int64_t profile_clock() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

ProfileRecorder& ProfileRecorder::instance() {
  static auto* const recorder = new ProfileRecorder();
  return *recorder;
}

void ProfileRecorder::add(ProfileSpan span) noexcept {
  const std::lock_guard lock(mutex_);
  const auto oldest = std::ranges::find_if(all_, [&](const auto& each) {
    return span.begin >= each->begin && (each->end == 0 || span.begin <= each->end);
  });
  if (oldest == all_.end()) return;
  ProfileRecording& recording = **oldest;
  try {
    if (recording.spans.size() < kMostSpans) return recording.spans.push_back(std::move(span));
  } catch (const std::bad_alloc&) {  // Work goes on without its span.
  }
  ++recording.dropped;
}

void ProfileRecorder::add_when(const runtime::Event& done, ProfileSpan span) {
  {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
  }
  const auto ended = [this] {
    {
      const std::lock_guard lock(mutex_);
      --in_flight_;
    }
    ended_.notify_all();
  };
  try {
    done.on_ready([this, ended, span = std::move(span)](const Status&) mutable {
      span.end = profile_clock();
      add(std::move(span));
      ended();
    });
  } catch (const std::bad_alloc&) {
    ended();
  }
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
  recording->end = profile_clock();  // What begins from here on is not a part of it.
  ended_.wait_for(lock, std::chrono::seconds(1), [this] { return in_flight_ == 0; });
  if (std::erase(all_, recording) == 0) return;  // Another thread ended it meanwhile.
  --recordings_;
}

}  // namespace tenon::pjrt
