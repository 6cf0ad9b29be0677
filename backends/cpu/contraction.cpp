#include "backends/cpu/contraction.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {
namespace {

using codegen::emit_loop;
using codegen::LlvmValues;
using codegen::number;
using llvm::Value;

constexpr int64_t kAlignment = 64;
constexpr int64_t kSumsABlock = 512;  // of a panel that is packed
constexpr int64_t kPanelsABlock = 6;  // that share a packed row tile
constexpr int64_t kRowsAWorkgroup = 144;
constexpr int64_t kFewRows = 48;  // for which packing takes longer than it saves
constexpr int64_t kSumsOfFewRows = 64;
constexpr int64_t kPackFrom = 1 << 18;  // bytes of an operand that no longer stays in a near cache

// Whether every result is a sum over neighbours of both operands.
bool is_dot_products(const ContractionLoops& loops) {
  const ContractionLoop& sum = loops.sums[0];
  return loops.columns.size() == 1 && loops.columns[0].extent == 1 && sum.lhs == 1 && sum.rhs == 1;
}

int64_t divided(int64_t x, int64_t y) { return (x + y - 1) / y; }

// What of the loops is done how.
struct Tiling {
  int64_t width = 1;         // Lanes of a vector.
  int64_t vectors = 1;       // Of a tile's columns.
  int64_t rows = 1;          // Of a tile.
  int64_t rows_a_group = 1;  // Of a workgroup.
  int64_t panels = 1;        // Of tiles' columns, of a workgroup.
  int64_t sums_a_block = 1;
  bool packs_rhs = false;
  bool packs_lhs = false;
  int64_t columns() const { return width * vectors; }
};

Tiling tiling_of(const ContractionLoops& loops, int64_t vector_bytes) {
  const ContractionLoop& row = loops.rows.back();
  const ContractionLoop& column = loops.columns.back();
  const ContractionLoop& sum = loops.sums[0];
  const auto bytes = static_cast<int64_t>(storage_bytes(loops.type));
  Tiling t;
  if (is_dot_products(loops)) {
    t.width = std::min(vector_bytes / bytes,
                       static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(sum.extent))));
    t.rows = std::min<int64_t>(row.extent, 4);
    t.rows_a_group = divided(std::min<int64_t>(row.extent, kRowsAWorkgroup), t.rows) * t.rows;
    t.sums_a_block = sum.extent;
    return t;
  }
  const auto ceiling = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(column.extent)));
  t.width = std::min(vector_bytes / bytes, ceiling);
  // With few rows, more columns, so that eight sums and more are under way at once.
  const int64_t wide = row.extent >= 4 ? 2 : row.extent >= 2 ? 4 : 8;
  t.vectors = std::min(wide, divided(column.extent, t.width));
  // Accumulators, and some registers for a row of the right operand.
  const int64_t registers = vector_bytes >= 64 ? 32 : 16;
  const int64_t most_rows = std::min<int64_t>((registers - 4) / t.vectors, 14);
  t.rows = divided(row.extent, divided(row.extent, most_rows));
  const int64_t tiles = divided(row.extent, t.rows);
  const int64_t groups = divided(row.extent, kRowsAWorkgroup);
  t.rows_a_group = divided(tiles, groups) * t.rows;
  t.packs_rhs = column.rhs != 1 ||
                (row.extent > 2 * t.rows && sum.extent * column.extent * bytes > kPackFrom);
  // Rows that lie side by side are in one line of the cache as they are.
  t.packs_lhs = t.packs_rhs && row.lhs != 1 && row.extent * sum.extent * bytes > kPackFrom;
  const bool few = row.extent <= kFewRows && column.rhs == 1;
  if (few) t.packs_rhs = t.packs_lhs = false;
  // Some sums of all columns stay in the cache from one tile's rows to the next.
  const int64_t most_sums = t.packs_rhs                  ? kSumsABlock
                            : few && row.extent > t.rows ? kSumsOfFewRows
                                                         : sum.extent;
  t.sums_a_block = std::min(sum.extent, most_sums);
  t.panels = std::min(kPanelsABlock, divided(column.extent, t.columns()));
  return t;
}

class ContractionEmitter {
 public:
  ContractionEmitter(llvm::Module& module, const ContractionLoops& loops, int64_t vector_bytes)
      : module_(module),
        context_(module.getContext()),
        loops_(loops),
        row_(loops.rows.back()),
        column_(loops.columns.back()),
        sum_(loops.sums[0]),
        t_(tiling_of(loops, vector_bytes)),
        b_(context_),
        element_(codegen::type_of(context_, loops.type)),
        vector_(llvm::FixedVectorType::get(element_, static_cast<unsigned>(t_.width))) {}

  ContractionFunction run(const std::string& name) {
    ContractionFunction made;
    make_function(name);
    const int64_t row_groups = divided(row_.extent, t_.rows_a_group);
    const int64_t column_groups = divided(column_.extent, t_.panels * t_.columns());
    // The loops that a workgroup is one turn of, from the outermost.
    std::vector<ContractionLoop> outer = loops_.batch;
    outer.insert(outer.end(), loops_.rows.begin(), loops_.rows.end() - 1);
    outer.insert(outer.end(), loops_.columns.begin(), loops_.columns.end() - 1);
    outer.push_back({column_groups, 0, 0, 0});
    outer.push_back({row_groups, 0, 0, 0});
    for (const ContractionLoop& loop : outer) made.workgroups *= loop.extent;
    emit_loop(b_, function_->getArg(3), function_->getArg(4), 1, {},
              [&](Value* place, const LlvmValues&) {
                workgroup(place, outer);
                return LlvmValues{};
              });
    b_.CreateRetVoid();
    made.kernel = {function_, scratch_bytes()};
    const int64_t rows = std::min(row_.extent, t_.rows_a_group);
    const int64_t columns = std::min(column_.extent, t_.panels * t_.columns());
    made.flops_a_workgroup =
        2.0 * static_cast<double>(rows * columns) * static_cast<double>(sum_.extent);
    return made;
  }

 private:
  void make_function(const std::string& name) {
    llvm::Type* const pointer = b_.getPtrTy();
    llvm::Type* const types[] = {pointer,         pointer, pointer, b_.getInt64Ty(),
                                 b_.getInt64Ty(), pointer, pointer};
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                       llvm::Function::ExternalLinkage, name, module_);
    function_->setDoesNotThrow();
    function_->setVisibility(llvm::Function::HiddenVisibility);
    for (unsigned i = 0; i < 3; ++i) function_->addParamAttr(i, llvm::Attribute::NoAlias);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  }

  int64_t element_bytes() const { return static_cast<int64_t>(storage_bytes(loops_.type)); }
  // A row of the packed left operand is longer by a vector, so that rows begin in different sets
  // of the cache.
  int64_t packed_lhs_stride() const { return t_.sums_a_block + t_.width; }
  int64_t panel_bytes() const { return t_.sums_a_block * t_.columns() * element_bytes(); }
  int64_t scratch_bytes() const {
    const int64_t rhs = t_.packs_rhs ? t_.panels * panel_bytes() : 0;
    const int64_t lhs = t_.packs_lhs ? t_.rows * packed_lhs_stride() * element_bytes() : 0;
    return divided(rhs, kAlignment) * kAlignment + lhs;
  }
  Value* offset(Value* base, Value* elements) { return b_.CreateGEP(element_, base, elements); }
  Value* times(Value* x, int64_t by) { return b_.CreateMul(x, number(b_, by), "", false, true); }
  Value* least(Value* x, Value* y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); }
  void each(Value* low, Value* high, int64_t step, const std::function<void(Value*)>& body) {
    emit_loop(b_, low, high, step, {}, [&](Value* i, const LlvmValues&) {
      body(i);
      return LlvmValues{};
    });
  }

  void workgroup(Value* place, const std::vector<ContractionLoop>& outer) {
    Value* const buffers[] = {function_->getArg(0), function_->getArg(1), function_->getArg(2)};
    Value* offsets[] = {number(b_, 0), number(b_, 0), number(b_, 0)};
    Value* group[2] = {};
    Value* rest = place;
    for (size_t d = outer.size(); d-- > 0;) {
      Value* const at = d == 0 ? rest : b_.CreateURem(rest, number(b_, outer[d].extent));
      if (d > 0) rest = b_.CreateUDiv(rest, number(b_, outer[d].extent));
      if (d + 2 >= outer.size()) {
        group[d + 2 - outer.size()] = at;
        continue;
      }
      const int64_t by[] = {outer[d].lhs, outer[d].rhs, outer[d].result};
      for (size_t i = 0; i < 3; ++i) offsets[i] = b_.CreateAdd(offsets[i], times(at, by[i]));
    }
    lhs_ = offset(buffers[0], offsets[0]);
    rhs_ = offset(buffers[1], offsets[1]);
    result_ = offset(buffers[2], offsets[2]);
    Value* const column = times(group[0], t_.panels * t_.columns());
    Value* const row = times(group[1], t_.rows_a_group);
    Value* const last_row =
        least(b_.CreateAdd(row, number(b_, t_.rows_a_group)), number(b_, row_.extent));
    Value* const last_column = least(b_.CreateAdd(column, number(b_, t_.panels * t_.columns())),
                                     number(b_, column_.extent));
    if (is_dot_products(loops_)) {
      each(row, last_row, t_.rows, [&](Value* at) { dots(at, last_row); });
      return;
    }
    each(number(b_, 0), number(b_, sum_.extent), t_.sums_a_block,
         [&](Value* sum) { block(sum, row, last_row, column, last_column); });
  }

  // Adds the products of a block of sums to the workgroup's part of the result.
  void block(Value* sum, Value* row, Value* last_row, Value* column, Value* last_column) {
    Value* const count =
        least(b_.CreateSub(number(b_, sum_.extent), sum), number(b_, t_.sums_a_block));
    Value* const scratch = function_->getArg(5);
    if (t_.packs_rhs) {
      each(column, last_column, t_.columns(), [&](Value* panel) {
        pack_panel(packed_panel(scratch, b_.CreateSub(panel, column)), panel, sum, count);
      });
    }
    each(row, last_row, t_.rows, [&](Value* tile_row) {
      Value* a = offset(lhs_, b_.CreateAdd(times(tile_row, row_.lhs), times(sum, sum_.lhs)));
      if (t_.packs_lhs) {
        Value* const packed = b_.CreateConstGEP1_64(
            b_.getInt8Ty(), scratch,
            static_cast<uint64_t>(divided(t_.panels * panel_bytes(), kAlignment) * kAlignment));
        pack_rows(packed, a, b_.CreateSub(last_row, tile_row), count);
        a = packed;
      }
      each(column, last_column, t_.columns(), [&](Value* panel) {
        Value* const b =
            t_.packs_rhs
                ? packed_panel(scratch, b_.CreateSub(panel, column))
                : offset(rhs_, b_.CreateAdd(times(panel, column_.rhs), times(sum, sum_.rhs)));
        Value* const c = offset(
            result_, b_.CreateAdd(times(tile_row, row_.result), times(panel, column_.result)));
        tile(a, b, c, count, sum, tile_row, last_row, panel);
      });
    });
  }

  Value* packed_panel(Value* scratch, Value* columns) {
    return offset(scratch, times(columns, t_.sums_a_block));
  }

  // Rows of the panel are a tile's columns of the right operand, zeros where there are none.
  void pack_panel(Value* to, Value* panel, Value* sum, Value* count) {
    Value* const left = b_.CreateSub(number(b_, column_.extent), panel);
    Value* const from = offset(rhs_, b_.CreateAdd(times(panel, column_.rhs), times(sum, sum_.rhs)));
    Value* const squares = b_.CreateAnd(count, number(b_, -t_.width));
    if (column_.rhs == 1 || sum_.rhs != 1 || t_.width < 4 || t_.width > 16) {
      return pack_panel_lines(to, from, left, number(b_, 0), count);
    }
    branch(
        b_.CreateICmpSGE(left, number(b_, t_.columns())),
        [&] {
          each(number(b_, 0), squares, t_.width, [&](Value* k) { pack_square(to, from, k); });
          pack_panel_lines(to, from, left, squares, count);
        },
        [&] { pack_panel_lines(to, from, left, number(b_, 0), count); });
  }

  // As many sums as a vector has lanes, of all columns, which are loaded along the sums.
  void pack_square(Value* to, Value* from, Value* k) {
    for (int64_t v = 0; v < t_.vectors; ++v) {
      std::vector<Value*> lines;
      for (int64_t i = 0; i < t_.width; ++i) {
        Value* const column = number(b_, (v * t_.width + i) * column_.rhs);
        lines.push_back(b_.CreateAlignedLoad(vector_, offset(offset(from, column), k), align()));
      }
      codegen::transpose(b_, lines);
      for (int64_t i = 0; i < t_.width; ++i) {
        Value* const line = times(b_.CreateAdd(k, number(b_, i)), t_.columns());
        Value* const place = offset(to, b_.CreateAdd(line, number(b_, v * t_.width)));
        b_.CreateAlignedStore(lines[static_cast<size_t>(i)], place, align());
      }
    }
  }

  // One sum after the other.
  void pack_panel_lines(Value* to, Value* from, Value* left, Value* first, Value* count) {
    each(first, count, 1, [&](Value* k) {
      Value* const source = offset(from, times(k, sum_.rhs));
      Value* const target = offset(to, times(k, t_.columns()));
      for (int64_t v = 0; v < t_.vectors; ++v) {
        Value* const mask = mask_of(b_.CreateSub(left, number(b_, v * t_.width)));
        Value* const place = offset(source, number(b_, v * t_.width * column_.rhs));
        Value* const zero = llvm::Constant::getNullValue(vector_);
        Value* numbers = nullptr;
        if (column_.rhs == 1) {
          numbers = b_.CreateMaskedLoad(vector_, place, align(), mask, zero);
        } else {
          Value* const places = b_.CreateGEP(element_, place, steps(column_.rhs));
          numbers = b_.CreateMaskedGather(vector_, places, align(), mask, zero);
        }
        b_.CreateAlignedStore(numbers, offset(target, number(b_, v * t_.width)), align());
      }
    });
  }

  void pack_rows(Value* to, Value* from, Value* rows_left, Value* count) {
    each(number(b_, 0), least(rows_left, number(b_, t_.rows)), 1, [&](Value* r) {
      Value* const source = offset(from, times(r, row_.lhs));
      Value* const target = offset(to, times(r, packed_lhs_stride()));
      each(number(b_, 0), count, t_.width, [&](Value* k) {
        Value* const mask = mask_of(b_.CreateSub(count, k));
        Value* const place = offset(source, times(k, sum_.lhs));
        Value* const zero = llvm::Constant::getNullValue(vector_);
        Value* const numbers =
            sum_.lhs == 1
                ? static_cast<Value*>(b_.CreateMaskedLoad(vector_, place, align(), mask, zero))
                : b_.CreateMaskedGather(vector_, b_.CreateGEP(element_, place, steps(sum_.lhs)),
                                        align(), mask, zero);
        b_.CreateAlignedStore(numbers, offset(target, k), align());
      });
    });
  }

  llvm::Align align() const { return llvm::Align(storage_bytes(loops_.type)); }
  Value* steps(int64_t stride) {
    std::vector<llvm::Constant*> list;
    for (int64_t i = 0; i < t_.width; ++i) {
      list.push_back(llvm::ConstantInt::getSigned(b_.getInt64Ty(), i * stride));
    }
    return llvm::ConstantVector::get(list);
  }
  // The first `left` lanes.
  Value* mask_of(Value* left) {
    Value* const splat = b_.CreateVectorSplat(static_cast<unsigned>(t_.width), left);
    return b_.CreateICmpSLT(steps(1), splat);
  }

  // --- Dot products

  void dots(Value* row, Value* last_row) {
    const int64_t odd = row_.extent % t_.rows;
    if (odd == 0) return dots_of(row, t_.rows);
    Value* const whole = b_.CreateICmpSGE(b_.CreateSub(last_row, row), number(b_, t_.rows));
    branch(whole, [&] { dots_of(row, t_.rows); }, [&] { dots_of(row, odd); });
  }

  // The lanes of a vector are summed at the end.
  void dots_of(Value* row, int64_t rows) {
    Value* const a = offset(lhs_, times(row, row_.lhs));
    const int64_t full = sum_.extent / t_.width * t_.width;
    const auto add = [&](Value* k, const LlvmValues& before, Value* mask) {
      const auto numbers = [&](Value* from) -> Value* {
        if (mask == nullptr) return b_.CreateAlignedLoad(vector_, from, align());
        return b_.CreateMaskedLoad(vector_, from, align(), mask,
                                   llvm::Constant::getNullValue(vector_));
      };
      Value* const line = numbers(offset(rhs_, k));
      LlvmValues next;
      for (int64_t r = 0; r < rows; ++r) {
        Value* const mine = numbers(offset(a, b_.CreateAdd(k, number(b_, r * row_.lhs))));
        next.push_back(b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_},
                                          {mine, line, before[static_cast<size_t>(r)]}));
      }
      return next;
    };
    LlvmValues sums(static_cast<size_t>(rows), llvm::Constant::getNullValue(vector_));
    sums = emit_loop(b_, number(b_, 0), number(b_, full), t_.width, sums,
                     [&](Value* k, const LlvmValues& before) { return add(k, before, nullptr); });
    if (full < sum_.extent) {
      sums = add(number(b_, full), sums, mask_of(number(b_, sum_.extent - full)));
    }
    for (int64_t r = 0; r < rows; ++r) {
      auto* const total = llvm::cast<llvm::CallInst>(b_.CreateFAddReduce(
          llvm::ConstantFP::getNegativeZero(element_), sums[static_cast<size_t>(r)]));
      total->setHasAllowReassoc(true);
      Value* const place = b_.CreateAdd(row, number(b_, r));
      b_.CreateAlignedStore(total, offset(result_, times(place, row_.result)), align());
    }
  }

  // --- Tiles

  // Full ones, and those at the edges by functions of their own.
  void tile(Value* a, Value* b, Value* c, Value* count, Value* sum, Value* row, Value* last_row,
            Value* panel) {
    const int64_t odd_rows = row_.extent % t_.rows;
    const bool odd_columns = column_.extent % t_.columns() != 0;
    Value* const left = b_.CreateSub(number(b_, column_.extent), panel);
    const auto call = [&](int64_t rows) {
      const auto with = [&](bool masked) {
        b_.CreateCall(micro_kernel(rows, masked), {a, b, c, count, sum, left});
      };
      if (!odd_columns) return with(false);
      if (column_.extent < t_.columns()) return with(true);
      branch(
          b_.CreateICmpSGE(left, number(b_, t_.columns())), [&] { with(false); },
          [&] { with(true); });
    };
    if (odd_rows == 0) return call(t_.rows);
    if (row_.extent < t_.rows) return call(odd_rows);
    Value* const whole = b_.CreateICmpSGE(b_.CreateSub(last_row, row), number(b_, t_.rows));
    branch(whole, [&] { call(t_.rows); }, [&] { call(odd_rows); });
  }

  void branch(Value* condition, const std::function<void()>& then,
              const std::function<void()>& otherwise) {
    llvm::Function* const function = b_.GetInsertBlock()->getParent();
    auto* const yes = llvm::BasicBlock::Create(context_, "then", function);
    auto* const no = llvm::BasicBlock::Create(context_, "else", function);
    auto* const after = llvm::BasicBlock::Create(context_, "after", function);
    b_.CreateCondBr(condition, yes, no);
    b_.SetInsertPoint(yes);
    then();
    b_.CreateBr(after);
    b_.SetInsertPoint(no);
    otherwise();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  // void (a, b, c, count, sum, columns_left): c (+)= a · b over `count` sums; from zero if `sum`,
  // the first one's number, is 0.
  llvm::Function* micro_kernel(int64_t rows, bool masked) {
    const std::string name =
        fmt::format("{}.{}{}", function_->getName().str(), rows, masked ? ".masked" : "");
    if (llvm::Function* const made = module_.getFunction(name)) return made;
    llvm::Type* const pointer = b_.getPtrTy();
    llvm::Type* const integer = b_.getInt64Ty();
    llvm::Type* const types[] = {pointer, pointer, pointer, integer, integer, integer};
    llvm::Function* const micro =
        llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                               llvm::Function::InternalLinkage, name, module_);
    micro->setDoesNotThrow();
    micro->addFnAttr(llvm::Attribute::NoInline);
    for (unsigned i = 0; i < 3; ++i) micro->addParamAttr(i, llvm::Attribute::NoAlias);
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", micro));
    fill_micro_kernel(*micro, rows, masked);
    return micro;
  }

  void fill_micro_kernel(llvm::Function& micro, int64_t rows, bool masked) {
    Value* const a = micro.getArg(0);
    Value* const b = micro.getArg(1);
    Value* const c = micro.getArg(2);
    std::vector<Value*> masks;
    for (int64_t v = 0; masked && v < t_.vectors; ++v) {
      masks.push_back(mask_of(b_.CreateSub(micro.getArg(5), number(b_, v * t_.width))));
    }
    const auto place = [&](int64_t r, int64_t v) {
      return offset(c, number(b_, r * row_.result + v * t_.width * column_.result));
    };
    Value* const zero = llvm::Constant::getNullValue(vector_);
    const auto load = [&](Value* from, size_t v) -> Value* {
      return masked
                 ? static_cast<Value*>(b_.CreateMaskedLoad(vector_, from, align(), masks[v], zero))
                 : b_.CreateAlignedLoad(vector_, from, align());
    };
    LlvmValues sums;
    Value* const is_first = b_.CreateICmpEQ(micro.getArg(4), number(b_, 0));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t v = 0; v < t_.vectors; ++v) {
        const bool blocks = t_.sums_a_block < sum_.extent;
        sums.push_back(
            blocks ? b_.CreateSelect(is_first, zero, load(place(r, v), static_cast<size_t>(v)))
                   : zero);
      }
    }
    const int64_t a_row = t_.packs_lhs ? packed_lhs_stride() : row_.lhs;
    const int64_t a_sum = t_.packs_lhs ? 1 : sum_.lhs;
    const int64_t b_sum = t_.packs_rhs ? t_.columns() : sum_.rhs;
    sums = emit_loop(
        b_, number(b_, 0), micro.getArg(3), 1, sums, [&](Value* k, const LlvmValues& before) {
          Value* const a_at = offset(a, times(k, a_sum));
          Value* const b_at = offset(b, times(k, b_sum));
          LlvmValues line;
          for (int64_t v = 0; v < t_.vectors; ++v) {
            Value* const from = offset(b_at, number(b_, v * t_.width));
            line.push_back(t_.packs_rhs ? b_.CreateAlignedLoad(vector_, from, align())
                                        : load(from, static_cast<size_t>(v)));
          }
          LlvmValues next;
          for (int64_t r = 0; r < rows; ++r) {
            Value* const one =
                b_.CreateAlignedLoad(element_, offset(a_at, number(b_, r * a_row)), align());
            Value* const splat = b_.CreateVectorSplat(static_cast<unsigned>(t_.width), one);
            for (int64_t v = 0; v < t_.vectors; ++v) {
              Value* const before_it = before[static_cast<size_t>(r * t_.vectors + v)];
              next.push_back(b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_},
                                                {splat, line[static_cast<size_t>(v)], before_it}));
            }
          }
          return next;
        });
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t v = 0; v < t_.vectors; ++v) {
        Value* const value = sums[static_cast<size_t>(r * t_.vectors + v)];
        if (masked) {
          b_.CreateMaskedStore(value, place(r, v), align(), masks[static_cast<size_t>(v)]);
        } else {
          b_.CreateAlignedStore(value, place(r, v), align());
        }
      }
    }
    b_.CreateRetVoid();
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const ContractionLoops& loops_;
  const ContractionLoop row_, column_, sum_;
  const Tiling t_;
  llvm::IRBuilder<> b_;
  llvm::Type* element_;
  llvm::FixedVectorType* vector_;
  llvm::Function* function_ = nullptr;
  Value* lhs_ = nullptr;
  Value* rhs_ = nullptr;
  Value* result_ = nullptr;
};

}  // namespace

ContractionFunction emit_contraction(llvm::Module& module, const ContractionLoops& loops,
                                     const std::string& name, int64_t vector_bytes) {
  return ContractionEmitter(module, loops, vector_bytes).run(name);
}

}  // namespace tenon::cpu
