// Tiled contractions: a workgroup computes a tile of a dot_general's result in accumulators that
// its lanes own, from tiles of the operands that it copies into scratch. Ops before the dot are
// computed when a tile is loaded, ops after it when results are stored.
#include <algorithm>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

constexpr TuningParameterInfo kDotParameters[] = {
    {"lanes_m", "rows of lanes in a workgroup", 256, {1, 3, 8}},
    {"lanes_n", "columns of lanes in a workgroup", 256, {1, 5, 8}},
    {"each_m", "rows of results per lane", 256, {1, 2, 3}},
    {"each_n", "columns of results per lane", 256, {1, 2, 5}},
    {"tile_k", "depth of a tile", 1024, {1, 7, 8, 32}}};
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

class DotKernel {
 public:
  DotKernel(KernelMaker& maker, const FusedOp& fused, const Instruction& dot, const Tiles& tiles,
            const LowerLimits& limits)
      : maker_(maker),
        b_(maker.b()),
        e_(maker.e()),
        fused_(fused),
        dot_(dot),
        tiles_(tiles),
        limits_(limits),
        shape_(dot),
        m_(element_count(shape_.m)),
        n_(element_count(shape_.n)),
        k_(element_count(shape_.k)) {}

  void run() {
    maker_.inputs();
    for (uint32_t r = 0; r < fused_.results.size(); ++r) {
      results_.push_back(r);
      memories_.push_back(maker_.result(r));
    }
    Dims grid = shape_.batch;
    grid.push_back(tiles_of(m_, tiles_.m()));
    grid.push_back(tiles_of(n_, tiles_.n()));
    const Values group = b_.grid(grid);
    batch_ = Values(group.begin(), group.end() - 2);
    const ValueId row = b_.mul(group[batch_.size()], b_.index(tiles_.m()));
    const ValueId column = b_.mul(group[batch_.size() + 1], b_.index(tiles_.n()));
    const ElementType type = accumulator(dot_);
    const MemoryId x = b_.scratch("a", tile_type(dot_, 0, limits_), {tiles_.m(), tiles_.k});
    const MemoryId y = b_.scratch("b", tile_type(dot_, 1, limits_), {tiles_.k, tiles_.n()});
    const MemoryId sums = b_.private_memory(
        "acc", type, {tiles_.lanes_m, tiles_.lanes_n, tiles_.each_m, tiles_.each_n}, 2);
    for_each_sum([&](const Values& at) { b_.store(e_.constant(type, 0).re, sums, at); });
    b_.for_loop(b_.index(0), b_.index(k_), tiles_.k, {}, [&](const Values& k) {
      bring(0, x, row, k[0]);
      bring(1, y, column, k[0]);
      const Values zero = {b_.index(0), b_.index(0)};
      b_.contract(tiles_.m(), tiles_.n(), tiles_.k, sums, zero, x, zero, y, zero);
      return Values{};
    });
    for_each_sum([&](const Values& at) {
      const ValueId m = b_.add(row, b_.add(b_.mul(at[0], b_.index(tiles_.each_m)), at[2]));
      const ValueId n = b_.add(column, b_.add(b_.mul(at[1], b_.index(tiles_.each_n)), at[3]));
      if_inside(b_, {{m, m_, tiles_.m()}, {n, n_, tiles_.n()}}, [&] {
        const Element sum = {b_.load(sums, at)};
        write(m, n, e_.convert(sum, type, dot_.result_type().element_type()));
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
    Values index = batch_;
    for (const ValueId i : delinearize(b_, m, shape_.m)) index.push_back(i);
    for (const ValueId i : delinearize(b_, n, shape_.n)) index.push_back(i);
    e_.provide(dot_, index, {sum});
    store_results(maker_, fused_, results_, memories_, index);
  }

  // Copies a tile of a factor into scratch, with zeros beyond its end: a [m, k], b [k, n].
  void bring(size_t side, MemoryId tile, ValueId first, ValueId k) {
    const int64_t free = side == 0 ? tiles_.m() : tiles_.n();
    const Dims box = side == 0 ? Dims{free, tiles_.k} : Dims{tiles_.k, free};
    if (copy(side, tile, box, first, k)) return;
    const ElementType type = tile_type(dot_, side, limits_);
    b_.lanes(box, [&](const Values& lane) {
      const ValueId at = b_.add(first, lane[side]);
      const ValueId in_k = b_.add(k, lane[1 - side]);
      const auto element = [&] {
        const Dims& dims = side == 0 ? shape_.m : shape_.n;
        const Values index =
            shape_.factor(side, batch_, delinearize(b_, at, dims), delinearize(b_, in_k, shape_.k));
        return e_.convert(e_.element(dot_.operand(side), index),
                          dot_.operand_type(side).element_type(), type);
      };
      const ValueId condition =
          is_inside(b_, {{at, side == 0 ? m_ : n_, free}, {in_k, k_, tiles_.k}});
      const Element x =
          b_.kernel().is_constant(condition)
              ? element()
              : e_.if_else(condition, type, element, [&] { return e_.constant(type, 0); });
      b_.store(x.re, tile, lane);
    });
  }

  // As one box, if the factor is in memory and has one dimension of each kind.
  bool copy(size_t side, MemoryId tile, const Dims& box, ValueId first, ValueId k) {
    const MemoryId source = e_.memory_of(e_.resolve(dot_.operand(side)));
    const ElementType type = tile_type(dot_, side, limits_);
    const bool fits = source != kernel::kNone && shape_.free[side].size() == 1 &&
                      shape_.k.size() == 1 && type == dot_.operand_type(side).element_type();
    if (!fits) return false;
    const auto free = static_cast<uint32_t>(shape_.free[side][0]);
    const auto contracting = static_cast<uint32_t>(shape_.contracting[side][0]);
    const std::vector<uint32_t> by = side == 0 ? std::vector<uint32_t>{free, contracting}
                                               : std::vector<uint32_t>{contracting, free};
    b_.copy(box, tile, {b_.index(0), b_.index(0)}, {0, 1}, source,
            shape_.factor(side, batch_, {first}, {k}), by, e_.constant(type, 0).re);
    return true;
  }

  KernelMaker& maker_;
  Builder& b_;
  ElementEmitter& e_;
  const FusedOp& fused_;
  const Instruction& dot_;
  const Tiles& tiles_;
  const LowerLimits& limits_;
  const DotShape shape_;
  int64_t m_, n_, k_;
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
Tiles choose_tiles(TuningParameters& tuning, const DotShape& shape, ElementType sum,
                   const LowerLimits& limits) {
  const auto most = [](int64_t size, int64_t preferred) {
    while (preferred > 1 && preferred / 2 >= size) preferred /= 2;
    return preferred;
  };
  const bool wide = is_wide(limits);
  const int64_t vector = limits.vector_bytes / static_cast<int64_t>(storage_bytes(sum));
  const int64_t m = element_count(shape.m);
  const int64_t n = element_count(shape.n);
  const int64_t k = element_count(shape.k);
  const int64_t rows = wide ? most(m, std::max<int64_t>(4, vector / 2)) : 0;
  const int64_t columns = wide ? most(n, 2 * vector) : 0;
  Tiles tiles = {};
  const auto choose = [&](ParameterIndex parameter, int64_t preferred) {
    return tuning.choose(kDotParameters[parameter], preferred);
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

// Each element of a tile is used as often as the other factor's tile is wide: the least dimension
// determines the gain.
std::optional<double> estimate_tiled_dot(const ScheduleInput& input) {
  const Instruction* dot = input.fused.only(OpCode::kDotGeneral);
  if (dot == nullptr || input.fused.results.empty() ||
      !fits_tiles(input.fused, *dot, input.limits)) {
    return std::nullopt;
  }
  const DotShape shape(*dot);
  const int64_t least =
      std::min({element_count(shape.m), element_count(shape.n), element_count(shape.k)});
  return input.elements_seconds * static_cast<double>(input.limits.cost.tiled_product) /
         static_cast<double>(std::max<int64_t>(least, 1));
}

Taken emit_tiled_dot(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                     const LowerLimits& limits) {
  const Instruction* dot = fused.only(OpCode::kDotGeneral);
  const Tiles tiles = choose_tiles(tuning, DotShape(*dot), accumulator(*dot), limits);
  int64_t bytes = Shape(tile_type(*dot, 0, limits), {tiles.m(), tiles.k}).byte_size() +
                  Shape(tile_type(*dot, 1, limits), {tiles.k, tiles.n()}).byte_size();
  const int64_t sums = Shape(accumulator(*dot), {tiles.m(), tiles.n()}).byte_size();
  if (!limits.private_memory) bytes += sums;
  const int64_t of_lane = sums / (tiles.lanes_m * tiles.lanes_n);
  const CostModel& cost = limits.cost;
  const bool too_private = sums > cost.private_bytes ||
                           (cost.lane_private_bytes > 0 && of_lane > cost.lane_private_bytes);
  if (bytes > limits.scratch_bytes || too_private) return false;
  return try_kernel(lowered, fused.op, "_tiles", [&](KernelMaker& maker) {
    DotKernel(maker, fused, *dot, tiles, limits).run();
  });
}

}  // namespace

constinit const Schedule kTiledDot = {
    "tiled-dot",
    "one dot_general of real types, any dimension numbers, and in a fusion the ops before and "
    "behind it",
    "a workgroup brings tiles of both factors into scratch (`copy` where a factor lies in memory, "
    "else computed on the way), `contract`s them into private accumulators, and computes the rest "
    "on the way out; where a register (`vector_bytes`) holds many numbers a lane's results are "
    "some registers of them",
    kDotParameters,
    estimate_tiled_dot,
    emit_tiled_dot};

}  // namespace tenon::hlo::lower
