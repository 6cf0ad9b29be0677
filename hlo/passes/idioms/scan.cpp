// Prefix scans by halves, as jax.lax.associative_scan writes them (Blelloch, Prefix sums and their
// applications, 1990): adjacent elements are combined; the scan of these pairs gives the results at
// odd positions; combined with the elements, these give the results at even positions.
#include <array>
#include <bit>

#include "hlo/passes/constants.h"
#include "hlo/passes/idioms/idiom.h"

namespace tenon::hlo::idioms {
namespace {

constexpr std::array kCombiners = {
    std::pair{OpCode::kAdd, "add"},         std::pair{OpCode::kMultiply, "multiply"},
    std::pair{OpCode::kMinimum, "minimum"}, std::pair{OpCode::kMaximum, "maximum"},
    std::pair{OpCode::kAnd, "and"},         std::pair{OpCode::kOr, "or"},
    std::pair{OpCode::kXor, "xor"}};

// A slice along one dimension.
struct SlicePart {
  Value of;
  int64_t start = 0;
  int64_t stride = 1;
};

class ScanMatcher {
 public:
  ScanMatcher(int64_t axis, OpCode combiner)
      : axis_(static_cast<size_t>(axis)), combiner_(combiner) {}

  // The array of which `scan` is the prefix scan, or null.
  Value array_of(Value scan) const {
    const int64_t size = size_of(scan);
    const auto [even, odd] = halves_of(scan);
    if (!even || size < 2) return {};
    const Value array = array_of_even(even, odd, size);
    if (!array || size_of(array) != size) return {};
    // The array of which the odd positions are the prefix scan.
    const Value pairs = size_of(odd) == 1 ? odd : array_of(odd);
    return pairs && combines(pairs, array, 0, array, 1) ? array : Value();
  }

 private:
  int64_t size_of(Value value) const { return value.type().dims()[axis_]; }

  // The values at even and at odd positions of `sum`, which adds two arrays that each have zeros at
  // the positions of the other.
  std::pair<Value, Value> halves_of(Value sum) const {
    const Instruction& add = *sum.def;
    if (add.code() != OpCode::kAdd) return {};
    const std::optional<int64_t> first = place_of(add.operand(0));
    const std::optional<int64_t> second = place_of(add.operand(1));
    if (!first || !second || *first + *second != 1) return {};
    const Value even = add.operand(*first == 0 ? 0 : 1).def->operand(0);
    const Value odd = add.operand(*first == 0 ? 1 : 0).def->operand(0);
    const int64_t size = size_of(sum);
    if (size_of(even) != (size + 1) / 2 || size_of(odd) != size / 2) return {};
    return {even, odd};
  }

  // The position of the first element of an array that a pad spreads with zeros between the
  // elements.
  std::optional<int64_t> place_of(Value value) const {
    const Instruction& pad = *value.def;
    if (pad.code() != OpCode::kPad || !is_number(pad.operand(1), 0)) return {};
    const I64s& low = pad.i64s(AttrKey::edge_padding_low);
    const I64s& high = pad.i64s(AttrKey::edge_padding_high);
    const I64s& interior = pad.i64s(AttrKey::interior_padding);
    for (size_t d = 0; d < low.size(); ++d) {
      if (d != axis_ && (low[d] != 0 || high[d] != 0 || interior[d] != 0)) return {};
    }
    const bool is_spread = interior[axis_] == 1 || size_of(pad.operand(0)) == 1;
    if (!is_spread || low[axis_] < 0 || low[axis_] > 1) return {};
    return low[axis_];
  }

  // The even positions are the first element, followed by combinations of the odd ones with the
  // elements after them.
  Value array_of_even(Value even, Value odd, int64_t size) const {
    const Value array = array_of_first(even, size);
    if (!array || size <= 2) return array;
    const Instruction& join = *even.def;
    return combines(join.operand(1), odd, 0, array, 2, /*first_stride=*/1) ? array : Value();
  }
  Value array_of_first(Value even, int64_t size) const {
    const Instruction& join = *even.def;
    if (size <= 2) return first_of(even);
    const bool joins = join.code() == OpCode::kConcatenate && join.operand_count() == 2 &&
                       join.integer(AttrKey::dimension) == static_cast<int64_t>(axis_);
    return joins ? first_of(join.operand(0)) : Value();
  }
  Value first_of(Value value) const {
    const SlicePart part = part_of(value);
    return part.of && part.start == 0 && size_of(value) == 1 ? part.of : Value();
  }

  // Whether `value` combines the elements of `first` from a position on with those of `second`.
  bool combines(Value value, Value first, int64_t first_start, Value second, int64_t second_start,
                int64_t first_stride = 2) const {
    const Instruction& op = *value.def;
    if (op.code() != combiner_) return false;
    const int64_t size = size_of(value);
    for (const size_t i : {0U, 1U}) {
      const bool fits = is_part(op.operand(i), first, first_start, first_stride, size) &&
                        is_part(op.operand(1 - i), second, second_start, 2, size);
      if (fits) return true;
    }
    return false;
  }
  bool is_part(Value value, Value of, int64_t start, int64_t stride, int64_t size) const {
    if (value == of) return start == 0 && stride == 1;
    const SlicePart part = part_of(value);
    return part.of == of && part.start == start && (part.stride == stride || size == 1);
  }

  SlicePart part_of(Value value) const {
    const Instruction& slice = *value.def;
    if (slice.code() != OpCode::kSlice) return {};
    const Dims& from = slice.operand_type(0).dims();
    const I64s& starts = slice.i64s(AttrKey::start_indices);
    const I64s& limits = slice.i64s(AttrKey::limit_indices);
    const I64s strides = slice.i64s_or(AttrKey::strides, from.size(), 1);
    for (size_t d = 0; d < from.size(); ++d) {
      const bool is_whole = starts[d] == 0 && limits[d] == from[d] && strides[d] == 1;
      if (d != axis_ && !is_whole) return {};
    }
    return {slice.operand(0), starts[axis_], strides[axis_]};
  }

  const size_t axis_;
  const OpCode combiner_;
};

// The dimension along which a pad puts numbers between the elements, or nothing.
std::optional<int64_t> spread_dimension(Value value) {
  if (value.def->code() != OpCode::kPad) return {};
  const I64s& interior = value.def->i64s(AttrKey::interior_padding);
  for (size_t d = 0; d < interior.size(); ++d) {
    if (interior[d] == 1) return static_cast<int64_t>(d);
  }
  return {};
}

}  // namespace

std::optional<Instance> scan(Instruction& root) {
  if (root.operand_count() != 2 || !is_plain(root.result_type())) return {};
  const auto axis = spread_dimension(root.operand(0));
  if (!axis) return {};
  for (const auto& [combiner, name] : kCombiners) {
    const Value array = ScanMatcher(*axis, combiner).array_of(root.result(0));
    if (!array || array.type() != root.result_type()) continue;
    Instance instance;
    instance.operands = {array};
    instance.results = {root.result(0)};
    instance.attributes = {{"combiner", Attribute(std::string(name))},
                           {"dimension", Attribute(*axis)}};
    instance.anchor = &root;
    return instance;
  }
  return {};
}

}  // namespace tenon::hlo::idioms
