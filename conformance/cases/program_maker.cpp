#include "conformance/cases/program_maker.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/compare/differential.h"
#include "conformance/compare/reducer.h"
#include "hlo/driver/interpreted.h"
#include "hlo/verify/verify.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;
using hlo::Type;
using hlo::Value;

// The error of a device that is gone, of one that takes too long, and of one that declines.
Outcome outcome_of(const Status& error) {
  if (error.code() == ErrorCode::kUnimplemented) return Outcome::kNotSupported;
  if (error.code() == ErrorCode::kUnavailable) return Outcome::kDeviceLost;
  if (error.code() == ErrorCode::kDeadlineExceeded) return Outcome::kTimeout;
  return Outcome::kFail;
}

// The component that computes `mismatch`: what the target's placement says of its op. An op that
// was decomposed is in no label: then all steps are to blame, if they are of one kind.
void set_blame(CaseResult& result, const Mismatch& mismatch,
               const std::vector<hlo::Placement>& placement) {
  result.arguments = mismatch.operands;
  if (mismatch.op == nullptr || placement.empty()) return;
  const auto named = std::ranges::find_if(placement, [&](const hlo::Placement& step) {
    return step.label.find(mismatch.op->name()) != std::string::npos;
  });
  const bool is_named = named != placement.end();
  const hlo::Placement& step = is_named ? *named : placement.front();
  const bool are_alike = std::ranges::all_of(
      placement, [&](const hlo::Placement& each) { return each.kind == step.kind; });
  if (!is_named && !are_alike) return;
  result.blame = step.kind == hlo::PlacementKind::kNative ? Blame::kNativeCall
                 : step.kind == hlo::PlacementKind::kHost ? Blame::kHost
                                                          : Blame::kKernel;
  if (!is_named && placement.size() > 1) return;
  result.step = step.kernel.empty() ? step.label : fmt::format("{} ({})", step.kernel, step.label);
}

std::optional<Mismatch> compare_by(Comparison how, const CaseProgram& program,
                                   const std::vector<Literal>& results, Ledger& ledger,
                                   Relaxation& relaxation) {
  const hlo::Module& module = program.compared ? *program.compared : *program.module;
  switch (how) {
    case Comparison::kEachOp:
      return compare_results(module, program.arguments, results, &ledger, &relaxation);
    case Comparison::kWhole:
      return compare_whole(module, program.arguments, results);
    case Comparison::kBits:
      return compare_bits(module, program.arguments, results);
  }
  return std::nullopt;
}

// The place of an op's result among those of @main, which returns it.
std::optional<size_t> place_in_results(const hlo::Module& module, const Mismatch& mismatch) {
  const hlo::Instruction& end = *module.entry()->return_instruction();
  for (size_t i = 0; i < end.operand_count(); ++i) {
    if (end.operand(i).def == mismatch.op && end.operand(i).index == mismatch.result) return i;
  }
  return std::nullopt;
}

// The kernel to blame with the interpreter's values; empty if it is not known.
std::string listing_of(const Failure& failure, Target& target) {
  const auto run = target.run(*failure.module, failure.arguments);
  if (!run) return {};
  const auto mismatch = compare_results(*failure.module, failure.arguments, run->results);
  if (!mismatch || mismatch->op == nullptr || mismatch->element < 0) return {};
  const auto place = place_in_results(*failure.module, *mismatch);
  const auto device = target.program_of(*failure.module);
  if (!place || !device) return {};
  return kernel_listing(*device, failure.arguments,
                        {*place, mismatch->element, run->results[*place]});
}

void explain_failure(CaseResult& result, CaseProgram program, CaseContext& context) {
  const Device device = [&](const hlo::Module& module,
                            const std::vector<Literal>& arguments) -> Result<std::vector<Literal>> {
    TENON_ASSIGN(TargetRun run, context.target.run(module, arguments));
    return std::move(run.results);
  };
  const Device interpreter = [](const hlo::Module& module, const std::vector<Literal>& arguments) {
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    return hlo::run_interpreted(module, arguments, hlo::Checks(&failures, &checks));
  };
  Failure failure{std::move(program.module), std::move(program.arguments), result.message};
  if (program.comparison != Comparison::kEachOp || program.compared != nullptr) {
    // Op by op, if one of them is wrong by itself; else it is what passes make of them together.
    auto all = with_all_values_returned(*failure.module);
    const auto mismatch = all ? compare(**all, failure.arguments, device) : std::nullopt;
    if (!mismatch) {
      result.reproducer = to_mlir(failure);
      return;
    }
    failure.module = *std::move(all);
    failure.text = mismatch->text;
    result.message += "; op by op: " + mismatch->text;
  }
  // Tenon lowers the program for targets of its own alone.
  if (context.target.counts_steps() && fault_of(failure, interpreter) == Fault::kLowering) {
    result.blame = Blame::kLowering;
  }
  if (context.reduce) {
    result.reproducer = to_mlir(failure);
    if (context.on_failure) context.on_failure(result);
    failure = reduce(std::move(failure), device);
  }
  result.reproducer = to_mlir(failure);
  if (result.blame == Blame::kKernel) result.listing = listing_of(failure, context.target);
}

}  // namespace

CaseResult failed_run(const Status& error) {
  CaseResult result;
  result.outcome = outcome_of(error);
  result.message = error.to_string();
  // A device that declines a program is not to blame.
  if (error.code() != ErrorCode::kUnimplemented) result.blame = Blame::kInterface;
  return result;
}

std::string declined_step(const std::vector<hlo::Placement>& placement) {
  const hlo::Placement* const step = hlo::first_declined(placement);
  return step == nullptr ? "" : fmt::format("{}: {}", step->label, step->reason);
}

CaseResult with_steps_judged(CaseResult result, const Target& target, const std::string& declined) {
  if (!declined.empty()) {
    result.outcome = Outcome::kNotSupported;
    result.message = "the device declined " + declined;
  } else if (target.counts_steps() && result.steps.on_device() == 0) {
    result.outcome = Outcome::kNotRun;
    result.message = "the device ran no step of the program";
  }
  return result;
}

ProgramMaker::ProgramMaker(ValueClass values, uint64_t seed) : values_(values), random_(seed) {
  made_.module = std::make_unique<hlo::Module>();
  made_.module->set_name("conformance");
  function_ = &made_.module->add_function("main");
  builder_ = std::make_unique<hlo::Builder>(*function_);
}

Value ProgramMaker::data(ElementType type, Dims dims) {
  return argument(random_values(Shape(type, std::move(dims)), values_, random_));
}

Value ProgramMaker::argument(Literal value) {
  const Value parameter =
      function_->add_parameter(Type::tensor(value.element_type(), value.shape().dims()));
  made_.arguments.push_back(std::move(value));
  return parameter;
}

Value ProgramMaker::integers(ElementType type, Dims dims, int64_t low, int64_t high) {
  return argument(random_integers(Shape(type, std::move(dims)), low, high, random_));
}

Value ProgramMaker::consume(Value x) {
  if (!x || !b().ok()) return x;
  const Type type = x.type();
  const ElementType element = type.element_type();
  Dims joined = type.dims();
  const auto empty = std::ranges::find(joined, 0);
  if (empty != joined.end()) {
    for (int64_t& size : joined) size = std::max<int64_t>(size, 1);
    const auto axis = static_cast<int64_t>(empty - joined.begin());
    // Only one dimension may differ.
    if (std::ranges::count(type.dims(), 0) == 1)
      x = b().concatenate({x, data(element, joined)}, axis);
  }
  if (is_pred(element) || is_integer(element)) return b().unary(OpCode::kNot, x);
  if (element == ElementType::kF8E8M0FNU)
    return b().convert(x, ElementType::kF32);  // It has no sign.
  return b().neg(x);
}

Result<CaseProgram> ProgramMaker::finish() {
  if (!b().ok()) return Error(b().status());
  std::vector<Value> results;
  std::vector<Type> types;
  for (hlo::Instruction& op : *function_) {
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      if (!op.result_type(r).is_tensor()) continue;
      results.push_back(op.result(r));
      types.push_back(op.result_type(r));
    }
  }
  function_->set_declared_result_types(std::move(types));
  TENON_TRY(b().finish(results));
  TENON_TRY(hlo::verify(*made_.module));
  return std::move(made_);
}

MakeProgram built_by(std::function<void(ProgramMaker&)> build) {
  return [build = std::move(build)](ValueClass values, uint64_t seed) {
    ProgramMaker maker(values, seed);
    build(maker);
    return maker.finish();
  };
}

CaseResult run_program_case(const MakeProgram& make, ValueClass values, CaseContext& context) {
  CaseResult result;
  auto program = make(values, context.seed);
  if (!program) {
    result.outcome = Outcome::kHarnessError;
    result.message = "the case's program is not valid: " + program.error().to_string();
    return result;
  }
  const auto run = context.target.run(*program->module, program->arguments);
  if (!run) {
    result = failed_run(run.error());
    result.reproducer = to_mlir({program->module->clone(), program->arguments, result.message});
    return result;
  }
  result.steps = run->steps;
  Ledger ledger;
  Relaxation relaxation{context.relaxed, std::nullopt};
  const auto mismatch = compare_by(program->comparison, *program, run->results, ledger, relaxation);
  result.ledger = ledger.entries();
  if (mismatch && mismatch->is_of_suite) {
    result.outcome = Outcome::kHarnessError;
    result.message = mismatch->text;
  } else if (mismatch) {
    result.outcome = Outcome::kFail;
    result.message = mismatch->text;
    set_blame(result, *mismatch, run->placement);
    explain_failure(result, std::move(*program), context);
  } else {
    if (relaxation.warning) {
      result.outcome = Outcome::kQualityWarning;
      result.message = relaxation.warning->text;
    }
    return with_steps_judged(std::move(result), context.target, declined_step(run->placement));
  }
  return result;
}

}  // namespace tenon::conformance
