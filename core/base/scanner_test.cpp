#include "core/base/scanner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tenon {
namespace {

Scanner scanner(std::string_view text) { return Scanner(text, "t"); }

TEST(Scanner, SkipsSpaceAndComments) {
  Scanner s = scanner(" \t\r\n// one\n  // two\n x // end");
  EXPECT_EQ(s.peek(), 'x');
  EXPECT_EQ(s.word(), "x");
  EXPECT_TRUE(s.at_end());
  EXPECT_EQ(s.peek(), '\0');
}

TEST(Scanner, ANulCharacterIsNoEnd) {
  Scanner s = scanner(std::string_view("\0x", 2));
  EXPECT_FALSE(s.at_end());
  EXPECT_TRUE(s.accept('\0'));
  EXPECT_EQ(s.word(), "x");
}

TEST(Scanner, Words) {
  Scanner s = scanner("_a1$.b-c d-1 cross-replica-sum 1x");
  EXPECT_EQ(s.peek_word(), "_a1$.b");
  EXPECT_EQ(s.word(), "_a1$.b");
  EXPECT_TRUE(s.accept('-'));
  EXPECT_EQ(s.word(true), "c");
  EXPECT_EQ(s.word(true), "d");
  EXPECT_TRUE(s.accept("-1"));
  EXPECT_EQ(s.word(true), "cross-replica-sum");
  EXPECT_EQ(s.word(), "");
}

TEST(Scanner, KeywordsAreWholeWords) {
  Scanner s = scanner("tensors tensor");
  EXPECT_FALSE(s.accept_keyword("tensor"));
  EXPECT_TRUE(s.accept_keyword("tensors"));
  EXPECT_TRUE(s.expect_keyword("tensor"));
}

TEST(Scanner, ASuffixEndsBeforeAnArrow) {
  Scanner s = scanner("a-3.b->c");
  EXPECT_EQ(s.suffix(), "a-3.b");
  EXPECT_TRUE(s.accept("->"));
}

TEST(Scanner, StringEscapes) {
  Scanner s = scanner(R"("a\\\"\n\t\41\7F\C3\A4")");
  std::string out;
  ASSERT_TRUE(s.string_literal(out));
  EXPECT_EQ(out, "a\\\"\n\t\x41\x7F\xC3\xA4");
}

TEST(Scanner, Integers) {
  const std::pair<const char*, int64_t> cases[] = {{"0", 0},
                                                   {"-5", -5},
                                                   {"007", 7},
                                                   {"0x10", 16},
                                                   {"0xffffffffffffffff", -1},
                                                   {"9223372036854775807", INT64_MAX},
                                                   {"-9223372036854775808", INT64_MIN},
                                                   {"18446744073709551615", -1}};
  for (const auto& [text, expected] : cases) {
    int64_t out = 1;
    EXPECT_TRUE(scanner(text).integer(out)) << text;
    EXPECT_EQ(out, expected) << text;
  }
}

TEST(Scanner, Reals) {
  const std::pair<const char*, double> cases[] = {
      {"1.5", 1.5},  {"-2.", -2.0},       {"1e3", 1000},         {"1.0E-5", 1e-5},
      {"-0.0", 0.0}, {"1e400", HUGE_VAL}, {"-1e400", -HUGE_VAL}, {"1e-400", 0}};
  for (const auto& [text, expected] : cases) {
    double out = 7;
    EXPECT_TRUE(scanner(text).real(out)) << text;
    EXPECT_EQ(out, expected) << text;
    EXPECT_EQ(std::signbit(out), text[0] == '-') << text;
  }
}

TEST(Scanner, PeekNumber) {
  bool is_float = false;
  EXPECT_TRUE(scanner("12").peek_number(is_float));
  EXPECT_FALSE(is_float);
  EXPECT_TRUE(scanner("-1.5").peek_number(is_float));
  EXPECT_TRUE(is_float);
  EXPECT_TRUE(scanner("0x1e5").peek_number(is_float));
  EXPECT_FALSE(is_float);
  EXPECT_FALSE(scanner("x").peek_number(is_float));
  EXPECT_FALSE(scanner("-").peek_number(is_float));
}

TEST(Scanner, PositionsSearchTheTextOnce) {
  std::string text = "first\n\n";
  for (int i = 0; i < 1000; ++i) text += "word ";
  const size_t size = text.size();
  text += "\nlast";
  Scanner scan(text, "t");
  for (size_t i = 0; i < size; i += 5) EXPECT_EQ(scan.position(i).line, i < 6 ? 1U : 3U);
  EXPECT_EQ(scan.position(size + 2).line, 4U);
  EXPECT_EQ(scan.position(size + 2).column, 2U);
  EXPECT_EQ(scan.position(7).column, 1U);
  EXPECT_EQ(scan.position(6).line, 2U);
  EXPECT_LE(scan.searched(), size + 16);
}

TEST(Scanner, BalancedText) {
  Scanner s = scanner(R"( <a[1](b){">"} -> c // >
 > rest)");
  std::string_view out;
  ASSERT_TRUE(s.balanced(out));
  EXPECT_TRUE(out.starts_with("<a[1]"));
  EXPECT_TRUE(out.ends_with("\n >"));
  EXPECT_EQ(s.word(), "rest");
}

TEST(Scanner, PositionsCountLinesAndColumns) {
  Scanner s = scanner("ab\ncd\n\ne");
  EXPECT_EQ(s.position(0), (SourcePosition{"t", 1, 1}));
  EXPECT_EQ(s.position(4), (SourcePosition{"t", 2, 2}));
  EXPECT_EQ(s.position(7), (SourcePosition{"t", 4, 1}));
  EXPECT_EQ(s.position(1), (SourcePosition{"t", 1, 2}));  // backwards too
}

TEST(Scanner, TheFirstErrorStaysAndEndsTheText) {
  Scanner s = scanner("a b c");
  EXPECT_FALSE(s.expect('x'));
  EXPECT_TRUE(s.at_end());
  EXPECT_FALSE(s.expect_keyword("b"));
  EXPECT_EQ(s.status().to_string(), "t:1:1: error: expected 'x', found 'a'");
}

struct BadText {
  const char* text;
  std::function<bool(Scanner&)> read;
  const char* error;
};
TEST(Scanner, Errors) {
  const auto integer = [](Scanner& s) {
    int64_t out;
    return s.integer(out);
  };
  const auto real = [](Scanner& s) {
    double out;
    return s.real(out);
  };
  const auto string = [](Scanner& s) {
    std::string out;
    return s.string_literal(out);
  };
  const auto balanced = [](Scanner& s) {
    std::string_view out;
    return s.balanced(out);
  };
  const BadText cases[] = {
      {" 18446744073709551616", integer, "t:1:2: error: an integer does not fit 64 bits"},
      {"-9223372036854775809", integer, "t:1:1: error: an integer does not fit 64 bits"},
      {"x", integer, "t:1:1: error: expected an integer, found 'x'"},
      {"-x", integer, "t:1:1: error: expected an integer, found '-'"},
      {"0x", integer, "t:1:1: error: expected an integer, found '0x'"},
      {"", integer, "t:1:1: error: expected an integer, found the end of the text"},
      {"nan", real, "t:1:1: error: expected a number, found 'nan'"},
      {"-inf", real, "t:1:1: error: expected a number, found '-'"},
      {"--1.0", real, "t:1:1: error: expected a number, found '-'"},
      {"x", string, "t:1:1: error: expected a string, found 'x'"},
      {" \"ab", string, "t:1:2: error: a string is not closed on its line"},
      {"\"a\nb\"", string, "t:1:1: error: a string is not closed on its line"},
      {"\"\\", string, "t:1:1: error: a string is not closed on its line"},
      {"\"a\\q\"", string, "t:1:4: error: unknown escape '\\q' in a string"},
      {"<a", balanced, "t:1:1: error: a bracket is not closed"},
      {"<a]", balanced, "t:1:3: error: unbalanced ']'"},
      {"abcdefghijklmnopqrstuvwxyz", [](Scanner& s) { return s.expect("->"); },
       "t:1:1: error: expected '->', found 'abcdefghijklmnopqrstuvwx'"},
      {"\n  b", [](Scanner& s) { return s.expect_keyword("a"); },
       "t:2:3: error: expected 'a', found 'b'"},
  };
  for (const BadText& c : cases) {
    Scanner s = scanner(c.text);
    EXPECT_FALSE(c.read(s)) << c.text;
    EXPECT_EQ(s.status().to_string(), c.error);
  }
}

}  // namespace
}  // namespace tenon
