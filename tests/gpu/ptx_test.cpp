// tests/gpu/: tests of PTX.
//
// The GPU backend's code for whole programs: the PTX of the kernels that lowering makes, and the
// report of ptxas on it. (gpu_code_test tests kernels written by hand.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "backends/gpu/codegen/compile.h"
#include "backends/gpu/codegen/ptxas.h"
#include "backends/gpu/gpu.h"
#include "core/base/file.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::gpu {
namespace {

constexpr int32_t kChips[] = {75, 80, 90};
constexpr int64_t kMostRegisters = 128;  // 512 threads of a multiprocessor's 65,536.

// The PTX of a program's kernels: of those that are launched alone, and of each segment. ptxas is
// disabled meanwhile.
std::vector<std::string> texts_of_program(const std::string& path, int32_t chip) {
  setenv("TENON_PTXAS", "/nowhere/ptxas", 1);
  const auto backend = backend::make_gpu_backend();
  const auto module = hlo::import_module(read_file(path).value(), path);
  EXPECT_TRUE(module) << module.error().to_string();
  const auto made = hlo::compile(**module, *backend, target_of_gpu(chip), {.strict = true});
  unsetenv("TENON_PTXAS");
  EXPECT_TRUE(made) << made.error().to_string();
  std::vector<std::string> binaries;
  if (!made->compiled.binary.empty()) binaries.push_back(made->compiled.binary);
  for (const auto& segment : made->compiled.segments) binaries.push_back(segment.binary);
  std::vector<std::string> texts;
  for (const std::string& binary : binaries) {
    const auto code = load_code(binary);
    EXPECT_TRUE(code) << code.error().to_string();
    texts.push_back(code->images.at(0));
  }
  return texts;
}

std::string ptx_of_program(const std::string& path, int32_t chip) {
  const std::vector<std::string> texts = texts_of_program(path, chip);
  EXPECT_EQ(texts.size(), 1U) << path;
  return texts.at(0);
}

std::string row_program(const std::string& name) {
  return ptx_of_program(TENON_SOURCE "/bench/rows/" + name + ".mlir", 90);
}

std::vector<std::string> files_of(const std::string& folder, const std::string& name) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::filesystem::path& path = entry.path();
    const bool is_named = name.empty() ? path.extension() == ".mlir" : path.filename() == name;
    // Programs in `dynamic` need shapes first.
    if (is_named && path.parent_path().filename() != "dynamic") files.push_back(path.string());
  }
  std::ranges::sort(files);
  return files;
}

int64_t count(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), expression), {});
}

class Programs : public testing::TestWithParam<std::string> {};

// Bytes of registers that a tiled convolution spills: one of convnet_grad's does, for the places of
// its four elements of a tile.
constexpr int64_t kMostSpilledByConvolutions = 40;

void stays_in_registers(const std::string& text, const std::string& ptxas, int32_t chip) {
  EXPECT_EQ(count(text, R"(\.local\b)"), 0);
  EXPECT_GT(count(text, R"(\.entry\b)"), 0);
  if (ptxas.empty()) return;
  const auto cubin = run_ptxas(ptxas, text, chip);
  ASSERT_TRUE(cubin) << cubin.error().to_string();
  EXPECT_EQ(static_cast<int64_t>(cubin->kernels.size()), count(text, R"(\.entry\b)"));
  for (const Resources& each : cubin->kernels) {
    const bool convolution = each.symbol.find("convolution_tiles") != std::string::npos;
    EXPECT_LE(each.stack_bytes + each.spill_stores + each.spill_loads,
              convolution ? kMostSpilledByConvolutions : 0)
        << each.symbol;
    EXPECT_LE(each.registers, kMostRegisters) << each.symbol;
  }
}

// No arrays in a thread's slow local memory and no spilled registers; ptxas accepts everything.
TEST_P(Programs, StayInRegisters) {
  const std::string ptxas = find_ptxas();
  for (const int32_t chip : kChips) {
    SCOPED_TRACE(chip);
    const std::vector<std::string> texts = texts_of_program(GetParam(), chip);
    EXPECT_FALSE(texts.empty());
    for (const std::string& text : texts) stays_in_registers(text, ptxas, chip);
  }
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas: the text alone was looked at";
}

std::string name_of_test(const testing::TestParamInfo<std::string>& test) {
  const std::filesystem::path path = test.param;
  return path.stem() == "program" ? path.parent_path().filename().string() : path.stem().string();
}

INSTANTIATE_TEST_SUITE_P(Rows, Programs,
                         testing::ValuesIn(files_of(TENON_SOURCE "/bench/rows", "")), name_of_test);
INSTANTIATE_TEST_SUITE_P(Samples, Programs,
                         testing::ValuesIn(files_of(TENON_SOURCE "/samples", "program.mlir")),
                         name_of_test);

// Elementwise programs and copies access adjacent elements 16 bytes at a time.
TEST(ProgramsPtx, NeighboursMoveInRunsOf16Bytes) {
  for (const char* const name :
       {"gelu_1024x1024", "gelu_chain_1024x1024", "transpose_64x128x256_by_1_0_2"}) {
    SCOPED_TRACE(name);
    const std::string text = row_program(name);
    EXPECT_GT(count(text, R"(ld\.global\.nc\.v4\.f32)"), 0);
    EXPECT_EQ(count(text, R"(ld\.global)"), count(text, R"(ld\.global\.nc\.v4\.f32)"));
    EXPECT_EQ(count(text, R"(st\.global)"), 1);
    EXPECT_EQ(count(text, R"(st\.global\.v4\.f32)"), 1);
  }
}

// A row is processed by one kernel: read once, kept, reduced by shuffles and then through shared
// memory.
TEST(ProgramsPtx, RowsAreReducedByShufflesAndSharedMemory) {
  for (const char* const name : {"softmax_of_rows_1024x1024", "layer_norm_1024x1024"}) {
    SCOPED_TRACE(name);
    const std::string text = row_program(name);
    EXPECT_EQ(count(text, R"(\.entry\b)"), 1);
    EXPECT_EQ(count(text, R"(ld\.global\.nc\.v4\.f32)"), 1);
    EXPECT_EQ(count(text, R"(st\.global\.v4\.f32)"), 1);
    EXPECT_EQ(count(text, R"(shfl\.sync\.down)"), 10);  // Five steps for each of two reductions.
    EXPECT_GT(count(text, R"(ld\.shared)"), 0);
  }
}

// Through shared memory, so that both reads and writes are of adjacent elements.
TEST(ProgramsPtx, TransposesGoByTiles) {
  for (const char* const name :
       {"transpose_1024x1024_by_1_0", "transpose_256x4096_by_1_0", "transpose_4096x256_by_1_0",
        "transpose_64x128x256_by_0_2_1", "transpose_64x128x256_by_1_2_0",
        "transpose_64x128x256_by_2_0_1", "transpose_64x128x256_by_2_1_0"}) {
    SCOPED_TRACE(name);
    const std::string text = row_program(name);
    EXPECT_EQ(count(text, R"(\.entry\b)"), 1);
    EXPECT_EQ(count(text, R"(bar\.sync)"), 1);
    EXPECT_EQ(count(text, R"(st\.shared)"), count(text, R"(ld\.global)"));
    EXPECT_EQ(count(text, R"(ld\.shared)"), count(text, R"(st\.global)"));
  }
}

// Contractions load tiles into shared memory, 16 bytes at a time, and sum in registers.
TEST(ProgramsPtx, ContractionsGoByTiles) {
  const std::string text =
      ptx_of_program(TENON_SOURCE "/samples/transformer_block/program.mlir", 90);
  EXPECT_GT(count(text, R"(ld\.shared\.v4\.f32)"), 0);
  EXPECT_GT(count(text, R"(fma\.rn\.f32)"), 100);
}

}  // namespace
}  // namespace tenon::gpu
