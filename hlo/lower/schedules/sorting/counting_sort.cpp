// Sorts of integers of at most 8 bits, alone: equal ones cannot be told apart, so a row is counted
// by values, and position i gets the value up to which more than i elements come.
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/library_calls.h"
#include "hlo/lower/schedules/own_kernels.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

constexpr int kValueBits = 8;
constexpr int64_t kValues = 1 << kValueBits;
constexpr ElementType kCount = ElementType::kS32;

class CountingSort {
 public:
  CountingSort(KernelMaker& maker, const Instruction& op, const program::Sort& order)
      : maker_(maker),
        b_(maker.b()),
        op_(op),
        order_(order),
        type_(op.operand_type(0).element_type()),
        axis_(static_cast<size_t>(order.dimension)) {}

  void run() {
    maker_.inputs();
    const MemoryId result = maker_.result(0);
    const Dims& dims = op_.operand_type(0).dims();
    const int64_t size = dims[axis_];
    Dims rest = dims;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis_));
    const Values row = b_.grid(rest);
    const auto at = [&](ValueId position) {
      Values index = row;
      index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis_), position);
      return index;
    };
    const MemoryId counts = b_.scratch("counts", kCount, {kValues});
    const MemoryId ends = b_.scratch("ends", kCount, {kValues});
    const ValueId zero = b_.integer(kCount, 0);
    const ValueId one = b_.integer(kCount, 1);
    b_.lanes({kValues}, [&](const Values& v) { b_.store(zero, counts, v); });
    b_.lanes({size}, [&](const Values& i) {
      const ValueId x = maker_.e().element(op_.operand(0), at(i[0])).re;
      b_.atomic(kernel::AtomicKind::kAdd, one, counts, {place_of(x)});
    });
    b_.scan({.extents = {kValues},
             .over_lanes = true,
             .commutative = true,
             .inits = {zero},
             .leaf = [&](const Values& v) { return Values{b_.load(counts, v)}; },
             .combine = [&](const Values& x) { return Values{b_.add(x[0], x[1])}; }},
            [&](const Values& v) { b_.store(v[1], ends, {v[0]}); });
    b_.lanes({size}, [&](const Values& i) { b_.store(value_at(ends, i[0]), result, at(i[0])); });
  }

 private:
  int64_t least() const { return is_signed_integer(type_) ? -kValues / 2 : 0; }

  // The place of a value in the order.
  ValueId place_of(ValueId x) {
    const ValueId number = b_.convert(x, b_.index_type());
    const ValueId place = order_.descending ? b_.sub(b_.index(least() + kValues - 1), number)
                                            : b_.sub(number, b_.index(least()));
    // The clamp proves to the verifier a bound that the type guarantees.
    return b_.max(b_.min(place, b_.index(kValues - 1)), b_.index(0));
  }

  // The first place whose elements end behind `i`.
  ValueId value_at(MemoryId ends, ValueId i) {
    const ValueId position = b_.convert(i, kCount);
    ValueId place = b_.index(0);
    for (int64_t step = kValues / 2; step > 0; step /= 2) {
      const ValueId before = b_.load(ends, {b_.add(place, b_.index(step - 1))});
      const ValueId behind = b_.compare(K::kLe, before, position);
      place = b_.add(place, b_.select(behind, b_.index(step), b_.index(0)));
    }
    const ValueId number = order_.descending ? b_.sub(b_.index(least() + kValues - 1), place)
                                             : b_.add(place, b_.index(least()));
    return b_.convert(number, type_);
  }

  KernelMaker& maker_;
  Builder& b_;
  const Instruction& op_;
  const program::Sort& order_;
  const ElementType type_;
  const size_t axis_;
};

// The order of a sort that counting can do.
std::optional<program::Sort> counted_order(const Instruction& op) {
  const Type& type = op.operand_type(0);
  const ElementType element = type.element_type();
  const bool narrow = is_integer(element) && bit_width(element) <= kValueBits;
  if (op.operand_count() != 1 || !narrow || type.rank() == 0) return {};
  const auto call = library_call_of(op);
  if (!call) return {};
  const auto& order = std::get<program::Sort>(*call);
  const int64_t size = type.dims()[static_cast<size_t>(order.dimension)];
  return size >= kValues && size <= INT32_MAX ? std::optional(order) : std::nullopt;
}

}  // namespace

bool lowers_by_counting(const Instruction& op, TuningParameters& tuning,
                        const LowerLimits& limits) {
  constexpr auto kBytes = 2 * kValues * static_cast<int64_t>(sizeof(int32_t));
  return limits.scratch_bytes >= kBytes && counted_order(op) &&
         tuning.choose_flag(parameters::kSortCounts, true);
}

Status lower_counting_sort(LoweredOp& lowered, const Instruction& op) {
  const program::Sort order = counted_order(op).value_or(program::Sort{});
  return add_kernel(lowered, op, "_counts",
                    [&](KernelMaker& maker) { CountingSort(maker, op, order).run(); });
}

}  // namespace tenon::hlo::lower
