// Compile time must be proportional to the size of the program: measures each stage, at n and at 4
// n ops of the shapes that bench/scaling writes. The measure is heap memory allocated, which nearly
// all work in these stages needs, never time.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "core/backend/interpreter/interpreter.h"
#include "hlo/driver/run.h"
#include "hlo/import/import.h"
#include "hlo/lower/lower.h"
#include "hlo/passes/pass.h"

namespace {

std::atomic<int64_t> g_bytes{0};  // Allocated from the heap so far.

void* counted(std::size_t size, std::size_t alignment) {
  g_bytes += static_cast<int64_t>(size);
  void* const memory =
      std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Not inlined: GCC takes `free` beside a call of `operator new` for a mismatch.
[[gnu::noinline]] void uncounted(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { uncounted(memory); }

namespace tenon::hlo {
namespace {

// The program that bench/scaling writes for a shape and a number of ops.
std::string program_of(const std::string& shape, int ops) {
  const std::string command =
      fmt::format("'{}/bench/scaling' --emit {} {}", TENON_SOURCE, shape, ops);
  std::FILE* const pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string text;
  char buffer[1 << 14];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

// Bytes allocated in each stage, in order.
class Stages {
 public:
  template <class Stage>
  void run(const std::string& name, const Stage& stage) {
    const int64_t before = g_bytes;
    stage();
    bytes_.emplace_back(name, g_bytes - before);
  }
  const std::vector<std::pair<std::string, int64_t>>& bytes() const { return bytes_; }

 private:
  std::vector<std::pair<std::string, int64_t>> bytes_;
};

Stages stages_of(const std::string& shape, int ops) {
  const std::string text = program_of(shape, ops);
  Stages stages;
  std::unique_ptr<Module> module;
  stages.run("import", [&] { module = import_module(text, "t").value(); });
  const std::unique_ptr<Module> whole = module->clone();
  for (const std::string_view pass : optimizing_passes()) {
    stages.run(std::string(pass), [&] {
      const Status status = run_passes(*module, std::array{pass});
      EXPECT_TRUE(status.ok()) << status.to_string();
    });
  }
  stages.run("lowering", [&] { EXPECT_TRUE(lower_module(*module, {})); });
  const auto client = runtime::Client::open(backend::make_interpreter_backend({})).value();
  const auto& device = client->devices()[0];
  Compilation compilation;
  stages.run("compile", [&] {
    compilation = compile(*whole, client->backend(), device->info().target).value();
  });
  std::shared_ptr<runtime::Executable> executable;
  stages.run("load", [&] {
    executable = runtime::Executable::load(device, std::move(compilation.compiled), {}).value();
  });
  std::vector<runtime::BufferPtr> arguments;
  for (const Shape& shape_of_one : executable->parameters()) {
    const Literal zeros(shape_of_one);
    runtime::HostArray array;
    array.data = zeros.data().data();
    array.shape = shape_of_one;
    arguments.push_back(
        runtime::buffer_from_host(device, runtime::MemoryKind::kDevice, array)->buffer);
  }
  stages.run("execute", [&] {
    const auto execution = executable->execute(arguments);
    EXPECT_TRUE(execution) << execution.error().to_string();
    EXPECT_TRUE(execution->done.await().ok());
    EXPECT_GT(execution->steps->on_device(), 0);
  });
  return stages;
}

class Scaling : public testing::TestWithParam<std::string> {};

TEST_P(Scaling, WorkGrowsAsTheProgramDoes) {
  constexpr int kOps = 300;
  constexpr int64_t kNothing = 1 << 20;  // Too few bytes to judge growth.
  stages_of(GetParam(), 50);             // Creates the objects that a process creates once.
  const Stages small = stages_of(GetParam(), kOps);
  const Stages large = stages_of(GetParam(), 4 * kOps);
  ASSERT_EQ(small.bytes().size(), large.bytes().size());
  for (size_t i = 0; i < small.bytes().size(); ++i) {
    const auto& [stage, bytes] = small.bytes()[i];
    EXPECT_LE(large.bytes()[i].second, 5 * bytes + kNothing) << stage << ", " << bytes << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Scaling,
                         testing::Values("results", "parameters", "slices", "reduces", "moves",
                                         "dots", "constants", "functions", "operands",
                                         "elementwise", "layers"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tenon::hlo
