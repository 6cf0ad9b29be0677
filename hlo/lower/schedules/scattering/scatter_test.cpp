// Scatters and gathers with the ops that compute their indices: the kernels that they become, and
// their results in every order of iterations and with random choices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/lower/schedules/schedules_test_util.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

using KernelNames = std::vector<std::string>;

// Whole numbers from -4 on, or any of 8 bits: as indices some are out of range.
std::vector<Literal> places_and_numbers(const hlo::Module& module, int64_t most) {
  Random random(3);
  std::vector<Literal> arguments;
  for (size_t i = 0; i < module.entry()->parameter_count(); ++i) {
    Literal array(module.entry()->parameter(i).shape());
    const bool is_byte = bit_width(array.element_type()) == 8;
    const int64_t range = is_byte ? 256 : is_integer(array.element_type()) ? most + 9 : 9;
    const int64_t least = array.element_type() == ElementType::kS8 ? -128 : is_byte ? 0 : -4;
    for (int64_t k = 0; k < array.element_count(); ++k) {
      array.set_double(k, static_cast<double>(random.below(range) + least));
    }
    arguments.push_back(std::move(array));
  }
  return arguments;
}

// Checks that fusion and `choices` give kernels with these names, and that they and random choices
// give the evaluator's results.
void expect_indexing(const std::string& text, const Choices& choices, const KernelNames& kernels,
                     int64_t most, int runs = 9) {
  const auto plain = imported(text);
  const auto module = imported(text);
  const auto changed = hlo::fuse_elements(*module, {});
  ASSERT_TRUE(changed) << changed.error().to_string();
  EXPECT_EQ(names_of_kernels(*module, choices), kernels);
  const std::vector<Literal> arguments = places_and_numbers(*plain, most);
  const auto expected = hlo::Evaluator(*plain).run(*plain->entry(), arguments);
  ASSERT_TRUE(expected) << expected.error().to_string();
  for (int seed = 0; seed < runs; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    const auto actual = hlo::run_interpreted(*module, arguments, hlo::Checks(&failures, &checks),
                                             options_of_run(choices, seed));
    ASSERT_TRUE(actual) << actual.error().to_string();
    for (size_t i = 0; i < actual->size(); ++i) EXPECT_EQ((*actual)[i], (*expected)[i]) << i;
  }
}

// Numbers of one type, computed from an argument, combined at computed places of 20.
std::string into_few(const std::string& op, const std::string& type, const std::string& index,
                     const std::string& attributes = "") {
  return fmt::format(R"(
func.func @main(%x: tensor<20x{1}>, %i: tensor<1300x{2}>, %u: tensor<1300x{1}>) -> tensor<20x{1}> {{
  %two = stablehlo.constant dense<2> : tensor<1300x{2}>
  %j = stablehlo.maximum %i, %two : tensor<1300x{2}>
  %k = stablehlo.reshape %j : (tensor<1300x{2}>) -> tensor<1300x1x{2}>
  %v = stablehlo.minimum %u, %u : tensor<1300x{1}>
  %r = "stablehlo.scatter"(%x, %k, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>{3}}}> ({{
  ^bb0(%a: tensor<{1}>, %b: tensor<{1}>):
    %s = stablehlo.{0} %a, %b : tensor<{1}>
    stablehlo.return %s : tensor<{1}>
  }}) : (tensor<20x{1}>, tensor<1300x1x{2}>, tensor<1300x{1}>) -> tensor<20x{1}>
  return %r : tensor<20x{1}>
}})",
                     op, type, index, attributes);
}

TEST(Scatters, ManyNumbersAreCountedInScratch) {
  for (const std::string_view op : {"add", "minimum", "maximum", "and", "or", "xor"}) {
    for (const std::string_view type : {"i32", "ui8", "i64"}) {
      SCOPED_TRACE(fmt::format("{} {}", op, type));
      const std::string text = into_few(std::string(op), std::string(type), "i32");
      expect_indexing(text, {}, {"scatter_counts"}, 20, 5);
    }
  }
  const std::string text = into_few("add", "i32", "i32");
  expect_indexing(text, {{"scatter_counts", 0}, {"scatter_atomic", 1}}, {"scatter_atomic"}, 20);
  expect_indexing(text, {{"scatter_counts", 0}}, {"scatter"}, 20);
}

// With an element for updates that are outside.
TEST(Scatters, CountsFitScratch) {
  const auto module = imported(into_few("add", "i32", "i32"));
  ASSERT_TRUE(hlo::fuse_elements(*module, {}));
  for (const auto& [bytes, name] :
       {std::pair(84, "scatter_counts"), std::pair(83, "scatter_atomic")}) {
    hlo::LowerOptions options;
    options.limits.scratch_bytes = bytes;
    options.limits.cost.busy_lanes = 64;
    const auto program = hlo::compile_to_program(*module, options);
    ASSERT_TRUE(program) << program.error().to_string();
    ASSERT_EQ(program->kernels.size(), 1U);
    EXPECT_EQ(program->kernels[0].name, name);
  }
}

// A unit of one lane finds the places of a block first, and counts without atomics; lanes of a unit
// count by atomics. Each unit has some updates.
TEST(Scatters, CountsByUnits) {
  const auto module = imported(R"(
func.func @main(%x: tensor<10xi32>, %i: tensor<40000x1xi32>, %u: tensor<40000xi32>) -> tensor<10xi32> {
  %y = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<10xi32>, tensor<40000x1xi32>, tensor<40000xi32>) -> tensor<10xi32>
  return %y : tensor<10xi32>
})");
  for (const int64_t units : {0, 100}) {
    hlo::LowerOptions options;
    options.limits.cost.busy_lanes = units == 0 ? 1 : units * options.limits.cost.lanes;
    const auto program = hlo::compile_to_program(*module, options);
    ASSERT_TRUE(program) << program.error().to_string();
    ASSERT_EQ(program->kernels.size(), 1U);
    const kernel::Kernel& counts = program->kernels[0];
    EXPECT_EQ(counts.name, "scatter_counts");
    EXPECT_EQ(counts.grid, (Dims{units == 0 ? 10 : 100}));
    int64_t atomics = 0;
    for (const kernel::Node& n : counts.nodes) atomics += n.op == kernel::OpCode::kAtomic ? 1 : 0;
    EXPECT_EQ(atomics, units == 0 ? 1 : 2);
  }
}

TEST(Scatters, FloatsAreCombinedInParts) {
  for (const std::string_view op : {"add", "minimum", "maximum"}) {
    const std::string text = into_few(std::string(op), "f32", "i32");
    expect_indexing(text, {{"scatter_copies", 7}}, {"scatter_parts", "scatter_total"}, 20, 5);
    expect_indexing(text, {}, {"scatter"}, 20, 5);
  }
  // There is no number from which every other one can be subtracted to give itself.
  expect_indexing(into_few("subtract", "f32", "i32"), {{"scatter_copies", 7}}, {"scatter"}, 20, 5);
}

TEST(Scatters, ManyUpdatesOfFewPlacesArePartsByThemselves) {
  const auto module = imported(R"(
func.func @main(%x: tensor<20xf32>, %i: tensor<20000x1xi32>, %u: tensor<20000xf32>) -> tensor<20xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<20xf32>, tensor<20000x1xi32>, tensor<20000xf32>) -> tensor<20xf32>
  return %r : tensor<20xf32>
})");
  EXPECT_EQ(names_of_kernels(*module, {}), (KernelNames{"scatter_parts", "scatter_total"}));
}

TEST(Scatters, IndicesOfOtherTypes) {
  for (const std::string_view index : {"i8", "ui8", "i16", "ui32", "i64", "ui64"}) {
    SCOPED_TRACE(index);
    const std::string text = into_few("add", "f32", std::string(index));
    expect_indexing(text, {}, {"scatter"}, 20, 5);
  }
  // 200 is less than 256, but -100 is not 156.
  for (const int64_t size : {100, 127, 128, 129, 200, 256, 300}) {
    for (const std::string_view index : {"i8", "ui8"}) {
      SCOPED_TRACE(fmt::format("{} into {}", index, size));
      const std::string wide = fmt::format(R"(
func.func @main(%x: tensor<{0}xi32>, %i: tensor<1100x1x{1}>, %u: tensor<1100xi32>) -> tensor<{0}xi32> {{
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }}) : (tensor<{0}xi32>, tensor<1100x1x{1}>, tensor<1100xi32>) -> tensor<{0}xi32>
  return %r : tensor<{0}xi32>
}})",
                                           size, index);
      expect_indexing(wide, {{"scatter_counts", 1}}, {"scatter_counts"}, 20, 4);
    }
  }
}

TEST(Scatters, RowsAndUniquePlaces) {
  const std::string rows = R"(
func.func @main(%x: tensor<6x70xf32>, %i: tensor<1100xi32>, %u: tensor<1100x70xf32>) -> tensor<6x70xf32> {
  %j = stablehlo.negate %i : tensor<1100xi32>
  %k = stablehlo.reshape %j : (tensor<1100xi32>) -> tensor<1100x1xi32>
  %r = "stablehlo.scatter"(%x, %k, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x70xf32>, tensor<1100x1xi32>, tensor<1100x70xf32>) -> tensor<6x70xf32>
  return %r : tensor<6x70xf32>
})";
  expect_indexing(rows, {}, {"scatter"}, 6, 5);
  // Every third place: places that differ may be stored at once.
  expect_indexing(R"(
func.func @main(%x: tensor<3400xf32>, %u: tensor<1100xf32>) -> tensor<3400xf32> {
  %n = stablehlo.iota dim = 0 : tensor<1100xi32>
  %three = stablehlo.constant dense<3> : tensor<1100xi32>
  %j = stablehlo.multiply %n, %three : tensor<1100xi32>
  %k = stablehlo.broadcast_in_dim %j, dims = [0] : (tensor<1100xi32>) -> tensor<1100x1xi32>
  %r = "stablehlo.scatter"(%x, %k, %u) <{unique_indices = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<3400xf32>, tensor<1100x1xi32>, tensor<1100xf32>) -> tensor<3400xf32>
  return %r : tensor<3400xf32>
})",
                  {}, {"scatter_unique"}, 6, 5);
}

// --- Gathers

constexpr std::string_view kGatherRows =
    R"(<{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}>)";

TEST(Gathers, TakeTheirIndicesAndReaders) {
  // Negative indices count from the end; a row, scaled, of each.
  expect_indexing(fmt::format(R"(
func.func @main(%x: tensor<9x6xf32>, %i: tensor<5xi32>, %y: tensor<5x6xf32>) -> tensor<5x6xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<5xi32>
  %size = stablehlo.constant dense<9> : tensor<5xi32>
  %p = stablehlo.compare LT, %i, %zero : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %up = stablehlo.add %i, %size : tensor<5xi32>
  %j = stablehlo.select %p, %up, %i : tensor<5xi1>, tensor<5xi32>
  %k = stablehlo.broadcast_in_dim %j, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
  %g = "stablehlo.gather"(%x, %k) {0} : (tensor<9x6xf32>, tensor<5x1xi32>) -> tensor<5x6xf32>
  %r = stablehlo.multiply %g, %y : tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}})",
                              kGatherRows),
                  {}, {"elements"}, 9);
}

// Indices that take more than to bring them into bounds are stored: a kernel that read them for
// each element of a window would compute them as often.
TEST(Gathers, LongIndicesAreComputedOnce) {
  const auto text = [](std::string_view index) {
    return fmt::format(R"(
func.func @main(%x: tensor<9x600xf32>, %i: tensor<50xf32>) -> tensor<50x600xf32> {{
  {0}
  %j = stablehlo.convert %a : (tensor<50xf32>) -> tensor<50xi32>
  %k = stablehlo.reshape %j : (tensor<50xi32>) -> tensor<50x1xi32>
  %g = "stablehlo.gather"(%x, %k) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 600>}}> : (tensor<9x600xf32>, tensor<50x1xi32>) -> tensor<50x600xf32>
  return %g : tensor<50x600xf32>
}})",
                       index);
  };
  const auto module = imported(text("%a = stablehlo.sine %i : tensor<50xf32>"));
  ASSERT_TRUE(hlo::run_passes(*module, hlo::optimizing_passes()).ok());
  EXPECT_EQ(names_of_kernels(*module, {}).size(), 2U);
}

// An array that is also updated is gathered from before the update, which is then in place: with a
// reader of the result the gather would need the old array behind it.
TEST(Gathers, OfAnUpdatedArrayStandBeforeTheUpdate) {
  const auto module = imported(R"(
func.func @main(%x: tensor<3000xf32>, %v: tensor<1xf32>, %i: tensor<1x1xi32>, %k: tensor<3000x1xi32>) -> (tensor<3000xf32>, tensor<3000xf32>) {
  %old = "stablehlo.gather"(%x, %k) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<3000xf32>, tensor<3000x1xi32>) -> tensor<3000xf32>
  %new = "stablehlo.scatter"(%x, %i, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<3000xf32>, tensor<1x1xi32>, tensor<1xf32>) -> tensor<3000xf32>
  %sum = stablehlo.add %old, %new : tensor<3000xf32>
  return %sum, %new : tensor<3000xf32>, tensor<3000xf32>
})");
  ASSERT_TRUE(hlo::run_passes(*module, hlo::optimizing_passes()).ok());
  for (const hlo::Instruction& op : *module->entry()) {
    const bool reads_both = op.code() == hlo::OpCode::kFusion && op.operand_count() > 0 &&
                            std::ranges::any_of(op.operands(), [](const hlo::Value& value) {
                              return value.def->code() == hlo::OpCode::kScatter;
                            });
    if (!reads_both) continue;
    for (const hlo::Instruction& inner : op.region(0)) {
      EXPECT_NE(inner.code(), hlo::OpCode::kGather);
    }
  }
}

TEST(Gathers, OfTwoIndicesAreOneKernel) {
  expect_indexing(R"(
func.func @main(%x: tensor<9x6xf32>, %i: tensor<50xi32>, %j: tensor<50xi32>) -> tensor<50xf32> {
  %a = stablehlo.reshape %i : (tensor<50xi32>) -> tensor<50x1xi32>
  %b = stablehlo.broadcast_in_dim %j, dims = [0] : (tensor<50xi32>) -> tensor<50x1xi32>
  %k = stablehlo.concatenate %a, %b, dim = 1 : (tensor<50x1xi32>, tensor<50x1xi32>) -> tensor<50x2xi32>
  %g = "stablehlo.gather"(%x, %k) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<9x6xf32>, tensor<50x2xi32>) -> tensor<50xf32>
  return %g : tensor<50xf32>
})",
                  {}, {"elements"}, 9);
}

// The table is computed once, not again for each place; nor is a table that the result adds to.
TEST(Gathers, ReadATableFromMemory) {
  expect_indexing(fmt::format(R"(
func.func @main(%x: tensor<5x6xf32>, %i: tensor<5x1xi32>) -> tensor<5x6xf32> {{
  %t = stablehlo.negate %x : tensor<5x6xf32>
  %g = "stablehlo.gather"(%t, %i) {} : (tensor<5x6xf32>, tensor<5x1xi32>) -> tensor<5x6xf32>
  %r = stablehlo.add %g, %t : tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}})",
                              kGatherRows),
                  {}, {"negate", "elements"}, 5);
}

// Indices that others read too are stored once.
TEST(Gathers, ShareIndicesWithOthers) {
  expect_indexing(fmt::format(R"(
func.func @main(%x: tensor<9x6xf32>, %i: tensor<5x1xi32>) -> (tensor<5x6xf32>, tensor<5x1xi32>) {{
  %j = stablehlo.negate %i : tensor<5x1xi32>
  %g = "stablehlo.gather"(%x, %j) {} : (tensor<9x6xf32>, tensor<5x1xi32>) -> tensor<5x6xf32>
  return %g, %j : tensor<5x6xf32>, tensor<5x1xi32>
}})",
                              kGatherRows),
                  {}, {"negate", "gather"}, 9);
}

}  // namespace
}  // namespace tenon::conformance
