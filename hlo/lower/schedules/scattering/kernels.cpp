// scatter: the result is initialised with the input; then updates are combined into it.
//
// If the order of combinations cannot change a bit (integer addition, minimum, maximum …), all
// updates run in parallel as atomics where units run many lanes (an atomic takes three times as
// long as an addition in order), and those of a workgroup go into scratch memory, if the whole
// result fits there and many updates share an element (a histogram). Many numbers that are combined
// with a few in any other known way are combined in parts, each serially into a copy of its own,
// and the copies in order, so that each run gives the same bits. All others are processed serially,
// in the order of the updates, so that the result of duplicates is defined; the elements of a
// window are distributed.
#include <algorithm>

#include "hlo/ir/region.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/schedules/own_kernels.h"
#include "hlo/lower/schedules/scattering/scatter.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

// Updates for each element of a copy of the result, from which it pays to make one.
constexpr int64_t kUpdatesAnElement = 8;
constexpr int64_t kMostCopies = 256;
// Elements of a window from which its own lanes are enough.
constexpr int64_t kWideWindow = 32;

// The op by which the region combines two numbers of type `type`; null for any other region.
const Instruction* combination_of(const Instruction& scatter) {
  if (scatter.result_count() != 1) return nullptr;
  const Computation& region = scatter.region(0);
  const ElementType type = scatter.operand_type(0).element_type();
  const bool of_type = scatter.operand_type(2).element_type() == type &&
                       region.parameter(0).type().element_type() == type;
  return of_type ? op_of_two_parameters(region) : nullptr;
}

std::optional<kernel::AtomicKind> atomic_kind(const Instruction& scatter) {
  const Instruction* const op = combination_of(scatter);
  if (op == nullptr || !is_integer(scatter.operand_type(0).element_type())) return std::nullopt;
  switch (op->code()) {
    case OpCode::kAdd:
      return kernel::AtomicKind::kAdd;
    case OpCode::kMinimum:
      return kernel::AtomicKind::kMin;
    case OpCode::kMaximum:
      return kernel::AtomicKind::kMax;
    case OpCode::kAnd:
      return kernel::AtomicKind::kAnd;
    case OpCode::kOr:
      return kernel::AtomicKind::kOr;
    case OpCode::kXor:
      return kernel::AtomicKind::kXor;
    default:
      return std::nullopt;
  }
}

class ScatterLowering {
 public:
  /// `whole` is the scatter or a fusion with it.
  ScatterLowering(LoweredOp& lowered, const Instruction& whole, const Instruction& scatter,
                  const LowerLimits& limits)
      : lowered_(lowered),
        whole_(whole),
        op_(scatter),
        limits_(limits),
        count_(scatter.result_count()),
        updates_(scatter) {}

  Status run(TuningParameters& tuning) {
    for (uint32_t r = 0; r < count_; ++r) {
      TENON_TRY(begin_as(lowered_, whole_, r, outside(op_.operand(r)), tuning));
    }
    if (update_count() == 0) return {};
    if (const auto atomic = atomic_kind(op_)) {
      const bool shared = limits_.cost.busy_lanes > 1;
      const bool are_atomic = tuning.choose_flag(parameters::kScatterAtomic, shared);
      TENON_ASSIGN(const bool taken, counts_in_scratch(*atomic, tuning));
      if (taken) return {};
      if (are_atomic) return atomics(*atomic, tuning);
    }
    if (op_.flag(AttrKey::unique_indices) && tuning.choose_flag(parameters::kScatterUnique, true)) {
      return at_once(tuning, "_unique",
                     [&](ElementEmitter& e, const Values& to, const Values& update) {
                       updates_.combine(e, results_, to, update);
                     });
    }
    const int64_t copies = tuning.choose(parameters::kScatterCopies, useful_copies());
    if (copies > 1 && can_copy()) return in_copies(copies, tuning);
    return in_order();
  }

 private:
  const Type& type() const { return op_.operand_type(0); }
  int64_t update_count() const { return element_count(op_.operand_type(count_ + 1).dims()); }

  // `value`, or, for a parameter of a fusion, the operand.
  Value outside(Value value) const {
    const Instruction* const def = value.def;
    if (&whole_ == &op_ || def->code() != OpCode::kParameter) return value;
    const Computation& body = whole_.region(0);
    for (size_t i = 0; i < body.parameter_count(); ++i) {
      if (body.parameter(i) == value) return whole_.operand(i);
    }
    return value;
  }

  void declare(KernelMaker& maker) {
    maker.inputs();
    results_.clear();
    for (uint32_t r = 0; r < count_; ++r) {
      results_.push_back(maker.result(r, kernel::Access::kInOut));
    }
  }

  // Calls `body` with the input index and the update of `index`, of the batch and the window.
  template <class Body>
  void at(ElementEmitter& e, const Values& index, const Body& body) {
    const auto split = index.begin() + static_cast<std::ptrdiff_t>(updates_.batch().size());
    updates_.at_window(e, Values(index.begin(), split), Values(split, index.end()), body);
  }
  Dims batch_and_window() const {
    Dims all = updates_.batch();
    all.insert(all.end(), updates_.window().begin(), updates_.window().end());
    return all;
  }

  // --- All updates at once

  template <class Body>
  Status at_once(TuningParameters& tuning, std::string_view suffix, const Body& body) {
    return add_kernel(lowered_, whole_, suffix, [&](KernelMaker& maker) {
      declare(maker);
      for_each_index(maker.b(), batch_and_window(), tuning, [&](const Values& index) {
        at(maker.e(), index,
           [&](const Values& to, const Values& update) { body(maker.e(), to, update); });
      });
    });
  }

  Status atomics(kernel::AtomicKind atomic, TuningParameters& tuning) {
    return at_once(tuning, "_atomic",
                   [&](ElementEmitter& e, const Values& to, const Values& update) {
                     const Element x = e.element(op_.operand(count_ + 1), update);
                     e.b.atomic(atomic, x.re, results_[0], to);
                   });
  }

  // If many updates share an element of a result that fits scratch memory.
  Taken counts_in_scratch(kernel::AtomicKind atomic, TuningParameters& tuning) {
    const int64_t elements = element_count(type().dims());
    const int64_t each = updates_a_workgroup(elements);
    const ElementType number = type().element_type();
    const int64_t block = is_serial() ? limits_.cost.lanes : 0;
    const int64_t bytes = Shape(number, {elements + 1 + block}).byte_size() + 8 * block;
    const bool fits = bytes <= limits_.scratch_bytes;
    // Lanes of a vector that are windows combine in order.
    const bool shares = is_serial() || limits_.cost.busy_lanes > 1;
    const bool pays = fits && shares && update_count() >= kUpdatesAnElement * elements;
    if (!fits || !tuning.choose_flag(parameters::kScatterCounts, pays)) return false;
    return counts(atomic, each);
  }

  // Whether a unit runs one lane, which combines one number after the other anyway.
  bool is_serial() const {
    return limits_.cost.busy_lanes == 1 && element_count(updates_.window()) == 1;
  }

  // Many for the elements that it begins and ends with, but so few that every unit has some.
  int64_t updates_a_workgroup(int64_t elements) const {
    const CostModel& cost = limits_.cost;
    const int64_t units = std::max<int64_t>(cost.busy_lanes / cost.lanes, 1);
    const int64_t many = std::max(cost.leaves_a_part, 4 * kUpdatesAnElement * elements);
    return std::min(many, std::max(tiles_of(update_count(), units), elements));
  }

  // Where an update belongs in memory of one dimension that has one element more than the result,
  // for updates that are outside.
  ValueId place_or_spare(ElementEmitter& e, const Values& batch, const Values& window) const {
    const Dims& dims = type().dims();
    const auto [to, inside] = updates_.place(e, batch, window);
    return e.b.select(inside, linear_index(e.b, to, dims), e.b.index(element_count(dims)));
  }

  // Each workgroup combines `each` updates in scratch memory, then that with the result.
  Taken counts(kernel::AtomicKind atomic, int64_t each) {
    const Dims& dims = type().dims();
    const int64_t elements = element_count(dims);
    each = std::min(each, update_count());
    return try_kernel(lowered_, whole_, "_counts", [&](KernelMaker& maker) {
      declare(maker);
      Builder& b = maker.b();
      const Values part = b.grid({tiles_of(update_count(), each)});
      // The spare element saves a branch for each update.
      const MemoryId own = b.scratch("own", memory_type(type()), {elements + 1});
      b.lanes({elements + 1}, [&](const Values& i) {
        b.store(b.constant(type().element_type(), *identity()), own, i);
      });
      const ValueId begin = b.mul(part[0], b.index(each));
      if (is_serial()) {
        const ValueId end = b.min(b.add(begin, b.index(each)), b.index(update_count()));
        in_blocks(maker, {begin, end}, true, [&](const Values& to, ValueId x) {
          b.store(combined(maker.e(), b.load(own, to), x), own, to);
        });
      } else {
        count_in_lanes(maker, atomic, begin, each, own);
      }
      b.lanes({elements}, [&](const Values& i) {
        b.atomic(atomic, b.load(own, i), results_[0], delinearize(b, i[0], dims));
      });
    });
  }

  void count_in_lanes(KernelMaker& maker, kernel::AtomicKind atomic, ValueId begin, int64_t each,
                      MemoryId own) {
    Builder& b = maker.b();
    const Dims all = batch_and_window();
    b.lanes({each}, [&](const Values& i) {
      const ValueId k = b.add(begin, i[0]);
      if_inside(b, {{k, update_count(), each}}, [&] {
        const Values index = delinearize(b, k, all);
        const auto split = index.begin() + static_cast<std::ptrdiff_t>(updates_.batch().size());
        const Values batch(index.begin(), split);
        const Values window(split, index.end());
        const ValueId place = place_or_spare(maker.e(), batch, window);
        const Values update = updates_.update_index(batch, window);
        b.atomic(atomic, maker.e().element(op_.operand(2), update).re, own, {place});
      });
    });
  }

  // --- In parts, each into a copy

  bool can_copy() const { return limits_.scratch_bytes > 0 && identity().has_value(); }

  // The bits of the number that the region combines with any other to that other.
  std::optional<uint64_t> identity() const {
    const bool known = combination_of(op_) != nullptr && !is_pred(type().element_type());
    return known ? identity_of(op_.region(0), type().element_type()) : std::nullopt;
  }

  int64_t useful_copies() const {
    const int64_t elements = std::max<int64_t>(element_count(type().dims()), 1);
    const int64_t least = std::max(limits_.cost.leaves_a_part, kUpdatesAnElement * elements);
    if (element_count(updates_.window()) >= kWideWindow) return 1;
    return std::clamp<int64_t>(update_count() / least, 1, kMostCopies);
  }

  Status in_copies(int64_t copies, TuningParameters& tuning) {
    const auto number = static_cast<uint32_t>(lowered_.temporaries.size());
    const int64_t elements = element_count(type().dims());
    lowered_.temporaries.emplace_back(type().element_type(), Dims{copies, elements + 1});
    TENON_TRY(add_kernel(lowered_, whole_, "_parts", [&](KernelMaker& maker) {
      maker.inputs();
      fill_copy(maker, maker.temporary(number, kernel::Access::kInOut), copies);
    }));
    return add_kernel(lowered_, whole_, "_total", [&](KernelMaker& maker) {
      const MemoryId parts = maker.temporary(number, kernel::Access::kIn);
      const MemoryId result = maker.result(0, kernel::Access::kInOut);
      Builder& b = maker.b();
      for_each_index(b, type().dims(), tuning, [&](const Values& index) {
        const ValueId place = linear_index(b, index, type().dims());
        const Values total = b.for_loop(
            b.index(0), b.index(copies), 1, {b.load(result, index)}, [&](const Values& at) {
              return Values{combined(maker.e(), at[1], b.load(parts, {at[0], place}))};
            });
        b.store(total[0], result, index);
      });
    });
  }

  ValueId combined(ElementEmitter& e, ValueId x, ValueId y) {
    return e.call(op_.region(0), {{x}, {y}})[0].re;
  }

  void fill_copy(KernelMaker& maker, MemoryId parts, int64_t copies) {
    Builder& b = maker.b();
    const int64_t windows = element_count(updates_.batch());
    const int64_t each = tiles_of(windows, copies);
    const Values part = b.grid({copies});
    b.lanes({element_count(type().dims()) + 1}, [&](const Values& i) {
      b.store(b.constant(type().element_type(), *identity()), parts, {part[0], i[0]});
    });
    const ValueId begin = b.mul(part[0], b.index(each));
    const ValueId end = b.min(b.add(begin, b.index(each)), b.index(windows));
    const auto combine = [&](const Values& to, ValueId x) {
      const Values place = {part[0], to[0]};
      b.store(combined(maker.e(), b.load(parts, place), x), parts, place);
    };
    if (element_count(updates_.window()) == 1) return in_blocks(maker, {begin, end}, true, combine);
    updates_.in_order(
        maker.e(), {begin, end}, updates_.window(), [](const Values& lane) { return lane; },
        [&](const Values& to, const Values& from) {
          combine({linear_index(b, to, type().dims())}, maker.e().element(op_.operand(2), from).re);
        });
  }

  // --- In order

  // Whether single real numbers are combined, enough of them for blocks.
  bool is_scalar() const {
    const auto is_real = [&](const Type& each) { return !is_complex(each.element_type()); };
    const bool same =
        parameter_types(op_.region(0)) == std::vector<ElementType>(2, type().element_type());
    return count_ == 1 && element_count(updates_.window()) == 1 && is_real(type()) && same &&
           op_.operand_type(2).element_type() == type().element_type() &&
           update_count() > limits_.cost.workgroup_elements && limits_.scratch_bytes > 0;
  }

  // The elements of a row of `size` that a workgroup combines: a part of it, if it divides it.
  int64_t run_of(int64_t size) const {
    for (int64_t run = std::min(size, limits_.cost.most_lanes); run >= kWideWindow; --run) {
      if (size % run == 0) return run;
    }
    return size;
  }

  // Numbers one by one: lanes compute where a block of them belongs, and what is combined there, if
  // that is not in memory; then one after the other is combined. With `has_spare` places are those
  // of place_or_spare; else the first index of one that is outside is -1: bytes that tell it would
  // be stored one by one where vectors have no masks for them.
  void in_blocks(KernelMaker& maker, const ScatterEmitter::ValueRange& all, bool has_spare,
                 const std::function<void(const Values& to, ValueId x)>& combine) {
    Builder& b = maker.b();
    ElementEmitter& e = maker.e();
    const int64_t size = limits_.cost.lanes;
    const Values window(updates_.window().size(), b.index(0));
    const Value update = op_.operand(2);
    const bool computes =
        e.memory_of(e.resolve(update)) == kernel::kNone && update.def->code() != OpCode::kConstant;
    const size_t rank = has_spare ? 1 : type().dims().size();
    std::vector<MemoryId> places;
    for (size_t d = 0; d < std::max<size_t>(rank, 1); ++d) {
      places.push_back(b.scratch("place", b.index_type(), {size}));
    }
    const MemoryId numbers =
        computes ? b.scratch("number", memory_type(update.type()), {size}) : kernel::kNone;
    const auto store_place = [&](const Values& batch, const Values& i) {
      if (has_spare) return b.store(place_or_spare(e, batch, window), places[0], i);
      auto [to, inside] = updates_.place(e, batch, window);
      to.resize(places.size(), b.index(0));
      to[0] = b.select(inside, to[0], b.index(-1));
      for (size_t d = 0; d < to.size(); ++d) b.store(to[d], places[d], i);
    };
    b.for_loop(all.begin, all.end, size, {}, [&](const Values& first) {
      const ValueId count = b.min(b.sub(all.end, first[0]), b.index(size));
      b.lanes({size}, [&](const Values& i) {
        b.if_then(b.compare(K::kLt, i[0], count), [&] {
          const Values batch = delinearize(b, b.add(first[0], i[0]), updates_.batch());
          store_place(batch, i);
          if (!computes) return;
          b.store(e.element(update, updates_.update_index(batch, window)).re, numbers, i);
        });
      });
      b.for_loop(b.index(0), count, 1, {}, [&](const Values& i) {
        Values to;
        for (const MemoryId place : places) to.push_back(b.load(place, i));
        const auto one = [&] {
          const Values batch = delinearize(b, b.add(first[0], i[0]), updates_.batch());
          const ValueId x = computes ? b.load(numbers, i)
                                     : e.element(update, updates_.update_index(batch, window)).re;
          combine(Values(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(rank)), x);
        };
        has_spare ? one() : b.if_then(b.compare(K::kGe, to[0], b.index(0)), one);
        return Values{};
      });
      return Values{};
    });
  }

  // Dimensions of the window that indices do not move are divided among workgroups, which then
  // access disjoint elements: the last one in runs.
  Status in_order() {
    return add_kernel(lowered_, whole_, "", [&](KernelMaker& maker) {
      declare(maker);
      Builder& b = maker.b();
      const Dims& window = updates_.window();
      Dims grid(window.size(), 1);
      Dims lanes = window;
      for (size_t i = 0; i < window.size(); ++i) {
        if (updates_.is_moved(i)) continue;
        lanes[i] = i + 1 < window.size() ? 1 : run_of(window[i]);
        grid[i] = window[i] / lanes[i];
      }
      const Values groups = b.grid(grid);
      if (is_scalar()) {
        return in_blocks(maker, updates_.all_batches(b), false, [&](const Values& to, ValueId x) {
          const ValueId old = b.load(results_[0], to);
          b.store(combined(maker.e(), old, x), results_[0], to);
        });
      }
      const auto window_of = [&](const Values& lane) {
        Values position = lane;
        for (size_t i = 0; i < lane.size(); ++i) {
          if (grid[i] == 1) continue;
          position[i] = b.add(b.mul(groups[i], b.index(lanes[i])), lane[i]);
        }
        return position;
      };
      updates_.in_order(maker.e(), updates_.all_batches(b), lanes, window_of,
                        [&](const Values& to, const Values& from) {
                          updates_.combine(maker.e(), results_, to, from);
                        });
    });
  }

  LoweredOp& lowered_;
  const Instruction& whole_;
  const Instruction& op_;
  const LowerLimits& limits_;
  size_t count_;
  ScatterEmitter updates_;
  std::vector<MemoryId> results_;
};

}  // namespace

const Instruction* scatter_of_fusion(const Instruction& op) {
  if (op.code() != OpCode::kFusion || op.text(AttrKey::fusion_kind) != kScatterKind) return nullptr;
  const Instruction& end = *op.region(0).return_instruction();
  if (end.operand_count() != 1 || end.operand(0).def->code() != OpCode::kScatter) return nullptr;
  const Instruction& scatter = *end.operand(0).def;
  if (scatter.result_count() != 1 || !has_elemental_regions(scatter)) return nullptr;
  // Every other op is one whose elements a kernel computes where it reads them.
  for (const Instruction& each : op.region(0)) {
    const bool known = &each == &scatter || &each == &end || each.code() == OpCode::kConstant;
    if (!known && !is_elemental(each)) return nullptr;
  }
  return &scatter;
}

Status lower_scatter(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                     const LowerLimits& limits) {
  const Instruction* const inner = scatter_of_fusion(op);
  return ScatterLowering(lowered, op, inner != nullptr ? *inner : op, limits).run(tuning);
}

}  // namespace tenon::hlo::lower
