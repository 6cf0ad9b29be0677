#include "core/program/program.h"

#include <gtest/gtest.h>

#include "core/program/interpreter.h"
#include "core/program/program_test_util.h"

namespace tenon::program {
namespace {

using testing::buffer;
using testing::four;
using testing::kernel_of;
using testing::twice;

TEST(Program, Runs) {
  const Program p = twice();
  ASSERT_EQ(validate(p).to_string(), "OK");
  EXPECT_EQ(p.sequences[0].steps[1].depends, std::vector<uint32_t>{0});
  ProgramInterpreter interpreter(p);
  const std::vector<Literal> arguments = {four(1.5)};
  for (int run = 0; run < 2; ++run) {
    const auto results = interpreter.run(arguments);
    ASSERT_TRUE(results) << results.error().to_string();
    EXPECT_EQ((*results)[0], four(4.5));
  }
}

TEST(Program, Prints) {
  EXPECT_EQ(print(twice()).substr(0, 246),
            "program @p: 1 kernels, 0 constants, 64 bytes of temporaries\n"
            "%0: f32[4] parameter 0\n"
            "%1: f32[4] temporary at 0\n"
            "%2: f32[4] result 0\n"
            "entry\n"
            "  0: launch @add(%0, %0, %1)  // first\n"
            "  1: launch @add(%1, %0, %2) after 0  // second\n"
            "results %2\n\nkernel @add(");
}

// Each step waits for the writers of the buffers that it reads, and for the readers of the buffers
// that it writes.
TEST(Program, Dependencies) {
  Program p = twice();
  p.buffers.push_back(buffer(BufferKind::kTemporary, 0, 64));
  p.buffers.push_back(buffer(BufferKind::kTemporary, 0, 0));  // in the place of %1
  p.temporary_bytes = 128;
  p.sequences[0].steps = {{Copy{1, 0}, {}, ""},
                          {Copy{3, 1}, {}, ""},
                          {Copy{4, 0}, {}, ""},
                          {Copy{2, 3}, {}, ""},
                          {CustomCall{"a", {}, {}, {}}, {}, ""},
                          {CustomCall{"b", {}, {4}, {}}, {}, ""}};
  find_dependencies(p);
  const std::vector<std::vector<uint32_t>> expected = {{}, {0}, {0, 1}, {1}, {}, {2, 4}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(p.sequences[0].steps[i].depends, expected[i]) << i;
  }
}

TEST(Program, WhileAndConditional) {
  const Program p = testing::control_flow();
  ASSERT_EQ(validate(p).to_string(), "OK");
  EXPECT_EQ(p.sequences[0].steps[2].depends, (std::vector<uint32_t>{1}));
  const std::vector<Literal> arguments = {four(3)};
  const auto results = ProgramInterpreter(p).run(arguments);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0], four(12));  // 3, 6, 12; then the predicate is false: branch 1
}

// Calls may have effects: they keep their order through loops too.
TEST(Program, CallsInLoopsStayInOrder) {
  Program p = twice();
  p.sequences.resize(3);
  p.sequences[0].steps = {{While{1, 2, 0}, {}, ""}, {CustomCall{"after", {}, {}, {}}, {}, ""}};
  p.sequences[2].steps = {{CustomCall{"inside", {}, {}, {}}, {}, ""}};
  find_dependencies(p);
  EXPECT_EQ(p.sequences[0].steps[1].depends, std::vector<uint32_t>{0});
}

TEST(Program, CustomCalls) {
  Program p = twice();
  p.sequences[0].steps = {{CustomCall{"mine", {{"by", 2.5}}, {0}, {2}}, {}, "here"}};
  ASSERT_EQ(validate(p).to_string(), "OK");
  ProgramInterpreter interpreter(p);
  const std::vector<Literal> arguments = {four(2)};
  const auto unknown = interpreter.run(arguments);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(),
            "stablehlo.custom_call: target @mine is unknown to this device");
  interpreter.set_custom_call(
      "mine", [](const Step&, const CustomCall& call, const std::vector<Literal>& operands,
                 const std::vector<Shape>& results) {
        EXPECT_EQ(results[0], Shape(ElementType::kF32, {4}));
        const double by = std::get<double>(*find(call.config, "by"));
        return Result<std::vector<Literal>>({four(operands[0].get_double(0) * by)});
      });
  const auto results = interpreter.run(arguments);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0], four(5));
  interpreter.set_custom_call("mine", [](const auto&, const auto&, const auto&, const auto&) {
    return Result<std::vector<Literal>>(std::vector<Literal>{});
  });
  EXPECT_EQ(interpreter.run(arguments).error().message(),
            "custom call @mine gave 0 results, expected 1");
}

TEST(Program, ArgumentsThatDoNotFit) {
  const Program p = twice();
  EXPECT_EQ(ProgramInterpreter(p).run({}).error().message(), "program p: 0 arguments, expected 1");
  const std::vector<Literal> wrong = {Literal::scalar(ElementType::kF32, 1)};
  EXPECT_EQ(ProgramInterpreter(p).run(wrong).error().message(),
            "program p: argument 0 is f32[], expected f32[4]");
}

TEST(Program, AnErrorInAKernelNamesItsStep) {
  Program p = twice();
  p.kernels[0] = kernel_of(
      "kernel @gap(%x: in f32[4], %z: in f32[4], %y: out f32[4]) index s32 grid() {\n"
      "%a = load %x[0] : f32\n%b = load %z[0] : f32\n%c = add %a, %b : f32\nstore %c, %y[0] : "
      "f32\n}");
  const std::vector<Literal> arguments = {four(1)};
  const auto results = ProgramInterpreter(p).run(arguments);
  ASSERT_FALSE(results);
  EXPECT_NE(results.error().message().find("(in the kernel of first)"), std::string::npos)
      << results.error().message();
}

TEST(Validate, Errors) {
  const std::pair<std::function<void(Program&)>, const char*> cases[] = {
      {[](Program& p) { p.sequences.clear(); }, "it has no entry sequence"},
      {[](Program& p) { p.results = {9}; }, "results: there is no buffer 9"},
      {[](Program& p) { p.donated = {1}; }, "donated parameter 1 of 1"},
      {[](Program& p) { p.buffers[1].dims = {-1}; }, "buffer 1 has a dimension of -1"},
      {[](Program& p) { p.buffers[1].offset = 8; },
       "buffer 1 lies at 8 to 24 of 64 bytes of temporaries"},
      {[](Program& p) { p.buffers[1].kind = BufferKind::kConstant; }, "there is no constant 0"},
      {[](Program& p) { p.buffers[2].index = 3; },
       "result 0 is buffer 2, which is not of that kind"},
      {[](Program& p) { p.buffers[0].index = 3; },
       "parameter 0 is buffer 0, which is not of that kind"},
      {[](Program& p) {
         p.buffers[1].view_of = 0;
         p.buffers[1].dims = {2};
       },
       "buffer 1 of 8 bytes is a view of 16 bytes"},
      {[](Program& p) {
         p.buffers.insert(p.buffers.end(), 2, p.buffers[1]);
         p.buffers[3].view_of = 4;
         p.buffers[4].view_of = 1;
       },
       "buffer 3 is a view of a view"},
      {[](Program& p) { p.buffers[1].dims = {1 << 30, 1 << 30, 1 << 30}; },
       "buffer 1 is larger than memory can be"},
      {[](Program& p) { p.temporary_bytes = -1; }, "-1 bytes of temporaries"},
      {[](Program& p) { p.donated = {0, 0}; }, "parameter 0 is donated twice"},
      {[](Program& p) { p.buffers[1].dims = Dims(70, 1); }, "buffer 1 has more than 64 dimensions"},
      {[](Program& p) {
         p.buffers.push_back(p.buffers[2]);
         p.buffers[3].dims = {1 << 20};
       },
       "buffer 3 of 4194304 bytes is result 0 of 16 bytes"},
      {[](Program& p) {
         p.buffers[1].type = ElementType::kPred;
         p.buffers[1].dims = {};
         p.sequences[0].steps = {{Conditional{1, {0}}, {}, ""}};
       },
       "a conditional on a pred has 1 branches"},
      {[](Program& p) { p.sequences.resize(2); }, "sequence 1 is never run"},
      {[](Program& p) { p.sequences[0].steps[1].depends = {}; },
       "step 1 of sequence 0 does not wait for step 0, which touches the same memory"},
      {[](Program& p) { std::get<Launch>(p.sequences[0].steps[1].action).buffers = {2, 0, 2}; },
       "@add: %y lies in the memory of %x"},
      {[](Program& p) { p.sequences[0].steps = {{Copy{1, 1}, {}, ""}}; },
       "a copy of buffer 1 to itself or over it"},
      {[](Program& p) { p.sequences[0].steps[1].depends = {1}; },
       "step 1 of sequence 0 depends on step 1"},
      {[](Program& p) { std::get<Launch>(p.sequences[0].steps[0].action).kernel = 7; },
       "there is no kernel 7"},
      {[](Program& p) { std::get<Launch>(p.sequences[0].steps[0].action).buffers = {0, 0}; },
       "@add takes 3 buffers and 0 scalars, the launch has 2 and 0"},
      {[](Program& p) { p.buffers[1].dims = {3}; }, "@add: %y takes 16 bytes, buffer 1 has 12"},
      {[](Program& p) { std::get<Launch>(p.sequences[0].steps[0].action).buffers = {1, 1, 0}; },
       "step 0 of sequence 0 writes to a parameter"},
      {[](Program& p) { p.sequences[0].steps[0].action = While{0, 0, 0}; },
       "a while's predicate is not a pred"},
      {[](Program& p) { p.sequences[0].steps[0].action = Conditional{0, {0}}; },
       "a conditional's index is neither pred nor s32"},
      {[](Program& p) {
         p.buffers[1].dims = {5};
         p.sequences[0].steps = {{Copy{1, 0}, {}, ""}};
       },
       "a copy of 16 bytes to 20"},
  };
  for (const auto& [spoil, expected] : cases) {
    Program p = twice();
    spoil(p);
    EXPECT_EQ(validate(p).message(), std::string("program p: ") + expected);
  }
}

}  // namespace
}  // namespace tenon::program
