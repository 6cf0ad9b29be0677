// Lanes over rows of a few elements as vectors over whole rows (row_pattern.h): with rows of 5
// elements and vectors of 16, 5 vectors are 16 rows. Which row and place of a row each lane has is
// the same for every 16 rows, so that an access of elements that lie close to one another is one or
// two vectors of memory, whose elements a constant shuffle puts in order.
#include "backends/cpu/codegen/emitter.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::cpu {

using kernel::Node;
using kernel::NodeId;
using kernel::ValueId;

bool CpuKernelEmitter::lanes_by_patterns(const Node& n) {
  std::vector<std::optional<NodeId>> bounds;
  for (size_t d = 0; d < n.extents.size(); ++d) bounds.push_back(rows_bound(n, d));
  const bool is_along = plan_of(n).dimension + 1 == n.extents.size();
  const std::optional<RowPatterns> found =
      find_row_patterns(kernel_, n, vector_bytes_, is_along, bounds);
  if (!found) return false;
  const RowPattern& pattern = found->pattern;
  const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
  const auto row = static_cast<std::ptrdiff_t>(pattern.row);
  if (pattern.by_row) {
    nest(arguments, Dims(n.extents.begin(), n.extents.begin() + row + 1), std::nullopt,
         [&] { vectors_of_pattern(n, pattern); });
  } else {
    nest(arguments, Dims(n.extents.begin(), n.extents.begin() + row), std::nullopt,
         [&] { rows_by_pattern(n, *found); });
  }
  return true;
}

// As many rows together as a pattern has; the last ones one by one.
void CpuKernelEmitter::rows_by_pattern(const Node& n, const RowPatterns& patterns) {
  const RowPattern& pattern = patterns.pattern;
  const kernel::Block& body = kernel_.block(n.blocks[0]);
  const Ids inner(body.arguments.begin() + static_cast<std::ptrdiff_t>(pattern.row) + 1,
                  body.arguments.end());
  for (const ValueId each : inner) values_[each] = index_from(number(0));
  const int64_t extent = n.extents[pattern.row];
  Value* const rows = pattern.bound ? places_left(body, pattern.row_index, extent) : number(extent);
  Value* const full = b_.CreateAnd(rows, number(-pattern.rows));
  loop(number(0), full, pattern.rows, [&](Value* at) {
    first_row_ = at;
    vectors_of_pattern(n, pattern);
  });
  loop(full, rows, 1, [&](Value* at) {
    values_[pattern.row_index] = index_from(at);
    if (patterns.of_one_row) return vectors_of_pattern(n, *patterns.of_one_row);
    nest(inner, pattern.sizes, std::nullopt, [&] { block(n.blocks[0]); });
  });
  taken_ = kernel::kNone;
}

void CpuKernelEmitter::vectors_of_pattern(const Node& n, const RowPattern& pattern) {
  const Varying varying(kernel_, n, pattern.lanes_of(kernel_.block(n.blocks[0]).arguments));
  const RowPattern* const outer = std::exchange(pattern_, &pattern);
  in_lanes(pattern.width, varying, [&] {
    for (pattern_place_ = 0; pattern_place_ < pattern.elements(); pattern_place_ += pattern.width) {
      set_pattern_indices(n);
      mask_ =
          constant_mask([&](int64_t lane) { return pattern_place_ + lane < pattern.elements(); });
      block(n.blocks[0]);
    }
    mask_ = nullptr;
  });
  pattern_ = outer;
}

// The lanes of a value that depends on the place within a row alone.
llvm::Constant* CpuKernelEmitter::constants_of_pattern(ValueId value) {
  llvm::Type* const type = codegen::type_of(context_, kernel_.value(value).type);
  const std::vector<uint64_t>& known = pattern_->known.at(value);
  std::vector<llvm::Constant*> list;
  for (int64_t lane = 0; lane < width_; ++lane) {
    const auto at = static_cast<size_t>((pattern_place_ + lane) % pattern_->count);
    list.push_back(llvm::ConstantInt::getSigned(type, static_cast<int64_t>(known[at])));
  }
  return llvm::ConstantVector::get(list);
}

// The indices of the current vector: constants, and the first row plus constants.
void CpuKernelEmitter::set_pattern_indices(const Node& n) {
  const Ids& arguments = kernel_.block(n.blocks[0]).arguments;
  if (!pattern_->by_row) {
    llvm::Type* const type = codegen::type_of(context_, kernel_.index_type);
    std::vector<llvm::Constant*> rows;
    for (int64_t lane = 0; lane < width_; ++lane) {
      rows.push_back(llvm::ConstantInt::getSigned(type, (pattern_place_ + lane) / pattern_->count));
    }
    Value* const first =
        b_.CreateVectorSplat(static_cast<unsigned>(width_), b_.CreateTrunc(first_row_, type));
    values_[pattern_->row_index] = {nullptr, b_.CreateAdd(first, llvm::ConstantVector::get(rows)),
                                    0};
  }
  for (size_t d = pattern_->row + 1; d < arguments.size(); ++d)
    values_[arguments[d]] = {nullptr, constants_of_pattern(arguments[d]), 0};
}

bool CpuKernelEmitter::known_by_pattern(const Node& n) {
  if (pattern_ == nullptr || !varies(n.results[0]) || !pattern_->known.contains(n.results[0]))
    return false;
  const ElementType type = kernel_.value(n.results[0]).type;
  if (!is_integer(type) && !is_pred(type)) return false;
  values_[n.results[0]] = {nullptr, constants_of_pattern(n.results[0]), 0};
  return true;
}

// An index at the first row of the pattern, and the first place of it; find_row_patterns() has
// found that it consists of sums, differences, products and what is known.
CpuKernelEmitter::Value* CpuKernelEmitter::index_at_pattern(ValueId value) {
  if (!varies(value)) return wide_of(form(value));
  if (const auto known = pattern_->known.find(value); known != pattern_->known.end())
    return number(static_cast<int64_t>(known->second[0]));
  const kernel::Value& v = kernel_.value(value);
  if (v.kind != kernel::ValueKind::kResult) return first_row_;
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
  if (pattern_ == nullptr || !pattern_->accesses.contains(&n)) return {};
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
    return masked_load(vector, at(place), align, mask);
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
      masked_store(what, to, align, mask);
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
