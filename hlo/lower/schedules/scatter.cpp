// scatter: the result is initialised with the input; then updates are combined into it.
//
// If the order of combinations cannot change a bit (integer addition, minimum, maximum …), all
// updates run in parallel as atomics. Otherwise the index vectors are processed serially, in the
// order of the updates, so that the result of duplicates is defined; the elements of a window are
// distributed.
#include "hlo/lower/schedules/scatter.h"

#include <algorithm>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/own_kernels.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

size_t at(int64_t d) { return static_cast<size_t>(d); }

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

// The start of the window of `batch` in the input, from the index vector only.
Values ScatterEmitter::window_start(ElementEmitter& e, const Values& batch) const {
  Values start(input_.dims().size(), e.b.index(0));
  for (size_t i = 0; i < dims_.scatter_dims_to_operand_dims.size(); ++i) {
    Values position;
    size_t next = 0;
    for (int64_t k = 0; k < indices_.rank(); ++k) {
      position.push_back(k == dims_.index_vector_dim ? e.b.index(static_cast<int64_t>(i))
                                                     : batch[next++]);
    }
    const auto d = at(dims_.scatter_dims_to_operand_dims[i]);
    start[d] = near(e, e.element(op_.operand(count_), position).re, d);
  }
  for (size_t i = 0; i < dims_.input_batching_dims.size(); ++i) {
    const int64_t d = dims_.scatter_indices_batching_dims[i];
    start[at(dims_.input_batching_dims[i])] = batch[at(d > dims_.index_vector_dim ? d - 1 : d)];
  }
  return start;
}

// The number, clamped so close to the input that sums do not overflow, while every window position
// that was out of range still is.
ValueId ScatterEmitter::near(ElementEmitter& e, ValueId value, size_t d) const {
  Builder& b = e.b;
  const ElementType type = b.type_of(value);
  int64_t window = 1;
  for (size_t i = 0; i < window_input_dims_.size(); ++i) {
    if (at(window_input_dims_[i]) == d) window = window_[i];
  }
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

void ScatterEmitter::at_window(
    ElementEmitter& e, const Values& batch, const Values& window,
    const std::function<void(const Values& to, const Values& update)>& body) const {
  Builder& b = e.b;
  const Values start = window_start(e, batch);
  Values to = start;
  Dims room = input_.dims();  // for the start of a whole window
  for (size_t i = 0; i < window_input_dims_.size(); ++i) {
    const size_t d = at(window_input_dims_[i]);
    to[d] = b.add(to[d], window[i]);
    room[d] -= window_[i] - 1;
  }
  ValueId inside = b.pred(true);
  for (size_t d = 0; d < to.size(); ++d) {
    inside = b.logical_and(inside, whole_windows_ ? in_bounds(b, start[d], room[d])
                                                  : in_bounds(b, to[d], input_.dims()[d]));
  }
  b.if_then(inside, [&] { body(to, update_index(batch, window)); });
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

void ScatterEmitter::in_order(ElementEmitter& e, const std::vector<MemoryId>& results,
                              const Dims& lanes,
                              const std::function<Values(const Values& lane)>& window_of) const {
  Builder& b = e.b;
  b.for_loop(b.index(0), b.index(element_count(batch_)), 1, {}, [&](const Values& k) {
    const Values batch = delinearize(b, k[0], batch_);
    const auto update = [&](const Values& lane) {
      at_window(e, batch, window_of(lane),
                [&](const Values& to, const Values& from) { combine(e, results, to, from); });
    };
    if (element_count(lanes) == 1) {
      update(Values(lanes.size(), b.index(0)));
    } else {
      b.lanes(lanes, update);
    }
    return Values{};
  });
}

// --- Kernels

namespace {

class ScatterLowering {
 public:
  ScatterLowering(LoweredOp& lowered, const Instruction& op)
      : lowered_(lowered), op_(op), count_(op.result_count()), updates_(op) {}

  Status run(TuningParameters& tuning) {
    for (uint32_t r = 0; r < count_; ++r) {
      TENON_TRY(begin_as(lowered_, op_, r, op_.operand(r), tuning));
    }
    if (element_count(op_.operand_type(count_ + 1).dims()) == 0) return {};
    const std::optional<kernel::AtomicKind> atomic = atomic_kind();
    const bool unique = op_.flag(AttrKey::unique_indices);
    if (atomic && tuning.choose_flag(parameters::kScatterAtomic, true)) {
      return at_once(tuning, "_atomic",
                     [&](ElementEmitter& e, const Values& to, const Values& update) {
                       const Element x = e.element(op_.operand(count_ + 1), update);
                       e.b.atomic(*atomic, x.re, results_[0], to);
                     });
    }
    if (unique && tuning.choose_flag(parameters::kScatterUnique, true)) {
      return at_once(tuning, "_unique",
                     [&](ElementEmitter& e, const Values& to, const Values& update) {
                       updates_.combine(e, results_, to, update);
                     });
    }
    return in_order();
  }

 private:
  // A combination on one integer that is a single atomic.
  std::optional<kernel::AtomicKind> atomic_kind() const {
    const Computation& region = op_.region(0);
    const Instruction* op = region.first();
    const Instruction* end = region.return_instruction();
    const ElementType type = op_.operand_type(0).element_type();
    const bool integers = count_ == 1 && is_integer(type) &&
                          op_.operand_type(2).element_type() == type &&
                          region.parameter(0).type().element_type() == type;
    if (!integers || op == end || op->next() != end || op->operand_count() != 2 ||
        end->operand(0).def != op) {
      return std::nullopt;
    }
    const bool of_both = op->operand(0).def != op->operand(1).def &&
                         op->operand(0).def->code() == OpCode::kParameter &&
                         op->operand(1).def->code() == OpCode::kParameter &&
                         op->operand(0).def->parent() == &region &&
                         op->operand(1).def->parent() == &region;
    if (!of_both) return std::nullopt;
    switch (op->code()) {
      case OpCode::kAdd:
        return kernel::AtomicKind::kAdd;
      case OpCode::kMinimum:
        return kernel::AtomicKind::kMin;
      case OpCode::kMaximum:
        return kernel::AtomicKind::kMax;
      case OpCode::kAnd:
        return kernel::AtomicKind::kAnd;
      case OpCode::kOr:
        return kernel::AtomicKind::kOr;
      case OpCode::kXor:
        return kernel::AtomicKind::kXor;
      default:
        return std::nullopt;
    }
  }

  void declare(KernelMaker& maker) {
    maker.inputs();
    results_.clear();
    for (uint32_t r = 0; r < count_; ++r) {
      results_.push_back(maker.result(r, kernel::Access::kInOut));
    }
  }

  template <class Body>
  Status at_once(TuningParameters& tuning, std::string_view suffix, const Body& body) {
    return add_kernel(lowered_, op_, suffix, [&](KernelMaker& maker) {
      declare(maker);
      Dims all = updates_.batch();
      all.insert(all.end(), updates_.window().begin(), updates_.window().end());
      for_each_index(maker.b(), all, tuning, [&](const Values& index) {
        const auto split = index.begin() + static_cast<std::ptrdiff_t>(updates_.batch().size());
        updates_.at_window(
            maker.e(), Values(index.begin(), split), Values(split, index.end()),
            [&](const Values& to, const Values& update) { body(maker.e(), to, update); });
      });
    });
  }

  // Dimensions of the window that indices do not move are divided among workgroups, which then
  // access disjoint elements.
  Status in_order() {
    return add_kernel(lowered_, op_, "", [&](KernelMaker& maker) {
      declare(maker);
      const Dims& window = updates_.window();
      Dims grid(window.size(), 1);
      Dims lanes = window;
      for (size_t i = 0; i + 1 < window.size(); ++i) {
        if (updates_.is_moved(i)) continue;
        grid[i] = window[i];
        lanes[i] = 1;
      }
      const Values groups = maker.b().grid(grid);
      updates_.in_order(maker.e(), results_, lanes, [&](const Values& lane) {
        Values position = lane;
        for (size_t i = 0; i < lane.size(); ++i) {
          if (grid[i] != 1) position[i] = groups[i];
        }
        return position;
      });
    });
  }

  LoweredOp& lowered_;
  const Instruction& op_;
  size_t count_;
  ScatterEmitter updates_;
  std::vector<MemoryId> results_;
};

}  // namespace

Status lower_scatter(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                     const LowerLimits&) {
  return ScatterLowering(lowered, op).run(tuning);
}

}  // namespace tenon::hlo::lower
