// Kernels on arrays of 1,000 integers with their results, for checks of the interface.
#pragma once

#include <vector>

#include "conformance/cases/interface/seam_device.h"

namespace tenon::conformance::seam_checks {

inline constexpr const char* kAddOne =
    "kernel @add_one(%x: in s32[1000], %y: out s32[1000]) index s32 grid(%i: 10) {\n"
    "  lanes(%j: 100) {\n    %b = mul %i, 100 : s32\n    %k = add %b, %j : s32\n"
    "    %a = load %x[%k] : s32\n    %c = add %a, 1 : s32\n    store %c, %y[%k] : s32\n  }\n}\n";
inline constexpr const char* kDouble =
    "kernel @double(%x: in s32[1000], %y: out s32[1000]) index s32 grid(%i: 10) {\n"
    "  lanes(%j: 100) {\n    %b = mul %i, 100 : s32\n    %k = add %b, %j : s32\n"
    "    %a = load %x[%k] : s32\n    %c = add %a, %a : s32\n    store %c, %y[%k] : s32\n  }\n}\n";
// Some 10 ms of work on a simulator.
inline constexpr const char* kSlow =
    "kernel @slow(%x: in s32[1000], %y: out s32[1000]) index s32 grid(%i: 10) {\n"
    "  lanes(%j: 100) {\n    %b = mul %i, 100 : s32\n    %k = add %b, %j : s32\n"
    "    %a = load %x[%k] : s32\n"
    "    %r = for %t = (0, 200, 1) carry(%s = %a) : s32 {\n"
    "      %m = mul %s, 3 : s32\n      %n = add %m, 1 : s32\n      yield %n\n    }\n"
    "    store %r, %y[%k] : s32\n  }\n}\n";
inline constexpr int64_t kCount = 1000;
inline constexpr int64_t kBytes = 4 * kCount;

/// The contents of an array of the kernels above.
using Numbers = std::vector<int32_t>;

inline std::span<const std::byte> bytes_of(const Numbers& numbers) {
  return std::as_bytes(std::span(numbers));
}
inline Numbers counting(int32_t first = 0) {
  Numbers numbers(kCount);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + static_cast<int32_t>(i);
  return numbers;
}
inline Numbers mapped(Numbers numbers, int32_t (*f)(int32_t)) {
  for (int32_t& each : numbers) each = f(each);
  return numbers;
}
inline int32_t slow_function(int32_t x) {
  auto y = static_cast<uint32_t>(x);
  for (int t = 0; t < 200; ++t) y = 3 * y + 1;
  return static_cast<int32_t>(y);
}

// Two arrays of the device, the first of which has the numbers.
struct DeviceArrays {
  backend::MemoryHandle x = 0;
  backend::MemoryHandle y = 0;
};
inline Result<DeviceArrays> arrays(SeamDevice& d, const Numbers& numbers) {
  DeviceArrays made;
  TENON_ASSIGN(made.x, d.allocate(kBytes));
  TENON_ASSIGN(made.y, d.allocate(kBytes));
  TENON_TRY(d.upload({made.x}, bytes_of(numbers)));
  TENON_TRY(d.upload({made.y}, Bytes(kBytes, std::byte{0x5A})));
  return made;
}

}  // namespace tenon::conformance::seam_checks
