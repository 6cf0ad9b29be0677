#include "hlo/evaluator/processes/process_groups.h"

#include <numeric>

namespace tenon::hlo {
namespace {

using Rows = std::vector<I64s>;

int64_t id_count(GroupStrategy strategy, const GridExtent& extent) {
  switch (strategy) {
    case GroupStrategy::kCrossReplica:
    case GroupStrategy::kCrossReplicaAndPartition:
      return extent.replicas;
    case GroupStrategy::kCrossPartition:
      return extent.partitions;
    case GroupStrategy::kFlattenedIds:
      return extent.process_count();
  }
  return 0;
}

std::string_view id_word(GroupStrategy strategy) {
  switch (strategy) {
    case GroupStrategy::kCrossReplica:
    case GroupStrategy::kCrossReplicaAndPartition:
      return "replica";
    case GroupStrategy::kCrossPartition:
      return "partition";
    case GroupStrategy::kFlattenedIds:
      return "process";
  }
  return "";
}

Result<Rows> rows_of(GroupStrategy strategy, const I64Matrix& ids, const GridExtent& extent,
                     std::string_view attribute) {
  const int64_t count = id_count(strategy, extent);
  Rows rows;
  for (int64_t r = 0; r < ids.rows; ++r) {
    I64s row;
    for (int64_t c = 0; c < ids.columns; ++c) {
      const int64_t id = ids.at(r, c);
      if (id == -1) continue;
      if (id < 0 || id >= count) {
        return invalid_argument("{} names {} {}, expected one in [0, {}) on a grid of {} x {}",
                                attribute, id_word(strategy), id, count, extent.replicas,
                                extent.partitions);
      }
      row.push_back(id);
    }
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ProcessGroup> groups_of(GroupStrategy strategy, const Rows& rows,
                                    const GridExtent& extent) {
  std::vector<ProcessGroup> groups;
  for (const I64s& row : rows) {
    switch (strategy) {
      case GroupStrategy::kCrossReplica:
        for (int64_t partition = 0; partition < extent.partitions; ++partition) {
          ProcessGroup& group = groups.emplace_back();
          for (const int64_t replica : row) group.push_back({replica, partition});
        }
        break;
      case GroupStrategy::kCrossPartition:
        for (int64_t replica = 0; replica < extent.replicas; ++replica) {
          ProcessGroup& group = groups.emplace_back();
          for (const int64_t partition : row) group.push_back({replica, partition});
        }
        break;
      case GroupStrategy::kCrossReplicaAndPartition: {
        ProcessGroup& group = groups.emplace_back();
        for (int64_t partition = 0; partition < extent.partitions; ++partition) {
          for (const int64_t replica : row) group.push_back({replica, partition});
        }
        break;
      }
      case GroupStrategy::kFlattenedIds: {
        ProcessGroup& group = groups.emplace_back();
        for (const int64_t id : row) {
          group.push_back({id / extent.partitions, id % extent.partitions});
        }
        break;
      }
    }
  }
  return groups;
}

}  // namespace

std::string to_string(ProcessId id) { return fmt::format("({}, {})", id.replica, id.partition); }

Result<std::vector<ProcessGroup>> process_groups(GroupStrategy strategy, const I64Matrix& ids,
                                                 const GridExtent& extent) {
  TENON_ASSIGN(Rows rows, rows_of(strategy, ids, extent, "replica_groups"));
  if (ids.values.empty()) {
    I64s all(static_cast<size_t>(id_count(strategy, extent)));
    std::iota(all.begin(), all.end(), 0);
    rows.push_back(std::move(all));
  }
  return groups_of(strategy, rows, extent);
}

Result<std::vector<ProcessGroup>> process_pairs(GroupStrategy strategy, const I64Matrix& pairs,
                                                const GridExtent& extent) {
  if (!pairs.values.empty() && pairs.columns != 2) {
    return invalid_argument("source_target_pairs has {} columns, expected 2", pairs.columns);
  }
  TENON_ASSIGN(const Rows rows, rows_of(strategy, pairs, extent, "source_target_pairs"));
  for (const I64s& row : rows) {
    if (row.size() != 2) return invalid_argument("source_target_pairs contains -1");
  }
  return groups_of(strategy, rows, extent);
}

}  // namespace tenon::hlo
