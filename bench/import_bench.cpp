// Time of importing a program (arguments: files, text or artifact): read, build, verify.
#include <benchmark/benchmark.h>

#include "core/types/file.h"
#include "hlo/import/import.h"

namespace {

// A chain of 5,000 ops with locations, as a model's program looks.
std::string generated_program() {
  std::string text =
      "module @chain {\n  func.func public @main(%arg0: tensor<64x64xf32>, "
      "%arg1: tensor<64xf32>) -> tensor<64x64xf32> {\n";
  const std::string t = "tensor<64x64xf32>";
  std::string previous = "%arg0";
  for (int i = 0; i < 4999; ++i) {
    const std::string name = fmt::format("%v{}", i);
    const std::string last = i == 0 ? "%arg0" : fmt::format("%v{}", i - 1);
    std::string op;
    switch (i % 5) {
      case 0:
        op = fmt::format("stablehlo.add {}, %arg0 : {}", last, t);
        break;
      case 1:
        op =
            fmt::format("stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<64xf32>) -> {}", t);
        break;
      case 2:
        op = fmt::format("stablehlo.multiply {}, %v{} : {}", last, i - 2, t);
        break;
      case 3:
        op = fmt::format(
            "stablehlo.dot_general {}, %arg0, contracting_dims = [1] x [0], precision = "
            "[DEFAULT, DEFAULT] : ({}, {}) -> {}",
            last, t, t, t);
        break;
      default:
        op = fmt::format("stablehlo.tanh {} : {}", last, t);
    }
    text += fmt::format("    {} = {} loc(\"model.py\":{}:4)\n", name, op, i + 1);
    previous = name;
  }
  return text + fmt::format("    return {} : {}\n  }}\n}}\n", previous, t);
}

void import_bytes(benchmark::State& state, const std::string& bytes) {
  for (auto _ : state) {
    auto module = tenon::hlo::import_module(bytes, "bench");
    if (!module) {
      state.SkipWithError(module.error().to_string().c_str());
      return;
    }
    benchmark::DoNotOptimize(module);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::string generated = generated_program();
  benchmark::RegisterBenchmark("import/text_5000_ops", [&](benchmark::State& s) {
    import_bytes(s, generated);
  })->Unit(benchmark::kMillisecond);
  for (int i = 1; i < argc; ++i) {
    const auto bytes = tenon::read_file(argv[i]);
    if (!bytes) {
      fmt::print(stderr, "{}\n", bytes.error().to_string());
      return 1;
    }
    benchmark::RegisterBenchmark(argv[i], [bytes = *bytes](benchmark::State& s) {
      import_bytes(s, bytes);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
