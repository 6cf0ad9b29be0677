// Folders of StableHLO test programs as cases.
#include "conformance/cases/programs/data.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/file.h"

namespace tenon::conformance {
namespace {

constexpr const char* kRight = R"(
func.func @main() {
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = stablehlo.add %a, %a : tensor<2xf32>
  check.expect_eq_const %b, dense<[2.0, 4.0]> : tensor<2xf32>
  return
}
)";
constexpr const char* kWrong = R"(
func.func @main() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.multiply %a, %a : tensor<2xi32>
  check.expect_eq_const %b, dense<[1, 3]> : tensor<2xi32>
  return
}
)";
constexpr const char* kList = R"(
func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
func.func @negates(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = stablehlo.negate %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func @waits(%token: !stablehlo.token) -> (tensor<4xf32>, !stablehlo.token) {
  %r:2 = "stablehlo.infeed"(%token) : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, !stablehlo.token
}
func.func @never_ends(%a: tensor<i1>) -> tensor<i1> {
  %b = stablehlo.while(%c = %a) : tensor<i1>
  cond {
    stablehlo.return %c : tensor<i1>
  } do {
    stablehlo.return %c : tensor<i1>
  }
  return %b : tensor<i1>
}
func.func @asks(%a: tensor<4xf32>) -> tensor<4xf32> {
  %b = stablehlo.custom_call @theirs(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
)";
constexpr const char* kUnknownSize = R"(
func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  return %a : tensor<?xf32>
}
)";

struct DataFolder {
  DataFolder() {
    std::filesystem::create_directory(folder.file("inner"));
    for (const auto& [name, text] :
         {std::pair("b_list.mlir", std::string(kList)),
          std::pair("a_checks.mlir",
                    std::string(kRight) + "// -----" + kWrong + "// -----" + kUnknownSize),
          std::pair("inner/other.mlir", std::string("\"vhlo.func_v1\"")),
          std::pair("notes.txt", std::string("no program"))}) {
      EXPECT_TRUE(write_file(folder.file(name), text).ok());
    }
  }

  TemporaryFolder folder = TemporaryFolder::create("tenon").value();
};

TEST(DataCases, AreTheirPartsThatCanRun) {
  const DataFolder data;
  const auto cases = data_cases(data.folder.path());
  ASSERT_TRUE(cases) << cases.error().to_string();
  std::vector<std::string> names;
  for (const ConformanceCase& each : *cases) names.push_back(each.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"data/a_checks/0", "data/a_checks/1", "data/b_list/0"}));
}

TEST(DataCases, HoldADeviceToTheChecks) {
  const DataFolder data;
  const auto cases = data_cases(data.folder.path()).value();
  const auto target = make_evaluator_target();
  const auto run = [&](size_t i) {
    CaseContext context{*target};
    return cases[i].run(context);
  };
  EXPECT_EQ(run(0).outcome, Outcome::kPass) << run(0).message;
  EXPECT_EQ(run(1).outcome, Outcome::kFail);
  // Functions that cannot run alone are left out.
  EXPECT_EQ(run(2).outcome, Outcome::kPass) << run(2).message;
}

// A bound for floats may be exceeded by the order of additions: each op is right then.
TEST(DataCases, JudgeFloatsOpByOpWhereACheckFails) {
  const auto folder = TemporaryFolder::create("tenon").value();
  std::string text = kRight;
  text.replace(text.find("4.0"), 3, "4.5");
  ASSERT_TRUE(write_file(folder.file("close.mlir"), text).ok());
  const auto cases = data_cases(folder.path()).value();
  const auto target = make_evaluator_target();
  CaseContext context{*target};
  const CaseResult result = cases[0].run(context);
  EXPECT_EQ(result.outcome, Outcome::kPass) << result.message;
  EXPECT_NE(result.message.find("each op is within its bound"), std::string::npos)
      << result.message;
}

// A target whose first result has a wrong first element.
class OffByOneTarget : public Target {
 public:
  std::vector<std::string> description() const override { return {"wrong"}; }
  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
    TENON_ASSIGN(TargetRun run, make_evaluator_target()->run(module, arguments));
    run.results.front().set_double(0, run.results.front().get_double(0) + 1);
    return run;
  }
};

TEST(DataCases, FindAWrongDevice) {
  const DataFolder data;
  OffByOneTarget target;
  const auto cases = data_cases(data.folder.path()).value();
  for (const ConformanceCase& each : cases) {
    CaseContext context{target, 0, /*reduce=*/false};
    EXPECT_EQ(each.run(context).outcome, Outcome::kFail) << each.name;
  }
}

// Sizes that constants state and nobody can have: the reference refuses the program too.
TEST(DataCases, FindNoFaultWhereTheReferenceRefuses) {
  const auto folder = TemporaryFolder::create("tenon").value();
  ASSERT_TRUE(write_file(folder.file("list.mlir"), R"(
func.func @pads(%a: tensor<4xf32>) -> tensor<?xf32> {
  %half = stablehlo.constant dense<-7> : tensor<1xi32>
  %size = stablehlo.add %half, %half : tensor<1xi32>
  %b = stablehlo.dynamic_reshape %a, %size : (tensor<4xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %b : tensor<?xf32>
}
)")
                  .ok());
  const auto cases = data_cases(folder.path()).value();
  OffByOneTarget target;
  CaseContext context{target, 0, /*reduce=*/false};
  EXPECT_EQ(cases[0].run(context).outcome, Outcome::kNotSupported);
}

// A function that the verifier refuses hides no failure of those behind it.
TEST(DataCases, FindAWrongDeviceBehindWhatIsNotSupported) {
  const auto folder = TemporaryFolder::create("tenon").value();
  const std::string refused = R"(
func.func @draws() -> (tensor<f32>, tensor<f32>) {
  %state = stablehlo.constant dense<1.0> : tensor<f32>
  %r:2 = "stablehlo.rng_bit_generator"(%state) {rng_algorithm = #stablehlo<rng_algorithm DEFAULT>} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %r#0, %r#1 : tensor<f32>, tensor<f32>
}
)";
  ASSERT_TRUE(write_file(folder.file("list.mlir"), refused + kList).ok());
  const auto cases = data_cases(folder.path()).value();
  const auto right = make_evaluator_target();
  CaseContext with_right{*right};
  EXPECT_EQ(cases[0].run(with_right).outcome, Outcome::kNotSupported);
  OffByOneTarget wrong;
  CaseContext with_wrong{wrong, 0, /*reduce=*/false};
  EXPECT_EQ(cases[0].run(with_wrong).outcome, Outcome::kFail);
}

TEST(DataCases, AFolderWithoutProgramsIsAnError) {
  const auto folder = TemporaryFolder::create("tenon").value();
  EXPECT_FALSE(data_cases(folder.path()));
  EXPECT_FALSE(data_cases(folder.file("none")));
}

}  // namespace
}  // namespace tenon::conformance
