// Tiled convolutions: implicit matrix products. The rows are the places of the result, the columns
// its features; elements of the input are gathered when a tile is loaded, and no copy of the input
// with its windows is ever in memory.
#include <algorithm>
#include <cstring>
#include <optional>

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
//
// With native tiles (`native`) loads follow memory: places of other dimensions than the one that is
// last in memory become batches, or tiles are of whole lines of them; with few features a tile has
// those of several places of the window.
struct ConvolutionSizes {
  ConvolutionSizes(const Instruction& op, bool native) : c(convolution_of(op)) {
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
    own_batch = batch.size();
    apart.assign(places.size(), false);
    joined = features < kShallow ? turns.size() : 0;
    if (native && !places.empty()) follow_memory(op.operand_type(0).rank() - 1);
  }

  // `last`: the last dimension of the input.
  void follow_memory(int64_t last) {
    const size_t spatial = c.strides.size();
    // One feature: places are adjacent too, in longer runs than a short row of the window is.
    along_places = groups == 1 && features == 1 && spatial > 0 && window.back() <= kShortRun &&
                   c.input.feature == last && c.input.spatial.back() == last - 1;
    if (along_places) --last;
    const bool along_features = c.input.feature == last;
    std::optional<size_t> kept;  // The place that tiles run along.
    if (along_features) {
      if (spatial > 0 && places.back() >= kLongLine) kept = spatial;
    } else if (c.input.batch == last) {
      if (groups == 1 && places[0] >= kShortLine) kept = 0;
    } else {
      const auto at =
          static_cast<size_t>(std::ranges::find(c.input.spatial, last) - c.input.spatial.begin());
      if (places[at + 1] >= kVeryLongLine) kept = at + 1;
    }
    for (size_t p = 0; kept && p < places.size(); ++p) {
      apart[p] = p != *kept;
      if (apart[p]) batch.push_back(places[p]);
    }
    const auto has_gaps = [](const Dims& dilations) {
      return std::ranges::any_of(dilations, [](int64_t each) { return each != 1; });
    };
    is_run = along_features && features < kShallow && groups == 1 && spatial > 0 &&
             c.input.spatial.back() == last - 1 && c.kernel_dilation.back() == 1 &&
             !has_gaps(c.input_dilation) &&
             !contains(c.reversed, static_cast<int64_t>(spatial) - 1);
    if (features >= kFewFeatures || spatial == 0 || (along_features && has_gaps(phases))) return;
    joined = is_run || !along_features ? 1 : 0;
    while (joined < spatial && joined_turns(joined + 1) * features <= kDeepestTile) ++joined;
    // Then k counts features alone.
    if (!is_run && along_features && joined_turns(joined) == 1) joined = 0;
  }

  // Lines of places from which tiles are within one: features are as close as they can be anyway.
  static constexpr int64_t kLongLine = 28;
  static constexpr int64_t kShortLine = 14;
  static constexpr int64_t kVeryLongLine = 64;
  static constexpr int64_t kFewFeatures = 64;

  static constexpr int64_t kShortRun = 4;

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
  Dims turns;                 // places of the window at which a phase has input
  size_t own_batch = 0;       // dimensions of `batch` that are no places
  std::vector<bool> apart;    // places that are batches
  size_t joined = 0;          // last dimensions of the window whose places k counts too
  bool is_run = false;        // whether the elements of the last one are adjacent in the input
  bool along_places = false;  // although features come last

  Dims turns_in_k(size_t dimensions) const {
    return {turns.end() - static_cast<std::ptrdiff_t>(dimensions), turns.end()};
  }
  int64_t joined_turns(size_t dimensions) const { return element_count(turns_in_k(dimensions)); }
  int64_t depth() const { return element_count(turns) * features; }
  int64_t row_count() const {
    int64_t count = 1;
    for (size_t p = 0; p < places.size(); ++p) count *= apart[p] ? 1 : places[p];
    return count;
  }
  Dims outer_turns() const {
    return {turns.begin(), turns.end() - static_cast<std::ptrdiff_t>(joined)};
  }
  int64_t depth_of_turn() const { return joined_turns(joined) * features; }
  // Rows that are one line of places, if tiles are of several.
  int64_t line() const {
    constexpr int64_t kShortest = 4;
    const bool has_lines = places.size() > 1 && std::ranges::find(apart, true) == apart.end() &&
                           places.back() >= kShortest;
    return has_lines ? places.back() : row_count();
  }
};

class ConvolutionProduct final : public TiledProduct {
 public:
  ConvolutionProduct(const Instruction& of, bool native)
      : ConvolutionProduct(of, ConvolutionSizes(of, native)) {}

  void begin(KernelMaker& maker) const override {
    line_ = kernel::kNone;
    if (!sizes_.is_run) return;
    const Value inside = op.operand(0), input = maker.e().resolve(inside);
    if (input != inside && inside.def->uses().size() != 1) return;  // Others in the fusion read it.
    Dims dims = op.operand_type(0).dims();
    const int64_t few = dims.back();
    dims.pop_back();
    dims.back() *= few;
    line_ = maker.reshaped_input(input, dims);
  }

  Element element(ElementEmitter& e, size_t side, const FactorPlace& place, ValueId inside,
                  ElementType type) const override {
    Values turn = place.outer;
    ValueId feature = place.k;
    if (line_ != kernel::kNone && side == 0) return element_of_line(e, place, inside, type);
    if (sizes_.joined > 0) {
      Dims dims = sizes_.turns_in_k(sizes_.joined);
      dims.push_back(sizes_.features);
      const Values at = delinearize(e.b, place.k, dims);
      turn.insert(turn.end(), at.begin(), at.end() - 1);
      feature = at.back();
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
    if (is_true(e.b, inside)) return load();
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

  // A phase may have fewer places of the window than others.
  ValueId has_products(Builder& b, const Values& in_batch, const Values& turn) const override {
    ValueId inside = b.pred(true);
    window_of(b, in_batch, turn, inside);
    return inside;
  }

  bool is_result_along_m() const override {
    const program::Convolution& c = sizes_.c;
    return c.output.feature != op.result_type().rank() - 1;
  }

  int64_t line() const override { return sizes_.line(); }
  Dims depths() const override {
    Dims dims = sizes_.turns_in_k(sizes_.joined);
    dims.push_back(sizes_.features);
    if (line_ == kernel::kNone) return dims;
    dims.pop_back();
    dims.back() *= sizes_.features;
    return dims;
  }

  size_t own_batch() const override { return sizes_.own_batch; }
  bool may_pack() const override { return true; }

  std::optional<Literal> panels(const Instruction& fused, const Dims& dims) const override {
    const Value filter = operand_of(fused, op.operand(1));
    const bool has_phases = std::ranges::any_of(sizes_.phases, [](int64_t d) { return d > 1; });
    if (has_phases || filter.def->code() != OpCode::kConstant || filter.def->uses().size() != 1 ||
        is_inline_constant(*filter.def)) {
      return std::nullopt;
    }
    const auto& dense = *filter.def->attr<DenseAttr>(AttrKey::value);
    return dense.is_splat() ? std::nullopt : std::optional(filter_in_panels(dense.values, dims));
  }

  // Whole tiles of a kernel whose last dimensions are the depth of a turn and the outputs.
  kernel::MemoryId matrix(ElementEmitter& e, int64_t tile_k, int64_t tile_n) const override {
    const program::Convolution& c = sizes_.c;
    const Type& type = op.operand_type(1);
    const bool joined = sizes_.joined == 1 && sizes_.features == 1;
    const int64_t deep = joined ? c.kernel.spatial.back() : c.kernel.feature;
    const bool fits = (joined || sizes_.joined == 0) && sizes_.own_batch == 0 &&
                      (!joined || c.reversed.empty()) && k % tile_k == 0 && n % tile_n == 0 &&
                      c.kernel.batch == type.rank() - 1 && deep == type.rank() - 2 &&
                      type.element_type() == accumulator(op);
    return fits ? e.memory_of(e.resolve(op.operand(1))) : kernel::kNone;
  }
  Values place_in_matrix(Builder& b, const FactorPlace& tile) const override {
    WindowElement of;
    of.in_window = tile.outer;
    of.feature = tile.k;
    if (sizes_.joined > 0) {
      of.in_window.push_back(tile.k);
      of.feature = b.index(0);
    }
    return kernel_index(b, op, sizes_.c, of, tile.free);
  }

  // The later a dimension, the closer its elements.
  bool is_along_k(size_t side) const override {
    const program::Convolution& c = sizes_.c;
    if (side == 1) return c.kernel.feature > c.kernel.batch;
    if (sizes_.along_places) return false;
    if (std::ranges::find(sizes_.apart, true) != sizes_.apart.end()) {
      return c.input.feature == op.operand_type(0).rank() - 1;
    }
    return c.input.spatial.empty() || c.input.feature > c.input.spatial.back();
  }

 private:
  ConvolutionProduct(const Instruction& of, const ConvolutionSizes& sizes)
      : TiledProduct(of, sizes.batch, sizes.outer_turns(), sizes.row_count(), sizes.outputs,
                     sizes.depth_of_turn()),
        sizes_(sizes) {}

  // The operand of the fusion that is a parameter of its body.
  static Value operand_of(const Instruction& fused, Value value) {
    for (size_t i = 0; fused.code() == OpCode::kFusion && i < fused.operand_count(); ++i) {
      if (fused.region(0).parameter(i) == value) return fused.operand(i);
    }
    return value;
  }

  // The place in a filter of output 0 of a group, at a turn and depth.
  int64_t place_in_filter(const Dims& strides, const Dims& dims, int64_t turn,
                          int64_t depth) const {
    const program::Convolution& c = sizes_.c;
    int64_t window = turn * sizes_.joined_turns(sizes_.joined) + depth / sizes_.features;
    int64_t place = depth % sizes_.features * strides[static_cast<size_t>(c.kernel.feature)];
    for (size_t s = c.kernel.spatial.size(); s-- > 0;) {
      const auto axis = static_cast<size_t>(c.kernel.spatial[s]);
      const int64_t at = window % dims[axis];
      window /= dims[axis];
      const bool reversed = contains(c.reversed, static_cast<int64_t>(s));
      place += (reversed ? dims[axis] - 1 - at : at) * strides[axis];
    }
    return place;
  }

  Literal filter_in_panels(const Literal& filter, const Dims& dims) const {
    const Dims strides = row_major_strides(filter.shape().dims());
    const int64_t apart = strides[static_cast<size_t>(sizes_.c.kernel.batch)];
    const auto from_end = [&](size_t d) { return dims[dims.size() - d]; };
    const int64_t columns = from_end(1), deep = from_end(2), panels = from_end(3);
    const int64_t turns = element_count(sizes_.outer_turns());
    const size_t unit = storage_bytes(filter.element_type());
    Literal result(Shape(filter.element_type(), dims));
    const std::byte* const from = filter.data().data();
    std::byte* to = result.mutable_data().data();
    const int64_t rows = element_count(dims) / columns;
    for (int64_t row = 0; row < rows; ++row, to += static_cast<size_t>(columns) * unit) {
      int64_t rest = row;
      const auto next = [&](int64_t extent) {
        const int64_t index = rest % extent;
        rest /= extent;
        return index;
      };
      const int64_t in_tile = next(deep), panel = next(panels);
      const int64_t depth = next(from_end(4)) * deep + in_tile, turn = next(turns);
      const int64_t first = (next(dims[sizes_.own_batch]) * panels + panel) * columns, group = rest;
      if (depth >= sizes_.depth_of_turn() || first >= sizes_.outputs) continue;
      const int64_t place = place_in_filter(strides, filter.shape().dims(), turn, depth) +
                            (group * sizes_.outputs + first) * apart;
      const auto count =
          static_cast<size_t>(std::clamp<int64_t>(sizes_.outputs - first, 0, columns));
      for (size_t j = 0; j < (apart == 1 ? 1 : count); ++j) {
        const auto source = static_cast<size_t>(place) + j * static_cast<size_t>(apart);
        std::memcpy(to + j * unit, from + source * unit, apart == 1 ? count * unit : unit);
      }
    }
    return result;
  }

  // An element of an input whose last place and features are one dimension, so that elements with
  // neighbouring k are neighbours; padding is before and behind it.
  Element element_of_line(ElementEmitter& e, const FactorPlace& place, ValueId inside,
                          ElementType type) const {
    Builder& b = e.b;
    const program::Convolution& c = sizes_.c;
    const Dims& dims = op.operand_type(0).dims();
    const Values at = place_of(b, place.batch, place.free);
    const size_t last = c.strides.size() - 1;
    Values turn = place.outer;
    const Values in_k = delinearize(b, place.k, depths());
    turn.insert(turn.end(), in_k.begin(), in_k.end());
    Values index(dims.size() - 1);
    index[static_cast<size_t>(c.input.batch)] = at[0];
    ValueId within = b.pred(true), part = b.pred(true);
    for (size_t s = 0; s <= last; ++s) {
      const int64_t wide = s == last ? sizes_.features : 1;
      const ValueId in_window = s == last ? turn[s] : b.mul(turn[s], b.index(c.kernel_dilation[s]));
      const ValueId from =
          b.sub(b.mul(at[s + 1], b.index(c.strides[s] * wide)), b.index(c.padding_low[s] * wide));
      const auto axis = static_cast<size_t>(c.input.spatial[s]);
      const int64_t size = dims[axis] * wide;
      index[axis] = b.add(from, in_window);
      if (s == last) {
        within = in_bounds(b, from, std::max<int64_t>(size - depths().back() + 1, 0));
        part = in_bounds(b, index[axis], size);
      } else {
        inside = b.logical_and(inside, in_bounds(b, index[axis], size));
      }
    }
    const auto load = [&] {
      return e.convert({b.load(line_, index)}, op.operand_type(0).element_type(), type);
    };
    const auto zero = [&] { return e.constant(type, 0); };
    const auto at_edge = [&] { return e.if_else(b.logical_and(inside, part), type, load, zero); };
    if (is_true(b, within)) return is_true(b, inside) ? load() : at_edge();
    // A whole run has a condition of its own, which is the same for all its elements.
    return e.if_else(b.logical_and(inside, within), type, load, at_edge);
  }

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
    Values place(sizes_.places.size());
    Dims together;
    for (size_t p = 0; p < place.size(); ++p) {
      if (!sizes_.apart[p]) together.push_back(sizes_.places[p]);
    }
    const Values in_row = delinearize(b, row, together);
    size_t next_batch = sizes_.own_batch;
    size_t next = 0;
    for (size_t p = 0; p < place.size(); ++p) {
      place[p] = sizes_.apart[p] ? in_batch[next_batch++] : in_row[next++];
    }
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
  // The input with its last place and features as one dimension, in the kernel that is being made.
  mutable kernel::MemoryId line_ = kernel::kNone;
};

std::optional<double> estimate_tiled_convolution(const ScheduleInput& input) {
  const Instruction* op = input.fused.only(OpCode::kConvolution);
  if (op == nullptr) return std::nullopt;
  const ConvolutionSizes sizes(*op, false);
  const int64_t least = std::min({element_count(sizes.places), sizes.outputs, sizes.depth()});
  // One element a lane multiplies the zeros between elements of the input too; tiles take the
  // places of the window alone that meet elements.
  int64_t spared = 1;
  for (size_t s = 0; s < sizes.phases.size(); ++s) {
    spared *= std::max<int64_t>(1, std::min(sizes.phases[s], sizes.window[s]));
  }
  return estimate_tiled_product(input, *op, least * spared);
}

Taken emit_tiled_convolution(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                             const LowerLimits& limits) {
  const ConvolutionProduct product(*fused.only(OpCode::kConvolution), has_native_tiles(limits));
  return emit_tiled_product(lowered, fused, product, tuning, limits);
}

}  // namespace

constinit const Schedule kTiledConvolution = {
    "tiled-convolution",
    "one convolution of real types, any dimension numbers, and in a fusion the ops before and "
    "behind it",
    "an implicit matrix product as by `tiled-dot`, with its parameters: the rows are places of the "
    "result, the columns its features; a tile of the input is gathered for each place of the "
    "window, with zeros for padding and gaps; of few features, across the window; where `contract` "
    "has wide registers, tiles run along the input's last dimension, and a filter is read where it "
    "lies, or brought into the order of its tiles once; a constant one as the program is compiled",
    {},
    estimate_tiled_convolution,
    emit_tiled_convolution};

}  // namespace tenon::hlo::lower
