// Composites that a backend takes whole: idioms that Tenon recognizes, and composites of the
// program, by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/program/serial.h"
#include "hlo/driver/compile.h"
#include "hlo/driver/run.h"
#include "hlo/import/import.h"

namespace tenon::hlo {
namespace {

using backend::LibraryCallPlan;
using backend::LibraryCallSite;
using backend::MemoryAddress;

// The calls that the device received, by their plans.
using CallLog = std::vector<std::string>;

// interp without segments, with two composites of its own: the softmax of rows, and
// "vendor.scaled", a product with the attribute `factor`.
class FusedDevice final : public backend::ForwardingDevice {
 public:
  FusedDevice(std::unique_ptr<backend::Device> inner, std::shared_ptr<CallLog> log)
      : ForwardingDevice(std::move(inner)), log_(std::move(log)) {}

  Status call(uint32_t queue, const backend::LibraryCallLaunch& launch) override {
    TENON_ASSIGN(const backend::EventHandle event, record(queue));
    const Result<bool> done = await(event, -1);
    release(event);
    if (!done) return Status(done.error());
    log_->push_back(std::string(launch.plan));
    long long rows = 0;
    long long columns = 0;
    double factor = 0;
    std::sscanf(std::string(launch.plan).c_str(), "%lld x %lld by %lf", &rows, &columns, &factor);
    TENON_ASSIGN(const float* x, floats(launch.operands[0]));
    TENON_ASSIGN(float* y, floats(launch.results[0]));
    for (long long r = 0; r < rows; ++r, x += columns, y += columns) {
      if (factor != 0) {
        for (long long c = 0; c < columns; ++c) y[c] = x[c] * static_cast<float>(factor);
        continue;
      }
      const float most = *std::max_element(x, x + columns);
      float sum = 0;
      for (long long c = 0; c < columns; ++c) sum += y[c] = std::exp(x[c] - most);
      for (long long c = 0; c < columns; ++c) y[c] /= sum;
    }
    return {};
  }

 private:
  Result<float*> floats(const MemoryAddress& place) {
    TENON_ASSIGN(std::byte* const memory, map(place.memory));
    return reinterpret_cast<float*>(memory + place.offset);
  }
  std::shared_ptr<CallLog> log_;
};

class FusedBackend final : public backend::ForwardingBackend {
 public:
  FusedBackend() : ForwardingBackend(interp()) {}

  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    TENON_ASSIGN(auto device, ForwardingBackend::open(index));
    return std::make_unique<FusedDevice>(std::move(device), log);
  }
  Result<LibraryCallPlan> plan(const backend::TargetInfo&, const LibraryCallSite& site) override {
    const auto* composite = std::get_if<program::Composite>(&site.call);
    if (composite == nullptr) return unimplemented("only composites are taken");
    offers.push_back(composite->name);
    const Dims& dims = site.operands[0].dims();
    LibraryCallPlan plan;
    if (composite->name == "tenon.softmax" && dims.size() == 2 && takes_softmax) {
      plan.plan = fmt::format("{} x {} by 0", dims[0], dims[1]);
      return plan;
    }
    if (composite->name == "vendor.scaled") {
      const double factor = std::get<std::vector<double>>(composite->attributes[0].value)[0];
      plan.plan = fmt::format("1 x {} by {}", dims[0], factor);
      return plan;
    }
    return unimplemented("there is no unit for it");
  }

  bool takes_softmax = true;
  std::vector<std::string> offers;
  std::shared_ptr<CallLog> log = std::make_shared<CallLog>();

 private:
  static std::shared_ptr<backend::Backend> interp() {
    backend::InterpreterConfig config;
    config.segments = false;
    return backend::make_interpreter_backend(config);
  }
};

struct DeviceRun {
  std::vector<Literal> results;
  RunInfo info;
};
DeviceRun run(const std::shared_ptr<backend::Backend>& backend, const std::string& text,
              const std::vector<Literal>& arguments) {
  DeviceRun made;
  const auto module = import_module(text, "t.mlir");
  EXPECT_TRUE(module) << module.error().to_string();
  if (!module) return made;
  RunTarget target;
  target.client = *runtime::Client::open(backend);
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  auto results =
      run_on_device(target, **module, arguments, Checks(&failures, &checks), {}, &made.info);
  EXPECT_TRUE(results) << results.error().to_string();
  if (results) made.results = *std::move(results);
  return made;
}

constexpr const char* kSoftmaxInLoop = R"(
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %a = %x) : tensor<i32>, tensor<3x4xf32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %m = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
      %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
      %d = stablehlo.subtract %a, %mb : tensor<3x4xf32>
      %e = stablehlo.exponential %d : tensor<3x4xf32>
      %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
      %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
      %y = stablehlo.divide %e, %tb : tensor<3x4xf32>
      stablehlo.return %next, %y : tensor<i32>, tensor<3x4xf32>
    }
  return %r#1 : tensor<3x4xf32>
})";

Literal ramp(const Dims& dims) {
  Literal made(Shape(ElementType::kF32, dims));
  for (int64_t i = 0; i < made.element_count(); ++i) {
    made.set_double(i, static_cast<double>((i * 7) % 5) - 1.5);
  }
  return made;
}

void expect_near(const std::vector<Literal>& actual, const std::vector<Literal>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t r = 0; r < actual.size(); ++r) {
    for (int64_t i = 0; i < actual[r].element_count(); ++i) {
      EXPECT_NEAR(actual[r].get_double(i), expected[r].get_double(i), 1e-6);
    }
  }
}

TEST(Composites, AnIdiomIsTakenWhole) {
  const auto fused = std::make_shared<FusedBackend>();
  const std::vector<Literal> arguments = {ramp({3, 4})};
  const DeviceRun whole = run(fused, kSoftmaxInLoop, arguments);
  EXPECT_EQ(*fused->log, CallLog(3, "3 x 4 by 0"));  // Each iteration of the loop.
  const DeviceRun plain = run(backend::make_interpreter_backend(), kSoftmaxInLoop, arguments);
  expect_near(whole.results, plain.results);
  // Rules also hold with calls.
  const auto checked = std::make_shared<FusedBackend>();
  expect_near(run(backend::make_validate_layer(checked), kSoftmaxInLoop, arguments).results,
              plain.results);
  EXPECT_EQ(checked->log->size(), 3U);
}

TEST(Composites, OneThatIsDeclinedIsAsIfItHadNotBeenRecognized) {
  const auto fused = std::make_shared<FusedBackend>();
  fused->takes_softmax = false;
  const std::vector<Literal> arguments = {ramp({3, 4})};
  const DeviceRun declined = run(fused, kSoftmaxInLoop, arguments);
  EXPECT_EQ(fused->offers, std::vector<std::string>{"tenon.softmax"});
  EXPECT_TRUE(fused->log->empty());
  backend::InterpreterConfig config;
  config.segments = false;
  const DeviceRun plain = run(backend::make_interpreter_backend(config), kSoftmaxInLoop, arguments);
  EXPECT_EQ(declined.results, plain.results);
  EXPECT_EQ(declined.info.placement.size(), plain.info.placement.size());
}

constexpr const char* kOwn = R"(
func.func private @scaled(%x: tensor<6xf32>) -> tensor<6xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<6xf32>
  %0 = stablehlo.multiply %x, %two : tensor<6xf32>
  return %0 : tensor<6xf32>
}
func.func private @same(%x: tensor<6xf32>) -> tensor<6xf32> {
  return %x : tensor<6xf32>
}
func.func @main(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %0 = stablehlo.composite "vendor.scaled" %x {composite_attributes = {factor = 2.0 : f32}, decomposition = @scaled} : (tensor<6xf32>) -> tensor<6xf32>
  %1 = stablehlo.composite "vendor.scaled" %0 {composite_attributes = {factor = 2.0 : f32}, decomposition = @scaled} : (tensor<6xf32>) -> tensor<6xf32>
  %2 = stablehlo.composite "vendor.unknown" %1 {decomposition = @same} : (tensor<6xf32>) -> tensor<6xf32>
  %3 = stablehlo.negate %2 : tensor<6xf32>
  return %0, %1, %3 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
})";

// Two uses of one decomposition, and a composite that is declined.
TEST(Composites, OfTheProgramAreTakenByName) {
  const auto fused = std::make_shared<FusedBackend>();
  const std::vector<Literal> arguments = {ramp({6})};
  const DeviceRun whole = run(fused, kOwn, arguments);
  EXPECT_EQ(*fused->log, CallLog(2, "1 x 6 by 2"));
  EXPECT_EQ(whole.results, run(backend::make_interpreter_backend(), kOwn, arguments).results);
  int native = 0;
  for (const Placement& each : whole.info.placement) {
    if (each.kind != PlacementKind::kNative) continue;
    ++native;
    EXPECT_EQ(each.reason, "composite vendor.scaled factor=2");
  }
  EXPECT_EQ(native, 2);
}

constexpr const char* kCustomCall = R"(
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = stablehlo.custom_call @vendor.scaled(%x) {api_version = 4 : i32, backend_config = {factor = 2.0 : f32}} : (tensor<6xf32>) -> tensor<6xf32>
  %1 = stablehlo.negate %0 : tensor<6xf32>
  return %1 : tensor<6xf32>
})";

// A custom call that the device takes needs no function of the host, which stands beside it.
TEST(Composites, CustomCallsAreTakenByName) {
  const auto fused = std::make_shared<FusedBackend>();
  const std::vector<Literal> arguments = {ramp({6})};
  const DeviceRun whole = run(fused, kCustomCall, arguments);
  EXPECT_EQ(fused->offers, std::vector<std::string>{"vendor.scaled"});
  EXPECT_EQ(*fused->log, CallLog(1, "1 x 6 by 2"));
  EXPECT_EQ(whole.info.steps.calls, 1);
  EXPECT_EQ(whole.info.steps.host, 0);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(whole.results[0].get_double(i), -2 * arguments[0].get_double(i));
  }
}

// The steps of a call are its decomposition: a device that takes no calls runs the Program.
TEST(Composites, AProgramWithCallsRunsAnywhere) {
  LowerOptions all;
  all.takes_call = [](const CallOffer&) { return true; };
  const auto module = import_module(kOwn, "t.mlir");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto program = compile_to_program(**module, all);
  ASSERT_TRUE(program) << program.error().to_string();
  size_t calls = 0;
  for (const program::Step& step : program->sequences[0].steps) {
    calls += std::holds_alternative<program::LibraryCallStep>(step.action) ? 1 : 0;
  }
  EXPECT_EQ(calls, 3U);
  const auto loaded = program::load_program(program::save(*program));
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  const std::vector<Literal> arguments = {ramp({6})};
  RunTarget target;
  target.client = *runtime::Client::open(backend::make_interpreter_backend());
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  RunInfo info;
  const auto results =
      run_on_device(target, *loaded, arguments, Checks(&failures, &checks), {}, &info);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ(*results, run(backend::make_interpreter_backend(), kOwn, arguments).results);
  for (const Placement& each : info.placement) EXPECT_NE(each.kind, PlacementKind::kNative);
}

}  // namespace
}  // namespace tenon::hlo
