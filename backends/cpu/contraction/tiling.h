// How the loops of a contraction are divided into workgroups, blocks, panels and tiles.
#pragma once

#include "backends/cpu/contraction/contraction.h"

namespace tenon::cpu {

struct Tiling {
  int64_t width = 1;         ///< Lanes of a vector.
  int64_t vectors = 1;       ///< Vectors in a row of a tile.
  int64_t rows = 1;          ///< Rows of a tile.
  int64_t rows_a_group = 1;  ///< Rows of a workgroup.
  int64_t panels = 1;        ///< Panels of a workgroup, each as wide as a tile.
  int64_t sums_a_block = 1;
  /// Every result is a sum over adjacent elements of both operands, one of which has few lines:
  /// tiles are of dot products, with `dots` columns.
  bool is_dots = false;
  int64_t dots = 1;
  bool packs_rhs = false;
  bool packs_lhs = false;
  int64_t tiles_packed = 1;  ///< Tiles of rows of the left operand that are packed together.
  bool keeps_sums = false;   ///< In scratch memory: the result is narrower, or has no whole tiles.
  bool streams = false;  ///< Lines of the right operand are read along far memory, side by side.
  /// Such lines are read faster the longer they are: a thread computes its adjacent workgroups, of
  /// one panel each, as one.
  bool joins = false;

  int64_t columns() const { return width * vectors; }
};

Tiling tiling_of(const ContractionLoops& loops, int64_t vector_bytes);

/// Lines of a tile of MatrixUnit, of 64 bytes each: rows or columns, each with 16 groups of
/// products.
inline constexpr int64_t kMatrixLines = 16;
inline constexpr int64_t kMatrixLineBytes = 64;
/// Numbers of a group, which fill 32 bits.
constexpr int64_t matrix_group(MatrixUnit unit) { return unit == MatrixUnit::kTilesBytes ? 4 : 2; }

inline int64_t divided(int64_t x, int64_t y) { return (x + y - 1) / y; }

}  // namespace tenon::cpu
