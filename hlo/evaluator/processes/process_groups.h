// Process groups: how a collective op splits the process grid (StableHLO specification, "Collective
// ops"). Pure functions of an attribute and the size of the grid.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "hlo/types/attribute.h"

namespace tenon::hlo {

/// The position of a process in the grid.
struct ProcessId {
  int64_t replica = 0;
  int64_t partition = 0;
  auto operator<=>(const ProcessId&) const = default;
};
/// "(0, 1)": replica, partition.
std::string to_string(ProcessId id);

/// Processes that compute together, in the order in which their values are combined.
using ProcessGroup = std::vector<ProcessId>;

struct GridExtent {
  int64_t replicas = 1;
  int64_t partitions = 1;
  int64_t process_count() const { return replicas * partitions; }
  bool operator==(const GridExtent&) const = default;
};

enum class GroupStrategy : uint8_t {
  kCrossReplica,              ///< Rows of replica ids, one group per partition.
  kCrossPartition,            ///< Rows of partition ids, one group per replica.
  kCrossReplicaAndPartition,  ///< Rows of replica ids; all their partitions in one group.
  kFlattenedIds,              ///< Rows of replica * partitions + partition.
};

/// The groups for the rows of `ids`, in the order of the specification. Short rows are padded with
/// -1; a matrix without elements is one row of all ids. An id outside the grid is an error.
Result<std::vector<ProcessGroup>> process_groups(GroupStrategy strategy, const I64Matrix& ids,
                                                 const GridExtent& extent);

/// One group of two for each row (source, target); no groups without rows.
Result<std::vector<ProcessGroup>> process_pairs(GroupStrategy strategy, const I64Matrix& pairs,
                                                const GridExtent& extent);

}  // namespace tenon::hlo
