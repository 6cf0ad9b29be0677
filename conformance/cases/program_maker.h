// Makes the program of a case, with its arguments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/values.h"
#include "hlo/builder/builder.h"

namespace tenon::conformance {

/// How the results of a program are compared with the oracle (conformance/compare/).
enum class Comparison : uint8_t {
  kEachOp,  ///< @main returns all its values, and each op is judged on the operands it got.
  kWhole,   ///< Results of a longer program, within a multiple of the evaluator's own error.
  kBits,    ///< Results of a program of exact ops: the evaluator's bits.
};

struct CaseProgram {
  std::unique_ptr<hlo::Module> module;  ///< One function, @main.
  std::vector<Literal> arguments;
  Comparison comparison = Comparison::kEachOp;
  /// The module that the oracle evaluates, if it is another: the same program, not fused.
  std::unique_ptr<hlo::Module> compared{};
};

/// Builds @main. Inputs are parameters, so that no pass computes the program beforehand.
class ProgramMaker {
 public:
  ProgramMaker(ValueClass values, uint64_t seed);

  hlo::Builder& b() { return *builder_; }
  ValueClass values() const { return values_; }
  Random& random() { return random_; }

  /// A parameter of the case's class of values.
  hlo::Value data(ElementType type, Dims dims);
  /// A parameter with this value.
  hlo::Value argument(Literal value);
  /// A parameter of integers in [low, high].
  hlo::Value integers(ElementType type, Dims dims, int64_t low, int64_t high);
  /// Uses `x` so that a device must compute: a value that is empty is joined to one that is not,
  /// and values that were only moved go through an exact op.
  hlo::Value consume(hlo::Value x);

  /// Errors: those of verification.
  Result<CaseProgram> finish();

 private:
  CaseProgram made_;
  hlo::Computation* function_ = nullptr;
  std::unique_ptr<hlo::Builder> builder_;
  ValueClass values_;
  Random random_;
};

/// Makes the program of a case; its error says why it is not valid.
using MakeProgram = std::function<Result<CaseProgram>(ValueClass values, uint64_t seed)>;

/// The program in which `build` builds the op under test.
MakeProgram built_by(std::function<void(ProgramMaker&)> build);

/// The result of a case whose program did not run.
CaseResult failed_run(const Status& error);
/// The first step that the device declined, so that the host ran it, and why; empty if there is
/// none.
std::string declined_step(const std::vector<hlo::Placement>& placement);
/// The result of a case whose results are right: kNotSupported if the device declined a step,
/// kNotRun if it ran none.
CaseResult with_steps_judged(CaseResult result, const Target& target,
                             const std::string& declined = {});

/// Runs the program on the target and compares its values with the oracle
/// (conformance/compare/differential.h).
CaseResult run_program_case(const MakeProgram& make, ValueClass values, CaseContext& context);

}  // namespace tenon::conformance
