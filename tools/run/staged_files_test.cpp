// tests/aot/aot_test.py tests folders that cannot be written.
#include "tools/run/staged_files.h"

#include <gtest/gtest.h>

#include "core/base/file.h"

namespace tenon::tools {
namespace {

TEST(StagedFiles, TwoOfOneNameAreNone) {
  auto folder = TemporaryFolder::create("tenon-staged");
  ASSERT_TRUE(folder);
  const std::filesystem::path out = folder->file("out");
  {
    auto files = StagedFiles::create(out);
    ASSERT_TRUE(files);
    for (const char* const name : {"a", "b", "a"}) {
      ASSERT_TRUE(write_file(files->add(name), name).ok());
    }
    const auto moved = files->move();
    ASSERT_FALSE(moved);
    EXPECT_EQ(Status(moved.error()).message(),
              "cannot write " + (out / "a").string() + ": two files have that name");
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace tenon::tools
