#include "backends/cpu/contraction/micro_kernel.h"

#include "backends/llvm/loops.h"

namespace tenon::cpu {
namespace {

using codegen::emit_loop;
using codegen::LlvmValues;
using codegen::number;
using llvm::Value;

// Lines of the right factor that lie so far apart are not prefetched by the processor.
constexpr int64_t kFarApart = 256;  // bytes
constexpr int64_t kAhead = 8;       // products

class MicroKernel {
 public:
  MicroKernel(llvm::IRBuilderBase& b, const MicroTile& tile, const TileElements& elements,
              const std::vector<Value*>& masks)
      : b_(b), t_(tile), e_(elements), masks_(masks) {}

  void fetch(Value* ahead, Value* k) {
    if (ahead == nullptr || is_far_apart()) return;
    Value* const place = b_.CreateGEP(b_.getInt8Ty(), ahead, b_.CreateMul(k, number(b_, t_.ahead)));
    for (int64_t line = 0; line < t_.ahead; line += kCacheLineBytes) {
      prefetch(b_, b_.CreateConstGEP1_64(b_.getInt8Ty(), place, static_cast<uint64_t>(line)),
               t_.ahead_is_next ? CacheLevel::kNearest : CacheLevel::kNear);
    }
  }

  // Sums in the order of rows, then vectors.
  LlvmValues starts(Value* c, Value* adds) {
    LlvmValues sums;
    Value* const zero = e_.c.zeros(t_.width);
    for (int64_t r = 0; r < t_.rows; ++r) {
      for (int64_t v = 0; v < t_.vectors; ++v) {
        if (adds == nullptr) {
          sums.push_back(zero);
        } else {
          Value* const before = e_.c.load(place(c, r, v), t_.width, mask(v));
          sums.push_back(b_.CreateSelect(adds, before, zero));
        }
      }
    }
    return sums;
  }

  // Adds one more product to each of the sums.
  LlvmValues step(Value* a, Value* b, const LlvmValues& before, bool reads_all) {
    LlvmValues line;
    for (int64_t v = 0; v < t_.vectors; ++v) {
      line.push_back(e_.b.load(e_.b.at(b, v * t_.width), t_.width, reads_all ? nullptr : mask(v)));
    }
    if (is_far_apart()) {
      const int64_t columns = t_.vectors * t_.width;
      for (int64_t column = 0; column < columns; column += kCacheLineBytes / e_.b.bytes()) {
        prefetch(b_, e_.b.at(b, kAhead * t_.b_sum + column), CacheLevel::kNearest);
      }
    }
    LlvmValues next;
    for (int64_t r = 0; r < t_.rows; ++r) {
      Value* const one = e_.a.load(e_.a.at(a, r * t_.a_row));
      Value* const splat = b_.CreateVectorSplat(static_cast<unsigned>(t_.width), one);
      for (Value* const numbers : line)
        next.push_back(e_.c.multiply_add(splat, numbers, before[next.size()]));
    }
    return next;
  }

  bool is_far_apart() const { return !t_.along_memory && t_.b_sum * e_.b.bytes() >= kFarApart; }

  void finish(Value* c, const LlvmValues& sums) {
    for (int64_t r = 0; r < t_.rows; ++r) {
      for (int64_t v = 0; v < t_.vectors; ++v) {
        e_.c.store(sums[static_cast<size_t>(r * t_.vectors + v)], place(c, r, v), mask(v));
      }
    }
  }

 private:
  Value* mask(int64_t v) const { return masks_.empty() ? nullptr : masks_[static_cast<size_t>(v)]; }
  Value* place(Value* c, int64_t r, int64_t v) const {
    return e_.c.at(c, r * t_.c_row + v * t_.width);
  }

  llvm::IRBuilderBase& b_;
  const MicroTile& t_;
  const TileElements& e_;
  const std::vector<Value*>& masks_;
};

}  // namespace

void emit_micro_kernel(llvm::IRBuilderBase& builder, const MicroTile& tile,
                       const TileElements& elements, Value* a, Value* b, Value* c, Value* count,
                       Value* adds, const std::vector<Value*>& masks, bool reads_all,
                       Value* ahead) {
  MicroKernel micro(builder, tile, elements, masks);
  const auto step = [&](Value* k, const LlvmValues& before) {
    Value* const a_at = elements.a.at(a, builder.CreateMul(k, number(builder, tile.a_sum)));
    Value* const b_at = elements.b.at(b, builder.CreateMul(k, number(builder, tile.b_sum)));
    micro.fetch(ahead, k);
    return micro.step(a_at, b_at, before, reads_all);
  };
  micro.finish(c, emit_loop(builder, number(builder, 0), count, 1, micro.starts(c, adds), step));
}

}  // namespace tenon::cpu
