// The cases of the conformance suite as value-parameterized tests, on the plug-in that PLUGIN
// names. CASES has patterns of their names, separated by spaces; REPORT is the path of a report.
#include <conformance/library/suite.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct Text {
  std::string text;
  TenonSink sink = {sizeof(TenonSink), this, [](void* self, const char* bytes, size_t count) {
                      static_cast<Text*>(self)->text.append(bytes, count);
                    }};
};

TenonPluginFunction plugin_function() {
  void* const library = dlopen(variable("PLUGIN").c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr
             ? nullptr
             : reinterpret_cast<TenonPluginFunction>(dlsym(library, TENON_PLUGIN_SYMBOL));
}

// One suite for all tests, so that the device is opened once.
TenonSuite* suite() {
  static TenonSuite* const opened = [] {
    std::istringstream words(variable("CASES"));
    std::vector<std::string> patterns;
    for (std::string word; words >> word;) patterns.push_back(word);
    std::vector<const char*> pointers;
    for (const std::string& each : patterns) pointers.push_back(each.c_str());
    const std::string path = variable("PLUGIN");
    TenonSuiteOptions options = {};
    options.size = sizeof options;
    options.patterns = pointers.data();
    options.pattern_count = pointers.size();
    options.plugin_path = path.c_str();
    TenonSuite* made = nullptr;
    Text error;
    if (tenon_suite_open(plugin_function(), 0, &options, &made, &error.sink) != TENON_OK) {
      std::fprintf(stderr, "%s\n", error.text.c_str());
      std::exit(2);
    }
    return made;
  }();
  return opened;
}

class Conformance : public testing::TestWithParam<size_t> {};

TEST_P(Conformance, Passes) {
  TenonSuiteResult result = {};
  result.size = sizeof result;
  Text error;
  ASSERT_EQ(tenon_suite_run(suite(), GetParam(), &result, &error.sink), TENON_OK) << error.text;
  EXPECT_EQ(result.failed, 0) << result.text;
  RecordProperty("record", result.record);
}

std::string name_of(const testing::TestParamInfo<size_t>& test) {
  std::string name = tenon_suite_case(suite(), test.param);
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Suite, Conformance, testing::Range<size_t>(0, tenon_suite_size(suite())),
                         name_of);

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  const int status = RUN_ALL_TESTS();
  Text error;
  const std::string report = variable("REPORT");
  if (!report.empty() && tenon_suite_write(suite(), report.c_str(), &error.sink) != TENON_OK) {
    std::fprintf(stderr, "%s\n", error.text.c_str());
    return 2;
  }
  tenon_suite_close(suite());
  return status;
}
