// Serialisation of values to bytes, and back.
#include "core/base/archive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/types/serial.h"

namespace tenon::serial {

enum class Colour : uint8_t { kRed, kGreen };
template <>
inline constexpr uint64_t kEnumEnd<Colour> = enumerator_count<Colour>();
static_assert(kEnumEnd<Colour> == 2);

namespace {

template <class T>
T round_trip(const T& value) {
  ArchiveWriter writer;
  writer(value);
  const std::string bytes = std::move(writer).take();
  ArchiveReader reader(bytes);
  T read{};
  reader(read);
  EXPECT_TRUE(reader.ok()) << reader.status().to_string();
  EXPECT_EQ(reader.rest(), 0u);
  return read;
}

TEST(Archive, RoundTrips) {
  for (const int64_t n : {int64_t{0}, int64_t{-1}, int64_t{64}, std::numeric_limits<int64_t>::min(),
                          std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(round_trip(n), n);
    EXPECT_EQ(round_trip(static_cast<uint64_t>(n)), static_cast<uint64_t>(n));
  }
  EXPECT_EQ(round_trip(-0.5), -0.5);
  EXPECT_TRUE(std::signbit(round_trip(-0.0)));
  EXPECT_EQ(round_trip(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(round_trip(Colour::kGreen), Colour::kGreen);
  using Lists = std::vector<std::pair<std::string, std::vector<int64_t>>>;
  const Lists lists = {{"x", {1, -2}}, {"", {}}};
  EXPECT_EQ(round_trip(lists), lists);
  using Either = std::variant<bool, int64_t, std::string>;
  for (const Either& either : {Either(true), Either(int64_t{7}), Either(std::string("z"))}) {
    EXPECT_EQ(round_trip(either), either);
  }
  const std::vector<ElementType> types = {ElementType::kF32, ElementType::kF8E4M3FN,
                                          ElementType::kF32};
  EXPECT_EQ(round_trip(types), types);
  Literal array(Shape(ElementType::kS16, {2, 3}));
  array.set_integer(4, -9);
  EXPECT_EQ(round_trip(array), array);
}

// The reader's error for bytes that follow an empty table of symbols.
template <class T>
std::string error_of(std::string bytes) {
  bytes.insert(0, 1, '\0');
  ArchiveReader reader(bytes);
  T read{};
  reader(read);
  return reader.status().message();
}

TEST(Archive, Errors) {
  EXPECT_EQ(error_of<uint64_t>(""), "byte 1: the file ends within a number");
  EXPECT_EQ(error_of<uint64_t>(std::string(10, '\xFF')), "byte 11: a number of more than 64 bits");
  EXPECT_EQ(error_of<uint8_t>("\x80\x02"), "byte 3: 256 is too large here");
  EXPECT_EQ(error_of<int8_t>("\x80\x02"), "byte 3: 128 is too large here");
  EXPECT_EQ(error_of<bool>("\x02"), "byte 2: 2 is not a truth value");
  EXPECT_EQ(error_of<Colour>("\x02"), "byte 2: 2 is not a valid kind: there are 2");
  EXPECT_EQ(error_of<std::string>("\x05zyx"), "byte 2: a list of 5, but 3 bytes are left");
  EXPECT_EQ((error_of<std::variant<bool, int64_t>>("\x02")), "byte 2: alternative 2 of 2");
  EXPECT_EQ(error_of<ElementType>(std::string(1, '\0')), "byte 2: symbol 0 of 0");
  ArchiveReader unknown(std::string_view("\x01\x03xyz\0", 6));
  ElementType type{};
  unknown(type);
  EXPECT_EQ(unknown.status().message(), "byte 6: there is not an element type 'xyz'");
  ArchiveWriter writer;
  writer(ElementType::kF64, std::vector<int64_t>{1 << 20, 1 << 20});
  const std::string bytes = std::move(writer).take();
  ArchiveReader large(bytes);
  Literal array;
  large(array);
  EXPECT_NE(large.status().message().find("an array larger than the file"), std::string::npos);
}

TEST(Archive, Files) {
  const Format format = {"ABCD", "thing", 2, 3};
  const std::string file = seal(format, "payload");
  const auto read = unseal(file, format);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->payload, "payload");
  EXPECT_EQ(read->version, 3u);
  const auto error = [&](const std::string& bytes) {
    return unseal(bytes, format).error().message();
  };
  EXPECT_EQ(error("ABxx"), "this is no thing: it does not begin with 'ABCD'");
  EXPECT_EQ(error("ABCD\x03"), "the file ends in its head");
  std::string other = file;
  other[4] = 4;
  EXPECT_EQ(error(other), "a thing of version 4; versions 2 to 3 can be read");
  other = file;
  other.back() ^= 1;
  EXPECT_EQ(error(other), "the thing is damaged: its checksum differs");
  EXPECT_TRUE(unseal(other, format, true));
}

}  // namespace
}  // namespace tenon::serial
