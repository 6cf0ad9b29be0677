// Fusions of a sort and slices of its first elements: the first k elements of each row, without
// sorting the row.
//
// Element i of a row belongs to group i mod G, with G a power of two. Lanes find the first element
// of each group in the order of the comparator, and the winners of pairs up to one: a tree, whose
// root is the first element of the row. Then, k times, one lane writes the element at the root,
// searches its group for the first element behind it, and plays the games on the path from that
// group to the root again. Among equal elements the lower index wins, so that the order is that of
// a stable sort. The time of a row of n elements is that of n + k (n / G + log G) comparisons.
#include <bit>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/schedules/own_kernels.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

constexpr int64_t kGroupSize = 8;
constexpr int64_t kMostGroups = 4096;

const Instruction* sort_in(const Instruction& fusion) {
  const Instruction* sort = nullptr;
  for (const Instruction& op : fusion.region(0)) {
    if (op.code() == OpCode::kSort) {
      if (sort != nullptr) return nullptr;
      sort = &op;
    } else if (op.code() != OpCode::kSlice && op.code() != OpCode::kIota &&
               op.code() != OpCode::kConstant && op.code() != OpCode::kReturn) {
      return nullptr;
    }
  }
  return sort;
}

// An element of the row: its index, or the row's length if there is none, and the operands of the
// sort that the comparator reads.
struct Contender {
  ValueId index = kernel::kNone;
  Elements keys;
};

class FirstElements {
 public:
  FirstElements(KernelMaker& maker, const Instruction& fusion, const Instruction& sort,
                int64_t groups)
      : maker_(maker),
        b_(maker.b()),
        fusion_(fusion),
        sort_(sort),
        groups_(groups),
        dims_(sort.operand_type(0).dims()) {
    int64_t axis = sort.integer(AttrKey::dimension, -1);
    if (axis < 0) axis += static_cast<int64_t>(dims_.size());
    axis_ = static_cast<size_t>(axis);
    size_ = dims_[axis_];
    for (size_t k = 0; k < sort.operand_count(); ++k) {
      const Computation& region = sort.region(0);
      const bool read = !region.parameter(2 * k).def->uses().empty() ||
                        !region.parameter(2 * k + 1).def->uses().empty();
      if (read) keys_.push_back(k);
    }
  }

  void run() {
    maker_.inputs();
    const Instruction& end = *fusion_.region(0).return_instruction();
    for (uint32_t r = 0; r < end.operand_count(); ++r) {
      results_.emplace_back(end.operand(r).def->operand(0).index, maker_.result(r));
    }
    const int64_t kept = fusion_.result_type(0).dims()[axis_];
    Dims rest = dims_;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis_));
    row_ = b_.grid(rest);
    indices_ = b_.scratch("first", b_.index_type(), {2 * groups_});
    for (const size_t k : keys_) {
      const Type keys = Type::tensor(type_of(k), {2 * groups_});
      trees_.push_back(b_.scratch("keys", memory_type(keys), memory_dims(keys)));
    }
    groups();
    for (int64_t level = groups_ / 2; level > 0; level /= 2) {
      b_.lanes({level}, [&](const Values& i) { play(b_.add(i[0], b_.index(level))); });
    }
    b_.lanes({1}, [&](const Values&) {
      b_.for_loop(b_.index(0), b_.index(kept), 1, {}, [&](const Values& turn) {
        take(turn[0]);
        return Values{};
      });
    });
  }

 private:
  ElementType type_of(size_t k) const { return sort_.operand_type(k).element_type(); }

  Element read(size_t k, ValueId position) {
    Values index = row_;
    index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis_), position);
    return maker_.e().element(sort_.operand(k), index);
  }
  Contender at(ValueId position, ValueId index) {
    Contender x{index, {}};
    for (const size_t k : keys_) x.keys.push_back(read(k, position));
    return x;
  }
  Contender node(ValueId place) {
    Contender x{b_.load(indices_, {place}), {}};
    for (size_t i = 0; i < keys_.size(); ++i) {
      const Type type = Type::tensor(type_of(keys_[i]), {});
      x.keys.push_back(maker_.e().load(trees_[i], type, {place}));
    }
    return x;
  }
  void set_node(ValueId place, const Contender& x) {
    b_.store(x.index, indices_, {place});
    for (size_t i = 0; i < keys_.size(); ++i) maker_.e().store(x.keys[i], trees_[i], {place});
  }

  // Whether the comparator puts `x` before `y`.
  ValueId before(const Contender& x, const Contender& y) {
    Elements arguments;
    size_t next = 0;
    for (size_t k = 0; k < sort_.operand_count(); ++k) {
      const bool read = next < keys_.size() && keys_[next] == k;
      for (const Contender* each : {&x, &y}) {
        // The comparator does not read the others.
        arguments.push_back(read ? each->keys[next] : maker_.e().constant(type_of(k), 0));
      }
      if (read) ++next;
    }
    return maker_.e().call(sort_.region(0), arguments)[0].re;
  }
  // The same in the order of a stable sort. Of two elements that the comparator puts before one
  // another (LE), the later one comes first, so that no element comes before itself.
  ValueId comes_before(const Contender& x, const Contender& y) {
    const ValueId forth = before(x, y);
    const ValueId back = before(y, x);
    const ValueId earlier = b_.compare(K::kLt, x.index, y.index);
    const ValueId later = b_.compare(K::kLt, y.index, x.index);
    const ValueId wins = b_.logical_and(forth, b_.logical_or(b_.logical_not(back), later));
    const ValueId tie = b_.logical_and(b_.logical_not(b_.logical_or(forth, back)), earlier);
    return b_.logical_or(wins, tie);
  }
  ValueId exists(const Contender& x) { return b_.compare(K::kLt, x.index, b_.index(size_)); }

  Contender chosen(ValueId second, const Contender& x, const Contender& y) {
    Contender z{b_.select(second, y.index, x.index), {}};
    for (size_t i = 0; i < keys_.size(); ++i) {
      z.keys.push_back(maker_.e().select(second, y.keys[i], x.keys[i]));
    }
    return z;
  }
  Contender winner(const Contender& x, const Contender& y) {
    const ValueId better = b_.logical_or(b_.logical_not(exists(x)), comes_before(y, x));
    return chosen(b_.logical_and(exists(y), better), x, y);
  }
  void play(ValueId place) {
    const ValueId left = b_.mul(place, b_.index(2));
    set_node(place, winner(node(left), node(b_.add(left, b_.index(1)))));
  }

  Values flat(const Contender& x) const {
    Values all = {x.index};
    const Values keys = ElementEmitter::flat(x.keys);
    all.insert(all.end(), keys.begin(), keys.end());
    return all;
  }
  Contender unflat(const Values& values, size_t first) const {
    std::vector<ElementType> types;
    for (const size_t k : keys_) types.push_back(type_of(k));
    return {values[first], ElementEmitter::unflat(values, types, first + 1)};
  }
  // The first of `count` elements, each of which comes behind those before it in the row.
  template <class Leaf, class Combine>
  Contender first_of(int64_t count, const Contender& init, const Leaf& leaf,
                     const Combine& combine) {
    const Values inits = flat(init);
    return unflat(
        b_.reduce({.extents = {count},
                   .inits = inits,
                   .leaf = [&](const Values& j) { return flat(leaf(j[0])); },
                   .combine =
                       [&](const Values& both) {
                         return flat(combine(unflat(both, 0), unflat(both, inits.size())));
                       }}),
        0);
  }

  // The first element of each group. Of the groups, some have one more than the others.
  void groups() {
    const int64_t whole = size_ / groups_;
    b_.lanes({groups_}, [&](const Values& i) {
      const auto leaf = [&](ValueId j) {
        const ValueId position = b_.add(b_.mul(b_.add(j, b_.index(1)), b_.index(groups_)), i[0]);
        return at(position, position);
      };
      const Contender first = first_of(
          whole - 1, at(i[0], i[0]), leaf,
          [&](const Contender& x, const Contender& y) { return chosen(before(y, x), x, y); });
      set_node(b_.add(i[0], b_.index(groups_)), first);
    });
    if (size_ % groups_ == 0) return;
    b_.lanes({size_ % groups_}, [&](const Values& i) {
      const ValueId position = b_.add(i[0], b_.index(whole * groups_));
      const ValueId place = b_.add(i[0], b_.index(groups_));
      const Contender x = node(place);
      const Contender y = at(position, position);
      set_node(place, chosen(before(y, x), x, y));
    });
  }

  // Writes the element at the root, and takes it out of its group.
  void take(ValueId turn) {
    const Contender taken = node(b_.index(1));
    // Without an order there may be no element left.
    const ValueId position = b_.max(b_.min(taken.index, b_.index(size_ - 1)), b_.index(0));
    for (const auto& [k, memory] : results_) {
      Values to = row_;
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(axis_), turn);
      maker_.e().store(read(k, position), memory, to);
    }
    const ValueId group = b_.rem(position, b_.index(groups_));
    Contender none = taken;
    none.index = b_.index(size_);
    const int64_t most = tiles_of(size_, groups_);
    const auto leaf = [&](ValueId j) {
      const ValueId place = b_.add(b_.mul(j, b_.index(groups_)), group);
      Contender x = at(b_.min(place, b_.index(size_ - 1)), place);
      const ValueId behind = b_.logical_and(exists(x), comes_before(taken, x));
      x.index = b_.select(behind, place, b_.index(size_));
      return x;
    };
    const Contender next = first_of(
        most, none, leaf, [&](const Contender& x, const Contender& y) { return winner(x, y); });
    const ValueId bottom = b_.add(group, b_.index(groups_));
    set_node(bottom, next);
    const int levels = std::bit_width(static_cast<uint64_t>(groups_)) - 1;
    b_.for_loop(b_.index(0), b_.index(levels), 1, {bottom}, [&](const Values& state) {
      // Clamps to bounds that the tree guarantees, for the verifier (K10).
      const ValueId up = b_.div(state[1], b_.index(2));
      const ValueId place = b_.max(b_.min(up, b_.index(groups_ - 1)), b_.index(1));
      play(place);
      return Values{place};
    });
  }

  KernelMaker& maker_;
  Builder& b_;
  const Instruction& fusion_;
  const Instruction& sort_;
  const int64_t groups_;
  const Dims& dims_;
  size_t axis_ = 0;
  int64_t size_ = 0;
  std::vector<size_t> keys_;                            // operands that the comparator reads
  std::vector<std::pair<uint32_t, MemoryId>> results_;  // by result of the sort
  Values row_;
  // Node i has the nodes 2 i and 2 i + 1 below it; those from `groups_` on are the groups.
  MemoryId indices_ = kernel::kNone;
  std::vector<MemoryId> trees_;
};

}  // namespace

const Instruction* sort_of_selection(const Instruction& op) {
  const bool is_selection =
      op.code() == OpCode::kFusion && op.text(AttrKey::fusion_kind) == kSelectionKind;
  return is_selection ? sort_in(op) : nullptr;
}

Status lower_selection(LoweredOp& lowered, const Instruction& fusion, TuningParameters& tuning,
                       const LowerLimits& limits) {
  const Instruction& sort = *sort_in(fusion);
  int64_t axis = sort.integer(AttrKey::dimension, -1);
  if (axis < 0) axis += sort.operand_type(0).rank();
  const auto d = static_cast<size_t>(axis);
  const int64_t size = sort.operand_type(0).dims()[d];
  int64_t bytes = 2 * static_cast<int64_t>(sizeof(int64_t));
  for (size_t k = 0; k < sort.operand_count(); ++k) {
    bytes += 2 * Shape(sort.operand_type(k).element_type(), {1}).byte_size();
  }
  const int64_t wanted =
      tuning.choose(parameters::kSelectionGroups, std::min(size / kGroupSize, kMostGroups));
  const int64_t room = tuning.choose_flag(parameters::kRowScratch, true) ? limits.scratch_bytes : 0;
  const int64_t most = std::min({wanted, room / bytes, size});
  if (most < 1) {
    return Status(ErrorCode::kResourceExhausted, "there is no scratch memory for a selection");
  }
  const auto groups = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
  return add_kernel(lowered, fusion, "",
                    [&](KernelMaker& maker) { FirstElements(maker, fusion, sort, groups).run(); });
}

}  // namespace tenon::hlo::lower
