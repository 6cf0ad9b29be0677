// Tiled transposes: if adjacent elements in a row of the result are not adjacent in an operand, a
// tile of the operand is copied into scratch by its rows, so that both are accessed in order.
#include <algorithm>

#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::MemoryId;

// A transpose of a value in memory, whose minor dimension becomes dimension `across` of the result.
struct Transposed {
  const Instruction* op = nullptr;
  size_t across = 0;
};

// The transposes that can share tiles: with the shape of all results and the same dimension across.
std::vector<Transposed> transposes_of(const FusedOp& fused, const ElementEmitter& e) {
  std::vector<Transposed> found;
  if (fused.results.empty()) return found;
  const Dims& dims = fused.results[0].type().dims();
  for (const Value result : fused.results) {
    if (result.type().dims() != dims) return found;
  }
  for (const Instruction* op : fused.inner) {
    if (op->code() != OpCode::kTranspose || op->result_type().dims() != dims) continue;
    if (e.memory_of(e.resolve(op->operand(0))) == kernel::kNone) continue;
    const I64s& permutation = op->i64s(AttrKey::permutation);
    const auto rank = static_cast<int64_t>(permutation.size());
    const auto across =
        static_cast<size_t>(std::ranges::find(permutation, rank - 1) - permutation.begin());
    const bool fits = found.empty() || found[0].across == across;
    if (rank >= 2 && across + 1 != permutation.size() && fits) found.push_back({op, across});
  }
  return found;
}

class TransposeKernel {
 public:
  TransposeKernel(KernelMaker& maker, const FusedOp& fused, int64_t along, int64_t across)
      : maker_(maker), fused_(fused), tile_along_(along), tile_across_(across) {}

  void run() {
    kernel::Builder& b = maker_.b();
    maker_.inputs();
    std::vector<uint32_t> all;
    std::vector<MemoryId> memories;
    for (uint32_t r = 0; r < fused_.results.size(); ++r) {
      all.push_back(r);
      memories.push_back(maker_.result(r));
    }
    const std::vector<Transposed> transposes = transposes_of(fused_, maker_.e());
    const Dims& dims = fused_.results[0].type().dims();
    const size_t along = dims.size() - 1;
    const size_t across = transposes[0].across;
    Dims grid = dims;
    grid[along] = tiles_of(dims[along], tile_along_);
    grid[across] = tiles_of(dims[across], tile_across_);
    Values start = b.grid(grid);
    start[along] = b.mul(start[along], b.index(tile_along_));
    start[across] = b.mul(start[across], b.index(tile_across_));
    std::vector<Tile> tiles;
    for (const Transposed& t : transposes) {
      const bool complex = is_complex(t.op->result_type().element_type());
      tiles.push_back(complex ? tile_of_parts(*t.op, start, across) : tile(*t.op, start));
    }
    const auto read_by_columns = [&](bool checks) {
      b.lanes({tile_across_, tile_along_}, [&](const Values& lane) {
        Values index = start;
        index[across] = b.add(start[across], lane[0]);
        index[along] = b.add(start[along], lane[1]);
        const auto store = [&] {
          for (size_t i = 0; i < transposes.size(); ++i) {
            const Instruction& op = *transposes[i].op;
            Element x = {b.load(tiles[i].re, {lane[1], lane[0]})};
            if (tiles[i].im != kernel::kNone) x.im = b.load(tiles[i].im, {lane[1], lane[0]});
            maker_.e().provide(op, index, {x});
          }
          store_results(maker_, fused_, all, memories, index);
        };
        if (!checks) return store();
        if_inside(
            b,
            {{index[across], dims[across], tile_across_}, {index[along], dims[along], tile_along_}},
            store);
      });
    };
    // Tiles inside the array, which nearly all are, have no checks: a CPU transposes them in
    // registers.
    if_whole(
        b, {{start[across], dims[across], tile_across_}, {start[along], dims[along], tile_along_}},
        [&] { read_by_columns(false); }, [&] { read_by_columns(true); });
  }

 private:
  // A tile of the operand: as many rows as the tile is long, padded by one element so that neither
  // direction of access always hits the same memory bank. Parts of complex numbers lie apart, so
  // that each is contiguous.
  struct Tile {
    MemoryId re = kernel::kNone;
    MemoryId im = kernel::kNone;
  };

  MemoryId scratch(const Instruction& op) {
    const ElementType type = op.result_type().element_type();
    const Type part = Type::tensor(is_complex(type) ? complex_part(type) : type, {});
    return maker_.b().scratch("tile", memory_type(part), {tile_along_, tile_across_ + 1});
  }

  // The place in the operand of element `index` of the result.
  static Values place_of(const Instruction& op, const Values& index) {
    const I64s& permutation = op.i64s(AttrKey::permutation);
    Values place(permutation.size());
    for (size_t d = 0; d < permutation.size(); ++d) {
      place[static_cast<size_t>(permutation[d])] = index[d];
    }
    return place;
  }

  Tile tile(const Instruction& op, const Values& start) {
    kernel::Builder& b = maker_.b();
    const ElementEmitter& e = maker_.e();
    const I64s& permutation = op.i64s(AttrKey::permutation);
    const MemoryId tile = scratch(op);
    b.copy(
        {tile_along_, tile_across_}, tile, {b.index(0), b.index(0)}, {0, 1},
        e.memory_of(e.resolve(op.operand(0))), place_of(op, start),
        {static_cast<uint32_t>(permutation.back()), static_cast<uint32_t>(permutation.size() - 1)},
        b.constant(memory_type(op.result_type()), 0));
    return {tile};
  }

  Tile tile_of_parts(const Instruction& op, const Values& start, size_t across) {
    kernel::Builder& b = maker_.b();
    const Tile tile = {scratch(op), scratch(op)};
    const Dims& dims = op.result_type().dims();
    b.lanes({tile_along_, tile_across_}, [&](const Values& lane) {
      Values index = start;
      index.back() = b.add(index.back(), lane[0]);
      index[across] = b.add(index[across], lane[1]);
      if_inside(
          b,
          {{index.back(), dims.back(), tile_along_}, {index[across], dims[across], tile_across_}},
          [&] {
            const Element x = maker_.e().element(op.operand(0), place_of(op, index));
            b.store(x.re, tile.re, lane);
            b.store(x.im, tile.im, lane);
          });
    });
    return tile;
  }

  KernelMaker& maker_;
  const FusedOp& fused_;
  int64_t tile_along_;
  int64_t tile_across_;
};

constexpr TuningParameterInfo kTransposeParameters[] = {
    {"tile_along", "size of a tile along the rows of the result", 1024, {1, 3, 16, 64}},
    {"tile_across", "size of a tile across them", 1024, {1, 5, 16}}};

std::vector<Transposed> transposes_of(const FusedOp& fused, const LoweredOp& lowered) {
  if (fused.results.empty() || element_count(fused.results[0].type().dims()) == 0) return {};
  KernelMaker probe(fused.op, lowered, "probe", ElementType::kS32);
  probe.inputs();
  return transposes_of(fused, probe.e());
}

std::optional<double> estimate_tiled_transpose(const ScheduleInput& input) {
  const bool any = std::ranges::any_of(
      input.fused.inner, [](const Instruction* op) { return op->code() == OpCode::kTranspose; });
  if (!any) return std::nullopt;
  const std::vector<Transposed> found = transposes_of(input.fused, input.lowered);
  if (found.empty()) return std::nullopt;
  // A reduction in the fusion would be computed again for each element.
  const Dims& dims = input.fused.results[0].type().dims();
  if (input.fused.combines(nullptr) || lanes_have_rows(input.fused, dims, input.limits))
    return 2 * input.elements_seconds;
  const CostModel& cost = input.limits.cost;
  const int64_t across = dims[found[0].across];
  // Short rows that become long ones: lanes that are vectors take a tile apart in registers.
  const bool from_short = input.limits.vector_bytes >= cost.wide_register &&
                          dims.back() >= cost.tiled_transpose && across < cost.tiled_transpose;
  const int64_t least = from_short ? cost.tiled_short_rows : cost.tiled_transpose;
  return input.elements_seconds * static_cast<double>(least) /
         static_cast<double>(std::min(dims.back(), across));
}

constexpr int64_t kUsualTile = 32;

// On a unit of one lane, where tiles need no given number of lanes: one that leaves no rest, best
// of whole registers.
int64_t size_of_tile(int64_t extent, const CostModel& cost) {
  constexpr int64_t kLeast = 20, kMost = 48, kMostWhole = 64;
  constexpr int64_t kFewTiles = 16;  // more, and their rest matters little
  constexpr int64_t kRegister = 8;
  if (cost.busy_lanes > 1 || extent % kUsualTile == 0 || extent > kFewTiles * kUsualTile)
    return kUsualTile;
  if (extent <= kMost) return extent;
  for (const int64_t multiple : {2 * kRegister, kRegister, int64_t{1}}) {
    for (int64_t size = multiple == 1 ? kMost : kMostWhole; size >= kLeast; --size) {
      if (extent % size == 0 && size % multiple == 0) return size;
    }
  }
  return kUsualTile;
}

Taken emit_tiled_transpose(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                           const LowerLimits& limits) {
  const std::vector<Transposed> found = transposes_of(fused, lowered);
  const Dims& dims = fused.results[0].type().dims();
  const auto size = [&](size_t d) { return size_of_tile(dims[d], limits.cost); };
  int64_t element = 0;
  for (const Transposed& t : found)
    element += Shape(t.op->result_type().element_type(), {}).byte_size();
  const auto bytes_of = [&](int64_t rows, int64_t columns) {
    return element * rows * (columns + 1);
  };
  int64_t along = size(dims.size() - 1), across = size(found[0].across);
  if (bytes_of(along, across) > limits.scratch_bytes) along = across = kUsualTile;
  along = tuning.choose(kTransposeParameters[0], along);
  across = tuning.choose(kTransposeParameters[1], across);
  const int64_t bytes = bytes_of(along, across);
  if (bytes > limits.scratch_bytes) return false;
  return try_kernel(lowered, fused.op, "_tiles", [&](KernelMaker& maker) {
    TransposeKernel(maker, fused, along, across).run();
  });
}

}  // namespace

constinit const Schedule kTiledTranspose = {
    "tiled-transpose",
    "ops on transposed operands",
    "a tile comes in by rows and is read by columns, one element more a row against bank conflicts",
    kTransposeParameters,
    estimate_tiled_transpose,
    emit_tiled_transpose};

}  // namespace tenon::hlo::lower
