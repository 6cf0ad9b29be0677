#include "hlo/ops/attribute_kinds.h"

#include <gtest/gtest.h>

#include "hlo/text/attribute_printer.h"

namespace tenon::hlo {
namespace {

using enum ElementType;

DenseAttr dense(ElementType type, Dims dims, const std::vector<int64_t>& values) {
  Literal literal(Shape(type, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    literal.set_integer(static_cast<int64_t>(i), values[i]);
  return DenseAttr::of(literal);
}

// The canonical form as text, or the error's text.
std::string canonical(AttrKind kind, const Attribute& raw,
                      EnumKind enum_kind = EnumKind::kPrecision) {
  const AttrSpec spec{AttrKey::dimensions, kind, AttrDefault::kRequired, enum_kind};
  const auto value = canonical_attribute(spec, raw);
  return value ? attribute_text(*value, TextForm::kHlo) : value.error().message();
}

struct KindCase {
  AttrKind kind;
  Attribute raw;
  const char* text;
};

TEST(Canonical, EverySpellingBecomesOneForm) {
  const Attribute one(int64_t{1});
  const Attribute f(FloatAttr::of(kF64, 0.1));
  const KindCase cases[] = {
      {AttrKind::kBool, true, "true"},
      {AttrKind::kBool, Unit{}, "true"},
      {AttrKind::kBool, IntegerAttr{0, kPred}, "false"},
      {AttrKind::kUnit, Unit{}, "true"},
      {AttrKind::kI64, IntegerAttr{5, kS32}, "5 : i64"},
      {AttrKind::kI32, IntegerAttr{-5, kS32}, "-5 : i64"},
      {AttrKind::kChannelId, ChannelHandle{7, 1}, "7 : i64"},
      {AttrKind::kChannelId, one, "1 : i64"},
      {AttrKind::kF32, f, "0.1 : f32"},
      {AttrKind::kString, "s", "\"s\""},
      {AttrKind::kString, SymbolAttr{"s"}, "\"s\""},
      {AttrKind::kSymbol, SymbolAttr{"s"}, "@s"},
      {AttrKind::kSymbol, "s", "@s"},
      {AttrKind::kSymbols, ArrayAttr{SymbolAttr{"s"}, "t"}, "[@s, @t]"},
      {AttrKind::kI64s, I64s{1, 2}, "array<i64: 1, 2>"},
      {AttrKind::kI64s, dense(kS64, {2}, {1, 2}), "array<i64: 1, 2>"},
      {AttrKind::kI64s, dense(kS32, {2}, {3, 3}), "array<i64: 3, 3>"},  // kept as a splat
      {AttrKind::kI64s, dense(kS64, {}, {4}), "array<i64: 4>"},
      {AttrKind::kI64s, dense(kS64, {0}, {}), "array<i64>"},
      {AttrKind::kI64s, ArrayAttr{one, one}, "array<i64: 1, 1>"},
      {AttrKind::kI64Matrix, I64Matrix{1, 2, {3, 4}}, "dense<[[3, 4]]> : s64[1,2]"},
      {AttrKind::kI64Matrix, dense(kS64, {2, 2}, {1, 2, 3, 4}),
       "dense<[[1, 2], [3, 4]]> : s64[2,2]"},
      {AttrKind::kI64Matrix, dense(kS64, {2, 2}, {0, 0, 0, 0}),
       "dense<[[0, 0], [0, 0]]> : s64[2,2]"},
      {AttrKind::kI64Matrix, ArrayAttr{I64s{1, 2}, I64s{3, 4}},
       "dense<[[1, 2], [3, 4]]> : s64[2,2]"},
      {AttrKind::kI64Matrix, dense(kS64, {0, 2}, {}), "dense<> : s64[0,0]"},
      {AttrKind::kI64Matrix, dense(kS64, {0}, {}), "dense<> : s64[0,0]"},
      {AttrKind::kI64Matrix, I64Matrix{0, 2, {}}, "dense<> : s64[0,0]"},
      {AttrKind::kI64Matrix, I64s{}, "dense<> : s64[0,0]"},
      {AttrKind::kI64Matrix, ArrayAttr{}, "dense<> : s64[0,0]"},
      {AttrKind::kReplicaGroups, dense(kS64, {1, 2}, {0, 1}), "dense<[[0, 1]]> : s64[1,2]"},
      {AttrKind::kReplicaGroups, OpaqueAttr{"#stablehlo.axes<x>"}, "#stablehlo.axes<x>"},
      {AttrKind::kBools, BoolsAttr{{1, 0}}, "array<i1: true, false>"},
      {AttrKind::kBools, dense(kPred, {2}, {1, 0}), "array<i1: true, false>"},
      {AttrKind::kBools, ArrayAttr{true, int64_t{0}}, "array<i1: true, false>"},
      {AttrKind::kBools, I64s{0, 2}, "array<i1: false, true>"},
      {AttrKind::kDense, dense(kS8, {}, {1}), "dense<1> : s8[]"},
      {AttrKind::kI64sArray, ArrayAttr{I64s{1}, dense(kS64, {0}, {})},
       "[array<i64: 1>, array<i64>]"},
      {AttrKind::kEnum, EnumAttr{EnumKind::kPrecision, 2}, "#stablehlo<precision HIGHEST>"},
      {AttrKind::kEnum, OpaqueAttr{"HIGH"}, "#stablehlo<precision HIGH>"},
      {AttrKind::kEnum, IntegerAttr{1, kS32}, "#stablehlo<precision HIGH>"},
      {AttrKind::kPrecisions, ArrayAttr{EnumAttr{EnumKind::kPrecision, 0}, OpaqueAttr{"HIGH"}},
       "[#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]"},
      {AttrKind::kDotDims, DotDims{}, "#stablehlo.dot<>"},
      {AttrKind::kGatherDims, GatherDims{}, "#stablehlo.gather<>"},
      {AttrKind::kScatterDims, ScatterDims{}, "#stablehlo.scatter<>"},
      {AttrKind::kRaggedDotDims, RaggedDotDims{}, "#chlo.ragged_dot<>"},
      {AttrKind::kChannelHandle, ChannelHandle{1, 2},
       "#stablehlo.channel_handle<handle = 1, type = 2>"},
      {AttrKind::kAliases, ArrayAttr{OutputOperandAlias{{0}, 1, {}}},
       "[#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 1, "
       "operand_tuple_indices = []>]"},
      {AttrKind::kDict, Dict{{"k", one}}, "{k = 1 : i64}"},
      {AttrKind::kAny, f, "0.1 : f64"},
  };
  for (const KindCase& c : cases) EXPECT_EQ(canonical(c.kind, c.raw), c.text);
}

TEST(Canonical, WhatHasAnotherFormIsRefused) {
  const Attribute text("s");
  const KindCase cases[] = {
      {AttrKind::kBool, text, "true or false"},
      {AttrKind::kBool, int64_t{1}, "true or false"},
      {AttrKind::kUnit, text, "true or false"},
      {AttrKind::kI64, text, "an integer"},
      {AttrKind::kI32, FloatAttr::of(kF32, 1), "an integer"},
      {AttrKind::kChannelId, text, "an integer"},
      {AttrKind::kF32, int64_t{1}, "a float"},
      {AttrKind::kString, int64_t{1}, "a string"},
      {AttrKind::kSymbol, int64_t{1}, "a symbol"},
      {AttrKind::kSymbols, text, "a list of symbols"},
      {AttrKind::kSymbols, ArrayAttr{int64_t{1}}, "a list of symbols"},
      {AttrKind::kI64s, text, "a list of integers"},
      {AttrKind::kI64s, ArrayAttr{text}, "a list of integers"},
      {AttrKind::kI64s, dense(kS64, {1, 1}, {1}), "a list of integers"},
      {AttrKind::kI64s, DenseAttr::of(Literal::scalar(kF32, 1)), "a list of integers"},
      {AttrKind::kI64s, DenseAttr::splat(Shape(kS64, {1 << 30}), Literal::scalar(kS64, 1)),
       "a list of integers"},
      {AttrKind::kI64Matrix, dense(kS64, {2}, {1, 2}), "a two-dimensional list of integers"},
      {AttrKind::kI64Matrix, I64s{1}, "a two-dimensional list of integers"},
      {AttrKind::kI64Matrix, ArrayAttr{I64s{1, 2}, I64s{3}}, "a two-dimensional list of integers"},
      {AttrKind::kReplicaGroups, text, "a two-dimensional list of integers"},
      {AttrKind::kBools, text, "a list of booleans"},
      {AttrKind::kBools, ArrayAttr{text}, "a list of booleans"},
      {AttrKind::kDense, text, "a dense constant"},
      {AttrKind::kI64sArray, I64s{1}, "a list of integer lists"},
      {AttrKind::kEnum, EnumAttr{EnumKind::kFftType, 0}, "a word of its enumeration"},
      {AttrKind::kEnum, OpaqueAttr{"LOW"}, "a word of its enumeration"},
      {AttrKind::kEnum, int64_t{3}, "a word of its enumeration"},
      {AttrKind::kEnum, int64_t{-1}, "a word of its enumeration"},
      {AttrKind::kPrecisions, ArrayAttr{text}, "a list of precisions"},
      {AttrKind::kDotDims, text, "its structure"},
      {AttrKind::kConvDims, text, "its structure"},
      {AttrKind::kDotAlgorithm, text, "its structure"},
      {AttrKind::kResultAccuracy, text, "its structure"},
      {AttrKind::kAliases, ArrayAttr{text}, "its structure"},
      {AttrKind::kDict, text, "a dictionary"},
  };
  for (const KindCase& c : cases) {
    EXPECT_EQ(canonical(c.kind, c.raw), fmt::format("attribute dimensions is not {}", c.text));
  }
}

TEST(Canonical, ShortListsOfUnequalRowsAreNoMatrix) {
  // A row without columns does not remove the other rows.
  EXPECT_EQ(canonical(AttrKind::kI64Matrix, ArrayAttr{I64s{}, I64s{1, 2}}),
            "attribute dimensions is not a two-dimensional list of integers");
}

// A constant's shape must be a valid type.
TEST(AttributeKinds, AConstantHasBoundsThatCanBe) {
  const AttrSpec spec{AttrKey::value, AttrKind::kDense};
  const auto holds = [&](const Dims& bounds) {
    DenseAttr value = dense(kS32, {2}, {1, 2});
    value.shape = Shape(kS32, {2}, bounds);
    return attr_kind_info(AttrKind::kDense).holds(spec, Attribute(value));
  };
  EXPECT_TRUE(holds({}));
  EXPECT_TRUE(holds({kDynamic}));
  EXPECT_FALSE(holds({-5}));
  EXPECT_FALSE(holds({2, 2}));
}

}  // namespace
}  // namespace tenon::hlo
