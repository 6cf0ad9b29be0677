// Epilogue fusion: if launches after a contraction process its result row by row (an activation, a
// softmax), they run on each group of rows as soon as it is computed, while it is in the cache.
#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/contraction/contraction.h"
#include "core/program/program.h"

namespace tenon::cpu {

/// The result of a contraction as groups of rows; the same number of consecutive workgroups
/// computes each group.
struct RowGroups {
  int64_t turns = 1;  ///< Iterations of the loops outside of the rows.
  int64_t rows = 1;   ///< Per iteration.
  int64_t rows_a_group = 1;
  int64_t workgroups_a_group = 1;
  int64_t row_bytes = 0;

  int64_t groups_a_turn() const { return (rows + rows_a_group - 1) / rows_a_group; }
  int64_t groups() const { return turns * groups_a_turn(); }
};
/// Nothing unless consecutive workgroups compute a row.
std::optional<RowGroups> row_groups_of(const ContractionLoops& loops, int64_t vector_bytes);

/// A step that launches a kernel. The workgroups for a row access that row of the contraction's
/// result, and no other row that the epilogue writes.
struct EpilogueLaunch {
  size_t step = 0;
  int64_t workgroups_a_row = 1;
};
/// The launches after step `call`, a contraction, that may run group by group with it.
std::vector<EpilogueLaunch> epilogue_launches(const program::Program& program,
                                              const program::Sequence& sequence, size_t call,
                                              const RowGroups& groups);

/// A launch of an epilogue: its function, the number of its buffers, and the scalars after them.
struct EpilogueKernel {
  llvm::Function* function = nullptr;
  size_t buffers = 0;
  std::vector<llvm::Constant*> scalars;
  int64_t workgroups_a_row = 1;
};
/// void (buffers …, i64 begin, i64 end, ptr scratch, ptr stops): groups [begin, end) of the rows.
/// The buffers are those of the contraction, then those of each part.
llvm::Function* make_fused_contraction(llvm::Module& module, const std::string& name,
                                       const RowGroups& rows, llvm::Function* contraction,
                                       const std::vector<EpilogueKernel>& parts);

}  // namespace tenon::cpu
