// The rules for speed, with devices whose time is invented.
#include "conformance/measure/speed.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::conformance {
namespace {

// Seconds of a run, and what all runs have taken.
struct InventedDevice {
  std::function<double(const SpeedClass& one, double n)> seconds;
  double spent = 0;
  int runs = 0;

  RunOfSize run() {
    return [this](const SpeedClass& one, int64_t n) -> Result<TimedRun> {
      ++runs;
      const double taken = seconds(one, static_cast<double>(n));
      spent += taken;
      return TimedRun{taken, 12 * static_cast<double>(n)};
    };
  }
};

constexpr double kLaunch = 2e-6;

double sane(const SpeedClass& one, double n, double step) { return kLaunch + step * one.steps(n); }

const SpeedClass& class_of(std::string_view name) {
  for (const SpeedClass& each : speed_classes()) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << name;
  return speed_classes().front();
}

using Judge = Result<std::optional<std::string>> (*)(const SpeedClass&, const RunOfSize&,
                                                     const SpeedLimits&);
std::string said_of(Judge judge, const SpeedClass& one, InventedDevice& device) {
  const auto verdict = judge(one, device.run(), {});
  if (!verdict) return verdict.error().message();
  return verdict->value_or("");
}

TEST(Speed, ADeviceOfAnySpeedIsSane) {
  for (const double step : {1e-12, 1e-9, 2e-7}) {
    for (const SpeedClass& each : speed_classes()) {
      InventedDevice device;
      device.seconds = [=](const SpeedClass& one, double n) { return sane(one, n, step); };
      EXPECT_EQ(said_of(judge_rate, each, device), "") << each.name << " " << step;
      EXPECT_EQ(said_of(judge_growth, each, device), "") << each.name << " " << step;
      // Both within a minute, which is the default limit of one case.
      EXPECT_LT(device.spent, 60) << each.name << " " << step;
    }
  }
}

TEST(Speed, AClassFarBehindElementwiseStepsIsNamed) {
  const SpeedClass& sort = class_of("sort/f32");
  InventedDevice device;
  device.seconds = [&](const SpeedClass& one, double n) {
    return sane(one, n, &one == &sort ? 150e-9 : 1e-9);
  };
  const std::string said = said_of(judge_rate, sort, device);
  EXPECT_NE(said.find("times slower than elementwise steps (limit: 100): size "), std::string::npos)
      << said;
  EXPECT_EQ(said_of(judge_rate, class_of("exp/f32"), device), "");
  device.seconds = [&](const SpeedClass& one, double n) {
    return sane(one, n, &one == &sort ? 50e-9 : 1e-9);
  };
  EXPECT_EQ(said_of(judge_rate, sort, device), "");
}

TEST(Speed, AQuadraticCostIsFoundOnFastAndSlowDevices) {
  const SpeedClass& cumulative = class_of("cumulative_sum/f32");
  for (const double step : {1e-11, 1e-9, 2e-7}) {
    InventedDevice device;
    device.seconds = [=](const SpeedClass& one, double n) {
      const double steps = one.steps(n);
      return kLaunch + step * (&one == &class_of("cumulative_sum/f32") ? steps * steps : steps);
    };
    const std::string said = said_of(judge_growth, cumulative, device);
    EXPECT_NE(said.find("cost grows faster than the work: 16 times as many elements take 2"),
              std::string::npos)
        << step << ": " << said;
    EXPECT_LT(device.spent, 60) << step;
  }
}

TEST(Speed, ABusyMachineIsNotBlamed) {
  for (const SpeedClass& each : speed_classes()) {
    InventedDevice device;
    device.seconds = [&](const SpeedClass& one, double n) {
      return sane(one, n, 1e-9) * (device.runs % 2 == 0 ? 50 : 1);
    };
    EXPECT_EQ(said_of(judge_rate, each, device), "") << each.name;
    EXPECT_EQ(said_of(judge_growth, each, device), "") << each.name;
  }
  // Busy for the whole of the first try.
  InventedDevice device;
  const SpeedClass& sort = class_of("sort/f32");
  device.seconds = [&](const SpeedClass& one, double n) {
    return sane(one, n, 1e-9) * (&one == &sort && device.runs < 25 ? 300 : 1);
  };
  EXPECT_EQ(said_of(judge_rate, sort, device), "");
}

TEST(Speed, SlowMemoryIsNoGrowthOfTheCost) {
  constexpr double kCache = 1 << 22;
  for (const SpeedClass& each : speed_classes()) {
    InventedDevice device;
    device.seconds = [](const SpeedClass& one, double n) {
      return sane(one, n, 12 * n > kCache ? 2e-10 : 2e-11);
    };
    EXPECT_EQ(said_of(judge_growth, each, device), "") << each.name;
  }
}

TEST(Speed, WhatIsTooSlowToJudgeIsAnError) {
  InventedDevice device;
  device.seconds = [](const SpeedClass&, double) { return 1.0; };
  EXPECT_EQ(said_of(judge_growth, class_of("exp/f32"), device),
            "size 1024 takes 1 s: too long for larger ones");
  const RunOfSize fails = [](const SpeedClass&, int64_t) -> Result<TimedRun> {
    return unimplemented("it has no such op");
  };
  EXPECT_EQ(judge_rate(class_of("exp/f32"), fails).error().message(), "it has no such op");
}

TEST(Speed, EveryClassGrowsItsElementsByFour) {
  for (const SpeedClass& each : speed_classes()) {
    EXPECT_FALSE(each.program(each.first).empty()) << each.name;
    const double growth = each.steps(static_cast<double>(each.first * each.factor)) /
                          each.steps(static_cast<double>(each.first));
    EXPECT_GE(growth, 4) << each.name;
    EXPECT_LE(growth, 8) << each.name;
  }
}

}  // namespace
}  // namespace tenon::conformance
