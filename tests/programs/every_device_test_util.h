// tests/programs/: whole programs on every device.
//
// Tests of one program on the evaluator and on every kind of device.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/suites/devices.h"
#include "hlo/driver/run.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"

namespace tenon::conformance {

/// A test whose parameter is a device; "reference" is the evaluator.
class EveryDevice : public ::testing::TestWithParam<const char*> {
 protected:
  /// The first result; on an error, a test failure and an empty Literal.
  static Literal result_of(const std::string& text, const std::vector<Literal>& arguments) {
    const auto module = hlo::import_module(text, "t");
    if (!module) {
      ADD_FAILURE() << module.error().to_string() << "\n" << text;
      return {};
    }
    auto results = run_module(**module, arguments);
    if (results) return std::move((*results)[0]);
    ADD_FAILURE() << results.error().to_string() << "\n" << text;
    return {};
  }
  static std::string run(const std::string& text, const std::vector<Literal>& arguments) {
    return result_of(text, arguments).to_string();
  }

 private:
  static Result<std::vector<Literal>> run_module(const hlo::Module& module,
                                                 const std::vector<Literal>& arguments) {
    const std::string device = GetParam();
    if (device == "reference") return hlo::Evaluator(module).run(*module.entry(), arguments);
    TENON_ASSIGN(auto backend, backend_named(device));
    TENON_ASSIGN(auto client, first_device(std::move(backend)));
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    return hlo::run_on_device({client, 0}, module, arguments, hlo::Checks(&failures, &checks), {});
  }
};

/// "gpu-sim" as part of a test's name: "gpu_sim".
inline std::string name_of_device(const ::testing::TestParamInfo<const char*>& device) {
  std::string name = device.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

#define TENON_ON_EVERY_DEVICE(suite)                                                               \
  INSTANTIATE_TEST_SUITE_P(Devices, suite,                                                         \
                           ::testing::Values("reference", "interp", "cpu", "gpu-sim", "template"), \
                           name_of_device)

}  // namespace tenon::conformance
