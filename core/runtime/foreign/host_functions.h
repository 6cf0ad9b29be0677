// core/runtime/foreign/: functions of the host that Programs call by name.
//
// HostFunctions: the registry. A custom call whose name is registered is a host step: the runtime
// gives the function the arrays in host memory, and waits for it. Where the host sees the device's
// memory, operands are given as they lie; others are copied to the host. Where it writes that
// memory, results are computed there; others are copied to the device.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/program/foreign_call.h"

namespace tenon::runtime {

/// An array of a call: dense, in the function's order of dimensions (ForeignArray). A token has no
/// bytes. Bytes begin at a multiple of the element's size, those of results at one of 64.
struct HostOperand {
  Shape shape;
  std::span<const std::byte> bytes;
  bool is_token = false;
};
struct HostResult {
  Shape shape;
  std::span<std::byte> bytes;
  bool is_token = false;
};

/// The execution that a call belongs to.
struct HostCallOrigin {
  int64_t execution = 0;          ///< The same for all calls of one execution.
  const void* context = nullptr;  ///< ExecuteOptions::context.
};

/// One call, valid until it returns. An operand that is aliased with a result has its bytes.
struct HostCallFrame {
  std::span<const HostOperand> operands;
  std::span<const HostResult> results;
  int64_t device = 0;  ///< The number of the device in its client.
  HostCallOrigin origin;
};

/// A function, prepared for one step of a Program: runs it. An error ends the execution.
///
/// Called on the device's worker, several at once for devices of one Executable. It must not wait
/// for work of the same device.
using HostCall = std::function<Status(const HostCallFrame& frame)>;

/// Prepares a step when its Program is loaded. Errors: attributes or arrays that the function does
/// not take.
using HostFunction = std::function<Result<HostCall>(const program::CustomCall& call,
                                                    const program::ForeignCall& foreign)>;

/// Host functions by the target names of custom calls.
using HostFunctionTable = std::map<std::string, HostFunction, std::less<>>;

/// Functions by name and platform: different frameworks may mean different functions by a name.
///
/// Thread-safety: everything, from any thread.
class HostFunctions {
 public:
  /// The registry of this process.
  static HostFunctions& instance();

  /// Errors: kAlreadyExists, for a name that has a function already.
  Status add(std::string_view platform, std::string_view name, HostFunction function);
  /// The functions of a platform as they are now.
  HostFunctionTable of(std::string_view platform) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, HostFunctionTable, std::less<>> platforms_;
};

}  // namespace tenon::runtime
