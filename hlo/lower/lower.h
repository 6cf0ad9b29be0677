// hlo/lower/: lowers a Module of primitive ops to a Program.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "core/program/program.h"
#include "hlo/ir/instruction.h"
#include "hlo/lower/lower_op.h"

namespace tenon::hlo {

/// Whether a backend takes a library call on arrays of these shapes; `label` is that of its step,
/// or of the steps that do the same.
using TakesCall = std::function<bool(const program::LibraryCall&, std::span<const Shape> operands,
                                     std::span<const Shape> results, std::string_view label)>;

struct LowerOptions {
  /// Function to lower; empty means the Module's entry.
  std::string entry;
  lower::TuningParameters tuning;
  lower::LowerLimits limits;
  /// Called for each op that is a library call; null means that the backend takes none. The steps
  /// that do the same stay beside each call.
  TakesCall takes_call;
  /// The fallback level of kernels that the backend declined, by the label of their step: from
  /// level 1 on they get less and less scratch memory, then no private memory; at kPerOpLevel a
  /// fusion is split into its ops.
  std::map<std::string, int, std::less<>> fallback_levels;
  static constexpr int kPerOpLevel = 4;
};

/// Target of the custom calls that stand for ops of the host (communication, infeed …): "module" in
/// their configuration is HLO text, whose function named by "function" is to be evaluated on the
/// operands. A program's own calls cannot have it.
inline constexpr std::string_view kHostTarget = "tenon.host";

/// Whether the caller gives the memory of a parameter away: it carries tf.aliasing_output or
/// jax.buffer_donor.
bool is_donated(const Computation& function, size_t parameter);

/// The Program of a function of `module`, on which lowering_passes() have been run. Buffers are
/// placed, dependencies found; it has been validated. Arrays lie dense and row-major; tokens have
/// no memory, nor do parameters and results of that type appear: steps with effects stay in order.
/// Errors name the op and its place.
Result<program::Program> lower_module(const Module& module, const LowerOptions& options = {});

}  // namespace tenon::hlo
