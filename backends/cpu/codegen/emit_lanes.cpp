// Lanes loops as loops over vectors.
#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "backends/cpu/codegen/emitter.h"
#include "backends/llvm/abreast.h"
#include "backends/llvm/operations.h"
#include "core/kernel/analysis/slope.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::cpu {

using kernel::Block;
using kernel::BlockId;
using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;

namespace {

constexpr int64_t kLeastFlat = 8;  // Elements from which vectors are along the last dimension.
constexpr size_t kMostNodesAbreast = 120;     // for vectors of several registers
constexpr size_t kMostNodesFourAbreast = 60;  // with sixteen registers
// The same, of values that few registers hold.
constexpr size_t kFewestNodesOfChain = 20, kMostNodesOfChain = 400;
constexpr size_t kMostNodesInOrder = 1000;  // of a kernel
constexpr size_t kFewestNodesAnAccess = 4;  // for four vectors, which would wait for memory
constexpr size_t kMostAccessesAbreast = 12, kFewestNodesOfMany = 8;  // an access
constexpr int64_t kFewestOfRow = 8, kMostOfRow = 32;  // of rows in vectors of one register
constexpr size_t kMostNodes = 4000;                   // in vectors
constexpr size_t kMostUnrolled = 16;                  // iterations of an unrolled loop
constexpr size_t kMostNodesUnrolled = 400;
constexpr size_t kMostNodesTwice = 200;  // for a loop without a mask in addition to the masked one

}  // namespace

// Along the last dimension, in which adjacent elements are mostly adjacent in memory, unless it is
// short.
CpuKernelEmitter::VectorPlan CpuKernelEmitter::plan_of(const Node& n) {
  if (n.extents.empty()) return {};
  VectorPlan plan;
  plan.dimension = n.extents.size() - 1;
  for (size_t d = 0; d < n.extents.size(); ++d) {
    if (n.extents[plan.dimension] < kLeastFlat && n.extents[d] > n.extents[plan.dimension]) {
      plan.dimension = d;
    }
  }
  const int64_t extent = n.extents[plan.dimension];
  if (extent < 2) return plan;
  const Varying varying(kernel_, n, {kernel_.block(n.blocks[0]).arguments[plan.dimension]});
  if (!varying.together() || varying.nodes() > kMostNodes) return plan;
  const int64_t widest = varying.widest_of_many();
  const int64_t element = widest == 0 ? 4 : widest;
  const auto most = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  const int64_t in_register = std::max<int64_t>(vector_bytes_ / element, 1);
  const Abreast abreast = abreast_of(n, varying, extent, in_register);
  // A mask takes a byte a lane, and LLVM keeps one of several registers as so many scalars.
  plan.width = std::max<int64_t>(std::min({in_register * abreast.vectors, most, vector_bytes_}), 1);
  plan.keeps_order = abreast.keeps_order && plan.width > in_register;
  return plan;
}

// Appends the nodes of a block and of those that conditions of whole bodies contain; false if there
// are other blocks.
bool CpuKernelEmitter::flatten(BlockId block, std::vector<NodeId>& nodes) const {
  for (const NodeId id : kernel_.block(block).nodes) {
    const Node& n = kernel_.node(id);
    nodes.push_back(id);
    if (n.blocks.empty()) continue;
    if (n.op != OpCode::kIf || !n.results.empty()) return false;
    for (const BlockId inner : n.blocks) {
      if (!flatten(inner, nodes)) return false;
    }
  }
  return true;
}

// The greatest number of vectors that a body of operations and conditions alone holds at a time,
// but for those within math functions.
std::optional<size_t> CpuKernelEmitter::most_live(const Node& lanes, const Varying& varying) const {
  std::vector<NodeId> nodes;
  if (!flatten(lanes.blocks[0], nodes)) return {};
  std::unordered_map<ValueId, size_t> last;  // The node that uses a value last.
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const ValueId operand : kernel_.node(nodes[i]).operands) last[operand] = i;
  }
  std::unordered_set<ValueId> live;
  size_t most = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& n = kernel_.node(nodes[i]);
    for (const ValueId result : n.results) {
      if (varying(result) && last.contains(result)) live.insert(result);
    }
    most = std::max(most, live.size());
    for (const ValueId operand : n.operands) {
      if (last[operand] == i) live.erase(operand);
    }
  }
  return most;
}

// How many vectors of one register a loop computes at a time: operations of several overlap, where
// one has to wait for its own last result. Spilling a few of many costs less than that.
CpuKernelEmitter::Abreast CpuKernelEmitter::abreast_of(const Node& n, const Varying& varying,
                                                       int64_t extent, int64_t in_register) const {
  if (n.op != OpCode::kLanes || varying.nodes() > kMostNodesOfChain) return {};
  const bool moves = varying.nodes() < kFewestNodesOfMany * varying.accesses();
  if ((moves && varying.accesses() > kMostAccessesAbreast) || reduces_rows(n)) return {};
  const bool is_wide = vector_bytes_ >= 64;
  const size_t registers = is_wide ? 32 : 16;
  const auto live = most_live(n, varying);
  const bool are_few = live && *live <= registers * 3 / 4;
  const bool is_short = varying.nodes() <= kMostNodesAbreast;
  const bool is_quick = varying.has_short_functions() && varying.nodes() <= kMostNodesFourAbreast;
  if ((is_short && is_wide) || is_quick) return {4, are_few};
  if (!live || *live > registers) return {is_short ? 2 : 1, false};
  if (varying.nodes() < kFewestNodesOfChain) return {2, true};
  const int64_t rest = extent % (4 * in_register);
  const bool wastes = rest != 0 && 4 * in_register - rest > extent / 4;
  const bool waits = varying.nodes() >= kFewestNodesAnAccess * varying.accesses();
  return {are_few && waits && !wastes && !varying.has_wide_functions() ? 4 : 2, true};
}

// Whether a few shuffles of each vector take rows of leaves apart, which are more than a few.
bool CpuKernelEmitter::has_row_of_leaves(const Node& reduce) const {
  const int64_t count = element_count(reduce.extents);
  return count >= kFewestOfRow && is_tiny(reduce.extents, reduce.blocks[0], kMostOfRow);
}

// Whether a leaf for each of several elements of a row is loaded, which are so many vectors at
// once.
bool CpuKernelEmitter::reduces_rows(const Node& n) const {
  return kernel::any_node(kernel_, n.blocks[0], [&](const Node& each) {
    if (each.op != OpCode::kReduce || each.over_lanes || !has_row_of_leaves(each)) return false;
    kernel::Slopes along(kernel_, kernel_.block(each.blocks[0]).arguments.back());
    return kernel::any_node(kernel_, each.blocks[0], [&](const Node& load) {
      return load.op == OpCode::kLoad && along.of_place(load) == 1;
    });
  });
}

void CpuKernelEmitter::nest(const Ids& arguments, const Dims& extents, std::optional<size_t> except,
                            const std::function<void()>& body) {
  const std::function<void(size_t)> around = [&](size_t d) {
    if (d == except) ++d;
    if (d >= extents.size()) return body();
    loop(number(0), number(extents[d]), 1, [&](Value* i) {
      values_[arguments[d]] = index_from(i);
      around(d + 1);
    });
  };
  around(0);
}

// Memory with constant indices becomes registers.
bool CpuKernelEmitter::is_tiny(const Dims& extents, BlockId id, int64_t most) const {
  const auto count = static_cast<size_t>(element_count(extents));
  const bool short_ones = std::ranges::all_of(extents, [&](int64_t each) { return each <= most; });
  if (!short_ones || count > std::max(kMostUnrolled, static_cast<size_t>(most))) return false;
  size_t nodes = 0;
  for (const NodeId each : kernel_.block(id).nodes) {
    const Node& n = kernel_.node(each);
    const bool simple = kernel::is_scalar_op(n.op) && !kernel::is_math(n.op);
    if (n.op == OpCode::kReduce && !n.over_lanes && is_tiny(n.extents, n.blocks[0])) {
      nodes += static_cast<size_t>(element_count(n.extents)) *
               (kernel_.block(n.blocks[0]).nodes.size() + kernel_.block(n.blocks[1]).nodes.size());
    } else if (!simple && n.op != OpCode::kLoad && n.op != OpCode::kStore &&
               n.op != OpCode::kYield) {
      return false;
    }
    ++nodes;
  }
  return count * nodes <= kMostNodesUnrolled;
}

void CpuKernelEmitter::unrolled(const Ids& arguments, const Dims& extents,
                                const std::function<void()>& body) {
  const std::function<void(size_t)> around = [&](size_t d) {
    if (d == extents.size()) return body();
    for (int64_t i = 0; i < extents[d]; ++i) {
      values_[arguments[d]] = index_from(number(i));
      around(d + 1);
    }
  };
  around(0);
}

void CpuKernelEmitter::in_lanes(int64_t width, const Varying& varying,
                                const std::function<void()>& body) {
  const int64_t outer_width = std::exchange(width_, width);
  const Varying* const outer = std::exchange(varying_, &varying);
  body();
  width_ = outer_width;
  varying_ = outer;
}

namespace {

// The `if` that a body consists of, beside what its condition x < y needs.
struct Bound {
  NodeId branch = kernel::kNone;
  const Node* condition = nullptr;
};

std::optional<Bound> bound_of(const kernel::Kernel& kernel, const Block& body) {
  if (body.nodes.empty()) return {};
  Bound bound{body.nodes.back(), nullptr};
  const Node& branch = kernel.node(bound.branch);
  // A block ends with a yield.
  if (branch.op != OpCode::kIf || !branch.results.empty() ||
      kernel.block(branch.blocks[1]).nodes.size() > 1) {
    return {};
  }
  for (const NodeId id : body.nodes) {
    const Node& n = kernel.node(id);
    if (id == bound.branch) break;
    if (!kernel::is_scalar_op(n.op)) return {};
    if (n.results[0] == branch.operands[0]) bound.condition = &n;
  }
  const bool is_bound = bound.condition != nullptr && bound.condition->op == OpCode::kLt &&
                        kernel.value(bound.condition->operands[0]).type == kernel.index_type;
  return is_bound ? std::optional(bound) : std::nullopt;
}

// By how much `value` grows from one iteration of `lane` to the next, if that is constant.
std::optional<int64_t> growth(const kernel::Kernel& kernel, const Varying& varying,
                              const kernel::Ranges& ranges, const Block& block, ValueId value,
                              ValueId lane) {
  if (value == lane) return 1;
  if (!varying(value)) return 0;
  for (const NodeId id : block.nodes) {
    const Node& n = kernel.node(id);
    if (n.results.size() != 1 || n.results[0] != value || ranges.may_overflow(value)) continue;
    const auto of = [&](size_t i) {
      return growth(kernel, varying, ranges, block, n.operands[i], lane);
    };
    if (n.op == OpCode::kConvert) {
      return n.type == kernel.index_type ? of(0) : std::nullopt;
    }
    if (n.op != OpCode::kAdd && n.op != OpCode::kSub) return std::nullopt;
    const auto x = of(0);
    const auto y = of(1);
    if (!x || !y) return std::nullopt;
    return n.op == OpCode::kAdd ? *x + *y : *x - *y;
  }
  return std::nullopt;
}

// Whether the indices from `first` on are used, but for the condition, for places in memory alone,
// so that the elements of each access lie one after the other along all of these dimensions.
bool are_one_dimension(const kernel::Kernel& kernel, const Node& n, size_t first,
                       const Node* condition) {
  const std::vector<ValueId>& arguments = kernel.block(n.blocks[0]).arguments;
  std::set<ValueId> indices(arguments.begin() + static_cast<std::ptrdiff_t>(first),
                            arguments.end());
  std::vector<kernel::Slopes> slopes;
  for (size_t d = first; d < arguments.size(); ++d) slopes.emplace_back(kernel, arguments[d]);
  const auto is_index = [&](ValueId value) { return indices.contains(value); };
  return !kernel::any_node(kernel, n.blocks[0], [&](const Node& each) {
    if (&each == condition) return false;
    const bool computes =
        each.op == OpCode::kAdd || each.op == OpCode::kSub || each.op == OpCode::kMul;
    if (computes && std::ranges::any_of(each.operands, is_index)) {
      indices.insert(each.results[0]);
      return false;
    }
    if (!kernel::is<kernel::OnAccess>(each.op)) return std::ranges::any_of(each.operands, is_index);
    const bool stores_index = each.op != OpCode::kLoad && is_index(each.operands[0]);
    std::optional<int64_t> inner = slopes.back().of_place(each);
    for (size_t d = arguments.size() - 1; inner && d-- > first;) {
      const std::optional<int64_t> outer = slopes[d - first].of_place(each);
      inner = outer && *outer == *inner * n.extents[d + 1] ? outer : std::nullopt;
    }
    return stores_index || !inner;
  });
}

}  // namespace

std::optional<NodeId> CpuKernelEmitter::rows_bound(const Node& n, size_t first) const {
  const Block& body = kernel_.block(n.blocks[0]);
  const std::optional<Bound> bound = bound_of(kernel_, body);
  for (size_t d = first; bound && d < n.extents.size(); ++d) {
    const ValueId lane = body.arguments[d];
    const Varying varying(kernel_, n, {lane});
    const auto grows = [&](size_t i, int64_t by) {
      return growth(kernel_, varying, ranges_, body, bound->condition->operands[i], lane) == by;
    };
    if (!grows(0, d == first ? 1 : 0) || !grows(1, 0)) return {};
  }
  return bound ? std::optional(bound->branch) : std::nullopt;
}

// Rows of a few elements then fill whole vectors. A condition may leave out the last rows.
CpuKernelEmitter::FlatLanes CpuKernelEmitter::flattened(const Node& n) const {
  FlatLanes flat{n, {}};
  for (size_t first = 0; first + 1 < n.extents.size(); ++first) {
    const auto begin = static_cast<std::ptrdiff_t>(first);
    const int64_t count = element_count(Dims(n.extents.begin() + begin, n.extents.end()));
    if (count > INT32_MAX || count < kLeastFlat) continue;
    const std::optional<NodeId> bound = rows_bound(n, first);
    const Node* condition =
        bound ? bound_of(kernel_, kernel_.block(n.blocks[0]))->condition : nullptr;
    if (!are_one_dimension(kernel_, n, first, condition)) continue;
    std::fill(flat.node.extents.begin() + begin, flat.node.extents.end() - 1, 1);
    flat.node.extents.back() = count;
    if (bound) flat.rows = n.extents[first];
    break;
  }
  return flat;
}

// Whether lanes move single elements, from and to places that are far apart. Without scattered
// stores vectors of them are taken apart and put together, lane by lane; one lane after the other
// moves its elements, and adjacent ones at once.
bool CpuKernelEmitter::moves_apart(const Node& n, ValueId lane) const {
  if (vector_bytes_ >= kMaskRegisters) return false;
  constexpr int64_t kFar = 16;  // Elements; lanes closer to one another share vectors.
  kernel::Slopes along(kernel_, lane);
  const auto is_far = [&](const Node& access) {
    const std::optional<int64_t> slope = along.of_place(access);
    return !slope || std::abs(*slope) > kFar;
  };
  std::set<ValueId> far;
  size_t stores = 0;
  const bool computes = kernel::any_node(kernel_, n.blocks[0], [&](const Node& each) {
    if (each.op == OpCode::kLoad) {
      if (is_far(each)) far.insert(each.results[0]);
      return false;
    }
    if (each.op == OpCode::kStore) {
      ++stores;
      return !far.contains(each.operands[0]) || !is_far(each);
    }
    return !kernel::is_scalar_op(each.op) && each.op != OpCode::kIf && each.op != OpCode::kYield;
  });
  return !computes && stores > 0;
}

// A contraction in the same function needs LLVM's order, which saves registers, and so may other
// long loops.
void CpuKernelEmitter::keep_order() {
  if (kernel_.nodes.size() > kMostNodesInOrder) return;
  const auto is_contraction = [](const Node& n) { return n.op == OpCode::kContract; };
  if (std::ranges::any_of(kernel_.nodes, is_contraction)) return;
  codegen::keep_abreast(*b_.GetInsertBlock()->getParent());
}

void CpuKernelEmitter::lanes(const Node& whole) {
  const BlockId body = whole.blocks[0];
  const Ids& arguments = kernel_.block(body).arguments;
  if (is_tiny(whole.extents, body)) return unrolled(arguments, whole.extents, [&] { block(body); });
  const FlatLanes flat = flattened(whole);
  const Node& n = flat.node;
  if (n.extents == whole.extents && lanes_by_patterns(whole)) return;
  const VectorPlan plan = plan_of(n);
  if (plan.width == 1) return nest(arguments, whole.extents, std::nullopt, [&] { block(body); });
  if (n.extents == whole.extents && lanes_transposed(n, plan)) return;
  const ValueId lane = arguments[plan.dimension];
  const int64_t extent = n.extents[plan.dimension];
  if (moves_apart(n, lane)) return nest(arguments, n.extents, std::nullopt, [&] { block(body); });
  if (plan.keeps_order) keep_order();
  const Varying varying(kernel_, n, {lane});
  nest(arguments, n.extents, plan.dimension, [&] {
    Value* const count = flat.rows ? bounded_rows(kernel_.block(body), lane, *flat.rows, extent)
                                   : bounded(kernel_.block(body), lane, extent, varying);
    in_lanes(plan.width, varying, [&] {
      if (!lanes_down_columns(n, lane, extent, count)) strips(n, lane, count, [&] { block(body); });
    });
    taken_ = kernel::kNone;
  });
}

// Whether the kernel is the same if some iterations run twice: none changes what one loads.
bool CpuKernelEmitter::may_repeat(const Node& n) const {
  std::set<kernel::MemoryId> loaded;
  std::set<kernel::MemoryId> stored;
  const bool changes = kernel::any_node(kernel_, n.blocks[0], [&](const Node& each) {
    if (each.op == OpCode::kLoad) loaded.insert(each.memories[0]);
    if (each.op == OpCode::kStore) {
      for (kernel::MemoryId m = each.memories[0]; m != kernel::kNone; m = kernel_.memory(m).over) {
        stored.insert(m);
      }
    }
    return !kernel::is_scalar_op(each.op) && each.op != OpCode::kLoad &&
           each.op != OpCode::kStore && each.op != OpCode::kYield && each.op != OpCode::kIf;
  });
  return !changes && std::ranges::none_of(stored, [&](auto m) { return loaded.contains(m); });
}

void CpuKernelEmitter::strips(const Node& n, ValueId lane, Value* count,
                              const std::function<void()>& body) {
  const auto at = [&](Value* place) {
    values_[lane] = index_from(place, 1);
    body();
  };
  const auto masked = [&](Value* place) {
    Value* const left = b_.CreateTrunc(b_.CreateSub(count, place), b_.getInt32Ty());
    mask_ = b_.CreateICmpULT(steps(b_.getInt32Ty(), 1),
                             b_.CreateVectorSplat(static_cast<unsigned>(width_), left));
    at(place);
    mask_ = nullptr;
  };
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(count);
  if (known != nullptr && known->getSExtValue() % width_ == 0) {
    return loop(number(0), count, width_, at);
  }
  if (varying_->nodes() > kMostNodesTwice) {
    // A store under a mask is slow on targets without registers of masks: there the last vector
    // begins within the one before.
    const bool overlaps = known != nullptr && known->getSExtValue() > width_ &&
                          vector_bytes_ < kMaskRegisters && may_repeat(n);
    if (!overlaps) return loop(number(0), count, width_, masked);
    Value* const last = number(known->getSExtValue() - width_);
    return loop(number(0), count, width_, [&](Value* place) {
      at(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, place, last));
    });
  }
  Value* const full = b_.CreateAnd(count, number(-width_));
  loop(number(0), full, width_, at);
  BasicBlock* const rest = BasicBlock::Create(context_, "rest", function_);
  BasicBlock* const after = BasicBlock::Create(context_, "after", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(full, count), rest, after);
  b_.SetInsertPoint(rest);
  masked(full);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

bool CpuKernelEmitter::grows_by_one(const Node& n, ValueId value, ValueId lane) const {
  const Varying varying(kernel_, n, {lane});
  return growth(kernel_, varying, ranges_, kernel_.block(n.blocks[0]), value, lane) == 1;
}

// The condition `x < y` in lane l is x0 + l < y, so it holds for the first y - x0 lanes.
CpuKernelEmitter::Value* CpuKernelEmitter::bounded(const Block& body, ValueId lane, int64_t extent,
                                                   const Varying& varying) {
  const std::optional<Bound> bound = bound_of(kernel_, body);
  if (!bound || varying(bound->condition->operands[1]) ||
      growth(kernel_, varying, ranges_, body, bound->condition->operands[0], lane) != 1) {
    return number(extent);
  }
  return places_left(body, lane, extent);
}

CpuKernelEmitter::Value* CpuKernelEmitter::bounded_rows(const Block& body, ValueId lane,
                                                        int64_t rows, int64_t extent) {
  return b_.CreateMul(places_left(body, lane, rows), number(extent / rows));
}

// How often the condition of the body holds, from the first iteration on, of `extent` times.
CpuKernelEmitter::Value* CpuKernelEmitter::places_left(const Block& body, ValueId lane,
                                                       int64_t extent) {
  const Bound bound = *bound_of(kernel_, body);
  values_[lane] = index_from(number(0));
  for (const NodeId id : body.nodes) {
    if (id != bound.branch) operation(kernel_.node(id));
  }
  Value* const left = b_.CreateSub(wide_of(form(bound.condition->operands[1])),
                                   wide_of(form(bound.condition->operands[0])));
  taken_ = bound.branch;
  return b_.CreateBinaryIntrinsic(
      llvm::Intrinsic::smax, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, number(extent)),
      number(0));
}

}  // namespace tenon::cpu
