#include "tools/tune/search.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::tools {
namespace {

using hlo::lower::TuningParameterInfo;

// A device whose times are a function of the parameters.
class Model : public TuningTarget {
 public:
  using Seconds = std::function<double(size_t program, const Tuning& tuning)>;
  Model(std::vector<std::set<std::string>> asked, Seconds seconds)
      : asked_(std::move(asked)), seconds_(std::move(seconds)) {}

  size_t program_count() const override { return asked_.size(); }
  Result<double> seconds(size_t program, const Tuning& tuning, bool again) override {
    if (lost_after > 0 && measured >= lost_after)
      return tl::make_unexpected(Status(ErrorCode::kUnavailable, "lost"));
    ++measured;
    if (!again) tried.emplace(program, tuning);
    return seconds_(program, tuning);
  }
  const std::set<std::string>& asked(size_t program) const override { return asked_[program]; }
  bool is_over() const override { return most > 0 && measured >= most; }

  int measured = 0;
  int most = 0;
  int lost_after = 0;
  std::set<std::pair<size_t, Tuning>> tried;

 private:
  std::vector<std::set<std::string>> asked_;
  Seconds seconds_;
};

int64_t value_of(const Tuning& tuning, const std::string& name, int64_t otherwise) {
  const auto found = tuning.find(name);
  return found == tuning.end() ? otherwise : found->second;
}

constexpr TuningParameterInfo kWide = {"wide", "", 256};
constexpr TuningParameterInfo kDeep = {"deep", "", 1024};
constexpr TuningParameterInfo kFlag = {"flag", ""};
const std::vector<TuningParameterInfo> kAll = {kWide, kDeep, kFlag};
const std::function<void(const TuningStep&)> kQuiet = [](const TuningStep&) {};

// Slower with the distance from `best`, in powers of two.
double distance(int64_t value, int64_t best) {
  return std::abs(std::log2(static_cast<double>(value) / static_cast<double>(best)));
}

TEST(Search, FindsTheFastestValuesOfParametersThatDependOnEachOther) {
  // The best depth is four times the width.
  Model model({{"wide", "deep"}}, [](size_t, const Tuning& tuning) {
    const int64_t wide = value_of(tuning, "wide", 1);
    return 1 + 2 * distance(wide, 48) + distance(value_of(tuning, "deep", 4), 4 * wide);
  });
  const auto found = search(model, kAll, kQuiet);
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_TRUE(found->is_complete);
  EXPECT_LT(found->after[0], 0.5 * found->before[0]);
  EXPECT_EQ(found->best.at("deep"), 4 * found->best.at("wide"));
}

TEST(Search, KeepsTheDevicesValuesWhereNothingIsFaster) {
  Model model({{"wide"}}, [](size_t, const Tuning& tuning) {
    return 1 + 0.01 * distance(value_of(tuning, "wide", 16), 24);  // Within the noise.
  });
  const auto found = search(model, kAll, kQuiet);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->best.empty());
  EXPECT_FALSE(model.tried.empty());
}

TEST(Search, TriesOnlyWhatLoweringAskedFor) {
  Model model({{"flag"}, {"wide"}}, [](size_t program, const Tuning& tuning) {
    return program == 0 ? 2.0 - static_cast<double>(value_of(tuning, "flag", 0)) : 1.0;
  });
  const auto found = search(model, kAll, kQuiet);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best, (Tuning{{"flag", 1}}));
  for (const auto& [program, tuning] : model.tried) {
    EXPECT_FALSE(tuning.contains("deep"));
    EXPECT_TRUE(program != 0 || !tuning.contains("wide"));
  }
}

TEST(Search, NeverTakesAValueThatAProgramCannotUse) {
  // 8 is fast for one program and impossible for the other.
  Model model({{"wide"}, {"wide"}}, [](size_t program, const Tuning& tuning) {
    const int64_t wide = value_of(tuning, "wide", 1);
    if (program == 1 && wide == 8) return kNever;
    return 1 + distance(wide, 8);
  });
  const auto found = search(model, kAll, kQuiet);
  ASSERT_TRUE(found);
  EXPECT_NE(found->best.at("wide"), 8);
  EXPECT_LT(found->after[1], found->before[1]);
}

TEST(Search, LeavesOutProgramsThatDoNotRun) {
  Model model({{"wide"}, {"wide"}}, [](size_t program, const Tuning& tuning) {
    return program == 1 ? kNever : 1 + distance(value_of(tuning, "wide", 1), 64);
  });
  const auto found = search(model, kAll, kQuiet);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->best.at("wide"), 64);
}

TEST(Search, AMeasurementThatDoesNotRepeatIsNotTaken) {
  int count = 0;
  Model lucky({{"wide"}}, [&](size_t, const Tuning& tuning) {
    return value_of(tuning, "wide", 1) == 32 && ++count == 1 ? 0.1 : 1.0;
  });
  const auto found = search(lucky, kAll, kQuiet);
  ASSERT_TRUE(found);
  EXPECT_GT(count, 1);
  EXPECT_TRUE(found->best.empty());
}

TEST(Search, ABaselineThatFailsIsNoGain) {
  // The device's own values fail in the first three confirmations.
  int own = 0;
  Model failing({{"wide"}}, [&](size_t, const Tuning& tuning) {
    if (tuning.empty()) return ++own > 1 && own < 5 ? kNever : 1.0;
    return 0.9 + 0.05 * distance(value_of(tuning, "wide", 1), 64);
  });
  const auto found = search(failing, kAll, kQuiet);
  ASSERT_TRUE(found);
  EXPECT_GT(own, 3);
  // The program is searched for on, and found in the second round at the latest.
  EXPECT_EQ(found->best.at("wide"), 64);
}

TEST(Search, EndsWhenTheTimeIsOverWithWhatItHas) {
  Model model({{"wide", "deep"}}, [](size_t, const Tuning& tuning) {
    return 1 + distance(value_of(tuning, "wide", 1), 256) +
           distance(value_of(tuning, "deep", 1), 1024);
  });
  model.most = 25;
  const auto found = search(model, kAll, kQuiet);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->is_complete);
  EXPECT_EQ(found->best.at("wide"), 256);
  EXPECT_LT(model.measured, 40);
}

TEST(Search, ReportsEachImprovementAndReturnsTheDevicesError) {
  std::vector<Tuning> improvements;
  Model model({{"wide"}}, [](size_t, const Tuning& tuning) {
    return 1 + distance(value_of(tuning, "wide", 1), 64);
  });
  ASSERT_TRUE(search(model, kAll, [&](const TuningStep& step) {
    EXPECT_LT(step.done, step.count);
    if (step.improved) improvements.push_back(step.best);
  }));
  EXPECT_EQ(improvements, std::vector<Tuning>{(Tuning{{"wide", 64}})});
  model.measured = 0;
  model.lost_after = 5;
  const auto lost = search(model, kAll, kQuiet);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), ErrorCode::kUnavailable);
}

TEST(ValuesToTry, CoverTheLegalRange) {
  EXPECT_EQ(values_to_try(kFlag), (std::vector<int64_t>{0, 1}));
  for (const TuningParameterInfo& each : hlo::lower::all_tuning_parameters()) {
    for (const int64_t value : values_to_try(each)) {
      const hlo::lower::TuningEntry entry(each.name, value);
      EXPECT_TRUE(hlo::lower::check(std::span(&entry, 1)).ok()) << each.name << " " << value;
    }
  }
  EXPECT_EQ(values_to_try({"x", "", 12}), (std::vector<int64_t>{1, 2, 3, 4, 6, 8, 12}));
}

}  // namespace
}  // namespace tenon::tools
