#include "backends/cpu/contraction/epilogue.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "backends/cpu/contraction/tiling.h"

namespace tenon::cpu {
namespace {

using kernel::Kernel;
using kernel::MemoryId;
using kernel::Node;
using program::BufferId;
using program::Program;
using program::Step;

int64_t product(Dims::const_iterator begin, Dims::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

// The possible numbers of leading dimensions that index the rows, of `row_bytes` each, of a memory:
// there are several if dimensions of size 1 lie between.
std::vector<size_t> row_dimensions(const kernel::Memory& memory, int64_t row_bytes) {
  std::vector<size_t> counts;
  if (!memory.strides.empty() || memory.packed) return counts;
  auto bytes = static_cast<int64_t>(storage_bytes(memory.type));
  for (size_t d = memory.dims.size(); bytes <= row_bytes; bytes *= memory.dims[--d]) {
    if (bytes == row_bytes) counts.push_back(d);
    if (d == 0) break;
  }
  return counts;
}

// Whether `node`, whose indices begin at operand `first`, accesses the row that the grid's first
// indices select.
bool is_of_own_row(const Kernel& kernel, const Node& node, size_t first, size_t dimensions) {
  const std::vector<kernel::ValueId>& grid = kernel.block(kernel.body).arguments;
  for (size_t d = 0; d < dimensions; ++d) {
    const kernel::ValueId index = node.operands[first + d];
    const bool zero = kernel.grid[d] == 1 && kernel.is_constant(index);
    if (index != grid[d] && !zero) return false;
  }
  return true;
}

bool touches_own_row(const Kernel& kernel, MemoryId memory, size_t dimensions) {
  const Dims& dims = kernel.memory(memory).dims;
  if (kernel.grid.size() < dimensions ||
      !std::equal(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(dimensions),
                  kernel.grid.begin())) {
    return false;
  }
  return std::ranges::all_of(kernel.nodes, [&](const Node& node) {
    if (std::ranges::find(node.memories, memory) == node.memories.end()) return true;
    const bool loads = node.op == kernel::OpCode::kLoad;
    if (!loads && node.op != kernel::OpCode::kStore) return false;
    return is_of_own_row(kernel, node, loads ? 0 : 1, dimensions);
  });
}

// The number of workgroups for a row of `memory`, if the kernel accesses it only row by row.
std::optional<int64_t> workgroups_a_row(const Kernel& kernel, MemoryId memory, int64_t row_bytes) {
  for (const size_t dimensions : row_dimensions(kernel.memory(memory), row_bytes)) {
    if (!touches_own_row(kernel, memory, dimensions)) continue;
    return product(kernel.grid.begin() + static_cast<std::ptrdiff_t>(dimensions),
                   kernel.grid.end());
  }
  return std::nullopt;
}

class EpilogueFinder {
 public:
  EpilogueFinder(const Program& program, const program::Sequence& sequence, size_t call,
                 const RowGroups& groups)
      : program_(program), sequence_(sequence), groups_(groups), members_({call}) {
    const auto& contraction = std::get<program::LibraryCallStep>(sequence.steps[call].action);
    read_ = contraction.operands;
    by_row_ = {program.root(contraction.results[0])};
    written_ = by_row_;
  }

  std::vector<EpilogueLaunch> run() {
    constexpr size_t kFar = 16;
    const size_t call = members_[0];
    const size_t end = std::min(sequence_.steps.size(), call + kFar);
    for (size_t s = call + 1; s < end; ++s) {
      const auto* launch = std::get_if<program::Launch>(&sequence_.steps[s].action);
      if (launch == nullptr || !may_come_now(sequence_.steps[s])) continue;
      if (const auto workgroups = joins(*launch)) {
        launches_.push_back({s, *workgroups});
        members_.push_back(s);
      }
    }
    return std::move(launches_);
  }

 private:
  // Whether every dependency of the step comes before the contraction or is in the epilogue.
  bool may_come_now(const Step& step) const {
    return std::ranges::all_of(step.depends, [&](uint32_t other) {
      return other < members_[0] || std::ranges::find(members_, other) != members_.end();
    });
  }

  // Adds `launch` to the epilogue and returns its workgroups per row. Condition: memory that both
  // access and either writes is the same buffer, and both access it row by row.
  std::optional<int64_t> joins(const program::Launch& launch) {
    const Kernel& kernel = program_.kernels[launch.kernel];
    std::optional<int64_t> workgroups;
    std::vector<BufferId> by_row;
    for (MemoryId m = 0; m < kernel.buffer_count; ++m) {
      const BufferId buffer = program_.root(launch.buffers[m]);
      const auto meets = [&](const std::vector<BufferId>& list) {
        return std::ranges::any_of(
            list, [&](BufferId other) { return program::overlap(program_, buffer, other); });
      };
      const bool writes = kernel.memory(m).access != kernel::Access::kIn;
      const auto rows = workgroups_a_row(kernel, m, groups_.row_bytes);
      if (writes && rows) by_row.push_back(buffer);
      if (writes && meets(read_)) return std::nullopt;
      if (!meets(written_)) continue;
      if (!rows || std::ranges::find(by_row_, buffer) == by_row_.end()) return std::nullopt;
      const bool alone = std::ranges::none_of(written_, [&](BufferId other) {
        return other != buffer && program::overlap(program_, buffer, other);
      });
      if (!alone || workgroups.value_or(*rows) != *rows) return std::nullopt;
      workgroups = rows;
    }
    const int64_t rows = groups_.turns * groups_.rows;
    if (!workgroups || *workgroups * rows != element_count(kernel.grid)) return std::nullopt;
    add(launch, by_row, *workgroups);
    return workgroups;
  }

  void add(const program::Launch& launch, const std::vector<BufferId>& by_row, int64_t workgroups) {
    const Kernel& kernel = program_.kernels[launch.kernel];
    for (MemoryId m = 0; m < kernel.buffer_count; ++m) {
      const BufferId buffer = program_.root(launch.buffers[m]);
      if (kernel.memory(m).access == kernel::Access::kIn) {
        // Buffers written by the epilogue are not listed: the kernel reads only its own row of
        // them.
        if (std::ranges::find(written_, buffer) == written_.end()) read_.push_back(buffer);
        continue;
      }
      written_.push_back(buffer);
      const bool rows = std::ranges::find(by_row, buffer) != by_row.end() &&
                        workgroups_a_row(kernel, m, groups_.row_bytes) == workgroups;
      if (rows) by_row_.push_back(buffer);
    }
  }

  const Program& program_;
  const program::Sequence& sequence_;
  const RowGroups& groups_;
  std::vector<size_t> members_;
  std::vector<EpilogueLaunch> launches_;
  // Buffers that the epilogue only reads, those that it writes, and the subset of those that it
  // writes row by row.
  std::vector<BufferId> read_, written_, by_row_;
};

}  // namespace

std::optional<RowGroups> row_groups_of(const ContractionLoops& loops, int64_t vector_bytes) {
  if (loops.columns.size() != 1) return std::nullopt;
  const Tiling tiling = tiling_of(loops, vector_bytes);
  RowGroups groups;
  for (const ContractionLoop& loop : loops.batch) groups.turns *= loop.extent;
  for (size_t i = 0; i + 1 < loops.rows.size(); ++i) groups.turns *= loops.rows[i].extent;
  const int64_t columns = loops.columns[0].extent;
  groups.rows = loops.rows.back().extent;
  groups.rows_a_group = tiling.rows_a_group;
  groups.workgroups_a_group = divided(columns, tiling.panels * tiling.columns());
  groups.row_bytes = columns * static_cast<int64_t>(storage_bytes(loops.result));
  return groups;
}

std::vector<EpilogueLaunch> epilogue_launches(const Program& program,
                                              const program::Sequence& sequence, size_t call,
                                              const RowGroups& groups) {
  return EpilogueFinder(program, sequence, call, groups).run();
}

}  // namespace tenon::cpu
