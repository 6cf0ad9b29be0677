#include "hlo/buffers/coalesce.h"

#include <gtest/gtest.h>

#include "core/kernel/ir/builder.h"
#include "hlo/buffers/interference.h"
#include "hlo/import/import.h"
#include "hlo/lower/lower.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

program::Program lowered(const std::string& text) {
  const auto module = import_module(text, "t").value();
  EXPECT_TRUE(run_passes(*module, optimizing_passes()).ok());
  return lower_module(*module, {}).value();
}

// An optimizer's step: `n` donated parameters of one size, each of which becomes a result.
std::string update(int n) {
  std::string parameters;
  std::string body;
  std::string types;
  std::string names;
  for (int i = 0; i < n; ++i) {
    const std::string comma = i == 0 ? "" : ", ";
    parameters += fmt::format("{}%p{}: tensor<4xf32> {{jax.buffer_donor = true}}", comma, i);
    body += fmt::format("  %r{} = stablehlo.tanh %p{} : tensor<4xf32>\n", i, i);
    types += comma + "tensor<4xf32>";
    names += fmt::format("{}%r{}", comma, i);
  }
  return fmt::format("func.func @main({}) -> ({}) {{\n{}  return {} : {}\n}}\n", parameters, types,
                     body, names, types);
}

// Copies of parameters to temporaries, and of temporaries to results: all have one size and are
// live at one time. With `in_a_row`, each temporary is a copy of the previous one.
program::Program copies(uint32_t n, bool in_a_row) {
  program::Program program;
  program.name = "copies";
  const auto buffer = [&](program::BufferKind kind, uint32_t index) {
    program::Buffer made;
    made.kind = kind;
    made.type = ElementType::kF32;
    made.dims = {4};
    made.index = index;
    program.buffers.push_back(std::move(made));
    return static_cast<program::BufferId>(program.buffers.size() - 1);
  };
  program.sequences.resize(1);
  std::vector<program::Step> second;
  program::BufferId before = program::kNone;
  for (uint32_t i = 0; i < n; ++i) {
    const program::BufferId from = buffer(program::BufferKind::kParameter, i);
    const program::BufferId between = buffer(program::BufferKind::kTemporary, 0);
    const program::BufferId to = buffer(program::BufferKind::kResult, i);
    program.parameters.push_back(from);
    program.results.push_back(to);
    const program::BufferId source = in_a_row && i > 0 ? before : from;
    program.sequences[0].steps.push_back({program::Copy{between, source}, {}, ""});
    second.push_back({program::Copy{to, between}, {}, ""});
    before = between;
  }
  std::vector<program::Step>& steps = program.sequences[0].steps;
  steps.insert(steps.end(), second.begin(), second.end());
  return program;
}

TEST(Coalesce, EveryDonatedParameterBecomesAResultWhereItLies) {
  const program::Program program = lowered(update(50));
  int64_t copies = 0;
  for (const program::Step& step : program.sequences[0].steps) {
    copies += std::holds_alternative<program::Copy>(step.action) ? 1 : 0;
  }
  EXPECT_EQ(copies, 50);  // The copies that do nothing if the caller donates the argument.
  EXPECT_EQ(program.temporary_bytes, 0);
}

// A launch of one kernel with `n` outputs, each the sum of two of `n` inputs with one element: any
// output may lie over any input.
program::Program sums(uint32_t n) {
  program::Program program;
  kernel::Builder b("sums");
  std::vector<kernel::MemoryId> memories;
  program::Launch launch;
  for (uint32_t i = 0; i < 2 * n; ++i) {
    const bool input = i < n;
    memories.push_back(b.buffer(fmt::format("m{}", i), ElementType::kF32, {},
                                input ? kernel::Access::kIn : kernel::Access::kOut));
    program::Buffer buffer;
    buffer.type = ElementType::kF32;
    buffer.kind = input ? program::BufferKind::kTemporary : program::BufferKind::kResult;
    buffer.index = input ? 0 : i - n;
    program.buffers.push_back(std::move(buffer));
    launch.buffers.push_back(i);
    if (!input) program.results.push_back(i);
  }
  b.grid({});
  kernel::Values elements;
  for (uint32_t i = 0; i < n; ++i) elements.push_back(b.load(memories[i], {}));
  for (uint32_t i = 0; i < n; ++i) {
    b.store(b.add(elements[i], elements[(i + 1) % n]), memories[n + i], {});
  }
  program.kernels.push_back(b.finish());
  program.sequences.resize(1);
  program.sequences[0].steps.push_back({std::move(launch), {}, ""});
  return program;
}

int64_t work_of(const program::Program& program) {
  Interference interference(program);
  for (const CoalesceCandidate& each : interference.candidates()) {
    const program::BufferId a = interference.classes().find(each.a);
    const program::BufferId b = interference.classes().find(each.b);
    if (a != b && !interference.between(a, b)) interference.join(a, b);
  }
  return interference.work();
}

// A kernel with many outputs: the number of possible in-place pairs is its square.
TEST(Coalesce, AKernelOfManyOutputsIsSeenInLinearWork) {
  const int64_t small = work_of(sums(200));
  EXPECT_GT(small, 200);
  EXPECT_LE(work_of(sums(800)), 5 * small);
  // Each result takes the memory of one input.
  program::Program program = sums(200);
  coalesce_buffers(program);
  EXPECT_EQ(program.buffers.size(), 200u);
}

// The work is linear in the length of the Program, although all buffers have one size and are live
// at one time.
TEST(Coalesce, InterferenceIsFoundInLinearWork) {
  for (const bool in_a_row : {false, true}) {
    const int64_t small = work_of(copies(250, in_a_row));
    EXPECT_GT(small, 250);
    EXPECT_LE(work_of(copies(1000, in_a_row)), 5 * small);
  }
}

// A copy's source keeps its value while the destination changes, so a buffer that was merged with
// the destination must not share the source's memory.
TEST(Coalesce, ACopyOfAValueThatLivesOnKeepsItsOwnMemory) {
  const program::Program program = lowered(R"(
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %y = stablehlo.tanh %x : tensor<4xf32>
  %r:2 = stablehlo.while(%i = %n, %a = %y) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare GT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.subtract %i, %one : tensor<i32>
    %b = stablehlo.add %a, %a : tensor<4xf32>
    stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
  }
  return %y, %r#1 : tensor<4xf32>, tensor<4xf32>
})");
  ASSERT_EQ(program.results.size(), 2U);
  EXPECT_NE(program.root(program.results[0]), program.root(program.results[1]));
}

}  // namespace
}  // namespace tenon::hlo
