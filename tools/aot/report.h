// The report on a model: its parts in bytes, and how long its functions take.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "backends/gpu/aot/aot.h"
#include "tools/aot/project.h"

namespace tenon::tools {

/// Seconds of a function's executions.
struct AotTimes {
  int64_t executions = 0;
  double median = 0;
  double least = 0;
};

struct AotReport {
  AotProject project;
  cpu::AotModel model;  ///< For a GPU without an object.
  std::optional<gpu::AheadModel> gpu;
  std::vector<cpu::AotSymbol>
      symbols;                     ///< Those of the object; empty if it has none that can be read.
  std::vector<std::string> files;  ///< As written.
  std::vector<AotTimes> times;     ///< With --bench, of each function.

  int64_t code_bytes() const;
  int64_t embedded_bytes() const;  ///< Sum of the constants in the object.
};

void print_report(const AotReport& report);
nlohmann::json json_of(const AotReport& report);

/// Times of the model's functions in this process, each on random arguments.
Result<std::vector<AotTimes>> time_ahead(const AotReport& report);

}  // namespace tenon::tools
