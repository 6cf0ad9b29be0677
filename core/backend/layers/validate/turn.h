// Whether somebody is the only caller. Of validate_device.cpp.
#pragma once

#include <atomic>

namespace tenon::backend {

/// One caller at a time, of what rule B7 says comes one at a time.
class Turn {
 public:
  explicit Turn(std::atomic<int>& callers) : callers_(callers), alone_(callers.fetch_add(1) == 0) {}
  ~Turn() { callers_.fetch_sub(1); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool alone() const { return alone_; }

 private:
  std::atomic<int>& callers_;
  const bool alone_;
};

}  // namespace tenon::backend
