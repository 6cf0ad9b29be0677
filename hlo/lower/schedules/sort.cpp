// sort, by merging: pass p merges sorted runs of 2^p elements in pairs. Each position of the result
// finds its element independently: a binary search along the diagonal finds how many of the
// positions before it come from the left run (Green, Odeh, Birk: Merge Path, 2014). Among equal
// elements, those of the left run come first, so that the sort is stable.
//
// A comparator that is not a strict order (LT with NaNs) has no defined result; each position is
// still written once, with some element of its pair of runs, the same in every execution.
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/row_passes.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

// Whether `x` comes before `y`; arguments of the region are interleaved.
ValueId before(KernelMaker& maker, const Instruction& op, const Elements& x, const Elements& y) {
  Elements arguments;
  for (size_t k = 0; k < x.size(); ++k) {
    arguments.push_back(x[k]);
    arguments.push_back(y[k]);
  }
  return maker.e().call(op.region(0), arguments)[0].re;
}

Elements merge(KernelMaker& maker, const Instruction& op, int64_t size, int pass,
               const RowReader& read, ValueId i) {
  Builder& b = maker.b();
  const int64_t width = int64_t{1} << pass;
  const ValueId start = b.mul(b.div(i, b.index(2 * width)), b.index(2 * width));
  const ValueId middle = b.min(b.add(start, b.index(width)), b.index(size));
  const ValueId end = b.min(b.add(middle, b.index(width)), b.index(size));
  const ValueId place = b.sub(i, start);
  // Clamps to the bounds that the search guarantees, for the verifier (K10).
  const auto bounded = [&](ValueId at) { return b.max(b.min(at, b.index(size - 1)), b.index(0)); };
  const auto left_first = [&](ValueId left, ValueId right) {
    return b.logical_not(before(maker, op, read(bounded(right)), read(bounded(left))));
  };
  // How many of the elements before `place` come from the left run: the search halves [low, high].
  const ValueId low = b.max(b.sub(place, b.sub(end, middle)), b.index(0));
  const ValueId high = b.min(place, b.sub(middle, start));
  const Values found =
      b.for_loop(b.index(0), b.index(pass + 1), 1, {low, high}, [&](const Values& state) {
        const ValueId half = b.div(b.add(bounded(state[1]), bounded(state[2])), b.index(2));
        return b.if_else(
            b.compare(K::kLt, state[1], state[2]),
            [&] {
              const ValueId right = b.sub(b.add(middle, b.sub(place, half)), b.index(1));
              const ValueId taken = left_first(b.add(start, half), right);
              return Values{b.select(taken, b.add(half, b.index(1)), state[1]),
                            b.select(taken, state[2], half)};
            },
            [&] { return Values{state[1], state[2]}; });
      });
  const ValueId left = b.add(start, bounded(found[0]));
  const ValueId right = b.add(middle, b.sub(place, bounded(found[0])));
  const ValueId from_left = b.if_else(
      b.logical_and(b.compare(K::kLt, left, middle), b.compare(K::kLt, right, end)),
      [&] { return Values{left_first(left, right)}; },
      [&] { return Values{b.compare(K::kLt, left, middle)}; })[0];
  return read(bounded(b.select(from_left, left, right)));
}

}  // namespace

Status lower_sort(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits) {
  const Dims& dims = op.operand_type(0).dims();
  RowPasses rows;
  rows.dims = dims;
  int64_t axis = op.integer(AttrKey::dimension, -1);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  rows.axis = static_cast<size_t>(axis);
  if (dims.empty()) {  // one element
    rows.dims = {1};
    rows.axis = 0;
  }
  const bool scalar = dims.empty();
  for (size_t k = 0; k < op.operand_count(); ++k) {
    rows.types.push_back(op.operand_type(k).element_type());
  }
  const int64_t size = rows.dims[rows.axis];
  rows.passes = log2_ceil(size);
  rows.input = [&, scalar](KernelMaker& maker, const Values& index) {
    Elements elements;
    for (size_t k = 0; k < op.operand_count(); ++k) {
      elements.push_back(maker.e().element(op.operand(k), scalar ? Values{} : index));
    }
    return elements;
  };
  rows.step = [&](KernelMaker& maker, int pass, const RowReader& read, ValueId i) {
    return merge(maker, op, size, pass, read, i);
  };
  rows.output = [&, scalar](KernelMaker& maker) -> RowPasses::Writer {
    std::vector<kernel::MemoryId> results;
    for (uint32_t r = 0; r < op.result_count(); ++r) results.push_back(maker.result(r));
    return [&maker, results, scalar](const Elements& elements, const Values& index) {
      for (size_t k = 0; k < results.size(); ++k) {
        maker.e().store(elements[k], results[k], scalar ? Values{} : index);
      }
    };
  };
  return lower_row_passes(lowered, op, rows, "", tuning, limits);
}

}  // namespace tenon::hlo::lower
