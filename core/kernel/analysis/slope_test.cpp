#include "core/kernel/analysis/slope.h"

#include <gtest/gtest.h>

#include "core/kernel/text/text.h"

namespace tenon::kernel {
namespace {

TEST(Slopes, LinearFunctionsOfAnIndex) {
  const auto kernel = parse(R"(
kernel @places(%x: in s32[10, 2000], %y: out s32[4, 5]) index s32 grid(%g: 4) {
  lanes(%i: 5) {
    %j = mul %i, 3 : s32
    %k = sub %g, %j : s32
    %l = mul 2, %k : s32
    %m = add %l, %i : s32
    %n = mul %i, %i : s32
    %o = min %g, 7 : s32
    %p = add %i, 20 : s32
    %v = load %x[%i, %p] : s32
    store %v, %y[%g, %i] : s32
  }
}
)",
                            "places");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const Block* lanes = nullptr;
  std::vector<std::optional<int64_t>> found;
  for (const Node& node : kernel->nodes) {
    if (node.op == OpCode::kLanes) lanes = &kernel->block(node.blocks[0]);
  }
  ASSERT_NE(lanes, nullptr);
  Slopes slopes(*kernel, lanes->arguments[0]);
  for (const NodeId id : lanes->nodes) {
    const Node& node = kernel->node(id);
    if (node.op == OpCode::kLoad || node.op == OpCode::kStore) {
      found.push_back(slopes.of_place(node));
    } else if (!node.results.empty()) {
      found.push_back(slopes.of(node.results[0]));
    }
  }
  const std::vector<std::optional<int64_t>> wanted = {3, -3, -6, -5, std::nullopt, 0, 1, 2001, 1};
  EXPECT_EQ(found, wanted);
}

}  // namespace
}  // namespace tenon::kernel
