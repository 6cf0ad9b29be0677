// sort, by merging: runs of a few elements are sorted in registers, then sorted runs are merged in
// pairs until a row is one run. A lane makes a chunk of the merged run: a binary search along the
// diagonal finds how many of the positions before it come from the left run (Green, Odeh, Birk:
// Merge Path, 2014); from there on it takes the lesser of two elements, one after the other. Among
// equal elements, those of the left run come first, so that the sort is stable.
//
// A comparator that is not a strict order (LT with NaNs) has no defined result; each position is
// still written once, with some element of its pair of runs, the same in every execution.
#include <array>
#include <bit>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/schedules/own_kernels.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

constexpr int64_t kRun = 4;    // elements that are sorted in registers
constexpr int64_t kChunk = 8;  // elements that a lane merges

using RowReader = std::function<Elements(ValueId position)>;
using RowWriter = std::function<void(ValueId position, const Elements&)>;

// What a pass needs to know of the runs that it merges; a kernel serves all widths.
struct MergeWidth {
  ValueId width = kernel::kNone;
  ValueId steps = kernel::kNone;  ///< Of the binary search.
};

class SortLowering {
 public:
  SortLowering(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
               const LowerLimits& limits)
      : lowered_(lowered), op_(op), tuning_(tuning), limits_(limits) {
    dims_ = op.operand_type(0).dims();
    is_scalar_ = dims_.empty();
    if (is_scalar_) dims_ = {1};
    int64_t axis = op.integer(AttrKey::dimension, -1);
    if (axis < 0) axis += static_cast<int64_t>(dims_.size());
    axis_ = is_scalar_ ? 0 : static_cast<size_t>(axis);
    size_ = dims_[axis_];
    for (size_t k = 0; k < op.operand_count(); ++k) {
      types_.push_back(op.operand_type(k).element_type());
    }
    for (int64_t width = kRun; width < size_; width *= 2) ++passes_;
  }

  Status run() {
    int64_t bytes = 0;
    for (const ElementType type : types_) bytes += 2 * Shape(type, {size_}).byte_size();
    const bool fits = bytes <= limits_.scratch_bytes;
    if (passes_ > 0 && fits && tuning_.choose_flag(parameters::kRowScratch, true)) {
      return in_scratch();
    }
    return in_temporaries();
  }

 private:
  // --- Rows

  Values with_axis(const Values& rest, ValueId position) const {
    Values index = rest;
    index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis_), position);
    return index;
  }
  Elements input(KernelMaker& maker, const Values& index) const {
    Elements elements;
    for (const Value operand : op_.operands()) {
      elements.push_back(maker.e().element(operand, is_scalar_ ? Values{} : index));
    }
    return elements;
  }
  Elements load_all(KernelMaker& maker, const std::vector<MemoryId>& memories,
                    const Values& index) const {
    Elements elements;
    for (size_t k = 0; k < memories.size(); ++k) {
      elements.push_back(maker.e().load(memories[k], Type::tensor(types_[k], {}), index));
    }
    return elements;
  }
  static void store_all(KernelMaker& maker, const std::vector<MemoryId>& memories,
                        const Elements& elements, const Values& index) {
    for (size_t k = 0; k < memories.size(); ++k) maker.e().store(elements[k], memories[k], index);
  }
  std::vector<MemoryId> results(KernelMaker& maker) const {
    std::vector<MemoryId> memories;
    for (uint32_t r = 0; r < op_.result_count(); ++r) memories.push_back(maker.result(r));
    return memories;
  }

  // --- The parts of a sort

  // Whether `x` comes before `y`; arguments of the region are interleaved.
  ValueId before(KernelMaker& maker, const Elements& x, const Elements& y) const {
    Elements arguments;
    for (size_t k = 0; k < x.size(); ++k) {
      arguments.push_back(x[k]);
      arguments.push_back(y[k]);
    }
    return maker.e().call(op_.region(0), arguments)[0].re;
  }
  static Elements select(KernelMaker& maker, ValueId condition, const Elements& x,
                         const Elements& y) {
    Elements chosen;
    for (size_t k = 0; k < x.size(); ++k) {
      chosen.push_back(maker.e().select(condition, x[k], y[k]));
    }
    return chosen;
  }
  // Clamps to the bounds that the search guarantees, for the verifier (K10).
  ValueId bounded(Builder& b, ValueId position) const {
    return b.max(b.min(position, b.index(size_ - 1)), b.index(0));
  }

  // Sorts run number `run` by exchanges of neighbours, which keep equal elements in order.
  void sort_run(KernelMaker& maker, const RowReader& read, const RowWriter& write,
                ValueId run) const {
    Builder& b = maker.b();
    const bool whole = size_ % kRun == 0;
    const int64_t count = std::min(kRun, size_);
    const ValueId start = b.mul(run, b.index(kRun));
    std::array<ValueId, kRun> positions{};
    std::array<Elements, kRun> x;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      positions[at] = b.add(start, b.index(i));
      x[at] = read(whole ? positions[at] : b.min(positions[at], b.index(size_ - 1)));
    }
    for (int64_t round = 0; round < count; ++round) {
      for (int64_t i = round % 2; i + 1 < count; i += 2) {
        Elements& left = x[static_cast<size_t>(i)];
        Elements& right = x[static_cast<size_t>(i + 1)];
        ValueId exchanged = before(maker, right, left);
        if (!whole) {
          const ValueId exists =
              b.compare(K::kLt, positions[static_cast<size_t>(i + 1)], b.index(size_));
          exchanged = b.logical_and(exchanged, exists);
        }
        const Elements first = select(maker, exchanged, right, left);
        right = select(maker, exchanged, left, right);
        left = first;
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (whole) {
        write(positions[at], x[at]);
      } else {
        b.if_then(b.compare(K::kLt, positions[at], b.index(size_)),
                  [&] { write(positions[at], x[at]); });
      }
    }
  }

  // The pair of runs in which a chunk lies, as positions in the row.
  struct Pair {
    ValueId start, middle, end;
  };

  // How many of the `place` elements before a chunk come from the left run: the search halves
  // [low, high].
  ValueId from_left(KernelMaker& maker, const RowReader& read, const Pair& pair, ValueId place,
                    ValueId steps) const {
    Builder& b = maker.b();
    const ValueId low = b.max(b.sub(place, b.sub(pair.end, pair.middle)), b.index(0));
    const ValueId high = b.min(place, b.sub(pair.middle, pair.start));
    const Values found = b.for_loop(b.index(0), steps, 1, {low, high}, [&](const Values& state) {
      const ValueId first = bounded(b, state[1]);
      const ValueId last = bounded(b, state[2]);
      const ValueId half = b.div(b.add(first, last), b.index(2));
      const ValueId left = bounded(b, b.add(pair.start, half));
      const ValueId right = bounded(b, b.sub(b.add(pair.middle, b.sub(place, half)), b.index(1)));
      const ValueId open = b.compare(K::kLt, state[1], state[2]);
      const ValueId right_first = before(maker, read(right), read(left));
      const ValueId up = b.logical_and(open, b.logical_not(right_first));
      const ValueId down = b.logical_and(open, right_first);
      return Values{b.select(up, b.add(half, b.index(1)), state[1]),
                    b.select(down, half, state[2])};
    });
    return b.max(b.min(found[0], b.index(size_)), b.index(0));
  }

  void merge(KernelMaker& maker, const MergeWidth& by, const RowReader& read,
             const RowWriter& write, ValueId chunk) const {
    Builder& b = maker.b();
    const ValueId width = b.max(b.min(by.width, b.index(size_)), b.index(1));
    const ValueId first = b.mul(chunk, b.index(kChunk));
    Pair pair{};
    pair.start = b.max(b.sub(first, b.rem(first, b.add(width, width))), b.index(0));
    pair.middle = b.min(b.add(pair.start, width), b.index(size_));
    pair.end = b.min(b.add(pair.middle, width), b.index(size_));
    const ValueId place = b.sub(first, pair.start);
    const ValueId taken = from_left(maker, read, pair, place, by.steps);
    const ValueId left = bounded(b, b.add(pair.start, taken));
    const ValueId right =
        b.max(b.min(b.add(pair.middle, b.sub(place, taken)), b.index(size_)), b.index(0));
    const Values x = ElementEmitter::flat(read(left));
    Values inits = {left, right};
    inits.insert(inits.end(), x.begin(), x.end());
    const Values y = ElementEmitter::flat(read(bounded(b, right)));
    inits.insert(inits.end(), y.begin(), y.end());
    b.for_loop(b.index(0), b.index(kChunk), 1, inits, [&](const Values& state) {
      const Elements head_left = ElementEmitter::unflat(state, types_, 3);
      const Elements head_right = ElementEmitter::unflat(state, types_, 3 + x.size());
      const ValueId ends = b.compare(K::kGe, state[2], pair.end);
      const ValueId ordered = b.logical_not(before(maker, head_right, head_left));
      const ValueId goes_left =
          b.logical_and(b.compare(K::kLt, state[1], pair.middle), b.logical_or(ends, ordered));
      const ValueId position = b.add(first, state[0]);
      const Elements next = select(maker, goes_left, head_left, head_right);
      if (size_ % kChunk == 0) {
        write(position, next);
      } else {
        b.if_then(b.compare(K::kLt, position, b.index(size_)), [&] { write(position, next); });
      }
      const ValueId after = b.add(bounded(b, b.select(goes_left, state[1], state[2])), b.index(1));
      const Elements read_next = read(b.min(after, b.index(size_ - 1)));
      Values changed = {b.select(goes_left, after, state[1]), b.select(goes_left, state[2], after)};
      for (const Elements& each : {select(maker, goes_left, read_next, head_left),
                                   select(maker, goes_left, head_right, read_next)}) {
        const Values flat = ElementEmitter::flat(each);
        changed.insert(changed.end(), flat.begin(), flat.end());
      }
      return changed;
    });
  }

  // --- Kernels

  // Two sides of scratch, between which the passes alternate.
  Status in_scratch() {
    return add_kernel(lowered_, op_, "", [&](KernelMaker& maker) {
      Builder& b = maker.b();
      maker.inputs();
      const std::vector<MemoryId> to = results(maker);
      Dims rest = dims_;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis_));
      const Values row = b.grid(rest);
      std::vector<MemoryId> sides;
      for (const ElementType type : types_) {
        const Type both = Type::tensor(type, {2, size_});
        sides.push_back(b.scratch("runs", memory_type(both), memory_dims(both)));
      }
      const auto reader = [&](ValueId side) -> RowReader {
        return [&, side](ValueId at) { return load_all(maker, sides, {side, at}); };
      };
      const auto writer = [&](ValueId side) -> RowWriter {
        return [&, side](ValueId at, const Elements& x) { store_all(maker, sides, x, {side, at}); };
      };
      const RowReader from_input = [&](ValueId at) { return input(maker, with_axis(row, at)); };
      b.lanes({tiles_of(size_, kRun)},
              [&](const Values& i) { sort_run(maker, from_input, writer(b.index(0)), i[0]); });
      b.for_loop(
          b.index(0), b.index(passes_), 1, {b.index(kRun), b.index(0)}, [&](const Values& state) {
            const ValueId width = b.max(b.min(state[1], b.index(size_)), b.index(1));
            const ValueId side = b.max(b.min(state[2], b.index(1)), b.index(0));
            const ValueId other = b.sub(b.index(1), side);
            const MergeWidth by = {width, b.add(state[0], b.index(search_steps(0)))};
            b.lanes({tiles_of(size_, kChunk)},
                    [&](const Values& i) { merge(maker, by, reader(side), writer(other), i[0]); });
            return Values{b.add(width, width), other};
          });
      b.lanes({size_}, [&](const Values& i) {
        store_all(maker, to, reader(b.index(passes_ % 2))(i[0]), with_axis(row, i[0]));
      });
    });
  }

  // Steps of the search in runs of pass `pass`: they have kRun 2^pass elements.
  static int64_t search_steps(int64_t pass) { return std::bit_width(uint64_t{kRun}) + pass; }

  Status in_temporaries() {
    std::array<std::vector<uint32_t>, 2> sides;
    for (size_t side = 0; side < 2 && side < static_cast<size_t>(passes_); ++side) {
      for (const ElementType type : types_) {
        sides[side].push_back(static_cast<uint32_t>(lowered_.temporaries.size()));
        lowered_.temporaries.emplace_back(type, dims_);
      }
    }
    TENON_TRY(pass(-1, sides));
    for (int64_t p = 0; p < passes_; ++p) TENON_TRY(pass(p, sides));
    return {};
  }

  // Pass -1 sorts runs, the others merge; the last writes the results.
  Status pass(int64_t p, const std::array<std::vector<uint32_t>, 2>& sides) {
    const bool merges = p >= 0;
    const std::string suffix = passes_ == 0 ? "" : merges ? "_merge" : "_runs";
    std::vector<uint64_t> scalars;
    if (merges) {
      scalars = {static_cast<uint64_t>(kRun) << p, static_cast<uint64_t>(search_steps(p))};
    }
    const auto make = [&](KernelMaker& maker) {
      Builder& b = maker.b();
      maker.inputs();
      std::vector<MemoryId> from;
      if (merges) {
        for (const uint32_t t : sides[static_cast<size_t>(p) % 2]) {
          from.push_back(maker.temporary(t, kernel::Access::kIn));
        }
      }
      std::vector<MemoryId> to;
      if (p + 1 == passes_) {
        to = results(maker);
      } else {
        for (const uint32_t t : sides[static_cast<size_t>(p + 1) % 2]) {
          to.push_back(maker.temporary(t, kernel::Access::kOut));
        }
      }
      MergeWidth by;
      if (merges) {
        by.width = b.scalar("width", b.index_type());
        by.steps = b.scalar("steps", b.index_type());
      }
      Dims pieces = dims_;
      pieces[axis_] = tiles_of(size_, merges ? kChunk : kRun);
      for_each_index(b, pieces, tuning_, [&](const Values& index) {
        const auto at = [&](ValueId position) {
          Values moved = index;
          moved[axis_] = position;
          return moved;
        };
        const RowReader read = [&](ValueId position) {
          return merges ? load_all(maker, from, at(position)) : input(maker, at(position));
        };
        const RowWriter write = [&](ValueId position, const Elements& x) {
          const bool last = p + 1 == passes_;
          store_all(maker, to, x, last && is_scalar_ ? Values{} : at(position));
        };
        if (merges) {
          merge(maker, by, read, write, index[axis_]);
        } else {
          sort_run(maker, read, write, index[axis_]);
        }
      });
    };
    return add_kernel(lowered_, op_, suffix, make, std::move(scalars));
  }

  LoweredOp& lowered_;
  const Instruction& op_;
  TuningParameters& tuning_;
  const LowerLimits& limits_;
  Dims dims_;
  bool is_scalar_ = false;
  size_t axis_ = 0;
  int64_t size_ = 0;
  std::vector<ElementType> types_;
  int64_t passes_ = 0;
};

}  // namespace

Status lower_sort(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits) {
  return SortLowering(lowered, op, tuning, limits).run();
}

}  // namespace tenon::hlo::lower
