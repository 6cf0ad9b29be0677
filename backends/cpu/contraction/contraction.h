// backends/cpu/contraction/: products of matrices on the CPU: tiles, packing, micro-kernels, and
// what is fused behind them.
//
// Compiles a contraction (dot_general) to one function: tiles of the result in registers; elements
// of the right operand are loaded as vectors, and each element of the left operand is broadcast
// (micro_kernel.h).
//
// Loops are derived from the strides: those over the left operand's free dimensions run along a
// tile's rows, those over the right operand's along its columns, which are vectors. A right operand
// is packed into panels of a tile's width, in scratch memory, if its columns are not adjacent in
// memory or if it is large (packing.h). Narrow types are widened when loaded; if their sums are
// computed block by block, scratch memory keeps the sums until the last block.
#pragma once

#include <llvm/IR/Module.h>

#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/codegen/emitter.h"
#include "backends/llvm/host.h"
#include "core/program/library_call.h"

namespace tenon::cpu {

/// A loop of `extent` iterations, with its strides in the operands and the result, in elements.
struct ContractionLoop {
  int64_t extent = 1;
  int64_t lhs = 0;
  int64_t rhs = 0;
  int64_t result = 0;
};

/// Instructions that multiply groups of narrow numbers, which fill 32 bits, and add the products of
/// each group to a sum of 32 bits.
enum class MatrixUnit : uint8_t {
  kNone,        ///< Numbers are widened, and multiplied and added one by one.
  kTilesBf16,   ///< AMX: tiles of 16 x 32 by 32 x 16 numbers of bf16.
  kTilesBytes,  ///< AMX: of 16 x 64 by 64 x 16 integers of 8 bits.
  kDotsWords,   ///< AVX512-VNNI: vectors of pairs of 16-bit integers, which narrower ones become.
};
/// Whether it is AMX.
constexpr bool has_tiles(MatrixUnit unit) {
  return unit == MatrixUnit::kTilesBf16 || unit == MatrixUnit::kTilesBytes;
}

/// A contraction as loops. The last of `rows`, `columns` and `sums` are the innermost; each list
/// has at least one loop.
struct ContractionLoops {
  ElementType lhs{}, rhs{}, result{};  ///< The types in memory.
  ElementType sum{};                   ///< The accumulator type.
  std::vector<ContractionLoop> batch;
  std::vector<ContractionLoop> rows;
  std::vector<ContractionLoop> columns;
  std::vector<ContractionLoop> sums;
  /// If not 0, the right operand lies in panels of so many columns, which are adjacent, as tiles
  /// read them: `rhs` of the columns' loop is the distance of two panels divided by this.
  int64_t panel = 0;
  std::vector<int64_t> bytes;           ///< Sizes of the operands and the result.
  MatrixUnit unit = MatrixUnit::kNone;  ///< Adds the products.
  /// The processor multiplies two vectors of 64 bytes at a time, so that loads are what tiles save.
  bool multiplies_two = false;
};
/// Convert the loops to text, the plan of a library call, and back.
std::string save(const ContractionLoops& loops);
Result<ContractionLoops> load_loops(std::string_view text);

/// The loops of a contraction. Nothing for empty operands, and for types without a sum_type().
std::optional<ContractionLoops> loops_of(const program::Contraction& call,
                                         std::span<const Shape> operands, const Shape& result);

/// Rows and columns from which a MatrixUnit gains: fewer do not pay for packing.
inline constexpr int64_t kLeastMatrixLines = 8;
/// The instructions of a processor that add the products of such loops fastest.
MatrixUnit matrix_unit_of(const codegen::TargetCpu& cpu, const ContractionLoops& loops);

/// The function of emitter.h with three buffers, and its number of workgroups.
struct ContractionFunction {
  CpuKernelFunction kernel;
  int64_t workgroups = 1;
  double flops_a_workgroup = 0;
  /// Adjacent workgroups take less time in one call than in several.
  bool joins_workgroups = false;
};
ContractionFunction emit_contraction(llvm::Module& module, const ContractionLoops& loops,
                                     const std::string& name, int64_t vector_bytes);

}  // namespace tenon::cpu
