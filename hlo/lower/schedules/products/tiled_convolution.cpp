// Tiled convolutions: implicit matrix products. The rows are the places of the result, the columns
// its features; elements of the input are gathered when a tile is loaded, and no copy of the input
// with its windows is ever in memory.
#include <algorithm>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/library_calls.h"
#include "hlo/lower/schedules/products/tiled_product.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

// Sizes of a convolution as a product.
//
// An input with gaps (input_dilation d) is taken by phases: of the results y = y' d + p with one p,
// a window has input only at the places k = k0(p) + t d. Each phase is a batch of the product, so
// that no zero between elements is multiplied.
struct ConvolutionSizes {
  explicit ConvolutionSizes(const Instruction& op) : c(convolution_of(op)) {
    const Dims& rhs = op.operand_type(1).dims();
    const Dims& out = op.result_type().dims();
    const auto at = [](const Dims& dims, int64_t axis) { return dims[static_cast<size_t>(axis)]; };
    groups = std::max(c.feature_groups, c.batch_groups);
    outputs = at(rhs, c.kernel.batch) / std::max<int64_t>(groups, 1);
    features = at(rhs, c.kernel.feature);
    places = {at(out, c.output.batch)};
    if (groups > 1) batch.push_back(groups);
    for (size_t s = 0; s < c.strides.size(); ++s) {
      const int64_t phase_count = c.kernel_dilation[s] == 1 ? c.input_dilation[s] : 1;
      phases.push_back(phase_count);
      if (phase_count > 1) batch.push_back(phase_count);
      places.push_back(tiles_of(at(out, c.output.spatial[s]), phase_count));
      window.push_back(at(rhs, c.kernel.spatial[s]));
      turns.push_back(tiles_of(window.back(), phase_count));
    }
    is_shallow = features < kShallow;
  }

  // Below this many features a tile goes across places of the window too.
  static constexpr int64_t kShallow = 8;

  program::Convolution c;
  int64_t groups = 1;
  int64_t outputs = 0;   // of a group
  int64_t features = 0;  // of the input, of a group
  Dims batch;            // the groups, then the phases of each dimension that has several
  Dims places;           // batch, spatial: of a phase
  Dims window;
  Dims phases;
  Dims turns;  // places of the window at which a phase has input
  bool is_shallow = false;

  int64_t depth() const { return element_count(turns) * features; }
};

class ConvolutionProduct final : public TiledProduct {
 public:
  explicit ConvolutionProduct(const Instruction& of)
      : ConvolutionProduct(of, ConvolutionSizes(of)) {}

  Element element(ElementEmitter& e, size_t side, const FactorPlace& place, ValueId inside,
                  ElementType type) const override {
    Values turn = place.outer;
    ValueId feature = place.k;
    if (sizes_.is_shallow) {
      Dims dims = sizes_.turns;
      dims.push_back(sizes_.features);
      turn = delinearize(e.b, place.k, dims);
      feature = turn.back();
      turn.pop_back();
    }
    WindowElement of;
    const Values at = place_of(e.b, place.batch, side == 0 ? place.free : e.b.index(0));
    of.batch = at[0];
    of.spatial = Values(at.begin() + 1, at.end());
    of.group = group_of(e.b, place.batch);
    of.in_window = window_of(e.b, place.batch, turn, inside);
    of.feature = feature;
    const Values index =
        side == 0 ? input_index(e.b, op, sizes_.c, of, sizes_.phases, inside)
                  : kernel_index(e.b, op, sizes_.c, of, output_of(e.b, place.batch, place.free));
    const auto load = [&] {
      return e.convert(e.element(op.operand(side), index), op.operand_type(side).element_type(),
                       type);
    };
    if (e.b.kernel().is_constant(inside)) return load();
    return e.if_else(inside, type, load, [&] { return e.constant(type, 0); });
  }

  Values result(Builder& b, const Values& in_batch, ValueId row, ValueId column) const override {
    const program::Convolution& c = sizes_.c;
    Values index(op.result_type().dims().size());
    const Values place = place_of(b, in_batch, row);
    index[static_cast<size_t>(c.output.batch)] = place[0];
    for (size_t s = 0; s < c.output.spatial.size(); ++s) {
      index[static_cast<size_t>(c.output.spatial[s])] = place[s + 1];
    }
    index[static_cast<size_t>(c.output.feature)] = output_of(b, in_batch, column);
    return index;
  }

  ValueId has_result(Builder& b, const Values& in_batch, ValueId row) const override {
    const Values place = place_of(b, in_batch, row);
    ValueId present = b.pred(true);
    for (size_t s = 0; s < sizes_.phases.size(); ++s) {
      const auto axis = static_cast<size_t>(sizes_.c.output.spatial[s]);
      const int64_t size = op.result_type().dims()[axis];
      if (size % sizes_.phases[s] == 0) continue;
      present = b.logical_and(present, b.compare(K::kLt, place[s + 1], b.index(size)));
    }
    return present;
  }

  // The later a dimension, the closer its elements.
  bool is_along_k(size_t side) const override {
    const program::Convolution& c = sizes_.c;
    if (side == 1) return c.kernel.feature > c.kernel.batch;
    return c.input.spatial.empty() || c.input.feature > c.input.spatial.back();
  }

 private:
  ConvolutionProduct(const Instruction& of, const ConvolutionSizes& sizes)
      : TiledProduct(of, sizes.batch, sizes.is_shallow ? Dims{} : sizes.turns,
                     element_count(sizes.places), sizes.outputs,
                     sizes.is_shallow ? sizes.depth() : sizes.features),
        sizes_(sizes) {}

  ValueId group_of(Builder& b, const Values& in_batch) const {
    return sizes_.groups > 1 ? in_batch[0] : b.index(0);
  }
  ValueId output_of(Builder& b, const Values& in_batch, ValueId column) const {
    return b.add(b.mul(group_of(b, in_batch), b.index(sizes_.outputs)), column);
  }
  ValueId phase_of(Builder& b, const Values& in_batch, size_t s) const {
    if (sizes_.phases[s] == 1) return b.index(0);
    size_t at = sizes_.groups > 1 ? 1 : 0;
    for (size_t before = 0; before < s; ++before) at += sizes_.phases[before] > 1 ? 1 : 0;
    return in_batch[at];
  }

  // The batch and the place of a result.
  Values place_of(Builder& b, const Values& in_batch, ValueId row) const {
    Values place = delinearize(b, row, sizes_.places);
    for (size_t s = 0; s < sizes_.phases.size(); ++s) {
      place[s + 1] =
          b.add(b.mul(place[s + 1], b.index(sizes_.phases[s])), phase_of(b, in_batch, s));
    }
    return place;
  }

  // The place in the window at a turn; narrows `inside` to the window.
  Values window_of(Builder& b, const Values& in_batch, const Values& turn, ValueId& inside) const {
    Values places = turn;
    for (size_t s = 0; s < turn.size(); ++s) {
      const int64_t d = sizes_.phases[s];
      if (d == 1) continue;
      // (y stride + k - low) is a multiple of d: k0 = (low - p stride) mod d.
      const auto modulo = [d](int64_t x) { return ((x % d) + d) % d; };
      const ValueId first =
          b.rem(b.add(b.mul(phase_of(b, in_batch, s), b.index(modulo(-sizes_.c.strides[s]))),
                      b.index(modulo(sizes_.c.padding_low[s]))),
                b.index(d));
      places[s] = b.add(b.mul(turn[s], b.index(d)), first);
      if (sizes_.window[s] % d != 0) {
        inside = b.logical_and(inside, b.compare(K::kLt, places[s], b.index(sizes_.window[s])));
      }
    }
    return places;
  }

  const ConvolutionSizes sizes_;
};

std::optional<double> estimate_tiled_convolution(const ScheduleInput& input) {
  const Instruction* op = input.fused.only(OpCode::kConvolution);
  if (op == nullptr) return std::nullopt;
  const ConvolutionSizes sizes(*op);
  // One element a lane multiplies the zeros between elements of the input.
  return estimate_tiled_product(
      input, *op, std::min({element_count(sizes.places), sizes.outputs, sizes.depth()}));
}

Taken emit_tiled_convolution(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                             const LowerLimits& limits) {
  return emit_tiled_product(lowered, fused, ConvolutionProduct(*fused.only(OpCode::kConvolution)),
                            tuning, limits);
}

}  // namespace

constinit const Schedule kTiledConvolution = {
    "tiled-convolution",
    "one convolution of real types, any dimension numbers, and in a fusion the ops before and "
    "behind it",
    "an implicit matrix product as by `tiled-dot`, with its parameters: the rows are places of the "
    "result, the columns its features; a tile of the input is gathered for each place of the "
    "window, with zeros for padding and gaps; of few features, across the window",
    {},
    estimate_tiled_convolution,
    emit_tiled_convolution};

}  // namespace tenon::hlo::lower
