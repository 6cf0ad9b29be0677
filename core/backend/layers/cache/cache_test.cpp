// The layer `cache`: hits, misses, and folders with any contents.
#include "core/backend/layers/cache/cache.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/backend/adapter/adapter.h"
#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/testing/backend_test_util.h"
#include "core/base/file.h"
#include "core/program/program_test_util.h"

namespace tenon::backend {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
 protected:
  ~CacheTest() override { fs::remove_all(folder); }

  CacheLayer layer() { return make_cache_layer(make_interpreter_backend(), config); }
  // The result of compiling with a new layer.
  std::string compile(const std::string& compiler = "c") {
    const CacheLayer made = layer();
    TargetInfo target = made.backend->devices().value()[0].target;
    target.compiler_id = compiler;
    const kernel::Kernel kernel = add_one();
    const kernel::Kernel* kernels[] = {&kernel};
    const auto compiled = made.backend->compile(target, kernels);
    EXPECT_TRUE(compiled);
    if (binary.empty()) binary = compiled->binary;
    EXPECT_EQ(compiled->binary, binary);
    return made.counts->found == 1 ? "found" : "compiled";
  }
  std::vector<std::string> files() const {
    std::vector<std::string> list;
    for (const auto& file : fs::directory_iterator(config.folder)) {
      list.push_back(file.path().string());
    }
    return list;
  }

  const std::string folder = testing::TempDir() + fmt::format("tenon_cache_{}", getpid());
  CacheConfig config = {folder};
  std::string binary;
};

TEST_F(CacheTest, CompilesOnce) {
  EXPECT_EQ(compile(), "compiled");
  EXPECT_EQ(compile(), "found");
  EXPECT_EQ(compile("another"), "compiled");
  EXPECT_EQ(compile(), "found");
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(CacheTest, DamagedEntriesAreMadeAgain) {
  EXPECT_EQ(compile(), "compiled");
  for (const std::string_view damage : {"", "TNCE", "something else"}) {
    ASSERT_TRUE(write_file(files()[0], damage).ok());
    EXPECT_EQ(compile(), "compiled");
    EXPECT_EQ(compile(), "found");
  }
}

TEST_F(CacheTest, DoesNotGrowWithoutEnd) {
  config.most_bytes = 1;
  EXPECT_EQ(compile(), "compiled");
  EXPECT_TRUE(files().empty());
  config.folder = "/dev/null/nowhere";  // Cannot be created.
  EXPECT_EQ(compile(), "compiled");
}

// Temporary files of dead writers are removed; those of live writers stay.
TEST_F(CacheTest, HalfWrittenFilesGo) {
  EXPECT_EQ(compile(), "compiled");
  const std::string left = files()[0] + ".1.tmp";
  const std::string written = files()[0] + ".2.tmp";
  for (const std::string& each : {left, written}) ASSERT_TRUE(write_file(each, "TNCE").ok());
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(compile("another"), "compiled");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(written));
}

// A backend that takes segments and compiles them to trivial binaries.
class Segmenting final : public ForwardingBackend {
 public:
  Segmenting() : ForwardingBackend(make_interpreter_backend()) {}
  Result<std::string> compile_segment(const TargetInfo&, const program::Program&) override {
    return "binary";
  }
};

// An entry does not contain a segment's constants, but depends on them.
TEST_F(CacheTest, ConstantsCountByTheirContents) {
  const auto compile_segment = [&](const Literal& constant) {
    const CacheLayer made = make_cache_layer(std::make_shared<Segmenting>(), config);
    EXPECT_TRUE(made.backend->takes_segments());
    program::Program segment = program::testing::twice();
    segment.constants = {constant};
    const TargetInfo target = made.backend->devices().value()[0].target;
    EXPECT_EQ(made.backend->compile_segment(target, segment).value(), "binary");
    return made.counts->found == 1 ? "found" : "compiled";
  };
  Literal large(Shape(ElementType::kU8, {1 << 20}));
  EXPECT_EQ(compile_segment(large), "compiled");
  EXPECT_EQ(compile_segment(large), "found");
  EXPECT_EQ(compile_segment(large.reshaped({1 << 10, 1 << 10})), "compiled");
  large.set_integer(12345, 1);
  EXPECT_EQ(compile_segment(large), "compiled");
  for (const std::string& file : files()) EXPECT_LT(fs::file_size(file), 10'000u);
}

// A folder of many entries is not listed for each one that is kept.
TEST_F(CacheTest, ListsTheFolderOnceForManyEntries) {
  const CacheLayer made = layer();
  TargetInfo target = made.backend->devices().value()[0].target;
  const kernel::Kernel kernel = add_one();
  const kernel::Kernel* kernels[] = {&kernel};
  for (int i = 0; i < 100; ++i) {
    target.compiler_id = fmt::format("{}", i);
    ASSERT_TRUE(made.backend->compile(target, kernels));
  }
  EXPECT_EQ(files().size(), 100u);
  EXPECT_EQ(made.folder->listings(), 1);
}

// The most recently used entries stay. A trim leaves room for later entries, so that several of
// them need only one listing.
TEST_F(CacheTest, TrimsToLessThanTheBound) {
  EXPECT_EQ(compile(), "compiled");
  const auto bytes = static_cast<int64_t>(fs::file_size(files()[0]));
  config.most_bytes = 32 * bytes;
  const CacheLayer made = layer();
  TargetInfo target = made.backend->devices().value()[0].target;
  const kernel::Kernel kernel = add_one();
  const kernel::Kernel* kernels[] = {&kernel};
  for (int i = 100; i < 200; ++i) {
    target.compiler_id = fmt::format("{}", i);
    ASSERT_TRUE(made.backend->compile(target, kernels));
    EXPECT_LE(files().size(), 32u);
  }
  EXPECT_GE(files().size(), 27u);
  EXPECT_LE(made.folder->listings(), 40);
  EXPECT_TRUE(made.backend->compile(target, kernels));
  EXPECT_EQ(made.counts->found, 1);
}

// Has the name of interp, and compiles to binaries that interp does not load.
class Garbage final : public ForwardingBackend {
 public:
  Garbage() : ForwardingBackend(make_interpreter_backend()) {}
  Result<Compiled> compile(const TargetInfo&, Kernels) override { return Compiled{"garbage", {}}; }
  Result<std::string> compile_segment(const TargetInfo&, const program::Program&) override {
    return "garbage";
  }
};

TEST_F(CacheTest, ABinaryThatLoadRefusesIsCompiledAgain) {
  const kernel::Kernel kernel = add_one();
  const kernel::Kernel* kernels[] = {&kernel};
  const TargetInfo target = make_interpreter_backend()->devices().value()[0].target;
  const auto garbage = make_cache_layer(std::make_shared<Garbage>(), config);
  ASSERT_EQ(garbage.backend->compile(target, kernels)->binary, "garbage");

  const CacheLayer made = layer();
  const auto compiled = made.backend->compile(target, kernels);
  ASSERT_EQ(compiled->binary, "garbage");
  const auto device = made.backend->open(0).value();
  for (int i = 0; i < 2; ++i) {
    const auto module = device->load(compiled->binary, kernels);
    ASSERT_TRUE(module) << module.error().message();
    device->unload(*module);
  }
  EXPECT_FALSE(device->load("other garbage", kernels));
  // The entry has been replaced.
  EXPECT_NE(layer().backend->compile(target, kernels)->binary, "garbage");
}

TEST_F(CacheTest, ASegmentThatLoadRefusesIsCompiledAgain) {
  const program::Program segment = program::testing::twice();
  const TargetInfo target = make_interpreter_backend()->devices().value()[0].target;
  const auto garbage = make_cache_layer(std::make_shared<Garbage>(), config);
  ASSERT_EQ(garbage.backend->compile_segment(target, segment).value(), "garbage");
  const CacheLayer made = layer();
  ASSERT_EQ(made.backend->compile_segment(target, segment).value(), "garbage");
  const auto device = made.backend->open(0).value();
  const auto module = device->load("garbage", {});
  ASSERT_TRUE(module) << module.error().message();
  device->unload(*module);
  EXPECT_NE(layer().backend->compile_segment(target, segment).value(), "garbage");
}

// --- Folders that other users may write to

mode_t mode_of(const std::string& path) {
  struct stat is = {};
  EXPECT_EQ(lstat(path.c_str(), &is), 0);
  return is.st_mode & 07777;
}

TEST_F(CacheTest, WhatItCreatesIsTheUsersAlone) {
  const mode_t before = umask(0);
  EXPECT_EQ(compile(), "compiled");
  umask(before);
  EXPECT_EQ(mode_of(folder), 0700u);
  EXPECT_EQ(mode_of(files()[0]), 0600u);
}

TEST_F(CacheTest, AFolderThatOthersMayWriteToIsRefused) {
  for (const mode_t mode : {0770, 0707, 01777}) {
    fs::create_directories(folder);
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_EQ(compile(), "compiled");
    EXPECT_EQ(compile(), "compiled");
    EXPECT_TRUE(files().empty());
    const Status status = layer().status;
    EXPECT_EQ(status.code(), ErrorCode::kPermissionDenied);
    EXPECT_EQ(status.message(), fmt::format("{} cannot be the cache's folder: others may write to "
                                            "it (mode {:04o}; make it 0700)",
                                            folder, mode));
  }
}

TEST_F(CacheTest, AFolderOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directories(folder);
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  ASSERT_EQ(chown(folder.c_str(), 12345, 0), 0);
  EXPECT_EQ(compile(), "compiled");
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(layer().status.message(),
            folder + " cannot be the cache's folder: it belongs to user 12345, not to user 0");
}

TEST_F(CacheTest, AnEntryThatOthersMayWriteToIsCompiledAgain) {
  EXPECT_EQ(compile(), "compiled");
  ASSERT_EQ(chmod(files()[0].c_str(), 0666), 0);
  EXPECT_EQ(compile(), "compiled");
  EXPECT_EQ(mode_of(files()[0]), 0600u);
  EXPECT_EQ(compile(), "found");
}

// Links are neither read nor written through.
TEST_F(CacheTest, LinksAreNotFollowed) {
  EXPECT_EQ(compile(), "compiled");
  const std::string entry = files()[0];
  const std::string elsewhere = folder + "_elsewhere";
  fs::rename(entry, elsewhere);
  fs::create_symlink(elsewhere, entry);
  const std::string bytes = read_file(elsewhere).value();
  EXPECT_EQ(compile(), "compiled");
  EXPECT_FALSE(fs::is_symlink(entry));
  EXPECT_EQ(read_file(elsewhere).value(), bytes);
  EXPECT_EQ(compile(), "found");
  fs::remove(elsewhere);
}

TEST_F(CacheTest, APipeInPlaceOfAnEntryIsNotWaitedFor) {
  EXPECT_EQ(compile(), "compiled");
  const std::string entry = files()[0];
  fs::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(compile(), "compiled");
  EXPECT_EQ(compile(), "found");
}

// --- Environment

class CacheVariables : public testing::Test {
 protected:
  CacheVariables() {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.emplace_back(name,
                           value == nullptr ? std::nullopt : std::optional<std::string>(value));
      unsetenv(name);
    }
  }
  ~CacheVariables() override {
    for (const auto& [name, value] : before_) {
      value ? setenv(name, value->c_str(), 1) : unsetenv(name);
    }
  }

 private:
  static constexpr const char* kNames[] = {"HOME", "XDG_CACHE_HOME", "TENON_CACHE",
                                           "TENON_CACHE_BYTES"};
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST_F(CacheVariables, NameTheFolder) {
  EXPECT_EQ(cache_config_from_environment()->folder, "");
  setenv("HOME", "home/relative", 1);
  EXPECT_EQ(cache_config_from_environment()->folder, "");
  setenv("HOME", "/nowhere/home", 1);
  EXPECT_EQ(cache_config_from_environment()->folder, "/nowhere/home/.cache/tenon");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_config_from_environment()->folder, "/nowhere/home/.cache/tenon");
  setenv("XDG_CACHE_HOME", "/var/cache", 1);
  EXPECT_EQ(cache_config_from_environment()->folder, "/var/cache/tenon");
  setenv("TENON_CACHE", "mine", 1);
  EXPECT_EQ(cache_config_from_environment()->folder, "mine");
}

TEST_F(CacheVariables, WithoutAHomeThereIsNoCacheAndAWarning) {
  std::string said;
  set_log([&](std::string_view text) { said += text; });
  const auto layered = with_layers(make_interpreter_backend(), "cache");
  set_log([](std::string_view text) { std::fprintf(stderr, "%s\n", std::string(text).c_str()); });
  EXPECT_TRUE(layered);
  EXPECT_EQ(said,
            "the layer 'cache' keeps nothing: there is no folder for a cache: TENON_CACHE is not "
            "set, and neither XDG_CACHE_HOME nor HOME is an absolute path");
}

TEST_F(CacheVariables, ABoundThatIsNoNumberIsAnError) {
  setenv("TENON_CACHE_BYTES", "4096", 1);
  EXPECT_EQ(cache_config_from_environment()->most_bytes, 4096);
  for (const char* bad : {"1e9", "abc", "-1", "1 GiB", " 7", "99999999999999999999"}) {
    setenv("TENON_CACHE_BYTES", bad, 1);
    const auto layered = with_layers(make_interpreter_backend(), "cache");
    ASSERT_FALSE(layered) << bad;
    EXPECT_EQ(layered.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(layered.error().message(),
              fmt::format("TENON_CACHE_BYTES is '{}', expected a number of bytes from 0 on", bad));
  }
}

}  // namespace
}  // namespace tenon::backend
