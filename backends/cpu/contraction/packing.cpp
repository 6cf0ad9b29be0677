#include "backends/cpu/contraction/packing.h"

#include <algorithm>

#include "backends/llvm/loops.h"

namespace tenon::cpu {

using codegen::emit_branch;
using codegen::number;
using llvm::Value;

namespace {

Value* times(llvm::IRBuilderBase& b, Value* x, int64_t by) {
  return b.CreateMul(x, number(b, by), "", false, true);
}

void each(llvm::IRBuilderBase& b, Value* low, Value* high, int64_t step,
          const std::function<void(Value*)>& body) {
  codegen::emit_loop(b, low, high, step, {}, [&](Value* i, const codegen::LlvmValues&) {
    body(i);
    return codegen::LlvmValues{};
  });
}

}  // namespace

Packing::Packing(llvm::IRBuilderBase& builder, const ContractionLoops& loops, const Tiling& tiling)
    : b_(builder),
      row_(loops.rows.back()),
      column_(loops.columns.back()),
      sum_(loops.sums[0]),
      t_(tiling),
      lhs_(builder, loops.lhs, loops.sum),
      rhs_(builder, loops.rhs, loops.sum),
      packed_(builder, loops.sum, loops.sum) {}

// Rows, tiles of rows and panels are padded, so that they begin in different sets of the cache.
int64_t Packing::line() const { return std::max<int64_t>(kCacheLineBytes / packed_.bytes(), 1); }
int64_t Packing::lhs_row() const { return is_across() ? 1 : t_.sums_a_block + t_.width; }
int64_t Packing::lhs_sum() const { return is_across() ? divided(t_.rows, t_.width) * t_.width : 1; }
int64_t Packing::panel_bytes() const {
  return (t_.sums_a_block * t_.columns() + line()) * packed_.bytes();
}
Value* Packing::panel_at(Value* to, Value* column) const {
  Value* const panels = b_.CreateUDiv(column, number(b_, t_.columns()), "", true);
  return packed_.at(to,
                    b_.CreateAdd(times(b_, column, t_.sums_a_block), times(b_, panels, line())));
}
int64_t Packing::lhs_tile() const {
  return is_across() ? t_.sums_a_block * lhs_sum() + line() : t_.rows * lhs_row();
}
int64_t Packing::lhs_bytes() const { return t_.tiles_packed * lhs_tile() * packed_.bytes(); }

void Packing::panels(Value* to, Value* from, Value* left, Value* used, Value* count) const {
  if (column_.rhs == 1) return abreast(to, from, used, count);
  each(b_, number(b_, 0), used, t_.columns(), [&](Value* column) {
    panel(panel_at(to, column), rhs_.at(from, times(b_, column, column_.rhs)),
          b_.CreateSub(left, column), count);
  });
}

// Packs one line of all panels after the other, along memory: a panel's lines alone are too short
// for the processor to follow.
void Packing::abreast(Value* to, Value* from, Value* used, Value* count) const {
  constexpr int64_t kLinesAhead = 8;
  const int64_t odd = column_.extent % t_.columns();
  Value* const whole =
      odd == 0 ? used : b_.CreateSub(used, b_.CreateURem(used, number(b_, t_.columns())));
  each(b_, number(b_, 0), count, 1, [&](Value* k) {
    Value* const source = rhs_.at(from, times(b_, k, sum_.rhs));
    Value* const target = packed_.at(to, times(b_, k, t_.columns()));
    const auto pack = [&](Value* column, int64_t exist) {
      Value* const place = rhs_.at(source, column);
      Value* const packed = panel_at(target, column);
      for (int64_t v = 0; v < t_.vectors; ++v) {
        const int64_t lanes = std::clamp<int64_t>(exist - v * t_.width, 0, t_.width);
        Value* const mask = lanes == t_.width ? nullptr : mask_of(b_, number(b_, lanes), t_.width);
        packed_.store(rhs_.load(rhs_.at(place, v * t_.width), t_.width, mask),
                      packed_.at(packed, v * t_.width));
      }
    };
    each(b_, number(b_, 0), whole, t_.columns(), [&](Value* column) {
      Value* const ahead =
          rhs_.at(source, b_.CreateAdd(column, number(b_, kLinesAhead * sum_.rhs)));
      for (int64_t at = 0; at < t_.columns() * rhs_.bytes(); at += kCacheLineBytes) {
        prefetch(b_, b_.CreateConstGEP1_64(b_.getInt8Ty(), ahead, static_cast<uint64_t>(at)),
                 CacheLevel::kNearest);
      }
      pack(column, t_.columns());
    });
    if (odd != 0) each(b_, whole, used, t_.columns(), [&](Value* column) { pack(column, odd); });
  });
}

void Packing::panel(Value* to, Value* from, Value* left, Value* count) const {
  Value* const zero = number(b_, 0);
  if (sum_.rhs != 1 || t_.width < 4 || t_.width > 16) {
    return lines(to, from, left, zero, count);
  }
  // Squares of whole vectors, then the products behind them; panels at the edge have no squares.
  const bool has_edge = column_.extent % t_.columns() != 0;
  Value* squares = b_.CreateAnd(count, number(b_, -t_.width));
  if (has_edge) {
    Value* const whole = b_.CreateICmpSGE(left, number(b_, t_.columns()));
    squares = b_.CreateSelect(whole, squares, zero);
  }
  each(b_, zero, squares, t_.width, [&](Value* k) {
    each(b_, zero, number(b_, t_.columns()), t_.width,
         [&](Value* column) { square(to, from, k, column); });
  });
  const bool has_rest = sum_.extent % t_.width != 0 || t_.sums_a_block % t_.width != 0;
  if (has_edge || has_rest) lines(to, from, left, squares, count);
}

// Packs as many products as a vector has lanes, for all columns, by loads along the products.
void Packing::square(Value* to, Value* from, Value* k, Value* column) const {
  std::vector<Value*> lines;
  Value* const first = rhs_.at(from, b_.CreateAdd(times(b_, column, column_.rhs), k));
  for (int64_t i = 0; i < t_.width; ++i) {
    lines.push_back(rhs_.load(rhs_.at(first, i * column_.rhs), t_.width));
  }
  codegen::transpose(b_, lines);
  for (int64_t i = 0; i < t_.width; ++i) {
    Value* const line = times(b_, b_.CreateAdd(k, number(b_, i)), t_.columns());
    packed_.store(lines[static_cast<size_t>(i)], packed_.at(to, b_.CreateAdd(line, column)));
  }
}

// Packs one product after the other.
void Packing::lines(Value* to, Value* from, Value* left, Value* first, Value* count) const {
  each(b_, first, count, 1, [&](Value* k) {
    Value* const source = rhs_.at(from, times(b_, k, sum_.rhs));
    Value* const target = packed_.at(to, times(b_, k, t_.columns()));
    for (int64_t v = 0; v < t_.vectors; ++v) {
      Value* const mask = mask_of(b_, b_.CreateSub(left, number(b_, v * t_.width)), t_.width);
      Value* const place = rhs_.at(source, v * t_.width * column_.rhs);
      packed_.store(rhs_.gather(place, column_.rhs, t_.width, mask),
                    packed_.at(target, v * t_.width));
    }
  });
}

void Packing::rows(Value* to, Value* from, Value* left, Value* count) const {
  if (is_across()) return rows_across(to, from, left, count);
  constexpr int64_t kFar = 1 << 20;  // bytes that leave a near cache
  const bool is_far = sum_.lhs == 1 && row_.extent * sum_.extent * lhs_.bytes() >= kFar;
  Value* const rows = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, number(b_, t_.rows));
  Value* const whole = b_.CreateAnd(count, number(b_, -t_.width));
  const bool has_rest = sum_.extent % t_.width != 0 || t_.sums_a_block % t_.width != 0;
  each(b_, number(b_, 0), rows, 1, [&](Value* r) {
    Value* const source = lhs_.at(from, times(b_, r, row_.lhs));
    Value* const target = packed_.at(to, times(b_, r, lhs_row()));
    const auto pack = [&](Value* k, Value* mask) {
      Value* const place = lhs_.at(source, times(b_, k, sum_.lhs));
      Value* const numbers = sum_.lhs == 1 ? lhs_.load(place, t_.width, mask)
                                           : lhs_.gather(place, sum_.lhs, t_.width, mask);
      packed_.store(numbers, packed_.at(target, k));
      // The next tile's row comes from far memory while this tile is computed.
      if (is_far) prefetch(b_, lhs_.at(place, t_.rows * row_.lhs), CacheLevel::kNear);
    };
    each(b_, number(b_, 0), whole, t_.width, [&](Value* k) { pack(k, nullptr); });
    if (!has_rest) return;
    each(b_, whole, count, t_.width,
         [&](Value* k) { pack(k, mask_of(b_, b_.CreateSub(count, k), t_.width)); });
  });
}

// Packs rows that are adjacent in memory: a vector has one product of each row. Lines of all tiles
// are packed one after the other; at the edge, tiles are.
void Packing::rows_across(Value* to, Value* from, Value* left, Value* count) const {
  const auto lines = [&](Value* source, Value* target, int64_t tiles, Value* exist) {
    std::vector<Value*> masks;
    for (int64_t r = 0; r < t_.rows; r += t_.width) {
      masks.push_back(mask_of(b_, b_.CreateSub(exist, number(b_, r)), t_.width));
    }
    each(b_, number(b_, 0), count, 1, [&](Value* k) {
      Value* const line = lhs_.at(source, times(b_, k, sum_.lhs));
      Value* const packed = packed_.at(target, times(b_, k, lhs_sum()));
      for (int64_t i = 0; i < tiles; ++i) {
        for (int64_t r = 0; r < t_.rows; r += t_.width) {
          Value* const numbers = lhs_.load(lhs_.at(line, i * t_.rows + r), t_.width,
                                           masks[static_cast<size_t>(r / t_.width)]);
          packed_.store(numbers, packed_.at(packed, i * lhs_tile() + r));
        }
      }
    });
  };
  const int64_t most = t_.tiles_packed * t_.rows;
  Value* const whole = number(b_, t_.rows);
  const auto all = [&] { lines(from, to, t_.tiles_packed, whole); };
  const auto one_by_one = [&] {
    Value* const behind = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, number(b_, most));
    each(b_, number(b_, 0), behind, t_.rows, [&](Value* row) {
      Value* const tile = b_.CreateUDiv(row, whole);
      lines(lhs_.at(from, row), packed_.at(to, times(b_, tile, lhs_tile())), 1,
            b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(left, row), whole));
    });
  };
  if (row_.extent % most == 0 && t_.rows_a_group % most == 0) return all();
  emit_branch(b_, b_.CreateICmpSGE(left, number(b_, most)), all, one_by_one);
}

}  // namespace tenon::cpu
