// Rules of tokens, host transfers, collectives and futures.
#include <algorithm>
#include <unordered_set>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

struct GroupLabels {
  std::string_view unique, range, channel;
  int64_t least_channel = 1;
};

// Checks groups of processes; the number of processes is not known here. Shorter groups are padded
// with -1.
Status check_groups(const Instruction& op, const GroupLabels& labels, bool may_differ_in_size,
                    bool names_all = true) {
  const bool has_global_ids = op.flag(AttrKey::use_global_device_ids);
  if (has_global_ids && op.integer(AttrKey::channel_handle) < labels.least_channel) {
    return rule_error(op, labels.channel,
                      "use_global_device_ids is set and channel_id is {}, expected "
                      "at least {}",
                      op.integer(AttrKey::channel_handle), labels.least_channel);
  }
  const auto* groups = op.attr<I64Matrix>(AttrKey::replica_groups);
  if (groups == nullptr) return {};  // Mesh axes.
  if (has_global_ids && groups->values.empty()) {
    return rule_error(op, labels.range, "use_global_device_ids is set and replica_groups is empty");
  }
  std::unordered_set<int64_t> seen;
  for (int64_t id : groups->values) {
    if (id == -1 && may_differ_in_size) continue;
    if (id < 0) return rule_error(op, labels.range, "replica_groups contains {}", id);
    if (!seen.insert(id).second) {
      return rule_error(op, labels.unique, "replica_groups contains {} twice", id);
    }
  }
  const auto count = static_cast<int64_t>(seen.size());
  for (int64_t id = 0; names_all && id < count; ++id) {
    if (!seen.contains(id)) {
      return rule_error(op, labels.range, "replica_groups names {} processes, but not {}", count,
                        id);
    }
  }
  return {};
}

// The number of columns of the groups, if that is the size of a process group. XLA reads an empty
// list of groups as one group of all processes, and for some channels the size is a row times the
// partitions.
std::optional<int64_t> group_size(const Instruction& op) {
  const auto* groups = op.attr<I64Matrix>(AttrKey::replica_groups);
  if (groups == nullptr || groups->values.empty()) return std::nullopt;
  const bool is_plain =
      op.integer(AttrKey::channel_handle) <= 0 || op.flag(AttrKey::use_global_device_ids);
  return is_plain ? std::optional(groups->columns) : std::nullopt;
}

struct PairLabels {
  std::string_view columns, sources, targets, range;
};

Status check_pairs(const Instruction& op, const PairLabels& labels) {
  const auto* pairs = op.attr<I64Matrix>(AttrKey::source_target_pairs);
  if (pairs == nullptr) return {};
  if (pairs->columns != 2 && pairs->rows != 0) {
    return rule_error(op, labels.columns, "source_target_pairs has {} columns, expected 2",
                      pairs->columns);
  }
  std::unordered_set<int64_t> seen[2];
  for (int64_t row = 0; row < pairs->rows; ++row) {
    for (int64_t column = 0; column < 2; ++column) {
      const int64_t id = pairs->at(row, column);
      if (id < 0) return rule_error(op, labels.range, "source_target_pairs contains {}", id);
      if (!seen[column].insert(id).second) {
        return rule_error(op, column == 0 ? labels.sources : labels.targets,
                          "source_target_pairs has {} {} twice", column == 0 ? "source" : "target",
                          id);
      }
    }
  }
  return {};
}

Status check_operands(const Instruction& op, std::string_view label) {
  if (op.operand_count() == 0) return rule_error(op, label, "there are no operands");
  for (size_t i = 0; i < op.operand_count(); ++i) TENON_TRY(check_tensor(op, label, i));
  return {};
}

// Checks the computation of a collective, applied to each of the first `count` operands.
Types reduced(const Instruction& op, std::string_view label, size_t count) {
  std::vector<Type> results;
  for (size_t i = 0; i < count; ++i) {
    const Type& operand = op.operand_type(i);
    const Type scalar = operand.with_dims({});
    TENON_ASSIGN(const std::vector<Type> elements, check_reducer(op, 0, label, {scalar}, {scalar}));
    results.push_back(settle(op, i, with_dims(elements[0], dims_of(operand))));
  }
  return results;
}

// The number of operands with data: all of them, or all except the roots of a dynamic root.
Result<size_t> data_count(const Instruction& op, std::string_view static_label,
                          std::string_view dynamic_label) {
  const size_t count = op.operand_count();
  if (!op.flag(AttrKey::has_dynamic_root)) {
    if (count == 0) return rule_error(op, static_label, "there are no operands");
    return count;
  }
  if (count < 2) {
    return rule_error(op, dynamic_label, "there are {} operands, expected data and roots", count);
  }
  const Type& roots = op.operand_type(count - 1);
  const Type expected = Type::tensor(ElementType::kS32, {static_cast<int64_t>(count) - 1});
  if (!compatible(roots, expected)) {
    return rule_error(op, dynamic_label, "the last operand is {}, expected {}, one root an operand",
                      roots.to_string(), expected.to_string());
  }
  return count - 1;
}

}  // namespace

Types after_all(const Instruction& op) {
  for (size_t i = 0; i < op.operand_count(); ++i) TENON_TRY(check_token(op, "I1", i));
  return one(Type::token());
}

Types create_token(const Instruction&) { return one(Type::token()); }

namespace {

// A list of dimensions for each tensor.
Status check_infeed_layout(const Instruction& op, size_t tensors) {
  const Attribute* layout = op.attribute(AttrKey::layout);
  if (layout == nullptr) return {};
  const auto* lists = layout->get<ArrayAttr>();
  if (lists == nullptr) return rule_error(op, "", "layout is not a list");
  TENON_TRY(check_length(op, "", "layout", length(*lists), static_cast<int64_t>(tensors)));
  for (const Attribute& list : *lists) {
    if (list.get<I64s>() != nullptr) continue;
    const auto* order = list.get<ArrayAttr>();
    const bool is_order =
        order != nullptr && std::all_of(order->begin(), order->end(), [](const Attribute& element) {
          return element.get<IntegerAttr>() != nullptr;
        });
    if (!is_order) return rule_error(op, "", "layout holds something other than lists of integers");
  }
  return {};
}

}  // namespace

Types infeed(const Instruction& op) {
  TENON_TRY(check_token(op, "I1", 0));
  const std::vector<Type>& results = op.result_types();
  if (results.empty()) return rule_error(op, "C1", "there are no results");
  for (size_t i = 0; i + 1 < results.size(); ++i) {
    if (!results[i].is_tensor()) {
      return rule_error(op, "C2", "result {} is {}, expected a tensor", i, results[i].to_string());
    }
  }
  if (!results.back().is_token()) {
    return rule_error(op, "C3", "the last result is {}, expected a token",
                      results.back().to_string());
  }
  TENON_TRY(check_infeed_layout(op, results.size() - 1));
  return results;
}

Types outfeed(const Instruction& op) {
  const size_t last = op.operand_count() - 1;
  for (size_t i = 0; i < last; ++i) TENON_TRY(check_tensor(op, "I1", i));
  TENON_TRY(check_token(op, "I2", last));
  return one(Type::token());
}

namespace {

// Channel types: 1 device to device, 2 device to host, 3 host to device.
Status check_channel(const Instruction& op, int64_t host_type, std::string_view host_name) {
  const auto& channel = *op.attr<ChannelHandle>(AttrKey::channel_handle);
  const bool is_host = op.flag(AttrKey::is_host_transfer);
  if (channel.type == (is_host ? host_type : 1)) return {};
  return rule_error(op, "C5", "channel type is {}, expected {} for {} transfer", channel.type,
                    is_host ? host_name : "1 (DEVICE_TO_DEVICE)", is_host ? "a host" : "no host");
}

}  // namespace

Types send(const Instruction& op) {
  const size_t last = op.operand_count() - 1;
  for (size_t i = 0; i < last; ++i) TENON_TRY(check_tensor(op, "I1", i));
  TENON_TRY(check_token(op, "I2", last));
  TENON_TRY(check_pairs(op, {"C1", "C2", "C3", "C4"}));
  TENON_TRY(check_channel(op, 2, "2 (DEVICE_TO_HOST)"));
  return one(Type::token());
}

Types recv(const Instruction& op) {
  TENON_TRY(check_token(op, "I1", 0));
  TENON_TRY(check_pairs(op, {"C1", "C2", "C3", "C4"}));
  TENON_TRY(check_channel(op, 3, "3 (HOST_TO_DEVICE)"));
  const std::vector<Type>& results = op.result_types();
  if (results.empty() || !results.back().is_token()) {
    return rule_error(op, "", "results are ({}), expected a token at the end",
                      types_to_string(results));
  }
  for (size_t i = 0; i + 1 < results.size(); ++i) {
    if (!results[i].is_tensor()) {
      return rule_error(op, "", "result {} is {}, expected a tensor", i, results[i].to_string());
    }
  }
  return results;
}

Types process_id(const Instruction&) { return one(Type::tensor(ElementType::kU32, {})); }

Types all_gather(const Instruction& op) {
  TENON_TRY(check_operands(op, "I1"));
  const int64_t dimension = op.integer(AttrKey::all_gather_dim);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    TENON_TRY(check_dimension(op, "C1", "all_gather_dim", dimension, op.operand_type(i).rank()));
  }
  // Producers omit the channel; for this op alone, the official verifier accepts that.
  TENON_TRY(check_groups(op, {"C2", "C4", "C5", 0}, false));
  const std::optional<int64_t> group = group_size(op);
  std::vector<Type> results;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Type& operand = op.operand_type(i);
    std::vector<Dim> dims = dims_of(operand);
    Dim& dim = dims[at(dimension)];
    const int64_t size = dim.size;
    const bool is_stated = i < op.result_count() && op.result_type(i).is_tensor() &&
                           op.result_type(i).rank() == operand.rank();
    dim = {};
    if (size != kDynamic && group && !is_stated) {
      const auto total = fits(static_cast<__int128>(size) * *group);
      if (!total) return rule_error(op, "C6", "the size of dimension {} overflows", dimension);
      dim.size = *total;
    } else if (is_stated) {
      // The number of partitions that a group spans is known only when the program is placed, and
      // StableHLO's own compatibility artifacts gather groups of one process into a larger result.
      // Only a multiple can therefore be required.
      dim = dim_of(op.result_type(i), dimension);
      if (size != kDynamic && dim.size != kDynamic &&
          (size == 0 ? dim.size != 0 : dim.size % size != 0)) {
        return rule_error(op, "C6", "result {} is {}, expected a multiple of {} in dimension {}", i,
                          op.result_type(i).to_string(), size, dimension);
      }
    }
    results.push_back(settle(op, i, with_dims(operand, dims)));
  }
  return results;
}

Types all_reduce(const Instruction& op) {
  TENON_TRY(check_operands(op, "I1"));
  TENON_TRY(check_groups(op, {"C1", "C3", "C4"}, true));
  return reduced(op, "C5", op.operand_count());
}

Types cross_replica_sum(const Instruction& op) {
  TENON_TRY(check_groups(op, {"", "", ""}, true));
  return one(settle(op, 0, op.operand_type(0)));
}

Types reduce_scatter(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const int64_t dimension = op.integer(AttrKey::scatter_dimension);
  TENON_TRY(check_dimension(op, "C2", "scatter_dimension", dimension, operand.rank()));
  TENON_TRY(check_groups(op, {"C3", "C5", "C6"}, false));
  TENON_ASSIGN(std::vector<Type> results, reduced(op, "C7", 1));
  std::vector<Dim> dims = dims_of(operand);
  Dim& dim = dims[at(dimension)];
  const int64_t size = dim.size;
  const std::optional<int64_t> group = group_size(op);
  const bool is_stated = op.result_count() == 1 && op.result_type().is_tensor() &&
                         op.result_type().rank() == operand.rank();
  dim = {};
  if (size != kDynamic && group) {
    if (size % *group != 0) {
      return rule_error(op, "C1", "dimension {} of {} is not a multiple of the group size {}",
                        dimension, operand.to_string(), *group);
    }
    dim.size = size / *group;
  } else if (is_stated) {
    dim = dim_of(op.result_type(), dimension);
    if (size != kDynamic && dim.size != kDynamic &&
        (dim.size == 0 ? size != 0 : size % dim.size != 0)) {
      return rule_error(op, "C8", "result is {}, expected a part of {} in dimension {}",
                        op.result_type().to_string(), operand.to_string(), dimension);
    }
  }
  return one(settle(op, 0, with_dims(results[0], dims)));
}

Types all_to_all(const Instruction& op) {
  TENON_TRY(check_operands(op, "I1"));
  const int64_t split = op.integer(AttrKey::split_dimension);
  const int64_t concat = op.integer(AttrKey::concat_dimension);
  const int64_t count = op.integer(AttrKey::split_count);
  if (count <= 0) {
    return rule_error(op, "C4", "split_count is {}, expected at least 1", count);
  }
  TENON_TRY(check_groups(op, {"C5", "C7", ""}, false));
  const auto* groups = op.attr<I64Matrix>(AttrKey::replica_groups);
  if (groups != nullptr && (groups->rows == 0 || groups->columns != count)) {
    return rule_error(op, "C8", "replica_groups has {} groups of {}, expected split_count {}",
                      groups->rows, groups->columns, count);
  }
  std::vector<Type> results;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Type& operand = op.operand_type(i);
    TENON_TRY(check_dimension(op, "C1", "split_dimension", split, operand.rank()));
    TENON_TRY(check_dimension(op, "C3", "concat_dimension", concat, operand.rank()));
    std::vector<Dim> dims = dims_of(operand);
    const int64_t size = dims[at(split)].size;
    if (size != kDynamic && size % count != 0) {
      return rule_error(op, "C2", "dimension {} of {} is not a multiple of split_count {}", split,
                        operand.to_string(), count);
    }
    if (split != concat) {
      dims[at(split)] = {size == kDynamic ? kDynamic : size / count, kDynamic};
      const int64_t part = dims[at(concat)].size;
      const auto total = part == kDynamic ? part : fits(static_cast<__int128>(part) * count);
      if (!total) return rule_error(op, "C9", "the size of dimension {} overflows", concat);
      dims[at(concat)] = {*total, kDynamic};
    }
    results.push_back(settle(op, i, with_dims(operand, dims)));
  }
  return results;
}

Types collective_broadcast(const Instruction& op) {
  TENON_TRY(check_groups(op, {"C1", "C2", ""}, false, false));
  TENON_ASSIGN(const size_t count, data_count(op, "C3", "C4"));
  std::vector<Type> results;
  for (size_t i = 0; i < count; ++i) {
    TENON_TRY(check_tensor(op, "I1", i));
    results.push_back(settle(op, i, op.operand_type(i)));
  }
  return results;
}

Types collective_reduce(const Instruction& op) {
  TENON_TRY(check_groups(op, {"C1", "C2", ""}, true));
  TENON_ASSIGN(const size_t count, data_count(op, "C3", "C3"));
  for (size_t i = 0; i < count; ++i) TENON_TRY(check_tensor(op, "I1", i));
  return reduced(op, "C4", count);
}

Types collective_permute(const Instruction& op) {
  TENON_TRY(check_pairs(op, {"C1", "C2", "C3", "C4"}));
  return one(settle(op, 0, op.operand_type(0)));
}

Types async_start(const Instruction& op) {
  const Computation& body = op.region(0);
  const Instruction* first = body.first();
  if (first == nullptr || first->next() == nullptr || first->next() != body.return_instruction()) {
    return rule_error(op, "C1", "body does not consist of one operation and a return");
  }
  switch (first->code()) {
    case OpCode::kAllReduce:
    case OpCode::kAllGather:
    case OpCode::kAllToAll:
    case OpCode::kCollectivePermute:
    case OpCode::kReduceScatter:
    case OpCode::kCollectiveBroadcast:
    case OpCode::kCollectiveReduce:
    case OpCode::kSlice:
    case OpCode::kDynamicSlice:
    case OpCode::kDynamicUpdateSlice:
      break;
    default:
      return rule_error(op, "C2", "body holds {}, expected a collective or a slice", first->name());
  }
  std::vector<Type> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
  TENON_TRY(check_parameters(op, 0, "C3", operands));
  // The body takes the operands as they are, so that their scales are those of its parameters.
  const std::vector<Type> parameters = body.parameter_types();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_tensor() || identical_element(operands[i], parameters[i])) continue;
    return rule_error(op, "C3", "operand {} is {}, the body takes {}", i, operands[i].to_string(),
                      parameters[i].to_string());
  }
  TENON_ASSIGN(std::vector<Type> results, region_results(op, 0, "C1"));
  return one(Type::future(std::move(results)));
}

Types async_done(const Instruction& op) {
  const Type& future = op.operand_type(0);
  if (future.kind() != TypeKind::kFuture) {
    return rule_error(op, "I1", "operand is {}, expected a future", future.to_string());
  }
  return future.elements();
}

}  // namespace tenon::hlo::infer
