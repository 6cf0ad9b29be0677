// Tests of the artifact reader: primitives, tables, ops, and the text of every error.

#include <gtest/gtest.h>

#include "hlo/artifact/bytecode_reader.h"
#include "hlo/artifact/bytecode_test_util.h"

namespace tenon::hlo {
namespace {

using namespace bytecode;

// The ops of main.
std::vector<RawOp> ops_of(ProgramBuilder& program) {
  const auto module = parse_artifact(program.program(), "f.bc");
  if (!module) {
    ADD_FAILURE() << module.error().to_string();
    return {};
  }
  return module->module.regions.at(0).ops.at(0).regions.at(0).ops;
}

// The value of a discardable attribute, on an op added to main.
Attribute decoded(ProgramBuilder& program, uint64_t attribute) {
  program.add({.name = "return_v1", .discardable = {program.dictionary({{"x", attribute}})}});
  const std::vector<RawOp> ops = ops_of(program);
  return ops.empty() ? Attribute() : *find(ops.back().attributes, "x");
}

std::string opaque_text(ProgramBuilder& program, uint64_t attribute) {
  const Attribute value = decoded(program, attribute);
  return value.get<OpaqueAttr>() ? value.get<OpaqueAttr>()->text : "no opaque attribute";
}

Cursor over(std::string_view bytes) { return Cursor(bytes, 0, bytes.size(), "test"); }
Cursor over(const Bytes& bytes) { return over(bytes.data); }

TEST(Cursor, Varint) {
  EXPECT_EQ(over(std::string_view("\x01", 1)).varint(), 0u);
  EXPECT_EQ(over(std::string_view("\xff", 1)).varint(), 127u);
  EXPECT_EQ(over(std::string_view("\x02\x02", 2)).varint(), 128u);
  EXPECT_EQ(over(std::string_view("\x00\xff\xff\xff\xff\xff\xff\xff\xff", 9)).varint(),
            ~uint64_t{0});
  for (int bit = 0; bit < 64; ++bit) {
    for (const uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1}) {
      const Bytes bytes = Bytes().varint(value);
      Cursor cursor = over(bytes);
      EXPECT_EQ(cursor.varint(), value);
      EXPECT_TRUE(cursor.at_end());
    }
  }
}

TEST(Cursor, SignedVarint) {
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{63}, int64_t{-1000000}, kDynamic}) {
    const Bytes bytes = Bytes().svarint(value);
    EXPECT_EQ(over(bytes).svarint(), value);
  }
  EXPECT_EQ(over(std::string_view("\x00\xff\xff\xff\xff\xff\xff\xff\xff", 9)).svarint(), kDynamic);
}

TEST(Cursor, ApintIsMaskedToItsWidth) {
  EXPECT_EQ(over(std::string_view("\xd0\xfe\xff\xff\x3f", 5)).apint(32), 0xFFFFFFFBu);
  EXPECT_EQ(over(std::string_view("\x03", 1)).apint(64), ~uint64_t{0});
  EXPECT_EQ(over(std::string_view("\xfb", 1)).apint(8), 0xFBu);
  EXPECT_EQ(over(std::string_view("\xfb", 1)).apint(4), 0xBu);
  Cursor cursor = over(std::string_view("\x03\x03", 2));
  cursor.apint(65);
  EXPECT_EQ(cursor.error(), "integers of 65 bits cannot be read");
}

TEST(Cursor, ErrorsStick) {
  Cursor cursor = over(std::string_view("\x02", 1));
  EXPECT_EQ(cursor.varint(), 0u);
  EXPECT_EQ(cursor.error(), "2 bytes are needed, 1 are left");
  EXPECT_EQ(cursor.error_position(), 0u);
  EXPECT_EQ(cursor.byte(), 0);
  EXPECT_EQ(cursor.count(), 0u);
  EXPECT_EQ(cursor.error(), "2 bytes are needed, 1 are left");
}

TEST(Cursor, CountsAreBoundedByWhatIsLeft) {
  const Bytes bytes = Bytes({3}).raw("abcdef");
  EXPECT_EQ(over(bytes).count(2), 3u);
  Cursor cursor = over(bytes);
  EXPECT_EQ(cursor.count(3), 0u);
  EXPECT_EQ(cursor.error(), "a list of 3 entries does not fit the 6 bytes left");
}

TEST(Cursor, TextAndPadding) {
  Cursor cursor = over(std::string_view("ab\0\xCB\x07", 5));
  EXPECT_EQ(cursor.c_string(), "ab");
  cursor.align(4);
  EXPECT_EQ(cursor.position(), 4u);
  cursor.c_string();
  EXPECT_EQ(cursor.error(), "a text has no end");
  Cursor odd = over(std::string_view("\x01\x02", 2));
  odd.align(3);
  EXPECT_EQ(odd.error(), "an alignment of 3 is not a power of two");
  Cursor padding = over(std::string_view("\x01\x02", 2));
  padding.byte();
  padding.align(2);
  EXPECT_EQ(padding.error(), "padding is 0x02 instead of 0xcb");
}

TEST(DenseBlob, Bools) {
  const auto read = [](Dims dims, std::string_view blob) {
    return dense_from_blob(Shape(ElementType::kPred, std::move(dims)), blob, 100);
  };
  EXPECT_TRUE(read({1000000}, "\xff")->is_splat());
  EXPECT_EQ(read({1000000}, "\xff")->values.get_integer(0), 1);
  EXPECT_EQ(read({1000000}, std::string_view("\0", 1))->values.get_integer(0), 0);
  EXPECT_EQ(read({4}, "\x05")->values.to_string(), "[true, false, true, false]");
  EXPECT_EQ(read({9}, "\x01\x01")->values.get_integer(8), 1);
  EXPECT_EQ(read({2}, std::string_view("\0\1", 2))->values.to_string(), "[false, true]");
  EXPECT_EQ(read({}, "\x01")->values.to_string(), "true");
  EXPECT_EQ(read({0}, "")->values.element_count(), 0);
  EXPECT_EQ(read({20}, "ab").error().message(),
            "2 bytes given for pred[20], which takes 1, 3 or 20");
}

TEST(DenseBlob, NarrowIntegersAreExtended) {
  const auto read = [](ElementType type, std::string_view blob) {
    return dense_from_blob(Shape(type, {2}), blob, 100)->values.to_string();
  };
  EXPECT_EQ(read(ElementType::kS4, "\x0f\x07"), "[-1, 7]");
  EXPECT_EQ(read(ElementType::kU4, "\x0f\x07"), "[15, 7]");
  EXPECT_EQ(read(ElementType::kS2, "\x02\x01"), "[-2, 1]");
  EXPECT_EQ(read(ElementType::kU2, "\x03\x01"), "[3, 1]");
}

TEST(DenseBlob, SizesAndLimits) {
  const Shape huge(ElementType::kF32, {1 << 20, 1 << 20});
  EXPECT_EQ(dense_from_blob(huge, std::string_view("\0\0\x80\x3f", 4), 100)->values.to_string(),
            "1");
  EXPECT_EQ(dense_from_blob(Shape(ElementType::kF32, {2}), "abc", 100).error().message(),
            "3 bytes given for f32[2], which takes 8 or, if all are equal, 4");
  EXPECT_EQ(dense_from_blob(Shape(ElementType::kS8, {3}), "abc", 2).error().message(),
            "a constant of 3 bytes exceeds the limit of 2");
}

TEST(Artifact, IsRecognised) {
  EXPECT_TRUE(is_artifact("\x4D\x4C\xEF\x52"));
  EXPECT_FALSE(is_artifact("\x4D\x4C\xEF"));
  EXPECT_FALSE(is_artifact("module {}"));
}

TEST(Artifact, ReadsAFunction) {
  ProgramBuilder program;
  program.add_constant();
  program.add({.name = "add_v1", .results = {program.scalar}, .operands = {0, 0}});
  program.add({.name = "return_v1", .operands = {1}});
  const auto module = parse_artifact(program.program(), "f.bc");
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_EQ(module->module.name, "builtin.module");
  const RawOp& function = module->module.regions.at(0).ops.at(0);
  EXPECT_EQ(function.name, "func.func");
  EXPECT_EQ(*find(function.attributes, "sym_name")->get<std::string>(), "main");
  EXPECT_EQ(find(function.attributes, "sym_visibility"), nullptr);
  EXPECT_EQ(find(function.attributes, "arg_attrs"), nullptr);
  const std::vector<RawOp>& ops = function.regions.at(0).ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].name, "stablehlo.constant");
  EXPECT_EQ(find(ops[0].attributes, "value")->get<DenseAttr>()->values.to_string(), "1");
  EXPECT_EQ(ops[1].name, "stablehlo.add");
  EXPECT_EQ(ops[1].operands, (std::vector<RawValue>{ops[0].results[0], ops[0].results[0]}));
  EXPECT_EQ(module->value_types.at(ops[1].results.at(0)).to_string(), "f32[]");
  EXPECT_EQ(ops[2].name, "func.return");
}

// The ops of an artifact without debug information are numbered, so that errors can state a
// position.
TEST(Artifact, OpsWithoutALocationAreNumbered) {
  ProgramBuilder program;
  program.add_constant();
  program.add({.name = "return_v1", .operands = {0}});
  const std::vector<RawOp> ops = ops_of(program);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(invalid_argument("stablehlo.constant: odd")
                .at(position_of(ops[0].location))
                .status()
                .to_string(),
            "f.bc: @main: op 1: error: stablehlo.constant: odd");
  EXPECT_EQ(position_of(ops[1].location).file, "f.bc: @main: op 2");
}

TEST(Artifact, ReadsBuiltinAttributes) {
  ProgramBuilder p;
  const uint64_t i32 = p.type("builtin", {0, 32 << 2});
  const uint64_t i1 = p.type("builtin", {0, 1 << 2});
  const uint64_t i64 = p.type("builtin", {0, 64 << 2});
  const uint64_t f32 = p.type("builtin", {5});
  const uint64_t name = p.attribute("builtin", {2, p.string("f")});
  EXPECT_EQ(decoded(p, p.attribute("builtin", {7})), Attribute(Unit{}));
  EXPECT_EQ(decoded(p, p.attribute("builtin", {2, p.string("a\"b")})), Attribute("a\"b"));
  EXPECT_EQ(decoded(p, p.attribute("builtin", {4, name})), Attribute(SymbolAttr{"f"}));
  EXPECT_EQ(decoded(p, p.attribute("builtin", Bytes{8, i32}.svarint(0xFFFFFFFB))),
            Attribute(IntegerAttr{-5, ElementType::kS32}));
  EXPECT_EQ(decoded(p, p.attribute("builtin", Bytes{8, i1}.byte(1))), Attribute(true));
  EXPECT_EQ(decoded(p, p.attribute("builtin", Bytes{9, f32}.svarint(0x3F800000))),
            Attribute(FloatAttr::of(ElementType::kF32, 1)));
  EXPECT_EQ(decoded(p, p.text_attribute("builtin", "affine_map<(d0) -> (d0)>")),
            Attribute(OpaqueAttr{"affine_map<(d0) -> (d0)>"}));
  const std::string_view seven("\7\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(decoded(p, p.attribute("builtin", Bytes{17, i64, 1}.blob(seven))), Attribute(I64s{7}));
  EXPECT_EQ(decoded(p, p.attribute("builtin", Bytes{17, i1, 2}.blob(std::string_view("\0\1", 2)))),
            Attribute(BoolsAttr{{0, 1}}));
  const uint64_t f8 = p.text_type("builtin", "f8E4M3FN");
  EXPECT_EQ(decoded(p, p.attribute("builtin", {6, f8})), Attribute(OpaqueAttr{"f8E4M3FN"}));
  // The bytes of other dialects are not interpreted.
  EXPECT_EQ(opaque_text(p, p.attribute("mpmd", Bytes{3}.raw("\xAB"))), "#mpmd<bytecode \"07AB\">");
}

TEST(Artifact, ReadsResources) {
  ProgramBuilder p;
  const uint64_t f32 = p.type("builtin", {5});
  const uint64_t tensor = p.type("builtin", Bytes{13, 1}.svarint(2).varint(f32));
  p.resource("r", std::string_view("\0\0\x80\x3f\0\0\0\x40", 8));
  const Attribute value = decoded(p, p.attribute("builtin", {16, tensor, 0}));
  ASSERT_NE(value.get<DenseAttr>(), nullptr);
  EXPECT_EQ(value.get<DenseAttr>()->values.to_string(), "[1, 2]");
}

TEST(Artifact, ReadsShardyAttributesAsText) {
  ProgramBuilder p;
  const auto axis = [&](std::string_view name) {
    return p.attribute("sdy", {4, p.string(name), 0});
  };
  const uint64_t name = p.attribute("builtin", {2, p.string("mesh")});
  const uint64_t symbol = p.attribute("builtin", {4, name});
  const uint64_t sub_axis = p.attribute("sdy", Bytes{3}.svarint(1).svarint(2));
  const uint64_t part = p.attribute("sdy", Bytes{4, p.string("b")}.flagged(sub_axis, true));
  const uint64_t closed = p.attribute("sdy", Bytes{5, 1, axis("a")}.byte(1).flagged(0, false));
  const uint64_t open = p.attribute("sdy", Bytes{5, 1, part}.byte(0).flagged(3, true));
  const uint64_t free = p.attribute("sdy", Bytes{5, 0}.byte(0).flagged(0, false));
  const uint64_t sharding = p.attribute("sdy", {6, symbol, 3, closed, open, free, 1, axis("c")});
  EXPECT_EQ(opaque_text(p, sharding),
            R"(#sdy.sharding<@mesh, [{"a"}, {"b":(1)2, ?}p3, {?}], replicated={"c"}>)");
  const uint64_t plain = p.attribute("sdy", {6, symbol, 1, closed, 0});
  EXPECT_EQ(opaque_text(p, p.attribute("sdy", {7, 2, plain, plain})),
            R"(#sdy.sharding_per_value<[<@mesh, [{"a"}]>, <@mesh, [{"a"}]>]>)");
  const uint64_t mesh_axis = p.attribute("sdy", Bytes{1, p.string("a")}.svarint(2));
  const uint64_t mesh = p.attribute("sdy", {2, 1, mesh_axis, 0});
  EXPECT_EQ(opaque_text(p, mesh), R"(#sdy.mesh<["a"=2]>)");
  EXPECT_EQ(opaque_text(p, p.attribute("sdy", Bytes{2, 1, mesh_axis, 2}.svarint(1).svarint(0))),
            R"(#sdy.mesh<["a"=2], device_ids=[1, 0]>)");
  EXPECT_EQ(opaque_text(p, p.attribute("sdy", Bytes{17, mesh, 0, 0, 1, axis("a")}.svarint(1))),
            R"(#sdy.sharding<mesh<["a"=2]>, [], unreduced=max{"a"}>)");
  EXPECT_EQ(opaque_text(p, p.attribute("sdy", {0, 1, name})), R"(#sdy<manual_axes{"mesh"}>)");
  const auto mapping = [&](const std::vector<std::vector<int64_t>>& dims) {
    Bytes tensor{9, dims.size()};
    for (const auto& factors : dims) {
      Bytes dim{8, factors.size()};
      for (const int64_t f : factors) dim.svarint(f);
      tensor.varint(p.attribute("sdy", dim));
    }
    return p.attribute("sdy", tensor);
  };
  Bytes rule = Bytes{10, 2}.svarint(2).svarint(4);
  rule.varint(1).varint(mapping({{0}, {1}})).varint(1).varint(mapping({{0, 1}}));
  rule.varint(1).svarint(1).varint(0).varint(0).varint(0).byte(1);
  EXPECT_EQ(opaque_text(p, p.attribute("sdy", rule)),
            "#sdy.op_sharding_rule<([i, j])->([ij]) {i=2, j=4} reduction={j}, custom>");
}

TEST(Artifact, ReadsOpsOfOtherDialects) {
  ProgramBuilder p;
  const uint64_t axis = p.attribute("sdy", Bytes{1, p.string("a")}.svarint(2));
  const uint64_t mesh = p.attribute("sdy", {2, 1, axis, 0});
  p.add({.dialect = "sdy",
         .name = "mesh",
         .fields = {mesh, p.attribute("builtin", {2, p.string("mesh")})}});
  p.add_constant();
  const uint64_t tensor = p.type("builtin", {13, 0, p.type("builtin", {5})});
  p.add({.dialect = "builtin",
         .name = "unrealized_conversion_cast",
         .results = {tensor},
         .operands = {0}});
  p.add({.dialect = "chlo", .name = "erf", .results = {tensor}, .operands = {1}});
  const std::vector<RawOp> ops = ops_of(p);
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[0].name, "sdy.mesh");
  EXPECT_EQ(*find(ops[0].attributes, "sym_name"), Attribute("mesh"));
  EXPECT_EQ(*find(ops[0].attributes, "mesh"), Attribute(OpaqueAttr{R"(#sdy.mesh<["a"=2]>)"}));
  EXPECT_EQ(ops[2].name, "builtin.unrealized_conversion_cast");
  EXPECT_EQ(ops[3].name, "chlo.erf");
}

TEST(Artifact, ListsTakeTheFormThatTheirFieldAsks) {
  ProgramBuilder p;
  const uint64_t list = p.list_attribute({4});
  const uint64_t tensor = p.tensor_type({1}, p.i64);
  p.add({.name = "constant_v1", .fields = {list}, .results = {tensor}});
  p.add({.name = "iota_v1", .fields = {p.i64_attribute(0)}, .results = {tensor}});
  p.add({.name = "reverse_v1", .fields = {list}, .results = {tensor}, .operands = {0}});
  // The two share their properties.
  p.add({.name = "reverse_v1", .fields = {list}, .results = {tensor}, .operands = {0}});
  const std::vector<RawOp> ops = ops_of(p);
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_TRUE(find(ops[0].attributes, "value")->get<DenseAttr>()->is_splat());
  EXPECT_EQ(*find(ops[2].attributes, "dimensions"), Attribute(I64s{4}));
  EXPECT_EQ(ops[2].attributes, ops[3].attributes);
}

TEST(Artifact, DeepLocationsAreCutOff) {
  ProgramBuilder p;
  uint64_t location = p.unknown_location;
  const uint64_t name = p.attribute("builtin", {2, p.string("n")});
  for (int i = 0; i < 100000; ++i) location = p.attribute("builtin", {14, name, location});
  p.unknown_location = location;
  p.add_constant();
  EXPECT_EQ(ops_of(p).size(), 1u);
}

}  // namespace
}  // namespace tenon::hlo
