#include "tools/new_backend/new_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/registry/registry.h"
#include "core/base/file.h"
#include "tools/installation.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

TEST(BackendName, IsALowerCaseIdentifierThatIsFree) {
  for (const char* good : {"npu", "a", "my_npu_2", "chip"}) {
    EXPECT_TRUE(check_backend_name(good).ok()) << good;
  }
  for (const char* bad : {"", "Npu", "2npu", "_npu", "my-npu", "npu/2", "npü", "n pu"}) {
    const Status status = check_backend_name(bad);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << bad;
    EXPECT_NE(status.message().find("lower-case letters"), std::string::npos) << status.message();
  }
  ASSERT_TRUE(backend::Registry::instance()
                  .add("built_in",
                       [] {
                         return Result<std::shared_ptr<backend::Backend>>(
                             backend::make_interpreter_backend());
                       })
                  .ok());
  for (const char* taken : {"interp", "reference", "built_in", "plugin"}) {
    EXPECT_EQ(check_backend_name(taken).message(),
              fmt::format("the name '{}' is taken; choose another", taken));
  }
  for (const char* target : {"all", "test", "install", "uninstall", "clean", "dist", "coverage"}) {
    EXPECT_EQ(check_backend_name(target).message(),
              fmt::format("the name '{}' is one of Meson's own targets; choose another", target));
  }
}

TEST(BackendName, AsAType) {
  EXPECT_EQ(type_name_of("npu"), "Npu");
  EXPECT_EQ(type_name_of("my_npu_2"), "MyNpu2");
}

std::vector<std::string> paths_of(const std::vector<ProjectFile>& files) {
  std::vector<std::string> paths;
  for (const ProjectFile& file : files) {
    if (!file.path.starts_with("tests/programs/")) paths.push_back(file.path);
  }
  return paths;
}

using Paths = std::vector<std::string>;

TEST(BackendProject, HasTheFilesOfItsLanguage) {
  EXPECT_EQ(paths_of(backend_project("npu", BackendLanguage::kCpp)),
            (Paths{".github/workflows/test.yml",
                   "README.md",
                   "conformance/declaration.json",
                   "conformance/waivers.json",
                   "jax/jax_npu/__init__.py",
                   "jax/pyproject.toml",
                   "jax/tests/test_training.py",
                   "make_wheel.py",
                   "meson.build",
                   "npu.cpp",
                   "npu.h",
                   "onnxruntime/ort_npu/__init__.py",
                   "onnxruntime/pyproject.toml",
                   "onnxruntime/tests/test_session.py",
                   "plugin.cpp",
                   "plugin.map",
                   "tests/meson.build",
                   "tests/run.py",
                   "torch/pyproject.toml",
                   "torch/tests/test_training.py",
                   "torch/torch_npu/__init__.py"}));
  EXPECT_EQ(paths_of(backend_project("npu", BackendLanguage::kC)),
            (Paths{".github/workflows/test.yml", "README.md", "conformance/declaration.json",
                   "conformance/waivers.json", "jax/jax_npu/__init__.py", "jax/pyproject.toml",
                   "jax/tests/test_training.py", "make_wheel.py", "meson.build", "npu.c",
                   "onnxruntime/ort_npu/__init__.py", "onnxruntime/pyproject.toml",
                   "onnxruntime/tests/test_session.py", "plugin.map", "tests/meson.build",
                   "tests/run.py", "torch/pyproject.toml", "torch/tests/test_training.py",
                   "torch/torch_npu/__init__.py"}));
}

TEST(BackendProject, HasItsNameEverywhere) {
  for (const BackendLanguage language : {BackendLanguage::kCpp, BackendLanguage::kC}) {
    for (const ProjectFile& file : backend_project("npu", language)) {
      for (const char* word : {"Template", "TEMPLATE", "backends/", "@SOURCE@", "@SKIN@", "\x01"}) {
        EXPECT_EQ(file.text.find(word), std::string::npos) << file.path << ": " << word;
      }
      // The first lines of Tenon's head files describe folders; a project must not contain them.
      EXPECT_EQ(file.text.substr(0, file.text.find('\n')).find("/: "), std::string::npos)
          << file.path;
      EXPECT_EQ(file.executable, file.path == "tests/run.py" || file.path == "make_wheel.py")
          << file.path;
    }
  }
}

TEST(BackendProject, SaysWhatToReplace) {
  for (const BackendLanguage language : {BackendLanguage::kCpp, BackendLanguage::kC}) {
    const auto files = backend_project("npu", language);
    const auto marks = std::ranges::count_if(files, [](const ProjectFile& file) {
      return file.text.find("PORT:") != std::string::npos;
    });
    EXPECT_GE(marks, 4);  // The source, meson.build, tests/run.py and README.md.
  }
}

// As many folders up as the tool is below the prefix.
TEST(Installation, PrefixOfATool) {
  EXPECT_EQ(prefix_of("/opt/tenon/bin/tenon", "bin"), "/opt/tenon");
  EXPECT_EQ(prefix_of("/opt/tenon/a/b/tenon", "a/b"), "/opt/tenon");
  EXPECT_EQ(prefix_of("/a/b/tenon", "a/b"), "/");
  EXPECT_EQ(prefix_of("/opt/b/a/tenon", "a/b"), std::nullopt);
  EXPECT_EQ(prefix_of("/src/build/tenon", "bin"), std::nullopt);
  EXPECT_EQ(prefix_of("/usr/bin/tenon", "/usr/bin"), std::nullopt);
}

class WriteProject : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "tenon_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    root_ = folder;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::vector<ProjectFile> files_ = {{"a/b.txt", "text", false}, {"run", "#!", true}};
  fs::path root_;
};

TEST_F(WriteProject, MakesFoldersAndFiles) {
  for (const char* name : {"new", "deep/er/new", "slash/"}) {
    const fs::path folder = root_ / name;
    const Status written = write_project(files_, folder.string());
    ASSERT_TRUE(written.ok()) << written.message();
    EXPECT_EQ(read_file((folder / "a/b.txt").string()).value(), "text");
    const fs::perms run = fs::status(folder / "run").permissions();
    EXPECT_NE(run & fs::perms::owner_exec, fs::perms::none);
  }
}

TEST_F(WriteProject, TakesAnEmptyFolder) {
  fs::create_directories(root_ / "empty");
  const Status written = write_project(files_, (root_ / "empty").string());
  ASSERT_TRUE(written.ok()) << written.message();
  EXPECT_TRUE(fs::exists(root_ / "empty/a/b.txt"));
}

TEST_F(WriteProject, RefusesWhatIsThere) {
  ASSERT_TRUE(write_file((root_ / "file").string(), "mine").ok());
  for (const fs::path& there : {root_, root_ / "file"}) {
    const Status status = write_project(files_, there.string());
    EXPECT_EQ(status.code(), ErrorCode::kAlreadyExists);
    EXPECT_NE(status.message().find("is there already"), std::string::npos);
  }
  // Below a file there is no folder; nothing is left behind.
  EXPECT_FALSE(write_project(files_, (root_ / "file/new").string()).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1);
  EXPECT_EQ(read_file((root_ / "file").string()).value(), "mine");
}

}  // namespace
}  // namespace tenon::tools
