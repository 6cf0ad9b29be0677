#include "hlo/lower/schedules/products/product_tiles.h"

#include <algorithm>
#include <bit>

#include "hlo/lower/elements/contraction.h"

namespace tenon::hlo::lower {
namespace {

enum ParameterIndex : uint8_t { kLanesM, kLanesN, kEachM, kEachN, kTileK, kSplitK };

constexpr int64_t kWidest = 64;        // bytes of a register, of which there are 32 then
constexpr double kPartsOfLines = 1.5;  // times as long as tiles of whole lines take

int64_t padded_rows(int64_t rows, int64_t vector) {
  return rows <= vector ? vector : tiles_of(rows, 2 * vector) * 2 * vector;
}

// As many as it takes to fill the device with tiles, if that saves more than a launch takes.
int64_t preferred_parts(const TiledProduct& product, const ProductTiles& tiles, int64_t turns,
                        const CostModel& cost) {
  if (cost.busy_lanes < cost.many_lanes || turns < cost.split_turns) return 1;
  const int64_t units = cost.busy_lanes / cost.lanes;
  const int64_t groups = element_count(product.batch) * tiles_of(product.m, tiles.m()) *
                         tiles_of(product.n, tiles.n());
  const int64_t each = cost.split_turns / 4;
  return std::clamp<int64_t>(units / std::max<int64_t>(groups, 1), 1, turns / each);
}

// Tiles of registers for the sizes, with few rows and columns beyond the end.
ProductTiles native_tiles(const TiledProduct& product, int64_t vector, int64_t vector_bytes) {
  constexpr int64_t kMostVectors = 8;  // in a row of a tile
  constexpr int64_t kMostRows = 64;
  constexpr int64_t kNarrowest = 4;
  constexpr double kRowsOfOverhead = 10;  // that a tile takes longer
  const int64_t m = product.m, n = product.n;
  ProductTiles tiles = {};
  const int64_t vectors = tiles_of(n, vector);
  const int64_t in_row = tiles_of(vectors, tiles_of(vectors, kMostVectors));
  const auto narrow =
      std::max<int64_t>(kNarrowest, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))));
  tiles.each_n = in_row % 2 == 0 ? 2 * vector : std::min(vector, narrow);
  tiles.lanes_n = in_row % 2 == 0 ? in_row / 2 : in_row;
  // Rows of sums that registers hold: of 32 wide ones, or 16 narrower ones, four are for factors.
  const int64_t most = (vector_bytes >= kWidest ? 28 : 12) / (in_row % 2 == 0 ? 2 : 1);
  double least = 0;
  for (int64_t rows = 1; rows <= std::min(m, kMostRows); ++rows) {
    int64_t each = std::min(rows, most);
    while (rows % each != 0) --each;
    const auto count = static_cast<double>(tiles_of(m, rows));
    // Register tiles are about as large as registers hold.
    double time = count * (static_cast<double>(rows + 2 * tiles_of(rows, most)) + kRowsOfOverhead);
    if (rows % product.line() != 0 && !product.is_along_k(0)) time *= kPartsOfLines;
    if (rows > 1 && time >= least) continue;
    least = time;
    tiles.each_m = each;
    tiles.lanes_m = rows / each;
  }
  return tiles;
}

// The same for transposed sums, where columns are rows of a register tile. The tile of factor 0 and
// the sums take half of the scratch memory at most.
ProductTiles tiles_of_transposed_sums(const TiledProduct& product, int64_t vector,
                                      const LowerLimits& limits) {
  constexpr int64_t kMostRows = 128, kMostColumns = 64;
  constexpr double kRowsOfOverhead = 8;  // that a tile takes longer
  ProductTiles tiles = {};
  double least = 0;
  // Each takes two registers of sums.
  const int64_t most = limits.vector_bytes >= kWidest ? 12 : 4;
  for (int64_t each = 1; each <= std::min(most, product.n); ++each) {
    const double time = static_cast<double>(tiles_of(product.n, each) * each) *
                        (1 + 2.0 / static_cast<double>(each));
    if (each > 1 && time > least) continue;
    least = time;
    tiles.each_n = each;
  }
  const int64_t panels = tiles_of(product.n, tiles.each_n);
  tiles.lanes_n = tiles_of(panels, tiles_of(panels, kMostColumns / tiles.each_n));
  const int64_t lines = std::min(product.k, kDeepestTile) + tiles.n();
  for (int64_t rows = 1; rows <= std::min(product.m, kMostRows); ++rows) {
    const int64_t bytes = padded_rows(rows, vector) * lines * (limits.vector_bytes / vector);
    if (rows > 1 && bytes > limits.scratch_bytes / 2) break;
    const auto count = static_cast<double>(tiles_of(product.m, rows));
    double time = count * (static_cast<double>(padded_rows(rows, vector)) + kRowsOfOverhead);
    if (rows % product.line() != 0) time *= kPartsOfLines;
    if (rows > 1 && time >= least) continue;
    least = time;
    tiles.each_m = std::min<int64_t>(vector, rows);
    while (rows % tiles.each_m != 0) --tiles.each_m;
    tiles.lanes_m = rows / tiles.each_m;
  }
  return tiles;
}

}  // namespace

bool has_native_tiles(const LowerLimits& limits) { return is_wide(limits) && limits.tiles; }

bool is_wide(const LowerLimits& limits) { return limits.vector_bytes >= limits.cost.wide_register; }

bool has_transposed_sums(const TiledProduct& product, const LowerLimits& limits) {
  return has_native_tiles(limits) && !product.is_along_k(0) && product.is_result_along_m();
}

int64_t rows_in_scratch(const TiledProduct& product, const ProductTiles& tiles,
                        const LowerLimits& limits) {
  if (!has_transposed_sums(product, limits)) return tiles.m();
  return padded_rows(tiles.m(), limits.vector_bytes /
                                    static_cast<int64_t>(storage_bytes(accumulator(product.op))));
}

ProductTiles choose_tiles(TuningParameters& tuning, const TiledProduct& product, ElementType sum,
                          const LowerLimits& limits) {
  const auto most = [](int64_t size, int64_t preferred) {
    while (preferred > 1 && preferred / 2 >= size) preferred /= 2;
    return preferred;
  };
  const bool wide = is_wide(limits);
  const int64_t vector = limits.vector_bytes / static_cast<int64_t>(storage_bytes(sum));
  const int64_t m = product.m;
  const int64_t n = product.n;
  const int64_t k = product.k;
  const int64_t rows = wide ? most(m, std::max<int64_t>(4, vector / 2)) : 0;
  const int64_t columns = wide ? most(n, 2 * vector) : 0;
  ProductTiles tiles = {};
  const auto choose = [&](ParameterIndex parameter, int64_t preferred) {
    return tuning.choose(kProductParameters[parameter], preferred);
  };
  const bool native = has_native_tiles(limits);
  const ProductTiles best = has_transposed_sums(product, limits)
                                ? tiles_of_transposed_sums(product, vector, limits)
                            : native ? native_tiles(product, vector, limits.vector_bytes)
                                     : ProductTiles{};
  tiles.lanes_m = choose(kLanesM, native ? best.lanes_m
                                  : wide ? most(tiles_of(m, rows), 8)
                                         : most(m, 16));
  tiles.lanes_n = choose(kLanesN, native ? best.lanes_n
                                  : wide ? most(tiles_of(n, columns), 4)
                                         : most(n, 16));
  tiles.each_m = choose(kEachM, native ? best.each_m
                                : wide ? rows
                                       : most(tiles_of(m, tiles.lanes_m), 4));
  tiles.each_n = choose(kEachN, native ? best.each_n
                                : wide ? columns
                                       : most(tiles_of(n, tiles.lanes_n), 4));
  // Reduces the larger side to the target's bound.
  while (tiles.lanes_m * tiles.lanes_n > limits.cost.most_lanes) {
    int64_t& side = tiles.lanes_m > tiles.lanes_n ? tiles.lanes_m : tiles.lanes_n;
    side = (side + 1) / 2;
  }
  constexpr int64_t kDeep = 128;
  const int64_t whole = k <= kDeepestTile ? k : tiles_of(k, tiles_of(k, kDeep));
  tiles.k = choose(kTileK, native ? whole : most(k, wide ? kDeep : 16));
  const int64_t turns = element_count(product.outer) * tiles_of(k, tiles.k);
  tiles.parts =
      std::min(choose(kSplitK, preferred_parts(product, tiles, turns, limits.cost)), turns);
  tiles.parts = tiles_of(turns, tiles_of(turns, tiles.parts));  // None is empty.
  return tiles;
}

}  // namespace tenon::hlo::lower
