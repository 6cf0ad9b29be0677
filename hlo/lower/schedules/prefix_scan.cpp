// A reduce_window of prefixes or suffixes, such as a cumulative sum, in work that grows as the
// array does: each element is combined with the prefix before it.
//
// Many rows take a lane each, which scans its row, or a workgroup each, whose lanes scan it
// together where the target can do that and a row is contiguous. Few long rows are scanned in parts
// by three kernels (reduce-then-scan; Merrill and Garland, "Single-pass Parallel Prefix Scan with
// Decoupled Look-back", NVIDIA NVR-2016-002, section 3): each part is combined; a lane scans the
// combined parts of a row; each part is scanned from the prefix before it. The init value enters
// once (K5).
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>

#include "hlo/lower/elements/prefix_windows.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::MemoryId;

struct PrefixScan {
  const Instruction& op;
  PrefixWindows windows;
  int64_t size = 0;  ///< Elements of a row.
  Dims rows;         ///< The other dimensions.
  int64_t part = 0;  ///< Elements of a part.
  /// Whether the lanes of a workgroup scan a part together. What does not fill a part then belongs
  /// to the last one; else there is one part more, which may end behind the row.
  bool over_lanes = false;
  int64_t parts() const { return over_lanes ? size / part : tiles_of(size, part); }
};

std::optional<PrefixScan> prefix_scan_of(const FusedOp& fused) {
  const Instruction* const op = fused.whole();
  const auto windows = op == nullptr ? std::nullopt : prefix_windows(*op);
  if (!windows) return std::nullopt;
  PrefixScan scan{*op, *windows};
  scan.rows = op->operand_type(0).dims();
  const auto scanned = scan.rows.begin() + windows->dimension;
  scan.size = *scanned;
  scan.rows.erase(scanned);
  scan.part = scan.size;
  if (scan.size == 0 || element_count(scan.rows) == 0) return std::nullopt;
  return scan;
}

// Values that one lane scans as fast as many.
constexpr int64_t kFewValues = 32;

// Whether the lanes of a workgroup scan the combinations of parts too. Each then becomes the prefix
// up to its part, else the one before it.
bool shares_offsets(const PrefixScan& scan) {
  return scan.over_lanes && scan.parts() >= kFewValues;
}

// Emits the elements of a scan in one kernel.
class PrefixScanEmitter {
 public:
  PrefixScanEmitter(KernelMaker& maker, const PrefixScan& scan)
      : maker_(maker), b_(maker.b()), scan_(scan), r_(maker.e(), scan.op) {}

  const ReductionEmitter& reduction() const { return r_; }

  // The element of `row` that is number `k` in the order of the scan.
  Values leaf(const Values& row, ValueId k) const {
    return ElementEmitter::flat(r_.leaf(place(row, k)));
  }

  // Combines what comes before in the order of the scan with what comes behind.
  Values combine(const Values& before, const Values& behind) const {
    Values both = scan_.windows.reverse ? behind : before;
    const Values& right = scan_.windows.reverse ? before : behind;
    both.insert(both.end(), right.begin(), right.end());
    return r_.combine(both);
  }

  void store(const Values& prefix, const std::vector<MemoryId>& results, const Values& row,
             ValueId k) const {
    const Elements elements = r_.rounded(ElementEmitter::unflat(prefix, r_.types));
    const Values index = place(row, k);
    for (size_t i = 0; i < elements.size(); ++i) maker_.e().store(elements[i], results[i], index);
  }

  std::vector<MemoryId> results() const {
    std::vector<MemoryId> memories;
    for (uint32_t i = 0; i < r_.count; ++i) memories.push_back(maker_.result(i));
    return memories;
  }

  // One value a part and row, in memory.
  std::vector<MemoryId> temporaries(kernel::Access access) const {
    std::vector<MemoryId> memories;
    for (uint32_t i = 0; i < r_.count; ++i) memories.push_back(maker_.temporary(i, access));
    return memories;
  }
  Values load(const std::vector<MemoryId>& memories, const Values& index) const {
    Elements elements;
    for (size_t i = 0; i < r_.count; ++i) {
      elements.push_back(maker_.e().load(memories[i], Type::tensor(r_.types[i], {}), index));
    }
    return ElementEmitter::flat(elements);
  }
  void store(const Values& values, const std::vector<MemoryId>& memories,
             const Values& index) const {
    const Elements elements = ElementEmitter::unflat(values, r_.types);
    for (size_t i = 0; i < r_.count; ++i) maker_.e().store(elements[i], memories[i], index);
  }

  // The prefix before a part: that up to the part before it, if lanes share the offsets.
  Values prefix_of_part(const std::vector<MemoryId>& prefixes, const Values& row,
                        ValueId part) const {
    Values index = row;
    index.push_back(part);
    if (!shares_offsets(scan_)) return load(prefixes, index);
    return b_.if_else(
        b_.compare(K::kEq, part, b_.index(0)), [&] { return ElementEmitter::flat(r_.inits()); },
        [&] {
          index.back() = b_.sub(part, b_.index(1));
          return load(prefixes, index);
        });
  }

  // The number of the first element of part `p`.
  ValueId first_of(ValueId p) const { return b_.mul(p, b_.index(scan_.part)); }

  // A scan of `count` elements of a row from number `first` on, after `prefix`.
  kernel::Builder::ReduceSpec spec(const Values& row, ValueId first, int64_t count,
                                   const Values& prefix) const {
    kernel::Builder::ReduceSpec spec;
    spec.extents = {count};
    spec.over_lanes = scan_.over_lanes;
    spec.commutative = r_.is_commutative();
    spec.inits = prefix;
    spec.leaf = [=, this](const Values& at) { return leaf(row, b_.add(first, at[0])); };
    spec.combine = [this](const Values& both) {
      const auto middle = both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2);
      return combine({both.begin(), middle}, {middle, both.end()});
    };
    return spec;
  }

  // Scans, and stores the prefixes; returns the last one.
  Values store_scan(const kernel::Builder::ReduceSpec& spec, const std::vector<MemoryId>& memories,
                    const Values& row, ValueId first) const {
    return b_.scan(spec, [&](const Values& at) {
      store({at.begin() + 1, at.end()}, memories, row, b_.add(first, at[0]));
    });
  }

  // Combines `prefix` with the elements of a part from number `low` in it on, and calls `each` with
  // every prefix. Parts are equally long, so that lanes run together: the last may end behind the
  // row.
  Values scan_part(const Values& row, ValueId first, int64_t low, const Values& prefix,
                   const std::function<void(const Values& prefix, ValueId k)>& each) const {
    return b_.for_loop(b_.index(low), b_.index(scan_.part), 1, prefix, [&](const Values& at) {
      Values before(at.begin() + 1, at.end());
      const ValueId k = b_.add(first, at[0]);
      const auto step = [&] {
        Values next = combine(before, leaf(row, k));
        each(next, k);
        return next;
      };
      if (scan_.size % scan_.part == 0) return step();
      const ValueId inside = b_.compare(K::kLt, k, b_.index(scan_.size));
      return b_.if_else(inside, step, [&] { return before; });
    });
  }

 private:
  Values place(const Values& row, ValueId k) const {
    Values index = row;
    const ValueId at = scan_.windows.reverse ? b_.sub(b_.index(scan_.size - 1), k) : k;
    index.insert(index.begin() + scan_.windows.dimension, at);
    return index;
  }

  KernelMaker& maker_;
  kernel::Builder& b_;
  const PrefixScan& scan_;
  ReductionEmitter r_;
};

void scan_rows(KernelMaker& maker, const PrefixScan& scan, TuningParameters& tuning) {
  kernel::Builder& b = maker.b();
  maker.inputs();
  const PrefixScanEmitter emitter(maker, scan);
  const std::vector<MemoryId> results = emitter.results();
  const auto scan_row = [&](const Values& row) {
    const Values inits = ElementEmitter::flat(emitter.reduction().inits());
    const ValueId first = b.index(0);
    emitter.store_scan(emitter.spec(row, first, scan.size, inits), results, row, first);
  };
  if (scan.over_lanes) return scan_row(b.grid(scan.rows));
  for_each_index(b, scan.rows, tuning, scan_row);
}

Dims with_parts(const PrefixScan& scan) {
  Dims dims = scan.rows;
  dims.push_back(scan.parts());
  return dims;
}

// Calls `body` for each part of each row: a workgroup a part if its lanes share it, else a lane.
void for_each_part(kernel::Builder& b, const PrefixScan& scan, TuningParameters& tuning,
                   const std::function<void(const Values& index)>& body) {
  if (scan.over_lanes) return body(b.grid(with_parts(scan)));
  for_each_index(b, with_parts(scan), tuning, body);
}

void combine_parts(KernelMaker& maker, const PrefixScan& scan, TuningParameters& tuning) {
  kernel::Builder& b = maker.b();
  maker.inputs();
  const PrefixScanEmitter emitter(maker, scan);
  const std::vector<MemoryId> totals = emitter.temporaries(kernel::Access::kOut);
  const auto combine_part = [&](const Values& index) {
    const Values row(index.begin(), index.end() - 1);
    const ValueId first = emitter.first_of(index.back());
    if (scan.part == 1) return emitter.store(emitter.leaf(row, first), totals, index);
    if (scan.over_lanes) {
      const ValueId second = b.add(first, b.index(1));
      const auto rest = emitter.spec(row, second, scan.part - 1, emitter.leaf(row, first));
      // Lanes share an ordered reduction as a scan.
      const Values total = rest.commutative ? b.reduce(rest) : b.scan(rest, [](const Values&) {});
      return emitter.store(total, totals, index);
    }
    const Values total =
        emitter.scan_part(row, first, 1, emitter.leaf(row, first), [](const Values&, ValueId) {});
    emitter.store(total, totals, index);
  };
  for_each_part(b, scan, tuning, combine_part);
}

// Replaces the combination of each part by the prefix before it, or up to it if lanes share them.
void scan_parts(KernelMaker& maker, const PrefixScan& scan, TuningParameters& tuning) {
  kernel::Builder& b = maker.b();
  maker.inputs();
  const PrefixScanEmitter emitter(maker, scan);
  const std::vector<MemoryId> totals = emitter.temporaries(kernel::Access::kInOut);
  const auto at_part = [](const Values& row, ValueId part) {
    Values index = row;
    index.push_back(part);
    return index;
  };
  if (shares_offsets(scan)) {
    const Values row = b.grid(scan.rows);
    const Values inits = ElementEmitter::flat(emitter.reduction().inits());
    kernel::Builder::ReduceSpec spec = emitter.spec(row, b.index(0), scan.parts(), inits);
    spec.leaf = [&](const Values& at) { return emitter.load(totals, at_part(row, at[0])); };
    b.scan(spec, [&](const Values& at) {
      emitter.store({at.begin() + 1, at.end()}, totals, at_part(row, at[0]));
    });
    return;
  }
  for_each_index(b, scan.rows, tuning, [&](const Values& row) {
    const Values inits = ElementEmitter::flat(emitter.reduction().inits());
    b.for_loop(b.index(0), b.index(scan.parts()), 1, inits, [&](const Values& at) {
      const Values index = at_part(row, at[0]);
      const Values prefix(at.begin() + 1, at.end());
      const Values total = emitter.load(totals, index);
      emitter.store(prefix, totals, index);
      return emitter.combine(prefix, total);
    });
  });
}

void apply_prefixes(KernelMaker& maker, const PrefixScan& scan, TuningParameters& tuning) {
  kernel::Builder& b = maker.b();
  maker.inputs();
  const PrefixScanEmitter emitter(maker, scan);
  const std::vector<MemoryId> prefixes = emitter.temporaries(kernel::Access::kIn);
  const std::vector<MemoryId> results = emitter.results();
  const auto apply = [&](const Values& index) {
    const Values row(index.begin(), index.end() - 1);
    const ValueId first = emitter.first_of(index.back());
    const Values prefix = emitter.prefix_of_part(prefixes, row, index.back());
    const auto store = [&](const Values& next, ValueId k) { emitter.store(next, results, row, k); };
    if (!scan.over_lanes) {
      emitter.scan_part(row, first, 0, prefix, store);
      return;
    }
    const Values total =
        emitter.store_scan(emitter.spec(row, first, scan.part, prefix), results, row, first);
    const int64_t scanned = scan.parts() * scan.part;
    if (scanned == scan.size) return;
    const ValueId is_last = b.compare(K::kEq, index.back(), b.index(scan.parts() - 1));
    b.if_then(is_last, [&] {
      const int64_t rest = scan.size - scanned;
      if (rest >= kFewValues) {
        const ValueId behind = b.index(scanned);
        emitter.store_scan(emitter.spec(row, behind, rest, total), results, row, behind);
        return;
      }
      b.for_loop(b.index(scanned), b.index(scan.size), 1, total, [&](const Values& at) {
        Values next = emitter.combine({at.begin() + 1, at.end()}, emitter.leaf(row, at[0]));
        store(next, at[0]);
        return next;
      });
    });
  };
  for_each_part(b, scan, tuning, apply);
}

constexpr TuningParameterInfo kPrefixScanParameters[] = {
    {"scan_parts", "parts in which each row of a cumulative sum is scanned", 1 << 16, {1, 2, 3, 7}},
    {"scan_lanes", "whether the lanes of a workgroup scan a row of a cumulative sum together"}};

// A lane's elements wait for each other, so that short rows take as long as windows that lanes
// compute side by side.
std::optional<double> estimate_prefix_scan(const ScheduleInput& input) {
  const auto scan = prefix_scan_of(input.fused);
  if (!scan) return std::nullopt;
  const auto break_even = static_cast<double>(input.limits.cost.lane_scan);
  return input.elements_seconds * break_even / static_cast<double>(scan->size);
}

// Few rows are cut into parts, if they are long enough to be worth two further kernels: for lanes
// into as many as parts have elements; for workgroups into as many as fill the device, which is all
// that the bits of a sum depend on (on a CPU not on the number of its cores). Lanes read parts side
// by side: an odd number of 16 elements keeps them out of each other's sets of the cache.
int64_t part_of(const PrefixScan& scan, TuningParameters& tuning, const CostModel& cost) {
  const int64_t rows = element_count(scan.rows);
  const int64_t most = std::max<int64_t>(scan.size / cost.leaves_a_part, 1);
  int64_t preferred = 1;
  if (scan.over_lanes && cost.busy_lanes >= cost.many_lanes) {
    // Two workgroups a unit, each with some turns of its lanes.
    const int64_t wanted = tiles_of(2 * cost.busy_lanes, cost.lanes * rows);
    const int64_t turns = std::max<int64_t>(scan.size / (16 * cost.lanes), 1);
    preferred =
        static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(wanted, turns))));
  } else if (scan.over_lanes) {
    constexpr int64_t kTimesLonger = 16;  // Than what a lane would scan in the same time.
    preferred =
        std::clamp<int64_t>(cost.few_results / rows, 1, std::max<int64_t>(most / kTimesLonger, 1));
  } else if (rows < cost.few_results && most > 1) {
    preferred = static_cast<int64_t>(std::sqrt(static_cast<double>(scan.size)));
  }
  const int64_t parts = std::min(tuning.choose(kPrefixScanParameters[0], preferred), scan.size);
  if (scan.over_lanes) return scan.size / parts;
  const int64_t part = tiles_of(scan.size, parts);
  constexpr int64_t kLine = 16;
  return part < 4 * kLine || parts == 1 ? part : (tiles_of(part, kLine) | 1) * kLine;
}

Taken emit_prefix_scan(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                       const LowerLimits& limits) {
  std::optional<PrefixScan> scan = prefix_scan_of(fused);
  const int64_t last = scan->op.operand_type(0).rank() - 1;
  const bool is_contiguous = scan->windows.dimension == last;
  scan->over_lanes =
      tuning.choose_flag(kPrefixScanParameters[1], limits.cost.scans && is_contiguous &&
                                                       scan->size >= limits.cost.workgroup_scan);
  scan->part = part_of(*scan, tuning, limits.cost);
  const auto add = [&](std::string_view suffix, auto emit) {
    return add_kernel(lowered, fused.op, suffix,
                      [&](KernelMaker& maker) { emit(maker, *scan, tuning); });
  };
  if (scan->parts() == 1) {
    TENON_TRY(add("_scan", scan_rows));
    return true;
  }
  for (const ElementType type : accumulator_types(scan->op.region(0)))
    lowered.temporaries.emplace_back(type, with_parts(*scan));
  TENON_TRY(add("_parts", combine_parts));
  TENON_TRY(add("_offsets", scan_parts));
  TENON_TRY(add("_scan", apply_prefixes));
  return true;
}

}  // namespace

constinit const Schedule kPrefixScan = {
    "prefix-scan",
    "a reduce_window whose windows are the prefixes or suffixes along one dimension",
    "one lane per row, which combines each element with the prefix before it, or one workgroup, "
    "whose lanes scan it together; few long rows are scanned in parts, after a kernel that "
    "combines each part and one that scans these",
    kPrefixScanParameters,
    estimate_prefix_scan,
    emit_prefix_scan};

}  // namespace tenon::hlo::lower
