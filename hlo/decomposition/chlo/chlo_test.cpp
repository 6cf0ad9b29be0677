// The CHLO ops that are not special functions.
#include <cmath>

#include "hlo/decomposition/decomposition_test_util.h"

namespace tenon::hlo {
namespace {

using enum ElementType;

TEST(ChloBroadcast, RanksAndSizes) {
  const OpCall add{"chlo.broadcast_add", "", {"2x3xi64"}, {}};
  EXPECT_EQ(integers_of(add({integers({3}, {1, 2, 3}), integers({2, 1}, {10, 20})})[0]),
            (Integers{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(integers_of(add({integers({}, {5}), integers({2, 3}, {1, 2, 3, 4, 5, 6})})[0]),
            (Integers{6, 7, 8, 9, 10, 11}));
  const OpCall placed{
      "chlo.broadcast_subtract", "broadcast_dimensions = array<i64: 0>", {"2x3xi64"}, {}};
  EXPECT_EQ(integers_of(placed({integers({2}, {10, 20}), integers({2, 3}, {1, 2, 3, 4, 5, 6})})[0]),
            (Integers{9, 8, 7, 16, 15, 14}));
}

TEST(ChloBroadcast, CompareAndSelect) {
  const OpCall less{"chlo.broadcast_compare",
                    "comparison_direction = #chlo<comparison_direction LT>",
                    {"2x2xi1"},
                    {}};
  EXPECT_EQ(integers_of(less({integers({2}, {1, 3}), integers({2, 1}, {2, 4})})[0]),
            (Integers{1, 0, 1, 1}));
  const OpCall select{"chlo.broadcast_select", "", {"2x2xi64"}, {}};
  EXPECT_EQ(integers_of(select({integers({2}, {1, 0}, kPred), integers({}, {7}),
                                integers({2, 2}, {1, 2, 3, 4})})[0]),
            (Integers{7, 2, 7, 4}));
}

TEST(Chlo, ConjAndSquare) {
  const Literal z = complexes({2}, {{3, 4}, {1e200, 1e200}});
  const auto conj = OpCall{"chlo.conj", "", {"2xcomplex<f64>"}, {}}({z});
  EXPECT_EQ(conj[0].get_complex(0), (std::complex<double>{3, -4}));
  const auto square = OpCall{"chlo.square", "", {"2xcomplex<f64>"}, {}}({z});
  EXPECT_EQ(square[0].get_complex(0), (std::complex<double>{-7, 24}));
  // The real part is an exact zero although both squares overflow.
  EXPECT_EQ(square[0].get_complex(1), (std::complex<double>{0, INFINITY}));
}

TEST(Chlo, Constants) {
  const OpCall constant{"chlo.constant", "value = dense<[1, 2]> : tensor<2xi32>", {"2xi32"}, {}};
  EXPECT_EQ(integers_of(constant({})[0]), (Integers{1, 2}));
  const OpCall like{"chlo.constant_like", "value = 2.5 : f32", {"3xf32"}, {}};
  EXPECT_EQ(reals_of(like({reals({3}, {1, 2, 3}, kF32)})[0]), (Reals{2.5, 2.5, 2.5}));
}

TEST(Chlo, Infinities) {
  const Reals x = {INFINITY, -INFINITY, NAN, 0, -1};
  const auto test = [&](const std::string& name, ElementType type) {
    return integers_of(OpCall{name, "", {"5xi1"}, {}}({reals({5}, x, type)})[0]);
  };
  for (const ElementType type : {kF32, kF16, kF8E5M2}) {
    EXPECT_EQ(test("chlo.is_inf", type), (Integers{1, 1, 0, 0, 0}));
    EXPECT_EQ(test("chlo.is_pos_inf", type), (Integers{1, 0, 0, 0, 0}));
    EXPECT_EQ(test("chlo.is_neg_inf", type), (Integers{0, 1, 0, 0, 0}));
  }
  // A type without infinities.
  EXPECT_EQ(test("chlo.is_inf", kF8E4M3FN), (Integers{0, 0, 0, 0, 0}));
  EXPECT_EQ(test("chlo.is_neg_inf", kF8E4M3FN), (Integers{0, 0, 0, 0, 0}));
}

TEST(Chlo, Mulhi) {
  const Integers some = {
      0, 1, -1, 5, INT64_MAX, INT64_MIN, 0x123456789ABCDEF0, -0x0FEDCBA987654321};
  for (const ElementType type :
       {kS2, kS4, kS8, kS16, kS32, kS64, kU2, kU4, kU8, kU16, kU32, kU64}) {
    Integers x, y;
    for (const int64_t a : some) {
      for (const int64_t b : some) {
        // The high bits of the samples, so that narrow types get other values than zeros.
        x.push_back(a >> (64 - bit_width(type)));
        y.push_back(b >> (64 - bit_width(type)));
      }
    }
    const auto count = static_cast<int64_t>(x.size());
    const Literal lhs = integers({count}, x, type), rhs = integers({count}, y, type);
    const std::string result = fmt::format("{}x{}", count, element_type_info(type).mlir_name);
    const auto high = OpCall{"chlo.mulhi", "", {result}, {}}({lhs, rhs})[0];
    for (int64_t i = 0; i < count; ++i) {
      using Wide = __int128;
      const bool is_signed = is_signed_integer(type);
      const auto wide = [&](int64_t v) {
        return is_signed ? static_cast<Wide>(v) : static_cast<Wide>(static_cast<uint64_t>(v));
      };
      const Wide product =
          is_signed || bit_width(type) < 64
              ? wide(lhs.get_integer(i)) * wide(rhs.get_integer(i))
              : static_cast<Wide>(static_cast<unsigned __int128>(wide(lhs.get_integer(i))) *
                                  static_cast<unsigned __int128>(wide(rhs.get_integer(i))));
      const Literal expected =
          integers({}, {static_cast<int64_t>(product >> bit_width(type))}, type);
      EXPECT_EQ(high.get_integer(i), expected.get_integer(0))
          << result << " " << lhs.get_integer(i) << " " << rhs.get_integer(i);
    }
  }
}

TEST(Chlo, NextAfter) {
  const float least = std::numeric_limits<float>::denorm_min();
  const float samples[] = {0.0F, -0.0F, 1, -1, 2, least, -least, 3e38F, INFINITY, -INFINITY, NAN};
  std::vector<double> x, y;
  for (const float a : samples) {
    for (const float b : samples) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  const auto next = OpCall{
      "chlo.next_after", "", {"121xf32"}, {}}({reals({121}, x, kF32), reals({121}, y, kF32)})[0];
  for (size_t i = 0; i < x.size(); ++i) {
    const float expected = std::nextafterf(static_cast<float>(x[i]), static_cast<float>(y[i]));
    const float actual = next.get<float>(static_cast<int64_t>(i));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual));
    } else {
      EXPECT_EQ(actual, expected) << x[i] << " " << y[i];
      EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << x[i] << " " << y[i];
    }
  }
  const auto half = OpCall{"chlo.next_after", "", {"3xf16"}, {}}(
      {reals({3}, {1, 1, 65504}, kF16), reals({3}, {2, 0, INFINITY}, kF16)})[0];
  EXPECT_EQ(reals_of(half), (Reals{1 + 0x1p-10, 1 - 0x1p-11, INFINITY}));
}

TEST(Chlo, TopK) {
  const auto top = [](int k, const std::string& results) {
    return OpCall{
        "chlo.top_k", fmt::format("k = {} : i64", k), {results + "xf32", results + "xi32"}, {}};
  };
  const auto rows = top(3, "2x3")({reals({2, 4}, {1, 3, NAN, 3, -0.0, 0, -INFINITY, -1}, kF32)});
  expect_near(reals_of(rows[0]), {NAN, 3, 3, 0, 0, -1});
  EXPECT_EQ(integers_of(rows[1]), (Integers{2, 1, 3, 1, 0, 3}));
  EXPECT_EQ(top(0, "0")({reals({4}, {1, 2, 3, 4}, kF32)})[0].element_count(), 0);
}

TEST(Chlo, TopKOfUnsigned) {
  const OpCall op{"chlo.top_k", "k = 2 : i64", {"2xui8", "2xi32"}, {}};
  const auto results = op({integers({3}, {1, 200, 100}, kU8)});
  EXPECT_EQ(integers_of(results[0]), (Integers{200, 100}));
  EXPECT_EQ(integers_of(results[1]), (Integers{1, 2}));
}

const char* const kSumAndProduct =
    "({ ^bb0(%x: tensor<i64>, %sum: tensor<i64>, %product: tensor<i64>):\n"
    "  %s = stablehlo.add %sum, %x : tensor<i64>\n"
    "  %p = stablehlo.multiply %product, %x : tensor<i64>\n"
    "  stablehlo.return %s, %s, %p : tensor<i64>, tensor<i64>, tensor<i64> })";

TEST(Chlo, Scan) {
  const std::vector<std::string> types = {"4xi64", "i64", "i64"};
  const std::vector<Literal> arguments = {integers({4}, {1, 2, 3, 4}), integers({}, {10}),
                                          integers({}, {1})};
  const auto forward = OpCall{"chlo.scan", "dimension = 0 : i64", types, kSumAndProduct}(arguments);
  EXPECT_EQ(integers_of(forward[0]), (Integers{11, 13, 16, 20}));
  EXPECT_EQ(integers_of(forward[1]), (Integers{20}));
  EXPECT_EQ(integers_of(forward[2]), (Integers{24}));
  const auto reverse = OpCall{"chlo.scan", "dimension = 0 : i64, is_reverse = true", types,
                              kSumAndProduct}(arguments);
  EXPECT_EQ(integers_of(reverse[0]), (Integers{20, 19, 17, 14}));
}

TEST(Chlo, ScanAlongTheSecondDimension) {
  const OpCall op{"chlo.scan",
                  "dimension = 1 : i64",
                  {"2x3xi64", "2xi64"},
                  "({ ^bb0(%x: tensor<2xi64>, %sum: tensor<2xi64>):\n"
                  "  %s = stablehlo.add %sum, %x : tensor<2xi64>\n"
                  "  stablehlo.return %s, %s : tensor<2xi64>, tensor<2xi64> })"};
  const auto results = op({integers({2, 3}, {1, 2, 3, 4, 5, 6}), integers({2}, {0, 100})});
  EXPECT_EQ(integers_of(results[0]), (Integers{1, 3, 6, 104, 109, 115}));
  EXPECT_EQ(integers_of(results[1]), (Integers{6, 115}));
}

}  // namespace
}  // namespace tenon::hlo
