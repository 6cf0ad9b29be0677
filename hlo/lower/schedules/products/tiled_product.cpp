#include "hlo/lower/schedules/products/tiled_product.h"

#include <algorithm>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/products/product_tiles.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

// Dimensions of factor 1 in the order in which tiles are read, each as panels of the columns of a
// register tile.
Dims panel_dims(const TiledProduct& product, const ProductTiles& tiles) {
  Dims dims(product.batch.begin(),
            product.batch.begin() + static_cast<std::ptrdiff_t>(product.own_batch()));
  dims.push_back(tiles_of(product.n, tiles.n()));
  dims.insert(dims.end(), product.outer.begin(), product.outer.end());
  dims.insert(dims.end(), {tiles_of(product.k, tiles.k), tiles.lanes_n, tiles.k, tiles.each_n});
  return dims;
}

// How tiles of factor 1 are read.
enum class FactorForm : uint8_t {
  kInPlace,   // from the operand
  kCopied,    // from scratch, one by one
  kPacked,    // from temporary 0, in panels
  kConstant,  // from constant 0, in panels
};

// Tiles of results that read the same tile of factor 1.
int64_t uses_of_factor(const TiledProduct& product, const ProductTiles& tiles) {
  const Dims rest(product.batch.begin() + static_cast<std::ptrdiff_t>(product.own_batch()),
                  product.batch.end());
  return element_count(rest) * tiles_of(product.m, tiles.m());
}

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
                const ProductTiles& tiles, const LowerLimits& limits, FactorForm form)
      : maker_(maker),
        b_(maker.b()),
        e_(maker.e()),
        fused_(fused),
        product_(product),
        op_(product.op),
        tiles_(tiles),
        limits_(limits),
        form_(form) {}

  /// Factor 1 in panels, with zeros beyond its end: a temporary.
  void pack(TuningParameters& tuning) {
    maker_.inputs();
    const MemoryId packed = maker_.temporary(0, kernel::Access::kOut);
    const Dims dims = panel_dims(product_, tiles_);
    const ElementType type = tile_type(op_, 1, limits_);
    for_each_index(b_, dims, tuning, [&](const Values& at) {
      const auto own = at.begin() + static_cast<std::ptrdiff_t>(product_.own_batch());
      const auto from_end = [&](size_t d) { return at[at.size() - d]; };
      TiledProduct::FactorPlace place;
      place.batch = Values(at.begin(), own);
      place.batch.resize(product_.batch.size(), b_.index(0));
      place.outer = Values(own + 1, at.end() - 4);
      place.k = b_.add(b_.mul(from_end(4), b_.index(tiles_.k)), from_end(2));
      place.free = b_.add(
          b_.add(b_.mul(*own, b_.index(tiles_.n())), b_.mul(from_end(3), b_.index(tiles_.each_n))),
          from_end(1));
      b_.store(product_.element(e_, 1, place, is_in_factor(place), type).re, packed, at);
    });
  }

  /// The results, or temporaries with the sum of each part of the depth.
  void run() {
    maker_.inputs();
    product_.begin(maker_);
    is_native_ = has_native_tiles(limits_);
    transposes_ = is_native_ && !product_.is_along_k(0);
    transposes_sums_ = has_transposed_sums(product_, limits_);
    if (form_ == FactorForm::kConstant) {
      matrix_ = maker_.constant(0);
    } else if (is_packed()) {
      matrix_ = maker_.temporary(0, kernel::Access::kIn);
    } else if (form_ == FactorForm::kInPlace) {
      matrix_ = product_.matrix(e_, tiles_.k, tiles_.n());
    }
    if (tiles_.parts == 1) {
      results();
    } else {
      found_ = maker_.temporary(is_packed() ? 1 : 0, kernel::Access::kOut);
    }
    Dims grid = product_.batch;
    grid.push_back(tiles_of(product_.m, tiles_.m()));
    const size_t rank = product_.batch.size();
    const size_t columns_at = is_native_ && is_far_factor() ? product_.own_batch() : rank + 1;
    grid.insert(grid.begin() + static_cast<std::ptrdiff_t>(columns_at),
                tiles_of(product_.n, tiles_.n()));
    grid.push_back(tiles_.parts);
    if (tiles_.parts == 1) grid.pop_back();
    Values group = b_.grid(grid);
    if (tiles_.parts > 1) part_ = group.back();
    column_group_ = group[columns_at];
    const ValueId column = b_.mul(column_group_, b_.index(tiles_.n()));
    group.erase(group.begin() + static_cast<std::ptrdiff_t>(columns_at));
    batch_ = Values(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(rank));
    const ValueId row = b_.mul(group[rank], b_.index(tiles_.m()));
    const ElementType type = accumulator(op_);
    const MemoryId x =
        b_.scratch("a", tile_type(op_, 0, limits_),
                   transposes_ ? Dims{tiles_.k, rows()} : Dims{tiles_.m(), tiles_.k});
    const MemoryId y = matrix_ != kernel::kNone
                           ? kernel::kNone
                           : b_.scratch("b", tile_type(op_, 1, limits_),
                                        has_panels() ? Dims{tiles_.lanes_n, tiles_.k, tiles_.each_n}
                                                     : Dims{tiles_.k, tiles_.n()});
    const MemoryId sums =
        is_native_
            ? b_.scratch("sums", type,
                         transposes_sums_ ? Dims{tiles_.n(), rows()} : Dims{tiles_.m(), tiles_.n()})
            : b_.private_memory("acc", type,
                                {tiles_.lanes_m, tiles_.lanes_n, tiles_.each_m, tiles_.each_n}, 2);
    const auto clear = [&](const Values& at) { b_.store(e_.constant(type, 0).re, sums, at); };
    if (transposes_sums_) {
      b_.lanes({tiles_.n(), rows()}, clear);
      clear_beyond_rows(x);
    } else {
      for_each_sum([&](const Values& at, ValueId, ValueId) { clear(at); });
    }
    for_each_turn([&](const Values& outer, ValueId k) {
      const ValueId present = product_.has_products(b_, batch_, outer);
      const auto add = [&] { add_products(row, column, outer, k, x, y, sums); };
      is_true(b_, present) ? add() : b_.if_then(present, add);
    });
    for_each_sum([&](const Values& at, ValueId in_row, ValueId in_column) {
      const ValueId m = b_.add(row, in_row);
      const ValueId n = b_.add(column, in_column);
      if_inside(b_, {{m, product_.m, tiles_.m()}, {n, product_.n, tiles_.n()}}, [&] {
        const Element sum = {b_.load(sums, at)};
        // Temporaries have rows without a result too.
        if (tiles_.parts > 1) return e_.store(sum, found_, place_of(part_, m, n));
        const ValueId present = product_.has_result(b_, batch_, m);
        const auto store = [&] { write(m, n, sum); };
        is_true(b_, present) ? store() : b_.if_then(present, store);
      });
    });
  }

  /// The results, from those temporaries.
  void add_parts(TuningParameters& tuning) {
    maker_.inputs();
    found_ = maker_.temporary(is_packed() ? 1 : 0, kernel::Access::kIn);
    results();
    Dims dims = product_.batch;
    dims.insert(dims.end(), {product_.m, product_.n});
    for_each_index(b_, dims, tuning, [&](const Values& at) {
      batch_ = Values(at.begin(), at.end() - 2);
      const ValueId m = at[at.size() - 2];
      const auto store = [&] {
        const ElementType type = accumulator(op_);
        Builder::ReduceSpec parts;
        parts.extents = {tiles_.parts};
        parts.commutative = true;
        parts.inits = {e_.constant(type, 0).re};
        parts.leaf = [&](const Values& part) {
          return Values{b_.load(found_, place_of(part[0], m, at.back()))};
        };
        parts.combine = [&](const Values& both) { return Values{b_.add(both[0], both[1])}; };
        write(m, at.back(), {b_.reduce(parts)[0]});
      };
      const ValueId present = product_.has_result(b_, batch_, m);
      is_true(b_, present) ? store() : b_.if_then(present, store);
    });
  }

 private:
  bool is_packed() const { return form_ == FactorForm::kPacked; }
  // Whether `contract` reads tiles of factor 1 as panels.
  bool has_panels() const {
    return is_native_ && product_.may_pack() && form_ != FactorForm::kInPlace;
  }
  ValueId is_in_factor(const TiledProduct::FactorPlace& place) {
    return is_inside(b_, {{place.free, product_.n, tiles_.n()}, {place.k, product_.k, tiles_.k}});
  }

  // Whether factor 1 does not stay in a near cache, so that the tiles of results that read the same
  // part of it are computed one after the other.
  bool is_far_factor() const {
    constexpr int64_t kNear = 1 << 20;
    return element_count(product_.outer) * product_.k * product_.n *
               static_cast<int64_t>(storage_bytes(tile_type(op_, 1, limits_))) >
           kNear;
  }

  void results() {
    for (uint32_t r = 0; r < fused_.results.size(); ++r) {
      results_.push_back(r);
      memories_.push_back(maker_.result(r));
    }
  }

  // Calls body(outer, k) for each tile of the depth, of this workgroup's part of it.
  void for_each_turn(const std::function<void(const Values& outer, ValueId k)>& body) {
    if (tiles_.parts == 1) {
      for_each_serially(b_, product_.outer, [&](const Values& outer) {
        b_.for_loop(b_.index(0), b_.index(product_.k), tiles_.k, {}, [&](const Values& k) {
          body(outer, k[0]);
          return Values{};
        });
      });
      return;
    }
    const int64_t deep = tiles_of(product_.k, tiles_.k);
    const int64_t turns = element_count(product_.outer) * deep;
    const int64_t each = tiles_of(turns, tiles_.parts);
    const ValueId first = b_.mul(part_, b_.index(each));
    const ValueId behind = b_.add(first, b_.index(each));
    const ValueId end = turns % each == 0 ? behind : b_.min(behind, b_.index(turns));
    b_.for_loop(first, end, 1, {}, [&](const Values& turn) {
      const ValueId k = b_.mul(b_.rem(turn[0], b_.index(deep)), b_.index(tiles_.k));
      body(delinearize(b_, b_.div(turn[0], b_.index(deep)), product_.outer), k);
      return Values{};
    });
  }

  Values place_of(ValueId part, ValueId m, ValueId n) const {
    Values place = {part};
    place.insert(place.end(), batch_.begin(), batch_.end());
    place.insert(place.end(), {m, n});
    return place;
  }

  // Brings the tiles at (outer, k) of both factors, and adds their product.
  void add_products(ValueId row, ValueId column, const Values& outer, ValueId k, MemoryId x,
                    MemoryId y, MemoryId sums) {
    const TiledProduct::FactorPlace second = {batch_, column, outer, k};
    bring(0, x, {batch_, row, outer, k});
    if (matrix_ == kernel::kNone) bring(1, y, second);
    const Values zero = {b_.index(0), b_.index(0)};
    const bool is_copied = matrix_ == kernel::kNone;
    const MemoryId from = is_copied ? y : matrix_;
    if (has_panels()) {
      for_each_serially(b_, {tiles_.lanes_n}, [&](const Values& panel) {
        const Values place = is_copied ? Values{panel[0], b_.index(0), b_.index(0)}
                                       : place_in_panels(outer, k, panel[0]);
        multiply(sums, b_.mul(panel[0], b_.index(tiles_.each_n)), tiles_.each_n, x, from, place);
      });
      return;
    }
    multiply(sums, b_.index(0), tiles_.n(), x, from,
             is_copied ? zero : product_.place_in_matrix(b_, second));
  }

  // Adds the product of a tile of factor 0 and `columns` columns of factor 1, which lie at `place`.
  void multiply(MemoryId sums, ValueId column, int64_t columns, MemoryId x, MemoryId from,
                const Values& place) {
    const ValueId zero = b_.index(0);
    if (transposes_sums_) {
      b_.contract(columns, rows(), tiles_.k, sums, {column, zero}, from, place, x, {zero, zero},
                  true);
    } else {
      b_.contract(tiles_.m(), columns, tiles_.k, sums, {zero, column}, x, {zero, zero}, from, place,
                  transposes_);
    }
  }

  // Rows of a tile in scratch.
  int64_t rows() const { return rows_in_scratch(product_, tiles_, limits_); }
  void clear_beyond_rows(MemoryId x) {
    const int64_t beyond = rows() - tiles_.m();
    if (beyond == 0) return;
    b_.lanes({tiles_.k, beyond}, [&](const Values& at) {
      b_.store(e_.constant(tile_type(op_, 0, limits_), 0).re, x,
               {at[0], b_.add(at[1], b_.index(tiles_.m()))});
    });
  }

  Values own_batch() const {
    return {batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(product_.own_batch())};
  }
  Values place_in_panels(const Values& outer, ValueId k, ValueId panel) {
    Values place = own_batch();
    place.push_back(column_group_);
    place.insert(place.end(), outer.begin(), outer.end());
    place.insert(place.end(), {b_.div(k, b_.index(tiles_.k)), panel, b_.index(0), b_.index(0)});
    return place;
  }

  // Calls body(place of a sum, row and column in the tile): of each lane's accumulators, at
  // [lane m, lane n, u, v], or of sums in scratch.
  void for_each_sum(const std::function<void(const Values&, ValueId row, ValueId column)>& body) {
    if (is_native_) {
      const bool along_m = product_.is_result_along_m();
      const Dims rows = rows_of_tile();
      const auto count = static_cast<std::ptrdiff_t>(rows.size());
      Dims extents = rows;
      extents.insert(along_m ? extents.begin() : extents.end(), tiles_.n());
      b_.lanes(extents, [&](const Values& lane) {
        const auto at = lane.begin() + (along_m ? 1 : 0);
        const ValueId row = linear_index(b_, {at, at + count}, rows);
        const ValueId column = along_m ? lane.front() : lane.back();
        body(transposes_sums_ ? Values{column, row} : Values{row, column}, row, column);
      });
      return;
    }
    b_.lanes({tiles_.lanes_m, tiles_.lanes_n}, [&](const Values& lane) {
      for_each_serially(b_, {tiles_.each_m, tiles_.each_n}, [&](const Values& own) {
        body({lane[0], lane[1], own[0], own[1]},
             b_.add(b_.mul(lane[0], b_.index(tiles_.each_m)), own[0]),
             b_.add(b_.mul(lane[1], b_.index(tiles_.each_n)), own[1]));
      });
    });
  }

  void write(ValueId m, ValueId n, const Element& sum) {
    const Values index = product_.result(b_, batch_, m, n);
    const ElementType type = op_.result_type().element_type();
    e_.provide(op_, index, {e_.convert(sum, accumulator(op_), type)});
    store_results(maker_, fused_, results_, memories_, index);
  }

  // Copies a tile of a factor into scratch, with zeros beyond its end: a [m, k], or [k, m] if it is
  // transposed, b [k, n].
  void bring(size_t side, MemoryId tile, const TiledProduct::FactorPlace& first) {
    const int64_t free = side == 0 ? tiles_.m() : tiles_.n();
    const ElementType type = tile_type(op_, side, limits_);
    if (side == 1 && has_panels()) return bring_panels(tile, first, type);
    const bool rows_first = side == 0 && !transposes_;
    const Dims box = rows_first ? Dims{free, tiles_.k} : Dims{tiles_.k, free};
    if ((side == 1 || rows_first) && product_.copy(e_, side, tile, box, first, type)) return;
    // Neighbouring lanes load neighbouring elements.
    const bool along_k = product_.is_along_k(side);
    const Dims lines = side == 0 ? rows_of_tile() : Dims{free};
    const Dims depths = side == 0 ? depths_of_tile() : Dims{tiles_.k};
    Dims extents = along_k ? lines : depths;
    const auto rest = static_cast<std::ptrdiff_t>(extents.size());
    const Dims& behind = along_k ? depths : lines;
    extents.insert(extents.end(), behind.begin(), behind.end());
    b_.lanes(extents, [&](const Values& lane) {
      const Values in_front(lane.begin(), lane.begin() + rest),
          last(lane.begin() + rest, lane.end());
      const ValueId own_free = linear_index(b_, along_k ? in_front : last, lines);
      const ValueId own_k = linear_index(b_, along_k ? last : in_front, depths);
      TiledProduct::FactorPlace place = first;
      place.free = b_.add(first.free, own_free);
      place.k = b_.add(first.k, own_k);
      const ValueId inside = is_inside(b_, {{place.free, side == 0 ? product_.m : product_.n, free},
                                            {place.k, product_.k, tiles_.k}});
      const Element x = product_.element(e_, side, place, inside, type);
      b_.store(x.re, tile, rows_first ? Values{own_free, own_k} : Values{own_k, own_free});
    });
  }

  // Loops over the rows of a tile: over whole lines, and along each.
  Dims rows_of_tile() const {
    const int64_t line = product_.line();
    return is_native_ && tiles_.m() % line == 0 ? Dims{tiles_.m() / line, line} : Dims{tiles_.m()};
  }
  Dims depths_of_tile() const {
    return is_native_ && tiles_.k == product_.k ? product_.depths() : Dims{tiles_.k};
  }

  // Copies a tile of factor 1 into scratch [panel, k, column of the panel].
  void bring_panels(MemoryId tile, const TiledProduct::FactorPlace& first, ElementType type) {
    const bool along_k = product_.is_along_k(1);
    const Dims of_panel = along_k ? Dims{tiles_.each_n, tiles_.k} : Dims{tiles_.k, tiles_.each_n};
    b_.lanes({tiles_.lanes_n, of_panel[0], of_panel[1]}, [&](const Values& lane) {
      const ValueId own_k = lane[along_k ? 2 : 1];
      const ValueId column = lane[along_k ? 1 : 2];
      TiledProduct::FactorPlace place = first;
      place.free = b_.add(b_.add(first.free, b_.mul(lane[0], b_.index(tiles_.each_n))), column);
      place.k = b_.add(first.k, own_k);
      const Element x = product_.element(e_, 1, place, is_in_factor(place), type);
      b_.store(x.re, tile, {lane[0], own_k, column});
    });
  }

  KernelMaker& maker_;
  Builder& b_;
  ElementEmitter& e_;
  const FusedOp& fused_;
  const TiledProduct& product_;
  const Instruction& op_;
  const ProductTiles& tiles_;
  const LowerLimits& limits_;
  const FactorForm form_;
  bool is_native_ = false;
  bool transposes_ = false;
  bool transposes_sums_ = false;
  MemoryId matrix_ = kernel::kNone;  ///< With tiles of factor 1 that nothing copies.
  Values batch_;
  ValueId part_ = kernel::kNone;
  ValueId column_group_ = kernel::kNone;
  MemoryId found_ = kernel::kNone;
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

// A constant in panels may be larger by one part in so many.
constexpr int64_t kLeastPartOfPadding = 8;

// Adds a constant factor 1 in the order in which tiles read it, which is then read along memory.
bool lay_out_constant(LoweredOp& lowered, const FusedOp& fused, const TiledProduct& product,
                      const ProductTiles& tiles, const LowerLimits& limits) {
  const ElementType type = product.op.operand_type(1).element_type();
  const Dims dims = panel_dims(product, tiles);
  // The last tile of each group is filled with zeros, which are stored too.
  const int64_t elements = element_count(product.op.operand_type(1).dims());
  const bool is_small = element_count(dims) <= elements + elements / kLeastPartOfPadding;
  if (!limits.lays_out_constants || !product.may_pack() || !is_small ||
      type != tile_type(product.op, 1, limits)) {
    return false;
  }
  std::optional<Literal> panels = product.panels(fused.op, dims);
  if (!panels) return false;
  lowered.constants.push_back(*std::move(panels));
  return true;
}

// Lines of a matrix that a tile reads a part of, so far apart, drive one another out of a cache.
bool is_spread_out(const TiledProduct& product, const ProductTiles& tiles,
                   const LowerLimits& limits) {
  constexpr int64_t kNear = 1 << 13;
  return tiles.k * product.n *
             static_cast<int64_t>(storage_bytes(tile_type(product.op, 1, limits))) >
         kNear;
}

// Adds a kernel that brings factor 1 into panels, if enough tiles of results read it, and a matrix
// in memory does not do. Tells how the tiles of results read it.
Result<FactorForm> pack_factor(LoweredOp& lowered, const FusedOp& fused,
                               const TiledProduct& product, const ProductTiles& tiles,
                               const LowerLimits& limits, TuningParameters& tuning) {
  if (!product.may_pack()) return FactorForm::kCopied;
  constexpr int64_t kUsesOfMatrix = 4;  // from which packing one takes less time than copies
  const int64_t uses = uses_of_factor(product, tiles);
  const bool is_far = is_spread_out(product, tiles, limits);
  LoweredOp made = lowered;
  made.temporaries.emplace_back(tile_type(product.op, 1, limits), panel_dims(product, tiles));
  bool is_matrix = false;
  TENON_ASSIGN(
      const bool taken, try_kernel(made, fused.op, "_packed", [&](KernelMaker& maker) {
        ProductKernel(maker, fused, product, tiles, limits, FactorForm::kPacked).pack(tuning);
        is_matrix = product.matrix(maker.e(), tiles.k, tiles.n()) != kernel::kNone;
      }));
  if (is_matrix && !is_far) return FactorForm::kInPlace;
  if (!taken || uses < (is_matrix ? kUsesOfMatrix : 2)) {
    return FactorForm::kCopied;
  }
  lowered = std::move(made);
  return FactorForm::kPacked;
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
  const ProductTiles tiles = choose_tiles(tuning, product, accumulator(op), limits);
  const int64_t rows = rows_in_scratch(product, tiles, limits);
  int64_t bytes = Shape(tile_type(op, 0, limits), {rows, tiles.k}).byte_size() +
                  Shape(tile_type(op, 1, limits), {tiles.k, tiles.n()}).byte_size();
  const int64_t sums = Shape(accumulator(op), {rows, tiles.n()}).byte_size();
  const bool native = has_native_tiles(limits);
  if (!limits.private_memory || native) bytes += sums;
  const int64_t of_lane = sums / (tiles.lanes_m * tiles.lanes_n);
  const CostModel& cost = limits.cost;
  const bool too_private = sums > cost.private_bytes ||
                           (cost.lane_private_bytes > 0 && of_lane > cost.lane_private_bytes);
  if (bytes > limits.scratch_bytes || too_private) return false;
  LoweredOp made = lowered;
  FactorForm form = FactorForm::kCopied;
  if (native && lay_out_constant(made, fused, product, tiles, limits)) {
    form = FactorForm::kConstant;
  } else if (native) {
    TENON_ASSIGN(form, pack_factor(made, fused, product, tiles, limits, tuning));
  }
  if (tiles.parts > 1) {
    Dims dims = {tiles.parts};
    dims.insert(dims.end(), product.batch.begin(), product.batch.end());
    dims.insert(dims.end(), {product.m, product.n});
    made.temporaries.emplace_back(accumulator(op), dims);
  }
  TENON_ASSIGN(bool taken, try_kernel(made, fused.op, "_tiles", [&](KernelMaker& maker) {
                 ProductKernel(maker, fused, product, tiles, limits, form).run();
               }));
  if (taken && tiles.parts > 1) {
    TENON_ASSIGN(taken, try_kernel(made, fused.op, "_sums", [&](KernelMaker& maker) {
                   ProductKernel(maker, fused, product, tiles, limits, form).add_parts(tuning);
                 }));
  }
  if (taken) lowered = std::move(made);
  return taken;
}

}  // namespace tenon::hlo::lower
