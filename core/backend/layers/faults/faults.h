// core/backend/layers/faults/: the layer `faults`: makes calls fail by a plan.
//
// A plan lists the faults:
//
//   launch@3            the 3rd launch fails
//   copy@2 lost@9       the 2nd copy fails; from the 9th call of any kind on the device is lost
//   launch%20           one launch in 20 fails, drawn by the seed
//   event@4             the 4th event is done with an error
//   delay%10            one call in 10 is delayed, by up to a millisecond
//   seed=7
//
// Kinds: open, compile, plan, load, allocate, import, copy, launch, record, wait, event, lost,
// delay. The words of a plan are separated by spaces or commas; calls are counted per process, over
// all devices.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/backend/backend.h"

namespace tenon::backend {

enum class FaultKind : uint8_t {
  kOpen,
  kCompile,
  kPlan,
  kLoad,
  kAllocate,
  kImport,
  kCopy,
  kLaunch,
  kRecord,
  kWait,
  kEvent,
  kLost,
  kDelay,
};
inline constexpr size_t kFaultKinds = static_cast<size_t>(FaultKind::kDelay) + 1;
std::string_view name_of(FaultKind kind);

struct FaultPlan {
  /// By kind: the number of the call that fails, counted from 1; 0: no call.
  std::array<int64_t, kFaultKinds> nth = {};
  /// By kind: one call in this many fails; 0: no call.
  std::array<int64_t, kFaultKinds> one_in = {};
  uint64_t seed = 0;

  /// Errors: an unknown word; the message lists the known ones.
  static Result<FaultPlan> parse(std::string_view text);
};

/// Reports the faults so far.
class FaultCounts {
 public:
  virtual ~FaultCounts() = default;
  virtual int64_t calls(FaultKind kind) const = 0;
  virtual int64_t faults(FaultKind kind) const = 0;
};

struct FaultsLayer {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<const FaultCounts> counts;
};

FaultsLayer make_faults_layer(std::shared_ptr<Backend> inner, const FaultPlan& plan);

}  // namespace tenon::backend
