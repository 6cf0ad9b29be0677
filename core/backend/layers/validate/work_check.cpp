#include "core/backend/layers/validate/work_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <random>

#include "core/backend/layers/validate/validate_device.h"

namespace tenon::backend {
namespace {

constexpr int64_t kAround = 256;  // No more than a margin, so that it lies in the allocation.
constexpr int64_t kMostWhole = int64_t{1} << 16;  // Of a longer range parts are looked at:
constexpr int64_t kEnd = 4096;                    // both ends,
constexpr int64_t kMiddle = 1024;                 // and so many bytes
constexpr int64_t kMiddles = 14;                  // at so many places between them.
constexpr int64_t kProof = 16;  // As many bytes are as they were only if nothing wrote them.

using PatternBytes = std::array<std::byte, kMostWhole>;

// Bytes that nobody writes; they live as long as the process, because a copy may read them late.
const PatternBytes& random_bytes(uint32_t seed) {
  static auto* const patterns = [] {
    auto* made = new std::array<PatternBytes, 3>();
    std::mt19937_64 draw(7);
    for (PatternBytes& each : *made) {
      for (std::byte& byte : each) byte = static_cast<std::byte>(draw() >> 32);
    }
    return made;
  }();
  return (*patterns)[seed];
}
const PatternBytes& unwritten() { return random_bytes(0); }
const PatternBytes& unwritten_on_host() { return random_bytes(2); }
const PatternBytes& unread() { return random_bytes(1); }

std::vector<std::byte> not_read(int64_t bytes) {
  std::vector<std::byte> made(static_cast<size_t>(bytes));
  for (size_t i = 0; i < made.size(); ++i) made[i] = unread()[i % unread().size()];
  return made;
}

// Whether no copy has come. A few bytes may be equal by chance.
bool is_unread(const std::vector<std::byte>& seen) {
  return std::ssize(seen) >= kProof / 2 && seen == not_read(std::ssize(seen));
}

Status read(Device& device, uint32_t queue, std::vector<std::byte>& to, const MemoryAddress& from) {
  return device.copy(queue, MemoryAddress::of_host(to.data()), from, std::ssize(to));
}

MemoryAddress moved(MemoryAddress place, int64_t by) {
  if (place.on_host()) return MemoryAddress::of_host(place.host + by);
  place.offset += by;
  return place;
}

std::string end_of(const CheckedRange& range) {
  return range.place.on_host() ? std::string("the host")
                               : fmt::format("{} of memory {}", range.offset(), range.place.memory);
}

}  // namespace

void WorkCheck::add_windows(size_t range, bool around, bool painted) {
  const int64_t bytes = ranges_[range].bytes;
  const int64_t beside = around && !ranges_[range].place.on_host() ? kAround : 0;
  const auto add = [&](int64_t begin, int64_t size, int64_t lead, int64_t trail) {
    if (size + lead + trail > 0)
      windows_.push_back({range, begin, size, lead, trail, painted, {}, {}, {}});
  };
  if (bytes <= kMostWhole) return add(0, bytes, beside, beside);
  add(0, kEnd, beside, 0);
  const int64_t step = (bytes - 2 * kEnd) / kMiddles;
  for (int64_t i = 0; i < kMiddles; ++i) add(kEnd + i * step + (step - kMiddle) / 2, kMiddle, 0, 0);
  add(bytes - kEnd, kEnd, 0, beside);
}

void WorkCheck::add_result(CheckedRange range, std::string_view noun, size_t number,
                           const MemoryAddress& host, bool around, bool painted) {
  range.name = fmt::format("{} {} at {} of memory {}", noun, number, host.offset, host.memory);
  ranges_.push_back(std::move(range));
  add_windows(ranges_.size() - 1, around, painted);
}

MemoryAddress WorkCheck::place_of(const SeenBytes& window) const {
  return moved(ranges_[window.range].place, window.begin);
}

WorkCheck WorkCheck::of_copy(const CheckedRange& to, const CheckedRange& from, bool around) {
  WorkCheck check;
  check.what_ = fmt::format("a copy of {} bytes from {} to {}", to.bytes, end_of(from), end_of(to));
  check.ranges_ = {to};
  check.source_ = from;
  check.add_windows(0, around, true);
  for (SeenBytes& each : check.windows_) {
    each.expected = not_read(each.bytes);
    if (!from.place.on_host()) continue;
    std::memcpy(each.expected.data(), from.place.host + each.begin, each.expected.size());
  }
  return check;
}

WorkCheck WorkCheck::of_box(const HostAndInner& to, const HostAndInner& from, const Box& box,
                            bool around) {
  const auto checked_range = [&](const HostAndInner& place, const Dims& strides) {
    const TouchedBytes touched = range_of(0, box, strides);
    CheckedRange range = CheckedRange::of(place.host, place.inner, touched.end - touched.begin);
    range.place = moved(range.place, touched.begin);
    return std::pair(range, -touched.begin);
  };
  const auto [destination, to_first] = checked_range(to, box.destination_strides);
  const auto [source, from_first] = checked_range(from, box.source_strides);
  WorkCheck check;
  if (std::max(destination.bytes, source.bytes) > kMostWhole || destination.bytes == 0)
    return check;
  check.what_ = fmt::format("a copy of a box of {} from {} to {}", fmt::join(box.sizes, "x"),
                            end_of(source), end_of(destination));
  check.ranges_ = {destination};
  check.source_ = source;
  check.box_ = {box, to_first, from_first, around && !destination.place.on_host()};
  check.add_windows(0, around, false);
  check.windows_.front().expected = not_read(source.bytes);
  if (source.place.on_host()) {
    check.windows_.front().expected = check.of_source(from.host);
  }
  return check;
}

// The bytes of the box's elements on the host, as they lie there.
std::vector<std::byte> WorkCheck::of_source(const MemoryAddress& host) const {
  Box in_place = box_->box;
  in_place.destination_strides = in_place.source_strides;
  std::vector<std::byte> bytes = not_read(source_->bytes);
  copy_box(bytes.data() + box_->from, host.host, in_place);
  return bytes;
}

WorkCheck WorkCheck::of_fill(const CheckedRange& to, std::span<const std::byte> pattern,
                             bool around) {
  WorkCheck check;
  check.what_ = fmt::format("a fill of {} bytes at {}", to.bytes, end_of(to));
  check.ranges_ = {to};
  check.add_windows(0, around, true);
  for (SeenBytes& each : check.windows_) {
    for (int64_t i = 0; i < each.bytes; ++i) {
      each.expected.push_back(pattern[static_cast<size_t>(each.begin + i) % pattern.size()]);
    }
  }
  return check;
}

// A buffer that a kernel writes whole is painted: it is not read (K2).
WorkCheck WorkCheck::of_launch(const LoadedKernel& kernel, std::span<const MemoryAddress> host,
                               std::span<const MemoryAddress> inner, bool around) {
  WorkCheck check;
  check.what_ = "@" + kernel.name;
  check.is_launch_ = true;
  for (size_t i = 0; i < inner.size(); ++i) {
    const BufferUse& buffer = kernel.buffers[i];
    if (!buffer.writes || buffer.bytes == 0) continue;
    check.add_result(CheckedRange::of(host[i], inner[i], buffer.bytes), "buffer", i, host[i],
                     around, buffer.whole);
  }
  return check;
}

WorkCheck WorkCheck::of_call(const LibraryCallLaunch& host, const LibraryCallLaunch& inner,
                             const PlannedCall& sizes, bool around) {
  WorkCheck check;
  check.what_ = fmt::format("the call {}", host.label == nullptr ? "" : host.label);
  check.is_launch_ = true;
  const auto is_operand = [&](const MemoryAddress& result, int64_t bytes) {
    for (size_t i = 0; i < host.operands.size() && i < sizes.operands.size(); ++i) {
      const MemoryAddress& operand = host.operands[i];
      if (operand.memory == result.memory && operand.offset < result.offset + bytes &&
          result.offset < operand.offset + sizes.operands[i]) {
        return true;
      }
    }
    return false;
  };
  for (size_t i = 0; i < host.results.size() && i < sizes.results.size(); ++i) {
    const MemoryAddress& place = host.results[i];
    const int64_t bytes = sizes.results[i];
    if (bytes == 0 || place.on_host()) continue;
    check.add_result(CheckedRange::of(place, inner.results[i], bytes), "result", i, place, around,
                     !is_operand(place, bytes));
  }
  // It is written too, and may lie beside a result.
  if (sizes.workspace > 0 && !host.workspace.on_host()) {
    check.ranges_.push_back(CheckedRange::of(host.workspace, inner.workspace, sizes.workspace));
  }
  return check;
}

bool WorkCheck::touches(std::span<const std::byte> host) const {
  const std::less<const std::byte*> before;
  return std::ranges::any_of(ranges_, [&](const CheckedRange& each) {
    const std::byte* const begin = each.place.host;
    return each.place.on_host() && before(begin, host.data() + host.size()) &&
           before(host.data(), begin + each.bytes);
  });
}

Status WorkCheck::before(Device& device, uint32_t queue) {
  for (SeenBytes& each : windows_) {
    const MemoryAddress place = place_of(each);
    if (place.on_host()) {
      const std::byte* const paint = unwritten_on_host().data();
      if (box_) {
        Box in_place = box_->box;
        in_place.source_strides = in_place.destination_strides;
        copy_box(place.host + box_->to, paint + box_->to, in_place);
      } else {
        std::memcpy(place.host, paint, static_cast<size_t>(each.bytes));
      }
      each.before.assign(unwritten_on_host().begin(), unwritten_on_host().begin() + each.bytes);
      continue;
    }
    if (each.painted && each.bytes > 0) {
      TENON_TRY(device.copy(queue, place, MemoryAddress::of_host(unwritten().data()), each.bytes));
    }
    each.before = not_read(each.lead + each.bytes + each.trail);
    TENON_TRY(read(device, queue, each.before, moved(place, -each.lead)));
    if (source_ && !source_->place.on_host()) {
      TENON_TRY(read(device, queue, each.expected, moved(source_->place, each.begin)));
    }
  }
  return {};
}

Status WorkCheck::behind(Device& device, uint32_t queue) {
  for (SeenBytes& each : windows_) {
    const MemoryAddress place = place_of(each);
    if (place.on_host()) {
      TENON_TRY(read(device, queue, each.expected, moved(source_->place, each.begin)));
      continue;
    }
    each.after = not_read(each.lead + each.bytes + each.trail);
    TENON_TRY(read(device, queue, each.after, moved(place, -each.lead)));
  }
  return {};
}

std::vector<std::byte> WorkCheck::expected_of(const SeenBytes& window) const {
  if (!box_) return window.expected;
  std::vector<std::byte> bytes(window.before.begin() + window.lead,
                               window.before.begin() + window.lead + window.bytes);
  copy_box(bytes.data() + box_->to, window.expected.data() + box_->from, box_->box);
  return bytes;
}

// The bytes of the window that the work writes, or that nothing may write.
std::vector<bool> WorkCheck::looked_at(const SeenBytes& window) const {
  const auto size = static_cast<size_t>(window.bytes);
  if (!box_ || box_->gaps) return std::vector<bool>(size, true);
  Box in_place = box_->box;
  in_place.source_strides = in_place.destination_strides;
  std::vector<std::byte> written(size);
  const std::vector<std::byte> ones(size, std::byte{1});
  copy_box(written.data() + box_->to, ones.data() + box_->to, in_place);
  std::vector<bool> seen;
  for (const std::byte each : written) seen.push_back(each != std::byte{0});
  return seen;
}

// Whether the work may write the byte, which is counted from the window's lead on.
bool WorkCheck::is_written(const SeenBytes& window, int64_t at) const {
  const CheckedRange& own = ranges_[window.range];
  const int64_t offset = own.place.offset + window.begin - window.lead + at;
  return std::ranges::any_of(ranges_, [&](const CheckedRange& each) {
    return each.place.memory == own.place.memory && offset >= each.place.offset &&
           offset < each.place.offset + each.bytes;
  });
}

// The first bytes beside the destination that have changed.
std::optional<std::string> WorkCheck::beside(const SeenBytes& window) const {
  const CheckedRange& own = ranges_[window.range];
  int64_t first = -1;
  int64_t count = 0;
  for (int64_t i = 0; i < std::ssize(window.after); ++i) {
    const auto at = static_cast<size_t>(i);
    if (window.before[at] == window.after[at] || is_written(window, i)) continue;
    if (first < 0) first = i;
    ++count;
  }
  if (first < 0) return std::nullopt;
  const int64_t in_range = window.begin - window.lead + first;
  const std::string where = in_range < 0
                                ? fmt::format("{} bytes before its begin", -in_range)
                                : fmt::format("{} bytes behind its end", in_range - own.bytes);
  return fmt::format(
      "{} bytes were written out of bounds, the first at {} of {}, which has {} bytes: {}", count,
      in_range, own.name.empty() ? "its destination" : own.name, own.bytes, where);
}

// The fault in the bytes of the destination; empty if there is none.
std::string WorkCheck::fault_in(const SeenBytes& window) const {
  const CheckedRange& range = ranges_[window.range];
  const std::byte* const before = window.before.data() + window.lead;
  const std::byte* const now =
      range.place.on_host() ? place_of(window).host : window.after.data() + window.lead;
  const std::vector<std::byte> expected = expected_of(window);
  const std::vector<bool> seen = looked_at(window);
  int64_t first = -1;
  int64_t bytes = 0;
  int64_t wrong = 0;
  int64_t unchanged = 0;
  int64_t left = 0;       // Unchanged, from the first wrong one on.
  int64_t rewritten = 0;  // Wrong, and other than before.
  int64_t run = 0;
  int64_t longest = 0;
  for (int64_t i = 0; i < window.bytes; ++i) {
    const auto at = static_cast<size_t>(i);
    if (!seen[at]) continue;
    ++bytes;
    const bool same = now[i] == before[i];
    run = same ? run + 1 : 0;
    longest = std::max(longest, run);
    unchanged += same ? 1 : 0;
    const bool is_wrong = is_launch_ ? same : now[i] != expected[at];
    if (is_wrong && first < 0) first = i;
    left += first >= 0 && same ? 1 : 0;
    if (!is_wrong) continue;
    ++wrong;
    rewritten += same ? 0 : 1;
  }
  const int64_t proof = std::min(window.bytes, kProof);
  if (wrong == 0 || (is_launch_ && (longest < proof || proof < kProof / 2))) return "";
  const std::string which = window.bytes == range.bytes                 ? ""
                            : window.begin == 0                         ? "its first "
                            : window.begin + window.bytes < range.bytes ? "the "
                                                                        : "its last ";
  const std::string_view middle = which == "the " ? " looked at" : "";
  const std::string counts =
      fmt::format("of {}{} bytes{} {} are {}, the first at offset {}", which, bytes, middle,
                  rewritten == 0 ? left : wrong, rewritten == 0 ? "as they were" : "wrong",
                  window.begin + first);
  const std::string in = range.name.empty() ? "" : " to " + range.name;
  if (unchanged == bytes && window.begin == 0)
    return fmt::format("wrote nothing{} ({})", in, counts);
  if (rewritten == 0) return fmt::format("wrote only a part{} ({})", in, counts);
  return fmt::format("wrote other bytes{} ({})", in, counts);
}

Status WorkCheck::verdict_of(const SeenBytes& window) const {
  const bool is_to_host = ranges_[window.range].place.on_host();
  if (is_to_host && is_unread(window.expected)) {  // As it is, all copies to the host do nothing.
    return rule_violation("B20", "{} and another one of the same bytes wrote nothing", what_);
  }
  if (is_unread(window.before) || is_unread(window.after) || is_unread(window.expected)) {
    return rule_violation("B20", "copies to the host, of the bytes around {}, wrote nothing",
                          what_);
  }
  const bool is_known = !is_launch_ || window.painted;
  const std::string fault = is_known && window.bytes > 0 ? fault_in(window) : "";
  const std::optional<std::string> out = beside(window);
  const std::string_view rule = is_launch_ ? "B21" : "B20";
  if (fault.starts_with("wrote nothing") && out) {
    return rule_violation(rule, "{} went to a wrong place: {}; it {}", what_, *out, fault);
  }
  if (!fault.empty()) return rule_violation(rule, "{} {}", what_, fault);
  if (out) return rule_violation(rule, "{}: {}", what_, *out);
  return {};
}

Status WorkCheck::verdict() const {
  Status status;
  for (const SeenBytes& each : windows_) {
    status = verdict_of(each);
    if (!status.ok()) break;
  }
  return status;
}

}  // namespace tenon::backend
