#include "core/base/digest.h"

#include <gtest/gtest.h>

namespace tenon::serial {
namespace {

// The published test vectors: names in existing caches depend on them.
TEST(Digest, IsXxh3) {
  EXPECT_EQ(digest_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(short_digest_of(""), 0x2D06800538D394C2u);
}

// The digest is of bytes, not of text up to a zero; it depends on every byte at any position.
TEST(Digest, DependsOnEveryByte) {
  const std::string bytes(1000, '\0');
  const std::string digest = digest_of(bytes);
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_NE(digest_of(bytes.substr(1)), digest);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = 1;
    EXPECT_NE(digest_of(other), digest) << i;
    EXPECT_NE(short_digest_of(other), short_digest_of(bytes)) << i;
  }
}

}  // namespace
}  // namespace tenon::serial
