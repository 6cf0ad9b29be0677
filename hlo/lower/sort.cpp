// sort, by merging: pass p merges sorted runs of 2^p elements in pairs. Each element finds its
// place by itself: its rank in its own run plus, by binary search, how many of the other run come
// before it. So equal elements keep their order, and every comparator that orders is served.
//
// A comparator that is no order has no defined result; places stay within the pair of runs.
#include "hlo/lower/index_math.h"
#include "hlo/lower/row_passes.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using K = kernel::OpCode;

// Whether `x` stands before `y`; arguments of the region are interleaved.
ValueId before(KernelMaker& maker, const Instruction& op, const Elements& x, const Elements& y) {
  Elements arguments;
  for (size_t k = 0; k < x.size(); ++k) {
    arguments.push_back(x[k]);
    arguments.push_back(y[k]);
  }
  return maker.e().call(op.region(0), arguments)[0].re;
}

std::pair<ValueId, Elements> merge(KernelMaker& maker, const Instruction& op, int64_t size,
                                   int pass, const RowReader& read, ValueId i) {
  Builder& b = maker.b();
  const int64_t width = int64_t{1} << pass;
  const ValueId pair = b.div(i, b.index(2 * width));
  const ValueId start = b.mul(pair, b.index(2 * width));
  const ValueId end = b.min(b.add(start, b.index(2 * width)), b.index(size));
  const ValueId middle = b.min(b.add(start, b.index(width)), b.index(size));
  const ValueId in_left = b.compare(K::kLt, i, middle);
  const Elements mine = read(i);
  // What the search knows, said to the verifier (K10).
  const auto bounded = [&](ValueId place) {
    return b.max(b.min(place, b.index(size)), b.index(0));
  };
  // In the other run, the first that does not stand before this element.
  const ValueId low = b.select(in_left, middle, start);
  const ValueId high = b.select(in_left, end, middle);
  const Values found =
      b.for_loop(b.index(0), b.index(pass + 1), 1, {low, high}, [&](const Values& state) {
        const ValueId open = b.compare(K::kLt, state[1], state[2]);
        const ValueId half = b.div(b.add(bounded(state[1]), bounded(state[2])), b.index(2));
        return b.if_else(
            open,
            [&] {
              const ValueId at = b.max(b.min(half, b.index(size - 1)), b.index(0));
              const Elements other = read(at);
              // Of equals those of the left run come first.
              const ValueId goes_on = b.if_else(
                  in_left, [&] { return Values{before(maker, op, other, mine)}; },
                  [&] { return Values{b.logical_not(before(maker, op, mine, other))}; })[0];
              return Values{b.select(goes_on, b.add(at, b.index(1)), state[1]),
                            b.select(goes_on, state[2], at)};
            },
            [&] { return Values{state[1], state[2]}; });
      });
  const ValueId own_start = b.select(in_left, start, middle);
  const ValueId others = b.sub(bounded(found[0]), low);
  const ValueId place = b.add(b.add(start, b.sub(i, own_start)), others);
  return {b.max(b.min(place, b.index(size - 1)), b.index(0)), mine};
}

}  // namespace

Status lower_sort(LoweredOp& lowered, const Instruction& op, Schedule& schedule,
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
  return lower_row_passes(lowered, op, rows, "", schedule, limits);
}

}  // namespace tenon::hlo::lower
