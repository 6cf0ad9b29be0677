#include "hlo/driver/host_calls.h"

#include <atomic>

#include "hlo/evaluator/processes/process.h"
#include "hlo/evaluator/processes/run_parallel.h"
#include "hlo/import/import.h"
#include "hlo/lower/lower.h"

namespace tenon::hlo {
namespace {

Dict dict_of(const program::Config& config) {
  Dict dict;
  for (const auto& [key, value] : config) {
    const std::string& name = key;
    const auto add = [&](const auto& v) {
      using V = std::decay_t<decltype(v)>;
      if constexpr (std::is_same_v<V, double>) {
        insert(dict, name, FloatAttr::of(ElementType::kF64, v));
      } else if constexpr (!std::is_same_v<V, Literal>) {  // Checks take no arrays.
        insert(dict, name, v);
      }
    };
    std::visit(add, value);
  }
  return dict;
}

std::vector<EvalValue> values_of(const std::vector<Literal>& literals) {
  std::vector<EvalValue> values;
  for (const Literal& literal : literals) {
    values.push_back(EvalValue::of(tensor_from_literal(literal, false)));
  }
  return values;
}

std::vector<Literal> literals_of(const std::vector<EvalValue>& values) {
  std::vector<Literal> literals;
  for (const EvalValue& value : values) {
    if (value.tensor != nullptr) literals.push_back(literal_from_tensor(*value));
  }
  return literals;
}

// Adds tokens, which are values without contents, to the arrays that a function returns.
std::vector<EvalValue> with_tokens(const std::vector<Type>& types, std::vector<EvalValue> arrays) {
  std::vector<EvalValue> values;
  auto next = arrays.begin();
  for (const Type& type : types) {
    values.push_back(type.is_token() ? EvalValue{} : std::move(*next++));
  }
  return values;
}

const std::string* text_of(const program::CustomCall& call, std::string_view key) {
  const program::ConfigValue* value = program::find(call.config, key);
  return value ? std::get_if<std::string>(value) : nullptr;
}

std::atomic<int64_t> modules_parsed = 0;

}  // namespace

int64_t HostSteps::parsed() { return modules_parsed; }

Result<HostSteps> HostSteps::prepare(const program::Program& program) {
  HostSteps steps;
  for (const program::Sequence& sequence : program.sequences) {
    for (const program::Step& step : sequence.steps) {
      const auto* call = std::get_if<program::CustomCall>(&step.action);
      if (call == nullptr || call->target != kHostTarget) continue;
      const std::string* const text = text_of(*call, "module");
      const std::string* const name = text_of(*call, "function");
      if (text == nullptr || name == nullptr) {
        return internal_error("custom call @{} without a module and its function", call->target);
      }
      auto found = steps.modules_.find(*text);
      if (found == steps.modules_.end()) {
        ++modules_parsed;
        TENON_ASSIGN(std::shared_ptr<const Module> module, import_module(*text, "host"));
        found = steps.modules_.emplace(*text, std::move(module)).first;
      }
      if (found->second->find_function(*name) == nullptr) {
        return invalid_argument("custom call @{}: its module has no @{}", call->target, *name);
      }
    }
  }
  return steps;
}

// The evaluator runs host ops; functions that these start as processes run on devices.
Result<std::vector<Literal>> HostSteps::run(const program::CustomCall& call,
                                            const std::vector<Literal>& operands,
                                            const Checks& checks, Evaluator* process,
                                            const RunProcess& run_process) const {
  const std::string* const text = text_of(call, "module");
  const std::string* const name = text_of(call, "function");
  const auto found = text == nullptr ? modules_.end() : modules_.find(*text);
  if (found == modules_.end() || name == nullptr) {
    return internal_error("custom call @{} is not one of the program's", call.target);
  }
  const Module& module = *found->second;
  Evaluator evaluator(module);
  install_checks(evaluator, checks);
  install_run_parallel(evaluator);
  if (process != nullptr) evaluator.set_process(process->process());
  evaluator.set_process_runner(
      [&](Evaluator& started, const Computation& function,
          const std::vector<EvalValue>& arguments) -> Result<std::vector<EvalValue>> {
        const std::vector<Literal> literals = literals_of(arguments);
        TENON_ASSIGN(const std::vector<Literal> results,
                     run_process(started.module(), literals, function.name(), &started));
        return with_tokens(function.result_types(), values_of(results));
      });
  TENON_ASSIGN(std::vector<Literal> results, evaluator.run(*module.find_function(*name), operands));
  for (const auto& written : evaluator.outfeed()) {
    if (process != nullptr) process->write_outfeed(written);
  }
  return results;
}

Result<std::vector<Literal>> run_check(const program::CustomCall& call,
                                       const std::vector<Literal>& operands,
                                       const std::vector<Shape>& results, const Checks& checks) {
  return checks.call(call.target, dict_of(call.config), operands, results, {});
}

Result<std::map<std::string, program::CustomCallHandler>> host_calls(
    const program::Program& program, const Checks& checks, Evaluator* process,
    const RunProcess& run_process) {
  TENON_ASSIGN(HostSteps of_program, HostSteps::prepare(program));
  const auto steps = std::make_shared<const HostSteps>(std::move(of_program));
  std::map<std::string, program::CustomCallHandler> calls;
  for (const std::string_view target : Checks::targets()) {
    calls[std::string(target)] = [checks](const program::Step&, const program::CustomCall& call,
                                          const std::vector<Literal>& operands,
                                          const std::vector<Shape>& results) {
      return run_check(call, operands, results, checks);
    };
  }
  calls[std::string(kHostTarget)] = [steps, checks, process, run_process](
                                        const program::Step&, const program::CustomCall& call,
                                        const std::vector<Literal>& operands,
                                        const std::vector<Shape>&) {
    return steps->run(call, operands, checks, process, run_process);
  };
  return calls;
}

}  // namespace tenon::hlo
