// Cases of models: programs that JAX exported (samples/), as a framework sends them.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/program_maker.h"

namespace tenon::conformance {

struct ModelSource {
  std::string_view sample;  ///< The folder in samples/.
  ElementType type{};       ///< In the names of its cases.
  /// How each argument is filled (fill_argument). ReLU, argmax and the ends of loops jump where
  /// values are near a limit: then arguments keep them away from it, or make them exact.
  std::string_view arguments;
  Comparison comparison = Comparison::kWhole;
  /// Whether it has loops of floats, which only the program as a whole judges.
  bool has_loops = false;
  /// The size of the batch, if the program leaves it open; 0 if it states it.
  int64_t batch = 0;
};

/// The model on arguments of a seed, as the program that a user runs: its results are those of the
/// model.
Result<CaseProgram> make_model(const ModelSource& model, uint64_t seed);

/// Runs a training step: arguments to results, which begin with the new state and end with the
/// loss.
using TrainingStep =
    std::function<Result<std::vector<Literal>>(const std::vector<Literal>& arguments)>;
/// Runs the step again and again on one batch, each time on the state that the device computed.
/// Errors: those of a step; results that are wrong by the evaluator, which gets the device's state;
/// a loss that is not less than the one before.
Status train(const CaseProgram& program, const TrainingStep& step);

}  // namespace tenon::conformance
