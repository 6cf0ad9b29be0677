#include "conformance/cases/programs/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "conformance/cases/program_maker.h"
#include "conformance/compare/differential.h"
#include "conformance/generate/inputs.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "hlo/builder/builder.h"
#include "hlo/evaluator/checks.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

namespace fs = std::filesystem;
using hlo::AttrKey;
using hlo::Instruction;
using hlo::OpCode;

// --- Files and parts

Result<std::vector<std::string>> parts_of(const std::string& path) {
  TENON_ASSIGN(const std::string bytes, read_file(path));
  std::vector<std::string> parts(1);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    if (rest.substr(0, end).starts_with("// -----")) {
      parts.emplace_back();
    } else {
      parts.back() += rest.substr(0, end);
    }
    rest.remove_prefix(end);
  }
  // @main of a dynamic program has no sizes before it is called.
  std::erase_if(parts, [](const std::string& part) {
    const size_t head = part.find("@main(");
    const size_t end = part.find('{', head);
    return head != std::string::npos &&
           part.substr(head, end - head).find('?') != std::string::npos;
  });
  std::erase_if(
      parts, [](const std::string& part) { return part.find("func.func") == std::string::npos; });
  return parts;
}

Result<std::vector<std::string>> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->is_regular_file() && at->path().extension() == ".mlir")
      files.push_back(fs::relative(at->path(), folder).string());
  }
  if (error) return not_found("{}: {}", folder, error.message());
  std::ranges::sort(files);
  return files;
}

// --- Checks on the host

struct HostCheck {
  std::string target;
  hlo::Dict config;
  SourcePosition position;
  size_t first = 0;  // Of its operands, among the results of the program.
  size_t count = 0;
};

bool is_plain_check(std::string_view target) {
  return target == "check.expect_eq" || target == "check.expect_close" ||
         target == "check.expect_almost_eq" || target == "check.eq";
}

// Replaces the checks of @main by results; false if it has others than plain ones.
bool take_checks(hlo::Module& module, std::vector<HostCheck>& checks) {
  hlo::Computation& main = *module.entry();
  Instruction* const end = main.return_instruction();
  std::vector<hlo::Value> results = end->operands();
  std::vector<Instruction*> taken;
  for (Instruction& op : main) {
    if (op.code() != OpCode::kCustomCall) continue;
    const std::string target(op.text(AttrKey::call_target_name));
    if (!is_plain_check(target) || op.result_count() != 0) return false;
    HostCheck check{
        target, {}, hlo::position_of(op.location()), results.size(), op.operand_count()};
    if (const auto* config = op.attr<hlo::Dict>(AttrKey::backend_config)) check.config = *config;
    for (const hlo::Value operand : op.operands()) results.push_back(operand);
    checks.push_back(std::move(check));
    taken.push_back(&op);
  }
  for (Instruction* const op : taken) main.erase(op);
  std::vector<hlo::Type> types;
  for (const hlo::Value each : results) types.push_back(each.type());
  end->set_operands(results);
  main.set_declared_result_types(std::move(types));
  main.result_attributes().clear();
  return true;
}

// Adds to the results what an exact op makes of each, so that a device must compute with values
// that were only moved. Returns the number of results before.
size_t consume_results(hlo::Module& module) {
  hlo::Computation& main = *module.entry();
  Instruction* const end = main.return_instruction();
  std::vector<hlo::Value> results = end->operands();
  const size_t before = results.size();
  hlo::Builder builder(main, end);
  for (size_t i = 0; i < before; ++i) {
    if (!results[i].type().is_tensor() || results[i].type().is_quantized()) continue;
    const ElementType type = results[i].type().element_type();
    if (type == ElementType::kF8E8M0FNU) continue;
    const bool is_number = is_float(type) || is_complex(type);
    results.push_back(builder.unary(is_number ? OpCode::kNegate : OpCode::kNot, results[i]));
  }
  std::vector<hlo::Type> types;
  for (const hlo::Value each : results) types.push_back(each.type());
  end->set_operands(results);
  main.set_declared_result_types(std::move(types));
  return before;
}

// Makes the checks in turn. The bound of a file may be exceeded by the order of additions alone:
// `may_be_order` says that the first failure is one of floats.
Status make_checks(const std::vector<HostCheck>& checks, const std::vector<Literal>& results,
                   bool& may_be_order) {
  std::vector<hlo::CheckFailure> failures;
  int64_t count = 0;
  const hlo::Checks on_host(&failures, &count);
  for (const HostCheck& each : checks) {
    const std::vector<Literal> operands(
        results.begin() + static_cast<int64_t>(each.first),
        results.begin() + static_cast<int64_t>(each.first + each.count));
    TENON_TRY(on_host.call(each.target, each.config, operands, {}, each.position));
    if (failures.empty()) continue;
    const ElementType type = operands.front().element_type();
    may_be_order = is_float(type) || is_complex(type);
    return internal_error("{}", failures.front().text);
  }
  return {};
}

// --- One function of a part

// The outcome of one more function; the first failure stays, before what is not supported.
void add_outcome(CaseResult& sum, CaseResult one) {
  const program::StepCounts steps = one.steps;
  const auto rank = [](Outcome outcome) {
    const bool is_right = outcome == Outcome::kPass || outcome == Outcome::kNotRun;
    return is_right ? 0 : outcome == Outcome::kNotSupported ? 1 : 2;
  };
  if (rank(one.outcome) > rank(sum.outcome)) {
    const program::StepCounts before = sum.steps;
    sum = std::move(one);
    sum.steps = before;
  }
  if (sum.message.empty()) sum.message = std::move(one.message);
  sum.steps.kernels += steps.kernels;
  sum.steps.calls += steps.calls;
  sum.steps.host += steps.host;
}

CaseResult run_op_by_op(const WithInputs& given, CaseContext& context) {
  return run_program_case(
      [&](ValueClass, uint64_t) -> Result<CaseProgram> {
        CaseProgram made;
        TENON_ASSIGN(made.module, with_all_values_returned(*given.module));
        made.arguments = given.inputs;
        return made;
      },
      ValueClass::kOrdinary, context);
}

// Arguments for the parameters that the program has of its own, before those of its constants.
// Errors: kUnimplemented for a parameter that is no array of known size.
Status add_arguments(WithInputs& given, uint64_t seed) {
  const hlo::Computation& main = *given.module->entry();
  Random random(seed);
  std::vector<Literal> arguments;
  for (size_t i = 0; i + given.inputs.size() < main.parameter_count(); ++i) {
    const hlo::Type type = main.parameter(i).type();
    if (!type.is_tensor() || !type.shape().is_static())
      return unimplemented("@{} takes a value of {}", main.name(), type.to_string());
    arguments.push_back(random_values(type.shape(), ValueClass::kOrdinary, random));
  }
  given.inputs.insert(given.inputs.begin(), arguments.begin(), arguments.end());
  return {};
}

// A program that the evaluator refuses has no result that a device could be held to.
CaseResult unless_refused(CaseResult failed, const WithInputs& given) {
  const auto reference = make_evaluator_target()->run(*given.module, given.inputs);
  if (reference) return failed;
  CaseResult result = failed_run(reference.error());
  result.outcome = Outcome::kNotSupported;
  result.steps = failed.steps;
  return result;
}

CaseResult run_with_inputs(const WithInputs& given, CaseContext& context) {
  std::vector<HostCheck> checks;
  const bool is_plain = take_checks(*given.module, checks);
  if (is_plain && checks.empty()) return run_op_by_op(given, context);
  auto ran = context.target.run(*given.module, given.inputs);
  if (ran && is_plain && ran->steps.on_device() == 0) {
    consume_results(*given.module);
    ran = context.target.run(*given.module, given.inputs);
  }
  if (!ran) return failed_run(ran.error());
  bool may_be_order = false;
  Status status = is_plain ? make_checks(checks, ran->results, may_be_order) : Status();
  if (!ran->failed_checks.empty()) status = internal_error("{}", ran->failed_checks.front());
  if (!status.ok() && may_be_order) {
    CaseResult by_op = run_op_by_op(given, context);
    if (by_op.outcome == Outcome::kPass) {
      by_op.message = "each op is within its bound; " + status.message();
    } else {
      by_op.message += "; " + status.message();
    }
    return by_op;
  }
  CaseResult result = status.ok() ? CaseResult() : failed_run(status);
  result.steps = ran->steps;
  // The steps are judged over all functions of the part.
  const std::string declined = declined_step(ran->placement);
  if (status.ok() && !declined.empty())
    return with_steps_judged(std::move(result), context.target, declined);
  return result;
}

CaseResult run_entry(const hlo::Module& module, const std::string& entry, CaseContext& context) {
  auto given = inputs_as_arguments(module, entry);
  if (!given) return failed_run(given.error());
  if (Status status = add_arguments(*given, context.seed); !status.ok()) {
    CaseResult result = failed_run(status);
    result.outcome = Outcome::kNotRun;
    return result;
  }
  CaseResult result = run_with_inputs(*given, context);
  return result.outcome == Outcome::kFail ? unless_refused(std::move(result), *given) : result;
}

// A loop whose body gives the values that it was given: it ends at once or never.
bool changes_nothing(const Instruction& loop) {
  const hlo::Computation& body = loop.region(1);
  const std::vector<hlo::Value> next = body.return_instruction()->operands();
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i] != body.parameter(i)) return false;
  }
  return true;
}

// Whether the function may wait for ever, for other processes, the host or itself, or calls what
// only the authors of the file have.
bool cannot_run_alone(const hlo::Computation& function) {
  for (const Instruction& op : function) {
    if (op.code() == OpCode::kWhile && changes_nothing(op)) return true;
    if (op.info().category == hlo::Category::kCommunication &&
        (op.info().effects & hlo::kSideEffect) != 0) {
      return true;
    }
    if (op.code() == OpCode::kCustomCall &&
        !op.text(AttrKey::call_target_name).starts_with("check.")) {
      return true;
    }
    for (size_t i = 0; i < op.region_count(); ++i) {
      if (cannot_run_alone(op.region(i))) return true;
    }
  }
  return false;
}

// @main, or the functions of a list of test cases, but for those that cannot run alone.
std::vector<std::string> entries_of(const hlo::Module& module) {
  if (module.entry() != nullptr) return {std::string(module.entry()->name())};
  std::vector<std::string> entries;
  for (const auto& function : module.functions()) {
    if (!function->is_declaration() && !cannot_run_alone(*function)) {
      entries.emplace_back(function->name());
    }
  }
  return entries;
}

CaseResult run_part(const std::string& text, const std::string& name, CaseContext& context) {
  auto module = hlo::import_module(text, name);
  if (!module) {
    CaseResult result = failed_run(module.error());
    result.outcome = Outcome::kHarnessError;
    result.blame = Blame::kNone;
    return result;
  }
  CaseResult sum;
  for (const std::string& entry : entries_of(**module)) {
    add_outcome(sum, run_entry(**module, entry, context));
  }
  return sum.outcome == Outcome::kPass ? with_steps_judged(std::move(sum), context.target) : sum;
}

}  // namespace

Result<std::vector<ConformanceCase>> data_cases(const std::string& folder) {
  std::vector<ConformanceCase> cases;
  TENON_ASSIGN(const auto files, files_in(folder));
  for (const std::string& file : files) {
    TENON_ASSIGN(const auto parts, parts_of((fs::path(folder) / file).string()));
    for (size_t i = 0; i < parts.size(); ++i) {
      ConformanceCase one;
      const std::string stem = file.substr(0, file.size() - std::string_view(".mlir").size());
      one.name = fmt::format("data/{}/{}", stem, i);
      one.run = [part = parts[i], file](CaseContext& context) {
        return run_part(part, file, context);
      };
      cases.push_back(std::move(one));
    }
  }
  if (cases.empty()) return not_found("{}: no file *.mlir with a function", folder);
  return cases;
}

}  // namespace tenon::conformance
