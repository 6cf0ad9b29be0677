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

// Two kernels, a host call, a loop whose body makes a host call, a branch.
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
  // The single kernels in the loop's condition and before the call form no segment.
  EXPECT_EQ(segments_of(p, kCalls), (std::vector<StepRange>{{0, 0, 2}, {2, 2, 4}, {0, 4, 5}}));
  EXPECT_TRUE(segments_of(p, [](const Step&) { return true; }).empty());
}

TEST(Segment, IsAProgramOfItsOwn) {
  const Program p = with_calls();
  for (const StepRange& range : segments_of(p, kCalls)) {
    const Segment segment = segment_of(p, range);
    EXPECT_EQ(validate(segment.program).to_string(), "OK");
    EXPECT_EQ(segment.program.sequences[0].steps.size(), range.end - range.begin);
    EXPECT_EQ(segment.memories.size(), memory_sizes(segment.program).size());
  }
  const Program whole = segment_of(testing::control_flow(), {0, 0, 3}).program;
  const std::vector<Literal> arguments = {testing::four(3)};
  EXPECT_EQ((*ProgramInterpreter(whole).run(arguments))[0], testing::four(12));
}

// Parameter 1 and constant 1 of the whole Program become the segment's first; parts that the
// segment does not use are left out.
TEST(Segment, HasWhatItUsesAlone) {
  Program p = testing::twice();
  p.kernels.insert(p.kernels.begin(), testing::twice_in_place().kernels[0]);
  p.constants = {testing::four(1), testing::four(2)};
  p.buffers.push_back(testing::buffer(BufferKind::kParameter, 1));
  p.buffers.push_back(testing::buffer(BufferKind::kConstant, 1));
  p.buffers.push_back(testing::buffer(BufferKind::kConstant, 1));
  p.buffers.push_back(p.buffers[3]);
  p.buffers.back().view_of = 3;
  p.parameters = {0, 3};
  p.sequences[0].steps = {{Launch{1, {0, 0, 1}, {}}, {}, "first"},
                          {Launch{1, {6, 4, 2}, {}}, {}, "second"},
                          {Launch{1, {3, 5, 2}, {}}, {}, "third"}};
  find_dependencies(p);
  ASSERT_EQ(validate(p).to_string(), "OK");
  const Segment segment = segment_of(p, {0, 1, 3});
  EXPECT_EQ(validate(segment.program).to_string(), "OK");
  EXPECT_EQ(segment.memories, (std::vector<MemoryRef>{{BufferKind::kParameter, 1},
                                                      {BufferKind::kResult, 0},
                                                      {BufferKind::kConstant, 1}}));
  EXPECT_EQ(segment.program.kernels.size(), 1U);
  EXPECT_EQ(segment.program.buffers.size(), 5U);
  EXPECT_EQ(segment.program.temporary_bytes, 0);
  ASSERT_EQ(segment.program.constants.size(), 1U);
  EXPECT_EQ(segment.program.constants[0], testing::four(2));
  const std::vector<Literal> arguments = {testing::four(3)};
  EXPECT_EQ((*ProgramInterpreter(segment.program).run(arguments))[0], testing::four(5));
}

// Twice as many segments take twice as much to copy.
TEST(Segment, AllOfThemAreAsLargeAsTheWhole) {
  const auto copied = [](size_t count) {
    Program p = testing::twice();
    p.sequences[0].steps.clear();
    const kernel::Kernel add = p.kernels[0];
    p.kernels.clear();
    for (uint32_t i = 0; i < count; ++i) {
      p.kernels.push_back(add);
      p.kernels.back().name = "add" + std::to_string(i);
      p.constants.push_back(testing::four(i));
      p.buffers.push_back(testing::buffer(BufferKind::kConstant, i));
      const auto constant = static_cast<BufferId>(p.buffers.size() - 1);
      p.sequences[0].steps.push_back({Launch{i, {0, constant, 1}, {}}, {}, ""});
      p.sequences[0].steps.push_back({Launch{i, {0, constant, 2}, {}}, {}, ""});
      p.sequences[0].steps.push_back({CustomCall{"mine", {}, {2}, {2}}, {}, ""});
    }
    find_dependencies(p);
    size_t things = 0;
    const std::vector<StepRange> ranges = segments_of(p, kCalls);
    EXPECT_EQ(ranges.size(), count);
    for (const StepRange& range : ranges) {
      const Segment segment = segment_of(p, range);
      things += segment.memories.size() + segment.program.kernels.size() +
                segment.program.buffers.size() + segment.program.constants.size();
    }
    return things;
  };
  EXPECT_EQ(copied(20), 20 * copied(1));
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
