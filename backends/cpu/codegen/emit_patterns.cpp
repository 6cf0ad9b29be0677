// Lanes over rows of a few elements as vectors over whole rows: with rows of 5 elements and vectors
// of 16, 5 vectors are 16 rows. Which row and place of a row each lane has is the same for every 16
// rows, so that an access of elements that lie close to one another is one or two vectors of
// memory, whose elements a constant shuffle puts in order.
#include <numeric>

#include "backends/cpu/codegen/emitter.h"
#include "core/kernel/analysis/slope.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;

namespace {

constexpr int64_t kLongestRow = 32;
constexpr int64_t kMostLanesOfPattern = 16;   // Workgroups have multiples of 16 short rows.
constexpr size_t kMostNodesByPatterns = 600;  // of all vectors of a pattern
constexpr int64_t kMostLeaves = 7;            // of a reduction for each element
constexpr int64_t kMostJoined = 4;            // elements from lane to lane of other accesses
constexpr size_t kMostWindows = 8;            // of an access; more elements are gathered as fast

// The place of a number within dimensions of these sizes.
std::vector<int64_t> place_of(int64_t number, const Dims& sizes) {
  std::vector<int64_t> place(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; number /= sizes[d]) place[d] = number % sizes[d];
  return place;
}

// Vectors of `width` elements of memory that hold all places.
struct MemoryWindow {
  int64_t begin = 0;
  int64_t size = 0;  ///< Up to the last of the places within.
};
std::vector<MemoryWindow> windows_of(std::vector<int64_t> places, int64_t width) {
  std::ranges::sort(places);
  std::vector<MemoryWindow> windows;
  for (const int64_t place : places) {
    if (windows.empty() || place >= windows.back().begin + width) windows.push_back({place, 0});
    windows.back().size = place - windows.back().begin + 1;
  }
  return windows;
}

bool is_in_order(const std::vector<int64_t>& places) {
  return std::ranges::adjacent_find(places, [](int64_t a, int64_t b) { return b != a + 1; }) ==
         places.end();
}

bool are_different(std::vector<int64_t> places) {
  std::ranges::sort(places);
  return std::ranges::adjacent_find(places) == places.end();
}

// Whether a body consists of operations, accesses, and conditions that only compute, or that depend
// on the place within a row alone; `taken` is one whose condition holds.
class PatternCheck {
 public:
  PatternCheck(const kernel::Kernel& kernel, const std::vector<ValueId>& within, NodeId taken)
      : kernel_(kernel), constants_(within.begin(), within.end()), taken_(taken) {}

  bool run(kernel::BlockId id) {
    return std::ranges::all_of(kernel_.block(id).nodes, [&](NodeId each) { return check(each); });
  }
  size_t nodes() const { return nodes_; }
  const std::vector<const Node*>& accesses() const { return accesses_; }

 private:
  bool check(NodeId id) {
    const Node& n = kernel_.node(id);
    ++nodes_;
    if (n.op == OpCode::kLoad || n.op == OpCode::kStore) {
      accesses_.push_back(&n);
      return true;
    }
    if (kernel::is_scalar_op(n.op)) {
      if (std::ranges::all_of(n.operands, [&](ValueId x) { return is_constant(x); }))
        constants_.insert(n.results[0]);
      return true;
    }
    if (n.op == OpCode::kYield) return true;
    if (n.op == OpCode::kReduce) return check_reduce(n);
    if (n.op != OpCode::kIf) return false;
    const size_t before = accesses_.size();
    if (id == taken_) constants_.insert(n.operands[0]);
    if (!run(n.blocks[0]) || !run(n.blocks[1])) return false;
    return id == taken_ || accesses_.size() == before || is_constant(n.operands[0]);
  }
  // A reduction of a few leaves, which are one after the other.
  bool check_reduce(const Node& n) {
    const int64_t leaves = element_count(n.extents);
    const size_t before = nodes_;
    if (n.over_lanes || leaves > kMostLeaves || !run(n.blocks[0]) || !run(n.blocks[1]))
      return false;
    nodes_ += (nodes_ - before) * static_cast<size_t>(std::max<int64_t>(leaves - 1, 0));
    return true;
  }
  bool is_constant(ValueId value) const {
    return kernel_.value(value).kind == kernel::ValueKind::kConstant || constants_.contains(value);
  }

  const kernel::Kernel& kernel_;
  std::set<ValueId> constants_;  ///< Those that are the same for each pattern.
  const NodeId taken_;
  std::vector<const Node*> accesses_;
  size_t nodes_ = 0;
};

}  // namespace

// How many operations an access of a row takes, if vectors are along its last dimension, whose
// elements are `apart`: under masks, together with what lies between them (emit_runs.cpp), or by
// gathers.
int64_t CpuKernelEmitter::operations_of_row(int64_t apart, const RowPattern& pattern) {
  const int64_t last = pattern.sizes.back();
  const int64_t vectors = (last + pattern.width - 1) / pattern.width;
  const bool gathers = last < pattern.width / 2 || std::abs(apart) > kMostJoined;
  return pattern.count / last * (gathers ? last : std::abs(apart) > 1 ? 2 * vectors : vectors);
}

std::vector<int64_t> CpuKernelEmitter::RowPattern::places_of(const Node& access,
                                                             int64_t first) const {
  const std::vector<int64_t>& by = slopes.at(&access);
  std::vector<int64_t> places;
  for (int64_t lane = 0; lane < width; ++lane) {
    const std::vector<int64_t> at = place_of((first + lane) % count, sizes);
    int64_t place = by[0] * ((first + lane) / count);
    for (size_t d = 0; d < at.size(); ++d) place += by[d + 1] * at[d];
    places.push_back(place);
  }
  return places;
}

// Finds how the places of all accesses grow. Whether each needs few vectors of memory, and all
// together fewer operations than vectors along the last dimension.
bool CpuKernelEmitter::fits_accesses(RowPattern& pattern, const Node& n,
                                     const std::vector<const Node*>& accesses,
                                     const Varying& varying) const {
  const std::vector<ValueId>& arguments = kernel_.block(n.blocks[0]).arguments;
  const int64_t vectors = pattern.rows * pattern.count / pattern.width;
  int64_t operations = 0, by_rows = 0;
  const std::function<bool(ValueId)> is_linear = [&](ValueId value) {
    const kernel::Value& v = kernel_.value(value);
    if (!varying(value) || v.kind != kernel::ValueKind::kResult) return true;
    const Node& node = kernel_.node(v.node);
    const bool known =
        node.op == OpCode::kAdd || node.op == OpCode::kSub || node.op == OpCode::kMul;
    return known && std::ranges::all_of(node.operands, is_linear);
  };
  for (const Node* access : accesses) {
    if (!std::ranges::all_of(kernel::indices_of(*access), is_linear)) return false;
    std::vector<int64_t>& slopes = pattern.slopes[access];
    for (size_t d = pattern.row; d < arguments.size(); ++d) {
      const std::optional<int64_t> slope = kernel::Slopes(kernel_, arguments[d]).of_place(*access);
      if (!slope) return false;
      slopes.push_back(*slope);
    }
    for (int64_t vector = 0; vector < vectors; ++vector) {
      const std::vector<int64_t> places = pattern.places_of(*access, vector * pattern.width);
      const size_t windows = windows_of(places, pattern.width).size();
      if (windows > kMostWindows) return false;
      if (access->op == OpCode::kStore && !are_different(places)) return false;
      if (slopes[0] == 0 && vector > 0) continue;  // The same for all rows.
      operations += is_in_order(places) ? 1 : 2 * static_cast<int64_t>(windows);
    }
    by_rows += pattern.rows * operations_of_row(slopes.back(), pattern);
  }
  return operations < by_rows;
}

std::optional<CpuKernelEmitter::RowPattern> CpuKernelEmitter::pattern_of(const Node& n) const {
  const std::vector<ValueId>& arguments = kernel_.block(n.blocks[0]).arguments;
  if (n.op != OpCode::kLanes || vector_bytes_ < 32) return {};
  RowPattern pattern;
  size_t first = n.extents.size();
  while (first > 1 && pattern.count * n.extents[first - 1] <= kLongestRow)
    pattern.count *= n.extents[--first];
  if (pattern.count < 2) return {};
  const auto within = static_cast<std::ptrdiff_t>(first);
  pattern.row = first - 1;
  pattern.row_index = arguments[pattern.row];
  pattern.bound = rows_bound(n, pattern.row);
  pattern.sizes = Dims(n.extents.begin() + within, n.extents.end());
  const std::vector<ValueId> inner(arguments.begin() + within, arguments.end());
  PatternCheck check(kernel_, inner, pattern.bound.value_or(kernel::kNone));
  if (!check.run(n.blocks[0]) || check.accesses().empty()) return {};
  const Varying varying(kernel_, n, {arguments.begin() + within - 1, arguments.end()});
  pattern.width =
      std::min(vector_bytes_ / (varying.widest() == 0 ? 4 : varying.widest()), kMostLanesOfPattern);
  pattern.rows = pattern.width / std::gcd(pattern.width, pattern.count);
  const int64_t vectors = pattern.rows * pattern.count / pattern.width;
  // Rows of whole vectors, along memory, need no pattern.
  if ((pattern.rows == 1 && pattern.sizes.size() == 1) || n.extents[pattern.row] < pattern.rows ||
      static_cast<size_t>(vectors) * check.nodes() > kMostNodesByPatterns) {
    return {};
  }
  if (!fits_accesses(pattern, n, check.accesses(), varying)) return {};
  return pattern;
}

bool CpuKernelEmitter::lanes_by_patterns(const Node& n) {
  const kernel::Block& body = kernel_.block(n.blocks[0]);
  const Ids& arguments = body.arguments;
  const std::optional<RowPattern> found = pattern_of(n);
  if (!found) return false;
  const RowPattern& pattern = *found;
  const auto first = static_cast<std::ptrdiff_t>(pattern.row);
  const Varying varying(kernel_, n, {arguments.begin() + first, arguments.end()});
  const ValueId row = arguments[pattern.row];
  const auto inner_is_zero = [&] {
    for (size_t d = pattern.row + 1; d < arguments.size(); ++d)
      values_[arguments[d]] = index_from(number(0));
  };
  nest(arguments, Dims(n.extents.begin(), n.extents.begin() + first), std::nullopt, [&] {
    inner_is_zero();
    const int64_t extent = n.extents[pattern.row];
    Value* const rows = pattern.bound ? places_left(body, row, extent) : number(extent);
    Value* const full = b_.CreateAnd(rows, number(-pattern.rows));
    loop(number(0), full, pattern.rows, [&](Value* at) {
      const RowPattern* const outer = std::exchange(pattern_, &pattern);
      in_lanes(pattern.width, varying, [&] {
        first_row_ = at;
        for (pattern_place_ = 0; pattern_place_ < pattern.rows * pattern.count;
             pattern_place_ += pattern.width) {
          set_pattern_indices(n);
          block(n.blocks[0]);
        }
      });
      pattern_ = outer;
    });
    const Ids inner(arguments.begin() + first + 1, arguments.end());
    loop(full, rows, 1, [&](Value* at) {
      values_[row] = index_from(at);
      nest(inner, pattern.sizes, std::nullopt, [&] { block(n.blocks[0]); });
    });
    taken_ = kernel::kNone;
  });
  return true;
}

// The indices of the current vector: constants, and the first row plus constants.
void CpuKernelEmitter::set_pattern_indices(const Node& n) {
  const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
  llvm::Type* const type = codegen::type_of(context_, kernel_.index_type);
  const auto constants = [&](const std::function<int64_t(int64_t)>& of) {
    std::vector<llvm::Constant*> list;
    for (int64_t lane = 0; lane < width_; ++lane)
      list.push_back(llvm::ConstantInt::getSigned(type, of(pattern_place_ + lane)));
    return llvm::ConstantVector::get(list);
  };
  const int64_t count = pattern_->count;
  Value* const rows =
      b_.CreateVectorSplat(static_cast<unsigned>(width_), b_.CreateTrunc(first_row_, type));
  values_[arguments[pattern_->row]] = {
      nullptr, b_.CreateAdd(rows, constants([&](int64_t at) { return at / count; })), 0};
  for (size_t d = 0; d < pattern_->sizes.size(); ++d) {
    values_[arguments[pattern_->row + 1 + d]] = {
        nullptr, constants([&](int64_t at) { return place_of(at % count, pattern_->sizes)[d]; }),
        0};
  }
}

// An index at the first row of the pattern, and the first place of it; pattern_of() has found that
// it consists of sums, differences and products.
CpuKernelEmitter::Value* CpuKernelEmitter::index_at_pattern(ValueId value) {
  if (!varies(value)) return wide_of(form(value));
  const kernel::Value& v = kernel_.value(value);
  if (v.kind != kernel::ValueKind::kResult)
    return pattern_->row_index == value ? first_row_ : number(0);
  const Node& n = kernel_.node(v.node);
  Value* const x = index_at_pattern(n.operands[0]);
  Value* const y = index_at_pattern(n.operands[1]);
  if (n.op == OpCode::kAdd) return b_.CreateAdd(x, y);
  return n.op == OpCode::kSub ? b_.CreateSub(x, y) : b_.CreateMul(x, y);
}

// Where the lanes of an access lie.
struct CpuKernelEmitter::PatternPlaces {
  Value* pointer = nullptr;     ///< The address of place 0.
  std::vector<int64_t> places;  ///< One for each lane.
  std::vector<bool> active;
  std::vector<MemoryWindow> windows;  ///< They hold the places of active lanes.
  bool in_order = false;              ///< Lane by lane, from `begin` on.
  int64_t begin = 0;
};

std::optional<CpuKernelEmitter::PatternPlaces> CpuKernelEmitter::pattern_places(const Node& n) {
  if (pattern_ == nullptr || !pattern_->slopes.contains(&n)) return {};
  PatternPlaces where;
  const auto* mask = mask_ == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask_);
  for (int64_t lane = 0; lane < width_; ++lane) {
    const llvm::Constant* one =
        mask == nullptr ? nullptr : mask->getAggregateElement(static_cast<unsigned>(lane));
    if (mask_ != nullptr && one == nullptr) return {};
    where.active.push_back(mask_ == nullptr || one->isOneValue());
  }
  const Dims strides = kernel_.memory(n.memories[0]).resolved_strides();
  Value* offset = number(0);
  for (size_t d = 0; const ValueId index : kernel::indices_of(n)) {
    offset = b_.CreateAdd(offset, b_.CreateMul(index_at_pattern(index), number(strides[d++])));
  }
  where.pointer =
      b_.CreateGEP(codegen::memory_type_of(context_, n.type), memories_[n.memories[0]], offset);
  where.places = pattern_->places_of(n, pattern_place_);
  std::vector<int64_t> active;
  where.in_order = true;
  for (size_t lane = 0; lane < where.places.size(); ++lane) {
    if (!where.active[lane]) continue;
    const int64_t begin = where.places[lane] - static_cast<int64_t>(lane);
    if (active.empty()) where.begin = begin;
    where.in_order &= begin == where.begin;
    active.push_back(where.places[lane]);
  }
  where.windows = windows_of(std::move(active), width_);
  return where;
}

// A mask with the lanes for which `holds` is true; null: all.
CpuKernelEmitter::Value* CpuKernelEmitter::constant_mask(
    const std::function<bool(int64_t)>& holds) {
  std::vector<llvm::Constant*> list;
  bool all = true;
  for (int64_t lane = 0; lane < width_; ++lane) {
    all &= holds(lane);
    list.push_back(b_.getInt1(holds(lane)));
  }
  return all ? nullptr : llvm::ConstantVector::get(list);
}

bool CpuKernelEmitter::load_by_pattern(const Node& n) {
  if (!varies(n.results[0])) return false;  // A number for all lanes, which may be an index.
  const std::optional<PatternPlaces> found = pattern_places(n);
  if (!found) return false;
  const PatternPlaces& where = *found;
  llvm::Type* const element = codegen::memory_type_of(context_, n.type);
  auto* const vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width_));
  const llvm::Align align(static_cast<uint64_t>(storage_bytes(n.type)));
  const auto at = [&](int64_t place) {
    return b_.CreateGEP(element, where.pointer, number(place));
  };
  const auto loaded = [&](int64_t place, Value* mask) -> Value* {
    if (mask == nullptr) return b_.CreateAlignedLoad(vector, at(place), align);
    return b_.CreateMaskedLoad(vector, at(place), align, mask,
                               llvm::Constant::getNullValue(vector));
  };
  Value* value = llvm::Constant::getNullValue(vector);
  if (where.windows.size() == 1 && where.windows[0].size == 1) {
    value = b_.CreateVectorSplat(static_cast<unsigned>(width_),
                                 b_.CreateAlignedLoad(element, at(where.windows[0].begin), align));
  } else if (where.in_order && !where.windows.empty()) {
    value = loaded(where.begin, constant_mask([&](int64_t lane) {
                     return where.active[static_cast<size_t>(lane)];
                   }));
  } else {
    for (const MemoryWindow& window : where.windows) {
      Value* const mask = constant_mask([&](int64_t lane) { return lane < window.size; });
      std::vector<int> order;
      for (int64_t lane = 0; lane < width_; ++lane) {
        const int64_t place = where.places[static_cast<size_t>(lane)] - window.begin;
        const bool here = where.active[static_cast<size_t>(lane)] && place >= 0 && place < width_;
        order.push_back(static_cast<int>(here ? width_ + place : lane));
      }
      value = b_.CreateShuffleVector(value, loaded(window.begin, mask), order);
    }
  }
  if (is_pred(n.type)) value = b_.CreateTrunc(value, type_of(n.type, true));
  values_[n.results[0]] = {nullptr, value, 0};
  return true;
}

bool CpuKernelEmitter::store_by_pattern(const Node& n) {
  const std::optional<PatternPlaces> found = pattern_places(n);
  if (!found) return false;
  const PatternPlaces& where = *found;
  llvm::Type* const element = codegen::memory_type_of(context_, n.type);
  const llvm::Align align(static_cast<uint64_t>(storage_bytes(n.type)));
  Value* value = vector_of(form(n.operands[0]));
  if (is_pred(n.type)) {
    value = b_.CreateZExt(
        value, llvm::FixedVectorType::get(b_.getInt8Ty(), static_cast<unsigned>(width_)));
  }
  const auto stored = [&](Value* what, int64_t place, Value* mask) {
    Value* const to = b_.CreateGEP(element, where.pointer, number(place));
    if (mask == nullptr) {
      b_.CreateAlignedStore(what, to, align);
    } else {
      b_.CreateMaskedStore(what, to, align, mask);
    }
  };
  if (where.in_order && !where.windows.empty()) {
    stored(value, where.begin,
           constant_mask([&](int64_t lane) { return where.active[static_cast<size_t>(lane)]; }));
    return true;
  }
  for (const MemoryWindow& window : where.windows) {
    std::vector<int> order(static_cast<size_t>(width_), -1);
    for (size_t lane = 0; lane < where.places.size(); ++lane) {
      const int64_t place = where.places[lane] - window.begin;
      if (where.active[lane] && place >= 0 && place < width_)
        order[static_cast<size_t>(place)] = static_cast<int>(lane);
    }
    Value* const mask =
        constant_mask([&](int64_t lane) { return order[static_cast<size_t>(lane)] >= 0; });
    stored(b_.CreateShuffleVector(value, order), window.begin, mask);
  }
  return true;
}

}  // namespace tenon::cpu
