#include "backends/cpu/contraction/tiling.h"

#include <algorithm>
#include <bit>

namespace tenon::cpu {
namespace {

constexpr int64_t kSumsABlock = 512;  // in a packed panel
constexpr int64_t kPanelsABlock = 6;  // that share a packed row tile
// The same where tiles of rows are packed together: more panels share what that takes.
constexpr int64_t kSumsTogether = 256;
constexpr int64_t kPanelsTogether = 16;
constexpr int64_t kRowsAWorkgroup = 144;
constexpr int64_t kSumsOfFewRows = 64;
// Lines of a large right operand that are read side by side, so that each is read along memory, and
// the panels that they reach across.
constexpr int64_t kLinesAbreast = 8;
constexpr int64_t kPanelsAbreast = 16;
constexpr int64_t kFarFrom = 1 << 20;  // bytes of an operand that is not in a cache
constexpr int64_t kPageBytes = 4096;
// The distance of lines that share a set of the nearest cache: of 32 KB in 8 ways, 48 KB in 12.
constexpr int64_t kWayBytes = 4096;
// Tiles of adjacent rows that are packed together, so that lines of the cache are read whole.
constexpr int64_t kTilesPacked = 8;
constexpr int64_t kDotsABlock = 512;       // products of each line, which stay in a cache
constexpr int64_t kLeastOfManyDots = 256;  // products of each sum, with more than kFewDots columns
constexpr int64_t kMostDotsOfFast = 16;    // where products are so fast that packing pays sooner
constexpr int64_t kFewDots = 8;            // columns, or rows; more fill vectors
constexpr int64_t kLeastOfDots = 16;       // products of each sum, with several columns

// Limits by the number of vector registers: a tile in 16 of them has fewer rows, so that the right
// operand is read more often.
struct TileLimits {
  int64_t registers = 0;
  int64_t few_rows = 0;   ///< For which packing takes longer than it saves.
  int64_t most_dots = 0;  ///< Rows or columns of dot products, of many products each.
  /// Rows up to which products of an operand that is in memory wait for it: more keep a thread busy
  /// enough.
  int64_t bound_by_memory = 0;
  /// Bytes of an operand from which its lines are read one after the other: it is in no cache, and
  /// the processor follows one stream better than several that share no page.
  int64_t in_memory = 0;
  /// Bytes of an operand from which its lines, which lie apart, drive one another out of a near
  /// cache: of the right one, and of the left one with a line for each row, or for each product.
  int64_t packs_rhs_from = 0;
  int64_t packs_lhs_from = 0;
  int64_t packs_across_from = 0;
  /// Bytes between lines of the right operand that share sets of the nearest cache, which holds
  /// fewer of them; 0: not looked at.
  int64_t crowded = 0;
};
// A near cache holds the few lines of a small tile's rows at any distance; the rows of a large tile
// fill a line. Machines with short vectors, or none, compute too slowly to wait for a cache.
constexpr int64_t kNever = INT64_MAX;
TileLimits limits_of(int64_t vector_bytes) {
  TileLimits limits = {.registers = 16,
                       .few_rows = 12,
                       .most_dots = 8,
                       .bound_by_memory = 3,
                       .in_memory = 1 << 23,
                       .packs_rhs_from = 1 << 18,
                       .packs_lhs_from = 1 << 18,
                       .packs_across_from = kNever};
  if (vector_bytes >= 64) {
    limits.registers = 32;
    limits.few_rows = limits.most_dots = 48;
  } else if (vector_bytes >= 32) {
    limits.bound_by_memory = 6;
    limits.in_memory = kNever;
    limits.packs_rhs_from = 1 << 15;
    limits.packs_lhs_from = kNever;
    limits.packs_across_from = 1 << 16;
    limits.crowded = kWayBytes;
  }
  return limits;
}

// Whether there are so few rows, or columns, that tiles of dot products are of all of them, or need
// no packing.
bool has_few(const ContractionLoops& loops, const std::vector<ContractionLoop>& list,
             const TileLimits& limits) {
  const int64_t extent = list.back().extent;
  const int64_t sums = loops.sums[0].extent;
  return list.size() == 1 && (extent == 1 || (extent <= kFewDots && sums >= kLeastOfDots) ||
                              (extent <= limits.most_dots && sums >= kLeastOfManyDots));
}

// The size of parts of `count` rows or columns, all of them about as large.
int64_t even_part(int64_t count) {
  constexpr int64_t kLargest = 4;
  return divided(count, divided(count, kLargest));
}

Tiling of_dot_products(const ContractionLoops& loops, int64_t lanes, const TileLimits& limits) {
  const int64_t rows = loops.rows.back().extent;
  const int64_t columns = loops.columns.back().extent;
  const int64_t sums = loops.sums[0].extent;
  const int64_t abreast = limits.registers / 2;  // sums of a tile
  Tiling t;
  t.is_dots = true;
  t.width = std::min(lanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(sums))));
  const auto is_one_stream = [&](ElementType type, int64_t lines) {
    const auto line = sums * static_cast<int64_t>(storage_bytes(type));
    return line < kPageBytes && lines * line > limits.in_memory;
  };
  if (has_few(loops, loops.columns, limits)) {
    t.dots = even_part(columns);
    t.rows = columns <= 2 && is_one_stream(loops.lhs, rows)
                 ? 1
                 : std::clamp<int64_t>(abreast / t.dots, 1, 8);
    t.rows = std::min(rows, t.rows);
    t.vectors = divided(columns, t.width);
  } else {
    const auto most = static_cast<uint64_t>(std::clamp<int64_t>(abreast / even_part(rows), 1, 8));
    t.rows = even_part(rows);
    t.dots = rows <= 2 && is_one_stream(loops.rhs, columns)
                 ? 1
                 : static_cast<int64_t>(std::bit_floor(most));
    t.panels = divided(std::min(columns, kRowsAWorkgroup), t.width);
  }
  t.rows_a_group = divided(std::min<int64_t>(rows, kRowsAWorkgroup), t.rows) * t.rows;
  // Lines that meet several others, in turn.
  const bool meets_several = t.rows < rows && t.dots < columns;
  t.sums_a_block = meets_several && loops.result == loops.sum ? std::min(sums, kDotsABlock) : sums;
  return t;
}

// Turns of the loops around the innermost ones.
int64_t outer_turns(const ContractionLoops& loops) {
  int64_t turns = 1;
  for (const std::vector<ContractionLoop>* list : {&loops.batch, &loops.rows, &loops.columns}) {
    for (const ContractionLoop& each : *list) {
      const bool is_inner = list != &loops.batch && &each == &list->back();
      if (!is_inner) turns *= each.extent;
    }
  }
  return turns;
}

int64_t most_panels(const Tiling& t) {
  if (t.streams) return kPanelsAbreast;
  return t.tiles_packed > 1 ? kPanelsTogether : kPanelsABlock;
}

// At most `most_panels`, all workgroups about as many; fewer if there are few workgroups for the
// work. (Rows that are packed are packed again for each group of columns.)
int64_t panels_of(const ContractionLoops& loops, const Tiling& t) {
  constexpr double kWorthSeveral = 1 << 21;  // products
  constexpr int64_t kWorkgroups = 4;
  const int64_t rows = loops.rows.back().extent, columns = loops.columns.back().extent;
  const int64_t panels = divided(columns, t.columns());
  const int64_t outer = outer_turns(loops);
  const int64_t others = divided(rows, t.rows_a_group) * outer;
  double products = static_cast<double>(loops.sums[0].extent);
  for (const int64_t turns : {outer, rows, columns}) products *= static_cast<double>(turns);
  int64_t groups = divided(panels, most_panels(t));
  const bool may_repack = !t.packs_lhs || t.tiles_packed > 1;  // which takes little
  if (may_repack && products >= kWorthSeveral) {
    groups = std::max(groups, std::min(panels, divided(kWorkgroups, others)));
  }
  return divided(panels, groups);
}

// Vectors of columns side by side, of `all`: of three, each product takes fewer loads, which pays
// where registers are many and multiplied two at a time, unless the last ones are one.
int64_t vectors_abreast(const ContractionLoops& loops, int64_t all) {
  constexpr int64_t kMany = 10;
  constexpr int64_t kRowsOfTwo = 14;  // are one tile of two vectors, which reads far memory once
  return loops.multiplies_two && loops.panel == 0 && loops.rows.back().extent > kRowsOfTwo &&
                 (all % 3 != 1 || all >= kMany)
             ? 3
             : 2;
}

// As many rows as there are registers for. Fewer that divide all rows without a rest take as long,
// if their sums are enough to hide the latency of fma, and need the code of one size of tile alone.
int64_t rows_of_tile(int64_t extent, int64_t vectors, int64_t most, int64_t few) {
  constexpr int64_t kLeastSums = 16;
  // Each tile of few rows reads the right operand in place: there are as few as possible.
  const int64_t least = extent <= few ? most : 1;
  for (int64_t rows = most; rows >= least && rows * vectors >= kLeastSums; --rows) {
    if (extent % rows == 0) return rows;
  }
  return divided(extent, divided(extent, most));
}

// Each group of rows packs the right operand again: if it is packed, there are only as many groups
// as several threads want.
int64_t rows_of_group(const ContractionLoops& loops, const Tiling& t) {
  constexpr int64_t kMostRows = 512;
  constexpr int64_t kLeastGroups = 4, kWorkgroups = 16;
  const int64_t rows = loops.rows.back().extent;
  int64_t groups = divided(rows, kRowsAWorkgroup);
  if (t.packs_rhs) {
    const int64_t others =
        divided(loops.columns.back().extent, most_panels(t) * t.columns()) * outer_turns(loops);
    const int64_t wanted = std::max(kLeastGroups, divided(kWorkgroups, others));
    groups = std::max(divided(rows, kMostRows), std::min(groups, wanted));
  }
  return divided(divided(rows, t.rows), groups) * t.rows;
}

// Whether every result is a sum over adjacent elements of both operands, one of which has few
// lines.
bool is_dot_products(const ContractionLoops& loops, const TileLimits& limits) {
  const ContractionLoop& sum = loops.sums[0];
  if (sum.lhs != 1 || sum.rhs != 1) return false;
  return has_few(loops, loops.columns, limits) ||
         (has_few(loops, loops.rows, limits) && sum.extent >= kLeastOfDots);
}

// Shares a product among workgroups: by columns, and by rows, each group of which packs its columns
// again: many, so that it takes little, and few enough for what follows to find them in a cache.
void share_matrix_product(const ContractionLoops& loops, Tiling& t) {
  constexpr double kWorthSeveral = 1 << 24;  // products
  constexpr int64_t kWorkgroups = 4, kLeastRows = 128, kMostRows = 1024;
  const int64_t rows = loops.rows.back().extent, outer = outer_turns(loops);
  const int64_t panels = divided(loops.columns.back().extent, t.columns());
  double products = static_cast<double>(loops.sums[0].extent);
  for (const int64_t turns : {outer, rows, loops.columns.back().extent})
    products *= static_cast<double>(turns);
  const int64_t wanted = products < kWorthSeveral ? 1 : divided(kWorkgroups, outer);
  const int64_t column_groups = std::max(divided(panels, t.panels), std::min(panels, wanted));
  t.panels = divided(panels, column_groups);
  int64_t row_groups = std::min(divided(rows, kLeastRows), divided(wanted, column_groups));
  row_groups = std::max(row_groups, divided(rows, kMostRows));
  t.rows_a_group = divided(divided(rows, t.rows), row_groups) * t.rows;
}

// The right operand is packed in tiles of 16 lines, and up to two tiles of each operand are
// multiplied at a time. What is packed of it stays in a near cache, from one tile of rows to the
// next.
Tiling of_matrix_unit(const ContractionLoops& loops) {
  constexpr int64_t kBytesOfLine = 1 << 13;  // of the products of a block
  constexpr int64_t kBytesPacked = 1 << 20;
  const ContractionLoop &row = loops.rows.back(), &column = loops.columns.back();
  const ContractionLoop& sum = loops.sums[0];
  const int64_t group = matrix_group(loops.unit);
  const int64_t a_tile = kMatrixLines * group;
  Tiling t;
  t.width = kMatrixLines;
  t.vectors = column.extent <= kMatrixLines ? 1 : 2;
  t.rows = row.extent <= kMatrixLines ? kMatrixLines : 2 * kMatrixLines;
  t.packs_rhs = true;
  // Tiles of rows are read where they lie if they are whole, in the type in which they are
  // multiplied, and if few panels read them: lines far apart share sets of the nearest cache.
  constexpr int64_t kFewPanels = 2;
  const bool converts = static_cast<int64_t>(storage_bytes(loops.lhs)) * group != 4;
  t.packs_lhs = converts || sum.lhs != 1 || sum.extent % a_tile != 0 ||
                row.extent % kMatrixLines != 0 || column.extent > kFewPanels * t.columns();
  t.sums_a_block = std::min(sum.extent, kBytesOfLine / 4 * group);
  const int64_t line_bytes = divided(t.sums_a_block, a_tile) * kMatrixLineBytes;
  t.panels = std::clamp<int64_t>(kBytesPacked / (line_bytes * t.columns()), 1,
                                 divided(column.extent, t.columns()));
  share_matrix_product(loops, t);
  t.keeps_sums = t.sums_a_block < sum.extent || loops.result != loops.sum ||
                 row.extent % kMatrixLines != 0 || column.extent % kMatrixLines != 0;
  return t;
}

}  // namespace

Tiling tiling_of(const ContractionLoops& loops, int64_t vector_bytes) {
  const ContractionLoop& row = loops.rows.back();
  const ContractionLoop& column = loops.columns.back();
  const ContractionLoop& sum = loops.sums[0];
  const auto bytes = static_cast<int64_t>(storage_bytes(loops.sum));
  // On a machine without vectors an element may be larger than the register.
  const int64_t lanes = std::max<int64_t>(vector_bytes / bytes, 1);
  TileLimits limits = limits_of(vector_bytes);
  if (loops.multiplies_two) limits.most_dots = kMostDotsOfFast;
  if (loops.unit != MatrixUnit::kNone) return of_matrix_unit(loops);
  if (is_dot_products(loops, limits)) return of_dot_products(loops, lanes, limits);
  Tiling t;
  const int64_t side_by_side = loops.panel > 0 ? loops.panel : column.extent;
  const auto ceiling = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(side_by_side)));
  t.width = std::min(lanes, ceiling);
  // With few rows, uses more columns, so that at least eight sums are computed at the same time.
  const int64_t wide = row.extent >= 4   ? vectors_abreast(loops, divided(side_by_side, t.width))
                       : row.extent >= 2 ? 4
                                         : 8;
  t.vectors = std::min(wide, divided(side_by_side, t.width));
  // Accumulators, and some registers for a row of the right operand.
  const int64_t most_rows = std::min<int64_t>((limits.registers - 4) / t.vectors, 14);
  t.rows = rows_of_tile(row.extent, t.vectors, most_rows, limits.few_rows);
  const bool widens = loops.rhs != loops.sum;
  const bool is_large = widens || sum.extent * column.extent * bytes > limits.packs_rhs_from;
  const bool repeats = row.extent > 2 * t.rows && is_large;
  const bool in_panels = loops.panel > 0;
  // A near cache holds few lines that share its sets, or every other of them: several tiles of rows
  // do not find them there, nor does one tile beside the rows of its results.
  const auto apart = [&](int64_t crowded) {
    const int64_t line = std::abs(sum.rhs) * static_cast<int64_t>(storage_bytes(loops.rhs));
    return crowded > 0 && line % crowded == 0;
  };
  constexpr int64_t kCrowdingRows = 6;
  const bool crowds = (row.extent > t.rows && apart(limits.crowded / 2)) ||
                      (row.extent >= kCrowdingRows && apart(limits.crowded));
  const bool pays = crowds && is_large && !in_panels;
  t.packs_rhs = !in_panels && (column.rhs != 1 || repeats || pays);
  const int64_t pack_from = row.lhs == 1 ? limits.packs_across_from : limits.packs_lhs_from;
  t.packs_lhs =
      (t.packs_rhs || (in_panels && repeats)) && row.extent * sum.extent * bytes > pack_from;
  const bool few = row.extent <= limits.few_rows && column.rhs == 1 && !in_panels && !pays;
  if (few) t.packs_rhs = t.packs_lhs = false;
  // Widening single elements takes longer than widening vectors of them once for all columns.
  if (loops.lhs != loops.sum) t.packs_lhs = true;
  if (t.packs_lhs && row.lhs == 1 && sum.lhs != 1) t.tiles_packed = kTilesPacked;
  t.rows_a_group = rows_of_group(loops, t);
  // Some sums of all columns stay in the cache from one tile of rows to the next.
  const bool several = row.extent > t.rows;
  const bool blocks = t.packs_rhs || t.packs_lhs || (in_panels && several);
  const int64_t in_block = t.tiles_packed > 1 ? kSumsTogether : kSumsABlock;
  const int64_t most_sums = blocks ? in_block : few && several ? kSumsOfFewRows : sum.extent;
  t.streams = few && !several && sum.extent * column.extent * bytes > kFarFrom && !t.packs_lhs;
  const int64_t abreast = apart(limits.crowded) ? kLinesAbreast / 2 : kLinesAbreast;
  t.sums_a_block = std::min(sum.extent, t.streams ? abreast : most_sums);
  t.keeps_sums = loops.result != loops.sum && t.sums_a_block < sum.extent;
  t.joins =
      t.streams && row.extent <= limits.bound_by_memory && !t.keeps_sums && outer_turns(loops) == 1;
  t.panels = t.joins ? 1 : panels_of(loops, t);
  return t;
}

}  // namespace tenon::cpu
