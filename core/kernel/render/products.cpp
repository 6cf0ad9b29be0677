// Products of tiles: a lane's results stay in registers while it runs along the contracted
// dimension, in vectors where one lane runs everything and the language has them.
#include <algorithm>

#include "core/kernel/legalize/tiles.h"
#include "core/kernel/render/statement_writer.h"

namespace tenon::kernel {
namespace {

// Sums in scratch, as schedules for wide registers have them.
bool has_scratch_sums(const Kernel& kernel, const Node& n) {
  const Memory& c = kernel.memory(n.memories[0]);
  return c.space == Space::kScratch && n.extents[0] > 0 && n.extents[1] > 0;
}

// The greatest divisor of `count` that is not above `most`.
int64_t block_of(int64_t count, int64_t most) {
  int64_t size = std::min(count, most);
  while (count % size != 0) --size;
  return size;
}

// Elements between the rows of a tile.
int64_t row_stride(const Memory& tile) { return *(tile.resolved_strides().end() - 2); }

}  // namespace

bool is_register_product(const Kernel& kernel, const Node& n) {
  if (n.op != OpCode::kContract || n.transpose_b) return false;
  const Memory& c = kernel.memory(n.memories[0]);
  const bool floats = c.type == ElementType::kF32 || c.type == ElementType::kF64;
  if (!floats || !c.strides.empty()) return false;
  if (!covers_private_sums(kernel, n) && !has_scratch_sums(kernel, n)) return false;
  return std::all_of(n.memories.begin() + 1, n.memories.end(), [&](MemoryId m) {
    const Memory& tile = kernel.memory(m);
    return tile.type == c.type && !tile.packed && tile.resolved_strides().back() == 1;
  });
}

Result<Kernel> legal_for_source(const Kernel& kernel, Language language) {
  TargetFeatures form = source_form(language);
  const auto keeps = [&](const Node& n) { return is_register_product(kernel, n); };
  if (std::ranges::none_of(kernel.nodes, keeps)) return legalize(kernel, form);
  form.tiles = true;
  form.private_memory = true;
  form.dimensions = true;
  return legalize(expand_tiles(kernel, /*registers=*/false, keeps), form);
}

SourceWriter::ProductBlocks SourceWriter::blocks_of(const Node& n) const {
  const Memory& c = kernel_.memory(n.memories[0]);
  if (c.space == Space::kPrivate) return {c.dims[0], c.dims[1], c.dims[2], c.dims[3], c.dims[3]};
  // As many sums as sixteen registers hold beside the factors.
  constexpr int64_t kRows = 6;
  constexpr int64_t kVectors = 2;
  constexpr int64_t kFewestColumns = 4;
  const int64_t width = has_lanes() ? 1 : vector_width(c.type, n.extents[1]);
  const int64_t columns = width == 1 ? block_of(n.extents[1], kFewestColumns)
                                     : width * block_of(n.extents[1] / width, kVectors);
  const int64_t rows = block_of(n.extents[0], kRows);
  return {n.extents[0] / rows, n.extents[1] / columns, rows, columns, row_stride(c)};
}

std::string SourceWriter::tile_text(const Node& n, size_t which) {
  size_t at = 0;
  for (size_t i = 0; i < which; ++i) {
    const Memory& before = kernel_.memory(n.memories[i]);
    at += before.space == Space::kPrivate ? 2 : before.dims.size();
  }
  const Dims strides = kernel_.memory(n.memories[which]).resolved_strides();
  std::string sum = memories_[n.memories[which]];
  for (size_t d = 0; d < strides.size(); ++d) {
    const ValueId start = n.operands[at + d];
    if (kernel_.is_constant(start) && kernel_.value(start).bits == 0) continue;
    sum += fmt::format(" + {} * {}", text(start), strides[d]);
  }
  return sum;
}

void SourceWriter::contract(const Node& n) {
  const ProductBlocks blocks = blocks_of(n);
  const std::string p = fresh();
  const std::string q = fresh();
  if (has_lanes()) {
    if (loaded_) barrier();
    const std::string place = fresh();
    line("for (int32_t {0} = lane; {0} < {1}; {0} += {2}) {{", place, blocks.down * blocks.across,
         lanes_);
    ++depth_;
    line("const {} {} = {} / {};", index_text(), p, place, blocks.across);
    line("const {} {} = {} % {};", index_text(), q, place, blocks.across);
    product_of_lane(n, p, q, fmt::format("{} / {}", place, lanes_));
    --depth_;
    line("}}");
    barrier();
    return;
  }
  line("for ({2} {0} = 0; {0} < {1}; ++{0}) {{", p, blocks.down, index_text());
  ++depth_;
  line("for ({2} {0} = 0; {0} < {1}; ++{0}) {{", q, blocks.across, index_text());
  ++depth_;
  product_of_lane(n, p, q, fmt::format("({} * {} + {})", p, blocks.across, q));
  for (int i = 0; i < 2; ++i) {
    --depth_;
    line("}}");
  }
}

void SourceWriter::product_of_lane(const Node& n, const std::string& p, const std::string& q,
                                   const std::string& part) {
  const Memory& c = kernel_.memory(n.memories[0]);
  const ProductBlocks blocks = blocks_of(n);
  const int64_t rows = blocks.rows;
  const int64_t columns = blocks.columns;
  const std::string_view element = type_text(c.type);
  const int64_t width = has_lanes() ? 1 : vector_width(c.type, columns);
  const std::string type = width == 1 ? std::string(element) : fmt::format("{}{}", element, width);
  const int64_t vectors = columns / width;
  const auto load = [&](const std::string& pointer) {
    return width == 1 ? fmt::format("*({})", pointer)
                      : fmt::format("vload{}(0, {})", width, pointer);
  };
  Names sums;
  for (int64_t i = 0; i < rows * vectors; ++i) sums.push_back(fresh());
  const std::string own =
      c.space == Space::kPrivate
          ? fmt::format("{} + {} * {}", memories_[n.memories[0]], part, rows * columns)
          : fmt::format("{} + {} * {} + {} * {}", tile_text(n, 0), p, rows * blocks.stride, q,
                        columns);
  const auto sum = [&](int64_t u, int64_t w) { return sums[static_cast<size_t>(u * vectors + w)]; };
  const auto for_each_sum = [&](const auto& body) {
    for (int64_t u = 0; u < rows; ++u) {
      for (int64_t w = 0; w < vectors; ++w) body(u, w, u * blocks.stride + w * width);
    }
  };
  for_each_sum([&](int64_t u, int64_t w, int64_t offset) {
    line("{} {} = {};", type, sum(u, w), load(fmt::format("{} + {}", own, offset)));
  });
  const std::string a = tile_text(n, 1);
  const std::string b = tile_text(n, 2);
  const std::string k = fresh();
  line("for ({2} {0} = 0; {0} < {1}; ++{0}) {{", k, n.extents[2], index_text());
  ++depth_;
  const int64_t a_stride = row_stride(kernel_.memory(n.memories[1]));
  const int64_t b_stride = row_stride(kernel_.memory(n.memories[2]));
  Names ys;
  for (int64_t w = 0; w < vectors; ++w) {
    ys.push_back(fresh());
    line("const {} {} = {};", type, ys.back(),
         load(fmt::format("{} + {} * {} + {} * {} + {}", b, k, b_stride, q, columns, w * width)));
  }
  const std::string fma =
      fmt::format("fma{}", c.type == ElementType::kF32 ? spelling_.suffix_f32 : "");
  for (int64_t u = 0; u < rows; ++u) {
    const std::string x = fresh();
    const std::string row = fmt::format("({} * {} + {})", p, rows, u);
    const std::string read = fmt::format("({})[{} * {} + {}]", a, n.transpose_a ? k : row, a_stride,
                                         n.transpose_a ? row : k);
    line("const {} {} = {};", type, x, width == 1 ? read : fmt::format("({})({})", type, read));
    for (int64_t w = 0; w < vectors; ++w) {
      line("{0} = {1}({2}, {3}, {0});", sum(u, w), fma, x, ys[static_cast<size_t>(w)]);
    }
  }
  --depth_;
  line("}}");
  for_each_sum([&](int64_t u, int64_t w, int64_t offset) {
    const std::string at = fmt::format("{} + {}", own, offset);
    width == 1 ? line("*({}) = {};", at, sum(u, w))
               : line("vstore{}({}, 0, {});", width, sum(u, w), at);
  });
}

int64_t SourceWriter::vector_width(ElementType type, int64_t count) const {
  int64_t width = 1;
  for (const int64_t wider : {2, 4, 8, 16}) {
    const bool fits = wider * bit_width(type) / 8 <= vector_bytes_ && count % wider == 0;
    if (spelling_.has_vectors && fits) width = wider;
  }
  return width;
}

}  // namespace tenon::kernel
