// Spans of the table's functions.
#pragma once

#include <string_view>

#include "frameworks/pjrt/objects.h"
#include "frameworks/pjrt/profile/profile_recorder.h"

namespace tenon::pjrt {

/// Work that begins with this object; it costs a load where nothing is recorded. An object that is
/// not told of the end, as after an error, records nothing.
class ProfiledWork {
 public:
  ProfiledWork()
      : begin_(ProfileRecorder::instance().is_recording() ? profile_clock() : kNotRecorded) {}

  /// `bytes` are those that a transfer moves.
  void until(const runtime::Event& done, const PJRT_Device& device, ProfileRow row,
             std::string_view name, int64_t bytes = -1) const {
    if (begin_ == kNotRecorded) return;
    ProfileSpan span;
    span.row = row;
    span.device = device.description.backend_device;
    span.name = name;
    span.bytes = bytes;
    span.begin = begin_;
    ProfileRecorder::instance().add_when(done, std::move(span));
  }
  void until_now(const PJRT_Device& device, ProfileRow row, std::string_view name) const {
    if (begin_ != kNotRecorded) until(runtime::Event::ready(), device, row, name);
  }

 private:
  static constexpr int64_t kNotRecorded = -1;
  const int64_t begin_;
};

}  // namespace tenon::pjrt
