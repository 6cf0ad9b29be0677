// Cases of models: on the evaluator, on wrong devices, and training.
#include "conformance/cases/programs/models.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/cases/text_program.h"
#include "core/base/random.h"
#include "hlo/driver/run.h"

namespace tenon::conformance {
namespace {

using enum ElementType;

// The evaluator, with the first element of one result changed; of none if its number is negative.
class ChangedModelTarget : public Target {
 public:
  explicit ChangedModelTarget(int64_t result) : result_(result) {}
  std::vector<std::string> description() const override { return {"changed"}; }
  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
    TENON_ASSIGN(TargetRun run, make_evaluator_target()->run(module, arguments));
    if (result_ < 0) return run;
    Literal& changed = run.results[static_cast<size_t>(result_) % run.results.size()];
    if (is_complex(changed.element_type())) {
      changed.set_complex(0, changed.get_complex(0) + 1.0);
    } else if (is_float(changed.element_type())) {
      changed.set_double(0, changed.get_double(0) + 1);
    } else {
      changed.set_integer(0, changed.get_integer(0) == 0 ? 1 : 0);
    }
    return run;
  }

 private:
  const int64_t result_;
};

CaseResult run_model_case(const ConformanceCase& one, int64_t changed_result) {
  ChangedModelTarget target(changed_result);
  CaseContext context{target, 1, false};
  return one.run(context);
}

TEST(Models, PassOnTheEvaluatorAndFailOnAWrongOne) {
  int count = 0;
  for (const ConformanceCase& each : all_cases()) {
    if (!each.name.starts_with("model/") || each.needs != CaseNeeds::kNothing) continue;
    ++count;
    const CaseResult right = run_model_case(each, -1);
    EXPECT_EQ(right.outcome, Outcome::kPass) << each.name << ": " << right.message;
    EXPECT_EQ(run_model_case(each, 1).outcome, Outcome::kFail) << each.name;
  }
  EXPECT_GT(count, 20);
}

// A program that adds one to its state and returns the state as its loss, times `sign`.
CaseProgram counting_program(double sign) {
  ProgramMaker maker(ValueClass::kOrdinary, 1);
  Literal three(Shape(kF32, {}));
  three.set_double(0, 3);
  Literal factor(Shape(kF32, {}));
  factor.set_double(0, sign);
  const hlo::Value x = maker.argument(three);
  const hlo::Value y = maker.argument(factor);
  const hlo::Value one = maker.b().div(x, x);
  const hlo::Value next = maker.b().add(x, one);
  const hlo::Value loss = maker.b().mul(x, y);
  auto made = maker.finish();
  EXPECT_TRUE(made) << made.error().to_string();
  hlo::Computation& main = *made->module->entry();
  main.return_instruction()->set_operands({next, loss});
  main.set_declared_result_types({next.type(), loss.type()});
  return *std::move(made);
}

TrainingStep evaluated_step(const CaseProgram& program) {
  return [&program](const std::vector<Literal>& arguments) -> Result<std::vector<Literal>> {
    TENON_ASSIGN(TargetRun run, make_evaluator_target()->run(*program.module, arguments));
    return std::move(run.results);
  };
}

TEST(Training, NeedsALossThatDecreases) {
  const CaseProgram good = counting_program(-1);
  EXPECT_EQ(train(good, evaluated_step(good)).message(), "");
  const CaseProgram bad = counting_program(1);
  EXPECT_EQ(train(bad, evaluated_step(bad)).message(), "step 2: the loss is 4, and was 3 before");
}

TEST(Training, NeedsTheStateOfTheStepBefore) {
  const CaseProgram program = counting_program(-1);
  const auto step = evaluated_step(program);
  const Status stale =
      train(program, [&](const std::vector<Literal>&) { return step(program.arguments); });
  EXPECT_NE(stale.message().find("step 2: result 0 element []: 4, expected 5"), std::string::npos)
      << stale.message();
}

TEST(Models, HaveAnErrorForAWordThatFillsNothing) {
  Random random(1);
  EXPECT_FALSE(fill_argument("everything", Shape(kF32, {3}), ValueClass::kOrdinary, random));
  const auto steps =
      fill_argument("steps:-3:5:4", Shape(kF32, {500}), ValueClass::kOrdinary, random);
  ASSERT_TRUE(steps);
  double least = 0;
  double most = 0;
  for (int64_t i = 0; i < 500; ++i) {
    least = std::min(least, steps->get_double(i));
    most = std::max(most, steps->get_double(i));
  }
  EXPECT_EQ(least, -0.75);
  EXPECT_EQ(most, 1.25);
  const auto sign = fill_argument("sign:1:2", Shape(kF32, {40}), ValueClass::kOrdinary, random);
  ASSERT_TRUE(sign);
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(std::abs(sign->get_double(i)), 0.5);
}

}  // namespace
}  // namespace tenon::conformance
