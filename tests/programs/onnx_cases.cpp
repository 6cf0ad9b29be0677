// Runs ONNX's node tests on a device: a line "pass NAME", "refused NAME: why" or "wrong NAME: why"
// a case, then "steps N", the steps that ran on the device.
//
//   onnx_cases DEVICE FOLDER [CASE…]
//
// A case is a folder with model.onnx, input_N.pb, output_N.pb (TensorProto) and tolerance ("rtol
// atol").
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "conformance/suites/devices.h"
#include "core/base/file.h"
#include "hlo/driver/run.h"
#include "hlo/onnx/importer.h"
#include "hlo/onnx/reader.h"
#include "hlo/verify/verify.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

struct OnnxCase {
  fs::path folder;
  double rtol = 1e-3, atol = 1e-7;
};

Result<std::vector<Literal>> read_tensors(const fs::path& folder, std::string_view kind) {
  std::vector<Literal> tensors;
  for (size_t i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(path)) return tensors;
    TENON_ASSIGN(const std::string bytes, read_file(path.string()));
    TENON_ASSIGN(Literal tensor, hlo::read_onnx_tensor(bytes));
    tensors.push_back(std::move(tensor));
  }
}

// ONNX computes the expected values of transforms with more digits, and those of bf16 with a
// rounding after each op.
void relax(OnnxCase& test, const Literal& want) {
  constexpr double kTransform = 1e-6, kBf16 = 0x1p-6;
  if (want.element_type() == ElementType::kBF16) test.rtol = std::max(test.rtol, kBf16);
  if (test.folder.filename().string().find("dft") == std::string::npos) return;
  double most = 0;
  for (int64_t i = 0; i < want.element_count(); ++i)
    most = std::max(most, std::fabs(want.get_double(i)));
  test.atol = std::max(test.atol, kTransform * most);
}

std::string difference(const Literal& got, const Literal& want, OnnxCase test) {
  relax(test, want);
  if (!(got.shape() == want.shape())) {
    return fmt::format("{}, expected {}", got.shape().to_string(), want.shape().to_string());
  }
  for (int64_t i = 0; i < got.element_count(); ++i) {
    const std::complex<double> a = got.get_complex(i), b = want.get_complex(i);
    const bool exact = is_integer(got.element_type()) || is_pred(got.element_type());
    const auto same = [&](double x, double y) {
      return x == y || (std::isnan(x) && std::isnan(y)) ||
             (!exact && std::fabs(x - y) <= test.atol + test.rtol * std::fabs(y));
    };
    if (exact ? got.get_integer(i) == want.get_integer(i)
              : same(a.real(), b.real()) && same(a.imag(), b.imag()))
      continue;
    return fmt::format("element {} of {} is {}, expected {}", i, got.shape().to_string(),
                       got.element_to_string(i), want.element_to_string(i));
  }
  return "";
}

struct CaseOutcome {
  std::string word, why;
};

Result<CaseOutcome> run_case(const OnnxCase& test, const hlo::RunTarget& target, int64_t& steps) {
  TENON_ASSIGN(const std::string bytes, read_file((test.folder / "model.onnx").string()));
  if (!hlo::is_onnx(bytes)) return CaseOutcome{"wrong", "it is not taken for a model"};
  TENON_ASSIGN(const std::vector<Literal> inputs, read_tensors(test.folder, "input"));
  TENON_ASSIGN(const std::vector<Literal> outputs, read_tensors(test.folder, "output"));
  const auto model = hlo::read_onnx(bytes, test.folder.string());
  const auto refused = [](const Status& status) {
    return CaseOutcome{status.code() == ErrorCode::kUnimplemented ? "refused" : "wrong",
                       status.message()};
  };
  if (!model) return refused(model.error());
  hlo::OnnxKnowledge known;
  for (size_t i = 0; i < inputs.size(); ++i) known.values.emplace(i, inputs[i]);
  const auto imported = hlo::import_onnx(*model, known);
  if (!imported) return refused(imported.error());
  if (const Status valid = hlo::verify(*imported->module); !valid.ok())
    return CaseOutcome{"wrong", valid.message()};
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  hlo::RunInfo info;
  auto results = hlo::run_on_device(target, *imported->module, inputs,
                                    hlo::Checks(&failures, &checks), {}, &info);
  steps += info.steps.on_device();
  if (!results) return CaseOutcome{"wrong", "run: " + results.error().message()};
  if (results->size() != outputs.size())
    return CaseOutcome{"wrong",
                       fmt::format("{} results, expected {}", results->size(), outputs.size())};
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string why = difference((*results)[i], outputs[i], test);
    if (!why.empty()) return CaseOutcome{"wrong", fmt::format("result {}: {}", i, why)};
  }
  return CaseOutcome{"pass", ""};
}

int run_cases(const std::string& device, const fs::path& folder, std::vector<std::string> names) {
  auto backend = conformance::backend_named(device);
  if (!backend) {
    fmt::print(stderr, "{}\n", backend.error().to_string());
    return 2;
  }
  auto client = conformance::first_device(*std::move(backend));
  if (!client) {
    fmt::print(stderr, "{}\n", client.error().to_string());
    return 2;
  }
  const hlo::RunTarget target{*client, 0};
  if (names.empty()) {
    for (const auto& each : fs::directory_iterator(folder))
      names.push_back(each.path().filename().string());
    std::ranges::sort(names);
  }
  int64_t steps = 0;
  for (const std::string& name : names) {
    OnnxCase test{folder / name};
    if (const auto text = read_file((test.folder / "tolerance").string()))
      std::istringstream(*text) >> test.rtol >> test.atol;
    // Seen if the process ends here.
    fmt::print("case {}\n", name);
    std::fflush(stdout);
    auto outcome = run_case(test, target, steps);
    if (!outcome) outcome = CaseOutcome{"wrong", outcome.error().message()};
    std::ranges::replace(outcome->why, '\n', ' ');
    fmt::print("{} {}{}{}\n", outcome->word, name, outcome->why.empty() ? "" : ": ", outcome->why);
    std::fflush(stdout);
  }
  fmt::print("steps {}\n", steps);
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int count, char** words) {
  if (count < 3) {
    fmt::print(stderr, "usage: onnx_cases DEVICE FOLDER [CASE…]\n");
    return 2;
  }
  return tenon::run_cases(words[1], words[2], std::vector<std::string>(words + 3, words + count));
}
