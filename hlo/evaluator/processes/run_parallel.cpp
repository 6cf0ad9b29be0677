#include "hlo/evaluator/processes/run_parallel.h"

#include <iostream>
#include <mutex>

#include "hlo/evaluator/processes/process.h"

namespace tenon::hlo {
namespace {

using ValueList = std::vector<EvalValue>;

// The caller's progress function, which need not be thread-safe, called by one thread at a time.
std::function<bool(int64_t)> serialized(std::function<bool(int64_t)> progress) {
  if (!progress) return progress;
  struct Shared {
    std::mutex mutex;
    std::function<bool(int64_t)> progress;
  };
  auto shared = std::make_shared<Shared>();
  shared->progress = std::move(progress);
  return [shared](int64_t executed) {
    const std::lock_guard lock(shared->mutex);
    return shared->progress(executed);
  };
}

Result<GridExtent> extent_of(const std::vector<std::vector<ProcessProgram>>& programs) {
  GridExtent extent{static_cast<int64_t>(programs.size()), 0};
  if (!programs.empty()) extent.partitions = static_cast<int64_t>(programs[0].size());
  for (const auto& row : programs) {
    if (static_cast<int64_t>(row.size()) != extent.partitions) {
      return invalid_argument("programs of {} partitions for one replica and {} for another",
                              extent.partitions, row.size());
    }
  }
  if (extent.replicas == 0 || extent.partitions == 0) return invalid_argument("no programs to run");
  if (extent.partitions > kMaxProcesses / extent.replicas) {
    return resource_exhausted("a grid of {} x {} has more than {} processes", extent.replicas,
                              extent.partitions, kMaxProcesses);
  }
  return extent;
}

// --- interpreter.run_parallel

Result<const Computation*> function_of(const Evaluator& evaluator, const Attribute& attribute) {
  const auto* symbol = attribute.get<SymbolAttr>();
  if (symbol == nullptr) return invalid_argument("programs and infeed are lists of functions");
  const Computation* function = evaluator.module().find_function(symbol->name);
  if (function == nullptr || function->is_declaration()) {
    return not_found("function @{} is not defined", symbol->name);
  }
  return function;
}

// The next operands as arguments of `function`.
Result<ValueList> take_arguments(const Computation& function, const Instruction& op,
                                 const ValueList& operands, size_t& next) {
  ValueList arguments;
  for (size_t i = 0; i < function.parameter_count(); ++i, ++next) {
    const Type& type = function.parameter(i).type();
    if (next >= operands.size()) {
      return invalid_argument("{} operands, expected more for @{}", operands.size(),
                              function.name());
    }
    if (!compatible(type, op.operand_type(next))) {
      return invalid_argument("operand {} is {}, expected {} as argument {} of @{}", next,
                              op.operand_type(next).to_string(), type.to_string(), i,
                              function.name());
    }
    arguments.push_back(operands[next]);
  }
  return arguments;
}

Result<std::vector<std::vector<ProcessProgram>>> programs_of(const Evaluator& evaluator,
                                                             const Instruction& op,
                                                             const Attribute* attribute,
                                                             const ValueList& operands) {
  const auto* rows = attribute ? attribute->get<ArrayAttr>() : nullptr;
  if (rows == nullptr) return invalid_argument("expected programs = [[@f, …], …]");
  std::vector<std::vector<ProcessProgram>> programs;
  std::vector<Type> results;
  size_t next = 0;
  for (const Attribute& row : *rows) {
    const auto* names = row.get<ArrayAttr>();
    if (names == nullptr) return invalid_argument("expected programs = [[@f, …], …]");
    programs.emplace_back();
    for (const Attribute& name : *names) {
      TENON_ASSIGN(const Computation* function, function_of(evaluator, name));
      TENON_ASSIGN(ValueList arguments, take_arguments(*function, op, operands, next));
      programs.back().push_back({function, std::move(arguments)});
      for (const Type& type : function->result_types()) results.push_back(type);
    }
  }
  if (next != operands.size()) {
    return invalid_argument("{} operands, expected {}, the arguments of all programs",
                            operands.size(), next);
  }
  bool fits = results.size() == op.result_count();
  for (size_t i = 0; fits && i < results.size(); ++i) {
    fits = compatible(results[i], op.result_type(i));
  }
  if (!fits) {
    return invalid_argument("results are {}, expected {}, those of all programs",
                            types_to_string(op.result_types()), types_to_string(results));
  }
  return programs;
}

Evaluator::Values run_parallel(Evaluator& evaluator, const Instruction& op,
                               const ValueList& operands) {
  // A grid within a grid would let a short program start any number of threads.
  if (evaluator.process() != nullptr) {
    return invalid_argument("called by a process of interpreter.run_parallel");
  }
  static const Dict kNone;
  const auto* given = op.attr<Dict>(AttrKey::backend_config);
  const Dict& config = given ? *given : kNone;
  TENON_ASSIGN(const auto programs, programs_of(evaluator, op, find(config, "programs"), operands));
  std::vector<ValueList> infeed;
  if (const Attribute* attribute = find(config, "infeed")) {
    const auto* names = attribute->get<ArrayAttr>();
    if (names == nullptr) return invalid_argument("expected infeed = [@f, …]");
    for (const Attribute& name : *names) {
      TENON_ASSIGN(const Computation* function, function_of(evaluator, name));
      TENON_ASSIGN(ValueList data, evaluator.run(*function, ValueList{}));
      infeed.push_back(std::move(data));
    }
  }
  TENON_ASSIGN(std::vector<ProcessOutcome> outcomes,
               run_processes(evaluator, programs, std::move(infeed)));
  ValueList results;
  for (ProcessOutcome& outcome : outcomes) {
    for (EvalValue& value : outcome.results) results.push_back(std::move(value));
    for (ValueList& values : outcome.outfeed) evaluator.write_outfeed(std::move(values));
  }
  return results;
}

}  // namespace

Result<std::vector<ProcessOutcome>> run_processes(
    const Evaluator& model, const std::vector<std::vector<ProcessProgram>>& programs,
    std::vector<std::vector<EvalValue>> infeed) {
  TENON_ASSIGN(const GridExtent extent, extent_of(programs));
  EvaluatorOptions options = model.options();
  options.progress = serialized(std::move(options.progress));
  std::vector<ProcessOutcome> outcomes(static_cast<size_t>(extent.process_count()));
  ProcessGrid grid(extent, std::move(infeed));
  TENON_TRY(grid.run([&](Process& process) -> Status {
    const ProcessId id = process.id();
    const ProcessProgram& program =
        programs[static_cast<size_t>(id.replica)][static_cast<size_t>(id.partition)];
    Evaluator evaluator(model.module(), options);
    evaluator.set_custom_calls(model);
    evaluator.set_process(&process);
    TENON_ASSIGN(ValueList results, evaluator.run_process(*program.function, program.arguments));
    // No two processes share an element of `outcomes`.
    ProcessOutcome& outcome =
        outcomes[static_cast<size_t>(id.replica * extent.partitions + id.partition)];
    outcome.results = std::move(results);
    outcome.outfeed = evaluator.outfeed();
    return {};
  }));
  return outcomes;
}

void install_run_parallel(Evaluator& evaluator, std::ostream& out) {
  evaluator.set_custom_call(
      "interpreter.run_parallel",
      [](Evaluator& e, const Instruction& op, const ValueList& operands) -> Evaluator::Values {
        auto results = run_parallel(e, op, operands);
        if (!results) {
          return Error(std::move(results.error()).with_context("interpreter.run_parallel"));
        }
        return results;
      });
  const auto mutex = std::make_shared<std::mutex>();
  evaluator.set_custom_call(
      "interpreter.print",
      [mutex, &out](Evaluator&, const Instruction& op,
                    const ValueList& operands) -> Evaluator::Values {
        if (operands.size() != 1 || operands[0].tensor == nullptr) {
          return invalid_argument("custom_call @interpreter.print: expected one array");
        }
        const std::string text = fmt::format("{} {}\n", op.operand_type(0).to_mlir(),
                                             literal_from_tensor(*operands[0]).to_string());
        const std::lock_guard lock(*mutex);
        out << text << std::flush;
        return ValueList{};
      });
}

void install_run_parallel(Evaluator& evaluator) { install_run_parallel(evaluator, std::cout); }

}  // namespace tenon::hlo
