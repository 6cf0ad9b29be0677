#include "backends/cpu/contraction/matrix_packing.h"

namespace tenon::cpu {

using codegen::emit_branch;
using codegen::emit_loop;
using codegen::LlvmValues;
using codegen::number;
using llvm::Value;

namespace {

using enum ElementType;

// The bits of bf16 are copied.
ElementType stored_of(ElementType type) { return type == kBF16 ? kU16 : type; }
ElementType packed_of(ElementType type, MatrixUnit unit) {
  return unit == MatrixUnit::kDotsWords ? kS16 : stored_of(type);
}

// a0 b0 a1 b1 …
Value* interleave(llvm::IRBuilderBase& b, Value* x, Value* y) {
  const auto lanes =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  std::vector<int> places;
  for (int lane = 0; lane < lanes; ++lane) {
    places.push_back(lane);
    places.push_back(lanes + lane);
  }
  return b.CreateShuffleVector(x, y, places);
}

llvm::FixedVectorType* groups_type(llvm::IRBuilderBase& b, int64_t count) {
  return llvm::FixedVectorType::get(b.getInt32Ty(), static_cast<unsigned>(count));
}

}  // namespace

MatrixPacking::MatrixPacking(llvm::IRBuilderBase& builder, const MatrixLines& lines,
                             MatrixUnit unit, bool by_groups, const MatrixTilePlaces& places)
    : b_(builder),
      l_(lines),
      group_(matrix_group(unit)),
      by_groups_(by_groups),
      places_(places),
      elements_(builder, stored_of(lines.type), packed_of(lines.type, unit)) {}

void MatrixPacking::tiles(Value* to, Value* from, Value* used, Value* count) const {
  if (!by_groups_ && l_.product == 1) return copy_lines(to, from, used, count);
  if (by_groups_ && l_.line == 1) return copy_groups(to, from, used, count);
  transpose_tiles(to, from, used, count);
}

Value* MatrixPacking::source(Value* from, Value* line, Value* k) const {
  Value* const lines = b_.CreateMul(line, number(b_, l_.line));
  return elements_.at(from, b_.CreateAdd(lines, b_.CreateMul(k, number(b_, l_.product))));
}

Value* MatrixPacking::tile_at(Value* to, Value* line, Value* k) const {
  Value* const tile = b_.CreateUDiv(line, number(b_, kMatrixLines));
  Value* const side = number(b_, places_.side_by_side);
  Value* const panel = b_.CreateMul(b_.CreateUDiv(tile, side), number(b_, places_.panel_step));
  Value* const in_panel = b_.CreateMul(b_.CreateURem(tile, side), number(b_, kMatrixTileBytes));
  Value* const step =
      b_.CreateMul(b_.CreateUDiv(k, number(b_, products())), number(b_, places_.product_step));
  return b_.CreateGEP(b_.getInt8Ty(), to, b_.CreateAdd(b_.CreateAdd(panel, in_panel), step));
}

void MatrixPacking::store(Value* vector, Value* tile, Value* index) const {
  Value* const line = b_.CreateMul(index, number(b_, kCacheLineBytes));
  b_.CreateAlignedStore(vector, b_.CreateGEP(b_.getInt8Ty(), tile, line),
                        llvm::Align(kCacheLineBytes));
}

// Calls body for each `step` below `end`, then for the rest, of which `left` are there; there is
// none if `total`, of which the range is a part that begins at a multiple of `step`, has none.
void MatrixPacking::each(Value* end, int64_t step, int64_t total, const Body& body) const {
  Value* const whole =
      total % step == 0 ? end : b_.CreateSub(end, b_.CreateURem(end, number(b_, step)));
  emit_loop(b_, number(b_, 0), whole, step, {}, [&](Value* at, const LlvmValues&) {
    body(at, nullptr);
    return LlvmValues{};
  });
  if (total % step == 0) return;
  emit_branch(
      b_, b_.CreateICmpSLT(whole, end), [&] { body(whole, b_.CreateSub(end, whole)); }, [] {});
}

// Copies one line after the other, along memory.
void MatrixPacking::copy_lines(Value* to, Value* from, Value* used, Value* count) const {
  emit_loop(b_, number(b_, 0), used, 1, {}, [&](Value* line, const LlvmValues&) {
    each(count, products(), l_.products, [&](Value* k, Value* left) {
      Value* const mask = left == nullptr ? nullptr : mask_of(b_, left, products());
      Value* const vector = elements_.load(source(from, line, k), products(), mask);
      store(b_.CreateBitCast(vector, groups_type(b_, kMatrixLines)), tile_at(to, line, k),
            b_.CreateURem(line, number(b_, kMatrixLines)));
    });
    return LlvmValues{};
  });
}

// Copies one group of all lines after the other, along memory.
void MatrixPacking::copy_groups(Value* to, Value* from, Value* used, Value* count) const {
  constexpr int64_t kGroupsAhead = 8;
  const int64_t abreast = places_.side_by_side * kMatrixLines;
  const auto copy = [&](Value* k, Value* products_left) {
    Value* const group =
        b_.CreateURem(b_.CreateUDiv(k, number(b_, group_)), number(b_, kMatrixLines));
    each(used, abreast, l_.lines, [&](Value* line, Value* left) {
      Value* const place = source(from, line, k);
      if (products_left == nullptr) {
        for (int64_t e = 0; e < group_; ++e) {
          prefetch(b_, elements_.at(place, (kGroupsAhead * group_ + e) * l_.product),
                   CacheLevel::kNearest);
        }
      }
      const LlvmValues vectors = interleaved(place, abreast, {left, products_left});
      Value* const tile = tile_at(to, line, k);
      for (size_t i = 0; i < vectors.size(); ++i) {
        store(vectors[i], b_.CreateConstGEP1_64(b_.getInt8Ty(), tile, i * size_t{kMatrixTileBytes}),
              group);
      }
    });
  };
  each(count, group_, l_.products, [&](Value* k, Value* left) { copy(k, left); });
  if (l_.products % products() == 0) return;
  // Groups of zeros fill the last tile.
  const auto up = [&](Value* x, int64_t step) {
    return b_.CreateAnd(b_.CreateAdd(x, number(b_, step - 1)), number(b_, -step));
  };
  emit_loop(b_, up(count, group_), up(count, products()), group_, {},
            [&](Value* k, const LlvmValues&) {
              copy(k, number(b_, 0));
              return LlvmValues{};
            });
}

void MatrixPacking::transpose_tiles(Value* to, Value* from, Value* used, Value* count) const {
  const auto tile = [&](Value* line, Value* k, const TilePart& part) {
    Value* const place = source(from, line, k);
    LlvmValues vectors =
        by_groups_ ? vectors_of_lines(place, part) : vectors_of_groups(place, part);
    codegen::transpose(b_, vectors);
    Value* const at = tile_at(to, line, k);
    for (size_t i = 0; i < vectors.size(); ++i) store(vectors[i], at, b_.getInt64(i));
  };
  // Along memory as far as it goes.
  if (l_.product == 1) {
    each(used, kMatrixLines, l_.lines, [&](Value* line, Value* lines) {
      each(count, products(), l_.products,
           [&](Value* k, Value* left) { tile(line, k, {lines, left}); });
    });
  } else {
    each(count, products(), l_.products, [&](Value* k, Value* left) {
      each(used, kMatrixLines, l_.lines,
           [&](Value* line, Value* lines) { tile(line, k, {lines, left}); });
    });
  }
}

LlvmValues MatrixPacking::vectors_of_lines(Value* from, const TilePart& part) const {
  Value* const mask = part.products == nullptr ? nullptr : mask_of(b_, part.products, products());
  LlvmValues vectors;
  for (int64_t i = 0; i < kMatrixLines; ++i) {
    Value* of_line = mask;
    if (part.lines != nullptr) {
      Value* const exists = b_.CreateVectorSplat(static_cast<unsigned>(products()),
                                                 b_.CreateICmpSLT(number(b_, i), part.lines));
      of_line = mask == nullptr ? exists : b_.CreateAnd(exists, mask);
    }
    Value* const line = elements_.load(elements_.at(from, i * l_.line), products(), of_line);
    vectors.push_back(b_.CreateBitCast(line, groups_type(b_, kMatrixLines)));
  }
  return vectors;
}

LlvmValues MatrixPacking::vectors_of_groups(Value* from, const TilePart& part) const {
  LlvmValues vectors;
  for (int64_t g = 0; g < kMatrixLines; ++g) {
    TilePart of_group = part;
    if (part.products != nullptr) {
      of_group.products = b_.CreateSub(part.products, number(b_, g * group_));
    }
    vectors.push_back(
        interleaved(elements_.at(from, g * group_ * l_.product), kMatrixLines, of_group)[0]);
  }
  return vectors;
}

// A group of each of so many lines, as vectors of 16.
LlvmValues MatrixPacking::interleaved(Value* from, int64_t lines, const TilePart& part) const {
  Value* const exist = part.lines == nullptr ? nullptr : mask_of(b_, part.lines, lines);
  LlvmValues parts;
  for (int64_t e = 0; e < group_; ++e) {
    Value* mask = exist;
    if (part.products != nullptr) {
      Value* const exists = b_.CreateVectorSplat(static_cast<unsigned>(lines),
                                                 b_.CreateICmpSLT(number(b_, e), part.products));
      mask = exist == nullptr ? exists : b_.CreateAnd(exists, exist);
    }
    parts.push_back(elements_.load(elements_.at(from, e * l_.product), lines, mask));
  }
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    // Pairs of words follow pairs of bytes.
    for (size_t i = 0; i < parts.size() / 2; ++i)
      parts[i] = interleave(b_, parts[2 * i], parts[2 * i + 1]);
    auto* const type = llvm::cast<llvm::FixedVectorType>(parts[0]->getType());
    auto* const wider = llvm::FixedVectorType::get(b_.getIntNTy(2 * type->getScalarSizeInBits()),
                                                   type->getNumElements() / 2);
    for (size_t i = 0; i < parts.size() / 2; ++i) parts[i] = b_.CreateBitCast(parts[i], wider);
  }
  LlvmValues vectors;
  for (int64_t at = 0; at < lines; at += kMatrixLines) {
    std::vector<int> places;
    for (int64_t i = 0; i < kMatrixLines; ++i) places.push_back(static_cast<int>(at + i));
    vectors.push_back(b_.CreateShuffleVector(parts[0], places));
  }
  return vectors;
}

}  // namespace tenon::cpu
