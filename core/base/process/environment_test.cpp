#include "core/base/process/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tenon {
namespace {

constexpr const char* kName = "TENON_ENVIRONMENT_TEST";

class Environment : public testing::Test {
 protected:
  void TearDown() override { unsetenv(kName); }
  static void set(const char* value) { setenv(kName, value, /*overwrite=*/1); }
};

TEST_F(Environment, NumbersAreWholeAndInTheRange) {
  EXPECT_EQ(environment_number(kName, 7).value(), 7);
  set("16");
  EXPECT_EQ(environment_number(kName, 7, {1, 16}).value(), 16);
  EXPECT_EQ(environment_number(kName, 7, {1, 15}).error().message(),
            "TENON_ENVIRONMENT_TEST is '16', expected a number of 1 to 15");
  for (const char* text : {"abc", "1e9", "0", "-1", "+1", " 1", "1 ", "99999999999999999999"}) {
    set(text);
    const auto read = environment_number(kName, 7);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().message(),
              fmt::format("TENON_ENVIRONMENT_TEST is '{}', expected a number from 1 on", text));
  }
  set("");
  EXPECT_EQ(environment_number(kName, 7).value(), 7);
  set("0");
  EXPECT_EQ(environment_number(kName, 7, {0, 5}, "milliseconds").value(), 0);
  set("6");
  EXPECT_EQ(environment_number(kName, 7, {0, 5}, "milliseconds").error().message(),
            "TENON_ENVIRONMENT_TEST is '6', expected milliseconds of 0 to 5");
}

TEST_F(Environment, TextsAndLists) {
  EXPECT_EQ(environment_or(kName, "none"), "none");
  EXPECT_FALSE(environment_lists(kName, "f64"));
  set("");
  EXPECT_EQ(environment_or(kName, "none"), "none");
  EXPECT_FALSE(environment_lists(kName, "f64"));
  set("svm,f64");
  EXPECT_EQ(environment_or(kName, "none"), "svm,f64");
  EXPECT_TRUE(environment_lists(kName, "svm"));
  EXPECT_TRUE(environment_lists(kName, "f64"));
  EXPECT_FALSE(environment_lists(kName, "f6"));
  EXPECT_FALSE(environment_lists(kName, "f64,"));
}

}  // namespace
}  // namespace tenon
