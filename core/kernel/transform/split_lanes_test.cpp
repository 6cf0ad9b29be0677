// Lanes loops split where conditions on their indices change: the same bits, and no condition left.
#include "core/kernel/transform/split_lanes.h"

#include <gtest/gtest.h>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/testing/kernel_test_util.h"

namespace tenon::kernel {
namespace {

int64_t count(const Kernel& kernel, OpCode op) {
  int64_t found = 0;
  for_each_node(kernel, kernel.body, [&](const Node& n) { found += n.op == op ? 1 : 0; });
  return found;
}

// A row of 40 x 2: zeros, then elements of %x moved by two rows, then its first row.
std::string moved(std::string_view first, std::string_view second) {
  return fmt::format(R"(kernel @k(%x: in f32[4,40,2], %y: out f32[4,40,2]) index s32 grid(%0: 4) {{
  lanes(%i: 40, %j: 2) {{
    %p = {0} : s32
    %v = if %p : f32 {{
      yield 0.0
    }} else {{
      %k = sub %i, 2 : s32
      %q = {1} : s32
      %w = if %q : f32 {{
        %a = load %x[%0, %k, %j] : f32
        yield %a
      }} else {{
        %b = load %x[%0, 0, %j] : f32
        yield %b
      }}
      yield %w
    }}
    store %v, %y[%0, %i, %j] : f32
  }}
}}
)",
                     first, second);
}

TEST(SplitLanes, WhereConditionsChange) {
  for (const auto& [first, second] :
       {std::pair("lt %i, 2", "lt %k, 30"), std::pair("le %i, 1", "le %k, 29")}) {
    const Kernel kernel = parse(moved(first, second), "k").value();
    const Kernel split = split_lanes(kernel, 32);
    EXPECT_EQ(count(split, OpCode::kLanes), 3) << print(split);
    EXPECT_EQ(count(split, OpCode::kIf), 0) << print(split);
    EXPECT_TRUE(verify(split).ok()) << verify(split).to_string();
    std::vector<Literal> expected = testing::zero_buffers(kernel);
    for (int64_t k = 0; k < 320; ++k) expected[0].set_double(k, static_cast<double>(k));
    std::vector<Literal> actual = expected;
    ASSERT_TRUE(testing::run(kernel, expected).ok());
    ASSERT_TRUE(testing::run(split, actual).ok());
    EXPECT_EQ(actual[1], expected[1]);
  }
}

TEST(SplitLanes, LeavesOthersAlone) {
  const Kernel kernel = parse(moved("lt %i, 2", "lt %k, 30"), "k").value();
  EXPECT_TRUE(equal(split_lanes(kernel, 80), kernel)) << "rows of up to 80 elements";
  const Kernel by_grid = parse(moved("lt %0, 2", "lt %0, 3"), "k").value();
  EXPECT_TRUE(equal(split_lanes(by_grid, 32), by_grid)) << "conditions that all lanes share";
}

}  // namespace
}  // namespace tenon::kernel
