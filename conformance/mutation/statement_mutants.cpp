// Mutants of the statements of kernels, and of how they access memory.
#include <algorithm>
#include <utility>

#include "conformance/mutation/kernel_editor.h"
#include "conformance/mutation/mutants.h"

namespace tenon::conformance {
namespace {

using kernel::AtomicKind;
using kernel::BlockId;
using kernel::Memory;
using kernel::Node;
using kernel::OpCode;
using kernel::ValueId;
using enum ElementType;

struct StatementMutant {
  std::string_view name;
  std::string_view text;
  std::string_view likely;  ///< Beside the cases of statements.
  OpCode op;
  bool (*change)(KernelEditor& editor, Node& node);
};

// --- Loops

bool drops_last_iteration(KernelEditor&, Node& node) {
  if (node.extents.empty() || node.extents.back() < 2) return false;
  --node.extents.back();
  return true;
}

bool turns_one_less(KernelEditor& e, Node& node) {
  const int64_t step = node.extents[0];
  ValueId& high = node.operands[1];
  if (e.kernel().is_constant(high)) {
    high = e.index(static_cast<int64_t>(e.kernel().value(high).bits) - step);
  } else {
    high = e.emit(OpCode::kSub, e.index_type(), {high, e.index(step)});
  }
  return true;
}

bool doubles_step(KernelEditor&, Node& node) {
  node.extents[0] *= 2;
  return true;
}

bool loses_carried(KernelEditor& e, Node& node) {
  const std::vector<ValueId> arguments = e.block(node.blocks[0]).arguments;
  for (size_t i = 1; i < arguments.size(); ++i) e.replace_uses(arguments[i], node.operands[i + 1]);
  return arguments.size() > 1;
}

bool never_turns(KernelEditor& e, Node& node) {
  e.last_of(node.blocks[0]).operands[0] = e.constant(kPred, 0);
  return true;
}

// Carries one more value through a while loop; returns it in the condition and in the body.
std::pair<ValueId, ValueId> carry(KernelEditor& e, Node& node, ElementType type, ValueId init) {
  node.operands.push_back(init);
  e.add_result(node, type);
  return {e.new_argument(node.blocks[0], type), e.new_argument(node.blocks[1], type)};
}

// Makes the loop go on while `combine(it did, more)`.
void change_condition(KernelEditor& e, const Node& node, OpCode combine, ValueId more) {
  Node yield = e.last_of(node.blocks[0]);
  const ValueId go = e.emit(combine, kPred, {yield.operands[0], more});
  yield.operands[0] = go;
  std::vector<kernel::NodeId>& nodes = e.block(node.blocks[0]).nodes;
  nodes.pop_back();
  e.append_emitted(node.blocks[0]);
  e.append(node.blocks[0], std::move(yield));
}

bool turns_at_least_once(KernelEditor& e, Node& node) {
  const auto [in_condition, in_body] = carry(e, node, kPred, e.constant(kPred, 1));
  change_condition(e, node, OpCode::kOr, in_condition);
  e.last_of(node.blocks[1]).operands.push_back(e.constant(kPred, 0));
  return true;
}

bool turns_at_most_seven_times(KernelEditor& e, Node& node) {
  const auto [in_condition, in_body] = carry(e, node, kS32, e.constant(kS32, 0));
  const ValueId few = e.compare(OpCode::kLt, in_condition, e.constant(kS32, 7));
  change_condition(e, node, OpCode::kAnd, few);
  const ValueId next = e.emit(OpCode::kAdd, kS32, {in_body, e.constant(kS32, 1)});
  e.move_emitted(node.blocks[1]);
  e.last_of(node.blocks[1]).operands.push_back(next);
  return true;
}

bool is_inverted(KernelEditor&, Node& node) {
  std::swap(node.blocks[0], node.blocks[1]);
  return true;
}

bool always_holds(KernelEditor& e, Node& node) {
  node.operands[0] = e.constant(kPred, 1);
  return true;
}

// --- Reductions

bool ignores_init(KernelEditor& e, Node& node) {
  bool changed = false;
  for (ValueId& init : node.operands) {
    if (e.is_constant(init, 0)) continue;
    init = e.constant(e.type_of(init), 0);
    changed = true;
  }
  return changed;
}

bool swaps_sides(KernelEditor& e, Node& node) {
  if (node.commutative) return false;
  std::vector<ValueId>& arguments = e.block(node.blocks[1]).arguments;
  const auto half = static_cast<int64_t>(arguments.size() / 2);
  std::swap_ranges(arguments.begin(), arguments.begin() + half, arguments.begin() + half);
  return true;
}

// Iteration i takes the leaf of i - 1, the first its own.
bool shifts_leaves(KernelEditor& e, Node& node) {
  const BlockId leaf = node.blocks[0];
  const ValueId k = e.block(leaf).arguments[0];
  const ValueId shifted = e.constant(e.index_type(), 0);  // Stands for k until uses are replaced.
  e.replace_uses(k, shifted);
  const ValueId less = e.emit(OpCode::kSub, e.index_type(),
                              {e.emit(OpCode::kMax, e.index_type(), {k, e.index(1)}), e.index(1)});
  e.replace_uses(shifted, less);
  e.move_emitted(leaf);
  return true;
}

// --- Tiles

bool loses_pad(KernelEditor& e, Node& node) {
  if (!node.has_pad || e.is_constant(node.operands.back(), 0)) return false;
  node.operands.back() = e.constant(e.type_of(node.operands.back()), 0);
  return true;
}

bool loses_clip(KernelEditor&, Node& node) { return std::exchange(node.clip, false); }

bool loses_transpose_of_copy(KernelEditor&, Node& node) {
  const auto half = static_cast<int64_t>(node.by.size() / 2);
  if (std::equal(node.by.begin(), node.by.begin() + half, node.by.begin() + half)) return false;
  std::ranges::copy(node.by.begin() + half, node.by.end(), node.by.begin());
  return true;
}

bool adds_twice(KernelEditor& e, Node& node) {
  e.emit_node(node);
  return true;
}

// Writes zeros to the tile first.
bool overwrites(KernelEditor& e, Node& node) {
  const kernel::MemoryId c = node.memories[0];
  const Memory& memory = e.memory(c);
  const size_t rank = memory.dims.size();
  if (memory.space == kernel::Space::kPrivate) return false;
  const ElementType type = memory.type;
  const BlockId body = e.new_block({e.index_type(), e.index_type()});
  Node store;
  store.op = OpCode::kStore;
  store.type = type;
  store.memories = {c};
  store.operands = {e.constant(type, 0)};
  for (size_t i = 0; i < rank; ++i) {
    const bool runs = i + 2 >= rank;
    store.operands.push_back(runs
                                 ? e.emit(OpCode::kAdd, e.index_type(),
                                          {node.operands[i], e.block(body).arguments[i + 2 - rank]})
                                 : node.operands[i]);
  }
  e.move_emitted(body);
  e.append(body, std::move(store));
  Node lanes;
  lanes.op = OpCode::kLanes;
  lanes.extents = {node.extents[0], node.extents[1]};
  lanes.blocks = {body};
  e.emit_node(std::move(lanes));
  return true;
}

bool loses_transpose(KernelEditor&, Node& node) {
  return std::exchange(node.transpose_a, false) || std::exchange(node.transpose_b, false);
}

// --- Memory

// The index of the last dimension, if it may be changed; null else.
ValueId* last_index(KernelEditor& e, Node& node) {
  const Memory& memory = e.memory(node.memories[0]);
  if (memory.space == kernel::Space::kPrivate) return nullptr;
  return memory.dims.empty() || memory.dims.back() < 2 ? nullptr : &node.operands.back();
}

bool loads_the_next(KernelEditor& e, Node& node) {
  ValueId* const last = last_index(e, node);
  if (last == nullptr) return false;
  const int64_t size = e.memory(node.memories[0]).dims.back();
  const ValueId least = e.emit(OpCode::kMin, e.index_type(), {*last, e.index(size - 2)});
  *last = e.emit(OpCode::kAdd, e.index_type(), {least, e.index(1)});
  return true;
}

bool loads_the_first(KernelEditor& e, Node& node) {
  ValueId* const last = last_index(e, node);
  if (last == nullptr || e.is_constant(*last, 0)) return false;
  *last = e.index(0);
  return true;
}

bool takes_high_bits_first(KernelEditor& e, Node& node) {
  const Memory& memory = e.memory(node.memories[0]);
  if (!memory.packed) return false;
  const int64_t in_a_byte = 8 / bit_width(memory.type);
  const ValueId other =
      e.emit(OpCode::kXor, e.index_type(), {node.operands.back(), e.index(in_a_byte - 1)});
  const ValueId from = e.emit(OpCode::kMax, e.index_type(), {other, e.index(0)});
  node.operands.back() =
      e.emit(OpCode::kMin, e.index_type(), {from, e.index(memory.dims.back() - 1)});
  return true;
}

bool skips_the_last(KernelEditor& e, Node& node) {
  ValueId* const last = last_index(e, node);
  if (last == nullptr) return false;
  const ValueId inside =
      e.compare(OpCode::kNe, *last, e.index(e.memory(node.memories[0]).dims.back() - 1));
  Node conditional;
  conditional.op = OpCode::kIf;
  conditional.operands = {inside};
  conditional.blocks = {e.new_block({}), e.new_block({})};
  e.append(conditional.blocks[0], node);
  node = std::move(conditional);
  return true;
}

bool stores_16_bits(KernelEditor& e, Node& node) {
  if (node.type != kS32 && node.type != kU32) return false;
  node.operands[0] =
      e.emit(OpCode::kAnd, node.type, {node.operands[0], e.constant(node.type, 0xFFFF)});
  return true;
}

bool stores_bf16(KernelEditor& e, Node& node) {
  if (node.type != kF32) return false;
  node.operands[0] = e.convert(e.convert(node.operands[0], kBF16), kF32);
  return true;
}

bool flips_last_bit(KernelEditor& e, Node& node) {
  const auto bits = integer_of_width(bit_width(node.type), false);
  if (!bits || is_pred(node.type)) return false;
  const bool is_bits = node.type == *bits;
  const ValueId pattern = is_bits ? node.operands[0] : e.bitcast(node.operands[0], *bits);
  const ValueId flipped = e.emit(OpCode::kXor, *bits, {pattern, e.constant(*bits, 1)});
  node.operands[0] = is_bits ? flipped : e.bitcast(flipped, node.type);
  return true;
}

bool inverts_pred(KernelEditor& e, Node& node) {
  if (!is_pred(node.type)) return false;
  node.operands[0] = e.emit(OpCode::kNot, kPred, {node.operands[0]});
  return true;
}

template <AtomicKind kFrom, AtomicKind kTo>
bool combines_by_another(KernelEditor&, Node& node) {
  if (node.atomic != kFrom) return false;
  node.atomic = kTo;
  return true;
}

constexpr StatementMutant kStatements[] = {
    {"kernel/lanes/one_short", "lanes leave out the last one", "op/add/*", OpCode::kLanes,
     drops_last_iteration},
    {"kernel/reduce/ignores_init", "reduce takes its init as 0", "op/reduce/*", OpCode::kReduce,
     ignores_init},
    {"kernel/reduce/skips_last_leaf", "reduce leaves out the last leaf", "op/reduce/*",
     OpCode::kReduce, drops_last_iteration},
    {"kernel/reduce/swaps_sides", "reduce combines its sides in the wrong order", "op/reduce/*",
     OpCode::kReduce, swaps_sides},
    {"kernel/scan/ignores_init", "scan takes its init as 0", "pattern/cumulative*", OpCode::kScan,
     ignores_init},
    {"kernel/scan/skips_last", "scan leaves out the last iteration", "pattern/cumulative*",
     OpCode::kScan, drops_last_iteration},
    {"kernel/scan/swaps_sides", "scan combines its sides in the wrong order", "pattern/cumulative*",
     OpCode::kScan, swaps_sides},
    {"kernel/scan/shifts_leaves", "scan takes each leaf one iteration late", "pattern/cumulative*",
     OpCode::kScan, shifts_leaves},
    {"kernel/for/one_turn_less", "for loops have one turn less", "op/dot_general/*", OpCode::kFor,
     turns_one_less},
    {"kernel/for/doubles_step", "for loops skip every second turn", "op/dot_general/*",
     OpCode::kFor, doubles_step},
    {"kernel/for/loses_carried", "for loops carry their inits", "op/dot_general/*", OpCode::kFor,
     loses_carried},
    {"kernel/if/inverted", "if takes the other branch", "op/clamp/*", OpCode::kIf, is_inverted},
    {"kernel/if/always_holds", "if takes its first branch", "op/clamp/*", OpCode::kIf,
     always_holds},
    {"kernel/while/never_turns", "while loops have no turn", "op/while/*", OpCode::kWhile,
     never_turns},
    {"kernel/while/turns_at_least_once", "while loops test behind the first turn", "op/while/*",
     OpCode::kWhile, turns_at_least_once},
    {"kernel/while/turns_at_most_seven_times", "while loops end after seven turns", "op/while/*",
     OpCode::kWhile, turns_at_most_seven_times},
    {"kernel/copy/is_one_short", "copy leaves out the last of its box", "op/dot_general/*",
     OpCode::kCopy, drops_last_iteration},
    {"kernel/copy/loses_pad", "copy pads with 0", "op/pad/*", OpCode::kCopy, loses_pad},
    {"kernel/copy/loses_clip", "copy does not clip", "op/transpose/*", OpCode::kCopy, loses_clip},
    {"kernel/copy/loses_transpose", "copy does not transpose", "op/transpose/*", OpCode::kCopy,
     loses_transpose_of_copy},
    {"kernel/contract/adds_twice", "contract adds each product twice", "op/dot_general/*",
     OpCode::kContract, adds_twice},
    {"kernel/contract/overwrites", "contract does not add to what there is", "op/dot_general/*",
     OpCode::kContract, overwrites},
    {"kernel/contract/loses_transpose", "contract does not transpose", "op/dot_general/*",
     OpCode::kContract, loses_transpose},
    {"kernel/contract/skips_last", "contract leaves out the last product", "op/dot_general/*",
     OpCode::kContract, drops_last_iteration},
    {"kernel/atomic/add_is_or", "atomic add is or", "op/scatter/*", OpCode::kAtomic,
     combines_by_another<AtomicKind::kAdd, AtomicKind::kOr>},
    {"kernel/atomic/add_keeps_greatest", "atomic add is max", "op/scatter/*", OpCode::kAtomic,
     combines_by_another<AtomicKind::kAdd, AtomicKind::kMax>},
    {"kernel/atomic/min_is_max", "atomic min is max", "op/scatter/*", OpCode::kAtomic,
     combines_by_another<AtomicKind::kMin, AtomicKind::kMax>},
    {"kernel/atomic/max_is_min", "atomic max is min", "op/scatter/*", OpCode::kAtomic,
     combines_by_another<AtomicKind::kMax, AtomicKind::kMin>},
    {"kernel/atomic/and_is_or", "atomic and is or", "op/scatter/*", OpCode::kAtomic,
     combines_by_another<AtomicKind::kAnd, AtomicKind::kOr>},
    {"kernel/atomic/or_is_xor", "atomic or is xor", "op/scatter/*", OpCode::kAtomic,
     combines_by_another<AtomicKind::kOr, AtomicKind::kXor>},
    {"kernel/atomic/xor_is_or", "atomic xor is or", "op/scatter/*", OpCode::kAtomic,
     combines_by_another<AtomicKind::kXor, AtomicKind::kOr>},
    {"kernel/load/index_off_by_one", "load takes the next element of a row", "op/add/*",
     OpCode::kLoad, loads_the_next},
    {"kernel/load/takes_the_first", "load takes the first element of a row", "op/add/*",
     OpCode::kLoad, loads_the_first},
    {"kernel/load/packed_high_bits_first", "load of packed elements takes high bits first",
     "kernel/K9/*", OpCode::kLoad, takes_high_bits_first},
    {"kernel/store/skips_the_last", "store leaves out the last element of a row", "op/add/*",
     OpCode::kStore, skips_the_last},
    {"kernel/store/is_16_bits_wide", "store of 32-bit integers stores 16 bits", "op/add/*",
     OpCode::kStore, stores_16_bits},
    {"kernel/store/f32_as_bf16", "store of f32 rounds to bf16", "op/add/*", OpCode::kStore,
     stores_bf16},
    {"kernel/store/flips_last_bit", "store flips the last bit", "op/add/*", OpCode::kStore,
     flips_last_bit},
    {"kernel/store/inverts_pred", "store of pred stores the opposite", "op/compare/*",
     OpCode::kStore, inverts_pred},
};

// --- The grid and the buffers, which are no statements

constexpr std::string_view kGridOneShort = "kernel/grid/one_short";
constexpr std::string_view kIgnoresStrides = "kernel/buffer/ignores_strides";

int64_t shorten_grid(KernelEditor& e) {
  const auto last = std::ranges::find_if(e.grid(), [](int64_t size) { return size > 1; });
  if (last == e.grid().end()) return 0;
  --*last;
  return 1;
}

int64_t drop_strides(KernelEditor& e) {
  int64_t changed = 0;
  for (size_t i = 0; i < e.kernel().buffer_count; ++i) {
    Dims& strides = e.memory(static_cast<kernel::MemoryId>(i)).strides;
    if (!std::exchange(strides, {}).empty()) ++changed;
  }
  return changed;
}

std::vector<Mutant> statement_mutants() {
  constexpr const char* kCases[] = {"kernel/statement/*", "kernel/K*"};
  const auto mutant = [&](std::string_view name, std::string_view text, std::string_view likely) {
    return Mutant{
        std::string(name), std::string(text), {kCases[0], kCases[1], std::string(likely)}};
  };
  std::vector<Mutant> list;
  for (const StatementMutant& each : kStatements)
    list.push_back(mutant(each.name, each.text, each.likely));
  list.push_back(mutant(kGridOneShort, "the grid leaves out the last workgroups", "op/add/*"));
  list.push_back(mutant(kIgnoresStrides, "the strides of a buffer are ignored", "op/transpose/*"));
  return list;
}

int64_t change_statements(KernelEditor& editor, const std::string& mutant) {
  if (mutant == kGridOneShort) return shorten_grid(editor);
  if (mutant == kIgnoresStrides) return drop_strides(editor);
  const auto* const found = std::ranges::find(kStatements, mutant, &StatementMutant::name);
  if (found == std::end(kStatements)) return 0;
  return editor.apply(
      [&](KernelEditor& e, Node& node) { return node.op == found->op && found->change(e, node); });
}

}  // namespace

const KernelMutants kStatementMutants = {statement_mutants, change_statements};

}  // namespace tenon::conformance
