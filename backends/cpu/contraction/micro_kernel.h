// The innermost part of contractions: a tile of sums in registers, to which products are added.
//
// Elements of `b` are loaded as vectors along the tile's columns; each element of `a` is broadcast.
#pragma once

#include "backends/cpu/codegen/elements.h"

namespace tenon::cpu {

/// A tile of `rows` · (`vectors` · `width`) sums. Strides are in elements; the columns of b and c
/// are adjacent in memory.
struct MicroTile {
  int64_t rows = 1;
  int64_t vectors = 1;
  int64_t width = 1;  ///< Lanes of a vector.
  int64_t a_row = 0;  ///< From one row of the tile to the next.
  int64_t a_sum = 0;  ///< From one product to the next.
  int64_t b_sum = 0;
  int64_t c_row = 0;
  /// b is in a cache, or the next tile reads on behind what this one reads of its lines.
  bool along_memory = false;
  int64_t ahead = 0;           ///< Bytes that are fetched ahead with each product.
  bool ahead_is_next = false;  ///< They are soon read: into the nearest cache.
};

/// Elements of the left factor, the right factor and the sums.
struct TileElements {
  Elements a, b, c;
};

/// c (+)= a · b over `count` products. `adds`: an i1, whether the products are added to the values
/// in c; null means no. `masks`: the masks of the columns' vectors if some are incomplete, else
/// empty; with `reads_all`, b may be read as if all vectors were complete. `ahead`: what is fetched
/// meanwhile, unless lines of b lie far apart and are fetched themselves; null: nothing.
void emit_micro_kernel(llvm::IRBuilderBase& builder, const MicroTile& tile,
                       const TileElements& elements, llvm::Value* a, llvm::Value* b, llvm::Value* c,
                       llvm::Value* count, llvm::Value* adds,
                       const std::vector<llvm::Value*>& masks = {}, bool reads_all = false,
                       llvm::Value* ahead = nullptr);

}  // namespace tenon::cpu
