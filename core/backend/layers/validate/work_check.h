// The effect of a copy, a fill or a launch on memory, as the layer `validate` sees it: bytes around
// the destination are read before the work and behind it, in the same queue. Of
// validate_device.cpp.
//
// A destination is painted with bytes that no work writes, so that what was not written shows. Of
// long ranges both ends are looked at, and parts between them; boxes with long ranges are not.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend/layers/loaded_kernel.h"
#include "core/backend/layers/validate/accesses.h"
#include "core/backend/layers/validate/canaries.h"
#include "core/backend/layers/validate/validate_device.h"
#include "core/base/status.h"

namespace tenon::backend {

/// Bytes of an inner device's memory, named as the host names them.
struct CheckedRange {
  MemoryAddress place;  ///< In the inner device; of the host if it is on the host.
  int64_t margin = 0;   ///< The inner device's offset of the host's offset 0.
  int64_t bytes = 0;
  std::string name;  ///< "buffer 1 of @k"; for copies empty.

  int64_t offset() const { return place.offset - margin; }
  /// `host`, `inner`: the place as the host names it, and in the inner device.
  static CheckedRange of(const MemoryAddress& host, const MemoryAddress& inner, int64_t bytes) {
    return {inner, host.on_host() ? 0 : inner.offset - host.offset, bytes, ""};
  }
};

/// A place as the host names it, and in the inner device.
struct HostAndInner {
  MemoryAddress host;
  MemoryAddress inner;
};

class WorkCheck {
 public:
  /// `around`: look for writes beside the destination too, which only other work of the same queue
  /// may make.
  static WorkCheck of_copy(const CheckedRange& to, const CheckedRange& from, bool around);
  /// A copy of a box; the addresses are those of its first element.
  static WorkCheck of_box(const HostAndInner& to, const HostAndInner& from, const Box& box,
                          bool around);
  /// A fill with the pattern.
  static WorkCheck of_fill(const CheckedRange& to, std::span<const std::byte> pattern, bool around);
  /// A launch with buffers at these places.
  static WorkCheck of_launch(const LoadedKernel& kernel, std::span<const MemoryAddress> host,
                             std::span<const MemoryAddress> inner, bool around);

  /// A library call, which writes its results whole. Those that share bytes with an operand are not
  /// painted.
  static WorkCheck of_call(const LibraryCallLaunch& host, const LibraryCallLaunch& inner,
                           const PlannedCall& sizes, bool around);

  /// Whether the work writes some of these bytes of the host.
  bool touches(std::span<const std::byte> host) const;

  /// Queue the copies that the check needs, before and behind the work.
  Status before(Device& device, uint32_t queue);
  Status behind(Device& device, uint32_t queue);
  /// Once an event behind the work is done: OK, or what the work did wrong. While it is not OK, the
  /// device may still write into this object.
  Status verdict() const;
  /// "a copy of 16 bytes from the host to 0 of memory 2", "@k"
  const std::string& what() const { return what_; }

 private:
  /// A part of a destination, or all of it.
  struct SeenBytes {
    size_t range = 0;   // Of ranges_.
    int64_t begin = 0;  // In the range.
    int64_t bytes = 0;  // Of the range.
    int64_t lead = 0;   // Bytes before those, and behind them, that the work must not write.
    int64_t trail = 0;
    bool painted = false;
    std::vector<std::byte> expected;  // Empty: not known. Of a box: the bytes of the source.
    std::vector<std::byte> before;
    std::vector<std::byte> after;
  };

  /// A box within the ranges of its destination and its source.
  struct BoxInRanges {
    Box box;
    int64_t to = 0;  ///< Where the first element lies in the range.
    int64_t from = 0;
    bool gaps = false;  ///< Nothing else writes what lies between elements.
  };

  void add_windows(size_t range, bool around, bool painted);
  void add_result(CheckedRange range, std::string_view noun, size_t number,
                  const MemoryAddress& host, bool around, bool painted);
  MemoryAddress place_of(const SeenBytes& window) const;
  std::vector<std::byte> of_source(const MemoryAddress& host) const;
  std::vector<std::byte> expected_of(const SeenBytes& window) const;
  std::vector<bool> looked_at(const SeenBytes& window) const;
  bool is_written(const SeenBytes& window, int64_t at) const;
  Status verdict_of(const SeenBytes& window) const;
  std::optional<std::string> beside(const SeenBytes& window) const;
  std::string fault_in(const SeenBytes& window) const;

  std::string what_;
  bool is_launch_ = false;
  std::vector<CheckedRange> ranges_;  // What is written.
  std::optional<CheckedRange> source_;
  std::optional<BoxInRanges> box_;
  std::vector<SeenBytes> windows_;
};

}  // namespace tenon::backend
