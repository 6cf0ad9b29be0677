// The updates of a scatter, as operations of a kernel.
#include "hlo/lower/schedules/scattering/scatter.h"

#include <algorithm>
#include <tuple>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/kernel_maker.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

size_t at(int64_t d) { return static_cast<size_t>(d); }

void when(Builder& b, ValueId condition, const std::function<void()>& body) {
  const bool known = is_true(b, condition);
  if (known) return body();
  b.if_then(condition, body);
}

}  // namespace

// --- Updates

ScatterEmitter::ScatterEmitter(const Instruction& op)
    : op_(op),
      count_(op.result_count()),
      dims_(*op.attr<ScatterDims>(AttrKey::scatter_dimension_numbers)),
      input_(op.operand_type(0)),
      indices_(op.operand_type(count_)),
      updates_(op.operand_type(count_ + 1)),
      whole_windows_(op.flag(AttrKey::whole_windows)) {
  batch_dims_ = complement(updates_.rank(), dims_.update_window_dims);
  I64s not_window = dims_.inserted_window_dims;
  not_window.insert(not_window.end(), dims_.input_batching_dims.begin(),
                    dims_.input_batching_dims.end());
  window_input_dims_ = complement(input_.rank(), not_window);
  for (const int64_t d : batch_dims_) batch_.push_back(updates_.dims()[at(d)]);
  for (const int64_t d : dims_.update_window_dims) window_.push_back(updates_.dims()[at(d)]);
}

bool ScatterEmitter::is_moved(size_t i) const {
  return contains(dims_.scatter_dims_to_operand_dims, window_input_dims_[i]);
}

// The index in the updates for a batch position and a window position.
Values ScatterEmitter::update_index(const Values& batch, const Values& window) const {
  Values index(updates_.dims().size());
  for (size_t i = 0; i < batch.size(); ++i) index[at(batch_dims_[i])] = batch[i];
  for (size_t i = 0; i < window.size(); ++i) index[at(dims_.update_window_dims[i])] = window[i];
  return index;
}

int64_t ScatterEmitter::window_size(size_t d) const {
  for (size_t i = 0; i < window_input_dims_.size(); ++i) {
    if (at(window_input_dims_[i]) == d) return window_[i];
  }
  return 1;
}

// The window of `batch`, from the index vector alone.
ScatterEmitter::ScatterWindow ScatterEmitter::window_at(ElementEmitter& e,
                                                        const Values& batch) const {
  Builder& b = e.b;
  ScatterWindow found{Values(input_.dims().size(), b.index(0)), b.pred(true)};
  for (size_t i = 0; i < dims_.scatter_dims_to_operand_dims.size(); ++i) {
    Values position;
    size_t next = 0;
    for (int64_t k = 0; k < indices_.rank(); ++k) {
      position.push_back(k == dims_.index_vector_dim ? b.index(static_cast<int64_t>(i))
                                                     : batch[next++]);
    }
    const auto d = at(dims_.scatter_dims_to_operand_dims[i]);
    const ValueId number = e.element(op_.operand(count_), position).re;
    const int64_t size = window_size(d);
    ValueId inside = b.pred(true);
    if (size == 1) {
      std::tie(found.start[d], inside) = in_dimension(e, number, input_.dims()[d]);
    } else {
      found.start[d] = near(e, number, d);
      if (whole_windows_) inside = in_bounds(b, found.start[d], input_.dims()[d] - (size - 1));
    }
    found.inside = b.logical_and(found.inside, inside);
  }
  for (size_t i = 0; i < dims_.input_batching_dims.size(); ++i) {
    const int64_t d = dims_.scatter_indices_batching_dims[i];
    found.start[at(dims_.input_batching_dims[i])] =
        batch[at(d > dims_.index_vector_dim ? d - 1 : d)];
  }
  return found;
}

// The number as an index of a dimension of `size` elements, and whether it is one.
std::pair<ValueId, ValueId> ScatterEmitter::in_dimension(ElementEmitter& e, ValueId value,
                                                         int64_t size) {
  Builder& b = e.b;
  const ElementType type = b.type_of(value);
  const ElementType other = *integer_of_width(bit_width(type), false);
  // As an unsigned number a negative one is greater than every size. It is data (K10), as in
  // clamped_index.
  const ValueId number = type == other ? value : b.bitcast(value, other);
  // As unsigned numbers negative ones must be beyond the size.
  const int bits = bit_width(type) - (is_signed_integer(type) ? 1 : 0);
  const bool fits = bits >= 62 || size < (int64_t{1} << bits);
  if (!fits) {  // Every number that is not negative is inside.
    const bool any = !is_signed_integer(type);
    const ValueId inside = any ? b.pred(true) : b.compare(K::kGe, value, b.integer(type, 0));
    return {b.convert(number, b.index_type()), inside};
  }
  // The minimum changes no number that is inside; it proves that the index fits (K10).
  const ValueId clamped = b.min(number, b.integer(other, size - 1));
  return {b.convert(clamped, b.index_type()), b.compare(K::kLt, number, b.integer(other, size))};
}

// The number, clamped so close to the input that sums do not overflow, while every window position
// that was out of range still is.
ValueId ScatterEmitter::near(ElementEmitter& e, ValueId value, size_t d) const {
  Builder& b = e.b;
  const ElementType type = b.type_of(value);
  const int64_t window = window_size(d);
  const int64_t low = -window;
  const int64_t high = input_.dims()[d];
  const int bits = bit_width(type) - (is_signed_integer(type) ? 1 : 0);
  const auto fits = [&](int64_t x) { return bits >= 63 || x < (int64_t{1} << bits); };
  if (is_signed_integer(type) && fits(window)) value = b.max(value, b.integer(type, low));
  if (type == b.index_type() && fits(high + window)) {
    // The value is computed by the program, as in clamped_index: it is data of another type,
    // counted from `low`.
    const ElementType other = *integer_of_width(bit_width(type), false);
    const ValueId from_low = b.add(b.bitcast(value, other), b.integer(other, window));
    value = b.min(from_low, b.integer(other, high + window));
    return b.sub(b.convert(value, type), b.integer(type, window));
  }
  if (fits(high)) value = b.min(value, b.integer(type, high));
  return b.convert(value, b.index_type());
}

// The index of a position of a window, and whether it is inside where windows may be in part.
std::pair<Values, ValueId> ScatterEmitter::position(Builder& b, const ScatterWindow& found,
                                                    const Values& window) const {
  Values to = found.start;
  ValueId inside = b.pred(true);
  for (size_t i = 0; i < window_input_dims_.size(); ++i) {
    const size_t d = at(window_input_dims_[i]);
    if (window_[i] == 1) continue;
    to[d] = b.add(to[d], window[i]);
    // A window that does not move is not larger than the input.
    if (!is_moved(i) || whole_windows_) continue;
    inside = b.logical_and(inside, in_bounds(b, to[d], input_.dims()[d]));
  }
  return {std::move(to), inside};
}

void ScatterEmitter::at_position(ElementEmitter& e, const ScatterWindow& found, const Values& batch,
                                 const Values& window, const Body& body) const {
  const auto [to, inside] = position(e.b, found, window);
  when(e.b, inside, [&, index = to] { body(index, update_index(batch, window)); });
}

std::pair<Values, ValueId> ScatterEmitter::place(ElementEmitter& e, const Values& batch,
                                                 const Values& window) const {
  const ScatterWindow found = window_at(e, batch);
  auto [to, inside] = position(e.b, found, window);
  return {std::move(to), e.b.logical_and(found.inside, inside)};
}

void ScatterEmitter::at_window(ElementEmitter& e, const Values& batch, const Values& window,
                               const Body& body) const {
  const ScatterWindow found = window_at(e, batch);
  when(e.b, found.inside, [&] { at_position(e, found, batch, window, body); });
}

void ScatterEmitter::combine(ElementEmitter& e, const std::vector<MemoryId>& results,
                             const Values& to, const Values& update) const {
  const std::vector<ElementType> types = parameter_types(op_.region(0));
  Elements arguments;
  for (size_t k = 0; k < count_; ++k) {
    const Type& type = op_.operand_type(k);
    arguments.push_back(e.convert(e.load(results[k], type, to), type.element_type(), types[k]));
  }
  for (size_t k = 0; k < count_; ++k) {
    const Value value = op_.operand(count_ + 1 + k);
    arguments.push_back(
        e.convert(e.element(value, update), value.type().element_type(), types[count_ + k]));
  }
  const Elements combined = e.call(op_.region(0), arguments);
  for (size_t k = 0; k < count_; ++k) {
    const ElementType type = op_.operand_type(k).element_type();
    e.store(e.convert(combined[k], types[k], type), results[k], to);
  }
}

void ScatterEmitter::in_order(ElementEmitter& e, const ValueRange& batches, const Dims& lanes,
                              const std::function<Values(const Values& lane)>& window_of,
                              const Body& body) const {
  Builder& b = e.b;
  b.for_loop(batches.begin, batches.end, 1, {}, [&](const Values& k) {
    const Values batch = delinearize(b, k[0], batch_);
    const ScatterWindow found = window_at(e, batch);
    when(b, found.inside, [&] {
      const auto update = [&](const Values& lane) {
        at_position(e, found, batch, window_of(lane), body);
      };
      if (element_count(lanes) == 1) {
        update(Values(lanes.size(), b.index(0)));
      } else {
        b.lanes(lanes, update);
      }
    });
    return Values{};
  });
}

}  // namespace tenon::hlo::lower
