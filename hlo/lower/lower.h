// hlo/lower/: lowers a Module of primitive ops to a Program.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "core/program/program.h"
#include "hlo/ir/instruction.h"
#include "hlo/lower/lower_op.h"

namespace tenon::hlo {

namespace lower {
class LoweringCache;
}

/// An op that is a library call, as it is offered to a backend.
struct CallOffer {
  const program::LibraryCall& call;
  std::span<const Shape> operands;
  std::span<const Shape> results;
  /// For each operand, whether it is one of the Program's constants.
  const std::vector<bool>& constant;
  uint32_t op = 0;  ///< Step::op of its steps.
  /// LibraryCallStep::lowered of its step, if the backend takes it.
  program::SequenceId lowered = 0;
};
/// Whether the backend takes the call. Errors are errors of lowering.
using TakesCall = std::function<Result<bool>(const CallOffer& offer)>;

struct LowerOptions {
  /// The function to lower; empty means the Module's entry.
  std::string entry;
  lower::TuningParameters tuning;
  lower::LowerLimits limits;
  /// Called once for each op that is a library call; null means that the backend takes none. Each
  /// call keeps the lowered steps with the same result.
  TakesCall takes_call;
  /// The fallback levels of ops whose kernels the backend declined, by Step::op: from level 1 on
  /// their kernels get less and less scratch memory, then no private memory; at kPerOpLevel a
  /// fusion is split into its ops.
  std::map<uint32_t, int> fallback_levels;
  static constexpr int kPerOpLevel = 4;
  /// If not null, kernels of ops are taken from the cache, and missing ones are added to it: for
  /// lowering a Module again with other fallback levels.
  lower::LoweringCache* cache = nullptr;
};

/// The target of custom calls that represent host ops (communication, infeed …): "module" in their
/// configuration is HLO text, and the function in it with the name "function" is evaluated on the
/// operands. A program's own calls cannot have this target.
inline constexpr std::string_view kHostTarget = "tenon.host";

/// Whether the caller donates the memory of a parameter: the parameter has tf.aliasing_output or
/// jax.buffer_donor.
bool is_donated(const Computation& function, size_t parameter);

/// The Program of a function of `module`, on which lowering_passes() must have run. Its buffers
/// have memory and its steps dependencies; it is validated, and its kernels are verified. Step::op
/// is the op's number in a walk of the function (an op precedes those in its regions): it is the
/// same whenever the same Module is lowered. Arrays are dense and row-major. Tokens have no memory,
/// and parameters and results of token type are omitted: steps with effects keep their order.
/// Errors name the op and its location.
Result<program::Program> lower_module(const Module& module, const LowerOptions& options = {});

}  // namespace tenon::hlo
