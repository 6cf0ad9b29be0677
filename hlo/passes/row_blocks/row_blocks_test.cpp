// Large arrays by blocks of rows: programs keep their results and lose their large arrays, where
// every op can be divided; others are left alone.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/row_blocks/division.h"
#include "hlo/sample/sampler.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

constexpr int64_t kBlockBytes = 16 << 10;

PassOptions small_blocks() {
  PassOptions options;
  options.cost.row_block_bytes = kBlockBytes;
  options.cost.attention_scores = 1 << 12;
  return options;
}

std::vector<Literal> arguments_of(const Module& module) {
  Random random(11);
  std::vector<Literal> arguments;
  for (size_t p = 0; p < module.entry()->parameter_count(); ++p) {
    Literal& x = arguments.emplace_back(module.entry()->parameter(p).type().shape());
    const bool is_number = is_float(x.element_type());
    for (int64_t i = 0; i < x.element_count(); ++i) {
      const auto drawn = static_cast<double>(random.below(64));
      x.set_double(i, is_number ? drawn / 16 - 2 : drawn);
    }
  }
  return arguments;
}

std::vector<Literal> results_by_evaluator(const Module& module) {
  auto results = Evaluator(module).run(*module.entry(), arguments_of(module));
  EXPECT_TRUE(results) << results.error().to_string();
  return results ? *results : std::vector<Literal>();
}

// The greatest difference, as a part of the greatest element.
double difference(const Literal& a, const Literal& b) {
  double most = 0, greatest = 1e-30;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    const double x = a.get_double(i), y = b.get_double(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    most = std::max(most, std::isnan(x - y) && x != y ? 1e30 : x == y ? 0 : std::abs(x - y));
    if (std::isfinite(y)) greatest = std::max(greatest, std::abs(y));
  }
  return most / greatest;
}

struct Divided {
  int64_t loops = 0;
  int64_t attentions = 0;
  int64_t large = 0;  ///< Results of at least `elements`, but for constants, outside of fusions.
};

int64_t count(const Computation& computation, OpCode code) {
  int64_t found = 0;
  for (const Instruction& op : computation) found += op.code() == code ? 1 : 0;
  return found;
}

// Runs the pass, and `attention` after it. Results must stay.
Divided divide(const std::string& text, int64_t elements, double tolerance = 1e-5) {
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string() << "\n" << text;
  EXPECT_TRUE(inline_all_calls(**module));
  EXPECT_TRUE(share_common(**module));
  const std::vector<Literal> before = results_by_evaluator(**module);
  const auto changed = compute_in_row_blocks(**module, small_blocks());
  EXPECT_TRUE(changed) << changed.error().to_string();
  EXPECT_TRUE(verify(**module).ok()) << verify(**module).to_string();
  const std::vector<Literal> after = results_by_evaluator(**module);
  for (size_t r = 0; r < before.size(); ++r)
    EXPECT_LE(difference(after[r], before[r]), tolerance) << "result " << r << " of\n" << text;
  Divided divided;
  divided.loops = count(*(*module)->entry(), OpCode::kWhile);
  EXPECT_EQ(divided.loops > 0, *changed);
  EXPECT_TRUE(eliminate_dead(**module));
  EXPECT_TRUE(fuse_attention(**module, small_blocks()));
  divided.attentions = count(*(*module)->entry(), OpCode::kFusion);
  any_instruction(*(*module)->entry(), [&](const Instruction& op) {
    if (op.code() == OpCode::kFusion || op.parent()->owner() == nullptr ||
        op.parent()->owner()->code() != OpCode::kFusion) {
      for (const Type& type : op.result_types()) {
        const bool is_large = type.is_tensor() && element_count(type.dims()) >= elements;
        divided.large += is_large && op.code() != OpCode::kConstant ? 1 : 0;
      }
    }
    return false;
  });
  return divided;
}

std::string with(std::string text, const std::vector<std::pair<std::string, std::string>>& names) {
  for (const auto& [name, value] : names) {
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  }
  return text;
}

// Scores of Q queries and K keys of depth 4 in B matrices, masked where a query is before a key,
// their softmax %w, and what it weighs, %y.
constexpr const char* kAttention = R"(
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<BxQx4xf32>, tensor<BxKx4xf32>) -> tensor<BxQxKxf32>
  %i = stablehlo.iota dim = 0 : tensor<QxKxi32>
  %j = stablehlo.iota dim = 1 : tensor<QxKxi32>
  %sees = stablehlo.compare GE, %i, %j : (tensor<QxKxi32>, tensor<QxKxi32>) -> tensor<QxKxi1>
  %mask = stablehlo.broadcast_in_dim %sees, dims = [1, 2] : (tensor<QxKxi1>) -> tensor<BxQxKxi1>
  %hidden = stablehlo.constant dense<-1.0e9> : tensor<BxQxKxf32>
  %l = stablehlo.select %mask, %s, %hidden : tensor<BxQxKxi1>, tensor<BxQxKxf32>
  %m = stablehlo.reduce(%l init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<BxQxKxf32>, tensor<f32>) -> tensor<BxQxf32>
  %ms = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<BxQxf32>) -> tensor<BxQxKxf32>
  %c = stablehlo.subtract %l, %ms : tensor<BxQxKxf32>
  %e = stablehlo.exponential %c : tensor<BxQxKxf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<BxQxKxf32>, tensor<f32>) -> tensor<BxQxf32>
  %ts = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<BxQxf32>) -> tensor<BxQxKxf32>
  %w = stablehlo.divide %e, %ts : tensor<BxQxKxf32>
  %y = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<BxQxKxf32>, tensor<BxKx4xf32>) -> tensor<BxQx4xf32>
)";
// The gradients of queries, keys and values, where %d is that of %y.
constexpr const char* kGradient = R"(
  %dv = stablehlo.dot_general %w, %d, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<BxQxKxf32>, tensor<BxQx4xf32>) -> tensor<BxKx4xf32>
  %dw = stablehlo.dot_general %d, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<BxQx4xf32>, tensor<BxKx4xf32>) -> tensor<BxQxKxf32>
  %wdw = stablehlo.multiply %w, %dw : tensor<BxQxKxf32>
  %r = stablehlo.reduce(%wdw init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<BxQxKxf32>, tensor<f32>) -> tensor<BxQxf32>
  %rs = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<BxQxf32>) -> tensor<BxQxKxf32>
  %g = stablehlo.subtract %dw, %rs : tensor<BxQxKxf32>
  %h = stablehlo.multiply %w, %g : tensor<BxQxKxf32>
  %none = stablehlo.constant dense<0.0> : tensor<BxQxKxf32>
  %ds = stablehlo.select %mask, %h, %none : tensor<BxQxKxi1>, tensor<BxQxKxf32>
  %dq = stablehlo.dot_general %ds, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<BxQxKxf32>, tensor<BxKx4xf32>) -> tensor<BxQx4xf32>
  %dk = stablehlo.dot_general %ds, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<BxQxKxf32>, tensor<BxQx4xf32>) -> tensor<BxKx4xf32>
  return %dq, %dk, %dv, %y : tensor<BxQx4xf32>, tensor<BxKx4xf32>, tensor<BxKx4xf32>, tensor<BxQx4xf32>
})";
// From %y to %d row by row, and by a product of all rows.
constexpr const char* kRowByRow = R"(
  %two = stablehlo.constant dense<2.0> : tensor<BxQx4xf32>
  %d = stablehlo.multiply %y, %two : tensor<BxQx4xf32>
)";
constexpr const char* kAcrossRows = R"(
  %all = stablehlo.dot_general %y, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<BxQx4xf32>, tensor<BxQx4xf32>) -> tensor<Bx4x4xf32>
  %d = stablehlo.dot_general %y, %all, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<BxQx4xf32>, tensor<Bx4x4xf32>) -> tensor<BxQx4xf32>
)";

struct AttentionSizes {
  std::string b = "2", q = "320", k = "64";
};

std::string attention(const std::string& behind, const AttentionSizes& sizes = {}) {
  const std::string head =
      "func.func @main(%q: tensor<BxQx4xf32>, %k: tensor<BxKx4xf32>, %v: tensor<BxKx4xf32>) -> ";
  return with(head + behind.substr(0, behind.find('{') + 1) + kAttention +
                  behind.substr(behind.find('{') + 1),
              {{"Bx", sizes.b + "x"}, {"Qx", sizes.q + "x"}, {"Kx", sizes.k + "x"}});
}
std::string gradient(const std::string& between, const AttentionSizes& sizes = {}) {
  return attention(
      "(tensor<BxQx4xf32>, tensor<BxKx4xf32>, tensor<BxKx4xf32>, tensor<BxQx4xf32>) {" + between +
          kGradient,
      sizes);
}

// Forward and backward in one loop: what is between them goes along.
TEST(RowBlocks, GradientBehindItsAttention) {
  const Divided divided = divide(gradient(kRowByRow), 2 * 320 * 64);
  EXPECT_EQ(divided.loops, 1);
  EXPECT_EQ(divided.attentions, 0);
  EXPECT_EQ(divided.large, 0);
}

// The gradient needs all of the attention's results first: it makes the scores again, so that the
// attention has them for itself, and keeps none.
TEST(RowBlocks, GradientThatWaitsForTheWholeAttention) {
  const Divided divided = divide(gradient(kAcrossRows), 2 * 320 * 64);
  EXPECT_EQ(divided.loops, 1);
  EXPECT_EQ(divided.attentions, 1);
  EXPECT_EQ(divided.large, 0);
}

// 307 rows are four blocks of 64 and one of 51.
TEST(RowBlocks, RowsThatAreNoMultipleOfABlock) {
  for (const std::string between : {kRowByRow, kAcrossRows}) {
    const Divided divided = divide(gradient(between, {"2", "307", "70"}), 2 * 307 * 70);
    EXPECT_EQ(divided.loops, 1);
    EXPECT_EQ(divided.large, 0);
  }
}

// Matrices that are independent of each other, a few at a time: every sum is as before.
TEST(RowBlocks, IndependentMatrices) {
  for (const std::string between : {kRowByRow, kAcrossRows}) {
    const Divided divided = divide(gradient(between, {"8", "40", "64"}), 8 * 40 * 64, 0);
    EXPECT_EQ(divided.loops, 1);
    EXPECT_EQ(divided.large, 0);
  }
}

TEST(RowBlocks, LeavesAnAttentionToItsPass) {
  const Divided divided = divide(attention(R"(tensor<BxQx4xf32> {
  return %y : tensor<BxQx4xf32>
})"),
                                 2 * 320 * 64);
  EXPECT_EQ(divided.loops, 0);
  EXPECT_EQ(divided.attentions, 1);
}

// The weights are a result; the arrays are small; there are few rows; softmax along the rows.
TEST(RowBlocks, LeavesWhatCannotBeDivided) {
  const std::string weights = attention(R"((tensor<BxQx4xf32>, tensor<BxQxKxf32>) {
  return %y, %w : tensor<BxQx4xf32>, tensor<BxQxKxf32>
})");
  EXPECT_EQ(divide(weights, 1).loops, 0);
  EXPECT_EQ(divide(gradient(kRowByRow, {"2", "80", "40"}), 1).loops, 0);
  EXPECT_EQ(divide(gradient(kRowByRow, {"2", "130", "130"}), 1).loops, 0);
  const std::string across = R"(
func.func @main(%a: tensor<320x4xf32>, %b: tensor<100x4xf32>) -> tensor<320x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<320x4xf32>, tensor<100x4xf32>) -> tensor<320x100xf32>
  %t = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<320x100xf32>, tensor<f32>) -> tensor<100xf32>
  %u = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<320x100xf32>, tensor<f32>) -> tensor<320xf32>
  %ts = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<100xf32>) -> tensor<320x100xf32>
  %us = stablehlo.broadcast_in_dim %u, dims = [0] : (tensor<320xf32>) -> tensor<320x100xf32>
  %x = stablehlo.add %s, %ts : tensor<320x100xf32>
  %z = stablehlo.add %x, %us : tensor<320x100xf32>
  %r = stablehlo.custom_call @opaque(%z) : (tensor<320x100xf32>) -> tensor<320x4xf32>
  return %r : tensor<320x4xf32>
})";
  auto module = import_module(across, "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto changed = compute_in_row_blocks(**module, small_blocks());
  ASSERT_TRUE(changed);
  EXPECT_FALSE(*changed);
}

// Sums of bf16 over many blocks are rounded once: ones that a narrow sum would lose.
TEST(RowBlocks, SumsOfNarrowFloatsAreRoundedOnce) {
  const std::string text = R"(
func.func @main(%a: tensor<2048x1xbf16>, %b: tensor<128x1xbf16>) -> (tensor<128x1xbf16>, tensor<128xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %one = stablehlo.constant dense<1.0> : tensor<2048x1xbf16>
  %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<2048x1xbf16>, tensor<128x1xbf16>) -> tensor<2048x128xbf16>
  %e = stablehlo.cosine %s : tensor<2048x128xbf16>
  %sq = stablehlo.multiply %e, %e : tensor<2048x128xbf16>
  %d = stablehlo.dot_general %sq, %one, contracting_dims = [0] x [0] : (tensor<2048x128xbf16>, tensor<2048x1xbf16>) -> tensor<128x1xbf16>
  %r = stablehlo.reduce(%sq init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2048x128xbf16>, tensor<bf16>) -> tensor<128xbf16>
  return %d, %r : tensor<128x1xbf16>, tensor<128xbf16>
})";
  auto module = import_module(text, "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const std::vector<Literal> before = results_by_evaluator(**module);
  const auto changed = compute_in_row_blocks(**module, small_blocks());
  ASSERT_TRUE(changed && *changed);
  ASSERT_TRUE(verify(**module).ok()) << verify(**module).to_string();
  const std::vector<Literal> after = results_by_evaluator(**module);
  EXPECT_LE(difference(after[0], before[0]), 1.0 / 256);
  EXPECT_LE(difference(after[1], after[0]), 1.0 / 64);
}

// A region that captures a value from outside: here the bound of a sum.
TEST(RowBlocks, LeavesRegionsThatCapture) {
  const std::string text = R"(
func.func @main(%a: tensor<640x3xf32>, %b: tensor<96x3xf32>, %bound: tensor<f32>) -> tensor<640xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<640x3xf32>, tensor<96x3xf32>) -> tensor<640x96xf32>
  %r = "stablehlo.reduce"(%s, %zero) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    %w = stablehlo.minimum %z, %bound : tensor<f32>
    stablehlo.return %w : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<640x96xf32>, tensor<f32>) -> tensor<640xf32>
  return %r : tensor<640xf32>
})";
  EXPECT_EQ(divide(text, 1).loops, 0);
}

// The nearest of 96 points to each of 640, and how far the points are from all: reductions of every
// kind along the rows and the columns.
TEST(RowBlocks, ReductionsOfDistances) {
  const std::string text = R"(
func.func @main(%a: tensor<640x3xf32>, %b: tensor<96x3xf32>) -> (tensor<640xf32>, tensor<96xf32>, tensor<96xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.5> : tensor<f32>
  %high = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %s = stablehlo.dot_general %b, %a, contracting_dims = [1] x [1] : (tensor<96x3xf32>, tensor<640x3xf32>) -> tensor<96x640xf32>
  %p = stablehlo.transpose %s, dims = [1, 0] : (tensor<96x640xf32>) -> tensor<640x96xf32>
  %sq = stablehlo.multiply %p, %p : tensor<640x96xf32>
  %row = stablehlo.reshape %sq : (tensor<640x96xf32>) -> tensor<640x8x12xf32>
  %near = stablehlo.reduce(%row init: %high) applies stablehlo.minimum across dimensions = [1, 2] : (tensor<640x8x12xf32>, tensor<f32>) -> tensor<640xf32>
  %far = stablehlo.reduce(%sq init: %one) applies stablehlo.maximum across dimensions = [0] : (tensor<640x96xf32>, tensor<f32>) -> tensor<96xf32>
  %sum = stablehlo.reduce(%sq init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<640x96xf32>, tensor<f32>) -> tensor<96xf32>
  %every = stablehlo.reduce(%sq init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<640x96xf32>, tensor<f32>) -> tensor<f32>
  return %near, %far, %sum, %every : tensor<640xf32>, tensor<96xf32>, tensor<96xf32>, tensor<f32>
})";
  const Divided divided = divide(text, 640 * 96, 1e-4);
  EXPECT_EQ(divided.loops, 1);
  EXPECT_EQ(divided.large, 0);
  // A sum that begins with a number other than 0 would add it once a block.
  const std::string begun = with(text, {{"%sq init: %zero", "%sq init: %one"}});
  EXPECT_EQ(divide(begun, 1).loops, 0);
}

// The place of the nearest point, which a reduction of two arrays finds, and the three nearest.
TEST(RowBlocks, PlacesOfTheNearest) {
  const std::string text = R"(
func.func @main(%a: tensor<320x3xf32>, %b: tensor<96x3xf32>) -> (tensor<320xi32>, tensor<320x3xf32>) {
  %high = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<320x3xf32>, tensor<96x3xf32>) -> tensor<320x96xf32>
  %i = stablehlo.iota dim = 1 : tensor<320x96xi32>
  %near:2 = stablehlo.reduce(%s init: %high), (%i init: %zero) across dimensions = [1] : (tensor<320x96xf32>, tensor<320x96xi32>, tensor<f32>, tensor<i32>) -> (tensor<320xf32>, tensor<320xi32>)
    reducer(%x: tensor<f32>, %y: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
    %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %less, %x, %y : tensor<i1>, tensor<f32>
    %w = stablehlo.select %less, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }
  %sorted = "stablehlo.sort"(%s) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<320x96xf32>) -> tensor<320x96xf32>
  %first = stablehlo.slice %sorted [0:320, 0:3] : (tensor<320x96xf32>) -> tensor<320x3xf32>
  return %near#1, %first : tensor<320xi32>, tensor<320x3xf32>
})";
  const Divided divided = divide(text, 320 * 96, 0);
  EXPECT_EQ(divided.loops, 1);
  EXPECT_EQ(divided.large, 0);
}

// The logits of a vocabulary: each row's own word is gathered, and gets its gradient scattered.
TEST(RowBlocks, LogitsOfAVocabulary) {
  const std::string text = R"(
func.func @main(%x: tensor<320x8xf32>, %w: tensor<8x96xf32>, %words: tensor<320x1x1xi32>) -> (tensor<320x1xf32>, tensor<320x8xf32>, tensor<8x96xf32>) {
  %none = stablehlo.constant dense<0.0> : tensor<320x96xf32>
  %s = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<320x8xf32>, tensor<8x96xf32>) -> tensor<320x96xf32>
  %e = stablehlo.tanh %s : tensor<320x96xf32>
  %own = "stablehlo.gather"(%e, %words) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>} : (tensor<320x96xf32>, tensor<320x1x1xi32>) -> tensor<320x1xf32>
  %up = "stablehlo.scatter"(%none, %words, %own) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %z = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>} : (tensor<320x96xf32>, tensor<320x1x1xi32>, tensor<320x1xf32>) -> tensor<320x96xf32>
  %ds = stablehlo.subtract %e, %up : tensor<320x96xf32>
  %dx = stablehlo.dot_general %ds, %w, contracting_dims = [1] x [1] : (tensor<320x96xf32>, tensor<8x96xf32>) -> tensor<320x8xf32>
  %dw = stablehlo.dot_general %x, %ds, contracting_dims = [0] x [0] : (tensor<320x8xf32>, tensor<320x96xf32>) -> tensor<8x96xf32>
  return %own, %dx, %dw : tensor<320x1xf32>, tensor<320x8xf32>, tensor<8x96xf32>
})";
  const Divided divided = divide(text, 320 * 96);
  EXPECT_EQ(divided.loops, 1);
  EXPECT_EQ(divided.large, 0);
}

// A mask that two attentions share is in their kernels and in their gradients' loops.
TEST(RowBlocks, TwoAttentionsWithOneMask) {
  std::string layer = gradient(kAcrossRows, {"1", "512", "64"});
  layer.replace(layer.find("@main"), 5, "@layer");
  const std::string text = R"(
func.func @main(%q: tensor<1x512x4xf32>, %k: tensor<1x64x4xf32>, %v: tensor<1x64x4xf32>) -> tensor<1x512x4xf32> {
  %a:4 = func.call @layer(%q, %k, %v) : (TYPES) -> (RESULTS)
  %b:4 = func.call @layer(%a#3, %a#1, %a#2) : (TYPES) -> (RESULTS)
  %y = stablehlo.add %b#0, %b#3 : tensor<1x512x4xf32>
  return %y : tensor<1x512x4xf32>
})";
  const std::string types = "tensor<1x512x4xf32>, tensor<1x64x4xf32>, tensor<1x64x4xf32>";
  const std::string both =
      with(text, {{"TYPES", types}, {"RESULTS", types + ", tensor<1x512x4xf32>"}}) + layer;
  const Divided divided = divide(both, 512 * 64, 1e-3);
  EXPECT_EQ(divided.loops, 2);
  EXPECT_EQ(divided.attentions, 2);
  // Two iotas and the comparison of them, which both attentions read.
  EXPECT_EQ(divided.large, 3);
}

// --- Every division of every op that can be sampled

class ParameterSampler : public Sampler {
 public:
  ParameterSampler(Random& drawn_from, Computation& main) : Sampler(drawn_from, 400), main_(main) {}

  Value array(size_t, const Fits& fits) override {
    for (int i = 0; i < 60; ++i) {
      const Type type = Type::tensor(element_type(), dims());
      if (fits(type)) return main_.add_parameter(type);
    }
    return {};
  }
  Value of_type(size_t, const Type& type) override { return main_.add_parameter(type); }
  Value number(ElementType type) override { return main_.add_parameter(Type::tensor(type, {})); }
  ElementType element_type() override {
    return random.of({ElementType::kF32, ElementType::kF32, ElementType::kF32, ElementType::kS32,
                      ElementType::kPred});
  }
  Dims dims() override {
    Dims drawn(static_cast<size_t>(random.of({1, 2, 3, 3})));
    for (int64_t& size : drawn) size = random.of({1, 2, 3, 4, 5});
    return drawn;
  }

 private:
  Computation& main_;
};

// The op by blocks of two rows, and one of the rest: a function of the same parameters.
Value in_blocks(Builder& b, const Instruction& op, const RowDivision& division, int64_t rows) {
  Value combined;
  std::vector<Value> blocks;
  for (int64_t first = 0; first < rows; first += 2) {
    const int64_t count = std::min<int64_t>(2, rows - first);
    std::vector<Value> operands;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Instruction& source = *op.operand(i).def;
      // Each operand is a parameter or a constant that the sample made.
      Value whole;
      for (size_t p = 0; p < op.parent()->parameter_count(); ++p) {
        if (op.parent()->parameter(p) == op.operand(i)) whole = b.computation().parameter(p);
      }
      if (!whole) whole = b.create(Cloner().clone(source))->result();
      const int64_t dimension = division.operands[i];
      if (dimension == RowDivision::kNone) {
        operands.push_back(whole);
        continue;
      }
      I64s start(whole.type().dims().size(), 0), limit = whole.type().dims();
      start[static_cast<size_t>(dimension)] = first;
      limit[static_cast<size_t>(dimension)] = first + count;
      operands.push_back(b.slice(whole, start, limit));
    }
    const Value at = b.constant(Literal::scalar_integer(ElementType::kS32, first));
    const std::vector<Value> made = block_of(b, op, division, operands, {at, count});
    const Value block = made.empty() ? Value() : made[0];
    if (!division.is_combined()) {
      blocks.push_back(block);
      continue;
    }
    if (!combined) combined = neutral_of(b, op, division, operands);
    combined = b.binary(division.combiner, combined, block);
  }
  return division.is_combined() ? combined : b.concatenate(blocks, division.result);
}

int64_t rows_of(const Instruction& op, const RowDivision& division) {
  if (!division.is_combined()) return op.result_type().dims()[static_cast<size_t>(division.result)];
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const int64_t d = division.operands[i];
    if (d != RowDivision::kNone) return op.operand_type(i).dims()[static_cast<size_t>(d)];
  }
  return 0;
}

// Checks each division of a random instance. Returns how many there were.
int64_t check_sample(const OpInfo& info, Random& random) {
  Module module;
  Computation& main = module.add_function("main");
  Builder b(main);
  ParameterSampler sampler(random, main);
  sampler.set_builder(&b);
  const Instruction* op = info.sample(sampler, info.code);
  if (op == nullptr || op->result_count() != 1 ||
      !b.finish({const_cast<Instruction*>(op)->result()}).ok())
    return 0;
  main.set_declared_result_types({op->result_type()});
  int64_t checked = 0;
  for (const RowDivision& division : divisions_of(*op)) {
    const int64_t rows = rows_of(*op, division);
    if (rows == 0) continue;
    Module divided;
    Computation& other = divided.add_function("main");
    for (const Type& type : main.parameter_types()) other.add_parameter(type);
    Builder in(other);
    const Value result = in_blocks(in, *op, division, rows);
    EXPECT_TRUE(in.ok()) << info.name << ": " << in.status().to_string();
    if (!in.ok() || !in.finish({result}).ok()) return checked;
    other.set_declared_result_types({result.type()});
    EXPECT_TRUE(verify(divided).ok()) << verify(divided).to_string();
    const std::vector<Literal> whole = results_by_evaluator(module),
                               blocks = results_by_evaluator(divided);
    EXPECT_LE(difference(blocks[0], whole[0]), division.is_combined() ? 1e-5 : 0) << info.name;
    ++checked;
  }
  return checked;
}

// Samples of gather and scatter have no batch dimensions: LogitsOfAVocabulary has.
TEST(Divisions, GiveTheOp) {
  Random random(3);
  std::vector<std::string> divided;
  for (const OpInfo& info : all_ops()) {
    if (info.sample == nullptr) continue;
    int64_t checked = 0;
    for (int i = 0; i < 80; ++i) checked += check_sample(info, random);
    if (checked > 0) divided.emplace_back(info.name);
  }
  for (const std::string name :
       {"add", "broadcast_in_dim", "clamp", "compare", "concatenate", "convert", "dot_general",
        "iota", "reduce", "reshape", "select", "slice", "sort", "transpose"}) {
    EXPECT_TRUE(std::ranges::count(divided, "stablehlo." + name) == 1) << name;
  }
}

}  // namespace
}  // namespace tenon::hlo
