// core/runtime/execution/: how an execution runs.
//
// StepRunner: one execution of a Program on a device, step by step, on the device's worker. Used
// only by executable.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/base/inline_vector.h"
#include "core/runtime/executable.h"
#include "core/runtime/execution/inline_policy.h"

namespace tenon::runtime {

/// A call of a function of the host.
struct PreparedCall {
  program::ForeignCall foreign;
  HostCall run;
};

/// The parts of an executable that its steps use.
struct LoadedProgram {
  std::shared_ptr<Device> device;
  CompiledProgram compiled;
  CustomCalls calls;
  HostFunctionTable functions;
  std::map<const program::CustomCall*, PreparedCall> host_calls;  ///< By the steps of `compiled`.
  backend::ModuleHandle module = 0;
  /// For each kernel that is placed on the device, its index in the module.
  std::vector<uint32_t> module_index;
  struct LoadedSegment {
    program::StepRange range;
    std::vector<program::MemoryRef> memories;
    backend::ModuleHandle module = 0;
    std::string label;
    program::StepCounts steps;
  };
  std::map<std::pair<program::SequenceId, uint32_t>, LoadedSegment>
      segments;  ///< By their first steps.
  std::vector<BufferStorage> constants;
  /// Packed forms of constants, by LibraryCallStep::lowered and operand.
  std::map<std::pair<program::SequenceId, size_t>, BufferStorage> packed;
  /// Constants and their packed forms.
  std::vector<Event> constants_defined;
  WorkMarks constants_definers;  ///< The work that writes the constants.
  int64_t workspace_bytes = 0;   ///< The maximum over all calls.
  int64_t workspace_offset = 0;  ///< After the temporaries.
  /// For each result, the donated parameter with which it is aliased, or kNone: the first steps
  /// copy the parameter to the result, and no other step reads the parameter.
  std::vector<uint32_t> aliased_parameters;
  /// For each parameter, whether the Program takes its memory.
  std::vector<bool> donated;
  /// Whether it must not run on undefined inputs.
  bool needs_inputs = false;
  InlinePolicy inline_policy;
  std::vector<Shape> parameters;
  std::vector<Shape> results;
  std::vector<std::shared_ptr<const Shape>> result_shapes;  ///< The same, for their buffers.
  std::vector<MemoryLabel> result_labels;                   ///< Labels of their memory.
  MemoryLabel temporaries_label;
};

/// Memory of one execution.
struct ExecutionMemory {
  explicit ExecutionMemory(const LoadedProgram& loaded)
      : parameters(loaded.parameters.size()), results(loaded.results.size()) {}
  /// Gives all memory back.
  void clear() {
    parameters->clear();
    results->clear();
    temporaries = {};
  }

  InlineVector<BufferStorage, 4> parameters;
  InlineVector<BufferStorage, 2> results;
  BufferStorage temporaries;
};

/// The same error, with the label of the step that it is of.
Status with_label(const Status& status, const std::string& label);

class StepRunner {
 public:
  /// `stop` ends loops of the host when it is raised; `steps` counts the steps that have begun.
  StepRunner(const LoadedProgram& loaded, const ExecutionMemory& frame,
             const std::atomic<uint32_t>* stop, program::StepCounts& steps, StepObserver* observer,
             HostCallOrigin origin = {})
      : loaded_(loaded),
        program_(loaded.compiled.program),
        memory_(frame),
        stop_(stop),
        steps_(steps),
        observer_(observer),
        origin_(origin) {}

  /// Gives the work of all steps to the queue. Waits where a step needs a value from the device (a
  /// loop's predicate, a host step). Errors carry the step's label.
  Status run() { return sequence(0); }

 private:
  Status sequence(program::SequenceId id);
  Status segment(const LoadedProgram::LoadedSegment& segment);
  Status step(const program::Step& step);
  Status act(const program::Step& step, const program::Launch& launch);
  Status act(const program::Step& step, const program::Copy& copy);
  Status act(const program::Step& step, const program::While& loop);
  Status act(const program::Step& step, const program::Conditional& conditional);
  Status act(const program::Step& step, const program::CustomCall& call);
  Status act(const program::Step& step, const program::LibraryCallStep& call);
  Status on_device(const program::Step& step, const program::LibraryCallStep& call,
                   const backend::LibraryCallPlan& plan);
  Status on_host(const program::Step& step, const program::Launch& launch);
  Status by_handler(const program::Step& step, const program::CustomCall& call,
                    const program::CustomCallHandler& handler);
  Status by_function(const program::CustomCall& call, const PreparedCall& prepared);

  const volatile uint32_t* stop_word() const;
  backend::MemoryAddress place(program::BufferId id) const;
  backend::MemoryAddress memory(const program::MemoryRef& ref) const;
  Status fetch(program::BufferId id, std::span<std::byte> to);
  Status put(program::BufferId id, std::span<const std::byte> from);
  Result<Literal> read(program::BufferId id);
  const BufferStorage& storage_of(const program::MemoryRef& ref) const;
  const std::byte* host_view(program::BufferId id) const;
  std::byte* writable_host_view(program::BufferId id) const;

  const LoadedProgram& loaded_;
  const program::Program& program_;
  const ExecutionMemory& memory_;
  const std::atomic<uint32_t>* stop_;
  program::StepCounts& steps_;
  StepObserver* const observer_;
  const HostCallOrigin origin_;
};

}  // namespace tenon::runtime
