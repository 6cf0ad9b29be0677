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

/// An op that is a library call, offered to a backend.
struct CallOffer {
  const program::LibraryCall& call;
  std::span<const Shape> operands;
  std::span<const Shape> results;
  /// For each operand, whether it is one of the Program's constants.
  const std::vector<bool>& constant;
  uint32_t op = 0;                  ///< Its steps' Step::op.
  program::SequenceId lowered = 0;  ///< LibraryCallStep::lowered of its step, if it is taken.
};
/// Whether the backend takes the call. Errors are those of lowering.
using TakesCall = std::function<Result<bool>(const CallOffer& offer)>;

struct LowerOptions {
  /// Function to lower; empty means the Module's entry.
  std::string entry;
  lower::TuningParameters tuning;
  lower::LowerLimits limits;
  /// Asked once for each op that is a library call; null means that the backend takes none. The
  /// steps that do the same stay beside each call.
  TakesCall takes_call;
  /// The fallback level of ops whose kernels the backend declined, by Step::op: from level 1 on
  /// they get less and less scratch memory, then no private memory; at kPerOpLevel a fusion is
  /// split into its ops.
  std::map<uint32_t, int> fallback_levels;
  static constexpr int kPerOpLevel = 4;
  /// If not null, it is asked for the kernels of an op first, and gets those that it had not: for
  /// lowering a Module once more with other fallback levels.
  lower::LoweringCache* cache = nullptr;
};

/// Target of the custom calls that stand for ops of the host (communication, infeed …): "module" in
/// their configuration is HLO text, whose function named by "function" is to be evaluated on the
/// operands. A program's own calls cannot have it.
inline constexpr std::string_view kHostTarget = "tenon.host";

/// Whether the caller gives the memory of a parameter away: it carries tf.aliasing_output or
/// jax.buffer_donor.
bool is_donated(const Computation& function, size_t parameter);

/// The Program of a function of `module`, on which lowering_passes() have been run. Buffers are
/// placed, dependencies found; it has been validated, its kernels verified. Step::op is the op's
/// place in a walk of the function, an op before those in its regions: it is the same whenever the
/// same Module is lowered. Arrays lie dense and row-major; tokens have
/// no memory, nor do parameters and results of that type appear: steps with effects stay in order.
/// Errors name the op and its place.
Result<program::Program> lower_module(const Module& module, const LowerOptions& options = {});

}  // namespace tenon::hlo
