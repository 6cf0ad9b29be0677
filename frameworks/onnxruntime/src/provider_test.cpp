// Names, options and groups: decided without ONNX Runtime.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "frameworks/onnxruntime/src/options.h"
#include "frameworks/onnxruntime/src/partition.h"

namespace tenon::ort {
namespace {

std::string device_of(std::string_view registered) {
  return provider_name_of(registered, "/none").device;
}

TEST(ProviderName, TellsTheDevice) {
  unsetenv("TENON_DEVICE");
  EXPECT_EQ(device_of("tenon"), "cpu");
  EXPECT_EQ(device_of("Tenon"), "cpu");
  EXPECT_EQ(device_of("TenonExecutionProvider"), "cpu");
  EXPECT_EQ(device_of(""), "cpu");
  EXPECT_EQ(device_of("tenon-gpu-sim"), "gpu-sim");
  EXPECT_EQ(device_of("tenon:template:1"), "template:1");
  EXPECT_EQ(device_of("TenonTemplate"), "template");
  EXPECT_EQ(device_of("TenonTemplateExecutionProvider"), "template");
  EXPECT_EQ(device_of("acme"), "acme");
  EXPECT_EQ(device_of("tenonite"), "tenonite");
  EXPECT_EQ(device_of("acme=./libnpu.so"), "./libnpu.so");
  EXPECT_EQ(device_of("tenon-npu=/opt/a=b.so"), "/opt/a=b.so");
  setenv("TENON_DEVICE", "interp", 1);
  EXPECT_EQ(device_of("tenon"), "interp");
  EXPECT_EQ(device_of("tenon-cpu"), "cpu");
  unsetenv("TENON_DEVICE");
}

TEST(ProviderName, IsTheRegisteredOne) {
  EXPECT_EQ(provider_name_of("tenon", "/none").provider, "TenonExecutionProvider");
  EXPECT_EQ(provider_name_of("acme", "/none").provider, "acme");
  EXPECT_EQ(provider_name_of("acme=./libnpu.so", "/none").provider, "acme");
  EXPECT_EQ(provider_name_of("tenon=cpu", "/none").provider, "TenonExecutionProvider");
  EXPECT_EQ(provider_name_of("TenonTemplate", "/none").provider, "TenonTemplate");
}

TEST(ProviderOptions, AreEntriesOfTheProvider) {
  const ProviderName name = {"Acme", "acme"};
  const auto options = provider_options_of({{"ep.acme.strict", "1"},
                                            {"ep.acme.cache_size", "3"},
                                            {"ep.acme.time_limit", "100"},
                                            {"ep.other.none", "1"},
                                            {"session.intra_op", "2"}},
                                           name);
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_TRUE(options->strict);
  EXPECT_EQ(options->cache_size, 3);
  EXPECT_EQ(options->time_limit, "100");
  EXPECT_EQ(options->device, "acme");
}

TEST(ProviderOptions, AreCheckedByNameAndValue) {
  const auto error_of = [](const char* key, const char* value) {
    const auto options = provider_options_of({{key, value}}, {"tenon", "cpu"});
    return options ? "" : options.error().message();
  };
  EXPECT_NE(error_of("ep.tenon.strickt", "1").find("there is no option 'strickt'; there are "),
            std::string::npos);
  EXPECT_EQ(error_of("ep.tenon.strict", "yes"), "option 'strict' is 0 or 1, not 'yes'");
  EXPECT_EQ(error_of("ep.tenon.cache_size", "0"),
            "option 'cache_size' is a number from 1, not '0'");
  EXPECT_EQ(error_of("ep.tenon.cache_size", "7x"),
            "option 'cache_size' is a number from 1, not '7x'");
  EXPECT_EQ(error_of("ep.tenon.time_limit", "-1"),
            "option 'time_limit' is a number from 1, not '-1'");
}

TEST(Groups, OneForAWholeGraph) {
  // Two branches that meet.
  EXPECT_EQ(groups_of({true, true, true, true}, {{}, {0}, {0}, {1, 2}}),
            (std::vector<int>{0, 0, 0, 0}));
}

TEST(Groups, AreSplitWhereANodeBetweenIsLeft) {
  // 0 → 1 (left) → 2, and 0 → 3 → 2: 3 may be with 0, and 2 may not.
  const std::vector<int> groups = groups_of({true, false, true, true}, {{}, {0}, {1, 3}, {0}});
  EXPECT_EQ(groups[1], -1);
  EXPECT_EQ(groups[0], 0);
  EXPECT_EQ(groups_of({true, false, true}, {{}, {0}, {0, 1}}), (std::vector<int>{0, -1, 1}));
  // A node that is left and needs no group does not divide what comes behind it.
  EXPECT_EQ(groups_of({false, true, true}, {{}, {0}, {}}), (std::vector<int>{-1, 0, 0}));
}

// Whether groups and nodes that are left can be put into an order: no cycle among them.
bool has_order(const std::vector<int>& groups, const std::vector<std::vector<size_t>>& sources) {
  const size_t count = groups.size();
  const auto unit = [&](size_t i) {
    return groups[i] < 0 ? count + i : static_cast<size_t>(groups[i]);
  };
  std::vector<std::set<size_t>> before(2 * count);
  std::set<size_t> left;
  for (size_t i = 0; i < count; ++i) {
    left.insert(unit(i));
    for (const size_t source : sources[i]) {
      if (unit(source) != unit(i)) before[unit(i)].insert(unit(source));
    }
  }
  for (bool more = true; more;) {
    more = false;
    for (auto each = left.begin(); each != left.end();) {
      const bool ready =
          std::ranges::none_of(before[*each], [&](size_t unit) { return left.contains(unit); });
      more = more || ready;
      each = ready ? left.erase(each) : std::next(each);
    }
  }
  return left.empty();
}

TEST(Groups, NeverMakeACycle) {
  std::mt19937 random(7);
  int several = 0;
  for (int round = 0; round < 2000; ++round) {
    const size_t count = 2 + random() % 20;
    std::vector<bool> claimed(count);
    std::vector<std::vector<size_t>> sources(count);
    for (size_t i = 0; i < count; ++i) {
      claimed[i] = random() % 3 != 0;
      for (size_t k = 0; i > 0 && k < random() % 4; ++k) sources[i].push_back(random() % i);
    }
    const std::vector<int> groups = groups_of(claimed, sources);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(groups[i] >= 0, claimed[i]);
    EXPECT_TRUE(has_order(groups, sources));
    several += *std::ranges::max_element(groups) > 0 ? 1 : 0;
  }
  EXPECT_GT(several, 500);
}

}  // namespace
}  // namespace tenon::ort
