// How often a kernel is verified, written and read between lowering and launch.
#include <gtest/gtest.h>

#include <atomic>

#include "core/backend/adapter/adapter.h"
#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/kernel/verify/verifier.h"
#include "hlo/driver/run.h"
#include "hlo/import/import.h"

namespace tenon::hlo {
namespace {

// `interp` without segments, as a target with f32 and integers: its kernels are legalised.
std::shared_ptr<backend::Backend> narrow_interp() {
  backend::InterpreterConfig config;
  config.segments = false;
  config.features = kernel::TargetFeatures::parse("s64,u64").value();
  return backend::make_interpreter_backend(config);
}

// Records the addresses of the kernels of the last compile and load.
class Remembering final : public backend::ForwardingBackend {
 public:
  Remembering() : ForwardingBackend(narrow_interp()) {}

  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    compiled.assign(kernels.begin(), kernels.end());
    return ForwardingBackend::compile(target, kernels);
  }
  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    class Opened final : public backend::ForwardingDevice {
     public:
      Opened(std::unique_ptr<backend::Device> inner, Remembering& owner)
          : ForwardingDevice(std::move(inner)), owner_(owner) {}
      Result<backend::ModuleHandle> load(std::string_view binary,
                                         backend::Kernels kernels) override {
        owner_.loaded.assign(kernels.begin(), kernels.end());
        return ForwardingDevice::load(binary, kernels);
      }

     private:
      Remembering& owner_;
    };
    TENON_ASSIGN(auto device, ForwardingBackend::open(index));
    return std::make_unique<Opened>(std::move(device), *this);
  }

  std::vector<const kernel::Kernel*> compiled;
  std::vector<const kernel::Kernel*> loaded;
};

const char* const kProgram = R"(func.func @main(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %0 = stablehlo.tanh %x : tensor<8xbf16>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<8xbf16>
  %2 = stablehlo.slice %1 [1:4] : (tensor<8xbf16>) -> tensor<3xbf16>
  %3 = stablehlo.concatenate %2, %1, dim = 0 : (tensor<3xbf16>, tensor<8xbf16>) -> tensor<11xbf16>
  %4 = "stablehlo.sort"(%3) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %p = stablehlo.compare LT, %a, %b : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<11xbf16>) -> tensor<11xbf16>
  %5 = stablehlo.slice %4 [0:8] : (tensor<11xbf16>) -> tensor<8xbf16>
  return %5 : tensor<8xbf16>
})";

// Runs the program; returns the number of launched kernels and of verifications.
std::pair<int64_t, int64_t> run(const std::shared_ptr<backend::Backend>& backend) {
  const auto module = import_module(kProgram, "t").value();
  RunTarget target;
  target.client = runtime::Client::open(backend).value();
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  RunInfo info;
  const int64_t before = kernel::verified_count();
  const auto results =
      run_on_device(target, *module, std::vector{Literal(Shape(ElementType::kBF16, {8}))},
                    Checks(&failures, &checks), {}, &info);
  EXPECT_TRUE(results) << results.error().to_string();
  EXPECT_EQ(info.steps.host, 0);
  return {info.steps.kernels, kernel::verified_count() - before};
}

// Once after lowering, once after legalisation.
TEST(Verification, OnceAfterLoweringAndOnceAfterLegalisation) {
  const auto [kernels, verified] = run(narrow_interp());
  EXPECT_GT(kernels, 1);
  EXPECT_EQ(verified, 2 * kernels);
}

std::atomic<int> serialized = 0;

// A plug-in reads each kernel once, and verifies none, because the host has verified them.
TEST(Verification, NoneBehindTheTable) {
  static TenonHost host = *backend::host_services();
  static const auto serialize = host.serialize;
  host.serialize = [](const TenonKernel* kernel, const TenonSink* bytes) {
    ++serialized;
    serialize(kernel, bytes);
  };
  static const auto inner = std::make_shared<Remembering>();
  const TenonBackend* const table = backend::export_backend(
      &host, nullptr, [] { return Result<std::shared_ptr<backend::Backend>>(inner); });
  ASSERT_NE(table, nullptr);
  const auto [kernels, verified] = run(backend::import_backend(table).value());
  EXPECT_GT(kernels, 1);
  EXPECT_EQ(verified, 2 * kernels);
  EXPECT_EQ(serialized, 2 * kernels);  // For compile and for load.
  EXPECT_EQ(inner->compiled.size(), static_cast<size_t>(kernels));
  EXPECT_EQ(inner->compiled, inner->loaded);
}

}  // namespace
}  // namespace tenon::hlo
