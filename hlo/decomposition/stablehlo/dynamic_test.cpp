// Ops whose amounts are operands: constant amounts, run-time amounts and the equivalent static op
// give the same results. Also small programs for the evaluator that need a module of their own.
#include <cmath>

#include "hlo/decomposition/decomposition_test_util.h"

namespace tenon::hlo {
namespace {

std::string i64s(const Integers& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// `op` on `x` and amounts: as arguments if `run_time`, else as constants.
Integers with_amounts(const std::string& name, const std::string& attributes,
                      const std::vector<Literal>& arrays, const std::vector<Literal>& amounts,
                      const std::string& result, bool run_time) {
  std::vector<Literal> arguments = arrays;
  arguments.insert(arguments.end(), amounts.begin(), amounts.end());
  const OpCall op{name, attributes, {result}, {}};
  if (run_time) return integers_of(op(arguments)[0]);
  // The parameters for the amounts become constants with their names.
  std::string parameters, names, types, constants;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string comma = i == 0 ? "" : ", ";
    const std::string type = Type(arguments[i].shape()).to_mlir();
    names += fmt::format("{}%a{}", comma, i);
    types += comma + type;
    if (i < arrays.size()) {
      parameters += fmt::format("{}%a{}: {}", comma, i, type);
    } else {
      std::string value = arguments[i].to_string();
      for (char& c : value) c = c == '{' ? '[' : c == '}' ? ']' : c;
      constants += fmt::format("  %a{} = stablehlo.constant dense<{}> : {}\n", i, value, type);
    }
  }
  const std::string text = fmt::format(
      "func.func @main({}) -> tensor<{}> {{\n{}  %r = \"{}\"({}) {{{}}} : ({}) -> tensor<{}>\n"
      "  return %r : tensor<{}>\n}}\n",
      parameters, result, constants, name, names, attributes, types, result, result);
  const auto values = run_text(text, arrays);
  if (!values) {
    ADD_FAILURE() << values.error().to_string() << "\n" << text;
    return {};
  }
  return integers_of((*values)[0]);
}

TEST(DynamicPad, NegativeAndInterior) {
  const Literal x = integers({2, 3}, {1, 2, 3, 4, 5, 6});
  struct Case {
    Integers low, high, interior;
    std::string result;
  };
  for (const Case& c :
       {Case{{1, 0}, {0, 2}, {0, 0}, "3x5xi64"}, Case{{0, -1}, {1, -1}, {2, 1}, "5x3xi64"},
        Case{{-1, 2}, {0, -4}, {0, 2}, "1x5xi64"}, Case{{0, -2}, {0, 3}, {1, 2}, "3x8xi64"},
        Case{{-2, 0}, {0, 0}, {0, 0}, "0x3xi64"}}) {
    SCOPED_TRACE(c.result);
    const OpCall pad{
        "stablehlo.pad",
        fmt::format("edge_padding_low = array<i64: {}>, edge_padding_high = array<i64: {}>, "
                    "interior_padding = array<i64: {}>",
                    fmt::join(c.low, ", "), fmt::join(c.high, ", "), fmt::join(c.interior, ", ")),
        {c.result},
        {}};
    const Literal fill = integers({}, {-7});
    const Integers expected = integers_of(pad({x, fill})[0]);
    for (const bool run_time : {false, true}) {
      EXPECT_EQ(
          with_amounts("stablehlo.dynamic_pad", "", {x, fill},
                       {integers({2}, c.low), integers({2}, c.high), integers({2}, c.interior)},
                       c.result, run_time),
          expected);
    }
  }
}

TEST(RealDynamicSlice, Strides) {
  const Literal x = integers({3, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  for (const bool run_time : {false, true}) {
    EXPECT_EQ(with_amounts("stablehlo.real_dynamic_slice", "", {x},
                           {integers({2}, {1, 0}), integers({2}, {3, 4}), integers({2}, {1, 3})},
                           "2x2xi64", run_time),
              (Integers{10, 13, 20, 23}));
  }
}

TEST(DynamicGather, Rows) {
  const Literal x = integers({3, 2}, {0, 1, 10, 11, 20, 21});
  for (const bool run_time : {false, true}) {
    EXPECT_EQ(with_amounts(
                  "stablehlo.dynamic_gather",
                  "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims "
                  "= [0], start_index_map = [0], index_vector_dim = 1>",
                  {x, integers({3, 1}, {2, 0, 9})}, {integers({2}, {1, 2})}, "3x2xi64", run_time),
              (Integers{20, 21, 0, 1, 20, 21}));
  }
}

TEST(DynamicConv, Padding) {
  const Literal x = integers({1, 5, 1}, {1, 2, 3, 4, 5}), kernel = integers({2, 1, 1}, {10, 1});
  const std::string numbers =
      "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = "
      "1 "
      ": i64, batch_group_count = 1 : i64";
  struct Case {
    Integers padding;
    std::string attributes, result;
  };
  for (const Case& c :
       {Case{{1, 2}, "window_strides = array<i64: 1>", "1x7x1xi64"},
        Case{{-1, 0}, "window_strides = array<i64: 2>", "1x2x1xi64"},
        Case{{1, -2}, "lhs_dilation = array<i64: 2>, rhs_dilation = array<i64: 3>", "1x5x1xi64"}}) {
    SCOPED_TRACE(c.attributes);
    const std::string attributes = c.attributes + ", " + numbers;
    const OpCall fixed{
        "stablehlo.convolution",
        fmt::format("padding = dense<[{}]> : tensor<1x2xi64>, {}", i64s(c.padding), attributes),
        {c.result},
        {}};
    const Integers expected = integers_of(fixed({x, kernel})[0]);
    for (const bool run_time : {false, true}) {
      EXPECT_EQ(with_amounts("stablehlo.dynamic_conv", attributes, {x, kernel},
                             {integers({1, 2}, c.padding)}, c.result, run_time),
                expected);
    }
  }
}

TEST(DynamicConv, APaddedSizeBeyond63Bits) {
  const auto results =
      run_text(R"(
func.func @main(%x: tensor<1x4x1xf32>, %k: tensor<2x1x1xf32>, %p: tensor<1x2xi64>) -> tensor<1x3x1xf32> {
  %0 = "stablehlo.dynamic_conv"(%x, %k, %p) {
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64,
    feature_group_count = 1 : i64, window_strides = array<i64: 4611686018427387904>
  } : (tensor<1x4x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x3x1xf32>
  return %0 : tensor<1x3x1xf32>
})",
               {Literal(Shape(ElementType::kF32, {1, 4, 1})),
                Literal(Shape(ElementType::kF32, {2, 1, 1})), integers({1, 2}, {0, 0})});
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().message(),
            "stablehlo.dynamic_conv: C25: the padded size of spatial dimension 0 overflows");
}

TEST(Dynamic, ShapesByOperand) {
  const Literal x = integers({2}, {1, 2});
  for (const bool run_time : {false, true}) {
    EXPECT_EQ(
        with_amounts("stablehlo.dynamic_broadcast_in_dim", "broadcast_dimensions = array<i64: 0>",
                     {x}, {integers({2}, {2, 3})}, "2x3xi64", run_time),
        (Integers{1, 1, 1, 2, 2, 2}));
    EXPECT_EQ(with_amounts("stablehlo.dynamic_reshape", "", {x}, {integers({2}, {2, 1})}, "2x1xi64",
                           run_time),
              (Integers{1, 2}));
    EXPECT_EQ(with_amounts("stablehlo.dynamic_iota", "iota_dimension = 1 : i64", {},
                           {integers({2}, {2, 3})}, "2x3xi64", run_time),
              (Integers{0, 1, 2, 0, 1, 2}));
  }
}

TEST(Dynamic, SizesOfDimensions) {
  const OpCall get{"stablehlo.get_dimension_size", "dimension = 1 : i64", {"i32"}, {}};
  EXPECT_EQ(integers_of(get({integers({2, 3}, {})})[0]), (Integers{3}));
  const OpCall set{"stablehlo.set_dimension_size", "dimension = 0 : i64", {"2xi64"}, {}};
  EXPECT_EQ(integers_of(set({integers({2}, {4, 5}), integers({}, {2}, ElementType::kS32)})[0]),
            (Integers{4, 5}));
}

// --- rng

Literal rng(const std::string& distribution, const Literal& a, const Literal& b,
            const std::string& type, int64_t count, uint64_t seed) {
  const OpCall op{"stablehlo.rng",
                  "rng_distribution = #stablehlo<rng_distribution " + distribution + ">",
                  {fmt::format("{}x{}", count, type)},
                  {}};
  const Literal shape = integers({1}, {count});
  EvaluatorOptions options;
  options.rng_seed = seed;
  const auto values = op.try_run({a, b, shape}, options);
  EXPECT_TRUE(values) << values.error().to_string();
  return values ? (*values)[0] : Literal();
}

TEST(Rng, UniformStaysInRangeAndFollowsTheSeed) {
  const Literal low = reals({}, {-2}), high = reals({}, {3});
  const Reals x = reals_of(rng("UNIFORM", low, high, "f64", 1000, 1));
  double sum = 0;
  for (const double value : x) {
    EXPECT_GE(value, -2);
    EXPECT_LT(value, 3);
    sum += value;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.2);
  EXPECT_EQ(x, reals_of(rng("UNIFORM", low, high, "f64", 1000, 1)));
  EXPECT_NE(x, reals_of(rng("UNIFORM", low, high, "f64", 1000, 2)));
  Integers seen(5);
  for (const int64_t value :
       integers_of(rng("UNIFORM", integers({}, {-2}), integers({}, {3}), "i64", 200, 1))) {
    ASSERT_TRUE(value >= -2 && value < 3) << value;
    ++seen[static_cast<size_t>(value + 2)];
  }
  for (const int64_t count : seen) EXPECT_GT(count, 10);
}

TEST(Rng, NormalMoments) {
  const Reals x = reals_of(rng("NORMAL", reals({}, {3}), reals({}, {2}), "f64", 4000, 1));
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / 4000;
  for (const double value : x) variance += (value - mean) * (value - mean) / 4000;
  EXPECT_NEAR(mean, 3, 0.15);
  EXPECT_NEAR(variance, 4, 0.4);
}

// --- Programs

TEST(Programs, AsyncSliceIsASlice) {
  const auto results = run_text(R"(func.func @main(%x: tensor<4xi64>) -> tensor<2xi64> {
    %f = "stablehlo.async_start"(%x) ({
      ^bb0(%y: tensor<4xi64>):
        %s = "stablehlo.slice"(%y) {start_indices = array<i64: 1>, limit_indices = array<i64: 3>, strides = array<i64: 1>} : (tensor<4xi64>) -> tensor<2xi64>
        stablehlo.return %s : tensor<2xi64>
    }) : (tensor<4xi64>) -> !stablehlo.future<tensor<2xi64>>
    %r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2xi64>>) -> tensor<2xi64>
    return %r : tensor<2xi64>
  })",
                                {integers({4}, {1, 2, 3, 4})});
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ(integers_of((*results)[0]), (Integers{2, 3}));
}

const Reals kOrdered = {-INFINITY, -1, -0.0, 0.0, 1, INFINITY, NAN};

TEST(Programs, TotalOrderCompares) {
  // Every pair: -inf < -1 < -0 < +0 < 1 < inf < NaN.
  const auto n = static_cast<int64_t>(kOrdered.size());
  Reals x, y;
  Integers expected;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      x.push_back(kOrdered[static_cast<size_t>(i)]);
      y.push_back(kOrdered[static_cast<size_t>(j)]);
      expected.push_back(i < j);
    }
  }
  const OpCall op{"stablehlo.compare",
                  "comparison_direction = #stablehlo<comparison_direction LT>, compare_type = "
                  "#stablehlo<comparison_type TOTALORDER>",
                  {"49xi1"},
                  {}};
  EXPECT_EQ(integers_of(op({reals({49}, x), reals({49}, y)})[0]), expected);
}

TEST(Programs, SortByTotalOrder) {
  const OpCall op{
      "stablehlo.sort",
      "dimension = 0 : i64, is_stable = true",
      {"7xf64"},
      "({ ^bb0(%a: tensor<f64>, %b: tensor<f64>):\n"
      "  %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f64>, tensor<f64>) -> tensor<i1>\n"
      "  stablehlo.return %c : tensor<i1> })"};
  const Literal sorted = op({reals({7}, {NAN, 0.0, 1, -0.0, INFINITY, -INFINITY, -1})})[0];
  EXPECT_TRUE(sorted == reals({7}, kOrdered)) << sorted.to_string();
}

TEST(Programs, ScatterDropsWhatIsOutOfBounds) {
  const OpCall op{
      "stablehlo.scatter",
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
      "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>",
      {"2x3xi64"},
      "({ ^bb0(%a: tensor<i64>, %b: tensor<i64>):\n"
      "  %s = stablehlo.add %a, %b : tensor<i64>\n  stablehlo.return %s : tensor<i64> })"};
  // Windows of two: one fits; one extends beyond the right edge and its inside part is updated; the
  // others lie below or above.
  const auto results =
      op({integers({2, 3}, {0, 0, 0, 0, 0, 0}), integers({4, 2}, {0, 1, 1, 2, 2, 0, -1, 0}),
          integers({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
  EXPECT_EQ(integers_of(results[0]), (Integers{0, 1, 2, 0, 0, 3}));
}

}  // namespace
}  // namespace tenon::hlo
