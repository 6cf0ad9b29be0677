#include "hlo/ir/instruction.h"

#include <gtest/gtest.h>

#include "core/base/random.h"

#include <algorithm>

namespace tenon::hlo {
namespace {

using enum ElementType;
const Type kScalar = Type::tensor(kF32, {});

Instruction* append(Computation& into, OpCode code, const std::vector<Value>& operands,
                    size_t results = 1) {
  return into.insert(
      std::make_unique<Instruction>(code, operands, std::vector<Type>(results, kScalar)));
}

// Checks that every use is listed exactly once at its definition, and every listed use exists.
void check_uses(const Computation& c) {
  std::vector<const Instruction*> all;
  for (size_t i = 0; i < c.parameter_count(); ++i) all.push_back(c.parameter(i).def);
  for (const Instruction& op : c) all.push_back(&op);
  for (const Instruction* op : all) {
    for (const Use& use : op->uses()) EXPECT_EQ(use.user->operand(use.operand).def, op);
    for (uint32_t i = 0; i < op->operand_count(); ++i) {
      const std::vector<Use>& uses = op->operand(i).def->uses();
      EXPECT_EQ(std::count(uses.begin(), uses.end(), Use{const_cast<Instruction*>(op), i}), 1);
    }
  }
}

struct Graph : testing::Test {
  Graph() {
    f = &module.add_function("f");
    x = f->add_parameter(kScalar);
    y = f->add_parameter(kScalar);
  }
  Module module;
  Computation* f = nullptr;
  Value x, y;
};

TEST_F(Graph, OneValueUsedTwiceHasTwoUses) {
  const Instruction* add = append(*f, OpCode::kAdd, {x, x});
  EXPECT_EQ(x.def->uses().size(), 2u);
  EXPECT_EQ(add->operands(), (std::vector<Value>{x, x}));
  check_uses(*f);
}

TEST_F(Graph, SetOperandMovesTheUse) {
  Instruction* add = append(*f, OpCode::kAdd, {x, x});
  add->set_operand(0, y);
  EXPECT_EQ(x.def->uses().size(), 1u);
  EXPECT_EQ(y.def->uses().size(), 1u);
  check_uses(*f);
}

TEST_F(Graph, SetOperandsReplacesAll) {
  Instruction* add = append(*f, OpCode::kAdd, {x, x});
  append(*f, OpCode::kAdd, {x, y});
  add->set_operands({y, y});
  EXPECT_EQ(x.def->uses().size(), 1u);
  EXPECT_EQ(y.def->uses().size(), 3u);
  check_uses(*f);
}

TEST_F(Graph, ReplaceUsesLeavesOtherResultsAlone) {
  Instruction* loop = append(*f, OpCode::kOptimizationBarrier, {x, y}, 2);
  Instruction* add = append(*f, OpCode::kAdd, {loop->result(0), loop->result(1)});
  Instruction* neg = append(*f, OpCode::kNegate, {loop->result(1)});
  loop->replace_uses(1, y);
  EXPECT_EQ(add->operand(0), loop->result(0));
  EXPECT_EQ(add->operand(1), y);
  EXPECT_EQ(neg->operand(0), y);
  EXPECT_TRUE(loop->has_uses(0));
  EXPECT_FALSE(loop->has_uses(1));
  check_uses(*f);
}

TEST_F(Graph, ReplacingAValueByItselfKeepsItsUses) {
  append(*f, OpCode::kAdd, {x, x});
  x.def->replace_uses(0, x);
  EXPECT_EQ(x.def->uses().size(), 2u);
  check_uses(*f);
}

TEST_F(Graph, ManyUsesInAnyOrder) {
  std::vector<Instruction*> ops;
  for (int i = 0; i < 50; ++i) ops.push_back(append(*f, OpCode::kAdd, {x, i % 3 == 0 ? x : y}));
  for (int i = 0; i < 50; i += 7) ops[size_t(i)]->set_operand(1, y);
  for (int i = 48; i >= 0; i -= 5) f->erase(ops[size_t(i)]);
  check_uses(*f);
}

TEST_F(Graph, EraseDropsUsesAndUnlinks) {
  Instruction* first = append(*f, OpCode::kNegate, {x});
  Instruction* second = append(*f, OpCode::kNegate, {y});
  Instruction* third = append(*f, OpCode::kNegate, {x});
  f->erase(second);
  EXPECT_TRUE(y.def->uses().empty());
  EXPECT_EQ(first->next(), third);
  EXPECT_EQ(third->previous(), first);
  f->erase(first);
  EXPECT_EQ(f->first(), third);
  f->erase(third);
  EXPECT_TRUE(f->empty());
  EXPECT_EQ(f->last(), nullptr);
}

TEST_F(Graph, InsertBeforeKeepsTheOrder) {
  Instruction* last = append(*f, OpCode::kNegate, {x});
  Instruction* first = f->insert(std::make_unique<Instruction>(OpCode::kAbs, std::vector<Value>{x},
                                                               std::vector<Type>{kScalar}),
                                 last);
  EXPECT_EQ(f->first(), first);
  EXPECT_EQ(first->next(), last);
  EXPECT_EQ(f->last(), last);
}

TEST_F(Graph, TakeDetaches) {
  Instruction* op = append(*f, OpCode::kNegate, {x});
  const std::unique_ptr<Instruction> taken = f->take(op);
  EXPECT_EQ(taken->parent(), nullptr);
  EXPECT_TRUE(f->empty());
  EXPECT_EQ(x.def->uses().size(), 1u);
}

TEST_F(Graph, RegionsUseOuterValues) {
  Instruction* branch = append(*f, OpCode::kIf, {x});
  Computation& region = branch->add_region();
  Instruction* inner = append(region, OpCode::kNegate, {y});
  append(region, OpCode::kReturn, {inner->result()}, 0);
  EXPECT_EQ(region.owner(), branch);
  EXPECT_EQ(region.module(), &module);
  EXPECT_FALSE(region.is_function());
  EXPECT_EQ(region.result_types(), std::vector<Type>{kScalar});
  EXPECT_EQ(y.def->uses().size(), 1u);
  f->erase(branch);
  EXPECT_TRUE(y.def->uses().empty());
}

TEST_F(Graph, DestructionOrderDoesNotMatter) {
  // A deeply nested region uses values of every enclosing level.
  Computation* at = f;
  std::vector<Value> seen = {x};
  for (int depth = 0; depth < 20; ++depth) {
    Instruction* neg = append(*at, OpCode::kNegate, {seen.back()});
    seen.push_back(neg->result());
    Instruction* branch = append(*at, OpCode::kIf, {seen.front()});
    at = &branch->add_region();
    append(*at, OpCode::kAdd, {seen[size_t(depth) / 2], seen.back()});
  }
  SUCCEED();
}

TEST_F(Graph, ErasingAParameterTakesItsAttributes) {
  f->parameter_attributes() = {Dict{{"a", Attribute("x")}}, Dict{{"a", Attribute("y")}}};
  f->erase_parameter(0);
  ASSERT_EQ(f->parameter_count(), 1u);
  EXPECT_EQ(f->parameter(0), y);
  EXPECT_EQ(f->parameter_attributes(), (std::vector<Dict>{Dict{{"a", Attribute("y")}}}));
}

TEST_F(Graph, ReturnIsTheLastInstructionOnly) {
  EXPECT_EQ(f->return_instruction(), nullptr);
  Instruction* end = append(*f, OpCode::kReturn, {x}, 0);
  EXPECT_EQ(f->return_instruction(), end);
  append(*f, OpCode::kNegate, {x});
  EXPECT_EQ(f->return_instruction(), nullptr);
}

TEST(Attributes, AreOrderedByKeyWhateverTheOrderOfSetting) {
  Attributes a;
  a.set(AttrKey::padding, Attribute(int64_t{1}));
  a.set(AttrKey::dimension, Attribute(int64_t{2}));
  Attributes b;
  b.set(AttrKey::dimension, Attribute(int64_t{5}));
  b.set(AttrKey::padding, Attribute(int64_t{1}));
  EXPECT_FALSE(a == b);
  b.set(AttrKey::dimension, Attribute(int64_t{2}));
  EXPECT_TRUE(a == b);
  b.erase(AttrKey::padding);
  EXPECT_EQ(b.find(AttrKey::padding), nullptr);
}

TEST(Instruction, AccessorsHaveFallbacks) {
  Instruction op(OpCode::kIota, {}, {kScalar});
  EXPECT_EQ(op.integer(AttrKey::iota_dimension, 7), 7);
  EXPECT_TRUE(op.flag(AttrKey::lower, true));
  EXPECT_TRUE(op.i64s(AttrKey::dimensions).empty());
  EXPECT_EQ(op.i64s_or(AttrKey::window_strides, 2, 1), (I64s{1, 1}));
  EXPECT_EQ(op.padding_or_zero(2), (I64Matrix{2, 2, {0, 0, 0, 0}}));
  EXPECT_EQ(op.text(AttrKey::name), "");
  op.mutable_attributes().set(AttrKey::callee, Attribute(SymbolAttr{"g"}));
  EXPECT_EQ(op.text(AttrKey::callee), "g");
}

TEST_F(Graph, SideEffects) {
  EXPECT_FALSE(append(*f, OpCode::kAdd, {x, y})->has_side_effect());
  EXPECT_TRUE(append(*f, OpCode::kOutfeed, {x})->has_side_effect());
  Instruction* call = append(*f, OpCode::kCustomCall, {x});
  EXPECT_FALSE(call->has_side_effect());
  call->mutable_attributes().set(AttrKey::has_side_effect, Attribute(true));
  EXPECT_TRUE(call->has_side_effect());
  Instruction* branch = append(*f, OpCode::kIf, {x});
  Computation& region = branch->add_region();
  EXPECT_FALSE(branch->has_side_effect());
  append(region, OpCode::kOutfeed, {x});
  EXPECT_TRUE(branch->has_side_effect());
}

TEST_F(Graph, OrderedOps) {
  EXPECT_FALSE(append(*f, OpCode::kAdd, {x, y})->is_ordered());
  EXPECT_TRUE(append(*f, OpCode::kOutfeed, {x})->is_ordered());
  EXPECT_TRUE(append(*f, OpCode::kOptimizationBarrier, {x})->is_ordered());
  EXPECT_TRUE(append(*f, OpCode::kAllReduce, {x})->is_ordered());
  Instruction* branch = append(*f, OpCode::kIf, {x});
  Computation& outer = branch->add_region();
  Instruction* nested = append(outer, OpCode::kIf, {x});
  Computation& inner = nested->add_region();
  EXPECT_FALSE(branch->is_ordered());
  append(inner, OpCode::kAllReduce, {x});
  EXPECT_TRUE(branch->is_ordered());
  // Others take part.
  EXPECT_TRUE(branch->has_side_effect());
}

// Positions follow the list however instructions are inserted, taken and moved.
TEST_F(Graph, PositionsFollowTheList) {
  Random random(1);
  std::vector<Instruction*> ops = {append(*f, OpCode::kAdd, {x, y})};
  const auto is_in_order = [&] {
    for (const Instruction& op : *f) {
      if (op.next() != nullptr && !op.comes_before(*op.next())) return false;
    }
    return true;
  };
  Instruction* const first = ops[0];
  for (int i = 0; i < 4000; ++i) {
    const auto any = [&] {
      return ops[static_cast<size_t>(random.below(static_cast<int64_t>(ops.size())))];
    };
    if (random.one_in(3)) {
      Instruction* const moved = any();
      Instruction* const before = any();
      if (moved == before) continue;
      f->insert(f->take(moved), before);
    } else {
      // Many insertions at the same point, where free positions run out.
      auto made = std::make_unique<Instruction>(OpCode::kAdd, std::vector<Value>{x, y},
                                                std::vector<Type>{x.type()});
      Instruction* const before = i % 1000 < 500 ? f->first() : (i % 2 == 0 ? first : any());
      ops.push_back(f->insert(std::move(made), i % 7 == 0 ? nullptr : before));
    }
    if (i % 100 == 0) {
      ASSERT_TRUE(is_in_order()) << i;
    }
  }
  EXPECT_TRUE(is_in_order());
}

TEST_F(Graph, ConstraintErrorsNameOpAndRule) {
  Instruction* op = append(*f, OpCode::kAdd, {x, y});
  op->set_location(file_location("f.mlir", 3, 4));
  const Status status = constraint_error(*op, "C1", "found {}", 5);
  EXPECT_EQ(status.to_string(), "f.mlir:3:4: error: stablehlo.add: C1: found 5");
}

}  // namespace
}  // namespace tenon::hlo
