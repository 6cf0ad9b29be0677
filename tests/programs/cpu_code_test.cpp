// The CPU backend's code for whole programs: LLVM IR after the passes, the steps of a Program that
// become one function, and the same bits for any number of threads. (cpu_test tests the results of
// kernels.)
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "backends/cpu/cpu.h"
#include "backends/llvm/host.h"
#include "core/backend/layers/cache/cache.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "hlo/driver/run.h"
#include "hlo/import/import.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<hlo::Module> module_of(const std::string& text) {
  auto module = hlo::import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  return *std::move(module);
}

// A folder that is removed by the destructor.
class Folder {
 public:
  Folder() : path_(testing::TempDir() + "/tenon-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~Folder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Made {
  hlo::Compilation compilation;
  std::string code;  ///< LLVM IR after the passes, of all modules.
};

Made made_of(const std::string& text) {
  const Folder folder;
  setenv("TENON_CPU_DUMP", folder.path().c_str(), 1);
  const auto backend = backend::make_cpu_backend(1);
  auto compilation = hlo::compile(*module_of(text), *backend, backend->devices().value()[0].target);
  unsetenv("TENON_CPU_DUMP");
  EXPECT_TRUE(compilation) << compilation.error().to_string();
  Made made = {*std::move(compilation), ""};
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string name = entry.path().string();
    if (name.ends_with(".before.ll") || !name.ends_with(".ll")) continue;
    made.code += read_file(name).value();
  }
  EXPECT_FALSE(made.code.empty());
  return made;
}

int64_t count(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), expression), {});
}

// The number of vectors of at least a host register.
int64_t wide(const std::string& code, const std::string& what) {
  int64_t found = 0;
  const std::regex expression(what + R"(\D*<(\d+) x float>)");
  for (std::sregex_iterator at(code.begin(), code.end(), expression), end; at != end; ++at) {
    found += std::stoll((*at)[1].str()) * 4 >= codegen::host().vector_bytes ? 1 : 0;
  }
  return found;
}

bool within_one_segment(const Made& made) {
  return made.compilation.compiled.segments.size() == 1 &&
         std::ranges::all_of(made.compilation.placement, [](const hlo::Placement& each) {
           return each.kind == hlo::PlacementKind::kNative || each.reason == "within a segment";
         });
}

// Whole registers; a masked one if the last has fewer elements.
TEST(CpuCode, LanesAreVectors) {
  const auto code_for = [](int64_t elements) {
    const std::string type = fmt::format("tensor<{}xf32>", elements);
    return made_of(fmt::format(R"(func.func @main(%x: {0}) -> {0} {{
  %0 = stablehlo.multiply %x, %x : {0}
  %1 = stablehlo.add %0, %x : {0}
  return %1 : {0}
}})",
                               type))
        .code;
  };
  const std::string whole = code_for(1024);
  EXPECT_GT(wide(whole, "= load "), 0);
  EXPECT_GT(wide(whole, "= fmul "), 0);
  EXPECT_GT(wide(whole, "store "), 0);
  EXPECT_EQ(count(whole, R"(@llvm\.masked)"), 0);
  const std::string part = code_for(1003);
  EXPECT_GT(wide(part, "= fmul "), 0);
  EXPECT_GT(wide(part, R"(call void @llvm\.masked\.store\.[\w.]+\()"), 0);
  EXPECT_GT(count(part, R"(= call <\d+ x float> @llvm\.masked\.load\.)"), 0);
  EXPECT_EQ(count(part, R"((load|store) float)"), 0);
  // Only the last vector has a mask: a body that is one `if` on its index is a shorter loop.
  EXPECT_GT(wide(part, "= load "), 0);
  EXPECT_EQ(count(part, R"(@llvm\.vector\.reduce\.or)"), 0);
  // K8: the sum of a product is two operations.
  EXPECT_EQ(count(whole + part, R"(@llvm\.fma|@llvm\.fmuladd| contract | fast )"), 0);
}

// A few numbers of 64 bits, of which others are made, do not halve the lanes of 160 of 32 bits, and
// a chain of few values at a time is computed for two vectors together.
TEST(CpuCode, RandomBitsFillVectors) {
  constexpr int64_t kCount = 5003;
  constexpr int kRounds = 40;
  std::string text = R"(func.func @main(%k: tensor<ui32>) -> tensor<Nxui32> {
  %i = stablehlo.iota dim = 0 : tensor<Nxui64>
  %x0 = stablehlo.convert %i : (tensor<Nxui64>) -> tensor<Nxui32>
  %a = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<ui32>) -> tensor<Nxui32>
  %b = stablehlo.constant dense<19> : tensor<Nxui32>
)";
  for (int i = 0; i < kRounds; ++i) {
    text += fmt::format(
        "  %l{0} = stablehlo.shift_left %x{0}, %b : tensor<Nxui32>\n"
        "  %r{0} = stablehlo.shift_right_logical %x{0}, %b : tensor<Nxui32>\n"
        "  %t{0} = stablehlo.xor %l{0}, %r{0} : tensor<Nxui32>\n"
        "  %x{1} = stablehlo.add %t{0}, %a : tensor<Nxui32>\n",
        i, i + 1);
  }
  text += fmt::format("  return %x{} : tensor<Nxui32>\n}}", kRounds);
  for (size_t at = 0; (at = text.find("<Nx", at)) != std::string::npos;)
    text.replace(at, 3, fmt::format("<{}x", kCount));
  const Made made = made_of(text);
  EXPECT_EQ(made.compilation.placement.size(), 1U);
  int64_t vectors = 0;
  const std::regex expression(R"(= (?:x?or|or disjoint) <(\d+) x i32>)");
  for (std::sregex_iterator at(made.code.begin(), made.code.end(), expression), end; at != end;
       ++at, ++vectors) {
    EXPECT_GE(std::stoll((*at)[1].str()) * 4, 2 * codegen::host().vector_bytes);
  }
  EXPECT_GE(vectors, kRounds);
  hlo::RunTarget target;
  target.client = runtime::Client::open(backend::make_cpu_backend(1)).value();
  const std::vector<Literal> arguments = {Literal::scalar_integer(ElementType::kU32, 77)};
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  const auto results =
      hlo::run_on_device(target, *module_of(text), arguments, hlo::Checks(&failures, &checks), {});
  ASSERT_TRUE(results) << results.error().to_string();
  for (int64_t i = 0; i < kCount; ++i) {
    auto x = static_cast<uint32_t>(i);
    for (int round = 0; round < kRounds; ++round) x = (x << 19 ^ x >> 19) + 77;
    ASSERT_EQ((*results)[0].get_integer(i), x) << i;
  }
}

// LLVM 19 has no vectors of halves for processors of x86 without AVX512-FP16, and loses NaNs there:
// bits_test has the values.
TEST(CpuCode, HalvesAreComparedAsFloats) {
#ifndef __x86_64__
  GTEST_SKIP() << "for x86";
#endif
  const std::string code = made_of(R"(
func.func @main(%x: tensor<1024xf16>, %y: tensor<1024xf16>) -> tensor<1024xf16> {
  %0 = stablehlo.minimum %x, %y : tensor<1024xf16>
  %1 = stablehlo.maximum %0, %y : tensor<1024xf16>
  %2 = stablehlo.compare GT, %1, %x : (tensor<1024xf16>, tensor<1024xf16>) -> tensor<1024xi1>
  %3 = stablehlo.select %2, %x, %1 : tensor<1024xi1>, tensor<1024xf16>
  return %3 : tensor<1024xf16>
})")
                               .code;
  EXPECT_GT(count(code, R"(fcmp \w+ <\d+ x float>)"), 0) << code;
  EXPECT_EQ(count(code, R"(fcmp \w+ <\d+ x half>)"), 0) << code;
  EXPECT_GT(count(code, R"(@llvm\.minimum\.v\d+f32\()"), 0) << code;
  EXPECT_GT(count(code, R"(@llvm\.maximum\.v\d+f32\()"), 0);
  EXPECT_EQ(count(code, R"(@llvm\.(minimum|maximum)\.v\d+f16)"), 0) << code;
}

TEST(CpuCode, SumsOfRowsAreVectors) {
  const Made made = made_of(R"(func.func @main(%x: tensor<64x1000xf32>) -> tensor<64xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<64x1000xf32>, tensor<f32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
})");
  EXPECT_GT(wide(made.code, "= load "), 0);
  EXPECT_GT(wide(made.code, "= fadd "), 0);
}

// The passes of a sort call one function, on several threads: copies of it would take as long to
// compile again.
TEST(CpuCode, PassesOfASortAreOneFunction) {
  const Made made = made_of(R"(func.func @main(%x: tensor<65536xi32>) -> tensor<65536xi32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %p = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<65536xi32>) -> tensor<65536xi32>
  return %0 : tensor<65536xi32>
})");
  EXPECT_TRUE(within_one_segment(made)) << hlo::summary(made.compilation.placement);
  EXPECT_GE(count(made.code, R"(call i1 @tenon_run_tasks\(ptr nonnull @tenon_kernel_1,)"), 3);
  EXPECT_EQ(count(made.code, R"(define .*void @tenon_direct_1\()"), 1);
}

// A cross product: slices, three sums of products, a concatenation and a transpose are one kernel,
// whose accesses are vectors.
TEST(CpuCode, RowsOfThreeAreVectors) {
  std::string body;
  const auto column = [&](int k) {
    body += fmt::format(
        "%s{0} = stablehlo.slice %x [0:5000, {0}:{1}] : (tensor<5000x3xf32>) -> "
        "tensor<5000x1xf32>\n"
        "%c{0} = stablehlo.reshape %s{0} : (tensor<5000x1xf32>) -> tensor<5000xf32>\n",
        k, k + 1);
  };
  for (int k = 0; k < 3; ++k) column(k);
  for (int k = 0; k < 3; ++k) {
    body += fmt::format(
        "%p{0} = stablehlo.multiply %c{0}, %c{1} : tensor<5000xf32>\n"
        "%d{0} = stablehlo.subtract %p{0}, %c{2} : tensor<5000xf32>\n"
        "%r{0} = stablehlo.reshape %d{0} : (tensor<5000xf32>) -> tensor<1x5000xf32>\n",
        k, (k + 1) % 3, (k + 2) % 3);
  }
  const Made made = made_of(fmt::format(
      "func.func @main(%x: tensor<5000x3xf32>) -> tensor<5000x3xf32> {{\n{}"
      "%j = stablehlo.concatenate %r0, %r1, %r2, dim = 0 : (tensor<1x5000xf32>, "
      "tensor<1x5000xf32>, "
      "tensor<1x5000xf32>) -> tensor<3x5000xf32>\n"
      "%t = stablehlo.transpose %j, dims = [1, 0] : (tensor<3x5000xf32>) -> tensor<5000x3xf32>\n"
      "return %t : tensor<5000x3xf32>\n}}",
      body));
  EXPECT_EQ(made.compilation.placement.size(), 1U);
  EXPECT_GT(wide(made.code, "store "), 0);
  EXPECT_EQ(count(made.code, R"(@llvm\.masked\.(gather|scatter))"), 0);
}

// Tiles within an array of any size are transposed in registers.
TEST(CpuCode, TransposesOfAnySizeAreInRegisters) {
  for (const int size : {1000, 1024}) {
    const Made made =
        made_of(fmt::format("func.func @main(%x: tensor<{0}x{0}xf32>) -> tensor<{0}x{0}xf32> {{\n"
                            "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<{0}x{0}xf32>) -> "
                            "tensor<{0}x{0}xf32>\nreturn %t : tensor<{0}x{0}xf32>\n}}",
                            size));
    EXPECT_GT(count(made.code, "= shufflevector <[0-9]+ x float>"), 6) << size;
  }
}

// A loop over scalars and small arrays is one function that carries its values in registers.
TEST(CpuCode, CarriesOfLoopsAreRegisters) {
  const Made made = made_of(
      R"(func.func @main(%a: tensor<3x3xf64>, %n: tensor<i64>) -> (tensor<3x3xf64>, tensor<i64>) {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %0:2 = stablehlo.while(%m = %a, %i = %zero) : tensor<3x3xf64>, tensor<i64>
  cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s = stablehlo.dot_general %m, %a, contracting_dims = [1] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %j = stablehlo.add %i, %one : tensor<i64>
    stablehlo.return %s, %j : tensor<3x3xf64>, tensor<i64>
  }
  return %0#0, %0#1 : tensor<3x3xf64>, tensor<i64>
})");
  EXPECT_EQ(count(made.code, R"(= alloca )"), 0);
  EXPECT_GE(count(made.code, R"(= phi double )"), 9);
  EXPECT_GE(count(made.code, R"(= phi i64 )"), 1);
}

// The same holds for a loop that reads and writes one element of long arrays per iteration: it
// stores only that element.
TEST(CpuCode, CarriesOfLongScansAreRegisters) {
  const Made made = made_of(
      R"(func.func @main(%x: tensor<20000xf32>, %y: tensor<20000xf32>, %c: tensor<f32>) -> (tensor<f32>, tensor<20000xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<20000> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %s = %c, %ys = %y) : tensor<i32>, tensor<f32>, tensor<20000xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %e = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<20000xf32>, tensor<i32>) -> tensor<1xf32>
    %f = stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>
    %g = stablehlo.multiply %s, %f : tensor<f32>
    %h = stablehlo.reshape %s : (tensor<f32>) -> tensor<1xf32>
    %u = stablehlo.dynamic_update_slice %ys, %h, %i : (tensor<20000xf32>, tensor<1xf32>, tensor<i32>) -> tensor<20000xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %g, %u : tensor<i32>, tensor<f32>, tensor<20000xf32>
  }
  return %0#1, %0#2 : tensor<f32>, tensor<20000xf32>
})");
  EXPECT_TRUE(within_one_segment(made)) << hlo::summary(made.compilation.placement);
  EXPECT_EQ(count(made.code, R"(= alloca )"), 0);
  EXPECT_EQ(count(made.code, R"(= phi i(32|64) )"), 1);
  EXPECT_GE(count(made.code, R"(= phi float )"), 1);
  // The number of each iteration, and the last one.
  EXPECT_EQ(count(made.code, R"(store float )"), 2);
}

// Loops, branches and contractions of a Program are one function with one block of temporaries.
TEST(CpuCode, AProgramIsOneFunction) {
  const Made made = made_of(
      R"(func.func @main(%x: tensor<64x2048xf32>, %w: tensor<2048x2048xf32>, %b: tensor<i1>) -> tensor<64x2048xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%m = %x, %i = %zero) : tensor<64x2048xf32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s = stablehlo.dot_general %m, %w, contracting_dims = [1] x [0] : (tensor<64x2048xf32>, tensor<2048x2048xf32>) -> tensor<64x2048xf32>
    %t = stablehlo.tanh %s : tensor<64x2048xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %t, %j : tensor<64x2048xf32>, tensor<i32>
  }
  %1 = "stablehlo.if"(%b) ({
    %c = stablehlo.negate %0#0 : tensor<64x2048xf32>
    stablehlo.return %c : tensor<64x2048xf32>
  }, {
    %c = stablehlo.reverse %0#0, dims = [1] : tensor<64x2048xf32>
    stablehlo.return %c : tensor<64x2048xf32>
  }) : (tensor<i1>) -> tensor<64x2048xf32>
  return %1 : tensor<64x2048xf32>
})");
  EXPECT_TRUE(within_one_segment(made)) << hlo::summary(made.compilation.placement);
  EXPECT_EQ(count(made.code, R"(define \S* ?\S* ?@tenon_segment\()"), 1);
  EXPECT_EQ(count(made.code, R"(@malloc|@calloc|@pthread|@_Znw|@_Zna)"), 0);
  EXPECT_GT(made.compilation.compiled.program.temporary_bytes, 0);
}

// Kernels after a large product run on one group of rows after the other.
TEST(CpuCode, KernelsFollowAContractionRowByRow) {
  const auto dense = [](int64_t rows, int64_t columns) {
    return fmt::format(
        R"(func.func @main(%x: tensor<{0}x256xf32>, %w: tensor<256x{1}xf32>, %b: tensor<{1}xf32>) -> tensor<{0}x{1}xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<{0}x256xf32>, tensor<256x{1}xf32>) -> tensor<{0}x{1}xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<{1}xf32>) -> tensor<{0}x{1}xf32>
  %2 = stablehlo.add %0, %1 : tensor<{0}x{1}xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<{0}x{1}xf32>
  %4 = stablehlo.maximum %2, %3 : tensor<{0}x{1}xf32>
  return %4 : tensor<{0}x{1}xf32>
}})",
        rows, columns);
  };
  EXPECT_GT(count(made_of(dense(2048, 512)).code, "@tenon_epilogue_0"), 0);
  EXPECT_EQ(count(made_of(dense(64, 64)).code, "@tenon_epilogue_0"), 0);
}

// --- Threads

Literal inexact(const Dims& dims) {
  Literal x(Shape(ElementType::kF32, dims));
  Random random(5);
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.set_double(i, static_cast<double>(random.below(1'000'000)) / 1e6 - 0.4);
  }
  return x;
}

// Sums whose value depends on their order: the number of threads does not change it.
TEST(CpuCode, ThreadsChangeNoBit) {
  const char* const programs[] = {
      R"(func.func @main(%x: tensor<1024x1024xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
})",
      R"(func.func @main(%x: tensor<1024x1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : tensor<1024x1024xf32>
  %0 = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [0] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %1 = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  return %0, %1 : tensor<1024xf32>, tensor<1024xf32>
})",
      R"(func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %t = stablehlo.tanh %0 : tensor<512x512xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%t init: %z) applies stablehlo.add across dimensions = [1] : (tensor<512x512xf32>, tensor<f32>) -> tensor<512xf32>
  return %t, %1 : tensor<512x512xf32>, tensor<512xf32>
})"};
  for (const char* const text : programs) {
    const auto module = module_of(text);
    const bool is_product = std::string_view(text).find("dot_general") != std::string_view::npos;
    const std::vector<Literal> arguments =
        is_product ? std::vector{inexact({512, 512}), inexact({512, 512})}
                   : std::vector{inexact({1024, 1024})};
    std::vector<Literal> first;
    for (const size_t threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(threads);
      const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
      hlo::RunTarget target;
      target.client = runtime::Client::open(backend::make_cpu_backend(1)).value();
      std::vector<hlo::CheckFailure> failures;
      int64_t checks = 0;
      const auto results =
          hlo::run_on_device(target, *module, arguments, hlo::Checks(&failures, &checks), {});
      ASSERT_TRUE(results) << results.error().to_string();
      if (first.empty()) first = *results;
      EXPECT_EQ(*results, first);
    }
  }
}

// --- Constant weights

// An array of numbers that sums round, and its text as a constant.
Literal weights_of(const Dims& dims, ElementType type = ElementType::kF32) {
  Literal literal(Shape(type, dims));
  Random random(static_cast<uint64_t>(literal.element_count()));
  for (int64_t i = 0; i < literal.element_count(); ++i)
    literal.set_double(i, static_cast<double>(random.below(2001)) / 999 - 1);
  return literal;
}

std::string dense_of(const Literal& literal) {
  std::string text = "dense<\"0x";
  for (const std::byte each : literal.data()) text += fmt::format("{:02X}", each);
  return text + "\">";
}

// A program of x, whose other values are weights: parameters, or constants.
struct Weighted {
  std::string x, result, body;  ///< Types; ops that read %x and %w0, %w1 …, and give %r.
  std::vector<Literal> weights;

  std::string text(bool constant) const {
    std::string parameters = "%x: " + x, constants;
    for (size_t i = 0; i < weights.size(); ++i) {
      const std::string type =
          fmt::format("tensor<{}x{}>", fmt::join(weights[i].shape().dims(), "x"),
                      name_of(weights[i].element_type()));
      if (constant) {
        constants +=
            fmt::format("  %w{} = stablehlo.constant {} : {}\n", i, dense_of(weights[i]), type);
      } else {
        parameters += fmt::format(", %w{}: {}", i, type);
      }
    }
    return fmt::format("func.func @main({}) -> {} {{\n{}{}\n  return %r : {}\n}}", parameters,
                       result, constants, body, result);
  }

  std::vector<Literal> run(bool constant, const Literal& argument) const {
    hlo::RunTarget target;
    target.client = runtime::Client::open(backend::make_cpu_backend(1)).value();
    std::vector<Literal> arguments = {argument};
    if (!constant) arguments.insert(arguments.end(), weights.begin(), weights.end());
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    const auto results = hlo::run_on_device(target, *module_of(text(constant)), arguments,
                                            hlo::Checks(&failures, &checks), {});
    EXPECT_TRUE(results) << results.error().to_string();
    return results ? *results : std::vector<Literal>{};
  }
};

// A product, one in a loop, one on the other side of a transpose, and a convolution.
std::vector<Weighted> weighted() {
  return {
      {"tensor<30x96xf32>",
       "tensor<30x256xf32>",
       "  %d = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] : (tensor<30x96xf32>, "
       "tensor<96x256xf32>) -> tensor<30x256xf32>\n"
       "  %r = stablehlo.tanh %d : tensor<30x256xf32>",
       {weights_of({96, 256})}},
      {"tensor<3x20x96xf64>",
       "tensor<3x20x128xf64>",
       "  %r = stablehlo.dot_general %x, %w0, contracting_dims = [2] x [1] : (tensor<3x20x96xf64>, "
       "tensor<128x96xf64>) -> tensor<3x20x128xf64>",
       {weights_of({128, 96}, ElementType::kF64)}},
      {"tensor<16x128xf32>",
       "tensor<16x128xf32>",
       R"(  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %l:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<16x128xf32>
  cond {
    %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %d = stablehlo.dot_general %h, %w0, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x128xf32>) -> tensor<16x128xf32>
    %t = stablehlo.tanh %d : tensor<16x128xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %t : tensor<i32>, tensor<16x128xf32>
  }
  %r = stablehlo.add %l#1, %x : tensor<16x128xf32>)",
       {weights_of({128, 128})}},
      {"tensor<1x14x14x64xf32>",
       "tensor<1x14x14x96xf32>",
       "  %c = stablehlo.convolution(%x, %w0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, "
       "f], "
       "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
       "i64} : (tensor<1x14x14x64xf32>, tensor<3x3x64x96xf32>) -> tensor<1x14x14x96xf32>\n"
       "  %r = stablehlo.tanh %c : tensor<1x14x14x96xf32>",
       {weights_of({3, 3, 64, 96})}}};
}

// Constant weights are laid out for tiles, and give the bits of the same ones as arguments. What is
// in memory is the panels alone.
TEST(CpuCode, ConstantWeightsArePanels) {
  for (const Weighted& program : weighted()) {
    SCOPED_TRACE(program.body);
    const auto type = program.weights[0].element_type();
    Literal x =
        Literal(Shape(type, module_of(program.text(true))->entry()->parameter(0).type().dims()));
    Random random(5);
    for (int64_t i = 0; i < x.element_count(); ++i)
      x.set_double(i, static_cast<double>(random.below(1001)) / 499 - 1);
    EXPECT_EQ(program.run(true, x), program.run(false, x));
    if (codegen::host().vector_bytes < 32) continue;
    const Made made = made_of(program.text(true));
    int64_t large = 0;
    for (const Literal& constant : made.compilation.compiled.program.constants) {
      if (constant.shape().byte_size() < 4096) continue;
      ++large;
      EXPECT_EQ(constant.element_count(), program.weights[0].element_count());
      EXPECT_GT(constant.shape().dims().size(), program.weights[0].shape().dims().size());
    }
    EXPECT_EQ(large, 1);
  }
}

// The cache knows code for panels from code for matrices; a saved program has its panels.
TEST(CpuCode, PanelsAreInTheCache) {
  const Weighted program = weighted()[0];
  const Folder folder;
  const auto compiled = [&](bool constant) {
    const backend::CacheLayer layer =
        backend::make_cache_layer(backend::make_cpu_backend(1), {folder.path()});
    const auto made = hlo::compile(*module_of(program.text(constant)), *layer.backend,
                                   layer.backend->devices().value()[0].target);
    EXPECT_TRUE(made) << made.error().to_string();
    return layer.counts->compiled.load();
  };
  EXPECT_EQ(compiled(false), 2);  // The plan of the product, and the segment.
  EXPECT_EQ(compiled(true), 3);   // Whether a product with panels has a plan, too.
  EXPECT_EQ(compiled(true), 0);
}

// --- The cache

// For a program that is in the cache, LLVM does not run again; another process might have compiled
// it.
TEST(CpuCode, TheCacheHasWholePrograms) {
  const char* const text =
      R"(func.func @main(%x: tensor<40x50xf32>, %y: tensor<50x60xf32>) -> tensor<40x60xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<40x50xf32>, tensor<50x60xf32>) -> tensor<40x60xf32>
  %1 = stablehlo.tanh %0 : tensor<40x60xf32>
  return %1 : tensor<40x60xf32>
})";
  const Folder folder;
  const auto counts_of = [&] {
    const backend::CacheLayer layer =
        backend::make_cache_layer(backend::make_cpu_backend(1), {folder.path()});
    const auto made =
        hlo::compile(*module_of(text), *layer.backend, layer.backend->devices().value()[0].target);
    EXPECT_TRUE(made) << made.error().to_string();
    return std::pair(layer.counts->found.load(), layer.counts->compiled.load());
  };
  EXPECT_EQ(counts_of().second, 2);  // The plan of the contraction, and the segment.
  EXPECT_EQ(counts_of().second, 0);
}

// Lines of LLVM IR: of all functions, and of the longest one.
struct Lines {
  int64_t all = 0;
  int64_t longest = 0;
};

Lines lines_of(const std::string& code) {
  Lines lines;
  int64_t here = 0;
  size_t at = 0;
  while (at < code.size()) {
    const size_t end = std::min(code.find('\n', at), code.size());
    const std::string_view line = std::string_view(code).substr(at, end - at);
    here = line.starts_with("define ") ? 1 : here + 1;
    if (line == "}") {
      lines.all += here;
      lines.longest = std::max(lines.longest, here);
    }
    at = end + 1;
  }
  return lines;
}

std::string reductions(int count) {
  std::string text =
      "func.func @main(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n  %a0 = stablehlo.negate %x : "
      "tensor<32x32xf32>\n";
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        "  %v{0} = stablehlo.reduce(%a{0} init: %z) applies stablehlo.add across dimensions = [1]"
        " : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>\n"
        "  %a{1} = stablehlo.broadcast_in_dim %v{0}, dims = [{2}]"
        " : (tensor<32xf32>) -> tensor<32x32xf32>\n",
        i, i + 1, i % 2);
  }
  return text + fmt::format("  return %a{} : tensor<32x32xf32>\n}}\n", count);
}

std::string updates(int count) {
  std::string text =
      "func.func @main(%a0: tensor<1024xf32>, %i: tensor<i32>, %j: tensor<i32>) -> "
      "tensor<1024xf32> {\n";
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        "  %s{0} = stablehlo.dynamic_slice %a{0}, %i, sizes = [16]"
        " : (tensor<1024xf32>, tensor<i32>) -> tensor<16xf32>\n"
        "  %a{1} = stablehlo.dynamic_update_slice %a{0}, %s{0}, %j"
        " : (tensor<1024xf32>, tensor<16xf32>, tensor<i32>) -> tensor<1024xf32>\n",
        i, i + 1);
  }
  return text + fmt::format("  return %a{} : tensor<1024xf32>\n}}\n", count);
}

// LLVM takes more than linear time per function: longer programs become more functions, not longer
// ones.
TEST(CpuCode, LongProgramsBecomeManyFunctions) {
  for (const auto& program : {reductions, updates}) {
    const Lines small = lines_of(made_of(program(150)).code);
    const Lines large = lines_of(made_of(program(600)).code);
    EXPECT_GT(small.all, 0);
    EXPECT_LE(large.all, 5 * small.all);
    EXPECT_LE(large.longest, 2 * small.longest);
  }
}

}  // namespace
}  // namespace tenon
