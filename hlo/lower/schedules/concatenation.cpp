// Concatenations: a loop for each of the parts, so that no element asks which part it belongs to.
#include <algorithm>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {
namespace {

constexpr int64_t kMostInALane = 16;       // elements that one lane stores
constexpr int64_t kLeastRun = 64;          // elements of a part in a workgroup
constexpr int64_t kLeastLanesOfRows = 64;  // for lanes that store whole rows
constexpr int64_t kMostPartsOfRow = 64;    // loops of a kernel
constexpr size_t kMostMasked = 6;          // parts within a vector
constexpr int64_t kLongestMasked = 32;     // elements of a row in vectors over rows

// The concatenation that is the result, or of which the result is the transpose.
struct Concatenation {
  const Instruction* concatenate = nullptr;
  I64s permutation;  ///< Dimension d of the result is permutation[d] of the concatenation.
  Dims dims;         ///< Those of the result.
  size_t axis = 0;   ///< In the result.
};

std::optional<Concatenation> concatenation_of(const FusedOp& fused) {
  if (fused.results.size() != 1) return std::nullopt;
  const auto is_inner = [&](const Instruction* op) {
    return op != nullptr && std::ranges::find(fused.inner, op) != fused.inner.end();
  };
  Concatenation parts;
  parts.dims = fused.results[0].type().dims();
  const Instruction* op = fused.results[0].def;
  for (int64_t d = 0; d < static_cast<int64_t>(parts.dims.size()); ++d) {
    parts.permutation.push_back(d);
  }
  if (is_inner(op) && op->code() == OpCode::kTranspose) {
    parts.permutation = op->i64s(AttrKey::permutation);
    op = op->operand(0).def;
  }
  if (!is_inner(op) || op->code() != OpCode::kConcatenate || element_count(parts.dims) == 0 ||
      op->operand_count() > static_cast<size_t>(kMostPartsOfRow)) {
    return std::nullopt;
  }
  parts.concatenate = op;
  const auto place = std::ranges::find(parts.permutation, op->integer(AttrKey::dimension));
  parts.axis = static_cast<size_t>(place - parts.permutation.begin());
  return parts;
}

// Elements of the dimensions from `first` on.
int64_t elements_from(const Dims& dims, size_t first) {
  int64_t count = 1;
  for (size_t d = first; d < dims.size(); ++d) count *= dims[d];
  return count;
}

class ConcatenationKernel {
 public:
  ConcatenationKernel(KernelMaker& maker, const Concatenation& parts, TuningParameters& tuning)
      : maker_(maker), b_(maker.b()), parts_(parts), tuning_(tuning) {
    maker_.inputs();
    result_ = maker_.result(0);
    int64_t begin = 0;
    for (const Value value : parts.concatenate->operands()) {
      const Dims& dims = value.type().dims();
      const int64_t size = dims[static_cast<size_t>(parts.permutation[parts.axis])];
      if (size > 0) list_.push_back({value, begin, size});
      begin += size;
    }
  }

  void run() {
    const int64_t row = elements_from(parts_.dims, parts_.axis);
    const int64_t rows = element_count(parts_.dims) / row;
    if (row <= kMostInALane && rows >= kLeastLanesOfRows) return short_rows();
    long_rows(row);
  }

 private:
  struct PartOfResult {
    Value value;
    int64_t begin = 0;
    int64_t size = 0;
  };

  // Stores the element of `part` at `index`, whose place along the axis is that in the part.
  void store(const PartOfResult& part, const Values& index) {
    Values from(index.size());
    for (size_t d = 0; d < index.size(); ++d) {
      from[static_cast<size_t>(parts_.permutation[d])] = index[d];
    }
    Values to = index;
    if (part.begin != 0) to[parts_.axis] = b_.add(index[parts_.axis], b_.index(part.begin));
    maker_.e().store(maker_.e().element(part.value, from), result_, to);
  }

  // A lane stores a whole row.
  void short_rows() {
    const auto first = parts_.dims.begin();
    const Dims before(first, first + static_cast<std::ptrdiff_t>(parts_.axis));
    for_each_index(b_, before, tuning_, [&](const Values& row) {
      for (const PartOfResult& part : list_) {
        Dims box(first + static_cast<std::ptrdiff_t>(parts_.axis), parts_.dims.end());
        box[0] = part.size;
        for (int64_t n = 0; n < element_count(box); ++n) {
          Values index = row;
          for (size_t d = 0; d < box.size(); ++d) {
            index.push_back(b_.index(n / elements_from(box, d + 1) % box[d]));
          }
          store(part, index);
        }
      }
    });
  }

  // A workgroup stores some rows, or a share of each part of one.
  void long_rows(int64_t row) {
    const int64_t most = tuning_.choose(parameters::kLanes, CostModel().lanes * 4);
    const size_t axis = parts_.axis;
    int64_t longest = 1;
    for (const PartOfResult& part : list_) longest = std::max(longest, part.size);
    const int64_t shares = std::clamp<int64_t>(row / most, 1, longest);
    const int64_t together =
        axis == 0 ? 1 : std::clamp<int64_t>(most / row, 1, parts_.dims[axis - 1]);
    Dims grid(parts_.dims.begin(), parts_.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    if (axis > 0) grid.back() = tiles_of(grid.back(), together);
    grid.push_back(shares);
    const Values group = b_.grid(grid);
    for (const PartOfResult& part : list_) {
      const int64_t share = share_of(part.size, shares, row / parts_.dims[axis]);
      Dims box(parts_.dims.begin() + static_cast<std::ptrdiff_t>(axis), parts_.dims.end());
      box[0] = share;
      if (axis > 0) box.insert(box.begin(), together);
      b_.lanes(box, [&](const Values& lane) {
        Values index(group.begin(), group.end() - 1);
        std::vector<TilePlace> places;
        if (axis > 0) {
          index.back() = b_.add(b_.mul(index.back(), b_.index(together)), lane[0]);
          places.push_back({index.back(), parts_.dims[axis - 1], together});
        }
        const auto of_part = lane.begin() + (axis > 0 ? 1 : 0);
        index.push_back(b_.add(b_.mul(group.back(), b_.index(share)), *of_part));
        // All shares together may be more than the part.
        places.push_back({index.back(), part.size, share * shares});
        index.insert(index.end(), of_part + 1, lane.end());
        if_inside(b_, places, [&] { store(part, index); });
      });
    }
  }

  // Whole vectors, also of a part that is short beside the others. `inner`: elements of one of
  // `size`.
  static int64_t share_of(int64_t size, int64_t shares, int64_t inner) {
    if (shares == 1) return size;
    const int64_t whole = tiles_of(kLeastRun, inner);
    return std::min(tiles_of(tiles_of(size, shares), whole) * whole, size);
  }

  KernelMaker& maker_;
  kernel::Builder& b_;
  const Concatenation& parts_;
  TuningParameters& tuning_;
  kernel::MemoryId result_ = kernel::kNone;
  std::vector<PartOfResult> list_;
};

// On a device whose lanes are those of registers: elsewhere lanes that store elsewhere cost
// nothing, and loops one after the other have fewer of them.
// For short rows of few parts, vectors of whole rows do with constant masks, unless each part is
// one element, or all parts of a row are computed in few lanes.
std::optional<double> estimate_concatenation(const ScheduleInput& input) {
  const std::optional<Concatenation> parts = concatenation_of(input.fused);
  if (!parts) return std::nullopt;
  const bool wide = input.limits.vector_bytes >= input.limits.cost.wide_register;
  const bool computes = std::ranges::any_of(input.fused.inner, [](const Instruction* op) {
    return op->info().category == Category::kElementwise;
  });
  const int64_t row = elements_from(parts->dims, parts->axis);
  const bool units = row == static_cast<int64_t>(parts->concatenate->operand_count());
  const bool masks = !units && parts->concatenate->operand_count() <= kMostMasked &&
                     row <= kLongestMasked && (!computes || row > kMostInALane);
  return input.elements_seconds * (wide && !masks ? 0.75 : 1.5);
}

Taken emit_concatenation(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                         const LowerLimits&) {
  const std::optional<Concatenation> parts = concatenation_of(fused);
  if (!parts) return false;
  return try_kernel(lowered, fused.op, "_concatenated",
                    [&](KernelMaker& maker) { ConcatenationKernel(maker, *parts, tuning).run(); });
}

}  // namespace

constinit const Schedule kConcatenation = {
    "concatenation",
    "a concatenate, or the transpose of one, and in a fusion the ops before it",
    "a loop for each part. Lanes store whole rows of a few elements",
    {},
    estimate_concatenation,
    emit_concatenation};

}  // namespace tenon::hlo::lower
