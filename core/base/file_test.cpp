#include "core/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace tenon {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(File, WhatIsWrittenIsRead) {
  const std::string bytes("a\0b\n\xFF", 5);
  ASSERT_TRUE(write_file(path("x"), bytes).ok());
  EXPECT_EQ(read_file(path("x")), bytes);
}

TEST_F(File, WritingReplacesAndLeavesNothingBeside) {
  ASSERT_TRUE(write_file(path("x"), std::string(200000, 'a')).ok());
  ASSERT_TRUE(write_file(path("x"), "b").ok());
  EXPECT_EQ(read_file(path("x")), "b");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(File, AMissingFileIsNotFound) {
  const auto bytes = read_file(path("missing"));
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(bytes.error().message(),
            "cannot read " + path("missing") + ": No such file or directory");
}

TEST_F(File, AFolderIsNoFile) {
  const auto bytes = read_file(folder_.string());
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message(), "cannot read " + folder_.string() + ": Is a directory");
}

TEST_F(File, WritingIntoAMissingFolderFails) {
  const Status status = write_file(path("no/x"), "b");
  EXPECT_EQ(status.code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "cannot write " + path("no/x") + ": No such file or directory");
}

TEST_F(File, AFailedRenameLeavesWhatWasThere) {
  fs::create_directories(folder_ / "target" / "inside");
  const Status status = write_file(path("target"), "b");
  EXPECT_EQ(status.message(), "cannot write " + path("target") + ": Is a directory");
  EXPECT_TRUE(fs::is_directory(folder_ / "target" / "inside"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(File, ThreadsMayWriteTheSameFile) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string bytes(5000, static_cast<char>('a' + t));
      for (int i = 0; i < 200; ++i) {
        const Status written = write_file(path("x"), bytes);
        EXPECT_TRUE(written.ok()) << written.message();
        const std::string read = read_file(path("x")).value_or("");
        EXPECT_EQ(read, std::string(5000, read.empty() ? '?' : read[0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(File, APipeIsNotMapped) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& special : {path("pipe"), std::string("/dev/null")}) {
    EXPECT_EQ(MappedFile::open(special).error().message(),
              "cannot read " + special + ": a pipe or device; a regular file is needed");
  }
}

TEST_F(File, WhatIsMappedStays) {
  ASSERT_TRUE(write_file(path("x"), "whole").ok());
  auto mapped = MappedFile::open(path("x"));
  ASSERT_TRUE(mapped) << mapped.error().to_string();
  const MappedFile file = *std::move(mapped);
  // A file that replaces it is another one.
  const auto output = OutputFile::create(path("x"));
  ASSERT_TRUE(output && output->write(0, "new").ok());
  EXPECT_EQ(file.bytes(), "whole");
  EXPECT_EQ(MappedFile::open(path("x"))->bytes(), "new");
  ASSERT_TRUE(write_file(path("empty"), "").ok());
  EXPECT_EQ(MappedFile::open(path("empty"))->bytes(), "");
  EXPECT_EQ(MappedFile::open(path("missing")).error().message(),
            "cannot read " + path("missing") + ": No such file or directory");
  EXPECT_EQ(MappedFile::open(folder_.string()).error().message(),
            "cannot read " + folder_.string() + ": Is a directory");
}

TEST_F(File, PiecesAreWrittenWhereTheyBelong) {
  const auto file = OutputFile::create(path("x"));
  ASSERT_TRUE(file) << file.error().to_string();
  const std::string large(100000, 'a');
  ASSERT_TRUE(file->write(0, large).ok());
  ASSERT_TRUE(file->write(99999, "bc").ok());
  EXPECT_EQ(read_file(path("x")), large.substr(1) + "bc");
  EXPECT_TRUE(file->holds(0, large.substr(1)));
  EXPECT_TRUE(file->holds(99998, "abc"));
  EXPECT_FALSE(file->holds(0, large));
  EXPECT_FALSE(file->holds(99998, "abcd"));
  EXPECT_EQ(OutputFile::create(path("no/x")).error().message(),
            "cannot write " + path("no/x") + ": No such file or directory");
  const auto full = OutputFile::create("/dev/full");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->write(0, "a").message(), "cannot write /dev/full: No space left on device");
}

TEST(TemporaryFolder, IsTheUsersAloneAndGoesWithWhatItHolds) {
  std::string path;
  {
    const auto folder = TemporaryFolder::create("tenon-test");
    ASSERT_TRUE(folder) << folder.error().message();
    path = folder->path();
    struct stat is = {};
    ASSERT_EQ(stat(path.c_str(), &is), 0);
    EXPECT_EQ(is.st_mode & 07777, 0700u);
    EXPECT_TRUE(write_file(folder->file("x"), "x").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, WhereThereCanBeNoneSaysWhere) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/nowhere", 1);
  const auto folder = TemporaryFolder::create("tenon-test");
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message(),
            "cannot create a temporary folder in /nowhere: No such file or directory (TMPDIR names "
            "it)");
}

}  // namespace
}  // namespace tenon
