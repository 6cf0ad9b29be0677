// Loop-invariant code motion: the results stay those of the evaluator, loops of no turn included,
// and ops move or stay as the pass says.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/base/status.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

// A loop of %n turns over %s, with a vector and a matrix of numbers from before it. `turn` gives
// %next of %s and the counter %i.
std::unique_ptr<Module> loop_of(const std::string& turn) {
  auto made = import_module(
      fmt::format(R"(func.func @main(%w: tensor<8x32xf32>, %v: tensor<64xf32>, %x: tensor<32xf32>,
                                %n: tensor<i32>) -> tensor<32xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<32xf32>
  cond {{
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    {}
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %next : tensor<i32>, tensor<32xf32>
  }}
  return %r#1 : tensor<32xf32>
}})",
                  turn),
      "t");
  EXPECT_TRUE(made) << made.error().to_string();
  return made ? *std::move(made) : nullptr;
}

std::vector<Literal> arguments_of(const Module& module, int64_t turns) {
  Random random(3);
  std::vector<Literal> all;
  for (size_t p = 0; p < module.entry()->parameter_count(); ++p) {
    Literal& each = all.emplace_back(module.entry()->parameter(p).type().shape());
    for (int64_t i = 0; i < each.element_count(); ++i) {
      each.set_double(i, static_cast<double>(random.below(64)) / 16 - 2);
    }
  }
  all.back().set_double(0, static_cast<double>(turns));
  return all;
}

// How many ops `computation` has, without those of nested regions.
int64_t size_of(const Computation& computation) {
  return std::distance(computation.begin(), computation.end());
}

// How many ops more there are before the loop when the pass has run. The results are those of
// before at 0, 1 and 5 turns.
int64_t moved(const std::string& turn) {
  const std::unique_ptr<Module> before = loop_of(turn);
  if (before == nullptr || !eliminate_dead(*before)) return -1;
  const std::unique_ptr<Module> after = before->clone();
  const std::string_view passes[] = {"hoist-invariants", "dce"};
  PassOptions options;
  options.verify = true;
  const Status status = run_passes(*after, passes, options);
  EXPECT_TRUE(status.ok()) << status.to_string();
  for (const int64_t turns : {0, 1, 5}) {
    const std::vector<Literal> arguments = arguments_of(*before, turns);
    const auto expected = Evaluator(*before).run(*before->entry(), arguments);
    const auto actual = Evaluator(*after).run(*after->entry(), arguments);
    EXPECT_TRUE(expected && actual);
    if (!expected || !actual) return -1;
    EXPECT_EQ(actual->front().to_string(64), expected->front().to_string(64))
        << turns << " turns\n"
        << print_module(*after);
  }
  return size_of(*after->entry()) - size_of(*before->entry());
}

TEST(HoistInvariants, MovesChainsThatPay) {
  EXPECT_EQ(moved(R"(
    %e = stablehlo.exponential %w : tensor<8x32xf32>
    %m = stablehlo.reduce(%e init: %none) applies stablehlo.add across dimensions = [0] : (tensor<8x32xf32>, tensor<f32>) -> tensor<32xf32>
    %next = stablehlo.add %s, %m : tensor<32xf32>)"),
            2);
}

TEST(HoistInvariants, CopiesFreeOpsThatATurnReadsToo) {
  EXPECT_EQ(moved(R"(
    %m = stablehlo.reduce(%w init: %none) applies stablehlo.maximum across dimensions = [0] : (tensor<8x32xf32>, tensor<f32>) -> tensor<32xf32>
    %wide = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<32xf32>) -> tensor<8x32xf32>
    %d = stablehlo.subtract %w, %wide : tensor<8x32xf32>
    %row = stablehlo.slice %d [1:2, 0:32] : (tensor<8x32xf32>) -> tensor<1x32xf32>
    %flat = stablehlo.reshape %row : (tensor<1x32xf32>) -> tensor<32xf32>
    %sums = stablehlo.reduce(%wide init: %none) applies stablehlo.add across dimensions = [0] : (tensor<8x32xf32>, tensor<f32>) -> tensor<32xf32>
    %t = stablehlo.multiply %flat, %sums : tensor<32xf32>
    %again = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<32xf32>) -> tensor<8x32xf32>
    %both = stablehlo.add %again, %wide : tensor<8x32xf32>
    %last = stablehlo.reduce(%both init: %none) applies stablehlo.add across dimensions = [0] : (tensor<8x32xf32>, tensor<f32>) -> tensor<32xf32>
    %next = stablehlo.subtract %last, %t : tensor<32xf32>)"),
            4);
}

TEST(HoistInvariants, MovesValuesThatRegionsRead) {
  EXPECT_EQ(moved(R"(
    %e = stablehlo.sine %v : tensor<64xf32>
    %odd = stablehlo.compare EQ, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %next = "stablehlo.if"(%odd) ({
      %half = stablehlo.slice %e [0:32] : (tensor<64xf32>) -> tensor<32xf32>
      stablehlo.return %half : tensor<32xf32>
    }, {
      stablehlo.return %s : tensor<32xf32>
    }) : (tensor<i1>) -> tensor<32xf32>)"),
            1);
}

TEST(HoistInvariants, LeavesScalarsAndWhatGrows) {
  EXPECT_EQ(moved(R"(
    %k = stablehlo.slice %v [3:4] : (tensor<64xf32>) -> tensor<1xf32>
    %scalar = stablehlo.reshape %k : (tensor<1xf32>) -> tensor<f32>
    %sine = stablehlo.sine %scalar : tensor<f32>
    %wide = stablehlo.broadcast_in_dim %sine, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %down = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<64xf32>) -> tensor<64x32x32xf32>
    %across = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<64xf32>) -> tensor<64x32x32xf32>
    %pairs = stablehlo.multiply %down, %across : tensor<64x32x32xf32>
    %state = stablehlo.broadcast_in_dim %s, dims = [2] : (tensor<32xf32>) -> tensor<64x32x32xf32>
    %all = stablehlo.add %pairs, %state : tensor<64x32x32xf32>
    %sums = stablehlo.reduce(%all init: %none) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<64x32x32xf32>, tensor<f32>) -> tensor<32xf32>
    %next = stablehlo.add %wide, %sums : tensor<32xf32>)"),
            0);
}

// Sources count once, and all that a loop keeps takes no more than they do.
TEST(HoistInvariants, KeepsNoMoreThanItsSources) {
  // The sum of 128 KiB stays, however often its one operand is used.
  EXPECT_EQ(moved(R"(
    %e = stablehlo.exponential %w : tensor<8x32xf32>
    %two = stablehlo.multiply %e, %e : tensor<8x32xf32>
    %four = stablehlo.multiply %two, %two : tensor<8x32xf32>
    %many = stablehlo.broadcast_in_dim %four, dims = [2, 3] : (tensor<8x32xf32>) -> tensor<16x8x8x32xf32>
    %wide = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<64xf32>) -> tensor<64x32xf32>
    %cells = stablehlo.reshape %wide : (tensor<64x32xf32>) -> tensor<8x8x32xf32>
    %all = stablehlo.broadcast_in_dim %cells, dims = [1, 2, 3] : (tensor<8x8x32xf32>) -> tensor<16x8x8x32xf32>
    %product = stablehlo.multiply %many, %all : tensor<16x8x8x32xf32>
    %state = stablehlo.broadcast_in_dim %s, dims = [3] : (tensor<32xf32>) -> tensor<16x8x8x32xf32>
    %sum = stablehlo.add %product, %state : tensor<16x8x8x32xf32>
    %next = stablehlo.reduce(%sum init: %none) applies stablehlo.maximum across dimensions = [0, 1, 2] : (tensor<16x8x8x32xf32>, tensor<f32>) -> tensor<32xf32>)"),
            3);
  std::string sines;
  std::string last = "%s";
  for (int i = 0; i < 12; ++i) {
    // Each table takes 16 KiB; four of them are 64.
    sines += fmt::format(R"(
    %k{0} = stablehlo.constant dense<{0}.5> : tensor<64xf32>
    %v{0} = stablehlo.multiply %v, %k{0} : tensor<64xf32>
    %b{0} = stablehlo.broadcast_in_dim %v{0}, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
    %t{0} = stablehlo.sine %b{0} : tensor<64x64xf32>
    %d{0} = stablehlo.dynamic_slice %t{0}, %i, %zero, sizes = [1, 32] : (tensor<64x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32xf32>
    %r{0} = stablehlo.reshape %d{0} : (tensor<1x32xf32>) -> tensor<32xf32>
    %a{0} = stablehlo.add {1}, %r{0} : tensor<32xf32>)",
                         i, last);
    last = fmt::format("%a{}", i);
  }
  // A constant, a product, a broadcast and the sine of each; the 256 bytes of one product more.
  EXPECT_EQ(moved(sines + "\n    %next = stablehlo.abs %a11 : tensor<32xf32>"), 4 * 4 + 2);
}

TEST(HoistInvariants, MovesTablesOfConstants) {
  EXPECT_EQ(moved(R"(
    %places = stablehlo.iota dim = 0 : tensor<4096xf32>
    %table = stablehlo.sine %places : tensor<4096xf32>
    %row = stablehlo.dynamic_slice %table, %i, sizes = [32] : (tensor<4096xf32>, tensor<i32>) -> tensor<32xf32>
    %next = stablehlo.add %s, %row : tensor<32xf32>)"),
            2);
  EXPECT_EQ(moved(R"(
    %places = stablehlo.iota dim = 0 : tensor<4096xf32>
    %table = stablehlo.add %places, %places : tensor<4096xf32>
    %row = stablehlo.dynamic_slice %table, %i, sizes = [32] : (tensor<4096xf32>, tensor<i32>) -> tensor<32xf32>
    %next = stablehlo.add %s, %row : tensor<32xf32>)"),
            0);
}

// A loop that reads nothing of the outer loop's state: `step` says how it counts.
std::string inner_loop(const std::string& step) {
  return fmt::format(R"(
    %bound = stablehlo.constant dense<3> : tensor<i32>
    %q:2 = stablehlo.while(%j = %zero, %y = %v) : tensor<i32>, tensor<64xf32>
    cond {{
      %p2 = stablehlo.compare LT, %j, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p2 : tensor<i1>
    }} do {{
      %y1 = stablehlo.sine %y : tensor<64xf32>
      %j1 = stablehlo.add %j, {} : tensor<i32>
      stablehlo.return %j1, %y1 : tensor<i32>, tensor<64xf32>
    }}
    %half = stablehlo.slice %q#1 [0:32] : (tensor<64xf32>) -> tensor<32xf32>
    %next = stablehlo.add %s, %half : tensor<32xf32>)",
                     step);
}

// The outer loop may take no turn, where an inner loop without end would have been none.
TEST(HoistInvariants, MovesLoopsThatEnd) {
  EXPECT_EQ(moved(inner_loop("%one")), 2);
  EXPECT_EQ(moved(inner_loop("%bound")), 0);
}

TEST(HoistInvariants, LeavesWhatIsDrawnAtEachTurn) {
  const std::unique_ptr<Module> module = loop_of(R"(
    %size = stablehlo.constant dense<[64]> : tensor<1xi64>
    %most = stablehlo.constant dense<1.0> : tensor<f32>
    %drawn = stablehlo.rng %none, %most, %size, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<64xf32>
    %half = stablehlo.slice %drawn [0:32] : (tensor<64xf32>) -> tensor<32xf32>
    %next = stablehlo.add %s, %half : tensor<32xf32>)");
  ASSERT_NE(module, nullptr);
  const auto changed = hoist_invariants(*module);
  ASSERT_TRUE(changed);
  EXPECT_FALSE(*changed) << print_module(*module);
}

}  // namespace
}  // namespace tenon::hlo
