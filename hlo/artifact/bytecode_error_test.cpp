// The text of every error of the artifact reader; and a check that broken files end in an error.

#include <gtest/gtest.h>

#include <random>

#include "hlo/artifact/bytecode_reader.h"
#include "hlo/artifact/bytecode_test_util.h"

namespace tenon::hlo {
namespace {

using namespace bytecode;

std::string error_of(std::string_view bytes, const ImportLimits& limits = {}) {
  const auto module = parse_artifact(bytes, "f.bc", limits);
  return module ? "no error" : module.error().to_string();
}

// The error of a program, after "f.bc: error: artifact of StableHLO_v1.20.0: ".
std::string error_of(ProgramBuilder& program, const ImportLimits& limits = {}) {
  const std::string text = error_of(program.program(), limits);
  const std::string_view prefix = "f.bc: error: artifact of StableHLO_v1.20.0: ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// Without the byte position, which changes with every change of the writer.
std::string placeless(const std::string& text) {
  const size_t begin = text.find("byte 0x");
  const size_t end = text.find(": ", begin);
  return begin == 0 && end != std::string::npos ? text.substr(text.find(" (")) : text;
}

// The error of decoding a discardable attribute.
std::string attribute_error(ProgramBuilder& p, uint64_t attribute) {
  p.add({.name = "return_v1", .discardable = {p.dictionary({{"x", attribute}})}});
  return placeless(error_of(p));
}

std::string type_error(ProgramBuilder& p, uint64_t type) {
  p.add({.name = "create_token_v1", .results = {type}});
  return placeless(error_of(p));
}

const std::string kData = " (attribute and type data section): ";

TEST(ArtifactError, Header) {
  EXPECT_EQ(error_of("module"),
            "f.bc: error: this is not MLIR bytecode: it does not begin with 4d 4c ef 52");
  EXPECT_EQ(error_of("\x4D\x4C\xEF\x52"),
            "f.bc: error: artifact of an unknown producer: byte 0x4 (header section): 1 bytes are "
            "needed, "
            "0 are left");
  EXPECT_EQ(
      error_of("\x4D\x4C\xEF\x52\x0Dp"),
      "f.bc: error: artifact of an unknown producer: byte 0x5 (header section): a text has no end");
  EXPECT_EQ(
      error_of(Bytes().raw("\x4D\x4C\xEF\x52").varint(7).raw("MLIR99").byte(0).data),
      "f.bc: error: artifact of MLIR99: bytecode version 7 is unknown; the newest known is 6");
  const Bytes head = Bytes().raw("\x4D\x4C\xEF\x52").varint(6).raw("P").byte(0);
  EXPECT_EQ(error_of(head.data), "f.bc: error: artifact of P: the string section is missing");
  EXPECT_EQ(error_of(Bytes(head).section(9, {}).data),
            "f.bc: error: artifact of P: byte 0x7 (header section): section 9 is unknown");
  EXPECT_EQ(error_of(Bytes(head).section(0, {}).section(0, {}).data),
            "f.bc: error: artifact of P: byte 0x9 (header section): a second string section");
  EXPECT_EQ(
      error_of(Bytes(head).byte(0).varint(9).data),
      "f.bc: error: artifact of P: byte 0x9 (header section): 9 bytes are needed, 0 are left");
}

// A file whose section `id` has `content`; the other sections are minimal.
std::string with_section(uint8_t id, const Bytes& content) {
  Bytes out = Bytes().raw("\x4D\x4C\xEF\x52").varint(6).raw("P").byte(0);
  const Bytes strings = Bytes({1, 2}).raw(std::string_view("a\0", 2));
  const std::pair<uint8_t, Bytes> sections[] = {{0, strings}, {1, {1, 0, 0}}, {3, {0, 0}},
                                                {2, {}},      {4, {0}},       {8, {0}}};
  for (const auto& [i, bytes] : sections) out.section(i, i == id ? content : bytes);
  if (id > 4 && id != 8)
    out.section(5, id == 5 ? content : Bytes()).section(6, id == 6 ? content : Bytes{0});
  return out.data;
}

std::string section_error(uint8_t id, const Bytes& content) {
  const std::string text = error_of(with_section(id, content));
  return placeless(text.substr(text.find("P: ") + 3));
}

TEST(ArtifactError, Tables) {
  EXPECT_EQ(section_error(4, {0}), "it holds 0 ops instead of one module");
  EXPECT_EQ(section_error(0, Bytes({1, 9}).raw("a")),
            " (string section): string 0 takes 9 bytes, 1 are left");
  EXPECT_EQ(section_error(0, Bytes({1, 1}).raw(std::string_view("\0\0", 2))),
            " (string section): the strings take 1 bytes, 2 are left");
  EXPECT_EQ(section_error(0, Bytes({1, 2}).raw("ab")),
            " (string section): string 0 does not end in NUL");
  EXPECT_EQ(section_error(1, {1, 8}), " (dialect section): string 4 does not exist; there are 1");
  EXPECT_EQ(section_error(1, {1, 0, 1}),
            " (dialect section): a list of 1 entries does not fit the 0 bytes left");
  EXPECT_EQ(section_error(1, {1, 0, 2, 0, 1, 0}),
            " (dialect section): 2 op names are announced, 1 are listed");
  EXPECT_EQ(
      section_error(3, {1, 0}),
      " (attribute and type offset section): 1 attributes and 0 types do not fit the 0 bytes left");
  EXPECT_EQ(
      section_error(2, {7}),
      " (attribute and type offset section): the entries end at byte 0x18, their section at 0x19");
  EXPECT_EQ(section_error(8, {0, 0}), " (property section): 1 bytes are left over");
  EXPECT_EQ(section_error(8, {1, 5}), " (property section): 5 bytes are needed, 0 are left");
  EXPECT_EQ(section_error(5, {5}),
            " (resource offset section): the resources end at byte 0x20, their section at 0x21");
  EXPECT_EQ(section_error(6, Bytes{0, 0, 1, 0, 0}.byte(7)),
            " (resource offset section): resource a is of unknown kind 7");
}

TEST(ArtifactError, Ops) {
  {
    ProgramBuilder p;
    p.producer = "StableHLO_v2.0.0";
    p.add({.name = "constant_v99"});
    EXPECT_EQ(error_of(p.program()),
              "f.bc: error: artifact of StableHLO_v2.0.0: op vhlo.constant_v99 is unknown; newest "
              "StableHLO version known is 1.20.0");
  }
  {
    ProgramBuilder p;
    p.add({.dialect = "stablehlo", .name = "add"});
    EXPECT_EQ(error_of(p),
              "op stablehlo.add is bytecode of StableHLO itself, which no version keeps readable; "
              "serialize a portable artifact (VHLO) or give the text");
  }
  {
    ProgramBuilder p;
    p.add({.dialect = "chlo", .name = "top_k", .fields = {0}});
    EXPECT_EQ(error_of(p), "the properties of chlo.top_k cannot be read");
  }
  {
    ProgramBuilder p;
    p.add({.name = "iota_v1"});
    EXPECT_EQ(error_of(p), "stablehlo.iota has no attribute iota_dimension");
  }
  {
    ProgramBuilder p;
    p.add({.name = "iota_v1", .fields = {p.string_attribute("x")}});
    EXPECT_EQ(error_of(p), "iota_dimension of stablehlo.iota is not an i64 integer");
  }
  {
    ProgramBuilder p;
    p.add({.name = "reverse_v1", .fields = {p.bool_attribute(true)}});
    EXPECT_EQ(error_of(p), "dimensions of stablehlo.reverse is not a list of i64");
  }
  {
    ProgramBuilder p;
    p.add({.name = "iota_v1", .fields = {p.i64_attribute(0), p.i64_attribute(1)}});
    EXPECT_EQ(placeless(error_of(p)),
              " (property section): the properties of stablehlo.iota have 1 bytes left over");
  }
  {
    ProgramBuilder p;
    const uint64_t dimension = p.i64_attribute(0);
    p.add({.name = "iota_v1",
           .fields = {dimension},
           .discardable = {p.dictionary({{"iota_dimension", dimension}})}});
    EXPECT_EQ(placeless(error_of(p)),
              " (IR section): key \"iota_dimension\" stands twice in a dictionary");
  }
  {
    ProgramBuilder p;
    p.add({.name = "abs_v1", .results = {p.scalar}, .operands = {3}});
    EXPECT_EQ(placeless(error_of(p)),
              " (IR section): operand 0 of stablehlo.abs is value 3, which is not defined");
  }
  {
    ProgramBuilder p;
    p.add({.name = "create_token_v1", .results = {p.f32}});
    EXPECT_EQ(error_of(p), "type 0 is f32, which no value has");
  }
  {
    ProgramBuilder p;
    p.add_constant();
    p.values = 2;
    EXPECT_EQ(placeless(error_of(p)), " (IR section): a region announces 2 values and defines 1");
    p.values = 0;
    EXPECT_EQ(placeless(error_of(p)),
              " (IR section): a region defines more values than it announced");
    p.values = 1000;
    EXPECT_EQ(placeless(error_of(p)),
              " (IR section): a region announces 1000 values, more than the file can define");
  }
  {
    ProgramBuilder p;
    p.body.varint(p.op("vhlo", "abs_v1")).byte(0x80).varint(0);
    p.op_count = 1;
    EXPECT_EQ(placeless(error_of(p)), " (IR section): stablehlo.abs: mask 0x80 is unknown");
  }
  {
    ProgramBuilder p;
    p.body.varint(p.op("vhlo", "abs_v1")).byte(0x08).varint(0).varint(0);
    p.op_count = 1;
    EXPECT_EQ(
        placeless(error_of(p)),
        " (IR section): stablehlo.abs has successors; regions of one block alone can be read");
  }
  {
    ProgramBuilder p;
    p.body.varint(p.op("vhlo", "if_v1")).byte(0x10).varint(0).flagged(1, false).varint(2).varint(0);
    p.op_count = 1;
    EXPECT_EQ(placeless(error_of(p)),
              " (IR section): a region of 2 blocks; regions of one block alone can be read");
  }
  {
    ProgramBuilder p;
    p.op_count = 100;
    EXPECT_EQ(placeless(error_of(p)), " (IR section): 100 ops do not fit the 0 bytes left");
  }
}

TEST(ArtifactError, RegionsNestTooDeep) {
  ProgramBuilder p;
  const uint64_t op = p.op("vhlo", "optimization_barrier_v1");
  for (int i = 0; i < 300; ++i) {
    if (i != 0) p.body.flagged(1, false).varint(1).varint(0).flagged(1, false);
    p.body.varint(op).byte(0x10).varint(0);
  }
  p.op_count = 1;
  EXPECT_EQ(placeless(error_of(p)), " (IR section): regions are nested deeper than 256");
}

TEST(ArtifactError, Attributes) {
  const auto vhlo = [](const Bytes& bytes) {
    ProgramBuilder p;
    return attribute_error(p, p.attribute("vhlo", bytes));
  };
  EXPECT_EQ(vhlo({99}),
            "attribute 99 of dialect vhlo is unknown; newest StableHLO version known is 1.20.0");
  EXPECT_EQ(vhlo({2, 2}), kData + "2 is neither false nor true");
  EXPECT_EQ(vhlo({3, 6}), kData + "comparison_direction 6 does not exist");
  EXPECT_EQ(vhlo({13, 0}), kData + "rng_distribution 0 does not exist");
  EXPECT_EQ(vhlo({2, 1, 0}), kData + "attribute 1 has 1 bytes left over");
  EXPECT_EQ(vhlo({1, 1, 1}), kData + "attribute 1 contains itself");
  EXPECT_EQ(vhlo({1, 1, 77}), "attribute 77 does not exist; there are 8");
  EXPECT_EQ(vhlo({1, 9}), kData + "a list of 9 entries does not fit the 0 bytes left");
  EXPECT_EQ(vhlo({15, 2, 3}), kData + "3 bytes are needed, 0 are left");
  EXPECT_EQ(vhlo(Bytes{15, 2}.blob("abc")),
            kData + "3 bytes given for f32[], which takes 4 or, if all are equal, 4");
  EXPECT_EQ(vhlo({9, 0, 0}), kData + "an integer of type f32");
  EXPECT_EQ(vhlo({8, 1, 0}), kData + "a float of type s64");
  EXPECT_EQ(vhlo({9, 2, 0}), kData + "an element type is expected, but tensor<f32> came");
  EXPECT_EQ(vhlo({20, 0, 0, 0, 0}), "an attribute of kind 'a location' cannot be read");
  const auto builtin = [](const Bytes& bytes) {
    ProgramBuilder p;
    return attribute_error(p, p.attribute("builtin", bytes));
  };
  EXPECT_EQ(builtin({30}),
            "attribute 30 of dialect builtin is unknown; newest StableHLO version known is 1.20.0");
  EXPECT_EQ(builtin({20, 0, 0, 0}), "an attribute of kind 'sparse elements' cannot be read");
  EXPECT_EQ(builtin({16, 2, 0}), kData + "resource 0 does not exist; there are 0");
  EXPECT_EQ(builtin({4, 0}), "attribute 0 is not a string");
}

TEST(ArtifactError, Types) {
  const auto vhlo = [](const Bytes& bytes) {
    ProgramBuilder p;
    return type_error(p, p.type("vhlo", bytes));
  };
  EXPECT_EQ(vhlo({25, 0}), "a type of kind 'unranked tensor' cannot be read");
  EXPECT_EQ(vhlo({26}), "a type of kind 'witness' cannot be read");
  EXPECT_EQ(vhlo({60}),
            "type 60 of dialect vhlo is unknown; newest StableHLO version known is 1.20.0");
  EXPECT_EQ(vhlo({1, 1}), kData + "complex<s64> does not exist");
  EXPECT_EQ(vhlo({23, 1, 3}), kData + "type 3 contains itself");
  EXPECT_EQ(vhlo(Bytes{20, 1}.svarint(-3).varint(0)), kData + "a dimension of size -3");
  EXPECT_EQ(vhlo({20, 0, 2}), kData + "tensor<f32> cannot be the element of an array");
  EXPECT_EQ(vhlo(Bytes{20, 2}.svarint(int64_t{1} << 40).svarint(int64_t{1} << 40).varint(0)),
            kData +
                "a shape of dimensions [1099511627776,1099511627776] has more elements than can be "
                "counted");
  EXPECT_EQ(vhlo({24, 1, 0, 0, 0, 0, 0, 0}), kData + "a quantized type of f32 stored as f32");
  const auto builtin = [](const Bytes& bytes) {
    ProgramBuilder p;
    return type_error(p, p.type("builtin", bytes));
  };
  EXPECT_EQ(builtin({19}), "a type of kind 'vector' cannot be read");
  EXPECT_EQ(builtin({0, 17 << 2}), kData + "integers of 17 bits and signedness 0 cannot be read");
  ProgramBuilder p;
  EXPECT_EQ(type_error(p, p.text_type("quant", "!quant.any<i8>")),
            "type !quant.any<i8> cannot be read");
  ProgramBuilder q;
  EXPECT_EQ(type_error(q, q.type("quant", {1})), "types of dialect quant cannot be read");
}

TEST(ArtifactError, NestingIsBounded) {
  ProgramBuilder p;
  uint64_t inner = p.attribute("vhlo", {1, 0});
  for (int i = 0; i < 300; ++i) inner = p.attribute("vhlo", {1, 1, inner});
  EXPECT_EQ(attribute_error(p, inner), kData + "attributes and types are nested deeper than 256");
  // If decoding begins with the innermost entry, no single step is deep.
  ProgramBuilder q;
  inner = q.attribute("vhlo", {1, 0});
  std::vector<std::pair<std::string, uint64_t>> all;
  for (int i = 0; i < 300; ++i) {
    inner = q.attribute("vhlo", {1, 1, inner});
    all.emplace_back(fmt::format("{:03}", i), inner);
  }
  q.add({.name = "return_v1", .discardable = {q.dictionary(all)}});
  EXPECT_EQ(placeless(error_of(q)), kData + "attribute 257 is nested deeper than 256");
}

TEST(ArtifactError, WhatIsSharedMayNotExplode) {
  ProgramBuilder p;
  uint64_t doubled = p.string_attribute("x");
  for (int i = 0; i < 60; ++i) doubled = p.attribute("vhlo", {1, 2, doubled, doubled});
  const std::string text = attribute_error(p, doubled);
  EXPECT_TRUE(text.ends_with("is too large when written out")) << text;
  ProgramBuilder q;
  const uint64_t large = q.string_attribute(std::string(100000, 'x'));
  Bytes many{1, 10000};
  for (int i = 0; i < 10000; ++i) many.varint(large);
  const std::string copies = attribute_error(q, q.attribute("vhlo", many));
  EXPECT_TRUE(copies.starts_with("its lists and texts repeat out of proportion to its ")) << copies;
  ProgramBuilder r;
  const uint64_t tensor = r.tensor_type({int64_t{1} << 40}, r.i64);
  r.add({.name = "reverse_v1",
         .fields = {r.attribute("vhlo",
                                Bytes{15, tensor}.blob(std::string_view("\0\0\0\0\0\0\0\0", 8)))}});
  EXPECT_EQ(error_of(r), "a list of 1099511627776 equal numbers is longer than 1048576");
}

TEST(ArtifactError, EveryTruncationAndManyFlipsEndInAnAnswer) {
  ProgramBuilder p;
  p.add_constant();
  p.add({.name = "add_v1", .results = {p.scalar}, .operands = {0, 0}});
  p.add({.name = "return_v1", .operands = {1}});
  const std::string file = p.program();
  ASSERT_EQ(error_of(file), "no error");
  for (size_t n = 0; n < file.size(); ++n) EXPECT_NE(error_of(file.substr(0, n)), "no error") << n;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string broken = file;
    for (int k = 0; k < 3; ++k)
      broken[random() % file.size()] ^= static_cast<char>(1 << random() % 8);
    error_of(broken);
  }
}

}  // namespace
}  // namespace tenon::hlo
