// TargetInfo: the description of a device, as data. The C++ form of TenonTargetInfo, member for
// member (plugin.h defines them).
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/legalize/legalize.h"

namespace tenon::backend {

enum class SpaceKind : uint8_t { kDevice, kPinnedHost };

struct SpaceInfo {
  SpaceKind kind = SpaceKind::kDevice;
  bool reachable = true;
  bool host_visible = false;
  int64_t bytes = 0;
  int64_t alignment = 64;
  bool host_writable = false;
};

struct MathInfo {
  std::string function;
  ElementType type{};
  double ulp = 0;
};

/// A tuning parameter that a vendor sets.
struct TuningValue {
  std::string name;
  int64_t value = 0;
  bool operator==(const TuningValue&) const = default;
};

struct TargetInfo {
  std::string name;
  std::string compiler_id;
  /// It accepts kernels without legalisation, of any type and with every statement; `features` is
  /// not used.
  bool accepts_all = false;
  /// The features for which kernels are legalised. `features.math` is set if the caller allows
  /// native math functions and `math` lists them.
  kernel::TargetFeatures features;
  /// Float types whose denormals are flushed to zero.
  kernel::ElementTypes flushed;
  std::vector<MathInfo> math;
  int64_t compute_units = 1;
  int64_t preferred_lanes = 1;
  int64_t most_lanes = 0;
  int64_t vector_bytes = 0;
  int64_t scratch_bytes = 48 << 10;  ///< 0: none (in plugin.h: TENON_NO_SCRATCH).
  int64_t private_bytes = 0;
  int64_t most_parameters = 0;
  int64_t largest_buffer = 0;
  std::vector<SpaceInfo> spaces = std::vector<SpaceInfo>(1);
  uint32_t queues = 1;
  double flops = 0;
  double bytes_per_second = 0;
  double launch_seconds = 0;
  std::vector<TuningValue> tuning;
  int64_t narrow_products = 0;
  bool byte_products = false;
};

/// The form of kernels that the target takes, for legalize(): `features`, without scratch memory if
/// the target has no bytes of it.
inline kernel::TargetFeatures features_of(const TargetInfo& target) {
  kernel::TargetFeatures features = target.features;
  features.scratch = features.scratch && target.scratch_bytes > 0;
  return features;
}

/// Reads lines "name = value"; '#' begins a comment. Errors name the line.
Result<std::vector<TuningValue>> parse_tuning(std::string_view text);
/// Writes the same lines.
std::string to_string(const std::vector<TuningValue>& tuning);

/// OK, or an error that names a member which no device can have: no space, an alignment that is not
/// a power of two, …
Status check(const TargetInfo& target);

/// One line for each member that differs from its default; used by `tenon devices --verbose`, in
/// the key of cached binaries, and as the file of a target (`tenon devices --target`).
std::string to_string(const TargetInfo& target);
/// Reads the same lines; '#' begins a line of comment. The target is checked. Errors name the line.
Result<TargetInfo> parse_target(std::string_view text);

}  // namespace tenon::backend
