// Tiled contractions: dot_general as a product by tiles.
#include <algorithm>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/products/tiled_product.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

class DotProduct final : public TiledProduct {
 public:
  explicit DotProduct(const Instruction& dot) : DotProduct(dot, DotShape(dot)) {}

  Element element(ElementEmitter& e, size_t side, const FactorPlace& place, ValueId inside,
                  ElementType type) const override {
    const auto load = [&] {
      const Dims& dims = side == 0 ? shape_.m : shape_.n;
      const Values index = shape_.factor(side, place.batch, delinearize(e.b, place.free, dims),
                                         delinearize(e.b, place.k, shape_.k));
      return e.convert(e.element(op.operand(side), index), op.operand_type(side).element_type(),
                       type);
    };
    if (is_true(e.b, inside)) return load();
    return e.if_else(inside, type, load, [&] { return e.constant(type, 0); });
  }

  Values result(Builder& b, const Values& in_batch, ValueId row, ValueId column) const override {
    Values index = in_batch;
    for (const ValueId i : delinearize(b, row, shape_.m)) index.push_back(i);
    for (const ValueId i : delinearize(b, column, shape_.n)) index.push_back(i);
    return index;
  }

  // The order of the tile.
  bool is_along_k(size_t side) const override { return side == 0; }

  // If the factor is in memory and has one dimension of each kind.
  bool copy(ElementEmitter& e, size_t side, MemoryId tile, const Dims& box,
            const FactorPlace& first, ElementType type) const override {
    const MemoryId source = e.memory_of(e.resolve(op.operand(side)));
    const bool fits = source != kernel::kNone && shape_.free[side].size() == 1 &&
                      shape_.k.size() == 1 && type == op.operand_type(side).element_type();
    if (!fits) return false;
    const auto free = static_cast<uint32_t>(shape_.free[side][0]);
    const auto contracting = static_cast<uint32_t>(shape_.contracting[side][0]);
    const std::vector<uint32_t> by = side == 0 ? std::vector<uint32_t>{free, contracting}
                                               : std::vector<uint32_t>{contracting, free};
    e.b.copy(box, tile, {e.b.index(0), e.b.index(0)}, {0, 1}, source,
             shape_.factor(side, first.batch, {first.free}, {first.k}), by, e.constant(type, 0).re);
    return true;
  }

 private:
  DotProduct(const Instruction& dot, const DotShape& shape)
      : TiledProduct(dot, shape.batch, {}, element_count(shape.m), element_count(shape.n),
                     element_count(shape.k)),
        shape_(shape) {}

  const DotShape shape_;
};

std::optional<double> estimate_tiled_dot(const ScheduleInput& input) {
  const Instruction* dot = input.fused.only(OpCode::kDotGeneral);
  if (dot == nullptr) return std::nullopt;
  const DotShape shape(*dot);
  return estimate_tiled_product(
      input, *dot,
      std::min({element_count(shape.m), element_count(shape.n), element_count(shape.k)}));
}

Taken emit_tiled_dot(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                     const LowerLimits& limits) {
  return emit_tiled_product(lowered, fused, DotProduct(*fused.only(OpCode::kDotGeneral)), tuning,
                            limits);
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
    kProductParameters,
    estimate_tiled_dot,
    emit_tiled_dot};

}  // namespace tenon::hlo::lower
