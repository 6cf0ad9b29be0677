// Attention by blocks of queries and keys: its results, its numbers at the edges, what is taken for
// one.
#include "hlo/lower/schedules/products/attention.h"

#include <cmath>
#include <limits>

#include "hlo/lower/schedules/schedules_test_util.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct AttentionProgram {
  std::string queries = "2x5x4xf32", keys = "2x7x4xf32", values = "2x7x3xf32";
  std::string scores = "2x5x7xf32", rows = "2x5xf32", result = "2x5x3xf32";
  std::string first = "%q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]";
  std::string second = "%w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]";
  int axis = 2;
  std::string along = "0, 1";
  std::string bias = "2x5x7xf32";  ///< Added to the scores.
  std::string logits = "  %s = stablehlo.add %h, %b : tensor<{s}>\n";
  std::string results = "%y", result_types;

  std::string text() const {
    const bool keys_first = first.starts_with("%k");
    const bool values_first = second.starts_with("%v");
    return fmt::format(
        "func.func @main(%q: tensor<{q}>, %k: tensor<{k}>, %v: tensor<{v}>, %b: tensor<{b}>) -> "
        "({r}) {{\n"
        "  %half = stablehlo.constant dense<0.5> : tensor<{s}>\n"
        "  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %p = stablehlo.dot_general {first} : (tensor<{x}>, tensor<{y}>) -> tensor<{s}>\n"
        "  %h = stablehlo.multiply %p, %half : tensor<{s}>\n"
        "{logits}"
        "  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = "
        "[{axis}] : (tensor<{s}>, tensor<f32>) -> tensor<{rows}>\n"
        "  %mb = stablehlo.broadcast_in_dim %m, dims = [{along}] : (tensor<{rows}>) -> "
        "tensor<{s}>\n"
        "  %d = stablehlo.subtract %s, %mb : tensor<{s}>\n"
        "  %e = stablehlo.exponential %d : tensor<{s}>\n"
        "  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = "
        "[{axis}] : (tensor<{s}>, tensor<f32>) -> tensor<{rows}>\n"
        "  %tb = stablehlo.broadcast_in_dim %t, dims = [{along}] : (tensor<{rows}>) -> "
        "tensor<{s}>\n"
        "  %w = stablehlo.divide %e, %tb : tensor<{s}>\n"
        "  %y = stablehlo.dot_general {second} : (tensor<{c}>, tensor<{d}>) -> tensor<{o}>\n"
        "  return {results} : {r}\n}}",
        fmt::arg("q", queries), fmt::arg("k", keys), fmt::arg("v", values), fmt::arg("b", bias),
        fmt::arg("s", scores), fmt::arg("rows", rows), fmt::arg("o", result),
        fmt::arg("first", first), fmt::arg("second", second),
        fmt::arg("x", keys_first ? keys : queries), fmt::arg("y", keys_first ? queries : keys),
        fmt::arg("c", values_first ? values : scores),
        fmt::arg("d", values_first ? scores : values), fmt::arg("axis", axis),
        fmt::arg("along", along), fmt::arg("results", results),
        fmt::arg("logits", fmt::format(fmt::runtime(logits), fmt::arg("s", scores))),
        fmt::arg("r", result_types.empty() ? fmt::format("tensor<{}>", result) : result_types));
  }
};

// Long enough for several blocks of each kind; keys as the left operand, heads in the middle,
// values as the left operand.
std::vector<AttentionProgram> programs() {
  AttentionProgram plain;
  AttentionProgram longer;
  longer.queries = "1x70x8xf32";
  longer.keys = "1x300x8xf32";
  longer.values = "1x300x8xf32";
  longer.scores = longer.bias = "1x70x300xf32";
  longer.rows = "1x70xf32";
  longer.result = "1x70x8xf32";
  AttentionProgram heads;  // [length, heads, features], as JAX has them.
  heads.queries = "5x2x4xf32";
  heads.keys = "8x2x4xf32";
  heads.values = "8x2x16xf32";
  heads.scores = heads.bias = "2x8x5xf32";
  heads.rows = "2x5xf32";
  heads.result = "2x16x5xf32";
  heads.first = "%k, %q, batching_dims = [1] x [1], contracting_dims = [2] x [2]";
  heads.second = "%v, %w, batching_dims = [1] x [0], contracting_dims = [0] x [1]";
  heads.axis = 1;
  heads.along = "0, 2";
  AttentionProgram groups;  // Several queries' dimensions for one of keys.
  groups.queries = "2x3x5x4xf32";
  groups.keys = "2x4x6xf32";
  groups.values = "6x3x2xf32";
  groups.scores = groups.bias = "2x3x5x6xf32";
  groups.rows = "2x3x5xf32";
  groups.result = "2x3x5x3xf32";
  groups.first = "%q, %k, batching_dims = [0] x [0], contracting_dims = [3] x [1]";
  groups.second = "%w, %v, batching_dims = [0] x [2], contracting_dims = [3] x [0]";
  groups.axis = 3;
  groups.along = "0, 1, 2";
  return {plain, longer, heads, groups};
}

constexpr const char* kHide =
    "  %wide = stablehlo.broadcast_in_dim %b, dims = [1, 2] : (tensor<70x300xi1>) -> "
    "tensor<1x70x300xi1>\n"
    "  %far = stablehlo.constant dense<-1.0e9> : tensor<{s}>\n"
    "  %s = stablehlo.select %wide, %h, %far : tensor<1x70x300xi1>, tensor<{s}>\n";

// Hides keys by an array of truth values that all heads share.
AttentionProgram masked() {
  AttentionProgram program = programs()[1];
  program.bias = "70x300xi1";
  program.logits = kHide;
  return program;
}

// Hides later keys by their places.
AttentionProgram causal() {
  AttentionProgram program = programs()[1];
  program.bias = "f32";
  program.logits =
      "  %query = stablehlo.iota dim = 0 : tensor<70x300xi32>\n"
      "  %key = stablehlo.iota dim = 1 : tensor<70x300xi32>\n"
      "  %past = stablehlo.compare GE, %query, %key : (tensor<70x300xi32>, tensor<70x300xi32>) -> "
      "tensor<70x300xi1>\n";
  program.logits += kHide;
  program.logits.replace(program.logits.find("%b,"), 3, "%past,");
  return program;
}

hlo::lower::LowerLimits wide_limits() {
  hlo::lower::LowerLimits limits;
  limits.tiles = true;
  limits.vector_bytes = 64;
  limits.scratch_bytes = 256 << 10;
  return limits;
}

void expect_close(const Literal& actual, const Literal& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    const double x = actual.get_double(i);
    const double y = expected.get_double(i);
    if (std::isnan(y)) {
      EXPECT_TRUE(std::isnan(x)) << i;
    } else {
      EXPECT_NEAR(x, y, 1e-5) << i;
    }
  }
}

// Runs the whole program as one fusion by the schedule.
void expect_attention(const std::string& text, const std::vector<Literal>& arguments) {
  const auto plain = imported(text);
  const auto module = fused(text);
  EXPECT_EQ(names_of_kernels(*module, {}), std::vector<std::string>{"fusion_blocks"});
  const auto expected = hlo::Evaluator(*plain).run(*plain->entry(), arguments);
  ASSERT_TRUE(expected) << expected.error().to_string();
  for (int seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    hlo::InterpretedRunOptions options = options_of_run({{"attention", 1}}, seed);
    options.lower.tuning.set("attention", 1);
    if (seed % 2 == 1) options.lower.limits = wide_limits();
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    const auto actual =
        hlo::run_interpreted(*module, arguments, hlo::Checks(&failures, &checks), options);
    ASSERT_TRUE(actual) << actual.error().to_string();
    expect_close((*actual)[0], (*expected)[0]);
  }
}

TEST(Attention, GivesTheResultsOfItsOps) {
  for (const AttentionProgram& program : programs()) {
    SCOPED_TRACE(program.queries);
    const std::string text = program.text();
    expect_attention(text, arguments_of(*imported(text), false));
  }
}

TEST(Attention, HidesKeysByTruthValues) {
  for (const AttentionProgram& program : {masked(), causal()}) {
    const std::string text = program.text();
    std::vector<Literal> arguments = arguments_of(*imported(text), false);
    for (int64_t i = 0; i < arguments[3].element_count(); ++i) {
      arguments[3].set_double(i, i % 7 < 4 || i % 300 == 0 ? 1 : 0);
    }
    expect_attention(text, arguments);
  }
}

// An array of masks is brought into scratch by blocks, keys first; none is there for a mask that
// follows from the places.
TEST(Attention, BringsMasksIntoScratch) {
  const auto masks_in = [](const AttentionProgram& program) {
    hlo::LowerOptions options;
    options.limits = wide_limits();
    options.tuning.set("attention", 1);
    const auto module = fused(program.text());
    const auto program_of_it = hlo::compile_to_program(*module, options);
    EXPECT_TRUE(program_of_it) << program_of_it.error().to_string();
    int64_t count = 0;
    for (const kernel::Kernel& kernel : program_of_it->kernels)
      count += std::ranges::count(kernel.memories, "mask", &kernel::Memory::name);
    return count;
  };
  EXPECT_EQ(masks_in(programs()[1]), 1);
  EXPECT_EQ(masks_in(masked()), 1);
  EXPECT_EQ(masks_in(causal()), 0);
}

// -inf hides a key; a row of nothing else is NaN, as its sum of weights is 0.
TEST(Attention, HidesKeysByInfinities) {
  AttentionProgram program = programs()[1];
  const auto module = imported(program.text());
  std::vector<Literal> arguments = arguments_of(*module, false);
  Literal& bias = arguments[3];
  for (int64_t query = 0; query < 70; ++query) {
    for (int64_t key = 0; key < 300; ++key) {
      const bool is_hidden = query == 3 || key < 4 * query || (query == 69 && key == 299);
      if (is_hidden) bias.set_double(query * 300 + key, -kInfinity);
    }
  }
  bias.set_double(5 * 300 + 200, kInfinity);
  bias.set_double(6 * 300 + 250, std::nan(""));
  expect_attention(program.text(), arguments);
}

TEST(Attention, IsOneFusionWhereItsScoresAreMany) {
  const auto kinds = [](const std::string& text, int64_t least) {
    const auto module = imported(text);
    hlo::PassOptions options;
    options.cost.attention_scores = least;
    options.cost.tiled_product = 4;
    EXPECT_TRUE(hlo::fuse_attention(*module, options));
    EXPECT_TRUE(hlo::verify(*module).ok());
    std::vector<bool> found;
    for (const hlo::Instruction& op : *module->entry())
      found.push_back(hlo::lower::is_attention(op));
    return std::ranges::count(found, true);
  };
  for (const AttentionProgram& program : programs()) EXPECT_EQ(kinds(program.text(), 1), 1);
  EXPECT_EQ(kinds(programs()[0].text(), 1000), 0);
  // Its weights are a result too, as for a gradient.
  AttentionProgram shared;
  shared.results = "%y, %w";
  shared.result_types = "tensor<2x5x3xf32>, tensor<2x5x7xf32>";
  EXPECT_EQ(kinds(shared.text(), 1), 0);
  // The softmax runs along the queries.
  AttentionProgram across;
  across.keys = "2x5x4xf32";
  across.values = "2x5x3xf32";
  across.scores = across.bias = "2x5x5xf32";
  across.axis = 1;
  across.along = "0, 2";
  EXPECT_EQ(kinds(across.text(), 1), 0);
  // Numbers of rows that are not those of the rows.
  AttentionProgram crossed = across;
  crossed.axis = 2;
  EXPECT_EQ(kinds(crossed.text(), 1), 0);
}

// Op by op where a device has too little scratch memory for the smallest blocks.
TEST(Attention, RunsWithoutScratchMemory) {
  const std::string text = programs()[0].text();
  const auto module = imported(text);
  hlo::PassOptions options;
  options.cost.attention_scores = 1;
  options.cost.tiled_product = 1;
  ASSERT_TRUE(hlo::fuse_attention(*module, options));
  const std::vector<Literal> arguments = arguments_of(*module, false);
  const auto plain = imported(text);
  const auto expected = hlo::Evaluator(*plain).run(*plain->entry(), arguments);
  hlo::InterpretedRunOptions run;
  run.lower.limits.scratch_bytes = 0;
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  const auto actual =
      hlo::run_interpreted(*module, arguments, hlo::Checks(&failures, &checks), run);
  ASSERT_TRUE(actual) << actual.error().to_string();
  expect_close((*actual)[0], (*expected)[0]);
}

}  // namespace
}  // namespace tenon::conformance
