// Programs on small grids, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "hlo/evaluator/processes/process_groups.h"
#include "hlo/evaluator/processes/run_parallel.h"
#include "hlo/import/import.h"

namespace tenon::hlo {

using Integers = std::vector<int64_t>;
using Lists = std::vector<Integers>;

inline std::unique_ptr<Module> parse(const std::string& text) {
  auto module = import_module(text, "test.mlir");
  EXPECT_TRUE(module) << module.error().to_string();
  return module ? std::move(*module) : nullptr;
}

inline EvalValue array(Dims dims, const Integers& values, ElementType type = ElementType::kS64) {
  Tensor tensor(type, std::move(dims), false);
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<int64_t>(i), Scalar(values[i]));
  }
  return EvalValue::of(std::move(tensor));
}

inline Integers integers(const EvalValue& value) {
  Integers list;
  for (int64_t i = 0; value.tensor && i < value->count(); ++i) list.push_back(value->integer(i));
  return list;
}

// @main of `text` on a grid, arguments[process].
inline Result<std::vector<ProcessOutcome>> run_grid(
    const std::string& text, GridExtent extent,
    const std::vector<std::vector<EvalValue>>& arguments,
    std::vector<std::vector<EvalValue>> infeed = {}) {
  const std::unique_ptr<Module> module = parse(text);
  if (module == nullptr) return invalid_argument("does not parse");
  std::vector<std::vector<ProcessProgram>> programs(static_cast<size_t>(extent.replicas));
  size_t next = 0;
  for (auto& row : programs) {
    for (int64_t p = 0; p < extent.partitions; ++p, ++next) {
      row.push_back({module->find_function("main"),
                     arguments.empty() ? std::vector<EvalValue>{} : arguments[next]});
    }
  }
  return run_processes(Evaluator(*module), programs, std::move(infeed));
}

// Result 0 of each process, or the error as the only element of `*error`.
inline std::vector<Integers> run_one(const std::string& text, GridExtent extent,
                                     const std::vector<EvalValue>& inputs,
                                     std::string* error = nullptr) {
  std::vector<std::vector<EvalValue>> arguments;
  for (const EvalValue& input : inputs) arguments.push_back({input});
  const auto outcomes = run_grid(text, extent, arguments);
  if (!outcomes) {
    if (error != nullptr) {
      *error = outcomes.error().message();
    } else {
      ADD_FAILURE() << outcomes.error().to_string();
    }
    return {};
  }
  std::vector<Integers> results;
  for (const ProcessOutcome& outcome : *outcomes) results.push_back(integers(outcome.results[0]));
  return results;
}

inline std::vector<EvalValue> numbers(const Integers& values) {
  std::vector<EvalValue> list;
  for (const int64_t value : values) list.push_back(array({1}, {value}));
  return list;
}

}  // namespace tenon::hlo
