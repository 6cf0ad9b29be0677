// Tiles of a target that has `contract`, with sums in wide registers: convolutions whose loads
// follow memory.
#include <algorithm>
#include <cstring>

#include "hlo/lower/schedules/schedules_test_util.h"

namespace tenon::conformance {
namespace {

hlo::lower::LowerLimits native_limits() {
  hlo::lower::LowerLimits limits;
  limits.tiles = true;
  limits.vector_bytes = 64;
  limits.scratch_bytes = 256 << 10;
  return limits;
}

// Checks the names of the kernels, and that results are the evaluator's, also with random choices;
// returns the program's kernels.
std::vector<kernel::Kernel> expect_native(const hlo::Module& module,
                                          const std::vector<std::string>& names) {
  hlo::LowerOptions options;
  options.tuning = tuned({{"tiled-convolution", 1}});
  options.limits = native_limits();
  const auto program = hlo::compile_to_program(module, options);
  EXPECT_TRUE(program) << program.error().to_string();
  if (!program) return {};
  std::vector<std::string> made;
  for (const kernel::Kernel& kernel : program->kernels) made.push_back(kernel.name);
  EXPECT_EQ(made, names);
  const std::vector<Literal> arguments = arguments_of(module);
  const auto expected = hlo::Evaluator(module).run(*module.entry(), arguments);
  EXPECT_TRUE(expected) << expected.error().to_string();
  for (const int seed : expected ? picked_runs(module, 1, 1) : std::vector<int>{}) {
    SCOPED_TRACE(seed);
    hlo::InterpretedRunOptions run = options_of_run({{"tiled-convolution", 1}}, seed);
    run.lower.limits = native_limits();
    expect_results(module, arguments, *expected, run);
  }
  return program->kernels;
}

struct NativeConvolution {
  std::string input, kernel, result, dims, window;
  int groups = 1;

  std::unique_ptr<hlo::Module> module() const {
    return imported(
        fmt::format("func.func @main(%x: tensor<{0}>, %w: tensor<{1}>) -> tensor<{2}> {{\n"
                    "  %y = stablehlo.convolution(%x, %w) dim_numbers = {3}, window = {{{4}}} "
                    "{{batch_group_count = 1 : i64, feature_group_count = {5} : i64}} : "
                    "(tensor<{0}>, tensor<{1}>) -> tensor<{2}>\n  return %y : tensor<{2}>\n}}",
                    input, kernel, result, dims, window, groups));
  }
};

const kernel::Node* contract_of(const kernel::Kernel& kernel) {
  for (const kernel::Node& n : kernel.nodes) {
    if (n.op == kernel::OpCode::kContract) return &n;
  }
  return nullptr;
}

constexpr const char* kLastFeatures = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
const std::vector<std::string> kInPlace = {"convolution_tiles"};
const std::vector<std::string> kPacked = {"convolution_packed", "convolution_tiles"};

// Sums in scratch, tiles of the filter where they lie: in memory, or in a temporary.
TEST(NativeTiles, FilterIsReadInPlaceOrPackedOnce) {
  const auto whole = expect_native(
      *NativeConvolution{"2x9x30x64xf32", "3x3x64x16xf32", "2x7x28x16xf32", kLastFeatures, ""}
           .module(),
      kInPlace);
  ASSERT_EQ(whole.size(), 1U);
  const kernel::Node* const product = contract_of(whole[0]);
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(whole[0].memory(product->memories[0]).space, kernel::Space::kScratch);
  EXPECT_EQ(whole[0].memory(product->memories[2]).space, kernel::Space::kBuffer);
  // A whole line of 28 places is a tile.
  EXPECT_EQ(product->extents, (Dims{28, 16, 64}));
  // Outputs that end within a vector; another order; in bf16.
  for (const NativeConvolution& each : std::vector<NativeConvolution>{
           {"2x9x30x16xf32", "3x3x16x20xf32", "2x7x28x20xf32", kLastFeatures, ""},
           {"2x9x30x16xf32", "32x16x3x3xf32", "2x7x28x32xf32",
            "[b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f]", ""},
           {"2x9x30x16xf32", "3x3x8x32xf32", "2x7x28x32xf32", kLastFeatures, "", 2},
           {"2x9x30x16xbf16", "3x3x16x32xbf16", "2x7x28x32xbf16", kLastFeatures, ""}}) {
    SCOPED_TRACE(each.kernel + each.window);
    expect_native(*each.module(), kPacked);
  }
}

// Lines of a filter that lie so far apart that they leave a cache are read as panels, from a
// temporary or, where few tiles of results read them, from scratch.
TEST(NativeTiles, FarLinesOfAFilterAreReadAsPanels) {
  const auto many = expect_native(
      *NativeConvolution{"1x6x28x64xf32", "3x1x64x48xf32", "1x4x28x48xf32", kLastFeatures, ""}
           .module(),
      kPacked);
  ASSERT_EQ(many.size(), 2U);
  const kernel::Memory& panels = many[1].memory(contract_of(many[1])->memories[2]);
  EXPECT_EQ(panels.space, kernel::Space::kBuffer);
  EXPECT_EQ(panels.dims, (Dims{1, 3, 1, 1, 3, 64, 16}));
  const auto one = expect_native(
      *NativeConvolution{"1x3x28x64xf32", "3x1x64x48xf32", "1x1x28x48xf32", kLastFeatures, ""}
           .module(),
      kInPlace);
  ASSERT_EQ(one.size(), 1U);
  const kernel::Memory& copied = one[0].memory(contract_of(one[0])->memories[2]);
  EXPECT_EQ(copied.space, kernel::Space::kScratch);
  EXPECT_EQ(copied.dims, (Dims{3, 64, 16}));
}

// Few features beside the places: what a row of the window covers is one run of memory, with
// padding on both sides.
TEST(NativeTiles, FewFeaturesAreRuns) {
  const auto kernels =
      expect_native(*NativeConvolution{"2x9x59x3xf32", "3x5x3x20xf32", "2x5x30x20xf32",
                                       kLastFeatures, "stride = [2, 2], pad = [[1, 1], [2, 2]]"}
                         .module(),
                    kPacked);
  ASSERT_EQ(kernels.size(), 2U);
  const auto& memories = kernels[1].memories;
  EXPECT_TRUE(std::ranges::any_of(
      memories, [](const kernel::Memory& memory) { return memory.dims == Dims{2, 9, 59 * 3}; }));
  EXPECT_EQ(contract_of(kernels[1])->extents[2], 45);
  expect_native(*NativeConvolution{"2x9x59x3xf32", "3x5x3x20xf32", "2x7x30x20xf32", kLastFeatures,
                                   "stride = [1, 2], pad = [[0, 0], [2, 2]]"}
                     .module(),
                kPacked);
  expect_native(*NativeConvolution{"1x40x1xf32", "3x1x16xf32", "1x38x16xf32",
                                   "[b, 0, f]x[0, i, o]->[b, 0, f]", ""}
                     .module(),
                kInPlace);
}

// In a fusion the input may be read otherwise too, or be computed: then it is no run.
TEST(NativeTiles, RunsOnlyOfInputsThatNothingElseReads) {
  const std::string text = R"(
func.func @main(%x: tensor<1x4x30x3xf32>, %w: tensor<1x3x3x3xf32>) -> tensor<1x4x30x3xf32> {{
  %i = {0} : tensor<1x4x30x3xf32>
  %y = stablehlo.convolution(%i, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{pad = [[0, 0], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<1x4x30x3xf32>, tensor<1x3x3x3xf32>) -> tensor<1x4x30x3xf32>
  %z = stablehlo.add %y, %x : tensor<1x4x30x3xf32>
  return %z : tensor<1x4x30x3xf32>
}})";
  for (const char* const input : {"stablehlo.negate %x", "stablehlo.add %x, %x"}) {
    const auto kernels = expect_native(*fused(fmt::format(fmt::runtime(text), input)),
                                       {"fusion_packed", "fusion_tiles"});
    for (const kernel::Memory& memory : kernels.at(1).memories) {
      EXPECT_NE(memory.dims, (Dims{1, 4, 90}));
    }
  }
}

// Places last in memory, or the batch (the gradient by a filter): factors are brought transposed.
TEST(NativeTiles, OtherLayouts) {
  const auto first =
      expect_native(*NativeConvolution{"2x16x9x20xf32", "24x16x3x3xf32", "2x24x7x18xf32",
                                       "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", ""}
                         .module(),
                    kPacked);
  ASSERT_EQ(first.size(), 2U);
  // Sums lie as results do: outputs are the rows, places the columns, in whole registers.
  EXPECT_TRUE(contract_of(first[1])->transpose_a);
  EXPECT_EQ(contract_of(first[1])->extents, (Dims{12, 128, 144}));
  expect_native(*NativeConvolution{"2x16x9x20xf32", "24x16x3x3xf32", "2x24x8x10xf32",
                                   "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
                                   "stride = [1, 2], pad = [[0, 1], [1, 0]]"}
                     .module(),
                kPacked);
  const auto gradient =
      expect_native(*NativeConvolution{"1x8x8x16xf32", "1x6x6x32xf32", "3x3x16x32xf32",
                                       "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", ""}
                         .module(),
                    kPacked);
  ASSERT_EQ(gradient.size(), 2U);
  EXPECT_EQ(contract_of(gradient[1])->extents, (Dims{16, 32, 36}));
  expect_native(*NativeConvolution{"3x8x8x16xf32", "3x6x6x32xf32", "3x3x16x32xf32",
                                   "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", ""}
                     .module(),
                kPacked);
  // Gaps go by phases in each layout.
  expect_native(*NativeConvolution{"2x5x30x8xf32", "4x4x8x16xf32", "2x10x60x16xf32", kLastFeatures,
                                   "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]"}
                     .module(),
                kPacked);
  expect_native(*NativeConvolution{"2x8x5x30xf32", "16x8x4x3xf32", "2x16x10x59xf32",
                                   "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
                                   "pad = [[2, 2], [1, 1]], lhs_dilate = [2, 2]"}
                     .module(),
                kPacked);
}

// Tiles of whole lines of places: each place of the window and each line of the input is one loop,
// without a quotient for each place.
TEST(NativeTiles, TilesOfWholeLines) {
  for (const char* const result : {"3x24x11x12xf32", "3x5x11x12xf32"}) {
    const std::string outputs =
        std::string(result).substr(2, std::string(result)[3] == 'x' ? 1 : 2);
    const auto kernels = expect_native(
        *NativeConvolution{"3x2x11x12xf32", outputs + "x2x3x3xf32", result,
                           "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", "pad = [[1, 1], [1, 1]]"}
             .module(),
        kPacked);
    ASSERT_EQ(kernels.size(), 2U);
    EXPECT_EQ(contract_of(kernels[1])->extents[1], 64);
    bool has_lines = false;
    for (const kernel::Node& n : kernels[1].nodes) {
      has_lines |= n.op == kernel::OpCode::kLanes && n.extents == Dims{3, 3, 2, 5, 12};
    }
    EXPECT_TRUE(has_lines);
  }
}

// Deep tiles of wide numbers have fewer rows, so that they fit scratch memory.
TEST(NativeTiles, TilesFitScratchMemory) {
  const auto kernels =
      expect_native(*NativeConvolution{"1x1x23x24xf64", "64x1x12x12xf64", "1x64x12x13xf64",
                                       "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", ""}
                         .module(),
                    kPacked);
  ASSERT_EQ(kernels.size(), 2U);
  const Dims& box = contract_of(kernels[1])->extents;
  EXPECT_EQ(box[2], 144);
  EXPECT_LE(box[1], 80);
}

// A filter that is read backwards lies as it is read forwards.
TEST(NativeTiles, ReversedFiltersAreReadInPlace) {
  expect_native(*NativeConvolution{"1x9x9x64xf32", "3x3x64x16xf32", "1x9x9x16xf32", kLastFeatures,
                                   "pad = [[1, 1], [1, 1]], reverse = [true, false]"}
                     .module(),
                kInPlace);
}

// A convolution whose filter is a constant, of f32 or bf16, that another op may read too.
std::unique_ptr<hlo::Module> with_constant_filter(const NativeConvolution& c,
                                                  bool negated = false) {
  const size_t type = c.kernel.rfind('x') + 1;
  int64_t count = 1;
  for (size_t at = 0; at < type; at = c.kernel.find('x', at) + 1)
    count *= std::stoll(c.kernel.substr(at));
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<float>((i * 7 + i / 13) % 11 - 5);
    uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    for (unsigned b = c.kernel.substr(type) == "bf16" ? 2 : 0; b < 4; ++b)
      bytes += fmt::format("{:02X}", bits >> (8 * b) & 0xFF);
  }
  const std::string filter = fmt::format("tensor<{}>", c.kernel);
  return imported(fmt::format(
      "func.func @main(%x: tensor<{0}>) -> (tensor<{2}>{7}) {{\n"
      "  %w = stablehlo.constant dense<\"0x{6}\"> : {1}\n"
      "  %y = stablehlo.convolution(%x, %w) dim_numbers = {3}, window = {{{4}}} "
      "{{batch_group_count = 1 : i64, feature_group_count = {5} : i64}} : "
      "(tensor<{0}>, {1}) -> tensor<{2}>\n{8} : tensor<{2}>{7}\n}}",
      c.input, filter, c.result, c.dims, c.window, c.groups, bytes, negated ? ", " + filter : "",
      negated ? fmt::format("  %n = stablehlo.negate %w : {}\n  return %y, %n", filter)
              : "  return %y"));
}

// A constant filter lies as tiles read it as the program is compiled: no kernel packs it, and the
// program has no other copy of it.
TEST(NativeTiles, ConstantFiltersArePanels) {
  const std::vector<std::pair<NativeConvolution, Dims>> cases = {
      {{"2x9x30x64xf32", "3x3x64x32xf32", "2x7x28x32xf32", kLastFeatures, ""},
       {1, 3, 3, 1, 1, 64, 32}},
      // Several panels of a tile and tiles of the depth; tiles of outputs, which end within one.
      {{"1x4x5x180xf32", "1x2x180x48xf32", "1x4x4x48xf32", kLastFeatures, ""},
       {1, 1, 2, 2, 3, 90, 16}},
      {{"1x5x5x8xf32", "3x3x8x300xf32", "1x5x5x300xf32", kLastFeatures, "pad = [[1, 1], [1, 1]]"},
       {3, 1, 7, 72, 16}},
      {{"1x9x9x20xf32", "3x3x20x96xf32", "1x7x7x96xf32", kLastFeatures, "reverse = [true, false]"},
       {1, 3, 1, 3, 60, 32}},
      // Inputs last; groups; several rows of the window in one turn; the whole window.
      {{"2x9x30x64xf32", "32x64x3x3xf32", "2x7x28x32xf32",
        "[b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f]", ""},
       {1, 3, 3, 1, 1, 64, 32}},
      {{"2x9x30x16xf32", "3x3x8x32xf32", "2x7x28x32xf32", kLastFeatures, "", 2},
       {2, 1, 1, 1, 72, 16}},
      {{"2x9x59x3xf32", "3x5x3x30xf32", "2x5x30x30xf32", kLastFeatures,
        "stride = [2, 2], pad = [[1, 1], [2, 2]]"},
       {1, 1, 1, 45, 32}},
      {{"1x9x9x3xf32", "3x3x3x32xf32", "1x7x7x32xf32", kLastFeatures, ""}, {1, 1, 1, 27, 32}},
      {{"2x16x9x20xf32", "32x16x3x3xf32", "2x32x7x18xf32",
        "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", ""},
       {1, 1, 3, 144, 11}}};
  for (const auto& [convolution, dims] : cases) {
    SCOPED_TRACE(convolution.kernel + " " + convolution.window);
    const auto module = with_constant_filter(convolution);
    const auto kernels = expect_native(*module, kInPlace);
    ASSERT_EQ(kernels.size(), 1U);
    const kernel::Node& product = *contract_of(kernels[0]);
    const kernel::Memory& filter = kernels[0].memory(product.memories[product.transpose_a ? 1 : 2]);
    EXPECT_EQ(filter.dims, dims);
    EXPECT_EQ(filter.space, kernel::Space::kBuffer);
    hlo::LowerOptions options;
    options.tuning = tuned({{"tiled-convolution", 1}});
    options.limits = native_limits();
    const auto program = hlo::compile_to_program(*module, options);
    ASSERT_TRUE(program);
    ASSERT_EQ(program->constants.size(), 1U);
    EXPECT_EQ(program->constants[0].shape().dims(), dims);
  }
}

TEST(NativeTiles, ConstantFiltersThatStay) {
  const NativeConvolution plain = {"2x9x30x64xf32", "3x3x64x16xf32", "2x7x28x16xf32", kLastFeatures,
                                   ""};
  // A filter that another op reads too would be in memory twice.
  const auto shared =
      expect_native(*with_constant_filter(plain, true), {"convolution_tiles", "negate"});
  ASSERT_FALSE(shared.empty());
  EXPECT_EQ(shared[0].memory(contract_of(shared[0])->memories[2]).dims, (Dims{3, 3, 64, 16}));
  // Widened as it is packed; by phases, which read different parts of it.
  expect_native(*with_constant_filter(
                    {"2x9x30x16xbf16", "3x3x16x32xbf16", "2x7x28x32xbf16", kLastFeatures, ""}),
                kPacked);
  expect_native(
      *with_constant_filter({"2x5x30x8xf32", "4x4x8x16xf32", "2x10x60x16xf32", kLastFeatures,
                             "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]"}),
      kPacked);
  // The last tile of 20 outputs would be more than an eighth of zeros.
  expect_native(*with_constant_filter({"2x9x59x3xf32", "3x5x3x20xf32", "2x5x30x20xf32",
                                       kLastFeatures, "stride = [2, 2], pad = [[1, 1], [2, 2]]"}),
                kPacked);
}

// A filter that leaves a near cache: tiles of one part of it follow one another, so that the
// columns are the outer loop.
TEST(NativeTiles, TilesOfAFarFilterFollowOneAnother) {
  const auto grid_of = [](int64_t features) {
    hlo::LowerOptions options;
    options.tuning = tuned({{"tiled-convolution", 1}});
    options.limits = native_limits();
    const NativeConvolution convolution = {fmt::format("1x16x16x{}xf32", features),
                                           fmt::format("3x3x{}x256xf32", features),
                                           "1x14x14x256xf32", kLastFeatures, ""};
    const auto program = hlo::compile_to_program(*convolution.module(), options);
    EXPECT_TRUE(program) << program.error().to_string();
    return program ? program->kernels.back().grid : Dims{};
  };
  EXPECT_EQ(grid_of(256), (Dims{2, 4}));
  EXPECT_EQ(grid_of(64), (Dims{4, 2}));
}

// Few rows of tiles are beyond the end of 7 x 7 and 14 x 14 places, whose tiles take several lines.
TEST(NativeTiles, SizesThatWasteLittle) {
  for (const int64_t places : {7, 14}) {
    const auto kernels =
        expect_native(*NativeConvolution{fmt::format("1x{0}x{0}x8xf32", places), "1x1x8x32xf32",
                                         fmt::format("1x{0}x{0}x32xf32", places), kLastFeatures, ""}
                           .module(),
                      kInPlace);
    ASSERT_EQ(kernels.size(), 1U);
    const int64_t rows = contract_of(kernels[0])->extents[0];
    const int64_t all = places * places;
    EXPECT_LE((all + rows - 1) / rows * rows, all + 4) << rows;
    EXPECT_GE(rows, 40);
  }
}

// Rows are the least number of tiles of what registers hold, all of about one size: 49 rows are
// nine tiles of 6 and 5 rows in registers of 32 bytes, and four of 13 and 12 in wide ones.
TEST(NativeTiles, RowsThatRegistersHold) {
  const auto module =
      imported(dot("49x64xf32", "64x64xf32", "49x64xf32", "contracting_dims = [1] x [0]"));
  const auto rows_of = [&](int64_t vector_bytes) {
    hlo::LowerOptions options;
    options.tuning = tuned({{"tiled-dot", 1}});
    options.limits = native_limits();
    options.limits.vector_bytes = vector_bytes;
    const auto program = hlo::compile_to_program(*module, options);
    EXPECT_TRUE(program) << program.error().to_string();
    const kernel::Node* const product = contract_of(program->kernels.back());
    return product == nullptr ? 0 : product->extents[0];
  };
  EXPECT_EQ(rows_of(64), 49);
  EXPECT_EQ(rows_of(32), 49);
}

}  // namespace
}  // namespace tenon::conformance
