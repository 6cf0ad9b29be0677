// The time of importing a program: read, build, verify. Measures the program of 5,000 ops as text
// and as artifact, and the files named as arguments. --print prints that program instead.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "core/base/file.h"
#include "hlo/import/import.h"

namespace {

// A chain of 5,000 ops with locations, similar to a model's program.
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
  if (argc == 2 && argv[1] == std::string("--print")) {
    fmt::print("{}", generated);
    return 0;
  }
  benchmark::RegisterBenchmark("import/text_5000_ops", [&](benchmark::State& s) {
    import_bytes(s, generated);
  })->Unit(benchmark::kMillisecond);
  std::vector<std::string> files = {TENON_SOURCE "/bench/chain_5000.mlirbc"};
  files.insert(files.end(), argv + 1, argv + argc);
  for (const std::string& file : files) {
    const auto bytes = tenon::read_file(file);
    if (!bytes) {
      fmt::print(stderr, "{}\n", bytes.error().to_string());
      return 1;
    }
    const std::string name = "import/" + std::filesystem::path(file).filename().string();
    benchmark::RegisterBenchmark(name.c_str(), [bytes = *bytes](benchmark::State& s) {
      import_bytes(s, bytes);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
