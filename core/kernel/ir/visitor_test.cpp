// Dispatch by tags, and walks.
#include "core/kernel/ir/visitor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "core/kernel/text/text.h"

namespace tenon::kernel {
namespace {

auto some_of_all() {
  return Overloads{
      [](OnScalar) { return std::string("scalar"); },
      [](OnAccess) { return std::string("access"); },
      [](OnLoad) { return std::string("load"); },
      [](OnDeclaration) { return std::string("declaration"); },
      [](OnStatement) { return std::string("statement"); },
      [](OnTile) { return std::string("tile"); },
  };
}

TEST(Visitor, CallsTheClosestFunction) {
  const auto name = [](OpCode op) { return visit(op, some_of_all()); };
  EXPECT_EQ(name(OpCode::kAdd), "scalar");
  EXPECT_EQ(name(OpCode::kPow), "scalar");
  EXPECT_EQ(name(OpCode::kLoad), "load");
  EXPECT_EQ(name(OpCode::kStore), "access");
  EXPECT_EQ(name(OpCode::kAtomic), "access");
  EXPECT_EQ(name(OpCode::kPrivate), "declaration");
  EXPECT_EQ(name(OpCode::kContract), "tile");
  EXPECT_EQ(name(OpCode::kYield), "statement");
}

// visit() calls the function with each tag: code without such a function does not compile.
TEST(Visitor, AsksForEachStatement) {
  const auto all_but_yield = Overloads{
      [](OnAccess) {}, [](OnDeclaration) {}, [](OnReduction) {}, [](OnTile) {},   [](OnLanes) {},
      [](OnFor) {},    [](OnWhile) {},       [](OnIf) {},        [](OnScalar) {},
  };
  using Function = decltype(all_but_yield);
  static_assert(std::is_invocable_v<Function, OnScan>);
  static_assert(!std::is_invocable_v<Function, OnYield>);
}

TEST(Visitor, EachOperationHasItsTag) {
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<OpCode>(i);
    EXPECT_EQ(is<OnScalar>(op), is_scalar_op(op)) << op_name(op);
    EXPECT_NE(is<OnScalar>(op), is<OnStatement>(op)) << op_name(op);
    EXPECT_EQ((is<OnLoad, OnStore, OnAtomic>(op)), is<OnAccess>(op)) << op_name(op);
    if (is_scalar_op(op)) continue;
    EXPECT_EQ(statement_op(op).code, op);
  }
  EXPECT_TRUE(is<OnReduction>(OpCode::kScan));
  EXPECT_FALSE(is<OnReduction>(OpCode::kFor));
}

// The walk over a kernel with nested statements, as names.
std::vector<std::string> walk(const Kernel& kernel) {
  std::vector<std::string> names;
  for_each_node(kernel, kernel.body,
                [&](const Node& node) { names.emplace_back(op_name(node.op)); });
  return names;
}

TEST(Visitor, WalksInTheOrderOfTheText) {
  const auto kernel = parse(
      "kernel @k(%x: in f32[8], %y: out f32[8]) index s32 grid() {\n"
      "  lanes(%i: 8) {\n"
      "    %v = load %x[%i] : f32\n"
      "    %c = gt %v, 0.0 : f32\n"
      "    %r = if %c : f32 {\n"
      "      %w = neg %v : f32\n"
      "      yield %w\n"
      "    } else {\n"
      "      yield %v\n"
      "    }\n"
      "    store %r, %y[%i] : f32\n"
      "  }\n"
      "}\n",
      "k");
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const std::vector<std::string> expected = {"lanes", "load",  "gt",    "if",   "neg",
                                             "yield", "yield", "store", "yield"};
  std::vector<std::string> names = walk(*kernel);
  // A body may end in a yield without values.
  names.resize(std::min(names.size(), expected.size() - 1));
  EXPECT_EQ(names, std::vector<std::string>(expected.begin(), expected.end() - 1));

  std::vector<std::string> asked;
  EXPECT_TRUE(any_node(*kernel, kernel->body, [&](const Node& node) {
    asked.emplace_back(op_name(node.op));
    return node.op == OpCode::kNeg;
  }));
  EXPECT_EQ(asked, (std::vector<std::string>{"lanes", "load", "gt", "if", "neg"}));
  EXPECT_FALSE(
      any_node(*kernel, kernel->body, [](const Node& node) { return node.op == OpCode::kAtomic; }));
}

TEST(Visitor, IndicesOfAnAccess) {
  Node node;
  node.operands = {7, 8, 9};
  node.op = OpCode::kLoad;
  EXPECT_EQ(indices_of(node).size(), 3u);
  node.op = OpCode::kAtomic;
  ASSERT_EQ(indices_of(node).size(), 2u);
  EXPECT_EQ(indices_of(node)[0], 8u);
}

}  // namespace
}  // namespace tenon::kernel
