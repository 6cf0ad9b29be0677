#include "conformance/measure/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::conformance {
namespace {

using Verdict = std::optional<std::string>;

// The least time of a size; fewer runs if they are long.
Result<TimedRun> least_of(const SpeedClass& one, const RunOfSize& run, int64_t n,
                          const SpeedLimits& limits) {
  TENON_ASSIGN(TimedRun least, run(one, n));
  double spent = least.seconds;
  for (int i = 1; i < limits.runs && spent < limits.longest_seconds / 4; ++i) {
    TENON_ASSIGN(const TimedRun again, run(one, n));
    spent += again.seconds;
    least.seconds = std::min(least.seconds, again.seconds);
  }
  return least;
}

// The size from which on a run takes `seconds`, or would have more than the bytes that are allowed
// if it had `room` times as many elements.
Result<int64_t> size_for(const SpeedClass& one, const RunOfSize& run, double seconds, double room,
                         const SpeedLimits& limits) {
  int64_t n = one.first;
  for (;;) {
    // The first run of a size may have costs of its own.
    TENON_ASSIGN(TimedRun ran, run(one, n));
    TENON_ASSIGN(const TimedRun again, run(one, n));
    ran.seconds = std::min(ran.seconds, again.seconds);
    if (ran.seconds >= seconds || ran.bytes * 4 * room > limits.most_bytes) return n;
    n *= one.factor;
  }
}

// Seconds of an elementwise step, and of a program that has one.
struct Yardstick {
  double step = 0;
  double launch = 0;
};

Result<Yardstick> measure_yardstick(const RunOfSize& run, const SpeedLimits& limits) {
  const SpeedClass& elementwise = speed_classes().front();
  Yardstick found;
  TENON_ASSIGN(const TimedRun smallest, least_of(elementwise, run, 1, limits));
  found.launch = smallest.seconds;
  TENON_ASSIGN(const int64_t n, size_for(elementwise, run, limits.run_seconds, 1, limits));
  TENON_ASSIGN(const TimedRun large, least_of(elementwise, run, n, limits));
  found.step = large.seconds / elementwise.steps(static_cast<double>(n));
  return found;
}

Result<Verdict> judge_rate_once(const SpeedClass& one, const RunOfSize& run,
                                const SpeedLimits& limits) {
  TENON_ASSIGN(const Yardstick yardstick, measure_yardstick(run, limits));
  TENON_ASSIGN(const int64_t n, size_for(one, run, limits.run_seconds, 1, limits));
  TENON_ASSIGN(const TimedRun ran, least_of(one, run, n, limits));
  const double steps = one.steps(static_cast<double>(n));
  const double explained = yardstick.launch + steps * yardstick.step;
  const double slower = ran.seconds / explained;
  if (slower <= limits.slower) return Verdict();
  return Verdict(
      fmt::format("{:.0f} times slower than elementwise steps (limit: {:g}): size {} takes {:.3g} "
                  "s; a launch and {:.3g} steps of {:.3g} s each take {:.3g} s",
                  slower, limits.slower, n, ran.seconds, steps, yardstick.step, explained));
}

// How many times longer an elementwise step takes in arrays of more bytes: they are in slower
// memory.
Result<double> slower_memory(const RunOfSize& run, double from, double to,
                             const SpeedLimits& limits) {
  constexpr double kBytesOfStep = 12;
  const SpeedClass& elementwise = speed_classes().front();
  double seconds_of_step[2] = {};
  for (int i = 0; i < 2; ++i) {
    const double bytes = i == 0 ? from : to;
    const auto n = std::max<int64_t>(1, static_cast<int64_t>(bytes / kBytesOfStep));
    TENON_ASSIGN(const TimedRun ran, least_of(elementwise, run, n, limits));
    seconds_of_step[i] = ran.seconds / static_cast<double>(n);
  }
  return std::max(1.0, seconds_of_step[1] / seconds_of_step[0]);
}

Result<Verdict> judge_growth_once(const SpeedClass& one, const RunOfSize& run,
                                  const SpeedLimits& limits) {
  TENON_ASSIGN(const int64_t n, size_for(one, run, limits.run_seconds / 4, 16, limits));
  TENON_ASSIGN(const TimedRun first, least_of(one, run, n, limits));
  Verdict verdict;  // That of the longest span.
  int64_t size = n;
  double last = first.seconds;
  for (const int times : {4, 16}) {
    if (last * 16 > limits.longest_seconds) {
      if (times == 16) break;
      return make_error(ErrorCode::kDeadlineExceeded,
                        "size {} takes {:.3g} s: too long for larger ones", n, last);
    }
    size *= one.factor;
    TENON_ASSIGN(const TimedRun ran, least_of(one, run, size, limits));
    last = ran.seconds;
    const double work = one.steps(static_cast<double>(size)) / one.steps(static_cast<double>(n));
    const double time = ran.seconds / first.seconds;
    const double limit = times == 16 ? limits.growth : std::sqrt(limits.growth);
    verdict.reset();
    if (time / work <= limit) continue;
    TENON_ASSIGN(const double memory, slower_memory(run, first.bytes, ran.bytes, limits));
    if (time / work / memory <= limit) continue;
    verdict = fmt::format(
        "cost grows faster than the work: {} times as many elements take {:.1f} times as long, and "
        "are {:.1f} times the work, in memory that is {:.1f} times slower (limit: {:g} times "
        "more): "
        "{:.3g} s at size {}, {:.3g} s at size {}",
        times, time, work, memory, limit, first.seconds, n, ran.seconds, size);
  }
  return verdict;
}

template <class Judge>
Result<Verdict> judge_again(const Judge& judge, int tries) {
  Verdict verdict;
  for (int i = 0; i < tries; ++i) {
    TENON_ASSIGN(verdict, judge());
    if (!verdict) return verdict;
  }
  return verdict;
}

}  // namespace

Result<Verdict> judge_rate(const SpeedClass& one, const RunOfSize& run, const SpeedLimits& limits) {
  return judge_again([&] { return judge_rate_once(one, run, limits); }, limits.tries);
}

Result<Verdict> judge_growth(const SpeedClass& one, const RunOfSize& run,
                             const SpeedLimits& limits) {
  return judge_again([&] { return judge_growth_once(one, run, limits); }, limits.tries);
}

}  // namespace tenon::conformance
