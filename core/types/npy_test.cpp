#include "core/types/npy.h"

#include <gtest/gtest.h>

#include "core/base/file.h"

namespace tenon {
namespace {

using enum ElementType;

// A file of `version` with the header `text` and `data`.
std::string file(int version, const std::string& text, std::string_view data) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    out += static_cast<char>((text.size() >> (8 * i)) & 0xFF);
  }
  return out + text + std::string(data);
}
std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}
constexpr std::string_view kTwoS16("\x01\x00\x02\x00", 4);

class NpyType : public testing::TestWithParam<ElementType> {};
std::vector<ElementType> all_types() {
  std::vector<ElementType> types;
  for (const ElementTypeInfo& row : element_types()) types.push_back(row.type);
  return types;
}
INSTANTIATE_TEST_SUITE_P(All, NpyType, testing::ValuesIn(all_types()),
                         [](const auto& p) { return std::string(name_of(p.param)); });

TEST_P(NpyType, RoundTripsInEveryRank) {
  for (const Dims& dims : {Dims{}, Dims{3}, Dims{2, 3}, Dims{2, 0}, Dims{2, 1, 2}}) {
    Literal literal(Shape(GetParam(), dims));
    for (int64_t i = 0; i < literal.element_count(); ++i) {
      if (is_complex(GetParam())) {
        literal.set_complex(i, {double(i), 1.5});
      } else if (is_float(GetParam())) {
        literal.set_double(i, 0.5 * double(i + 1));
      } else {
        literal.set_integer(i, i - 1);
      }
    }
    const std::string bytes = npy_bytes(literal);
    const auto again = parse_npy(bytes, GetParam());
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_TRUE(*again == literal) << again->to_string() << " " << literal.to_string();
    // Data begins at a multiple of 64 bytes, as NumPy writes it.
    EXPECT_EQ((bytes.size() - literal.data().size()) % 64, 0u);
  }
}

TEST(Npy, HeaderAsNumpyWritesIt) {
  const std::string bytes = npy_bytes(Literal(Shape(kF32, {2, 3})));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_TRUE(
      bytes.substr(10).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_NE(npy_bytes(Literal(Shape(kS8, {}))).find("'|i1'"), std::string::npos);
  EXPECT_NE(npy_bytes(Literal(Shape(kS8, {}))).find("'shape': (), "), std::string::npos);
  EXPECT_NE(
      npy_bytes(Literal(Shape(kPred, {4}))).find("'|b1', 'fortran_order': False, 'shape': (4,)"),
      std::string::npos);
}

TEST(Npy, AllVersionsOfTheFormat) {
  for (const int version : {1, 2, 3}) {
    const auto literal = parse_npy(file(version, header("<i2", "(2,)"), kTwoS16));
    ASSERT_TRUE(literal) << version << literal.error().to_string();
    EXPECT_EQ(literal->to_string(), "[1, 2]");
  }
}

TEST(Npy, BigEndianIsSwapped) {
  const auto literal =
      parse_npy(file(1, header(">i2", "(2,)"), std::string_view("\x00\x01\x00\x02", 4)));
  ASSERT_TRUE(literal);
  EXPECT_EQ(literal->to_string(), "[1, 2]");
}

TEST(Npy, BigEndianComplexIsSwappedByParts) {
  const auto literal = parse_npy(
      file(1, header(">c8", "()"), std::string_view("\x3F\x80\x00\x00\x40\x00\x00\x00", 8)));
  ASSERT_TRUE(literal);
  EXPECT_EQ(literal->to_string(), "(1, 2)");
}

TEST(Npy, ColumnMajorIsTransposed) {
  const auto literal =
      parse_npy(file(1, header("|u1", "(2, 3)", true), "\x01\x04\x02\x05\x03\x06"));
  ASSERT_TRUE(literal);
  EXPECT_EQ(literal->to_string(), "[[1, 2, 3], [4, 5, 6]]");
}

TEST(Npy, TypesWithoutADescriptorNeedAnExpectation) {
  const std::string bytes = npy_bytes(Literal(Shape(kF8E4M3FN, {2})));
  EXPECT_EQ(parse_npy(bytes).error().message(), ".npy arrays of type '|V1' are not read");
  EXPECT_EQ(parse_npy(bytes, kF8E4M3FN)->element_type(), kF8E4M3FN);
  EXPECT_EQ(parse_npy(npy_bytes(Literal(Shape(kBF16, {2}))))->element_type(), kBF16);
}

TEST(Npy, AnExpectationConvertsNothing) {
  EXPECT_EQ(parse_npy(npy_bytes(Literal(Shape(kF32, {2}))), kS8)->element_type(), kF32);
}

TEST(Npy, PredAndNarrowIntegersAreBroughtToTheirStoredForm) {
  EXPECT_TRUE(*parse_npy(file(1, header("|b1", "()"), "\x07")) == Literal::scalar(kPred, 1));
  EXPECT_TRUE(*parse_npy(file(1, header("|V1", "()"), "\x0D"), kS4) == Literal::scalar(kS4, -3));
  EXPECT_TRUE(*parse_npy(file(1, header("|V1", "()"), "\xF7"), kU4) == Literal::scalar(kU4, 7));
  EXPECT_TRUE(*parse_npy(file(1, header("|V1", "()"), "\xF2"), kF4E2M1FN) ==
              Literal::scalar(kF4E2M1FN, 1));
}

TEST(Npy, ALongHeaderMakesVersion2) {
  const Literal literal(Shape(kPred, Dims(30000, 1)));
  const std::string bytes = npy_bytes(literal);
  EXPECT_EQ(bytes[6], 2);
  const auto again = parse_npy(bytes);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_TRUE(*again == literal);
}

struct Bad {
  const char* name;
  std::string bytes;
  const char* message;
};
class BadNpy : public testing::TestWithParam<Bad> {};
INSTANTIATE_TEST_SUITE_P(
    Table, BadNpy,
    testing::Values(
        Bad{"Magic", "PK\x03\x04 a zip archive",
            "not a .npy file: it does not begin with \\x93NUMPY"},
        Bad{"Empty", "", "not a .npy file: it does not begin with \\x93NUMPY"},
        Bad{"Version", file(4, header("<i2", "(2,)"), kTwoS16),
            ".npy format version 4; versions 1 to 3 are read"},
        Bad{"ShortLength", std::string("\x93NUMPY\x02\x00\x05\x00", 10), ".npy header is cut off"},
        Bad{"ShortHeader", file(1, header("<i2", "(2,)"), "").substr(0, 30),
            ".npy header is cut off"},
        Bad{"NoDictionary", file(1, "[1, 2]", ""), ".npy header is not understood"},
        Bad{"UnknownKey", file(1, "{'x': 1}", ""), ".npy header is not understood"},
        Bad{"NoType", file(1, "{'shape': (2,), }", ""), ".npy header is not understood"},
        Bad{"Unclosed", file(1, "{'descr': '<i2'", ""), ".npy header is not understood"},
        Bad{"NegativeSize", file(1, header("<i2", "(-2,)"), ""), ".npy header is not understood"},
        Bad{"StructuredType", file(1, "{'descr': [('a', '<i2')], 'shape': (2,), }", ""),
            ".npy header is not understood"},
        Bad{"ForeignType", file(1, header("<U4", "(2,)"), ""),
            ".npy arrays of type '<U4' are not read"},
        Bad{"TooShort", file(1, header("<i2", "(3,)"), kTwoS16),
            ".npy data has 4 bytes, 6 expected for s16[3]"},
        Bad{"TooLong", file(1, header("<i2", "(1,)"), kTwoS16),
            ".npy data has 4 bytes, 2 expected for s16[1]"},
        Bad{"TooLarge", file(1, header("<i2", "(9000000000000000000, 2)"), ""),
            "a shape of dimensions [9000000000000000000,2] has more elements than can be counted"}),
    [](const auto& p) { return std::string(p.param.name); });

TEST_P(BadNpy, IsRefused) {
  const auto literal = parse_npy(GetParam().bytes);
  ASSERT_FALSE(literal);
  EXPECT_EQ(literal.error().message(), GetParam().message);
}

TEST(Npy, EveryCutOfAFileIsAnError) {
  const std::string bytes = npy_bytes(Literal(Shape(kF32, {2, 3})));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_npy(std::string_view(bytes).substr(0, size))) << size;
  }
}

TEST(Npy, FileErrorsNameThePath) {
  const std::string path = testing::TempDir() + "bad.npy";
  ASSERT_TRUE(write_file(path, "x").ok());
  EXPECT_EQ(read_npy(path).error().message(),
            path + ": not a .npy file: it does not begin with \\x93NUMPY");
  ASSERT_TRUE(write_npy(path, Literal::scalar(kS32, 5)).ok());
  EXPECT_TRUE(*read_npy(path) == Literal::scalar(kS32, 5));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tenon
