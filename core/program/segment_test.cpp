#include "core/program/segment.h"

#include <gtest/gtest.h>

#include "core/program/interpreter.h"
#include "core/program/program_test_util.h"

namespace tenon::program {
namespace {

const auto kNothing = [](const Step&) { return false; };
const auto kCalls = [](const Step& step) {
  return std::holds_alternative<CustomCall>(step.action);
};

// Two kernels, a call of the host, a loop whose body calls the host, a branch.
Program with_calls() {
  Program p = testing::control_flow();
  const Step call = {CustomCall{"mine", {}, {2}, {2}}, {}, ""};
  auto& entry = p.sequences[0].steps;  // A copy, a loop, a branch.
  entry.insert(entry.begin() + 1, call);
  entry.insert(entry.begin() + 1, Step{Launch{1, {2}, {}}, {}, ""});
  p.sequences[2].steps.push_back(call);
  p.sequences[2].steps.push_back(p.sequences[2].steps[0]);
  p.sequences[2].steps.push_back(p.sequences[2].steps[0]);
  find_dependencies(p);
  return p;
}

TEST(Segment, RunsAreAsLongAsTheyCanBe) {
  EXPECT_EQ(segments_of(testing::control_flow(), kNothing), (std::vector<StepRange>{{0, 0, 3}}));
  EXPECT_EQ(segments_of(testing::twice(), kNothing), (std::vector<StepRange>{{0, 0, 2}}));
  const Program p = with_calls();
  // The single kernels of the loop's condition and before the call stand alone.
  EXPECT_EQ(segments_of(p, kCalls), (std::vector<StepRange>{{0, 0, 2}, {2, 2, 4}, {0, 4, 5}}));
  EXPECT_TRUE(segments_of(p, [](const Step&) { return true; }).empty());
}

TEST(Segment, IsAProgramOfItsOwn) {
  const Program p = with_calls();
  for (const StepRange& range : segments_of(p, kCalls)) {
    const Program segment = segment_program(p, range);
    EXPECT_EQ(validate(segment).to_string(), "OK");
    EXPECT_EQ(segment.buffers, p.buffers);
    EXPECT_EQ(segment.sequences[0].steps.size(), range.end - range.begin);
  }
  const Program whole = segment_program(testing::control_flow(), {0, 0, 3});
  const std::vector<Literal> arguments = {testing::four(3)};
  EXPECT_EQ((*ProgramInterpreter(whole).run(arguments))[0], testing::four(12));
}

TEST(Segment, StepsOutside) {
  const Program p = with_calls();
  const auto count = [&](const std::vector<StepRange>& segments) {
    int64_t steps = 0;
    for_each_step(p, segments, [](const Step&) { return true; }, [&](const Step&) { ++steps; });
    return steps;
  };
  EXPECT_EQ(count({}), 11);
  EXPECT_EQ(count(segments_of(p, kCalls)), 5);
}

}  // namespace
}  // namespace tenon::program
