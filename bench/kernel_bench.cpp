// bench/: benchmarks: imports, kernels, compile time.
//
// Times kernels on an open device, without a framework: those of the programs in bench/rows
// (bench/peers/export writes them), and one that adds two numbers, which shows the cost of a
// launch.
//
//   kernel_bench [--device NAME] [PROGRAM.mlir …] [--benchmark_…]
//
// `launch/PROGRAM/KERNEL` is the time from a launch to its event; bytes_per_second counts each
// buffer that the kernel reads or writes once, ops/s its arithmetic as the target gets it (math
// functions count as arithmetic if they have been expanded). `compile/…` is the backend's
// compilation of that kernel alone.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>

#include "backends/backends.h"
#include "core/base/file.h"
#include "core/kernel/analysis/cost.h"
#include "core/kernel/ir/builder.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace {

using tenon::Result;
using tenon::Status;
namespace backend = tenon::backend;
namespace kernel = tenon::kernel;

// Prints an error and ends the program.
[[noreturn]] void fail(const std::string& text) {
  fmt::print(stderr, "kernel_bench: {}\n", text);
  std::exit(1);
}
template <class T>
T must(Result<T> result) {
  if (!result) fail(result.error().to_string());
  return *std::move(result);
}
void must(const Status& status) {
  if (!status.ok()) fail(status.to_string());
}

struct BenchTarget {
  std::shared_ptr<backend::Backend> backend;
  backend::TargetInfo info;
  std::unique_ptr<backend::Device> device;
};

BenchTarget open_target(const std::string& text) {
  add_backends(backend::Registry::instance());
  const auto name = must(backend::parse_device_name(text));
  BenchTarget target;
  target.backend = must(backend::Registry::instance().get(name.backend));
  const auto devices = must(target.backend->devices());
  if (name.index >= devices.size()) fail(fmt::format("there is no device {}", text));
  target.info = devices[name.index].target;
  target.device = must(target.backend->open(name.index));
  return target;
}

// A kernel that is legal for the target, with the scalars of its launch.
struct Case {
  std::string name;
  kernel::Kernel kernel;
  std::vector<uint64_t> scalars;
};

// Memory for each buffer of a kernel, filled with random numbers for f32, else with zeros.
std::vector<backend::MemoryAddress> allocate_buffers(backend::Device& device,
                                                     const kernel::Kernel& k) {
  std::vector<backend::MemoryAddress> places;
  std::mt19937 random(1);
  std::normal_distribution<float> numbers;
  for (size_t i = 0; i < k.buffer_count; ++i) {
    const kernel::Memory& memory = k.memories[i];
    std::vector<std::byte> bytes(static_cast<size_t>(std::max<int64_t>(memory.bytes(), 1)));
    if (memory.type == tenon::ElementType::kF32) {
      for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
        const float number = numbers(random);
        std::memcpy(&bytes[at], &number, sizeof number);
      }
    }
    const auto size = static_cast<int64_t>(bytes.size());
    places.push_back({must(device.allocate(0, size)), 0, nullptr});
    must(device.copy(0, places.back(), backend::MemoryAddress::of_host(bytes.data()), size));
    const backend::EventHandle copied = must(device.record(0));
    must(device.await(copied, -1));  // The bytes must live until here.
    device.release(copied);
  }
  return places;
}

void time_launch(benchmark::State& state, const BenchTarget& target, const Case& each) {
  backend::Device& device = *target.device;
  const kernel::Kernel* kernels[] = {&each.kernel};
  const backend::Compiled compiled = must(target.backend->compile(target.info, kernels));
  if (!compiled.declined.empty()) {
    state.SkipWithError(compiled.declined[0].text.c_str());
    return;
  }
  const backend::ModuleHandle module = must(device.load(compiled.binary, kernels));
  const std::vector<backend::MemoryAddress> places = allocate_buffers(device, each.kernel);
  backend::KernelLaunch launch;
  launch.module = module;
  launch.buffers = places;
  launch.scalars = each.scalars;
  launch.label = each.name.c_str();
  for (auto _ : state) {
    must(device.launch(0, launch));
    const backend::EventHandle done = must(device.record(0));
    must(device.await(done, -1));
    device.release(done);
  }
  const kernel::Cost cost = kernel::cost_of(each.kernel);
  state.SetBytesProcessed(state.iterations() * (cost.bytes_read + cost.bytes_written));
  state.counters["ops/s"] = benchmark::Counter(
      (cost.flops + cost.transcendentals) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
  for (const backend::MemoryAddress& place : places) device.free(place.memory);
  device.unload(module);
}

void time_compile(benchmark::State& state, const BenchTarget& target, const Case& each) {
  const kernel::Kernel* kernels[] = {&each.kernel};
  for (auto _ : state) {
    auto compiled = must(target.backend->compile(target.info, kernels));
    benchmark::DoNotOptimize(compiled);
  }
}

// The kernels that a program's steps launch, each once.
void add_cases(std::vector<Case>& cases, const BenchTarget& target, const std::string& file) {
  const auto module = must(tenon::hlo::import_module(must(tenon::read_file(file)), file));
  const auto compilation = must(tenon::hlo::compile(*module, *target.backend, target.info));
  const tenon::program::Program& program = compilation.compiled.program;
  const std::string stem = std::filesystem::path(file).stem().string();
  std::set<uint32_t> seen;
  for (const auto& sequence : program.sequences) {
    for (const auto& step : sequence.steps) {
      const auto* launch = std::get_if<tenon::program::Launch>(&step.action);
      if (launch == nullptr || !seen.insert(launch->kernel).second) continue;
      const kernel::Kernel& k = program.kernels[launch->kernel];
      cases.push_back({stem + "/" + k.name, k, launch->scalars});
    }
  }
}

Case add_two_numbers(const BenchTarget& target) {
  using tenon::ElementType;
  kernel::Builder b("add");
  const auto x = b.buffer("x", ElementType::kF32, {2}, kernel::Access::kIn);
  const auto y = b.buffer("y", ElementType::kF32, {1}, kernel::Access::kOut);
  b.grid({1});
  b.lanes({1}, [&](const kernel::Values& i) {
    const auto sum =
        b.binary(kernel::OpCode::kAdd, b.load(x, {b.index(0)}), b.load(x, {b.index(1)}));
    b.store(sum, y, {i[0]});
  });
  kernel::Kernel made = b.finish();
  if (!target.info.accepts_all)
    made = must(kernel::legalize(made, backend::features_of(target.info)));
  return {"two_numbers/add", std::move(made), {}};
}

std::vector<std::string> programs_of_rows() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE "/bench/rows")) {
    files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::string device = "cpu";
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--device" && i + 1 < argc) {
      device = argv[++i];
    } else if (word.starts_with("-")) {
      fail(fmt::format("no such option: {}", word));
    } else {
      files.emplace_back(word);
    }
  }
  if (files.empty()) files = programs_of_rows();
  BenchTarget target = open_target(device);
  std::vector<Case> cases = {add_two_numbers(target)};
  for (const std::string& file : files) add_cases(cases, target, file);
  for (const Case& each : cases) {
    benchmark::RegisterBenchmark(("launch/" + each.name).c_str(),
                                 [&](benchmark::State& state) { time_launch(state, target, each); })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  }
  for (const Case& each : cases) {
    benchmark::RegisterBenchmark(
        ("compile/" + each.name).c_str(),
        [&](benchmark::State& state) { time_compile(state, target, each); })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
