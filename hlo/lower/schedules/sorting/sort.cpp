// hlo/lower/schedules/sorting/: sorts, and the first elements of sorted rows.
//
// sort, by merging: runs of a few elements are sorted in registers, then sorted runs are merged in
// pairs until a row is one run: in scratch memory as long as they fit, which for a long row is true
// of its blocks, then through temporaries with a launch for each width. A lane makes a chunk of the
// merged run: a binary search along the diagonal finds how many of the positions before it come
// from the left run (Green, Odeh, Birk: Merge Path, 2014); from there on it takes the lesser of two
// elements, one after the other. Among equal elements, those of the left run come first, so that
// the sort is stable.
//
// A comparator that is not a strict order (LT with NaNs, LE) has no defined result: with LE, equal
// elements come in any order; where it is no order at all, elements may be missing and others
// repeated. Each position is written once, and the same in every execution.
#include <algorithm>
#include <array>
#include <bit>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/schedules/own_kernels.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

constexpr int64_t kRun = 4;           // elements that are sorted in registers
constexpr int64_t kChunk = 8;         // elements that a lane merges
constexpr int64_t kLongChunk = 32;    // of long runs, in which the search takes longer
constexpr int64_t kMostBlock = 4096;  // elements that a workgroup sorts in scratch memory
constexpr int64_t kLeastBlock = 64;

using RowReader = std::function<Elements(ValueId position)>;
using RowWriter = std::function<void(ValueId position, const Elements&)>;

// The runs that a pass merges; a kernel serves all widths.
struct MergeWidth {
  ValueId width = kernel::kNone;
  ValueId steps = kernel::kNone;  ///< The number of steps of the binary search.
  int64_t chunk = kChunk;
};

// The elements that are sorted together: a row, or a block of it.
struct Extent {
  ValueId limit = kernel::kNone;  ///< Their number.
  int64_t most = 1;               ///< Its greatest value.
  bool known = true;              ///< Whether it is `most`.

  bool is_multiple_of(int64_t of) const { return known && most % of == 0; }
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
  }

  Status run() {
    int64_t bytes = 0;
    for (const ElementType type : types_) bytes += 2 * Shape(type, {1}).byte_size();
    const bool in_scratch = tuning_.choose_flag(parameters::kRowScratch, true);
    const int64_t room = in_scratch ? limits_.scratch_bytes / std::max<int64_t>(bytes, 1) : 0;
    Dims rest = dims_;
    rest[axis_] = 1;
    const int64_t rows = element_count(rest);
    const bool enough = rows >= limits_.cost.few_results;
    int64_t block = size_;
    if (size_ > kRun && (size_ > room || (size_ > kMostBlock && !enough))) {
      const int64_t most = tuning_.choose(parameters::kSortBlock, std::min(room, kMostBlock));
      block = static_cast<int64_t>(
          std::bit_floor(static_cast<uint64_t>(std::min({most, room, size_}))));
      if (block < kLeastBlock) return in_temporaries(0);
    }
    return block == size_ && size_ <= kRun ? in_temporaries(0) : in_temporaries(block);
  }

 private:
  // --- Rows

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
  static ValueId bounded(Builder& b, const Extent& extent, ValueId position) {
    return b.max(b.min(position, b.sub(extent.limit, b.index(1))), b.index(0));
  }

  // Sorts run number `run` by exchanges of neighbours, which keep equal elements in order.
  void sort_run(KernelMaker& maker, const Extent& extent, const RowReader& read,
                const RowWriter& write, ValueId run) const {
    Builder& b = maker.b();
    const bool whole = extent.is_multiple_of(kRun);
    const int64_t count = std::min(kRun, extent.most);
    const ValueId start = b.mul(run, b.index(kRun));
    std::array<ValueId, kRun> positions{};
    std::array<Elements, kRun> x;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      positions[at] = b.add(start, b.index(i));
      x[at] = read(whole ? positions[at] : bounded(b, extent, positions[at]));
    }
    for (int64_t round = 0; round < count; ++round) {
      for (int64_t i = round % 2; i + 1 < count; i += 2) {
        Elements& left = x[static_cast<size_t>(i)];
        Elements& right = x[static_cast<size_t>(i + 1)];
        ValueId exchanged = before(maker, right, left);
        if (!whole) {
          const ValueId exists =
              b.compare(K::kLt, positions[static_cast<size_t>(i + 1)], extent.limit);
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
        b.if_then(b.compare(K::kLt, positions[at], extent.limit),
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
  ValueId from_left(KernelMaker& maker, const Extent& extent, const RowReader& read,
                    const Pair& pair, ValueId place, ValueId steps) const {
    Builder& b = maker.b();
    const ValueId low = b.max(b.sub(place, b.sub(pair.end, pair.middle)), b.index(0));
    const ValueId high = b.min(place, b.sub(pair.middle, pair.start));
    const Values found = b.for_loop(b.index(0), steps, 1, {low, high}, [&](const Values& state) {
      const ValueId first = bounded(b, extent, state[1]);
      const ValueId last = bounded(b, extent, state[2]);
      const ValueId half = b.div(b.add(first, last), b.index(2));
      const ValueId left = bounded(b, extent, b.add(pair.start, half));
      const ValueId right =
          bounded(b, extent, b.sub(b.add(pair.middle, b.sub(place, half)), b.index(1)));
      const ValueId open = b.compare(K::kLt, state[1], state[2]);
      const ValueId right_first = before(maker, read(right), read(left));
      const ValueId up = b.logical_and(open, b.logical_not(right_first));
      const ValueId down = b.logical_and(open, right_first);
      return Values{b.select(up, b.add(half, b.index(1)), state[1]),
                    b.select(down, half, state[2])};
    });
    return b.max(b.min(found[0], extent.limit), b.index(0));
  }

  void merge(KernelMaker& maker, const Extent& extent, const MergeWidth& by, const RowReader& read,
             const RowWriter& write, ValueId chunk) const {
    Builder& b = maker.b();
    const ValueId width = b.max(b.min(by.width, b.index(extent.most)), b.index(1));
    const ValueId first = b.mul(chunk, b.index(by.chunk));
    Pair pair{};
    pair.start = b.max(b.sub(first, b.rem(first, b.add(width, width))), b.index(0));
    pair.middle = b.min(b.add(pair.start, width), extent.limit);
    pair.end = b.min(b.add(pair.middle, width), extent.limit);
    const ValueId place = b.sub(first, pair.start);
    const ValueId taken = from_left(maker, extent, read, pair, place, by.steps);
    const ValueId left = bounded(b, extent, b.add(pair.start, taken));
    const ValueId right =
        b.max(b.min(b.add(pair.middle, b.sub(place, taken)), extent.limit), b.index(0));
    const Values x = ElementEmitter::flat(read(left));
    Values inits = {left, right};
    inits.insert(inits.end(), x.begin(), x.end());
    const Values y = ElementEmitter::flat(read(bounded(b, extent, right)));
    inits.insert(inits.end(), y.begin(), y.end());
    b.for_loop(b.index(0), b.index(by.chunk), 1, inits, [&](const Values& state) {
      const Elements head_left = ElementEmitter::unflat(state, types_, 3);
      const Elements head_right = ElementEmitter::unflat(state, types_, 3 + x.size());
      const ValueId ends = b.compare(K::kGe, state[2], pair.end);
      const ValueId ordered = b.logical_not(before(maker, head_right, head_left));
      const ValueId goes_left =
          b.logical_and(b.compare(K::kLt, state[1], pair.middle), b.logical_or(ends, ordered));
      const ValueId position = b.add(first, state[0]);
      const Elements next = select(maker, goes_left, head_left, head_right);
      if (extent.is_multiple_of(by.chunk)) {
        write(position, next);
      } else {
        b.if_then(b.compare(K::kLt, position, extent.limit), [&] { write(position, next); });
      }
      const ValueId after =
          b.add(bounded(b, extent, b.select(goes_left, state[1], state[2])), b.index(1));
      const Elements read_next = read(bounded(b, extent, after));
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

  static int64_t passes_between(int64_t width, int64_t end) {
    int64_t passes = 0;
    for (; width < end; width *= 2) ++passes;
    return passes;
  }
  // Steps of the search in runs of `width` elements, a power of two.
  static int64_t search_steps(int64_t width) {
    return std::bit_width(static_cast<uint64_t>(width));
  }

  using Sides =
      std::array<std::vector<uint32_t>, 2>;  // temporaries, between which passes alternate

  std::vector<MemoryId> outputs(KernelMaker& maker, const std::vector<uint32_t>* side) const {
    if (side == nullptr) return results(maker);
    std::vector<MemoryId> memories;
    for (const uint32_t t : *side) memories.push_back(maker.temporary(t, kernel::Access::kOut));
    return memories;
  }

  // Sorts blocks of `block` elements, in scratch memory, between whose two sides the passes
  // alternate.
  Status sort_blocks(int64_t block, const std::vector<uint32_t>* side, const std::string& suffix) {
    return add_kernel(lowered_, op_, suffix, [&](KernelMaker& maker) {
      Builder& b = maker.b();
      maker.inputs();
      const std::vector<MemoryId> to = outputs(maker, side);
      Dims grid = dims_;
      grid[axis_] = tiles_of(size_, block);
      const Values group = b.grid(grid);
      const ValueId start = b.mul(group[axis_], b.index(block));
      Extent extent = {b.index(block), block, size_ % block == 0};
      if (!extent.known) extent.limit = b.min(extent.limit, b.sub(b.index(size_), start));
      std::vector<MemoryId> sides;
      for (const ElementType type : types_) {
        const Type both = Type::tensor(type, {2, block});
        sides.push_back(b.scratch("runs", memory_type(both), memory_dims(both)));
      }
      const auto reader = [&](ValueId from) -> RowReader {
        return [&, from](ValueId at) { return load_all(maker, sides, {from, at}); };
      };
      const auto writer = [&](ValueId into) -> RowWriter {
        return [&, into](ValueId at, const Elements& x) { store_all(maker, sides, x, {into, at}); };
      };
      const auto place = [&](ValueId at) {
        Values index = group;
        index[axis_] = b.add(start, at);
        return index;
      };
      const RowReader from_input = [&](ValueId at) { return input(maker, place(at)); };
      b.lanes({tiles_of(block, kRun)}, [&](const Values& i) {
        sort_run(maker, extent, from_input, writer(b.index(0)), i[0]);
      });
      const int64_t passes = passes_between(kRun, block);
      const auto pass = [&](const Values& state) {
        const ValueId width = b.max(b.min(state[1], b.index(block)), b.index(1));
        const ValueId from = b.max(b.min(state[2], b.index(1)), b.index(0));
        const ValueId other = b.sub(b.index(1), from);
        const MergeWidth by = {width, b.add(state[0], b.index(search_steps(kRun)))};
        b.lanes({tiles_of(block, kChunk)}, [&](const Values& i) {
          merge_if_any(maker, extent, by, reader(from), writer(other), i[0]);
        });
        return Values{b.add(width, width), other};
      };
      b.for_loop(b.index(0), b.index(passes), 1, {b.index(kRun), b.index(0)}, pass);
      b.lanes({block}, [&](const Values& i) {
        const auto write = [&] {
          store_all(maker, to, reader(b.index(passes % 2))(i[0]), place(i[0]));
        };
        if (extent.known) return write();
        b.if_then(b.compare(K::kLt, i[0], extent.limit), write);
      });
    });
  }

  // The last block of a row may lack a chunk as a whole.
  void merge_if_any(KernelMaker& maker, const Extent& extent, const MergeWidth& by,
                    const RowReader& read, const RowWriter& write, ValueId chunk) const {
    Builder& b = maker.b();
    if (extent.known) return merge(maker, extent, by, read, write, chunk);
    const ValueId first = b.mul(chunk, b.index(by.chunk));
    b.if_then(b.compare(K::kLt, first, extent.limit),
              [&] { merge(maker, extent, by, read, write, chunk); });
  }

  // Blocks of `block` elements in scratch memory, or without it runs; then merges through
  // temporaries.
  Status in_temporaries(int64_t block) {
    const int64_t sorted = std::max(block, kRun);
    const int64_t passes = passes_between(sorted, size_);
    Sides sides;
    for (size_t side = 0; side < 2 && side < static_cast<size_t>(passes); ++side) {
      for (const ElementType type : types_) {
        sides[side].push_back(static_cast<uint32_t>(lowered_.temporaries.size()));
        lowered_.temporaries.emplace_back(type, dims_);
      }
    }
    const auto side_after = [&](int64_t p) {
      return p == passes ? nullptr : &sides[static_cast<size_t>(p) % 2];
    };
    const std::string suffix = passes == 0 ? "" : "_runs";
    TENON_TRY(block == 0 ? sort_runs(side_after(0), suffix)
                         : sort_blocks(block, side_after(0), suffix));
    for (int64_t p = 0; p < passes; ++p) {
      TENON_TRY(merge_runs(sorted << p, sorted >= kLongChunk ? kLongChunk : kChunk,
                           sides[static_cast<size_t>(p) % 2], side_after(p + 1)));
    }
    return {};
  }

  // Calls body(piece, position -> index) for each piece of `length` elements of a row.
  void for_each_piece(
      KernelMaker& maker, int64_t length,
      const std::function<void(ValueId, const std::function<Values(ValueId)>&)>& body) {
    Dims pieces = dims_;
    pieces[axis_] = tiles_of(size_, length);
    for_each_index(maker.b(), pieces, tuning_, [&](const Values& index) {
      body(index[axis_], [&](ValueId position) {
        Values moved = index;
        moved[axis_] = position;
        return moved;
      });
    });
  }

  Extent row_of(Builder& b) const { return {b.index(size_), size_, true}; }

  Status sort_runs(const std::vector<uint32_t>* side, const std::string& suffix) {
    return add_kernel(lowered_, op_, suffix, [&](KernelMaker& maker) {
      maker.inputs();
      const std::vector<MemoryId> to = outputs(maker, side);
      for_each_piece(maker, kRun, [&](ValueId run, const auto& at) {
        const RowReader read = [&](ValueId position) { return input(maker, at(position)); };
        const RowWriter write = [&](ValueId position, const Elements& x) {
          store_all(maker, to, x, is_scalar_ && side == nullptr ? Values{} : at(position));
        };
        sort_run(maker, row_of(maker.b()), read, write, run);
      });
    });
  }

  // Merges runs of `width` elements; the width is a parameter of the kernel.
  Status merge_runs(int64_t width, int64_t chunk, const std::vector<uint32_t>& source,
                    const std::vector<uint32_t>* side) {
    const auto make = [&](KernelMaker& maker) {
      Builder& b = maker.b();
      std::vector<MemoryId> from;
      maker.inputs();
      for (const uint32_t t : source) from.push_back(maker.temporary(t, kernel::Access::kIn));
      const std::vector<MemoryId> to = outputs(maker, side);
      const ValueId stated = b.scalar("width", b.index_type());
      const MergeWidth by = {stated, b.scalar("steps", b.index_type()), chunk};
      for_each_piece(maker, chunk, [&](ValueId piece, const auto& at) {
        const RowReader read = [&](ValueId position) {
          return load_all(maker, from, at(position));
        };
        const RowWriter write = [&](ValueId position, const Elements& x) {
          store_all(maker, to, x, at(position));
        };
        merge(maker, row_of(b), by, read, write, piece);
      });
    };
    return add_kernel(lowered_, op_, "_merge", make,
                      {static_cast<uint64_t>(width), static_cast<uint64_t>(search_steps(width))});
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
};

}  // namespace

Status lower_sort(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits) {
  if (lowers_by_counting(op, tuning, limits)) return lower_counting_sort(lowered, op);
  return SortLowering(lowered, op, tuning, limits).run();
}

}  // namespace tenon::hlo::lower
