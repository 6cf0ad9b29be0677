// Donations: the buffers that an execution is given for good.
//
// Thread-safety: one thread at a time.
#pragma once

#include <utility>
#include <vector>

#include "core/runtime/buffer.h"

namespace tenon::runtime {

/// They have their memory back unless the execution comes to be.
class Donations {
 public:
  Donations() = default;
  ~Donations() {
    for (auto& [buffer, memory] : taken_) buffer->restore(std::move(memory));
  }
  Donations(const Donations&) = delete;
  Donations& operator=(const Donations&) = delete;

  /// Whether its memory may be written. Errors: it is gone already.
  Result<bool> take(const BufferPtr& buffer) {
    taken_.reserve(taken_.size() + 1);
    TENON_ASSIGN(Buffer::Donated donated, buffer->donate());
    taken_.emplace_back(buffer, std::move(donated.storage));
    return donated.writable;
  }
  /// The execution has come to be.
  void keep() { taken_.clear(); }

 private:
  std::vector<std::pair<BufferPtr, Storage>> taken_;
};

}  // namespace tenon::runtime
