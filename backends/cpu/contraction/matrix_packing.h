// Copies parts of a contraction's operands into tiles of MatrixUnit: 16 lines (rows of the left
// operand, columns of the right one) with 64 bytes of products of each.
//
// A tile of the left operand has one line after the other. A tile of the right operand has the
// first group of each line, then the second one of each, and so on. Products behind the last one
// are zeros; lines behind the last one have any value.
#pragma once

#include "backends/cpu/codegen/elements.h"
#include "backends/cpu/contraction/tiling.h"
#include "backends/llvm/loops.h"

namespace tenon::cpu {

inline constexpr int64_t kMatrixTileBytes = 1024;

/// An operand as lines of products. Strides are in elements; one of them is 1.
struct MatrixLines {
  ElementType type{};
  int64_t lines = 0;     ///< All lines.
  int64_t products = 0;  ///< All products of a line.
  int64_t line = 0;      ///< From one line to the next.
  int64_t product = 0;   ///< From one product to the next.
};

/// Whether an operand with such strides can be packed.
inline bool has_matrix_lines(int64_t line, int64_t product) { return line == 1 || product == 1; }

/// Where tiles are packed, in bytes: so many tiles of lines side by side, panels of those, and
/// tiles of the next products.
struct MatrixTilePlaces {
  int64_t side_by_side = 1;
  int64_t panel_step = 0;
  int64_t product_step = 0;
};

class MatrixPacking {
 public:
  MatrixPacking(llvm::IRBuilderBase& builder, const MatrixLines& lines, MatrixUnit unit,
                bool by_groups, const MatrixTilePlaces& places);

  /// Packs `count` products of each of `used` lines from `from` on.
  void tiles(llvm::Value* to, llvm::Value* from, llvm::Value* used, llvm::Value* count) const;

 private:
  using Body = std::function<void(llvm::Value* at, llvm::Value* left)>;
  void each(llvm::Value* end, int64_t step, int64_t total, const Body& body) const;
  void copy_lines(llvm::Value* to, llvm::Value* from, llvm::Value* used, llvm::Value* count) const;
  void copy_groups(llvm::Value* to, llvm::Value* from, llvm::Value* used, llvm::Value* count) const;
  void transpose_tiles(llvm::Value* to, llvm::Value* from, llvm::Value* used,
                       llvm::Value* count) const;
  // The parts of a tile that exist: null means all.
  struct TilePart {
    llvm::Value* lines = nullptr;
    llvm::Value* products = nullptr;
  };
  codegen::LlvmValues vectors_of_lines(llvm::Value* from, const TilePart& part) const;
  codegen::LlvmValues vectors_of_groups(llvm::Value* from, const TilePart& part) const;
  codegen::LlvmValues interleaved(llvm::Value* from, int64_t lines, const TilePart& part) const;

  int64_t products() const { return kMatrixLines * group_; }  // Of a tile.
  llvm::Value* source(llvm::Value* from, llvm::Value* line, llvm::Value* k) const;
  llvm::Value* tile_at(llvm::Value* to, llvm::Value* line, llvm::Value* k) const;
  void store(llvm::Value* vector, llvm::Value* tile, llvm::Value* index) const;

  llvm::IRBuilderBase& b_;
  const MatrixLines l_;
  const int64_t group_;  // Numbers of 32 bits.
  const bool by_groups_;
  const MatrixTilePlaces places_;
  const Elements elements_;
};

}  // namespace tenon::cpu
