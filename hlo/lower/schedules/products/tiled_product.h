// hlo/lower/schedules/products/: sums of products (dot_general, convolution) by tiles.
//
// A workgroup computes a tile of the results in accumulators that its lanes own, from tiles of the
// factors that it copies into scratch. Ops before the product are computed when a tile is loaded,
// ops after it when results are stored. If the tiles are too few for the device, several workgroups
// share the depth of each, and a second kernel adds what they found.
#pragma once

#include <functional>
#include <optional>

#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {

/// An op as a product: result[batch, m, n] is the sum over `outer` and k of
/// factor 0[batch, m, outer, k] times factor 1[batch, n, outer, k].
class TiledProduct {
 public:
  /// The indices of elements of a factor; `free` is m or n.
  struct FactorPlace {
    Values batch;
    kernel::ValueId free = 0;
    Values outer;
    kernel::ValueId k = 0;
  };

  TiledProduct(const Instruction& of, Dims batches, Dims turns, int64_t rows, int64_t columns,
               int64_t depth)
      : op(of), batch(std::move(batches)), outer(std::move(turns)), m(rows), n(columns), k(depth) {}
  virtual ~TiledProduct() = default;

  /// An element of a factor in the type `type`, which is read only where `inside` is true; 0 where
  /// it is not.
  virtual Element element(ElementEmitter& e, size_t side, const FactorPlace& place,
                          kernel::ValueId inside, ElementType type) const = 0;
  /// The index of a result.
  virtual Values result(kernel::Builder& b, const Values& in_batch, kernel::ValueId row,
                        kernel::ValueId column) const = 0;
  /// Whether there is a result in this row: rows of a batch may have gaps.
  virtual kernel::ValueId has_result(kernel::Builder& b, const Values& /*in_batch*/,
                                     kernel::ValueId /*row*/) const {
    return b.pred(true);
  }
  /// Whether the sums of a batch have products at a place of `outer`; if not, no tile is brought.
  virtual kernel::ValueId has_products(kernel::Builder& b, const Values& /*in_batch*/,
                                       const Values& /*outer*/) const {
    return b.pred(true);
  }
  /// Whether elements with neighbouring k lie closer in memory than those with neighbouring m or n.
  virtual bool is_along_k(size_t side) const = 0;
  /// Adjacent rows that lie in one line of memory; a divisor of m. And the dimensions of k in the
  /// order of memory: tiles are brought by loops over both, which need no quotients.
  virtual int64_t line() const { return m; }
  virtual Dims depths() const { return {k}; }
  /// Whether results with neighbouring m lie closer in memory than those with neighbouring n.
  virtual bool is_result_along_m() const { return false; }
  /// Declares what element() reads beside the inputs. Before the grid.
  virtual void begin(KernelMaker&) const {}
  /// The memory in which tiles of factor 1, of these sizes, lie as matrices [k, n], so that nothing
  /// copies them; kNone if they do not. With it, the place of a tile.
  virtual kernel::MemoryId matrix(ElementEmitter&, int64_t /*tile_k*/, int64_t /*tile_n*/) const {
    return kernel::kNone;
  }
  virtual Values place_in_matrix(kernel::Builder&, const FactorPlace&) const { return {}; }
  /// The number of leading dimensions of `batch` that factor 1 depends on. If there are others, or
  /// several tiles of rows, it can be brought into the order of its tiles before all of them.
  virtual size_t own_batch() const { return batch.size(); }
  virtual bool may_pack() const { return false; }
  /// The elements of factor 1 if it is a constant that `fused`, the op or the fusion of it, alone
  /// reads, with zeros beyond its end. The dimensions are those of `batch` that the factor depends
  /// on, tiles of columns, `outer`, tiles of the depth, panels of a tile, its depth, columns of a
  /// panel.
  virtual std::optional<Literal> panels(const Instruction& /*fused*/, const Dims& /*dims*/) const {
    return std::nullopt;
  }
  /// Copies a tile that begins at `first` as one box, with zeros beyond the end; false if that is
  /// not possible.
  virtual bool copy(ElementEmitter&, size_t /*side*/, kernel::MemoryId /*tile*/,
                    const Dims& /*box*/, const FactorPlace& /*first*/, ElementType /*type*/) const {
    return false;
  }

  const Instruction& op;
  const Dims batch, outer;
  const int64_t m, n, k;
};

/// Whether `contract` keeps sums in wide registers, also those that lie in scratch: they do then,
/// where loops along vectors begin and finish them, and tiles have the sizes that waste least.
bool has_native_tiles(const LowerLimits& limits);

/// A product of this depth at most is one tile deep, where has_native_tiles().
inline constexpr int64_t kDeepestTile = 160;

/// The parameters of all products.
inline constexpr TuningParameterInfo kProductParameters[] = {
    {"lanes_m", "rows of lanes in a workgroup", 256, {1, 3, 8}},
    {"lanes_n", "columns of lanes in a workgroup", 256, {1, 5, 8}},
    {"each_m", "rows of results per lane", 256, {1, 2, 3}},
    {"each_n", "columns of results per lane", 256, {1, 2, 5}},
    {"tile_k", "depth of a tile", 1024, {1, 7, 8, 32}},
    {"split_k", "workgroups that share the depth of a tile of results", 256, {1, 2, 3}}};

/// The estimated time, if the types, the fusion and the target allow tiles of this product; `least`
/// is the least number of uses of an element of a tile.
std::optional<double> estimate_tiled_product(const ScheduleInput& input, const Instruction& op,
                                             int64_t least);
Taken emit_tiled_product(LoweredOp& lowered, const FusedOp& fused, const TiledProduct& product,
                         TuningParameters& tuning, const LowerLimits& limits);

}  // namespace tenon::hlo::lower
