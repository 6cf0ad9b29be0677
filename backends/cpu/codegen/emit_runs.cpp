// Accesses of lanes that lie a few elements apart, where other accesses of the block fill the gaps:
// the parts of complex numbers, the results of a butterfly. Together they are vectors of adjacent
// elements, which shuffles take apart or join.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <ranges>

#include "backends/cpu/codegen/emitter.h"
#include "backends/cpu/codegen/shuffles.h"
#include "backends/llvm/operations.h"
#include "core/kernel/analysis/slope.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;

namespace {

constexpr int64_t kMostApart = 16;      // elements from lane to lane
constexpr int64_t kMostSkipped = 8;     // elements from lane to lane of a load that stands alone
constexpr size_t kMostNodesAhead = 80;  // that a run may span
constexpr int kMostVisits = 64;         // of values in an index: sums of sums are visited twice

llvm::Align alignment_of(ElementType type) { return llvm::Align(storage_bytes(type)); }

}  // namespace

void CpuKernelEmitter::add_terms(ValueId value, int64_t factor, Offset& offset) const {
  const kernel::Value& v = kernel_.value(value);
  if (v.kind == kernel::ValueKind::kConstant) {
    const auto bits =
        v.type == ElementType::kS32 ? static_cast<int32_t>(v.bits) : static_cast<int64_t>(v.bits);
    offset.constant += factor * bits;
    return;
  }
  const bool computed = ++offset.visits <= kMostVisits && v.kind == kernel::ValueKind::kResult &&
                        !ranges_.may_overflow(value);
  const Node* const n = computed ? &kernel_.node(v.node) : nullptr;
  if (n != nullptr && (n->op == OpCode::kAdd || n->op == OpCode::kSub)) {
    add_terms(n->operands[0], factor, offset);
    return add_terms(n->operands[1], n->op == OpCode::kAdd ? factor : -factor, offset);
  }
  if (n != nullptr && n->op == OpCode::kMul) {
    for (const size_t i : {0, 1}) {
      Offset by;
      by.visits = offset.visits;
      add_terms(n->operands[i], 1, by);
      offset.visits = by.visits;
      if (by.terms.empty()) return add_terms(n->operands[1 - i], factor * by.constant, offset);
    }
  }
  int64_t& by = offset.terms[value];
  by += factor;
  if (by == 0) offset.terms.erase(value);
}

CpuKernelEmitter::Offset CpuKernelEmitter::offset_of(const Node& n) const {
  const size_t first = n.op == OpCode::kStore ? 1 : 0;
  const Dims strides = kernel_.memory(n.memories[0]).resolved_strides();
  Offset offset;
  for (size_t d = 0; d < strides.size(); ++d) {
    add_terms(n.operands[first + d], strides[d], offset);
  }
  return offset;
}

// Elements from lane to lane; 0 if that is not constant.
int64_t CpuKernelEmitter::apart(const Node& n) {
  const size_t first = n.op == OpCode::kStore ? 1 : 0;
  const Dims strides = kernel_.memory(n.memories[0]).resolved_strides();
  int64_t stride = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    const Lanes at = form(n.operands[first + d]);
    if (at.vector != nullptr) return 0;
    stride += at.stride * strides[d];
  }
  return stride;
}

// Whether the lanes of a load of 32 bits are at places that an index in a vector gives.
bool CpuKernelEmitter::lie_anywhere(const Node& n) {
  const size_t rank = kernel_.memory(n.memories[0]).resolved_strides().size();
  const auto is_vector = [&](ValueId index) { return form(index).vector != nullptr; };
  return storage_bytes(n.type) == 4 &&
         std::any_of(n.operands.begin(), n.operands.begin() + static_cast<ptrdiff_t>(rank),
                     is_vector);
}

std::vector<NodeId> CpuKernelEmitter::run_of(const std::vector<NodeId>& nodes, size_t first,
                                             int64_t size) const {
  const Node& begin = kernel_.node(nodes[first]);
  const Offset start = offset_of(begin);
  std::vector<NodeId> run(static_cast<size_t>(size), kernel::kNone);
  run[0] = nodes[first];
  size_t found = 1;
  const size_t end = std::min(nodes.size(), first + kMostNodesAhead);
  for (size_t i = first + 1; i < end && found < run.size(); ++i) {
    const Node& n = kernel_.node(nodes[i]);
    if (kernel::is_scalar_op(n.op) && !kernel::is_math(n.op)) continue;
    // Stores may come after loads of other memory: a buffer over another is stored to when nobody
    // reads the other's elements any more (K4).
    if (n.op == OpCode::kLoad && n.memories[0] != begin.memories[0]) continue;
    if (n.op != begin.op) break;
    const bool comparable = n.memories[0] == begin.memories[0] && n.type == begin.type;
    if (!comparable && n.op == OpCode::kLoad) continue;
    if (!comparable) break;
    const Offset offset = offset_of(n);
    if (offset.terms != start.terms) {
      if (n.op == OpCode::kLoad) continue;
      break;
    }
    const int64_t behind = offset.constant - start.constant;
    if (behind <= 0 || behind >= size) continue;
    if (run[static_cast<size_t>(behind)] != kernel::kNone) break;
    run[static_cast<size_t>(behind)] = nodes[i];
    ++found;
  }
  return found == run.size() ? run : std::vector<NodeId>();
}

// Shuffles take vectors of one register: of wider ones LLVM moves elements one by one. Lanes are in
// groups of so many.
int64_t CpuKernelEmitter::lanes_of_register(ElementType type) const {
  return std::min<int64_t>(width_, std::max<int64_t>(2, vector_bytes_ / storage_bytes(type)));
}

CpuKernelEmitter::Value* CpuKernelEmitter::mask_of_piece(const LaneGroup& group, size_t piece,
                                                         bool backwards) {
  if (mask_ == nullptr) return nullptr;
  std::vector<int> which;
  const auto lanes = static_cast<size_t>(group.lanes);
  for (size_t l = 0; l < lanes; ++l) {
    const size_t lane = (piece * lanes + l) / group.pieces;
    which.push_back(
        static_cast<int>(static_cast<size_t>(group.first) + (backwards ? lanes - 1 - lane : lane)));
  }
  return b_.CreateShuffleVector(mask_, which);
}

CpuKernelEmitter::Value* CpuKernelEmitter::side_by_side(std::vector<Value*> groups) {
  while (groups.size() > 1) {
    std::vector<Value*> pairs;
    const auto lanes =
        static_cast<int>(llvm::cast<llvm::FixedVectorType>(groups[0]->getType())->getNumElements());
    std::vector<int> both(static_cast<size_t>(2 * lanes));
    std::iota(both.begin(), both.end(), 0);
    for (size_t i = 0; i < groups.size(); i += 2) {
      pairs.push_back(b_.CreateShuffleVector(groups[i], groups[i + 1], both));
    }
    groups = std::move(pairs);
  }
  return groups[0];
}

bool CpuKernelEmitter::joined(const std::vector<NodeId>& nodes, size_t first,
                              std::set<NodeId>& done) {
  const Node& n = kernel_.node(nodes[first]);
  if (width_ == 1 || pattern_ != nullptr || is_pred(n.type) ||
      (n.op == OpCode::kLoad && !provided_.empty()))
    return false;
  const int64_t stride = apart(n);
  const int64_t size = std::abs(stride);
  if (n.op == OpCode::kLoad && lie_anywhere(n)) {
    const std::vector<NodeId> pair = run_of(nodes, first, 2);
    if (pair.empty()) return false;
    gather_pair(pair);
    done.insert(pair.begin(), pair.end());
    return true;
  }
  if (size < 2 || size > kMostApart || (stride < 0 && n.op == OpCode::kStore)) return false;
  const std::vector<NodeId> run = run_of(nodes, first, size);
  if (run.empty()) return false;
  if (n.op == OpCode::kLoad) {
    load_run(run, stride);
  } else {
    // Values of the later stores are loaded and computed first.
    const auto last = std::ranges::find_first_of(nodes | std::views::reverse, run);
    for (size_t i = first; nodes[i] != *last; ++i) {
      const OpCode op = kernel_.node(nodes[i]).op;
      if (op == OpCode::kStore || done.contains(nodes[i])) continue;
      if (op == OpCode::kLoad && joined(nodes, i, done)) continue;
      statement(kernel_.node(nodes[i]));
      done.insert(nodes[i]);
    }
    store_run(run);
  }
  done.insert(run.begin(), run.end());
  return true;
}

void CpuKernelEmitter::load_run(const std::vector<NodeId>& run, int64_t stride) {
  const std::vector<Value*> loaded = loads_between(kernel_.node(run[0]), run.size(), stride);
  for (size_t i = 0; i < run.size(); ++i)
    values_[kernel_.node(run[i]).results[0]] = {nullptr, loaded[i], 0};
}

// Both elements of a lane, 32 bits each, are gathered as one of 64.
void CpuKernelEmitter::gather_pair(const std::vector<NodeId>& pair) {
  const Node& n = kernel_.node(pair[0]);
  const Address where = address(n.memories[0], n.operands, 0);
  auto* const both = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(width_));
  Value* const gathered = b_.CreateMaskedGather(both, where.pointer, alignment_of(n.type),
                                                mask_or_all(), llvm::Constant::getNullValue(both));
  const int64_t lanes = lanes_of_register(n.type);
  auto* const vector = llvm::FixedVectorType::get(codegen::memory_type_of(context_, n.type),
                                                  static_cast<unsigned>(lanes));
  std::vector<Value*> elements[2];
  for (int64_t first = 0; first < width_; first += lanes) {
    std::vector<Value*> pieces;
    for (int64_t begin = first; begin < first + lanes; begin += lanes / 2) {
      std::vector<int> which(static_cast<size_t>(lanes / 2));
      std::iota(which.begin(), which.end(), static_cast<int>(begin));
      pieces.push_back(b_.CreateBitCast(b_.CreateShuffleVector(gathered, which), vector));
    }
    const std::vector<Value*> apart = taken_apart(b_, pieces);
    for (size_t i = 0; i < 2; ++i) elements[i].push_back(apart[i]);
  }
  for (size_t i = 0; i < 2; ++i)
    values_[kernel_.node(pair[i]).results[0]] = {nullptr, side_by_side(std::move(elements[i])), 0};
}

std::vector<CpuKernelEmitter::Value*> CpuKernelEmitter::loads_between(const Node& n, size_t count,
                                                                      int64_t stride) {
  llvm::Type* const element = codegen::memory_type_of(context_, n.type);
  const int64_t lanes = lanes_of_register(n.type);
  const int64_t edge = edge_of_squares(static_cast<int64_t>(count), lanes, vector_bytes_);
  if (edge > 0) return loads_in_squares(n, static_cast<int64_t>(count), stride, edge);
  auto* const vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  Value* const from = scalar_address(n, 0);
  std::vector<std::vector<Value*>> elements(count);
  for (int64_t first = 0; first < width_; first += lanes) {
    const LaneGroup group = {first, lanes, count};
    // The lane whose elements lie lowest.
    const int64_t lowest = stride < 0 ? first + lanes - 1 : first;
    std::vector<Value*> pieces;
    for (size_t i = 0; i < count; ++i) {
      Value* const place =
          b_.CreateGEP(element, from, number(lowest * stride + static_cast<int64_t>(i) * lanes));
      Value* const mask = mask_of_piece(group, i, stride < 0);
      pieces.push_back(
          mask == nullptr
              ? static_cast<Value*>(b_.CreateAlignedLoad(vector, place, alignment_of(n.type)))
              : b_.CreateMaskedLoad(vector, place, alignment_of(n.type), mask,
                                    llvm::Constant::getNullValue(vector)));
    }
    const std::vector<Value*> apart = taken_apart(b_, pieces);
    for (size_t i = 0; i < count; ++i)
      elements[i].push_back(stride < 0 ? reversed(apart[i]) : apart[i]);
  }
  std::vector<Value*> loaded;
  for (std::vector<Value*>& groups : elements) loaded.push_back(side_by_side(std::move(groups)));
  return loaded;
}

// The last of a row's squares ends with the row, over elements of the one before.
std::vector<CpuKernelEmitter::Value*> CpuKernelEmitter::loads_in_squares(const Node& n,
                                                                         int64_t count,
                                                                         int64_t stride,
                                                                         int64_t edge) {
  llvm::Type* const element = codegen::memory_type_of(context_, n.type);
  auto* const vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(edge));
  Value* const from = scalar_address(n, 0);
  std::vector<std::vector<Value*>> elements(static_cast<size_t>(count));
  for (int64_t first = 0; first < width_; first += edge) {
    for (int64_t done = 0; done < count; done += edge) {
      const int64_t begin = std::min(done, count - edge);
      std::vector<Value*> rows;
      for (int64_t row = first; row < first + edge; ++row) {
        Value* const place = b_.CreateGEP(element, from, number(row * stride + begin));
        rows.push_back(
            mask_ == nullptr
                ? static_cast<Value*>(b_.CreateAlignedLoad(vector, place, alignment_of(n.type)))
                : b_.CreateMaskedLoad(vector, place, alignment_of(n.type), mask_of_row(row, edge),
                                      llvm::Constant::getNullValue(vector)));
      }
      const std::vector<Value*> columns = transposed(b_, std::move(rows));
      for (int64_t i = done; i < begin + edge; ++i)
        elements[static_cast<size_t>(i)].push_back(columns[static_cast<size_t>(i - begin)]);
    }
  }
  std::vector<Value*> loaded;
  for (std::vector<Value*>& groups : elements) loaded.push_back(side_by_side(std::move(groups)));
  return loaded;
}

CpuKernelEmitter::Value* CpuKernelEmitter::mask_of_row(int64_t lane, int64_t elements) {
  const std::vector<int> which(static_cast<size_t>(elements), static_cast<int>(lane));
  return b_.CreateShuffleVector(mask_, which);
}

// Those with an index of the reduction as it is, beside values from around it.
std::map<NodeId, std::vector<CpuKernelEmitter::Value*>> CpuKernelEmitter::rows_of_leaves(
    const Node& n) {
  std::map<NodeId, std::vector<Value*>> rows;
  const kernel::Block& leaf = kernel_.block(n.blocks[0]);
  const int64_t count = element_count(n.extents);
  if (width_ == 1 || pattern_ != nullptr || !provided_.empty() || count < 2) return rows;
  std::set<ValueId> within;
  for (const NodeId id : leaf.nodes) {
    const Node& load = kernel_.node(id);
    within.insert(load.results.begin(), load.results.end());
    if (load.op != OpCode::kLoad || is_pred(load.type) ||
        std::ranges::any_of(load.operands, [&](ValueId x) { return within.contains(x); })) {
      continue;
    }
    int64_t place = 1;
    bool in_order = true;
    for (size_t d = n.extents.size(); d-- > 0; place *= n.extents[d])
      in_order &= kernel::Slopes(kernel_, leaf.arguments[d]).of_place(load) == place;
    for (const ValueId index : leaf.arguments) values_[index] = index_from(number(0));
    if (in_order && apart(load) == count)
      rows[id] = loads_between(load, static_cast<size_t>(count), count);
  }
  return rows;
}

// The vectors from the first lane to the last, which are fewer loads than lanes; the last of them
// ends with that lane, so that nothing behind it is read. The others end before it unless lanes are
// farther apart than a vector and one. Under a mask nothing is read but the elements of lanes.
CpuKernelEmitter::Value* CpuKernelEmitter::load_apart(const Node& n) {
  if (width_ == 1) return nullptr;
  const int64_t stride = apart(n);
  const int64_t count = std::abs(stride);
  const int64_t lanes = lanes_of_register(n.type);
  if (count < 2 || count > kMostSkipped || count > lanes + 1) return nullptr;
  Value* const from = scalar_address(n, 0);
  std::vector<Value*> groups;
  for (int64_t first = 0; first < width_; first += lanes) {
    groups.push_back(load_group_apart(n, from, stride, {first, lanes, static_cast<size_t>(count)}));
  }
  return side_by_side(std::move(groups));
}

CpuKernelEmitter::Value* CpuKernelEmitter::load_group_apart(const Node& n, Value* from,
                                                            int64_t stride,
                                                            const LaneGroup& group) {
  llvm::Type* const element = codegen::memory_type_of(context_, n.type);
  const int64_t lanes = group.lanes;
  const auto count = static_cast<int64_t>(group.pieces);
  auto* const vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  const int64_t lowest = (stride < 0 ? group.first + lanes - 1 : group.first) * stride;
  Value* result = nullptr;
  for (int64_t piece = 0; piece < count; ++piece) {
    const int64_t begin = piece + 1 < count ? piece * lanes : (lanes - 1) * count + 1 - lanes;
    const int64_t end = piece + 1 < count ? begin + lanes : lanes * count;
    std::vector<int> which, lane_of(static_cast<size_t>(lanes), static_cast<int>(width_));
    for (int64_t l = 0; l < lanes; ++l) {
      const int64_t place = (stride < 0 ? lanes - 1 - l : l) * count;
      const bool taken = place >= piece * lanes && place < end;
      which.push_back(static_cast<int>(taken ? lanes + place - begin : l));
      if (taken) lane_of[static_cast<size_t>(place - begin)] = static_cast<int>(group.first + l);
    }
    Value* const place = b_.CreateGEP(element, from, number(lowest + begin));
    Value* loaded = nullptr;
    if (mask_ == nullptr) {
      loaded = b_.CreateAlignedLoad(vector, place, alignment_of(n.type));
    } else {
      Value* const none = llvm::Constant::getNullValue(mask_->getType());
      loaded = b_.CreateMaskedLoad(vector, place, alignment_of(n.type),
                                   b_.CreateShuffleVector(mask_, none, lane_of),
                                   llvm::Constant::getNullValue(vector));
    }
    result = b_.CreateShuffleVector(result == nullptr ? loaded : result, loaded, which);
  }
  return result;
}

void CpuKernelEmitter::store_run(const std::vector<NodeId>& run) {
  const Node& n = kernel_.node(run[0]);
  llvm::Type* const element = codegen::memory_type_of(context_, n.type);
  Value* const to = scalar_address(n, 1);
  std::vector<Value*> values;
  for (const NodeId each : run) values.push_back(vector_of(form(kernel_.node(each).operands[0])));
  const int64_t lanes = lanes_of_register(n.type);
  const int64_t edge = edge_of_squares(std::ssize(run), lanes, vector_bytes_);
  if (edge > 0) return store_in_squares(n, values, to, edge);
  for (int64_t first = 0; first < width_; first += lanes) {
    const LaneGroup group = {first, lanes, run.size()};
    std::vector<int> which(static_cast<size_t>(lanes));
    std::iota(which.begin(), which.end(), static_cast<int>(first));
    std::vector<Value*> parts;
    for (Value* const value : values) parts.push_back(b_.CreateShuffleVector(value, which));
    const std::vector<Value*> pieces = interleaved(b_, parts);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const int64_t place =
          first * static_cast<int64_t>(run.size()) + static_cast<int64_t>(i) * lanes;
      Value* const where = b_.CreateGEP(element, to, number(place));
      if (Value* const mask = mask_of_piece(group, i, false)) {
        masked_store(pieces[i], where, alignment_of(n.type), mask);
      } else {
        b_.CreateAlignedStore(pieces[i], where, alignment_of(n.type));
      }
    }
  }
}

void CpuKernelEmitter::store_in_squares(const Node& n, const std::vector<Value*>& values, Value* to,
                                        int64_t edge) {
  llvm::Type* const element = codegen::memory_type_of(context_, n.type);
  const auto count = std::ssize(values);
  for (int64_t first = 0; first < width_; first += edge) {
    std::vector<int> which(static_cast<size_t>(edge));
    std::iota(which.begin(), which.end(), static_cast<int>(first));
    for (int64_t done = 0; done < count; done += edge) {
      const int64_t begin = std::min(done, count - edge);
      std::vector<Value*> columns;
      for (int64_t i = begin; i < begin + edge; ++i)
        columns.push_back(b_.CreateShuffleVector(values[static_cast<size_t>(i)], which));
      const std::vector<Value*> rows = transposed(b_, std::move(columns));
      for (int64_t row = 0; row < edge; ++row) {
        Value* const where = b_.CreateGEP(element, to, number((first + row) * count + begin));
        Value* const stored = rows[static_cast<size_t>(row)];
        if (mask_ != nullptr) {
          masked_store(stored, where, alignment_of(n.type), mask_of_row(first + row, edge));
        } else {
          b_.CreateAlignedStore(stored, where, alignment_of(n.type));
        }
      }
    }
  }
}

}  // namespace tenon::cpu
