// The sizes of a product's tiles.
#pragma once

#include "hlo/lower/schedules/products/tiled_product.h"

namespace tenon::hlo::lower {

struct ProductTiles {
  int64_t lanes_m, lanes_n;  ///< Lanes of a workgroup.
  int64_t each_m, each_n;    ///< Results per lane.
  int64_t k;
  int64_t parts = 1;  ///< Workgroups that share the depth.

  int64_t m() const { return lanes_m * each_m; }
  int64_t n() const { return lanes_n * each_n; }
};

/// Whether a register holds several results.
bool is_wide(const LowerLimits& limits);
/// Whether both the input and the results have neighbouring m closest, and tiles are native: sums
/// are then [n, m], so that nothing is transposed. Factor 1, [k, n], is the left factor of
/// `contract`.
bool has_transposed_sums(const TiledProduct& product, const LowerLimits& limits);
/// Rows of a tile in scratch: those of transposed sums, columns of registers, fill two registers
/// abreast, or one if there are few.
int64_t rows_in_scratch(const TiledProduct& product, const ProductTiles& tiles,
                        const LowerLimits& limits);

/// Chooses numbers of lanes and results for the sizes. If a register holds several numbers, a lane
/// computes several results, because a lane is then an iteration of a loop. `sum` is the type of
/// the sums.
ProductTiles choose_tiles(TuningParameters& tuning, const TiledProduct& product, ElementType sum,
                          const LowerLimits& limits);

}  // namespace tenon::hlo::lower
