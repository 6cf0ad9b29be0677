#include "core/program/interpreter.h"

#include <cstring>
#include <new>
#include <stdexcept>

namespace tenon::program {

class ProgramInterpreter::Run {
 public:
  Run(ProgramInterpreter& owner, const Memories& memories,
      const kernel::InterpreterOptions& options)
      : owner_(owner), program_(owner.program_), memories_(memories), options_(options) {}

  Status run() { return sequence(0); }

 private:
  std::span<std::byte> memory(BufferId id) {
    const Buffer& b = program_.buffer(program_.root(id));
    const auto bytes = static_cast<size_t>(b.bytes());
    switch (b.kind) {
      case BufferKind::kParameter:
        return {memories_.parameters[b.index], bytes};
      case BufferKind::kConstant:
        return {memories_.constants[b.index], bytes};
      case BufferKind::kResult:
        return {memories_.results[b.index], bytes};
      case BufferKind::kTemporary:
        break;
    }
    return {memories_.temporaries + b.offset, bytes};
  }

  Literal read(BufferId id) {
    const Buffer& b = program_.buffer(id);
    Literal literal(Shape(b.type, b.dims));
    const auto from = memory(id);
    if (!from.empty()) std::memcpy(literal.mutable_data().data(), from.data(), from.size());
    return literal;
  }

  Status sequence(SequenceId id) {
    for (const Step& step : program_.sequences[id].steps) {
      if (options_.cancelled && options_.cancelled()) {
        return Status(ErrorCode::kCancelled, "the run was cancelled");
      }
      Status status =
          std::visit([&](const auto& action) { return run(step, action); }, step.action);
      if (!status.ok()) return status;
    }
    return {};
  }

  Result<std::unique_ptr<kernel::Interpreter>> make_interpreter(const kernel::Kernel& kernel) {
    if (!owner_.features_) return std::make_unique<kernel::Interpreter>(kernel);
    TENON_ASSIGN(const kernel::Kernel legal, kernel::legalize(kernel, *owner_.features_));
    return std::make_unique<kernel::Interpreter>(legal);
  }

  Status run(const Step& step, const Launch& launch) {
    auto& interpreter = owner_.kernels_[launch.kernel];
    if (interpreter == nullptr) {
      TENON_ASSIGN(interpreter, make_interpreter(program_.kernels[launch.kernel]));
    }
    std::vector<kernel::BufferArgument> buffers;
    for (const BufferId id : launch.buffers) {
      const auto bytes = memory(id);
      buffers.push_back({bytes.data(), bytes.size()});
    }
    if (owner_.observer_) owner_.observer_(launch, buffers);
    ++owner_.steps_.kernels;
    Status status = interpreter->run(buffers, launch.scalars, options_);
    if (status.ok() || step.label.empty()) return status;
    return Status(status.code(),
                  fmt::format("{} (in the kernel of {})", status.message(), step.label))
        .at(status.position());
  }

  Status run(const Step&, const Copy& copy) {
    const auto to = memory(copy.destination);
    const auto from = memory(copy.source);
    if (!to.empty()) std::memmove(to.data(), from.data(), to.size());
    return {};
  }

  Status run(const Step&, const While& loop) {
    while (true) {
      TENON_TRY(sequence(loop.condition));
      if ((memory(loop.predicate)[0] & std::byte{1}) == std::byte{0}) return {};
      TENON_TRY(sequence(loop.body));
    }
  }

  Status run(const Step&, const Conditional& conditional) {
    const Literal index = read(conditional.index);
    const int64_t number = index.get_integer(0);
    const auto count = static_cast<int64_t>(conditional.branches.size());
    int64_t chosen = number < 0 || number >= count ? count - 1 : number;
    if (index.element_type() == ElementType::kPred) chosen = number != 0 ? 0 : 1;
    return sequence(conditional.branches[static_cast<size_t>(chosen)]);
  }

  Status run(const Step&, const LibraryCallStep& call) { return sequence(call.lowered); }

  Status run(const Step& step, const CustomCall& call) {
    const auto handler = owner_.handlers_.find(call.target);
    if (handler == owner_.handlers_.end()) {
      return Status(unimplemented("stablehlo.custom_call: target @{} is unknown to this device",
                                  call.target));
    }
    std::vector<Literal> operands;
    for (const BufferId id : call.operands) operands.push_back(read(id));
    std::vector<Shape> shapes;
    for (const BufferId id : call.results) {
      shapes.emplace_back(program_.buffer(id).type, program_.buffer(id).dims);
    }
    ++owner_.steps_.host;
    TENON_ASSIGN(const std::vector<Literal> results, handler->second(step, call, operands, shapes));
    if (results.size() != call.results.size()) {
      return Status(internal_error("custom call @{} gave {} results, expected {}", call.target,
                                   results.size(), call.results.size()));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const auto to = memory(call.results[i]);
      if (to.size() != results[i].data().size()) {
        return Status(internal_error("custom call @{}: result {} is {}", call.target, i,
                                     results[i].shape().to_string()));
      }
      if (!to.empty()) std::memcpy(to.data(), results[i].data().data(), to.size());
    }
    return {};
  }

  ProgramInterpreter& owner_;
  const Program& program_;
  const Memories& memories_;
  const kernel::InterpreterOptions& options_;
};

ProgramInterpreter::ProgramInterpreter(const Program& program)
    : program_(program), kernels_(program.kernels.size()) {}
ProgramInterpreter::~ProgramInterpreter() = default;

Result<std::vector<Literal>> ProgramInterpreter::run(std::span<const Literal> arguments,
                                                     const kernel::InterpreterOptions& options) {
  if (arguments.size() != program_.parameters.size()) {
    return invalid_argument("program {}: {} arguments, expected {}", program_.name,
                            arguments.size(), program_.parameters.size());
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Buffer& b = program_.buffer(program_.parameters[i]);
    if (!(arguments[i].shape() == Shape(b.type, b.dims))) {
      return invalid_argument("program {}: argument {} is {}, expected {}", program_.name, i,
                              arguments[i].shape().to_string(), Shape(b.type, b.dims).to_string());
    }
  }
  // Kernels only read memory that they declare as an input.
  const auto readable = [](const Literal& literal) {
    return const_cast<std::byte*>(literal.data().data());
  };
  // A size may come from a file: one that does not fit is an error, not a crash.
  try {
    Memories memories;
    for (const Literal& each : arguments) memories.parameters.push_back(readable(each));
    for (const Literal& each : program_.constants) memories.constants.push_back(readable(each));
    std::vector<Literal> results;
    for (const BufferId id : program_.results) {
      const Buffer& b = program_.buffer(id);
      results.emplace_back(Shape(b.type, b.dims));
    }
    for (Literal& each : results) memories.results.push_back(each.mutable_data().data());
    std::vector<std::byte> temporaries(static_cast<size_t>(program_.temporary_bytes));
    memories.temporaries = temporaries.data();
    TENON_TRY(run_in(memories, options));
    return results;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("program {}: there is not enough memory for it", program_.name);
  } catch (const std::length_error&) {
    return resource_exhausted("program {}: it needs more memory than there can be", program_.name);
  }
}

Status ProgramInterpreter::run_in(const Memories& memories,
                                  const kernel::InterpreterOptions& options) {
  return Run(*this, memories, options).run();
}

}  // namespace tenon::program
