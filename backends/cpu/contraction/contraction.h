// backends/cpu/contraction/: products of matrices on the CPU: tiles, packing, micro-kernels, and
// what is fused behind them.
//
// Contractions (dot_general) as one function: tiles of the result in registers, every number of the
// right operand loaded as a vector, every one of the left operand broadcast (micro_kernel.h).
//
// Loops are found from the strides: those over the left operand's free dimensions run along a
// tile's rows, those over the right operand's along its columns, which are vectors. A right operand
// whose columns do not lie side by side is packed into panels of a tile's width, in scratch memory,
// as is one that is large (packing.h). Narrow types are widened on the way; where their sums come
// about block by block, they are kept in scratch memory until the last one.
#pragma once

#include <llvm/IR/Module.h>

#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/codegen/emitter.h"
#include "core/program/library_call.h"

namespace tenon::cpu {

/// A loop of `extent` iterations, with its strides in the operands and the result, in elements.
struct ContractionLoop {
  int64_t extent = 1;
  int64_t lhs = 0;
  int64_t rhs = 0;
  int64_t result = 0;
};

/// A contraction as loops. The last of `rows`, `columns` and `sums` are the innermost; each list
/// has at least one loop.
struct ContractionLoops {
  ElementType lhs{}, rhs{}, result{};  ///< As they lie in memory.
  ElementType sum{};                   ///< The accumulator type.
  std::vector<ContractionLoop> batch;
  std::vector<ContractionLoop> rows;
  std::vector<ContractionLoop> columns;
  std::vector<ContractionLoop> sums;
  std::vector<int64_t> bytes;  ///< Sizes of the operands and the result.
};
/// Serialise the loops to text, and back: the plan of a library call.
std::string save(const ContractionLoops& loops);
Result<ContractionLoops> load_loops(std::string_view text);

/// The loops of a contraction. Nothing for empty operands, and for types without a sum_type().
std::optional<ContractionLoops> loops_of(const program::Contraction& call,
                                         std::span<const Shape> operands, const Shape& result);

/// The function of emitter.h with three buffers, and its number of workgroups.
struct ContractionFunction {
  CpuKernelFunction kernel;
  int64_t workgroups = 1;
  double flops_a_workgroup = 0;
};
ContractionFunction emit_contraction(llvm::Module& module, const ContractionLoops& loops,
                                     const std::string& name, int64_t vector_bytes);

}  // namespace tenon::cpu
