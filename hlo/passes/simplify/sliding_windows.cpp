// Long windows that move by one element become prefixes and suffixes of blocks.
//
// A window of w elements that begins within a block of w is the end of that block and the beginning
// of the next. The combinations of all ends and of all beginnings are two scans, which a schedule
// of lowering makes in one pass each, so that the cost no longer grows with w (van Herk, "A fast
// algorithm for local minimum and maximum filters on rectangular and octagonal kernels", Pattern
// Recognition Letters 13, 1992; the same holds for any associative combination). Sums are added in
// another order than those of each window by itself.
#include <algorithm>
#include <limits>

#include "hlo/builder/builder.h"
#include "hlo/ir/region.h"
#include "hlo/lower/elements/prefix_windows.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

using program::Combiner;

// Shorter windows are as fast by themselves: the scans read and write some ten arrays.
constexpr int64_t kLeastWindow = 32;
constexpr int64_t kArraysMoved = 10;
// Blocks hold the padding too, which windows by themselves do not read from memory.
constexpr int64_t kMostPadding = 2;  // Times the operand and the result.

// Rounds its parts no wider than each window by itself does.
bool is_combined_in_its_type(Combiner combiner, ElementType type) {
  const bool moves = combiner == Combiner::kMinimum || combiner == Combiner::kMaximum;
  if (is_integer(type) || is_pred(type)) return true;
  if (moves) return is_float(type);
  return type == ElementType::kF32 || type == ElementType::kF64;
}

bool is_identity(Combiner combiner, ElementType type, double init) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (combiner) {
    case Combiner::kAdd:
    case Combiner::kXor:
      return init == 0;
    case Combiner::kMultiply:
      return init == 1;
    case Combiner::kMinimum:
      return is_float(type) && init == kInfinity;
    case Combiner::kMaximum:
      return is_float(type) && init == -kInfinity;
    default:
      return false;
  }
}

struct SlidingWindow {
  Combiner combiner = Combiner::kAdd;
  OpCode code = OpCode::kAdd;
  size_t dimension = 0;
  int64_t size = 0;
  int64_t low = 0;
  int64_t results = 0;
};

int64_t blocks_of(const SlidingWindow& window) {
  return (window.results + window.size - 1) / window.size + 1;
}

std::optional<SlidingWindow> sliding_window(const Instruction& op) {
  if (op.code() != OpCode::kReduceWindow || op.operand_count() != 2) return {};
  const Type& of = op.operand_type(0);
  const Instruction& init = *op.operand(1).def;
  const std::optional<Combiner> combiner = lower::combiner_of(op.region(0));
  if (!combiner || !of.shape().is_static() ||
      op.operand_type(1).element_type() != of.element_type() ||
      op.result_type().element_type() != of.element_type() || init.code() != OpCode::kConstant ||
      !is_combined_in_its_type(*combiner, of.element_type()) ||
      !is_identity(*combiner, of.element_type(),
                   init.attr<DenseAttr>(AttrKey::value)->values.get_double(0)) ||
      lower::prefix_windows(op)) {
    return {};
  }
  const size_t rank = of.dims().size();
  const I64s ones(rank, 1);
  const I64s& window = op.i64s(AttrKey::window_dimensions);
  const I64Matrix padding = op.padding_or_zero(rank);
  const auto longest = std::ranges::max_element(window);
  if (longest == window.end() || *longest < kLeastWindow ||
      op.i64s_or(AttrKey::window_strides, rank, 1) != ones ||
      op.i64s_or(AttrKey::base_dilations, rank, 1) != ones ||
      op.i64s_or(AttrKey::window_dilations, rank, 1) != ones) {
    return {};
  }
  SlidingWindow found;
  found.combiner = *combiner;
  found.code = op_of_two_parameters(op.region(0))->code();
  found.dimension = static_cast<size_t>(longest - window.begin());
  found.size = *longest;
  found.low = padding.at(static_cast<int64_t>(found.dimension), 0);
  found.results = op.result_type().dims()[found.dimension];
  for (size_t d = 0; d < rank; ++d) {
    const auto at = static_cast<int64_t>(d);
    const bool is_plain = window[d] == 1 && padding.at(at, 0) == 0 && padding.at(at, 1) == 0;
    if (d != found.dimension && !is_plain) return {};
  }
  const int64_t here = of.dims()[found.dimension];
  const int64_t elements = found.results + found.size;
  // A window or padding beyond this would overflow; it is longer than any array.
  constexpr int64_t kLongest = int64_t{1} << 31;
  const bool is_short = found.results < kLongest && found.size < kLongest && here < kLongest;
  if (!is_short || found.results * found.size < kArraysMoved * elements) return {};
  if (blocks_of(found) * found.size > kMostPadding * (here + found.results)) return {};
  return found;
}

// The combinations of all elements of a block up to each, or from each on.
Value scan_of_blocks(Builder& b, Value x, Value init, const SlidingWindow& window, bool backward) {
  const auto rank = static_cast<int64_t>(x.type().dims().size());
  const auto within = static_cast<int64_t>(window.dimension) + 1;
  I64s sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(within)] = window.size;
  I64Matrix padding{rank, 2, I64s(static_cast<size_t>(2 * rank), 0)};
  padding.values[static_cast<size_t>(2 * within + (backward ? 1 : 0))] = window.size - 1;
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(binary_region(window.code, init.type()));
  Instruction* const made =
      b.create(OpCode::kReduceWindow, {x, init},
               {{AttrKey::window_dimensions, std::move(sizes)}, {AttrKey::padding, padding}}, {},
               std::move(regions));
  return made == nullptr ? Value() : made->result();
}

Value by_blocks(Builder& b, const Instruction& op, const SlidingWindow& window) {
  const Value init = op.operand(1);
  const Dims& dims = op.operand_type(0).dims();
  const size_t d = window.dimension;
  const int64_t blocks = blocks_of(window);
  I64s low(dims.size(), 0);
  I64s high(dims.size(), 0);
  low[d] = window.low;
  high[d] = blocks * window.size - dims[d] - window.low;
  const Value whole = b.pad(op.operand(0), init, low, high);
  if (!b.ok()) return {};
  Dims split = dims;
  split[d] = blocks;
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(d) + 1, window.size);
  const Value rows = b.reshape(whole, split);
  // Prefixes without the element itself: the beginning of the next block ends before the window.
  I64s one_low(split.size(), 0);
  I64s one_high(split.size(), 0);
  one_low[d + 1] = 1;
  one_high[d + 1] = -1;
  const Value ends = scan_of_blocks(b, rows, init, window, true);
  const Value beginnings =
      scan_of_blocks(b, b.pad(rows, init, one_low, one_high), init, window, false);
  if (!b.ok()) return {};
  const auto part = [&](Value scans, int64_t from) {
    Dims flat = dims;
    flat[d] = blocks * window.size;
    I64s start(dims.size(), 0);
    I64s limit(dims.begin(), dims.end());
    start[d] = from;
    limit[d] = from + window.results;
    return b.slice(b.reshape(scans, flat), start, limit);
  };
  return b.binary(window.code, part(ends, 0), part(beginnings, window.size));
}

Result<bool> slide_in(Computation& computation) {
  bool changed = false;
  for (Instruction* op = computation.first(); op != nullptr;) {
    Instruction* const next = op->next();
    for (size_t i = 0; i < op->region_count(); ++i) {
      TENON_ASSIGN(const bool within, slide_in(op->region(i)));
      changed |= within;
    }
    if (const auto window = sliding_window(*op)) {
      Builder b(computation, op);
      b.set_location(op->location());
      const Value made = by_blocks(b, *op, *window);
      if (!b.ok()) return tl::make_unexpected(b.status());
      op->replace_uses(0, made);
      computation.erase(op);
      changed = true;
    }
    op = next;
  }
  return changed;
}

}  // namespace

Result<bool> slide_windows(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool within, slide_in(*function));
    changed |= within;
  }
  return changed;
}

}  // namespace tenon::hlo
