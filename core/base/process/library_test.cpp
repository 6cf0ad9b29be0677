#include "core/base/process/library.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tenon {
namespace {

constexpr const char* kLibraryVariable = "TENON_LIBRARY_TEST";

// The C library as a driver: `abs` returns a code, which is no error if it is 0.
struct CLibrary final : NamedLibrary {
  explicit CLibrary(std::vector<std::string> names)
      : NamedLibrary(kLibraryVariable, std::move(names)) {}
  LibraryFunction<int> abs{*this, "abs"};
  Status status_of(int code, std::string_view function) const override {
    return internal_error("{}: code {}", function, code);
  }
};

struct Lacking final : NamedLibrary {
  Lacking() : NamedLibrary(kLibraryVariable, {"libc.so.6"}) {}
  LibraryFunction<int> first{*this, "tenon_no_such_function"};
  LibraryFunction<int> second{*this, "tenon_no_such_function_either"};
  Status status_of(int, std::string_view) const override { return {}; }
};

TEST(NamedLibrary, TheFirstThatIsThereIsTaken) {
  const CLibrary library({"libtenon_none.so", "libc.so.6"});
  ASSERT_TRUE(library.state().ok()) << library.state().message();
  EXPECT_EQ(library.abs.code_of(-3), 3);
  EXPECT_TRUE(library.abs(0).ok());
  EXPECT_EQ(library.abs(-3).message(), "abs: code 3");
}

TEST(NamedLibrary, SaysWhatIsMissing) {
  const Status none = CLibrary({"libtenon_none.so"}).state();
  EXPECT_EQ(none.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(none.message().starts_with("libtenon_none.so: ")) << none.message();
  EXPECT_TRUE(none.message().ends_with("; TENON_LIBRARY_TEST may name another file"))
      << none.message();
  EXPECT_EQ(Lacking().state().message(), "there is no function tenon_no_such_function");
}

TEST(NamedLibrary, WithoutANameSaysWhichVariableGivesOne) {
  EXPECT_EQ(CLibrary({}).state().message(), "no library; TENON_LIBRARY_TEST may name another file");
}

TEST(NamedLibrary, AVariableNamesAnotherFile) {
  setenv(kLibraryVariable, "libtenon_other.so", /*overwrite=*/1);
  const Status none = CLibrary({"libc.so.6"}).state();
  unsetenv(kLibraryVariable);
  EXPECT_TRUE(none.message().starts_with("libtenon_other.so: ")) << none.message();
}

}  // namespace
}  // namespace tenon
