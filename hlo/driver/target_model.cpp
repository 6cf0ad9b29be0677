#include "hlo/driver/target_model.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>

namespace tenon::hlo {
namespace {

// Leaves `features` the math functions that the target states, if `native_math` allows them or they
// have the bits of the shared expansions: an error of 0.
void keep_stated_math(const backend::TargetInfo& target, bool native_math,
                      kernel::TargetFeatures& features) {
  const auto has = [&](kernel::OpCode op, ElementType type) {
    return std::ranges::any_of(target.math, [&](const backend::MathInfo& math) {
      return (native_math || math.ulp == 0) && math.type == type &&
             math.function == kernel::op_name(op);
    });
  };
  bool any = false;
  for (int i = 0; i < kernel::kScalarOpCount; ++i) {
    const auto op = static_cast<kernel::OpCode>(i);
    if (!kernel::is_math(op)) continue;
    for (size_t t = 0; t < kElementTypeCount; ++t) {
      const auto type = static_cast<ElementType>(t);
      if (!is_float(type) || !features.has_math(op, type)) continue;
      if (has(op, type)) {
        any = true;
      } else {
        features.expanded.insert(op, type);
      }
    }
  }
  features.math = any;
}

}  // namespace

kernel::TargetFeatures features_of(const backend::TargetInfo& target, bool native_math) {
  kernel::TargetFeatures features = backend::features_of(target);
  keep_stated_math(target, native_math, features);
  return features;
}

lower::CostModel cost_model_of(const backend::TargetInfo& target) {
  lower::CostModel cost;
  if (target.launch_seconds > 0) cost.launch_seconds = target.launch_seconds;
  if (target.bytes_per_second > 0) cost.byte_seconds = 1 / target.bytes_per_second;
  if (target.flops > 0) cost.operation_seconds = 1 / target.flops;
  if (target.most_lanes > 0) cost.most_lanes = target.most_lanes;
  if (target.preferred_lanes > 1) cost.lanes = target.preferred_lanes;
  cost.lanes = std::min(cost.lanes, cost.most_lanes);
  cost.lane_private_bytes = target.private_bytes;
  cost.scans = target.features.scans;
  const bool has_tiles = target.accepts_all || target.features.tiles;
  cost.wide_tiles = has_tiles && target.vector_bytes >= cost.wide_register;
  cost.float_products = cost.wide_tiles && target.features.fma;
  cost.narrow_products = target.narrow_products;
  cost.byte_products = target.byte_products;
  // Such a unit loads a row as vectors; lanes of adjacent rows gather its elements one by one.
  if (cost.wide_tiles && target.preferred_lanes <= 1) {
    cost.shared_row = 8;
    cost.shared_row_and_more = 32;
    cost.short_columns = 128;
  }
  constexpr int64_t kVectorsInRow = 2;
  constexpr int64_t kMostVectorBytes = int64_t{1} << 31;
  if (cost.wide_tiles) {
    cost.panel_bytes = kVectorsInRow * std::min(target.vector_bytes, kMostVectorBytes);
  }
  // Buffers of a kernel are its inputs and results.
  if (target.most_parameters > 0) {
    cost.fused_inputs = std::clamp<int64_t>(target.most_parameters - 1, 2, cost.fused_inputs);
  }
  // A workgroup moves its share of the device's bandwidth.
  if (target.launch_seconds > 0 && target.bytes_per_second > 0) {
    constexpr double kBytesALeaf = 4;
    const double bytes = target.launch_seconds * target.bytes_per_second /
                         static_cast<double>(std::max<int64_t>(target.compute_units, 1));
    cost.long_reduction = static_cast<int64_t>(std::clamp(bytes / kBytesALeaf, 1024.0, 1e12));
  }
  if (target.preferred_lanes > 1) {
    constexpr int64_t kMost = int64_t{1} << 31;
    cost.busy_lanes =
        std::clamp<int64_t>(target.compute_units, 1, kMost) * std::min(cost.lanes, kMost);
    // A block of rows takes many times as long as the launches that make it.
    constexpr int64_t kBytesALane = 4096;
    cost.row_block_bytes = std::max(cost.row_block_bytes, cost.busy_lanes * kBytesALane);
    cost.lane_scan = 16;
    cost.workgroup_scan = 32;
  }
  // An attention that its schedule declines is no longer fused in other ways.
  constexpr int64_t kScratchOfAttention = 32 << 10;
  if (!target.features.fma || target.scratch_bytes < kScratchOfAttention) {
    cost.attention_scores = std::numeric_limits<int64_t>::max();
  }
  cost.few_results = std::clamp<int64_t>(target.compute_units / 2, cost.few_results, 1 << 20);
  constexpr int64_t kColumnsOfVector = 16;
  cost.few_columns = cost.short_columns > 0 ? kColumnsOfVector : cost.few_results;
  return cost;
}

std::vector<std::string> apply_tuning(const backend::TargetInfo& target,
                                      lower::TuningParameters& tuning) {
  std::map<std::string, int64_t> stated;
  std::vector<std::string> left_out;
  for (const backend::TuningValue& each : target.tuning) {
    const lower::TuningEntry entry(each.name, each.value);
    const Status status = lower::check(std::span(&entry, 1));
    if (status.ok()) {
      stated[each.name] = each.value;
    } else {
      left_out.push_back(fmt::format("tuning of device {}: {}", target.name, status.message()));
    }
  }
  for (const auto& [name, value] : stated) {
    if (!tuning.is_set(name)) tuning.set(name, value);
  }
  return left_out;
}

Status check_sizes(const runtime::CompiledProgram& compiled, const backend::TargetInfo& target) {
  if (target.largest_buffer == 0) return {};
  const auto check = [&](std::string_view what, int64_t bytes) {
    if (bytes <= target.largest_buffer) return Status();
    return Status(resource_exhausted("{} takes {} bytes, the largest buffer of {} has {}", what,
                                     bytes, target.name, target.largest_buffer));
  };
  const program::Program& program = compiled.program;
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.kind == program::BufferKind::kTemporary || buffer.view_of != program::kNone)
      continue;
    static constexpr std::string_view kKinds[] = {"argument", "result", "constant"};
    const std::string_view kind = kKinds[static_cast<size_t>(buffer.kind)];
    TENON_TRY(check(fmt::format("{} {}", kind, buffer.index), buffer.bytes()));
  }
  int64_t workspace = 0;
  for (const auto& [lowered, plan] : compiled.plans) {
    workspace = std::max(workspace, plan.workspace_bytes);
    for (const int64_t bytes : plan.packed_bytes) TENON_TRY(check("a packed constant", bytes));
  }
  return check("the block of temporaries", program.temporary_bytes + workspace);
}

}  // namespace tenon::hlo
