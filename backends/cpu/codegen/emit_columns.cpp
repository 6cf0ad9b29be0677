// Lanes loops that would access memory out of order: sums down columns, and transposes.
#include <algorithm>
#include <set>

#include "backends/cpu/codegen/elements.h"
#include "backends/cpu/codegen/emitter.h"
#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {

using kernel::BlockId;
using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;

namespace {

constexpr int64_t kRowsATurn = 8;    // in a sum down columns
constexpr int64_t kFewestRows = 16;  // for which it pays
constexpr int64_t kMostColumnBytes = 16 << 10;
constexpr int64_t kMostSquareRows = 16;   // of a transpose in registers
constexpr size_t kMostNodesATurn = 40;    // in a leaf or a transposed body
constexpr size_t kMostNodesOfEdges = 16;  // in a transposed body whose edges are squares too

}  // namespace

// --- Sums down columns

// Whether adjacent lanes load adjacent elements, or the same element.
bool CpuKernelEmitter::loads_along_lanes(BlockId id, const Varying& varying) const {
  return std::ranges::all_of(kernel_.block(id).nodes, [&](NodeId each) {
    const Node& n = kernel_.node(each);
    if (n.op == OpCode::kYield || kernel::is_scalar_op(n.op)) return true;
    if (n.op != OpCode::kLoad) return false;
    const Dims strides = kernel_.memory(n.memories[0]).resolved_strides();
    for (size_t d = 0; d + 1 < n.operands.size(); ++d) {
      if (varying(n.operands[d])) return false;
    }
    return strides.empty() || strides.back() == 1;
  });
}

// The body, or the block of the `if` that all of its lanes take, split at its only reduction.
std::optional<CpuKernelEmitter::Columns> CpuKernelEmitter::columns_of(
    const Node& n, const Varying& varying) const {
  Columns columns;
  const std::function<bool(BlockId)> part = [&](BlockId id) {
    for (const NodeId each : kernel_.block(id).nodes) {
      const Node& node = kernel_.node(each);
      const bool computes = kernel::is_scalar_op(node.op) || node.op == OpCode::kLoad;
      if (columns.reduce != nullptr) {
        if (node.op == OpCode::kReduce) return false;
        columns.after.push_back(each);
      } else if (each == taken_) {
        if (!part(node.blocks[0])) return false;
      } else if (node.op == OpCode::kReduce) {
        columns.reduce = &node;
      } else if (computes) {
        columns.before.push_back(each);
      } else {
        return false;
      }
    }
    return true;
  };
  if (!part(n.blocks[0]) || columns.reduce == nullptr) return std::nullopt;
  const Node& r = *columns.reduce;
  if (r.extents.empty() || r.extents.back() < kFewestRows || !only_computes(r.blocks[1]) ||
      !loads_along_lanes(r.blocks[0], varying) ||
      kernel_.block(r.blocks[0]).nodes.size() > kMostNodesATurn) {
    return std::nullopt;
  }
  const bool varies = std::ranges::all_of(r.results, [&](ValueId each) { return varying(each); });
  return varies ? std::optional(columns) : std::nullopt;
}

// Adds a few rows at a time, each from left to right, with the columns' partial sums in memory:
// elements of a row are contiguous, those of a column are not.
bool CpuKernelEmitter::lanes_down_columns(const Node& n, ValueId lane, int64_t extent,
                                          Value* count) {
  if (extent < 2 * width_) return false;
  const auto columns = columns_of(n, *varying_);
  if (!columns) return false;
  const Node& r = *columns->reduce;
  const int64_t padded = (extent + width_ - 1) / width_ * width_;
  int64_t bytes = 0;
  for (const ValueId result : r.results) {
    bytes += padded * static_cast<int64_t>(storage_bytes(kernel_.value(result).type));
  }
  if (bytes > kMostColumnBytes) return false;
  std::vector<Value*> sums;
  for (const ValueId result : r.results) {
    sums.push_back(
        memory_of(padded * static_cast<int64_t>(storage_bytes(kernel_.value(result).type))));
  }
  const auto place = [&](size_t i) {
    return b_.CreateGEP(codegen::memory_type_of(context_, kernel_.value(r.results[i]).type),
                        sums[i], values_[lane].wide);
  };
  const auto load = [&] {
    Many list;
    for (size_t i = 0; i < sums.size(); ++i) {
      const ElementType type = kernel_.value(r.results[i]).type;
      auto* const vector = llvm::FixedVectorType::get(codegen::memory_type_of(context_, type),
                                                      static_cast<unsigned>(width_));
      Value* value = b_.CreateAlignedLoad(vector, place(i), llvm::Align(storage_bytes(type)));
      if (is_pred(type)) value = b_.CreateTrunc(value, type_of(type, true));
      list.push_back({nullptr, value, 0});
    }
    return list;
  };
  const auto store = [&](const Many& values) {
    for (size_t i = 0; i < sums.size(); ++i) {
      const ElementType type = kernel_.value(r.results[i]).type;
      Value* value = vector_of(values[i]);
      if (is_pred(type)) {
        value = b_.CreateZExt(
            value, llvm::FixedVectorType::get(b_.getInt8Ty(), static_cast<unsigned>(width_)));
      }
      b_.CreateAlignedStore(value, place(i), llvm::Align(storage_bytes(type)));
    }
  };
  const auto before = [&] {
    for (const NodeId each : columns->before) statement(kernel_.node(each));
  };
  strips(n, lane, count, [&] {
    before();
    store(forms(r.operands));
  });
  const Ids& indices = kernel_.block(r.blocks[0]).arguments;
  const auto take = [&](Value* first, int64_t rows) {
    strips(n, lane, count, [&] {
      before();
      Many carried = load();
      for (int64_t i = 0; i < rows; ++i) {
        values_[indices.back()] = index_from(b_.CreateAdd(first, number(i)));
        carried = combine(r, carried, block(r.blocks[0]));
      }
      store(carried);
    });
  };
  nest(indices, r.extents, r.extents.size() - 1, [&] {
    const int64_t whole = r.extents.back() / kRowsATurn * kRowsATurn;
    loop(number(0), number(whole), kRowsATurn, [&](Value* i) { take(i, kRowsATurn); });
    if (whole < r.extents.back()) take(number(whole), r.extents.back() - whole);
  });
  strips(n, lane, count, [&] {
    before();
    set(r.results, load());
    for (const NodeId each : columns->after) {
      if (kernel_.node(each).op != OpCode::kYield) statement(kernel_.node(each));
    }
  });
  return true;
}

// --- Transposes

// Whether nothing is loaded after the store `from` of the body.
bool CpuKernelEmitter::only_stores_follow(const Node& n, NodeId from) const {
  const std::vector<NodeId>& nodes = kernel_.block(n.blocks[0]).nodes;
  return std::all_of(std::ranges::find(nodes, from), nodes.end(), [&](NodeId each) {
    const Node& node = kernel_.node(each);
    return node.op == OpCode::kStore || node.op == OpCode::kYield || kernel::is_scalar_op(node.op);
  });
}

// Loads of the body whose adjacent elements are along `down`, another index than that of the
// vector, at addresses that depend only on indices.
std::vector<NodeId> CpuKernelEmitter::transposed_loads(const Node& n, ValueId lane,
                                                       ValueId down) const {
  const Varying along(kernel_, n, {lane});
  const Varying across(kernel_, n, {down});
  std::vector<NodeId> found;
  std::set<ValueId> loaded;
  for (const NodeId each : kernel_.block(n.blocks[0]).nodes) {
    const Node& node = kernel_.node(each);
    // A load after a store may read the stored value, so it must not be moved before the store.
    if (node.op == OpCode::kStore)
      return only_stores_follow(n, each) ? found : std::vector<NodeId>();
    const bool from_indices = std::ranges::none_of(
        node.operands, [&](ValueId operand) { return loaded.contains(operand); });
    if (kernel::is_scalar_op(node.op)) {
      if (!from_indices) loaded.insert(node.results[0]);
      continue;
    }
    if (node.op != OpCode::kLoad) return {};
    loaded.insert(node.results[0]);
    if (node.operands.empty() || !from_indices) continue;
    const auto last = node.operands.end() - 1;
    const bool dense = kernel_.memory(node.memories[0]).resolved_strides().back() == 1;
    if (dense && std::any_of(node.operands.begin(), last, std::ref(along)) &&
        std::none_of(node.operands.begin(), last, std::ref(across)) && !along(*last) &&
        grows_by_one(n, *last, down)) {
      found.push_back(each);
    }
  }
  return found;
}

// Squares with as many rows as a vector has lanes: loads down the columns become loads along the
// rows, which are transposed in registers.
bool CpuKernelEmitter::lanes_transposed(const Node& n, const VectorPlan& plan) {
  const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
  const ValueId lane = arguments[plan.dimension];
  if (kernel_.block(n.blocks[0]).nodes.size() > kMostNodesATurn) return false;
  for (size_t d = 0; d < n.extents.size(); ++d) {
    if (d == plan.dimension) continue;
    std::vector<NodeId> loads = transposed_loads(n, lane, arguments[d]);
    if (loads.empty()) continue;
    // Truth values are bytes: they are transposed alone, and gathered beside wider numbers.
    const auto is_truth = [&](NodeId each) { return is_pred(kernel_.node(each).type); };
    if (!std::ranges::all_of(loads, is_truth)) std::erase_if(loads, is_truth);
    const int64_t size =
        std::min(kMostSquareRows,
                 vector_bytes_ / static_cast<int64_t>(storage_bytes(kernel_.node(loads[0]).type)));
    const bool same = std::ranges::all_of(loads, [&](NodeId each) {
      return storage_bytes(kernel_.node(each).type) == storage_bytes(kernel_.node(loads[0]).type);
    });
    if (!same || size < 4) continue;
    const int64_t rows = n.extents[d], columns = n.extents[plan.dimension];
    const bool has_edges = rows % size != 0 || columns % size != 0;
    const bool is_short = kernel_.block(n.blocks[0]).nodes.size() <= kMostNodesOfEdges;
    if (has_edges && (!is_short || rows < size / 2 || columns < size / 2)) continue;
    squares(n, plan.dimension, d, size, loads);
    return true;
  }
  return false;
}

// Squares at the edges have fewer rows and columns.
void CpuKernelEmitter::squares(const Node& n, size_t along, size_t down, int64_t size,
                               const std::vector<NodeId>& loads) {
  const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
  const Varying varying(kernel_, n, {arguments[along]});
  const auto square = [&](Value* first_row, int64_t rows, Value* first_column, int64_t columns) {
    values_[arguments[down]] = index_from(first_row);
    std::map<NodeId, std::vector<Value*>> lines;
    for (int64_t l = 0; l < columns; ++l) {
      values_[arguments[along]] = index_from(b_.CreateAdd(first_column, number(l)));
      load_rows(n, {size, rows}, loads, lines);
    }
    for (auto& [load, vectors] : lines) {
      vectors.resize(static_cast<size_t>(size),
                     llvm::Constant::getNullValue(vectors[0]->getType()));
      codegen::transpose(b_, vectors);
    }
    in_lanes(size, varying, [&] {
      mask_ = constant_mask([&](int64_t lane) { return lane < columns; });
      for (int64_t t = 0; t < rows; ++t) {
        values_[arguments[down]] = index_from(b_.CreateAdd(first_row, number(t)));
        values_[arguments[along]] = index_from(first_column, 1);
        provided_.clear();
        for (const auto& [load, vectors] : lines) provided_[load] = vectors[static_cast<size_t>(t)];
        block(n.blocks[0]);
      }
      mask_ = nullptr;
      provided_.clear();
    });
  };
  const auto parts = [&](size_t d, const std::function<void(Value*, int64_t)>& part) {
    const int64_t whole = n.extents[d] / size * size;
    if (whole > 0) loop(number(0), number(whole), size, [&](Value* at) { part(at, size); });
    if (whole < n.extents[d]) part(number(whole), n.extents[d] - whole);
  };
  const std::function<void(size_t)> around = [&](size_t d) {
    if (d == along || d == down) return around(d + 1);
    if (d >= n.extents.size()) {
      return parts(down, [&](Value* row, int64_t rows) {
        parts(along, [&](Value* column, int64_t columns) { square(row, rows, column, columns); });
      });
    }
    loop(number(0), number(n.extents[d]), 1, [&](Value* i) {
      values_[arguments[d]] = index_from(i);
      around(d + 1);
    });
  };
  around(0);
}

// With scalar indices: loads the vector that begins at the element of each load.
void CpuKernelEmitter::load_rows(const Node& n, const SquareRow& row,
                                 const std::vector<NodeId>& loads,
                                 std::map<NodeId, std::vector<Value*>>& rows) {
  std::set<ValueId> loaded;
  for (const NodeId each : kernel_.block(n.blocks[0]).nodes) {
    const Node& node = kernel_.node(each);
    const bool known = std::ranges::none_of(
        node.operands, [&](ValueId operand) { return loaded.contains(operand); });
    if (std::ranges::find(loads, each) != loads.end()) {
      auto* const vector = llvm::FixedVectorType::get(codegen::memory_type_of(context_, node.type),
                                                      static_cast<unsigned>(row.size));
      const llvm::Align align(storage_bytes(node.type));
      Value* const from = address(node.memories[0], node.operands, 0).pointer;
      rows[each].push_back(
          row.count == row.size
              ? static_cast<Value*>(b_.CreateAlignedLoad(vector, from, align))
              : masked_load(vector, from, align, mask_of(b_, number(row.count), row.size)));
    }
    if (kernel::is_scalar_op(node.op) && known) {
      operation(node);
    } else {
      loaded.insert(node.results.begin(), node.results.end());
    }
  }
}

}  // namespace tenon::cpu
