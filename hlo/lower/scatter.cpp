// scatter: the result begins as the input; then updates are combined into it.
//
// Where the order of combinations cannot change a bit (integers added, or the least, the greatest …
// of them) all updates are atomics at once. Else the index vectors are taken one after the other,
// in the order of the updates, so that duplicates have one defined result; the elements of a window
// are shared out.
#include <algorithm>

#include "hlo/lower/index_math.h"
#include "hlo/lower/row_passes.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using K = kernel::OpCode;

class ScatterLowering {
 public:
  ScatterLowering(LoweredOp& lowered, const Instruction& op)
      : lowered_(lowered),
        op_(op),
        count_(op.result_count()),
        dims_(*op.attr<ScatterDims>(AttrKey::scatter_dimension_numbers)),
        input_(op.operand_type(0)),
        indices_(op.operand_type(count_)),
        updates_(op.operand_type(count_ + 1)) {
    batch_dims_ = complement(updates_.rank(), dims_.update_window_dims);
    I64s not_window = dims_.inserted_window_dims;
    not_window.insert(not_window.end(), dims_.input_batching_dims.begin(),
                      dims_.input_batching_dims.end());
    window_input_dims_ = complement(input_.rank(), not_window);
    for (const int64_t d : batch_dims_) batch_.push_back(updates_.dims()[at(d)]);
    for (const int64_t d : dims_.update_window_dims) window_.push_back(updates_.dims()[at(d)]);
  }

  Status run(Schedule& schedule) {
    for (uint32_t r = 0; r < count_; ++r) TENON_TRY(begin_as_input(r, schedule));
    if (element_count(updates_.dims()) == 0) return {};
    const std::optional<kernel::AtomicKind> atomic = atomic_kind();
    const bool unique = op_.flag(AttrKey::unique_indices);
    if (atomic && schedule.choose("scatter_atomic", 1, {0, 1}) != 0) {
      return at_once(schedule, "_atomic",
                     [&](KernelMaker& maker, const Values& to, const Values& update) {
                       const Element x = maker.e().element(op_.operand(count_ + 1), update);
                       maker.b().atomic(*atomic, x.re, results_[0], to);
                     });
    }
    if (unique && schedule.choose("scatter_unique", 1, {0, 1}) != 0) {
      return at_once(schedule, "_unique",
                     [&](KernelMaker& maker, const Values& to, const Values& update) {
                       combine(maker, to, update);
                     });
    }
    return in_order();
  }

 private:
  static size_t at(int64_t d) { return static_cast<size_t>(d); }

  Status begin_as_input(uint32_t r, Schedule& schedule) {
    const Value value = op_.operand(r);
    const auto known = std::find(lowered_.inputs.begin(), lowered_.inputs.end(), value);
    if (known != lowered_.inputs.end()) {
      lowered_.copies.emplace_back(r, static_cast<uint32_t>(known - lowered_.inputs.begin()));
      return {};
    }
    return add_kernel(lowered_, op_, "_begin", [&](KernelMaker& maker) {
      maker.inputs();
      const kernel::MemoryId result = maker.result(r);
      for_each_index(maker.b(), input_.dims(), schedule, [&](const Values& index) {
        maker.e().store(maker.e().element(value, index), result, index);
      });
    });
  }

  // A combination of one integer that is one atomic.
  std::optional<kernel::AtomicKind> atomic_kind() const {
    const Computation& region = op_.region(0);
    const Instruction* op = region.first();
    const Instruction* end = region.return_instruction();
    const bool integers = count_ == 1 && is_integer(input_.element_type()) &&
                          updates_.element_type() == input_.element_type() &&
                          region.parameter(0).type().element_type() == input_.element_type();
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

  // The index in the updates of a batch position and a window position.
  Values update_index(const Values& batch, const Values& window) const {
    Values index(updates_.dims().size());
    for (size_t i = 0; i < batch.size(); ++i) index[at(batch_dims_[i])] = batch[i];
    for (size_t i = 0; i < window.size(); ++i) {
      index[at(dims_.update_window_dims[i])] = window[i];
    }
    return index;
  }

  // Where the window of `batch` begins in the input, as far as the index vector says.
  Values window_start(KernelMaker& maker, const Values& batch) {
    Builder& b = maker.b();
    Values start(input_.dims().size(), b.index(0));
    for (size_t i = 0; i < dims_.scatter_dims_to_operand_dims.size(); ++i) {
      Values position;
      size_t next = 0;
      for (int64_t k = 0; k < indices_.rank(); ++k) {
        position.push_back(k == dims_.index_vector_dim ? b.index(static_cast<int64_t>(i))
                                                       : batch[next++]);
      }
      const auto d = at(dims_.scatter_dims_to_operand_dims[i]);
      start[d] = near(maker, maker.e().element(op_.operand(count_), position).re, d);
    }
    for (size_t i = 0; i < dims_.input_batching_dims.size(); ++i) {
      const int64_t d = dims_.scatter_indices_batching_dims[i];
      start[at(dims_.input_batching_dims[i])] = batch[at(d > dims_.index_vector_dim ? d - 1 : d)];
    }
    return start;
  }

  // The number, brought so near to the input that sums do not overflow and every window position
  // that was out of range still is.
  ValueId near(KernelMaker& maker, ValueId value, size_t d) {
    Builder& b = maker.b();
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
    if (fits(high)) value = b.min(value, b.integer(type, high));
    return b.convert(value, b.index_type());
  }

  // Calls `body` with the place in the input and the update of a window position that is inside.
  void at_window(KernelMaker& maker, const Values& batch, const Values& window,
                 const std::function<void(const Values& to, const Values& update)>& body) {
    Builder& b = maker.b();
    Values to = window_start(maker, batch);
    for (size_t i = 0; i < window_input_dims_.size(); ++i) {
      ValueId& place = to[at(window_input_dims_[i])];
      place = b.add(place, window[i]);
    }
    ValueId inside = b.pred(true);
    for (size_t d = 0; d < to.size(); ++d) {
      inside = b.logical_and(inside, in_bounds(b, to[d], input_.dims()[d]));
    }
    b.if_then(inside, [&] { body(to, update_index(batch, window)); });
  }

  void combine(KernelMaker& maker, const Values& to, const Values& update) {
    Emitter& e = maker.e();
    const std::vector<ElementType> types = parameter_types(op_.region(0));
    Elements arguments;
    for (size_t k = 0; k < count_; ++k) {
      const Type& type = op_.operand_type(k);
      arguments.push_back(e.convert(e.load(results_[k], type, to), type.element_type(), types[k]));
    }
    for (size_t k = 0; k < count_; ++k) {
      const Value value = op_.operand(count_ + 1 + k);
      arguments.push_back(
          e.convert(e.element(value, update), value.type().element_type(), types[count_ + k]));
    }
    const Elements combined = e.call(op_.region(0), arguments);
    for (size_t k = 0; k < count_; ++k) {
      const ElementType type = op_.operand_type(k).element_type();
      e.store(e.convert(combined[k], types[k], type), results_[k], to);
    }
  }

  template <class Body>
  Status at_once(Schedule& schedule, std::string_view suffix, const Body& body) {
    return add_kernel(lowered_, op_, suffix, [&](KernelMaker& maker) {
      declare(maker);
      Dims all = batch_;
      all.insert(all.end(), window_.begin(), window_.end());
      for_each_index(maker.b(), all, schedule, [&](const Values& index) {
        const auto split = index.begin() + static_cast<std::ptrdiff_t>(batch_.size());
        at_window(maker, Values(index.begin(), split), Values(split, index.end()),
                  [&](const Values& to, const Values& update) { body(maker, to, update); });
      });
    });
  }

  // Dimensions of the window that no index moves are shared out among workgroups: what one touches
  // no other does.
  Status in_order() {
    return add_kernel(lowered_, op_, "", [&](KernelMaker& maker) {
      declare(maker);
      Builder& b = maker.b();
      Dims grid(window_.size(), 1);
      Dims lanes = window_;
      for (size_t i = 0; i + 1 < window_.size(); ++i) {
        if (contains(dims_.scatter_dims_to_operand_dims, window_input_dims_[i])) continue;
        grid[i] = window_[i];
        lanes[i] = 1;
      }
      const Values groups = b.grid(grid);
      b.for_loop(b.index(0), b.index(element_count(batch_)), 1, {}, [&](const Values& k) {
        const Values batch = delinearize(b, k[0], batch_);
        const auto update = [&](const Values& lane) {
          Values window(window_.size());
          for (size_t i = 0; i < window.size(); ++i) {
            window[i] = grid[i] == 1 ? lane[i] : groups[i];
          }
          at_window(maker, batch, window,
                    [&](const Values& to, const Values& from) { combine(maker, to, from); });
        };
        if (window_.empty()) {
          update({});
        } else {
          b.lanes(lanes, update);
        }
        return Values{};
      });
    });
  }

  LoweredOp& lowered_;
  const Instruction& op_;
  size_t count_;
  const ScatterDims& dims_;
  const Type& input_;
  const Type& indices_;
  const Type& updates_;
  Dims batch_dims_;         // of the updates
  Dims window_input_dims_;  // of the inputs
  Dims batch_;              // sizes
  Dims window_;
  std::vector<kernel::MemoryId> results_;
};

}  // namespace

Status lower_scatter(LoweredOp& lowered, const Instruction& op, Schedule& schedule) {
  return ScatterLowering(lowered, op).run(schedule);
}

}  // namespace tenon::hlo::lower
