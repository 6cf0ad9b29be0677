// The case list, values, and the errors of the ledger.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "conformance/cases/case_list.h"
#include "conformance/compare/ledger.h"
#include "hlo/driver/run.h"

namespace tenon::conformance {
namespace {

using enum ElementType;

TEST(Cases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const ConformanceCase& each : all_cases())
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
  EXPECT_GT(names.size(), 20'000u);
}

// Every op of the table on every type of its row.
TEST(Cases, CoverTheOpTableOrSayWhatTheyLeaveOut) {
  std::set<std::string> cells;  // "op/add", "op/add/f32"
  const auto note = [&](const std::string& name) {
    size_t slash = name.find('/', 3);
    cells.insert(name.substr(0, slash));
    if (slash != std::string::npos) cells.insert(name.substr(0, name.find('/', slash + 1)));
  };
  std::set<std::string> left_out;
  for (const ConformanceCase& each : case_list().cases) note(each.name);
  for (const LeftOut& each : case_list().left_out) {
    EXPECT_FALSE(each.reason.empty()) << each.cell;
    note(each.cell);
    left_out.insert(each.cell);
  }
  for (const hlo::OpInfo& op : hlo::all_ops()) {
    const std::string name = "op/" + case_name_of(op.code);
    EXPECT_TRUE(cells.contains(name)) << name;
    if (left_out.contains(name)) continue;
    for (const ElementTypeInfo& type : element_types()) {
      if (!admits(op.code, type.type)) continue;
      EXPECT_TRUE(cells.contains(cell_of(op.code, type.type))) << cell_of(op.code, type.type);
    }
  }
}

TEST(Cases, PassOnTheEvaluatorAndFailOnAWrongOne) {
  // A target that adds one to every number of its last result.
  class WrongTarget : public Target {
   public:
    std::vector<std::string> description() const override { return {"wrong"}; }
    Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
      TENON_ASSIGN(TargetRun run, make_evaluator_target()->run(module, arguments));
      Literal& last = run.results.back();
      for (int64_t i = 0; i < last.element_count(); ++i) {
        last.set_double(i, last.get_double(i) + 1);
      }
      return run;
    }
  };
  const MakeProgram add =
      built_by([](ProgramMaker& m) { m.b().add(m.data(kF32, {5}), m.data(kF32, {5})); });
  const auto right = make_evaluator_target();
  CaseContext good{*right, 1};
  EXPECT_EQ(run_program_case(add, ValueClass::kOrdinary, good).outcome, Outcome::kPass);
  WrongTarget wrong;
  CaseContext bad{wrong, 1};
  const CaseResult result = run_program_case(add, ValueClass::kOrdinary, bad);
  EXPECT_EQ(result.outcome, Outcome::kFail);
  EXPECT_NE(result.message.find("stablehlo.add result 0 element [0]"), std::string::npos);
  EXPECT_NE(result.reproducer.find("stablehlo.add"), std::string::npos);
}

TEST(Cases, ThatRunNothingOnTheDeviceAreNoPass) {
  class IdleTarget : public Target {
   public:
    std::vector<std::string> description() const override { return {"idle"}; }
    Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
      TENON_ASSIGN(TargetRun run, make_evaluator_target()->run(module, arguments));
      run.steps = {};
      return run;
    }
  };
  IdleTarget idle;
  CaseContext context{idle, 1};
  const MakeProgram add =
      built_by([](ProgramMaker& m) { m.b().add(m.data(kF32, {5}), m.data(kF32, {5})); });
  EXPECT_EQ(run_program_case(add, ValueClass::kOrdinary, context).outcome, Outcome::kNotRun);
}

// A target that changes every element of the last result.
class ChangedTarget : public Target {
 public:
  explicit ChangedTarget(void (*change)(Literal& values, int64_t i)) : change_(change) {}
  std::vector<std::string> description() const override { return {"changed"}; }
  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
    TENON_ASSIGN(TargetRun run, make_evaluator_target()->run(module, arguments));
    Literal& last = run.results.back();
    for (int64_t i = 0; i < last.element_count(); ++i) change_(last, i);
    return run;
  }

 private:
  void (*change_)(Literal& values, int64_t i);
};

CaseResult run_relaxed(void (*build)(ProgramMaker&), void (*change)(Literal& values, int64_t i),
                       const RelaxedBound& bound, ValueClass values = ValueClass::kOrdinary) {
  ChangedTarget target(change);
  CaseContext context{target, 1, false, {&bound, 1}};
  return run_program_case(built_by(build), values, context);
}

void add_ulp(Literal& values, int64_t i) {
  const auto x = static_cast<float>(values.get_double(i));
  values.set_double(i, std::nextafter(x, HUGE_VALF));
}

TEST(RelaxedBounds, AdmitErrorsAsWarnings) {
  const auto add = [](ProgramMaker& m) { m.b().add(m.data(kF32, {5}), m.data(kF32, {5})); };
  const CaseResult warned = run_relaxed(add, add_ulp, {"stablehlo.add", "f32", 1});
  EXPECT_EQ(warned.outcome, Outcome::kQualityWarning) << warned.message;
  EXPECT_NE(warned.message.find("(bound: exact, relaxed to 1 ULP"), std::string::npos);
  ASSERT_EQ(warned.ledger.size(), 1u);  // An exact op is in the ledger because it is relaxed.
  EXPECT_EQ(warned.ledger[0].error, 1);
  EXPECT_EQ(warned.ledger[0].bound, 0);
  EXPECT_EQ(warned.ledger[0].relaxed, 1);
  EXPECT_EQ(run_relaxed(add, add_ulp, {"stablehlo.add", "f32", 0.5}).outcome, Outcome::kFail);
  EXPECT_EQ(run_relaxed(add, add_ulp, {"stablehlo.add", "bf16", 1}).outcome, Outcome::kFail);
  EXPECT_EQ(run_relaxed(add, add_ulp, {"chlo.*", "*", 1}).outcome, Outcome::kFail);
  const CaseResult right = run_relaxed(add, [](Literal&, int64_t) {}, {"*", "*", 1});
  EXPECT_EQ(right.outcome, Outcome::kPass);
}

TEST(RelaxedBounds, AreNotForSignsMovesAndSums) {
  const RelaxedBound all{"*", "*", 1e9};
  const auto negate_zeros = [](Literal& values, int64_t i) {
    if (values.get_double(i) == 0) values.set_double(i, -values.get_double(i));
  };
  const auto abs = [](ProgramMaker& m) { m.b().unary(hlo::OpCode::kAbs, m.data(kF32, {9})); };
  const auto ceil = [](ProgramMaker& m) { m.b().unary(hlo::OpCode::kCeil, m.data(kF32, {9})); };
  EXPECT_EQ(run_relaxed(ceil, negate_zeros, all, ValueClass::kZero).outcome, Outcome::kFail);
  EXPECT_EQ(run_relaxed(abs, add_ulp, all).outcome, Outcome::kFail);
  const auto move = [](ProgramMaker& m) { m.b().transpose(m.data(kF32, {5, 1}), {1, 0}); };
  EXPECT_EQ(run_relaxed(move, add_ulp, all).outcome, Outcome::kFail);
  const auto integers = [](ProgramMaker& m) { m.b().add(m.data(kS32, {5}), m.data(kS32, {5})); };
  const auto add_one = [](Literal& values, int64_t i) {
    values.set_integer(i, values.get_integer(i) + 1);
  };
  EXPECT_EQ(run_relaxed(integers, add_one, all).outcome, Outcome::kFail);
}

TEST(RelaxedBounds, HoldForComplexNumbersAsAWhole) {
  const auto tan = [](ProgramMaker& m) { m.b().unary(hlo::OpCode::kTan, m.data(kC64, {5})); };
  const auto change = [](Literal& values, int64_t i) {
    values.set_complex(i, values.get_complex(i) * (1.0 + 0x1p-15));
  };
  EXPECT_EQ(run_relaxed(tan, change, {"stablehlo.tan", "c64", 1000}).outcome,
            Outcome::kQualityWarning);
  EXPECT_EQ(run_relaxed(tan, change, {"stablehlo.tan", "c64", 8}).outcome, Outcome::kFail);
}

TEST(Values, OfAClassAreThere) {
  for (const ElementTypeInfo& info : element_types()) {
    for (const ValueClass values : kValueClasses) {
      if (!has_values(info.type, values)) continue;
      Random random(7);
      const Literal array = random_values(Shape(info.type, {200}), values, random);
      int64_t found = 0;
      for (int64_t i = 0; i < 200; ++i) {
        const double x = is_integer(info.type) ? 0 : array.get_complex(i).real();
        found += values == ValueClass::kNan        ? std::isnan(x)
                 : values == ValueClass::kInfinity ? std::isinf(x)
                 : values == ValueClass::kZero     ? x == 0
                                                   : 1;
      }
      EXPECT_GT(found, 60) << info.name << " " << name_of(values);
    }
  }
}

TEST(Values, AreLeftOutOnlyWhileNobodyWantsThem) {
  const auto is_zero = [] {
    Random random(7);
    const Shape shape(ElementType::kF32, {200});
    return random_values(shape, ValueClass::kOrdinary, random) == Literal(shape);
  };
  EXPECT_FALSE(is_zero());
  {
    const WithoutValues unneeded;
    {
      const WithoutValues within;
    }
    EXPECT_TRUE(is_zero());
  }
  EXPECT_FALSE(is_zero());
}

TEST(Values, PatternsAreAllOfThem) {
  Random random(1);
  const Literal x = patterns(kF16, 0, 1, random);
  std::set<uint16_t> seen;
  for (int64_t i = 0; i < x.element_count(); ++i) seen.insert(x.get<uint16_t>(i));
  EXPECT_EQ(seen.size(), 65536u);
  const Literal a = patterns(kS8, 0, 2, random);
  const Literal b = patterns(kS8, 1, 2, random);
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    pairs.insert({a.get_integer(i), b.get_integer(i)});
  }
  EXPECT_EQ(pairs.size(), 65536u);
}

TEST(UlpErrors, CountUnitsOfTheExactValue) {
  EXPECT_EQ(ulp_error(kF32, 1.0, Float128(1)), 0);
  EXPECT_EQ(ulp_error(kF32, 1.0 + 0x1p-23, Float128(1)), 1);
  EXPECT_EQ(ulp_error(kF32, 1.0, Float128(1) + 0x1p-24), 0.5);
  EXPECT_EQ(ulp_error(kF32, 0x1p-149, Float128(0)), 1);  // A denormal.
  EXPECT_EQ(ulp_error(kF32, 0, Float128(0x1p-149)), 1);
  EXPECT_EQ(ulp_error(kF32, NAN, Float128(NAN)), 0);
  EXPECT_EQ(ulp_error(kF32, NAN, Float128(1)), HUGE_VAL);
  EXPECT_EQ(ulp_error(kF32, 1, Float128(NAN)), HUGE_VAL);
  EXPECT_EQ(ulp_error(kF32, HUGE_VAL, Float128(1e300)), 0);
  EXPECT_EQ(ulp_error(kF32, HUGE_VAL, Float128(float_max(kF32))), 1);  // Neighbours.
  EXPECT_GT(ulp_error(kF32, -HUGE_VAL, Float128(1e300)), 1e6);
  EXPECT_EQ(ulp_error(kF8E4M3FN, NAN, Float128(1e9)), 0);  // It has no infinity.
  EXPECT_EQ(ulp_error(kF32, 1.5, Float128(1), 1024), 0.5 / 0x1p-13);
}

}  // namespace
}  // namespace tenon::conformance
