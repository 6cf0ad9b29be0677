#include "hlo/driver/target_model.h"

#include <algorithm>

namespace tenon::hlo {

lower::CostModel cost_model_of(const backend::TargetInfo& target) {
  lower::CostModel cost;
  if (target.launch_seconds > 0) cost.launch_seconds = target.launch_seconds;
  if (target.bytes_per_second > 0) cost.byte_seconds = 1 / target.bytes_per_second;
  if (target.flops > 0) cost.operation_seconds = 1 / target.flops;
  if (target.most_lanes > 0) cost.most_lanes = target.most_lanes;
  if (target.preferred_lanes > 1) cost.lanes = target.preferred_lanes;
  cost.lanes = std::min(cost.lanes, cost.most_lanes);
  if (target.private_bytes > 0) cost.private_bytes = target.private_bytes * cost.lanes;
  // Buffers of a kernel are inputs and results.
  if (target.most_parameters > 0) {
    cost.fused_inputs = std::clamp<int64_t>(target.most_parameters - 1, 2, cost.fused_inputs);
  }
  // A workgroup moves its share of the device's bytes.
  if (target.launch_seconds > 0 && target.bytes_per_second > 0) {
    constexpr double kBytesALeaf = 4;
    const double bytes = target.launch_seconds * target.bytes_per_second /
                         static_cast<double>(std::max<int64_t>(target.compute_units, 1));
    cost.long_reduction = std::max<int64_t>(static_cast<int64_t>(bytes / kBytesALeaf), 1024);
  }
  cost.few_results = std::max<int64_t>(cost.few_results, target.compute_units / 2);
  return cost;
}

Status apply_tuning(const backend::TargetInfo& target, lower::TuningParameters& tuning) {
  std::vector<lower::TuningEntry> entries;
  for (const backend::TuningValue& each : target.tuning) {
    entries.emplace_back(each.name, each.value);
  }
  Status status = lower::check(entries);
  if (!status.ok()) {
    return std::move(status).with_context(fmt::format("tuning of device {}", target.name));
  }
  for (const auto& [name, value] : entries) {
    if (!tuning.is_set(name)) tuning.set(name, value);
  }
  return {};
}

Status check_sizes(const program::Program& program, const backend::TargetInfo& target) {
  if (target.largest_buffer == 0) return {};
  const auto check = [&](std::string_view what, uint32_t index, int64_t bytes) {
    if (bytes <= target.largest_buffer) return Status();
    return Status(resource_exhausted("{} {} takes {} bytes, the largest buffer of {} has {}", what,
                                     index, bytes, target.name, target.largest_buffer));
  };
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.kind == program::BufferKind::kTemporary || buffer.view_of != program::kNone)
      continue;
    static constexpr std::string_view kKinds[] = {"argument", "result", "constant"};
    TENON_TRY(check(kKinds[static_cast<size_t>(buffer.kind)], buffer.index, buffer.bytes()));
  }
  return check("the block of temporaries", 0, program.temporary_bytes);
}

}  // namespace tenon::hlo
