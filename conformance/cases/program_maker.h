// Makes the program of a case, with its arguments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/values.h"
#include "hlo/builder/builder.h"

namespace tenon::conformance {

struct CaseProgram {
  std::unique_ptr<hlo::Module> module;  ///< One function, @main, which returns all its values.
  std::vector<Literal> arguments;
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

/// Builds the op under test.
using MakeProgram = std::function<void(ProgramMaker&)>;

/// The program of a case, or why it is not valid.
Result<CaseProgram> make_program(const MakeProgram& make, ValueClass values, uint64_t seed);

/// Runs the program on the target and compares every value with the oracle
/// (conformance/compare/differential.h).
CaseResult run_program_case(const MakeProgram& make, ValueClass values, CaseContext& context);

}  // namespace tenon::conformance
