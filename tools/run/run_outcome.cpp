#include "tools/run/run_outcome.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/types/npy.h"
#include "tools/cli.h"
#include "tools/run/staged_files.h"

namespace tenon::tools {
Status write_results(const RunOutcome& outcome, const std::string& directory) {
  TENON_ASSIGN(StagedFiles files, StagedFiles::create(directory));
  for (size_t i = 0; i < outcome.results.size(); ++i) {
    TENON_TRY(files.named(write_npy(files.add(fmt::format("out_{}.npy", i)), outcome.results[i])));
  }
  TENON_TRY(files.move());
  return {};
}

namespace {

nlohmann::json element_json(const Literal& literal, int64_t index) {
  const ElementType type = literal.element_type();
  // JSON has no infinities or NaN: they are strings.
  const auto real = [](double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(fmt::format("{}", value));
  };
  if (is_pred(type)) return literal.get_integer(index) != 0;
  if (type == ElementType::kU64) return static_cast<uint64_t>(literal.get_integer(index));
  if (is_integer(type)) return literal.get_integer(index);
  if (is_float(type)) return real(literal.get_double(index));
  const auto value = literal.get_complex(index);
  return nlohmann::json::array({real(value.real()), real(value.imag())});
}

nlohmann::json array_json(const Literal& literal, size_t axis, int64_t& next) {
  const Dims& dims = literal.shape().dims();
  if (axis == dims.size()) return element_json(literal, next++);
  nlohmann::json array = nlohmann::json::array();
  for (int64_t i = 0; i < dims[axis]; ++i) array.push_back(array_json(literal, axis + 1, next));
  return array;
}

// Prints where the program ran on standard error, because standard output has only the results.
void print_placement(const RunOutcome& outcome, const RunOptions& options) {
  if (!outcome.steps) {
    fmt::print(stderr, "reference: every op evaluated on the host{}\n",
               options.device.empty() ? "; --device cpu compiles the program" : "");
    return;
  }
  for (const std::string& each : outcome.warnings) fmt::print(stderr, "warning: {}\n", each);
  const program::StepCounts& steps = *outcome.steps;
  fmt::print(stderr, "{}: {} on the device, {} on the host; {} computed at compile time\n",
             options.device.empty() ? "interp" : options.device, counted(steps.on_device(), "step"),
             steps.host, counted(outcome.folded, "op"));
  if (outcome.declined.empty()) return;
  fmt::print(stderr, "{}, for example {}\n",
             steps.on_device() == 0 ? "the device declined the whole program"
                                    : "the device declined steps",
             outcome.declined);
}

}  // namespace

void print_results(const RunOutcome& outcome, const RunOptions& options) {
  if (options.json) {
    nlohmann::json document;
    document["results"] = nlohmann::json::array();
    for (const Literal& result : outcome.results) {
      int64_t next = 0;
      document["results"].push_back({{"type", std::string(name_of(result.element_type()))},
                                     {"dims", result.shape().dims()},
                                     {"value", array_json(result, 0, next)}});
    }
    document["checks"] = outcome.checks;
    if (outcome.steps) {
      document["steps"] = {{"device", outcome.steps->on_device()},
                           {"host", outcome.steps->host},
                           {"folded", outcome.folded}};
    }
    if (options.time) document["times"] = times_json(outcome.times);
    if (options.steps) document["step_times"] = outcome.step_times->to_json(outcome.times_of_steps);
    document["failures"] = nlohmann::json::array();
    for (const hlo::CheckFailure& failure : outcome.failures) {
      document["failures"].push_back(failure.text);
    }
    print_json(document, -1);
    return;
  }
  if (!options.out_dir.empty()) {
    fmt::print("{} results written to {}\n", outcome.results.size(), options.out_dir);
  } else if (!options.quiet) {
    for (size_t i = 0; i < outcome.results.size(); ++i) {
      fmt::print("{}: {} = {}\n", i, outcome.results[i].shape().to_string(),
                 outcome.results[i].to_string());
    }
  }
  if (outcome.checks != 0) {
    fmt::print("{} checks, {} failed\n", outcome.checks, outcome.failures.size());
  }
  if (!options.quiet) print_placement(outcome, options);
  if (options.time) print_times(outcome.times);
  if (options.steps) outcome.step_times->print(outcome.times_of_steps);
}

}  // namespace tenon::tools
