#include "hlo/compile/interp.h"

#include "hlo/evaluator/process.h"
#include "hlo/evaluator/run_parallel.h"
#include "hlo/import/import.h"
#include "hlo/text/parser.h"

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
      } else {
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

// The results of a function, where tokens stand for nothing.
std::vector<EvalValue> with_tokens(const std::vector<Type>& types, std::vector<EvalValue> arrays) {
  std::vector<EvalValue> values;
  auto next = arrays.begin();
  for (const Type& type : types) {
    values.push_back(type.is_token() ? EvalValue{} : std::move(*next++));
  }
  return values;
}

// The device as one process sees it.
class Interp {
 public:
  Interp(const Checks& checks, const InterpOptions& options, Evaluator* host)
      : checks_(checks), options_(options), host_(host) {}

  Result<std::vector<Literal>> run(const Module& module, std::span<const Literal> arguments,
                                   const std::string& entry) {
    LowerOptions lower = options_.lower;
    lower.entry = entry;
    if (options_.legal_form) {
      lower.limits.fma = options_.legal_form->fma;
      lower.limits.private_memory = options_.legal_form->private_memory;
    }
    TENON_ASSIGN(const program::Program program, compile_to_program(module, lower));
    return run(program, arguments);
  }

  Result<std::vector<Literal>> run(const program::Program& program,
                                   std::span<const Literal> arguments) {
    program::ProgramInterpreter interpreter(program);
    install_checks(interpreter, checks_);
    if (options_.legal_form) interpreter.set_legal_form(*options_.legal_form);
    interpreter.set_custom_call(
        std::string(kHostTarget),
        [this](const program::Step&, const program::CustomCall& call,
               const std::vector<Literal>& operands,
               const std::vector<Shape>&) { return host_step(call, operands); });
    return interpreter.run(arguments, options_.interpreter);
  }

 private:
  // What the host does is evaluated; functions that it starts as processes run on this device.
  Result<std::vector<Literal>> host_step(const program::CustomCall& call,
                                         const std::vector<Literal>& operands) {
    const program::ConfigValue* value = program::find(call.config, "module");
    const auto* text = value ? std::get_if<std::string>(value) : nullptr;
    if (text == nullptr) return internal_error("custom call @{} without a module", call.target);
    TENON_ASSIGN(const std::unique_ptr<Module> module, import_module(*text, "host"));
    Evaluator evaluator(*module);
    install_checks(evaluator, checks_);
    install_run_parallel(evaluator);
    if (host_ != nullptr) evaluator.set_process(host_->process());
    evaluator.set_process_runner(
        [this](Evaluator& process, const Computation& function,
               const std::vector<EvalValue>& arguments) -> Result<std::vector<EvalValue>> {
          const std::vector<Literal> literals = literals_of(arguments);
          TENON_ASSIGN(
              const std::vector<Literal> results,
              Interp(checks_, options_, &process).run(process.module(), literals, function.name()));
          return with_tokens(function.result_types(), values_of(results));
        });
    const Computation* function = module->find_function(kHostFunction);
    if (function == nullptr) {
      return invalid_argument("custom call @{}: its module has no @{}", call.target, kHostFunction);
    }
    TENON_ASSIGN(std::vector<Literal> results, evaluator.run(*function, operands));
    for (const auto& written : evaluator.outfeed()) {
      if (host_ != nullptr) host_->write_outfeed(written);
    }
    return results;
  }

  const Checks& checks_;
  const InterpOptions& options_;
  Evaluator* host_;
};

}  // namespace

void install_checks(program::ProgramInterpreter& interpreter, const Checks& checks) {
  for (const std::string_view target : Checks::targets()) {
    interpreter.set_custom_call(
        std::string(target),
        [checks](const program::Step&, const program::CustomCall& call,
                 const std::vector<Literal>& operands, const std::vector<Shape>& results) {
          return checks.call(call.target, dict_of(call.config), operands, results, {});
        });
  }
}

Result<std::vector<Literal>> run_on_interp(const Module& module, std::span<const Literal> arguments,
                                           const Checks& checks, const InterpOptions& options) {
  return Interp(checks, options, nullptr).run(module, arguments, options.lower.entry);
}

Result<std::vector<Literal>> run_on_interp(const program::Program& program,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           const InterpOptions& options) {
  return Interp(checks, options, nullptr).run(program, arguments);
}

}  // namespace tenon::hlo
