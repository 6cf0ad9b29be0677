#include "hlo/lower/schedules/tiled_product.h"

#include <algorithm>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

enum ParameterIndex : uint8_t { kLanesM, kLanesN, kEachM, kEachN, kTileK };

struct Tiles {
  int64_t lanes_m, lanes_n;  // Lanes of a workgroup.
  int64_t each_m, each_n;    // Results per lane.
  int64_t k;

  int64_t m() const { return lanes_m * each_m; }
  int64_t n() const { return lanes_n * each_n; }
};

// Whether a register holds several results.
bool is_wide(const LowerLimits& limits) { return limits.vector_bytes >= limits.cost.wide_register; }

// A tile of a factor keeps the type that the operand has in memory if products have the
// accumulator's kind; with wide registers it is widened when loaded, before it is used repeatedly.
ElementType tile_type(const Instruction& dot, size_t side, const LowerLimits& limits) {
  const ElementType type = dot.operand_type(side).element_type();
  if (is_wide(limits)) return accumulator(dot);
  const bool same_kind = is_float(type) == is_float(accumulator(dot)) && !is_pred(type);
  // Elements beyond the factor's end are zero, which some types cannot represent.
  const bool has_zero = element_type_info(type).format.specials != FloatSpecials::kExponentOnly;
  return same_kind && (has_zero || !is_float(type)) ? type : accumulator(dot);
}

class ProductKernel {
 public:
  ProductKernel(KernelMaker& maker, const FusedOp& fused, const TiledProduct& product,
                const Tiles& tiles, const LowerLimits& limits)
      : maker_(maker),
        b_(maker.b()),
        e_(maker.e()),
        fused_(fused),
        product_(product),
        op_(product.op),
        tiles_(tiles),
        limits_(limits) {}

  void run() {
    maker_.inputs();
    for (uint32_t r = 0; r < fused_.results.size(); ++r) {
      results_.push_back(r);
      memories_.push_back(maker_.result(r));
    }
    Dims grid = product_.batch;
    grid.push_back(tiles_of(product_.m, tiles_.m()));
    grid.push_back(tiles_of(product_.n, tiles_.n()));
    const Values group = b_.grid(grid);
    batch_ = Values(group.begin(), group.end() - 2);
    const ValueId row = b_.mul(group[batch_.size()], b_.index(tiles_.m()));
    const ValueId column = b_.mul(group[batch_.size() + 1], b_.index(tiles_.n()));
    const ElementType type = accumulator(op_);
    const MemoryId x = b_.scratch("a", tile_type(op_, 0, limits_), {tiles_.m(), tiles_.k});
    const MemoryId y = b_.scratch("b", tile_type(op_, 1, limits_), {tiles_.k, tiles_.n()});
    const MemoryId sums = b_.private_memory(
        "acc", type, {tiles_.lanes_m, tiles_.lanes_n, tiles_.each_m, tiles_.each_n}, 2);
    for_each_sum([&](const Values& at) { b_.store(e_.constant(type, 0).re, sums, at); });
    for_each_serially(b_, product_.outer, [&](const Values& outer) {
      b_.for_loop(b_.index(0), b_.index(product_.k), tiles_.k, {}, [&](const Values& k) {
        bring(0, x, {batch_, row, outer, k[0]});
        bring(1, y, {batch_, column, outer, k[0]});
        const Values zero = {b_.index(0), b_.index(0)};
        b_.contract(tiles_.m(), tiles_.n(), tiles_.k, sums, zero, x, zero, y, zero);
        return Values{};
      });
    });
    for_each_sum([&](const Values& at) {
      const ValueId m = b_.add(row, b_.add(b_.mul(at[0], b_.index(tiles_.each_m)), at[2]));
      const ValueId n = b_.add(column, b_.add(b_.mul(at[1], b_.index(tiles_.each_n)), at[3]));
      if_inside(b_, {{m, product_.m, tiles_.m()}, {n, product_.n, tiles_.n()}}, [&] {
        const auto store = [&] {
          const Element sum = {b_.load(sums, at)};
          write(m, n, e_.convert(sum, type, op_.result_type().element_type()));
        };
        const ValueId present = product_.has_result(b_, batch_, m);
        b_.kernel().is_constant(present) ? store() : b_.if_then(present, store);
      });
    });
  }

 private:
  // Each lane's accumulators, at [lane m, lane n, u, v].
  void for_each_sum(const std::function<void(const Values&)>& body) {
    b_.lanes({tiles_.lanes_m, tiles_.lanes_n}, [&](const Values& lane) {
      for_each_serially(b_, {tiles_.each_m, tiles_.each_n},
                        [&](const Values& own) { body({lane[0], lane[1], own[0], own[1]}); });
    });
  }

  void write(ValueId m, ValueId n, const Element& sum) {
    const Values index = product_.result(b_, batch_, m, n);
    e_.provide(op_, index, {sum});
    store_results(maker_, fused_, results_, memories_, index);
  }

  // Copies a tile of a factor into scratch, with zeros beyond its end: a [m, k], b [k, n].
  void bring(size_t side, MemoryId tile, const TiledProduct::FactorPlace& first) {
    const int64_t free = side == 0 ? tiles_.m() : tiles_.n();
    const ElementType type = tile_type(op_, side, limits_);
    const Dims box = side == 0 ? Dims{free, tiles_.k} : Dims{tiles_.k, free};
    if (product_.copy(e_, side, tile, box, first, type)) return;
    // Neighbouring lanes load neighbouring elements.
    const bool along_k = product_.is_along_k(side);
    b_.lanes(along_k ? Dims{free, tiles_.k} : Dims{tiles_.k, free}, [&](const Values& lane) {
      const ValueId own_free = lane[along_k ? 0 : 1];
      const ValueId own_k = lane[along_k ? 1 : 0];
      TiledProduct::FactorPlace place = first;
      place.free = b_.add(first.free, own_free);
      place.k = b_.add(first.k, own_k);
      const ValueId inside = is_inside(b_, {{place.free, side == 0 ? product_.m : product_.n, free},
                                            {place.k, product_.k, tiles_.k}});
      const Element x = product_.element(e_, side, place, inside, type);
      b_.store(x.re, tile, side == 0 ? Values{own_free, own_k} : Values{own_k, own_free});
    });
  }

  KernelMaker& maker_;
  Builder& b_;
  ElementEmitter& e_;
  const FusedOp& fused_;
  const TiledProduct& product_;
  const Instruction& op_;
  const Tiles& tiles_;
  const LowerLimits& limits_;
  Values batch_;
  std::vector<uint32_t> results_;
  std::vector<MemoryId> memories_;
};

bool fits_tiles(const FusedOp& fused, const Instruction& dot, const LowerLimits& limits) {
  const ElementType type = accumulator(dot);
  if (is_complex(type) || is_pred(type) || (is_float(type) && !limits.fma)) return false;
  // A reduction within a factor would be computed again for each element of the factor in each
  // tile.
  if (fused.combines(&dot)) return false;
  for (size_t side = 0; side < 2; ++side) {
    if (is_complex(dot.operand_type(side).element_type())) return false;
    if (element_count(dot.operand_type(side).dims()) == 0) return false;
  }
  return std::ranges::all_of(
      fused.results, [&](Value value) { return value.type().dims() == dot.result_type().dims(); });
}

// Chooses numbers of lanes and results for the sizes. If a register holds several numbers, a lane
// computes several results, because a lane is then an iteration of a loop.
Tiles choose_tiles(TuningParameters& tuning, const TiledProduct& product, ElementType sum,
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
  Tiles tiles = {};
  const auto choose = [&](ParameterIndex parameter, int64_t preferred) {
    return tuning.choose(kProductParameters[parameter], preferred);
  };
  tiles.lanes_m = choose(kLanesM, wide ? most(tiles_of(m, rows), 8) : most(m, 16));
  tiles.lanes_n = choose(kLanesN, wide ? most(tiles_of(n, columns), 4) : most(n, 16));
  tiles.each_m = choose(kEachM, wide ? rows : most(tiles_of(m, tiles.lanes_m), 4));
  tiles.each_n = choose(kEachN, wide ? columns : most(tiles_of(n, tiles.lanes_n), 4));
  // Reduces the larger side to the target's bound.
  while (tiles.lanes_m * tiles.lanes_n > limits.cost.most_lanes) {
    int64_t& side = tiles.lanes_m > tiles.lanes_n ? tiles.lanes_m : tiles.lanes_n;
    side = (side + 1) / 2;
  }
  tiles.k = choose(kTileK, most(k, wide ? 128 : 16));
  return tiles;
}

}  // namespace

// Each element of a tile is used as often as the other factor's tile is wide: the least dimension
// determines the gain.
std::optional<double> estimate_tiled_product(const ScheduleInput& input, const Instruction& op,
                                             int64_t least) {
  if (input.fused.results.empty() || !fits_tiles(input.fused, op, input.limits)) {
    return std::nullopt;
  }
  return input.elements_seconds * static_cast<double>(input.limits.cost.tiled_product) /
         static_cast<double>(std::max<int64_t>(least, 1));
}

Taken emit_tiled_product(LoweredOp& lowered, const FusedOp& fused, const TiledProduct& product,
                         TuningParameters& tuning, const LowerLimits& limits) {
  const Instruction& op = product.op;
  const Tiles tiles = choose_tiles(tuning, product, accumulator(op), limits);
  int64_t bytes = Shape(tile_type(op, 0, limits), {tiles.m(), tiles.k}).byte_size() +
                  Shape(tile_type(op, 1, limits), {tiles.k, tiles.n()}).byte_size();
  const int64_t sums = Shape(accumulator(op), {tiles.m(), tiles.n()}).byte_size();
  if (!limits.private_memory) bytes += sums;
  const int64_t of_lane = sums / (tiles.lanes_m * tiles.lanes_n);
  const CostModel& cost = limits.cost;
  const bool too_private = sums > cost.private_bytes ||
                           (cost.lane_private_bytes > 0 && of_lane > cost.lane_private_bytes);
  if (bytes > limits.scratch_bytes || too_private) return false;
  return try_kernel(lowered, fused.op, "_tiles", [&](KernelMaker& maker) {
    ProductKernel(maker, fused, product, tiles, limits).run();
  });
}

}  // namespace tenon::hlo::lower
