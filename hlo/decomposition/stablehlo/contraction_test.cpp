// dot, einsum, unary_einsum and chlo.ragged_dot compared with loops; and some small ops.
#include "hlo/decomposition/decomposition_test_util.h"

namespace tenon::hlo {
namespace {

Literal s64(Dims dims, const Integers& values) { return integers(std::move(dims), values); }

TEST(Dot, AllRanks) {
  const Literal matrix = s64({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto dot = [](const std::string& type) { return OpCall{"stablehlo.dot", "", {type}, {}}; };
  EXPECT_EQ(integers_of(dot("2x2xi64")({matrix, s64({3, 2}, {1, 0, 0, 1, 2, -1})})[0]),
            (Integers{7, -1, 16, -1}));
  EXPECT_EQ(integers_of(dot("2xi64")({matrix, s64({3}, {1, 10, 100})})[0]), (Integers{321, 654}));
  EXPECT_EQ(integers_of(dot("3xi64")({s64({2}, {1, 10}), matrix})[0]), (Integers{41, 52, 63}));
  EXPECT_EQ(integers_of(dot("i64")({s64({3}, {1, 2, 3}), s64({3}, {4, 5, 6})})[0]), (Integers{32}));
}

Integers einsum(const std::string& config, const std::string& type, const std::vector<Literal>& x) {
  const std::string name = x.size() == 1 ? "stablehlo.unary_einsum" : "stablehlo.einsum";
  return integers_of(OpCall{name, "einsum_config = \"" + config + "\"", {type}, {}}(x)[0]);
}

TEST(Einsum, Formulas) {
  const Literal a = s64({2, 3}, {1, 2, 3, 4, 5, 6});
  const Literal b = s64({3, 2}, {1, 0, 0, 1, 2, -1});
  EXPECT_EQ(einsum("ab,bc->ac", "2x2xi64", {a, b}), (Integers{7, -1, 16, -1}));
  EXPECT_EQ(einsum("ab,bc->ca", "2x2xi64", {a, b}), (Integers{7, 16, -1, -1}));
  // Elementwise, with a transposition.
  EXPECT_EQ(einsum("ab,ba->ab", "2x3xi64", {a, b}), (Integers{1, 0, 6, 0, 5, -6}));
  // Everything is summed; a letter of only one operand is summed too.
  EXPECT_EQ(einsum("ab,ba->", "i64", {a, b}), (Integers{6}));
  EXPECT_EQ(einsum("ab,cd->ac", "2x3xi64", {a, b}), (Integers{6, 6, 6, 15, 15, 15}));
  // An outer product, and batches as the second dimension.
  EXPECT_EQ(einsum("a,b->ba", "2x2xi64", {s64({2}, {1, 2}), s64({2}, {3, 5})}),
            (Integers{3, 6, 5, 10}));
  EXPECT_EQ(einsum("ib,jb->bij", "3x2x2xi64", {a, a}),
            (Integers{1, 4, 4, 16, 4, 10, 10, 25, 9, 18, 18, 36}));
}

TEST(Einsum, Unary) {
  const Literal a = s64({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(einsum("ab->ba", "3x2xi64", {a}), (Integers{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(einsum("ab->b", "3xi64", {a}), (Integers{5, 7, 9}));
  EXPECT_EQ(einsum("ab->", "i64", {a}), (Integers{21}));
  EXPECT_EQ(einsum("ab->ab", "2x3xi64", {a}), (Integers{1, 2, 3, 4, 5, 6}));
}

TEST(Einsum, ALetterTwiceIsTheDiagonal) {
  const Literal a = s64({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(einsum("aa->", "i64", {a}), (Integers{5}));
  EXPECT_EQ(einsum("aa->a", "2xi64", {a}), (Integers{1, 4}));
  EXPECT_EQ(einsum("aa,ab->b", "2xi64", {a, a}), (Integers{13, 18}));
  const Literal cube = s64({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(einsum("aba->ab", "2x2xi64", {cube}), (Integers{1, 3, 6, 8}));
  EXPECT_EQ(einsum("aaa->", "i64", {cube}), (Integers{9}));
}

std::string ragged(const std::string& dims) {
  return "ragged_dot_dimension_numbers = #chlo.ragged_dot<" + dims + ">";
}

// Groups of rows of [rows, inner] times [groups, inner, columns]; of contracted elements of
// [rows, inner] times [inner, columns].
constexpr const char* kGroupsOfRows =
    "lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], "
    "rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]";
constexpr const char* kGroupsOfSums =
    "lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], "
    "rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [1], rhs_group_dimensions = []";

// Groups of rows: row i is multiplied by the matrix of its group; rows beyond all groups are zero.
TEST(RaggedDot, Rows) {
  constexpr size_t kRows = 5, kInner = 2, kColumns = 3;
  const Reals x = some_reals(kRows * kInner, 1), w = some_reals(3 * kInner * kColumns, 2);
  const Integers group_of = {0, 2, 2, 2, -1};
  Reals expected(kRows * kColumns);
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; group_of[i] >= 0 && j < kColumns; ++j) {
      for (size_t k = 0; k < kInner; ++k) {
        expected[i * kColumns + j] +=
            x[i * kInner + k] * w[(static_cast<size_t>(group_of[i]) * kInner + k) * kColumns + j];
      }
    }
  }
  const OpCall op{"chlo.ragged_dot", ragged(kGroupsOfRows), {"5x3xf64"}, {}};
  const auto results = op({reals({5, 2}, x), reals({3, 2, 3}, w), integers({3}, {1, 0, 3})});
  expect_near(reals_of(results[0]), expected);
}

// Groups of contracted elements: one product per group.
TEST(RaggedDot, Contracted) {
  const Reals x = some_reals(2 * 5, 3), y = some_reals(5 * 3, 4);
  const size_t starts[] = {0, 2, 2, 5};
  Reals expected(3 * 2 * 3);
  for (size_t g = 0; g < 3; ++g) {
    for (size_t i = 0; i < 2; ++i) {
      for (size_t j = 0; j < 3; ++j) {
        for (size_t k = starts[g]; k < starts[g + 1]; ++k) {
          expected[(g * 2 + i) * 3 + j] += x[i * 5 + k] * y[k * 3 + j];
        }
      }
    }
  }
  const OpCall op{"chlo.ragged_dot", ragged(kGroupsOfSums), {"3x2x3xf64"}, {}};
  const auto results = op({reals({2, 5}, x), reals({5, 3}, y), integers({3}, {2, 0, 3})});
  expect_near(reals_of(results[0]), expected);
}

// More rows than a block: groups of several blocks, of a part of one and of none; the last block
// begins within the one before it; rows beyond all groups are zero.
TEST(RaggedDot, RowsByBlocks) {
  constexpr size_t kRows = 330, kInner = 3, kColumns = 2, kGroups = 8;
  const Integers sizes = {40, 0, 1, 129, 0, 100, 30, 20};
  const Reals x = some_reals(kRows * kInner, 1), w = some_reals(kGroups * kInner * kColumns, 2);
  Reals expected(kRows * kColumns);
  size_t row = 0;
  for (size_t g = 0; g < kGroups; ++g) {
    for (int64_t i = 0; i < sizes[g]; ++i, ++row) {
      for (size_t j = 0; j < kColumns; ++j) {
        for (size_t k = 0; k < kInner; ++k) {
          expected[row * kColumns + j] += x[row * kInner + k] * w[(g * kInner + k) * kColumns + j];
        }
      }
    }
  }
  const OpCall op{"chlo.ragged_dot", ragged(kGroupsOfRows), {"330x2xf64"}, {}};
  const auto results = op({reals({330, 3}, x), reals({8, 3, 2}, w), integers({8}, sizes)});
  expect_near(reals_of(results[0]), expected);
}

// A size below zero moves the next group back, to before the first row here; so does a number of
// 64 bits, in no more turns.
TEST(RaggedDot, SizesBelowZero) {
  const OpCall op{"chlo.ragged_dot", ragged(kGroupsOfRows), {"256x1xf64"}, {}};
  const Literal rows = reals({256, 1}, Reals(256, 1));
  const Literal factors = reals({8, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  Reals expected(256);
  std::fill_n(expected.begin(), 15, 3);  // The second group has none, the third [-5, 15).
  const auto some = op({rows, factors, integers({8}, {5, -10, 20, 0, 0, 0, 0, 0})});
  expect_near(reals_of(some[0]), expected);
  constexpr int64_t kFar = int64_t{1} << 62;
  std::fill_n(expected.begin(), 15, 0);
  std::fill_n(expected.begin(), 10, 8);
  const auto far = op({rows, factors, integers({8}, {-kFar, 0, 0, 0, 0, 0, 0, kFar + 10})});
  expect_near(reals_of(far[0]), expected);
}

// The same for contracted elements. Sizes beyond the end take what is there.
TEST(RaggedDot, ContractedByBlocks) {
  constexpr size_t kAll = 330, kGroups = 8;
  const Integers sizes = {40, 0, 1, 129, 0, 100, 30, 90};
  const Reals x = some_reals(kAll * 2, 3), y = some_reals(kAll * 3, 4);
  Reals expected(kGroups * 2 * 3);
  size_t place = 0;
  for (size_t g = 0; g < kGroups; ++g) {
    for (int64_t n = 0; n < sizes[g] && place < kAll; ++n, ++place) {
      for (size_t i = 0; i < 2; ++i) {
        for (size_t j = 0; j < 3; ++j) {
          expected[(g * 2 + i) * 3 + j] += x[i * kAll + place] * y[place * 3 + j];
        }
      }
    }
  }
  const OpCall op{"chlo.ragged_dot", ragged(kGroupsOfSums), {"8x2x3xf64"}, {}};
  const auto results = op({reals({2, 330}, x), reals({330, 3}, y), integers({8}, sizes)});
  expect_near(reals_of(results[0]), expected);
}

// An infinity in one group does not affect another group.
TEST(RaggedDot, GroupsDoNotMeet) {
  const OpCall rows{"chlo.ragged_dot", ragged(kGroupsOfRows), {"2x1xf64"}, {}};
  const Literal sizes = integers({2}, {1, 1});
  expect_near(reals_of(rows({reals({2, 1}, {2, 3}), reals({2, 1, 1}, {INFINITY, 5}), sizes})[0]),
              {INFINITY, 15});
  const OpCall parts{"chlo.ragged_dot", ragged(kGroupsOfSums), {"2x1x1xf64"}, {}};
  expect_near(reals_of(parts({reals({1, 2}, {2, 3}), reals({2, 1}, {INFINITY, 5}), sizes})[0]),
              {INFINITY, 15});
  expect_near(reals_of(parts({reals({1, 2}, {2, NAN}), reals({2, 1}, {4, 5}), sizes})[0]),
              {8, NAN});
}

// group_sizes with one list per batch.
TEST(RaggedDot, SizesByBatch) {
  const OpCall op{"chlo.ragged_dot",
                  ragged("lhs_batching_dimensions = [1], rhs_batching_dimensions = [1], "
                         "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], "
                         "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]"),
                  {"2x3x1xf64"},
                  {}};
  // lhs [m, b, k], rhs [g, b, k, n]: rows of batch 0 belong to groups 0, 0, 1, rows of batch 1 to
  // 1, 1, 1.
  const auto results = op({reals({3, 2, 1}, {1, 10, 2, 20, 3, 30}),
                           reals({2, 2, 1, 1}, {1, 2, 3, 4}), integers({2, 2}, {2, 1, 0, 3})});
  expect_near(reals_of(results[0]), {1, 2, 9, 40, 80, 120});
}

TEST(RaggedDot, Batches) {
  const Reals x = some_reals(3 * 2 * 2, 5), y = some_reals(3 * 2 * 2, 6);
  Reals expected(12);
  for (size_t b = 0; b < 3; ++b) {
    for (size_t i = 0; i < 2; ++i) {
      for (size_t j = 0; j < 2; ++j) {
        for (size_t k = 0; k < 2; ++k) {
          expected[(b * 2 + i) * 2 + j] += x[(b * 2 + i) * 2 + k] * y[(b * 2 + k) * 2 + j];
        }
      }
    }
  }
  const OpCall op{"chlo.ragged_dot",
                  ragged("lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
                         "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], "
                         "lhs_ragged_dimensions = [0], rhs_group_dimensions = []"),
                  {"3x2x2xf64"},
                  {}};
  const auto results = op({reals({3, 2, 2}, x), reals({3, 2, 2}, y), integers({2}, {1, 2})});
  expect_near(reals_of(results[0]), expected);
}

TEST(TorchIndexSelect, BatchDims) {
  Integers x(2 * 3 * 4);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int64_t>(i);
  const Literal operand = s64({2, 3, 4}, x);
  const auto select = [](int dim, int batch, const std::string& type) {
    return OpCall{"stablehlo.torch_index_select",
                  fmt::format("dim = {} : i64, batch_dims = {} : i64", dim, batch),
                  {type},
                  {}};
  };
  EXPECT_EQ(integers_of(select(1, 0, "2x2x4xi64")({operand, s64({2}, {2, 0})})[0]),
            (Integers{8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15}));
  // Each batch has its own indices.
  EXPECT_EQ(integers_of(select(1, 1, "2x1x4xi64")({operand, s64({2, 1}, {1, 2})})[0]),
            (Integers{4, 5, 6, 7, 20, 21, 22, 23}));
  EXPECT_EQ(integers_of(select(2, 1, "2x3x2xi64")({operand, s64({2, 2}, {3, 0, 1, 1})})[0]),
            (Integers{3, 0, 7, 4, 11, 8, 13, 13, 17, 17, 21, 21}));
  // Nothing is selected of an empty array.
  EXPECT_EQ(integers_of(select(1, 1, "0x2x4xi64")({s64({0, 3, 4}, {}), s64({0, 2}, {})})[0]),
            Integers{});
}

TEST(SmallOps, Broadcast) {
  const OpCall op{"stablehlo.broadcast", "broadcast_sizes = array<i64: 2>", {"2x3xi64"}, {}};
  EXPECT_EQ(integers_of(op({s64({3}, {1, 2, 3})})[0]), (Integers{1, 2, 3, 1, 2, 3}));
}

TEST(SmallOps, CrossReplicaSumOfOne) {
  const OpCall op{
      "stablehlo.cross-replica-sum", "replica_groups = dense<0> : tensor<1x1xi64>", {"2xi64"}, {}};
  EXPECT_EQ(integers_of(op({s64({2}, {4, 5})})[0]), (Integers{4, 5}));
}

TEST(SmallOps, Tokens) {
  const auto results =
      run_text(R"(func.func @main(%x: tensor<i64>) -> (tensor<i64>, !stablehlo.token) {
    %a = "stablehlo.create_token"() : () -> !stablehlo.token
    %b = "stablehlo.after_all"(%a, %a) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
    return %x, %b : tensor<i64>, !stablehlo.token
  })",
               {s64({}, {3})});
  ASSERT_TRUE(results) << results.error().to_string();
  ASSERT_EQ(results->size(), 1u);
  EXPECT_EQ(integers_of((*results)[0]), (Integers{3}));
}

}  // namespace
}  // namespace tenon::hlo
