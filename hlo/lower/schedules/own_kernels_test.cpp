// Sorts, selections and Fourier transforms: the kernels that they become, and their results in
// every order of iterations and with random choices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/lower/schedules/fourier/fourier.h"
#include "hlo/lower/schedules/schedules_test_util.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"

namespace tenon::conformance {
namespace {

std::vector<Literal> interpreted(const hlo::Module& module, const std::vector<Literal>& arguments,
                                 const Choices& choices, int seed) {
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  auto results = hlo::run_interpreted(module, arguments, hlo::Checks(&failures, &checks),
                                      options_of_run(choices, seed));
  EXPECT_TRUE(results) << results.error().to_string();
  return results ? *std::move(results) : std::vector<Literal>();
}

std::vector<Literal> evaluated(const hlo::Module& module, const std::vector<Literal>& arguments) {
  auto results = hlo::Evaluator(module).run(*module.entry(), arguments);
  EXPECT_TRUE(results) << results.error().to_string();
  return results ? *std::move(results) : std::vector<Literal>();
}

// --- Fourier transforms

std::vector<Literal> waves(const hlo::Module& module) {
  Random random(7);
  Literal array(module.entry()->parameter(0).shape());
  for (int64_t k = 0; k < array.element_count(); ++k) {
    const double number = random.unit() * 2 - 1;
    if (is_complex(array.element_type())) {
      array.set_complex(k, {number, random.unit() * 2 - 1});
    } else {
      array.set_double(k, number);
    }
  }
  return {array};
}

void expect_near(const Literal& actual, const Literal& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  double square = 0;
  double error = 0;
  for (int64_t k = 0; k < actual.element_count(); ++k) {
    square += std::norm(expected.get_complex(k));
    error = std::max(error, std::abs(actual.get_complex(k) - expected.get_complex(k)));
  }
  EXPECT_LE(error, 1e-6 * std::sqrt(square)) << actual.element_count();
}

// Checks that `choices` give kernels with these names, and that they and random choices give the
// evaluator's results.
void expect_transform(const std::string& from, const std::string& to, const std::string& how,
                      const Choices& choices, const std::vector<std::string>& kernels,
                      int runs = 9) {
  const auto module = imported(fmt::format(R"(
func.func @main(%x: tensor<{0}>) -> tensor<{1}> {{
  %y = stablehlo.fft %x, type = {2} : (tensor<{0}>) -> tensor<{1}>
  return %y : tensor<{1}>
}})",
                                           from, to, how));
  EXPECT_EQ(names_of_kernels(*module, choices), kernels);
  const std::vector<Literal> arguments = waves(*module);
  const std::vector<Literal> expected = evaluated(*module, arguments);
  for (int seed = 0; seed < runs; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Literal> actual = interpreted(*module, arguments, choices, seed);
    ASSERT_EQ(actual.size(), 1u);
    expect_near(actual[0], expected[0]);
  }
}

void expect_complex(const std::string& dims, const std::string& lengths, const Choices& choices,
                    const std::vector<std::string>& kernels) {
  const std::string type = dims + "xcomplex<f32>";
  for (const std::string_view kind : {"FFT", "IFFT"}) {
    expect_transform(type, type, fmt::format("{}, length = [{}]", kind, lengths), choices, kernels);
  }
}

TEST(Fourier, LinesInScratch) {
  for (const int n :
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 22, 64, 90, 143, 360}) {
    SCOPED_TRACE(n);
    expect_complex(fmt::format("3x{}", n), std::to_string(n), {}, {"fft"});
  }
}

TEST(Fourier, AlongSeveralAxes) {
  expect_complex("2x6x20", "6, 20", {}, {"fft_axis2", "fft_axis1"});
  expect_complex("12x10x3", "12, 10, 3", {}, {"fft_axis2", "fft_axis1", "fft_axis0"});
}

TEST(Fourier, PassesThroughTemporaries) {
  expect_complex("2x1000", "1000", {{"fft_points", 100}}, {"fft_pass0", "fft_pass1"});
  expect_complex("720", "720", {{"fft_points", 40}, {"fft_lines", 3}}, {"fft_pass0", "fft_pass1"});
  expect_complex("512", "512", {{"row_scratch", 0}}, {"fft_pass0", "fft_pass1", "fft_pass2"});
  expect_complex("40x9", "40, 9", {{"row_scratch", 0}},
                 {"fft_axis1", "fft_axis0_pass0", "fft_axis0_pass1"});
}

TEST(Fourier, RealNumbers) {
  for (const int n : {1, 2, 3, 4, 6, 9, 20, 64, 250}) {
    SCOPED_TRACE(n);
    const std::string real = fmt::format("3x{}xf32", n);
    const std::string half = fmt::format("3x{}xcomplex<f32>", n / 2 + 1);
    expect_transform(real, half, fmt::format("RFFT, length = [{}]", n), {}, {"fft"});
    expect_transform(half, real, fmt::format("IRFFT, length = [{}]", n), {}, {"fft"});
  }
}

TEST(Fourier, RealNumbersThroughTemporaries) {
  const Choices choices = {{"fft_points", 30}};
  expect_transform("2x480xf32", "2x241xcomplex<f32>", "RFFT, length = [480]", choices,
                   {"fft_pass0", "fft_pass1", "fft_real"});
  expect_transform("2x241xcomplex<f32>", "2x480xf32", "IRFFT, length = [480]", choices,
                   {"fft_pass0", "fft_pass1"});
}

// The imaginary parts of the first and the last number of a half spectrum have no meaning.
TEST(Fourier, ASpectrumThatIsNoneOfRealNumbers) {
  expect_transform("9xcomplex<f32>", "16xf32", "IRFFT, length = [16]", {}, {"fft"});
  expect_transform("9xcomplex<f64>", "16xf64", "IRFFT, length = [16]", {{"row_scratch", 0}},
                   {"fft"});
}

TEST(Fourier, RadicesAndFactors) {
  using hlo::lower::factors_of;
  using hlo::lower::radices_of;
  EXPECT_EQ(radices_of(1), (std::vector<int64_t>{1}));
  EXPECT_EQ(radices_of(360), (std::vector<int64_t>{8, 9, 5}));
  EXPECT_EQ(radices_of(1024), (std::vector<int64_t>{8, 8, 4, 4}));
  EXPECT_EQ(radices_of(500), (std::vector<int64_t>{10, 10, 5}));
  EXPECT_EQ(factors_of(1000, 1000), (std::vector<int64_t>{1000}));
  for (const int64_t n : {512, 720, 1000, 1 << 18, 13 * 13 * 13 * 8, 2 * 3 * 5 * 7 * 11 * 13}) {
    int64_t radices = 1;
    for (const int64_t each : radices_of(n)) radices *= each;
    EXPECT_EQ(radices, n);
    for (const int64_t most : {13, 30, 100, 512}) {
      int64_t factors = 1;
      for (const int64_t each : factors_of(n, most)) {
        EXPECT_LE(each, most) << n;
        factors *= each;
      }
      EXPECT_EQ(factors, n);
    }
  }
}

// --- Sorts and selections

std::vector<Literal> drawn(const hlo::Module& module, int64_t distinct) {
  Random random(11);
  const int64_t least = -(distinct / 2);
  std::vector<Literal> arguments;
  for (size_t i = 0; i < module.entry()->parameter_count(); ++i) {
    Literal array(module.entry()->parameter(i).shape());
    for (int64_t k = 0; k < array.element_count(); ++k) {
      const auto number = static_cast<double>(random.below(distinct) + least);
      const bool is_nan = is_float(array.element_type()) && random.below(20) == 0;
      array.set_double(k, is_nan ? std::nan("") : number);
    }
    arguments.push_back(std::move(array));
  }
  return arguments;
}

void expect_exact(hlo::Module& module, const Choices& choices,
                  const std::vector<std::string>& kernels, int64_t distinct, int runs = 12) {
  EXPECT_EQ(names_of_kernels(module, choices), kernels);
  const std::vector<Literal> arguments = drawn(module, distinct);
  const std::vector<Literal> expected = evaluated(module, arguments);
  for (int seed = 0; seed < runs; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Literal> actual = interpreted(module, arguments, choices, seed);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t r = 0; r < actual.size(); ++r) EXPECT_EQ(actual[r], expected[r]) << r;
  }
}

// A stable sort by the first of two arrays.
std::string sort_text(const std::string& dims, const std::string& type, int64_t dimension) {
  const bool real = type.starts_with('f');
  return fmt::format(R"(
  %s:2 = "stablehlo.sort"(%x, %n) <{{dimension = {2} : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<{1}>, %b: tensor<{1}>, %i: tensor<i32>, %j: tensor<i32>):
    %p = stablehlo.compare LT, %a, %b{3} : (tensor<{1}>, tensor<{1}>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }}) : (tensor<{0}x{1}>, tensor<{0}xi32>) -> (tensor<{0}x{1}>, tensor<{0}xi32>))",
                     dims, type, dimension, real ? ", TOTALORDER" : "");
}

std::unique_ptr<hlo::Module> sort_of(const std::string& dims, const std::string& type,
                                     int64_t dimension) {
  return imported(fmt::format(R"(
func.func @main(%x: tensor<{0}x{1}>, %n: tensor<{0}xi32>) -> (tensor<{0}x{1}>, tensor<{0}xi32>) {{
{2}
  return %s#0, %s#1 : tensor<{0}x{1}>, tensor<{0}xi32>
}})",
                              dims, type, sort_text(dims, type, dimension)));
}

TEST(Sorts, RowsInScratch) {
  for (const std::string_view dims : {"3x5", "2x8", "2x33", "100"}) {
    SCOPED_TRACE(dims);
    const int64_t axis = dims.find('x') == std::string_view::npos ? 0 : 1;
    expect_exact(*sort_of(std::string(dims), "f32", axis), {}, {"sort"}, 9);
  }
  expect_exact(*sort_of("20x3", "i8", 0), {}, {"sort"}, 5);
}

TEST(Sorts, RowsOfOneRun) {
  for (const std::string_view dims : {"6x1", "6x2", "6x3", "6x4"}) {
    SCOPED_TRACE(dims);
    expect_exact(*sort_of(std::string(dims), "f32", 1), {}, {"sort"}, 4);
  }
}

// All widths share a kernel for each direction between the two temporaries; the last pass writes
// the results.
TEST(Sorts, AFewKernelsThroughTemporaries) {
  expect_exact(*sort_of("3x70", "f32", 1), {{"row_scratch", 0}}, {"sort_runs", "sort_merge"}, 15,
               6);
  expect_exact(*sort_of("130", "i16", 0), {{"row_scratch", 0}}, {"sort_runs", "sort_merge"}, 7, 6);
}

// Blocks of 2,048 or 4,096 elements in scratch memory, the last one of 404 or 3, and merges.
TEST(Sorts, BlocksOfLongRows) {
  const std::vector<std::string> kernels = {"sort_runs", "sort_merge"};
  expect_exact(*sort_of("4500", "f32", 0), {}, kernels, 1000, 4);
  expect_exact(*sort_of("4099x2", "i8", 0), {}, {"sort_runs", "sort_merge"}, 7, 3);
}

TEST(Sorts, BytesByCounting) {
  for (const std::string_view type : {"i8", "ui8", "i4"}) {
    for (const std::string_view direction : {"LT", "GT"}) {
      SCOPED_TRACE(fmt::format("{} {}", type, direction));
      const auto module = imported(fmt::format(R"(
func.func @main(%x: tensor<2x300x{0}>) -> tensor<2x300x{0}> {{
  %s = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
    %p = stablehlo.compare {1}, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }}) : (tensor<2x300x{0}>) -> tensor<2x300x{0}>
  return %s : tensor<2x300x{0}>
}})",
                                               type, direction));
      expect_exact(*module, {}, {"sort_counts"}, type == "i4" ? 16 : 256, 6);
      expect_exact(*module, {{"sort_counts", 0}}, {"sort"}, type == "i4" ? 16 : 256, 3);
    }
  }
}

// The first `kept` of each row.
std::unique_ptr<hlo::Module> first_of(int64_t rows, int64_t size, int64_t kept,
                                      const std::string& type) {
  const std::string dims = fmt::format("{}x{}", rows, size);
  const std::string few = fmt::format("{}x{}", rows, kept);
  auto module = imported(fmt::format(R"(
func.func @main(%x: tensor<{0}x{1}>) -> (tensor<{2}x{1}>, tensor<{2}xi32>) {{
  %n = stablehlo.iota dim = 1 : tensor<{0}xi32>
{3}
  %v = stablehlo.slice %s#0 [0:{4}, 0:{5}] : (tensor<{0}x{1}>) -> tensor<{2}x{1}>
  %k = stablehlo.slice %s#1 [0:{4}, 0:{5}] : (tensor<{0}xi32>) -> tensor<{2}xi32>
  return %v, %k : tensor<{2}x{1}>, tensor<{2}xi32>
}})",
                                     dims, type, few, sort_text(dims, type, 1), rows, kept));
  const auto changed = hlo::first_elements(*module);
  EXPECT_TRUE(changed) << changed.error().to_string();
  return module;
}

TEST(Selections, FirstElementsWithoutASort) {
  for (const int64_t size : {100, 333}) {
    for (const int64_t kept : {9, 12}) {
      SCOPED_TRACE(fmt::format("{} of {}", kept, size));
      expect_exact(*first_of(3, size, kept, "f32"), {}, {"first"}, 12, 6);
    }
  }
}

TEST(Selections, TiesGoToTheLowerIndex) {
  expect_exact(*first_of(2, 200, 25, "i8"), {}, {"first"}, 3);
  expect_exact(*first_of(2, 200, 25, "f32"), {}, {"first"}, 1);
}

// LE puts equal elements before one another: they come in any order, each once.
TEST(Selections, ByAComparatorThatIsNotStrict) {
  for (const std::string_view direction : {"LE", "GE"}) {
    std::string text = hlo::print_module(*first_of(1, 200, 25, "i8"));
    const size_t at = text.find("comparison_direction = LT");
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, 25, fmt::format("comparison_direction = {}", direction));
    const auto module = hlo::import_module(text, "first");
    ASSERT_TRUE(module) << module.error().to_string();
    EXPECT_EQ(names_of_kernels(**module, {}), std::vector<std::string>{"first"});
    const std::vector<Literal> arguments = drawn(**module, 3);
    const std::vector<Literal> expected = evaluated(**module, arguments);
    for (int seed = 0; seed < 6; ++seed) {
      const std::vector<Literal> first = interpreted(**module, arguments, {}, seed);
      ASSERT_EQ(first.size(), 2U);
      EXPECT_EQ(first[0], expected[0]) << seed;
      std::set<int64_t> indices;
      for (int64_t k = 0; k < 25; ++k) {
        const int64_t index = first[1].get_integer(k);
        EXPECT_TRUE(indices.insert(index).second) << index << " twice, with seed " << seed;
        EXPECT_EQ(arguments[0].get_integer(index), first[0].get_integer(k)) << seed;
      }
    }
  }
}

// With NaNs a comparison by FLOAT is no order, and what the sort gives is not a selection.
TEST(Selections, NotByAnOrderWithoutNaNs) {
  for (const auto& [type, is_selection] : {std::pair("TOTALORDER", 1), std::pair("FLOAT", 0)}) {
    const auto module = imported(fmt::format(R"(
func.func @main(%x: tensor<100xf32>) -> tensor<5xf32> {{
  %s = "stablehlo.sort"(%x) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GT, %a, %b, {} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }}) : (tensor<100xf32>) -> tensor<100xf32>
  %v = stablehlo.slice %s [0:5] : (tensor<100xf32>) -> tensor<5xf32>
  return %v : tensor<5xf32>
}})",
                                             type));
    const auto changed = hlo::first_elements(*module);
    ASSERT_TRUE(changed);
    EXPECT_EQ(*changed, is_selection != 0) << type;
  }
}

// A backend that sorts by a library call is asked before a selection is made.
TEST(Selections, NotWhereTheDeviceTakesTheSort) {
  const auto module = first_of(3, 200, 10, "f32");
  for (const bool takes : {false, true}) {
    hlo::LowerOptions options;
    int sorts = 0;
    options.takes_call = [&](const hlo::CallOffer& offer) -> Result<bool> {
      sorts += std::holds_alternative<program::Sort>(offer.call) ? 1 : 0;
      return takes;
    };
    const auto program = hlo::compile_to_program(*module, options);
    ASSERT_TRUE(program) << program.error().to_string();
    EXPECT_GT(sorts, 0);
    const bool selects = std::ranges::any_of(
        program->kernels, [](const kernel::Kernel& kernel) { return kernel.name == "first"; });
    EXPECT_EQ(selects, !takes);
  }
}

TEST(Selections, AnyNumberOfGroups) {
  for (const int64_t groups : {1, 2, 64, 4096}) {
    expect_exact(*first_of(2, 150, 10, "f32"), {{"selection_groups", groups}}, {"first"}, 40, 3);
  }
}

TEST(Selections, AreSortsWithoutScratch) {
  expect_exact(*first_of(2, 80, 10, "f32"), {{"row_scratch", 0}},
               {"iota", "sort_runs", "sort_merge", "slice", "slice_2"}, 40, 3);
}

TEST(Selections, NotOfShortRowsOrManyElements) {
  for (const auto& [size, kept] : {std::pair(63, 9), std::pair(100, 13)}) {
    const auto names = names_of_kernels(*first_of(2, size, kept, "f32"), {});
    EXPECT_EQ(std::ranges::count(names, "first"), 0);
    EXPECT_EQ(std::ranges::count(names, "sort"), 1);
  }
}

// Numbers, one a row, may be in another shape, as in the gradient of a layer norm of [1, 6, 70]:
// [1, 6] to [1, 6, 1] to [6]. The sums of a row would else be computed again for each
// of its elements.
TEST(Rows, SumsInShapesThatDifferByOnes) {
  const std::string text = R"(
func.func @main(%x: tensor<1x6x70xf32>) -> tensor<1x6x70xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<1x6x70xf32>, tensor<f32>) -> tensor<1x6xf32>
  %one = stablehlo.reshape %s : (tensor<1x6xf32>) -> tensor<1x6x1xf32>
  %flat = stablehlo.reshape %one : (tensor<1x6x1xf32>) -> tensor<6xf32>
  %sum = stablehlo.add %flat, %flat : tensor<6xf32>
  %b = stablehlo.broadcast_in_dim %sum, dims = [1] : (tensor<6xf32>) -> tensor<1x6x70xf32>
  %d = stablehlo.subtract %x, %b : tensor<1x6x70xf32>
  %t = stablehlo.reduce(%d init: %zero) applies stablehlo.maximum across dimensions = [2] : (tensor<1x6x70xf32>, tensor<f32>) -> tensor<1x6xf32>
  %c = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<1x6x70xf32>
  %y = stablehlo.multiply %d, %c : tensor<1x6x70xf32>
  return %y : tensor<1x6x70xf32>
})";
  expect_schedule(text, {}, {"fusion_rows"});
}

}  // namespace
}  // namespace tenon::conformance
