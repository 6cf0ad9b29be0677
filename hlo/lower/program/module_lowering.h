// hlo/lower/program/: the walk over a Module that makes buffers, kernels and steps.
//
// The state of lowering one Module: values and their buffers. See lower.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/lower/lower.h"
#include "hlo/lower/value_key.h"

namespace tenon::hlo::lower {

/// The shape of an array of this type in memory.
inline Shape memory_shape(const Type& type) { return {type.element_type(), type.dims()}; }
/// An error of kUnimplemented that names the op and its location.
Status unsupported(const Instruction& op, std::string why);

/// module_lowering.cpp: buffers, and the walk over instructions; module_steps.cpp: the steps of
/// each.
class ModuleLowering {
 public:
  ModuleLowering(const Module& module, const LowerOptions& options)
      : module_(module), options_(options), tuning_(options.tuning) {}

  Result<program::Program> run(const Computation& entry);

 private:
  using BufferId = program::BufferId;
  using SequenceId = program::SequenceId;

  /// The location of a value: a buffer, or (for a tuple) those of its elements; nothing for a
  /// token.
  struct ValueLocation {
    BufferId buffer = program::kNone;
    std::vector<ValueLocation> elements;
    /// Appends the buffers of all arrays in it.
    void append_buffers(std::vector<BufferId>& out) const {
      if (buffer != program::kNone) out.push_back(buffer);
      for (const ValueLocation& element : elements) element.append_buffers(out);
    }
  };
  using Key = ValueKey;

  void number(const Computation& computation);
  const Computation* decomposition_of(const Instruction& op);
  uint32_t number_of(const Instruction& op) const;
  Status check_sizes(const Computation& computation) const;
  Status parameters(const Computation& entry);
  Status results(const Computation& entry);
  /// Lowers the instructions of `computation` into `sequence`, up to its return.
  Status fusion(const Instruction& op);
  Status instructions(const Computation& computation);
  Status instruction(const Instruction& op);
  int fallback_level(const Instruction& op) const;
  LowerLimits limits_for(const Instruction& op) const;
  Result<LoweredOp> lowered(const Instruction& op);
  Result<std::optional<program::LibraryCallStep>> taken_call(const Instruction& op);
  /// Whether the backend takes an op of the fusion by a library call.
  Result<bool> takes_inner(const Instruction& fusion, const Instruction& op) const;
  /// By a library call that the backend takes, or by kernels.
  Status compute(const Instruction& op);
  Status composite(const Instruction& op);
  Status inlined(const Instruction& op, const Computation& body);
  Status kernels(const Instruction& op);
  /// Launches kernels that write their results to these buffers.
  Status launches(const Instruction& op, LoweredOp lowered, const std::vector<BufferId>& results);
  Status custom_call(const Instruction& op);
  Status claimed_or_host(const Instruction& op, program::CustomCall call);
  Status call_step(const Instruction& op, const std::vector<Value>& operands,
                   program::CustomCall call);
  /// An op that the host runs: communication, and calls that run functions of the Module.
  Status host_step(const Instruction& op);
  bool in_one_kernel(const Instruction& op);
  Status control(const Instruction& op);
  Status while_loop(const Instruction& op);
  Status conditional(const Instruction& op);
  Status advance(const Computation& body, const std::vector<BufferId>& state);

  ValueLocation& place(Value value) { return places_[{value.def, value.index}]; }
  /// The buffer of an array. A constant gets one on its first use. A splat has no buffer of its
  /// own: a kernel stores it at each place that reads it.
  Result<BufferId> buffer_of(Value value);
  /// The same, also for tuples and tokens.
  Result<ValueLocation> place_of(Value value);
  /// Whether a constant is a splat that a kernel stores where it is read.
  bool is_filled(const Instruction& op) const;
  /// Whether buffer_of would return a constant of the Program.
  bool is_constant(Value value);
  BufferId new_buffer(const Shape& shape);
  /// New buffers for an op's results, which must be arrays.
  std::vector<BufferId> result_buffers(const Instruction& op);
  BufferId add_buffer(program::Buffer buffer);
  BufferId add_constant(const Literal& literal);
  BufferId view(BufferId of, const Type& type);
  uint32_t add_kernel(kernel::Kernel kernel);
  void add_step(decltype(program::Step::action) action, const Instruction& op);
  void copy(BufferId destination, BufferId source, const Instruction& op);
  /// Begins a sequence; steps are added to it until `leave`.
  SequenceId enter();
  void leave() { open_.pop_back(); }

  const Module& module_;
  const LowerOptions& options_;
  TuningParameters tuning_;
  program::Program program_;
  std::unordered_map<Key, ValueLocation, ValueKeyHash> places_;
  std::vector<SequenceId> open_;
  std::unordered_map<std::string, uint32_t> kernels_;         // by text without name and label
  std::unordered_map<const Instruction*, uint32_t> numbers_;  // Step::op
  std::map<std::string, int> names_;
};

}  // namespace tenon::hlo::lower
