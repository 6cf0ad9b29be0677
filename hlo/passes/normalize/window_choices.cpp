// Gradients of pools: an element of a select_and_scatter would ask each window that contains it
// which of all its elements it selects. Here each window selects once, by a reduction of the
// elements with their places. Where windows lie side by side each element compares its place with
// that; where many windows meet a scatter adds the sources there.
#include "hlo/ir/region.h"
#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// Steps of the choice and the scatter are not vectors everywhere; below so many elements two more
// launches cost more than all steps.
constexpr double kLeastGain = 4;
constexpr int64_t kFewestElements = 256;

// Whether elements would take many more steps by asking their windows than windows by choosing.
bool is_worth(const Instruction& op) {
  const Dims& dims = op.operand_type(0).dims();
  const Dims& sources = op.operand_type(1).dims();
  const I64s window = op.i64s_or(AttrKey::window_dimensions, dims.size(), 1);
  const I64s strides = op.i64s_or(AttrKey::window_strides, dims.size(), 1);
  double meet = 1;  // Windows, at an element.
  double places = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    meet *= static_cast<double>(std::min((window[d] - 1) / strides[d] + 1, sources[d]));
    places *= static_cast<double>(window[d]);
  }
  constexpr double kStepsOfUpdate = 8;
  const auto elements = static_cast<double>(element_count(dims));
  const double asked = elements * meet * places;
  const auto windows = static_cast<double>(element_count(sources));
  return asked > kLeastGain * (windows * (places + kStepsOfUpdate) + 2 * elements);
}

// Whether the arrays are not small, and they and both regions have one real element type.
bool is_eligible(const Instruction& op) {
  for (const Value operand : op.operands()) {
    const Type& type = operand.type();
    if (!type.is_tensor() || type.is_quantized() || !type.shape().is_static()) return false;
  }
  const bool is_small = element_count(op.operand_type(0).dims()) < kFewestElements;
  if (is_small || element_count(op.operand_type(1).dims()) == 0) return false;
  const ElementType type = op.operand_type(0).element_type();
  const auto is_of_it = [&](const Type& each) { return each.element_type() == type; };
  if (is_complex(type) || !is_of_it(op.result_type())) return false;
  for (size_t r = 0; r < 2; ++r) {
    for (size_t p = 0; p < 2; ++p) {
      if (!is_of_it(op.region(r).parameter(p).type())) return false;
    }
  }
  return is_of_it(op.operand_type(1)) && is_of_it(op.operand_type(2));
}

// Appends the body of `region` with `arguments`; its only result.
Value appended(Builder& b, Computation& region, const std::vector<Value>& arguments) {
  Cloner cloner;
  for (size_t p = 0; p < arguments.size(); ++p) cloner.map(region.parameter(p), arguments[p]);
  for (Instruction& op : region) {
    if (op.code() == OpCode::kReturn) return cloner(op.operand(0));
    Instruction* const made = b.create(cloner.clone(op));
    if (made == nullptr) return {};
    for (uint32_t r = 0; r < op.result_count(); ++r) cloner.map(op.result(r), made->result(r));
  }
  return {};
}

// The one that `select` keeps of two elements, with its place. Padding has the place -1.
Result<std::unique_ptr<Computation>> choice(Computation& select, const Type& element,
                                            const Type& place) {
  auto region = std::make_unique<Computation>();
  std::vector<Value> p;
  for (const Type& type : {element, place, element, place})
    p.push_back(region->add_parameter(type));
  Builder b(*region);
  const Value none = b.scalar(place.element_type(), 0);
  const Value is_there = b.compare(ComparisonDirection::kGe, p[1], none);
  const Value is_alone = b.compare(ComparisonDirection::kLt, p[3], none);
  const Value better = appended(b, select, {p[0], p[2]});
  const Value keeps = b.binary(OpCode::kAnd, is_there, b.binary(OpCode::kOr, is_alone, better));
  TENON_TRY(b.finish({b.select(keeps, p[0], p[2]), b.select(keeps, p[1], p[3])}));
  return region;
}

// The place in row-major order that each window selects, or -1.
Result<Value> chosen_places(Builder& b, const Instruction& op) {
  const Value x = op.operand(0);
  const int64_t count = element_count(x.type().dims());
  const ElementType index =
      count <= std::numeric_limits<int32_t>::max() ? ElementType::kS32 : ElementType::kS64;
  const Value places = b.reshape(b.iota(index, {count}, 0), x.type().dims());
  const Value filling = b.scalar(x.type().element_type(), 0);
  const Value none = b.scalar(index, -1);
  std::vector<std::unique_ptr<Computation>> regions(1);
  if (!b.ok()) return tl::make_unexpected(b.status());
  TENON_ASSIGN(regions[0], choice(op.region(0), filling.type(), none.type()));
  const size_t rank = x.type().dims().size();
  Instruction* const reduced =
      b.create(OpCode::kReduceWindow, {x, places, filling, none},
               {{AttrKey::window_dimensions, op.i64s_or(AttrKey::window_dimensions, rank, 1)},
                {AttrKey::window_strides, op.i64s_or(AttrKey::window_strides, rank, 1)},
                {AttrKey::padding, op.padding_or_zero(rank)}},
               {}, std::move(regions));
  if (reduced == nullptr) return tl::make_unexpected(b.status());
  return reduced->result(1);
}

// Whether windows lie side by side, from the first element on, and the sources are combined by
// one op.
bool lie_in_tiles(const Instruction& op) {
  const size_t rank = op.operand_type(0).dims().size();
  const I64Matrix padding = op.padding_or_zero(rank);
  for (size_t d = 0; d < rank; ++d) {
    const auto row = static_cast<int64_t>(d);
    const bool fits = op.i64s_or(AttrKey::window_dimensions, rank, 1)[d] ==
                          op.i64s_or(AttrKey::window_strides, rank, 1)[d] &&
                      padding.at(row, 0) == 0 && padding.at(row, 1) == 0;
    if (!fits) return false;
  }
  const Instruction* const combiner = op_of_two_parameters(op.region(1));
  return combiner != nullptr && combiner->operand(0) == op.region(1).parameter(0);
}

// Every element reads what its window has chosen, in arrays with a dimension of windows and one of
// places within the window for each dimension.
Value by_tiles(Builder& b, const Instruction& op, Value places) {
  const Dims& dims = op.result_type().dims();
  const Dims& windows = op.operand_type(1).dims();
  const I64s sizes = op.i64s_or(AttrKey::window_dimensions, dims.size(), 1);
  Dims tiles;
  I64s of_windows, limits, rest;
  for (size_t d = 0; d < dims.size(); ++d) {
    of_windows.push_back(static_cast<int64_t>(tiles.size()));
    tiles.push_back(windows[d]);
    if (sizes[d] != 1) tiles.push_back(sizes[d]);
    limits.push_back(windows[d] * sizes[d]);
    rest.push_back(dims[d] - limits[d]);
  }
  const I64s none(dims.size(), 0);
  const auto spread = [&](Value value) { return b.broadcast_in_dim(value, tiles, of_windows); };
  const Value all = b.reshape(b.iota(places.type().element_type(), {element_count(dims)}, 0), dims);
  const Value own = b.reshape(b.slice(all, none, limits), tiles);
  const Value init = b.broadcast_scalar(op.operand(2), windows);
  const Value taken = b.binary(op_of_two_parameters(op.region(1))->code(), init, op.operand(1));
  const Value result = b.select(b.compare(ComparisonDirection::kEq, own, spread(places)),
                                spread(taken), spread(init));
  return b.pad(b.reshape(result, limits), op.operand(2), none, rest);
}

Value by_scatter(Builder& b, const Instruction& op, Value places) {
  const Dims& dims = op.result_type().dims();
  const int64_t windows = element_count(op.operand_type(1).dims());
  ScatterDims numbers;
  numbers.inserted_window_dims = {0};
  numbers.scatter_dims_to_operand_dims = {0};
  numbers.index_vector_dim = 1;
  std::vector<std::unique_ptr<Computation>> regions;
  regions.push_back(Cloner().clone(op.region(1)));
  Instruction* const scattered =
      b.create(OpCode::kScatter,
               {b.broadcast_scalar(op.operand(2), {element_count(dims)}),
                b.reshape(places, {windows, 1}), b.reshape(op.operand(1), {windows})},
               {{AttrKey::scatter_dimension_numbers, Attribute(std::move(numbers))}}, {},
               std::move(regions));
  return scattered == nullptr ? Value() : b.reshape(scattered->result(), dims);
}

Result<Value> by_choices(Builder& b, const Instruction& op) {
  TENON_ASSIGN(const Value places, chosen_places(b, op));
  const Value result = lie_in_tiles(op) ? by_tiles(b, op, places) : by_scatter(b, op, places);
  if (!b.ok()) return tl::make_unexpected(b.status());
  return result;
}

}  // namespace

Result<bool> choose_in_windows(Module& module) {
  Status status;
  const bool changed = change_ops(module, [&](Instruction& op) {
    const bool fits = status.ok() && op.code() == OpCode::kSelectAndScatter && is_eligible(op) &&
                      (is_worth(op) || lie_in_tiles(op));
    if (!fits) return false;
    Builder b(*op.parent(), &op);
    b.set_location(op.location());
    const Result<Value> made = by_choices(b, op);
    if (!made) {
      status = Status(made.error());
      return false;
    }
    op.replace_uses(0, *made);
    op.parent()->erase(&op);
    return true;
  });
  if (!status.ok()) return tl::make_unexpected(status);
  return changed;
}

}  // namespace tenon::hlo
