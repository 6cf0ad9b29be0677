// Communication between processes, and with the host.
//
// Without a process (Evaluator::set_process) the program runs alone, in a grid of one by one: a
// collective has a group of one, and the other end of a channel does not exist.
#include <algorithm>

#include "hlo/evaluator/ops/promotion.h"
#include "hlo/evaluator/ops/rules.h"
#include "hlo/evaluator/processes/process.h"

namespace tenon::hlo {
namespace {

using Frame = EvalFrame;
using ValueList = std::vector<EvalValue>;

// --- The position of this process

GridExtent extent_of(const Evaluator& e) {
  return e.process() ? e.process()->grid().extent() : GridExtent{};
}
ProcessId id_of(const Evaluator& e) { return e.process() ? e.process()->id() : ProcessId{}; }

GroupStrategy strategy_of(const Instruction& op) {
  if (op.flag(AttrKey::use_global_device_ids)) return GroupStrategy::kFlattenedIds;
  if (op.integer(AttrKey::channel_handle) <= 0) return GroupStrategy::kCrossReplica;
  switch (op.code()) {
    case OpCode::kAllGather:
    case OpCode::kAllReduce:
    case OpCode::kReduceScatter:
      return GroupStrategy::kCrossReplicaAndPartition;
    default:
      return GroupStrategy::kCrossPartition;
  }
}

// The group of this process; empty if it belongs to none.
Result<ProcessGroup> group_of(const Evaluator& e, const Instruction& op) {
  static const I64Matrix kAll;
  const Attribute* attribute = op.attribute(AttrKey::replica_groups);
  const auto* ids = attribute ? attribute->get<I64Matrix>() : &kAll;
  if (ids == nullptr) {
    return unimplemented("{}: replica_groups over mesh axes are not evaluated", op.name());
  }
  auto groups = process_groups(strategy_of(op), *ids, extent_of(e));
  if (!groups) return Error(std::move(groups.error()).with_context(op.name()));
  for (ProcessGroup& group : *groups) {
    if (std::find(group.begin(), group.end(), id_of(e)) != group.end()) return std::move(group);
  }
  return ProcessGroup{};
}

// The same, for an op in which every process must take part.
Result<ProcessGroup> own_group(const Evaluator& e, const Instruction& op) {
  TENON_ASSIGN(ProcessGroup group, group_of(e, op));
  if (group.empty()) {
    return invalid_argument("{}: process {} is in no group of replica_groups", op.name(),
                            to_string(id_of(e)));
  }
  return group;
}

size_t place_in(const ProcessGroup& group, ProcessId id) {
  return static_cast<size_t>(std::find(group.begin(), group.end(), id) - group.begin());
}

std::string type_text(const Tensor& tensor) {
  return Shape(tensor.type(), tensor.dims()).to_string();
}

// Exchanges values: returns the operands of each member of the group.
Result<std::vector<ValueList>> exchange(const Evaluator& e, const Instruction& op,
                                        const ProcessGroup& group, const ValueList& operands) {
  std::vector<ValueList> all{operands};
  if (e.process() != nullptr) {
    TENON_ASSIGN(all,
                 e.process()->rendezvous(op, op.integer(AttrKey::channel_handle), group, operands));
  }
  for (size_t m = 0; m < all.size(); ++m) {
    bool is_same = all[m].size() == operands.size();
    for (size_t k = 0; is_same && k < operands.size(); ++k) {
      is_same =
          all[m][k]->type() == operands[k]->type() && all[m][k]->dims() == operands[k]->dims();
    }
    if (!is_same) {
      return invalid_argument("{}: processes {} and {} come with operands of different types",
                              op.name(), to_string(group[m]), to_string(id_of(e)));
    }
  }
  return all;
}

// --- Arrays

// Zeros; for a quantized type, its zero points.
Result<Tensor> zeros(const Evaluator& e, const Type& type) {
  TENON_ASSIGN(Tensor result, e.make_tensor(type));
  const QuantizedType* q = type.quantized();
  if (q == nullptr) return result;
  if (q->is_per_axis()) {
    return unimplemented("zeros of {}, which has a zero point per index", type.to_string());
  }
  for (int64_t i = 0; i < result.count(); ++i) result.set(i, Scalar(q->zero_points[0]));
  return result;
}

// Copies `count` indices of `axis`, starting at `from_start`, to `to`, starting at `to_start`. The
// two arrays agree in all other dimensions.
void copy_along(size_t axis, Tensor& to, int64_t to_start, const Tensor& from, int64_t from_start,
                int64_t count) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < from.dims().size(); ++d) inner *= from.dims()[d];
  const int64_t to_row = to.dims()[axis] * inner;
  const int64_t from_row = from.dims()[axis] * inner;
  const int64_t rows = from_row == 0 ? 0 : from.count() / from_row;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < count * inner; ++i) {
      to.copy(row * to_row + to_start * inner + i, from, row * from_row + from_start * inner + i);
    }
  }
}

// Part `index` of `count` equal parts along `axis`.
Result<Tensor> part_of(const Evaluator& e, const Instruction& op, const Tensor& whole, size_t axis,
                       size_t index, size_t count) {
  const auto parts = static_cast<int64_t>(count);
  Dims dims = whole.dims();
  if (dims[axis] % parts != 0) {
    return invalid_argument("{}: dimension {} of {} cannot be split among {} processes", op.name(),
                            axis, type_text(whole), parts);
  }
  dims[axis] /= parts;
  Tensor part = e.tensor(whole.type(), dims);
  copy_along(axis, part, 0, whole, static_cast<int64_t>(index) * dims[axis], dims[axis]);
  return part;
}

Result<Tensor> concatenated(const Evaluator& e, const std::vector<Tensor>& parts, size_t axis) {
  Dims dims = parts[0].dims();
  dims[axis] *= static_cast<int64_t>(parts.size());
  TENON_ASSIGN(Tensor whole, e.make_tensor(Type::tensor(parts[0].type(), dims)));
  int64_t start = 0;
  for (const Tensor& part : parts) {
    copy_along(axis, whole, start, part, 0, part.dims()[axis]);
    start += part.dims()[axis];
  }
  return whole;
}

// The sizes of groups are known only on a grid, so a stated type may be wrong, and so may the type
// of data from outside.
Result<ValueList> checked(const Instruction& op, ValueList values) {
  if (values.size() != op.result_count()) {
    return invalid_argument("{}: {} values for {} results", op.name(), values.size(),
                            op.result_count());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Type& type = op.result_type(i);
    const Tensor* tensor = values[i].tensor.get();
    const bool fits = type.is_tensor() ? tensor != nullptr && tensor->dims() == type.dims() &&
                                             tensor->type() == type.element_type()
                                       : tensor == nullptr;
    if (!fits) {
      return invalid_argument("{}: result {} is {}, expected {}", op.name(), i,
                              tensor ? type_text(*tensor) : "no array", type.to_string());
    }
  }
  return values;
}

// Combines operand `k` of every member in the order of the group, in the type of the body.
Result<Tensor> combined(Evaluator& e, const Instruction& op, const std::vector<Tensor>& operands,
                        const Frame& frame) {
  const ElementType body = op.region(0).parameter(0).type().element_type();
  const Promotion promote = promotion(e, operands[0].type(), body);
  const Promotion convert = element_conversion(e, op.region(0), 0);
  RegionFunction function(e, op.region(0), frame);
  Tensor result = e.tensor(body, operands[0].dims());
  Scalar x[2];
  for (int64_t i = 0; i < result.count(); ++i) {
    x[0] = promote(operands[0].get(i));
    for (size_t m = 1; m < operands.size(); ++m) {
      x[1] = convert(promote(operands[m].get(i)));
      TENON_TRY(function(x, x));
    }
    result.set(i, x[0]);
  }
  return result;
}

std::vector<Tensor> operand_of_each(const std::vector<ValueList>& all, size_t k) {
  std::vector<Tensor> tensors;
  tensors.reserve(all.size());
  for (const ValueList& values : all) tensors.push_back(*values[k]);
  return tensors;
}

// --- Collectives

Evaluator::Values all_gather(Evaluator& e, const Instruction& op, Operands operands) {
  TENON_ASSIGN(const ProcessGroup group, own_group(e, op));
  TENON_ASSIGN(const std::vector<ValueList> all, exchange(e, op, group, operands));
  const auto axis = static_cast<size_t>(op.integer(AttrKey::all_gather_dim));
  ValueList results;
  for (size_t k = 0; k < operands.size(); ++k) {
    TENON_ASSIGN(Tensor whole, concatenated(e, operand_of_each(all, k), axis));
    results.push_back(EvalValue::of(std::move(whole)));
  }
  return checked(op, std::move(results));
}

Evaluator::Values all_reduce(Evaluator& e, const Instruction& op, Operands operands,
                             const Frame& frame) {
  TENON_ASSIGN(const ProcessGroup group, own_group(e, op));
  TENON_ASSIGN(const std::vector<ValueList> all, exchange(e, op, group, operands));
  ValueList results;
  for (size_t k = 0; k < operands.size(); ++k) {
    TENON_ASSIGN(Tensor result, combined(e, op, operand_of_each(all, k), frame));
    results.push_back(EvalValue::of(std::move(result)));
  }
  return checked(op, std::move(results));
}

Evaluator::Values reduce_scatter(Evaluator& e, const Instruction& op, Operands operands,
                                 const Frame& frame) {
  TENON_ASSIGN(const ProcessGroup group, own_group(e, op));
  TENON_ASSIGN(const std::vector<ValueList> all, exchange(e, op, group, operands));
  const auto axis = static_cast<size_t>(op.integer(AttrKey::scatter_dimension));
  const size_t place = place_in(group, id_of(e));
  // The body works element by element, so only the part that is kept must be computed.
  std::vector<Tensor> parts;
  for (const ValueList& values : all) {
    TENON_ASSIGN(Tensor part, part_of(e, op, *values[0], axis, place, group.size()));
    parts.push_back(std::move(part));
  }
  TENON_ASSIGN(Tensor result, combined(e, op, parts, frame));
  return checked(op, {EvalValue::of(std::move(result))});
}

Evaluator::Values all_to_all(Evaluator& e, const Instruction& op, Operands operands) {
  TENON_ASSIGN(const ProcessGroup group, own_group(e, op));
  const int64_t split_count = op.integer(AttrKey::split_count);
  if (split_count != static_cast<int64_t>(group.size())) {
    return invalid_argument(
        "{}: split_count is {}, expected {}, the number of processes of a group", op.name(),
        split_count, group.size());
  }
  TENON_ASSIGN(const std::vector<ValueList> all, exchange(e, op, group, operands));
  const auto split = static_cast<size_t>(op.integer(AttrKey::split_dimension));
  const auto concat = static_cast<size_t>(op.integer(AttrKey::concat_dimension));
  const size_t place = place_in(group, id_of(e));
  ValueList results;
  for (size_t k = 0; k < operands.size(); ++k) {
    std::vector<Tensor> parts;
    for (const ValueList& values : all) {
      TENON_ASSIGN(Tensor part, part_of(e, op, *values[k], split, place, group.size()));
      parts.push_back(std::move(part));
    }
    TENON_ASSIGN(Tensor whole, concatenated(e, parts, concat));
    results.push_back(EvalValue::of(std::move(whole)));
  }
  return checked(op, std::move(results));
}

Result<ValueList> zero_results(const Evaluator& e, const Instruction& op) {
  ValueList results;
  for (const Type& type : op.result_types()) {
    TENON_ASSIGN(Tensor zero, zeros(e, type));
    results.push_back(EvalValue::of(std::move(zero)));
  }
  return results;
}

// For each result, the position of its root in the group: the first, or the one that the last
// operand states, on which all members must agree.
Result<std::vector<size_t>> roots_of(const Instruction& op, const ProcessGroup& group,
                                     const std::vector<ValueList>& all) {
  std::vector<size_t> roots(op.result_count(), 0);
  if (!op.flag(AttrKey::has_dynamic_root)) return roots;
  for (size_t k = 0; k < roots.size(); ++k) {
    const int64_t root = all[0].back()->integer(static_cast<int64_t>(k));
    for (size_t m = 1; m < all.size(); ++m) {
      const int64_t other = all[m].back()->integer(static_cast<int64_t>(k));
      if (other != root) {
        return invalid_argument("{}: root {} is {} in process {} and {} in process {}", op.name(),
                                k, root, to_string(group[0]), other, to_string(group[m]));
      }
    }
    if (root < 0 || root >= static_cast<int64_t>(group.size())) {
      return invalid_argument("{}: root {} is {}, expected one in [0, {})", op.name(), k, root,
                              group.size());
    }
    roots[k] = static_cast<size_t>(root);
  }
  return roots;
}

Evaluator::Values collective_broadcast(Evaluator& e, const Instruction& op, Operands operands) {
  TENON_ASSIGN(const ProcessGroup group, group_of(e, op));
  if (group.empty()) return zero_results(e, op);
  TENON_ASSIGN(const std::vector<ValueList> all, exchange(e, op, group, operands));
  TENON_ASSIGN(const std::vector<size_t> roots, roots_of(op, group, all));
  ValueList results;
  for (size_t k = 0; k < roots.size(); ++k) results.push_back(all[roots[k]][k]);
  return checked(op, std::move(results));
}

Evaluator::Values collective_reduce(Evaluator& e, const Instruction& op, Operands operands,
                                    const Frame& frame) {
  TENON_ASSIGN(const ProcessGroup group, group_of(e, op));
  TENON_ASSIGN(ValueList results, zero_results(e, op));
  if (group.empty()) return results;
  TENON_ASSIGN(const std::vector<ValueList> all, exchange(e, op, group, operands));
  TENON_ASSIGN(const std::vector<size_t> roots, roots_of(op, group, all));
  for (size_t k = 0; k < roots.size(); ++k) {
    if (group[roots[k]] != id_of(e)) continue;
    TENON_ASSIGN(Tensor result, combined(e, op, operand_of_each(all, k), frame));
    results[k] = EvalValue::of(std::move(result));
  }
  return checked(op, std::move(results));
}

// --- Point to point

struct Ends {
  std::vector<ProcessId> targets;   // of this process
  std::optional<ProcessId> source;  // for this process
};

Result<Ends> ends_of(const Evaluator& e, const Instruction& op, int64_t channel) {
  Ends ends;
  const auto* matrix = op.attr<I64Matrix>(AttrKey::source_target_pairs);
  if (matrix == nullptr) return ends;
  const GroupStrategy strategy =
      channel > 0 ? GroupStrategy::kCrossPartition : GroupStrategy::kCrossReplica;
  auto pairs = process_pairs(strategy, *matrix, extent_of(e));
  if (!pairs) return Error(std::move(pairs.error()).with_context(op.name()));
  for (const ProcessGroup& pair : *pairs) {
    if (pair[0] == id_of(e)) ends.targets.push_back(pair[1]);
    if (pair[1] == id_of(e)) ends.source = pair[0];
  }
  return ends;
}

// Sources do not wait for their targets, so a ring of pairs needs no order.
Evaluator::Values collective_permute(Evaluator& e, const Instruction& op, Operands operands) {
  const int64_t channel = op.integer(AttrKey::channel_handle);
  TENON_ASSIGN(const Ends ends, ends_of(e, op, channel));
  if (e.process() == nullptr) {
    return ends.source ? checked(op, operands) : zero_results(e, op);
  }
  const ProcessId me = e.process()->id();
  for (const ProcessId& target : ends.targets) {
    e.process()->send({true, channel, me, target}, operands);
  }
  if (!ends.source) return zero_results(e, op);
  TENON_ASSIGN(ValueList received, e.process()->receive(op, {true, channel, ends.source, me}));
  return checked(op, std::move(received));
}

// A transfer between devices goes from the sources to the targets of its pairs. A transfer with the
// host (whose other end may be a process that acts as the host), or one without pairs, uses a queue
// per channel.
bool is_between_devices(const Instruction& op) {
  const auto* pairs = op.attr<I64Matrix>(AttrKey::source_target_pairs);
  return !op.flag(AttrKey::is_host_transfer) && pairs != nullptr && !pairs->values.empty();
}

Result<int64_t> open_channel(const Evaluator& e, const Instruction& op) {
  const auto* handle = op.attr<ChannelHandle>(AttrKey::channel_handle);
  const int64_t channel = handle ? handle->handle : 0;
  if (e.process() == nullptr) {
    return failed_precondition("{}: channel {} has no peer, as this program runs alone", op.name(),
                               channel);
  }
  return channel;
}

Evaluator::Values send(Evaluator& e, const Instruction& op, Operands operands) {
  TENON_ASSIGN(const int64_t channel, open_channel(e, op));
  const ValueList inputs(operands.begin(), operands.end() - 1);
  if (is_between_devices(op)) {
    TENON_ASSIGN(const Ends ends, ends_of(e, op, channel));
    for (const ProcessId& target : ends.targets) {
      e.process()->send({false, channel, e.process()->id(), target}, inputs);
    }
  } else {
    e.process()->send({false, channel, {}, {}}, inputs);
  }
  return ValueList{EvalValue{}};
}

Evaluator::Values recv(Evaluator& e, const Instruction& op) {
  TENON_ASSIGN(const int64_t channel, open_channel(e, op));
  Route route{false, channel, {}, {}};
  if (is_between_devices(op)) {
    TENON_ASSIGN(const Ends ends, ends_of(e, op, channel));
    route.source = ends.source;
    route.target = e.process()->id();
    if (!ends.source) {
      // As in collective_permute, a process that receives nothing gets zeros.
      ValueList results;
      for (const Type& type : op.result_types()) {
        if (!type.is_tensor()) continue;
        TENON_ASSIGN(Tensor zero, zeros(e, type));
        results.push_back(EvalValue::of(std::move(zero)));
      }
      results.emplace_back();
      return checked(op, std::move(results));
    }
  }
  TENON_ASSIGN(ValueList values, e.process()->receive(op, route));
  values.emplace_back();
  return checked(op, std::move(values));
}

// --- Streams, ids and futures

Evaluator::Values infeed(Evaluator& e, const Instruction& op) {
  if (e.process() == nullptr) {
    return failed_precondition("{}: there is no infeed, as this program runs alone", op.name());
  }
  TENON_ASSIGN(ValueList values, e.process()->infeed(op));
  values.emplace_back();
  return checked(op, std::move(values));
}

Evaluator::Values outfeed(Evaluator& e, Operands operands) {
  e.write_outfeed(ValueList(operands.begin(), operands.end() - 1));
  return ValueList{EvalValue{}};
}

Evaluator::Values process_id(Evaluator& e, int64_t id) {
  Tensor result = e.tensor(ElementType::kU32, {});
  result.set(0, Scalar(id));
  return one(std::move(result));
}

// Running asynchronously is optional: the body runs at once, and the future holds its results.
Evaluator::Values async_start(Evaluator& e, const Instruction& op, Operands operands,
                              const Frame& frame) {
  // The body may take the operands as parameters, or use values of the enclosing computation.
  const bool takes_operands = op.region(0).parameter_count() == operands.size();
  TENON_ASSIGN(ValueList results,
               e.run_computation(op.region(0), takes_operands ? operands : ValueList{}, &frame));
  return ValueList{EvalValue{nullptr, std::move(results)}};
}

}  // namespace

namespace evaluate {

using Values = Evaluator::Values;

Values all_gather(const EvalCall& c) { return hlo::all_gather(c.e, c.op, c.operands); }
Values all_reduce(const EvalCall& c) { return hlo::all_reduce(c.e, c.op, c.operands, c.frame); }
Values all_to_all(const EvalCall& c) { return hlo::all_to_all(c.e, c.op, c.operands); }
Values async_start(const EvalCall& c) { return hlo::async_start(c.e, c.op, c.operands, c.frame); }
Values collective_broadcast(const EvalCall& c) {
  return hlo::collective_broadcast(c.e, c.op, c.operands);
}
Values collective_permute(const EvalCall& c) {
  return hlo::collective_permute(c.e, c.op, c.operands);
}
Values collective_reduce(const EvalCall& c) {
  return hlo::collective_reduce(c.e, c.op, c.operands, c.frame);
}
Values infeed(const EvalCall& c) { return hlo::infeed(c.e, c.op); }
Values outfeed(const EvalCall& c) { return hlo::outfeed(c.e, c.operands); }
Values recv(const EvalCall& c) { return hlo::recv(c.e, c.op); }
Values reduce_scatter(const EvalCall& c) {
  return hlo::reduce_scatter(c.e, c.op, c.operands, c.frame);
}
Values send(const EvalCall& c) { return hlo::send(c.e, c.op, c.operands); }
Values async_done(const EvalCall& c) { return c.operands[0].elements; }
Values partition_id(const EvalCall& c) { return process_id(c.e, id_of(c.e).partition); }
Values replica_id(const EvalCall& c) { return process_id(c.e, id_of(c.e).replica); }
Values token(const EvalCall&) { return ValueList{EvalValue{}}; }

}  // namespace evaluate
}  // namespace tenon::hlo
