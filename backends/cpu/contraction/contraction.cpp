#include "backends/cpu/contraction/contraction.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/contraction/micro_kernel.h"
#include "backends/cpu/contraction/packing.h"
#include "backends/llvm/loops.h"

namespace tenon::cpu {
namespace {

using codegen::emit_branch;
using codegen::emit_loop;
using codegen::LlvmValues;
using codegen::number;
using llvm::Value;

constexpr int64_t kAlignment = 64;
// More columns would make their sums, which each block of lines reads again, leave the cache.
constexpr int64_t kColumnsTogether = 1 << 14;

int64_t aligned(int64_t bytes) { return divided(bytes, kAlignment) * kAlignment; }

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
        lhs_elements_(b_, loops.lhs, loops.sum),
        rhs_elements_(b_, loops.rhs, loops.sum),
        result_elements_(b_, loops.result, loops.sum),
        sum_elements_(b_, loops.sum, loops.sum),
        packing_(b_, loops, t_) {}

  ContractionFunction run(const std::string& name) {
    ContractionFunction made;
    make_function(name);
    const int64_t row_groups = divided(row_.extent, t_.rows_a_group);
    const int64_t column_groups = divided(column_.extent, t_.panels * t_.columns());
    // The loops over workgroups, outermost first.
    std::vector<ContractionLoop> outer = loops_.batch;
    outer.insert(outer.end(), loops_.rows.begin(), loops_.rows.end() - 1);
    outer.insert(outer.end(), loops_.columns.begin(), loops_.columns.end() - 1);
    outer.push_back({row_groups, 0, 0, 0});
    outer.push_back({column_groups, 0, 0, 0});
    for (const ContractionLoop& loop : outer) made.workgroups *= loop.extent;
    if (t_.joins) together_ = kColumnsTogether / columns_a_group();
    made.joins_workgroups = t_.joins;
    each(function_->getArg(3), function_->getArg(4), together_,
         [&](Value* place) { workgroup(place, outer); });
    b_.CreateRetVoid();
    made.kernel = {function_, scratch_sums() + (t_.keeps_sums ? sums_bytes() : 0)};
    const int64_t rows = std::min(row_.extent, t_.rows_a_group);
    const int64_t columns = std::min(column_.extent, columns_a_group());
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

  // --- Scratch memory: panels of the right operand, rows of the left one, sums.
  int64_t columns_a_group() const { return t_.panels * t_.columns(); }
  int64_t scratch_lhs() const {
    return aligned(t_.packs_rhs ? t_.panels * packing_.panel_bytes() : 0);
  }
  int64_t scratch_sums() const {
    return scratch_lhs() + aligned(t_.packs_lhs ? packing_.lhs_bytes() : 0);
  }
  int64_t sums_bytes() const { return t_.rows_a_group * columns_a_group() * sum_elements_.bytes(); }
  Value* scratch(int64_t bytes) {
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), function_->getArg(5),
                                 static_cast<uint64_t>(bytes));
  }

  Value* times(Value* x, int64_t by) { return b_.CreateMul(x, number(b_, by), "", false, true); }
  Value* least(Value* x, Value* y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); }
  void each(Value* low, Value* high, int64_t step, const std::function<void(Value*)>& body) {
    emit_loop(b_, low, high, step, {}, [&](Value* i, const LlvmValues&) {
      body(i);
      return LlvmValues{};
    });
  }

  void workgroup(Value* place, const std::vector<ContractionLoop>& outer) {
    Value* offsets[] = {number(b_, 0), number(b_, 0), number(b_, 0)};
    Value* group[2] = {};  // Indices of the group of rows and of columns.
    // Machines of 32 bits divide numbers of 64 by calls.
    int64_t count = 1;
    for (const ContractionLoop& loop : outer) count *= loop.extent;
    llvm::Type* const narrow = count <= INT32_MAX ? b_.getInt32Ty() : b_.getInt64Ty();
    Value* rest = b_.CreateTrunc(place, narrow);
    for (size_t d = outer.size(); d-- > 0;) {
      Value* const extent = llvm::ConstantInt::get(narrow, static_cast<uint64_t>(outer[d].extent));
      Value* const index = d == 0 ? rest : b_.CreateURem(rest, extent);
      if (d > 0) rest = b_.CreateUDiv(rest, extent);
      Value* const at = b_.CreateZExt(index, b_.getInt64Ty());
      if (d + 2 >= outer.size()) {
        group[d + 2 - outer.size()] = at;
        continue;
      }
      const int64_t by[] = {outer[d].lhs, outer[d].rhs, outer[d].result};
      for (size_t i = 0; i < 3; ++i) offsets[i] = b_.CreateAdd(offsets[i], times(at, by[i]));
    }
    lhs_ = lhs_elements_.at(function_->getArg(0), offsets[0]);
    rhs_ = rhs_elements_.at(function_->getArg(1), offsets[1]);
    result_ = result_elements_.at(function_->getArg(2), offsets[2]);
    row_begin_ = times(group[0], t_.rows_a_group);
    column_begin_ = times(group[1], columns_a_group());
    row_end_ =
        least(b_.CreateAdd(row_begin_, number(b_, t_.rows_a_group)), number(b_, row_.extent));
    column_end_ = number(b_, column_.extent);
    if (together_ == 1) {
      column_end_ = least(b_.CreateAdd(column_begin_, number(b_, columns_a_group())), column_end_);
    } else {
      Value* const end = least(b_.CreateAdd(place, number(b_, together_)), function_->getArg(4));
      column_end_ = least(times(end, columns_a_group()), column_end_);
    }
    if (t_.is_dots) {
      return each(number(b_, 0), number(b_, sum_.extent), t_.sums_a_block,
                  [&](Value* sum) { dots(sum); });
    }
    each(number(b_, 0), number(b_, sum_.extent), t_.sums_a_block, [&](Value* sum) { block(sum); });
    if (t_.keeps_sums) round_sums();
  }

  // Adds a block of products to the workgroup's part of the result.
  void block(Value* sum) {
    Value* const count =
        least(b_.CreateSub(number(b_, sum_.extent), sum), number(b_, t_.sums_a_block));
    if (t_.packs_rhs) {
      packing_.panels(scratch(0), rhs_at(column_begin_, sum),
                      b_.CreateSub(number(b_, column_.extent), column_begin_),
                      b_.CreateSub(column_end_, column_begin_), count);
    }
    const int64_t together = t_.rows * t_.tiles_packed;
    each(row_begin_, row_end_, together, [&](Value* first) {
      Value* const from =
          lhs_elements_.at(lhs_, b_.CreateAdd(times(first, row_.lhs), times(sum, sum_.lhs)));
      if (t_.packs_lhs) {
        packing_.rows(scratch(scratch_lhs()), from, b_.CreateSub(row_end_, first), count);
      }
      if (together == t_.rows) return row_tile(first, first, from, sum, count);
      Value* const end = least(b_.CreateAdd(first, number(b_, together)), row_end_);
      each(first, end, t_.rows, [&](Value* row) { row_tile(row, first, from, sum, count); });
    });
  }

  // Adds to the sums of a tile of rows, of those from `first` on whose left operand is packed, or
  // lies at `from`.
  void row_tile(Value* row, Value* first, Value* from, Value* sum, Value* count) {
    Value* a = from;
    if (t_.packs_lhs) {
      Value* const tile = b_.CreateUDiv(b_.CreateSub(row, first), number(b_, t_.rows));
      a = sum_elements_.at(scratch(scratch_lhs()), times(tile, packing_.lhs_tile()));
    }
    each(column_begin_, column_end_, t_.columns(), [&](Value* panel) {
      Value* const b = t_.packs_rhs ? packed_panel(panel) : rhs_at(panel, sum);
      tile(a, b, sums_at(row, panel), count, sum, row, panel);
    });
  }

  Value* packed_panel(Value* panel) {
    return packing_.panel_at(scratch(0), b_.CreateSub(panel, column_begin_));
  }
  Value* rhs_at(Value* panel, Value* sum) {
    Value* const products = times(sum, sum_.rhs);
    if (loops_.panel <= t_.columns()) {
      return rhs_elements_.at(rhs_, b_.CreateAdd(times(panel, column_.rhs), products));
    }
    // Several tiles read a panel.
    Value* const first = b_.CreateAnd(panel, number(b_, -loops_.panel));
    Value* const in_panel = b_.CreateSub(panel, first);
    return rhs_elements_.at(
        rhs_, b_.CreateAdd(times(first, column_.rhs), b_.CreateAdd(in_panel, products)));
  }
  Value* result_at(Value* row, Value* column) {
    return result_elements_.at(
        result_, b_.CreateAdd(times(row, row_.result), times(column, column_.result)));
  }
  // The address of the sums between blocks.
  Value* sums_at(Value* row, Value* column) {
    if (!t_.keeps_sums) return result_at(row, column);
    Value* const line = times(b_.CreateSub(row, row_begin_), columns_a_group());
    return sum_elements_.at(scratch(scratch_sums()),
                            b_.CreateAdd(line, b_.CreateSub(column, column_begin_)));
  }

  void round_sums() {
    each(row_begin_, row_end_, 1, [&](Value* row) {
      each(column_begin_, column_end_, t_.width, [&](Value* column) {
        Value* const mask = mask_of(b_, b_.CreateSub(column_end_, column), t_.width);
        result_elements_.store(sum_elements_.load(sums_at(row, column), t_.width),
                               result_at(row, column), mask);
      });
    });
  }

  // --- Dot products

  // Adds a block of products, by full tiles and those at the edges. The operand with fewer lines
  // stays in a near cache, from one tile of the other's lines to the next.
  void dots(Value* sum) {
    const auto tile = [&](Value* row, Value* column) {
      emit_part(row, row_end_, t_.rows, row_.extent, [&](int64_t rows) {
        emit_part(column, column_end_, t_.dots, column_.extent,
                  [&](int64_t columns) { dots_of({row, column, rows, columns}, sum); });
      });
    };
    const auto rows = [&](const std::function<void(Value*)>& body) {
      each(row_begin_, row_end_, t_.rows, body);
    };
    const auto columns = [&](const std::function<void(Value*)>& body) {
      each(column_begin_, column_end_, t_.dots, body);
    };
    if (row_.extent > column_.extent) {
      rows([&](Value* row) { columns([&](Value* column) { tile(row, column); }); });
    } else {
      columns([&](Value* column) { rows([&](Value* row) { tile(row, column); }); });
    }
  }

  // From `begin` on, there are `size` of all `extent` before `end`, or the rest of them.
  void emit_part(Value* begin, Value* end, int64_t size, int64_t extent,
                 const std::function<void(int64_t)>& part) {
    const int64_t odd = extent % size;
    if (odd == 0 || extent < size) return part(odd == 0 ? size : odd);
    Value* const whole = b_.CreateICmpSGE(b_.CreateSub(end, begin), number(b_, size));
    emit_branch(b_, whole, [&] { part(size); }, [&] { part(odd); });
  }

  struct DotTile {
    Value* row = nullptr;
    Value* column = nullptr;
    int64_t rows = 0;
    int64_t columns = 0;
  };

  void dots_of(const DotTile& tile, Value* sum) {
    Value* const a = lhs_elements_.at(lhs_, b_.CreateAdd(times(tile.row, row_.lhs), sum));
    Value* const b = rhs_elements_.at(rhs_, b_.CreateAdd(times(tile.column, column_.rhs), sum));
    const auto add = [&](Value* k, const LlvmValues& before, Value* mask) {
      const auto line = [&](const Elements& elements, Value* from, int64_t begin) {
        return elements.load(elements.at(from, b_.CreateAdd(k, number(b_, begin))), t_.width, mask);
      };
      LlvmValues theirs, next;
      for (int64_t c = 0; c < tile.columns; ++c)
        theirs.push_back(line(rhs_elements_, b, c * column_.rhs));
      for (int64_t r = 0; r < tile.rows; ++r) {
        Value* const mine = line(lhs_elements_, a, r * row_.lhs);
        for (Value* const each : theirs)
          next.push_back(sum_elements_.multiply_add(mine, each, before[next.size()]));
      }
      return next;
    };
    Value* const left = b_.CreateSub(number(b_, sum_.extent), sum);
    Value* const count = least(left, number(b_, t_.sums_a_block));
    Value* const full = b_.CreateAnd(count, number(b_, -t_.width));
    LlvmValues sums(static_cast<size_t>(tile.rows * tile.columns), sum_elements_.zeros(t_.width));
    sums = emit_loop(b_, number(b_, 0), full, t_.width, sums,
                     [&](Value* k, const LlvmValues& before) { return add(k, before, nullptr); });
    if (sum_.extent % t_.width != 0) {
      sums = emit_loop(b_, full, count, t_.width, sums, [&](Value* k, const LlvmValues& before) {
        return add(k, before, mask_of(b_, b_.CreateSub(count, k), t_.width));
      });
    }
    store_dots(tile, sum, sums);
  }

  // The lanes of each vector are summed, those of a row together.
  void store_dots(const DotTile& tile, Value* sum, const LlvmValues& sums) {
    const auto store = [&](Value* total, Value* to, Value* mask) {
      if (t_.sums_a_block < sum_.extent) {
        const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(total->getType());
        Value* const before = vector == nullptr
                                  ? result_elements_.load(to)
                                  : result_elements_.load(to, vector->getNumElements(), mask);
        Value* const is_first = b_.CreateICmpEQ(sum, number(b_, 0));
        Value* const both = total->getType()->isFPOrFPVectorTy() ? b_.CreateFAdd(before, total)
                                                                 : b_.CreateAdd(before, total);
        total = b_.CreateSelect(is_first, total, both);
      }
      result_elements_.store(total, to, mask);
    };
    const auto lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tile.columns)));
    const bool by_row = tile.columns > 1 && column_.result == 1 && lanes <= t_.width;
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value* const row = b_.CreateAdd(tile.row, number(b_, r));
      const auto first = sums.begin() + r * tile.columns;
      if (by_row) {
        Value* const mask =
            lanes == tile.columns ? nullptr : mask_of(b_, number(b_, tile.columns), lanes);
        store(sum_elements_.totals({first, first + tile.columns}), result_at(row, tile.column),
              mask);
        continue;
      }
      for (int64_t c = 0; c < tile.columns; ++c) {
        store(sum_elements_.total(first[c]),
              result_at(row, b_.CreateAdd(tile.column, number(b_, c))), nullptr);
      }
    }
  }

  // --- Tiles

  // Emits full tiles; separate functions compute the tiles at the edges.
  void tile(Value* a, Value* b, Value* c, Value* count, Value* sum, Value* row, Value* panel) {
    const int64_t odd_rows = row_.extent % t_.rows;
    const bool odd_columns = column_.extent % t_.columns() != 0;
    Value* const left = b_.CreateSub(number(b_, column_.extent), panel);
    Value* const ahead = fetched_ahead(b, count, sum, row);
    const auto call = [&](int64_t rows) {
      const auto with = [&](bool last) {
        b_.CreateCall(micro_kernel(rows, last), {a, b, c, count, sum, ahead});
      };
      if (!odd_columns) return with(false);
      if (column_.extent < t_.columns()) return with(true);
      emit_branch(
          b_, b_.CreateICmpSGE(left, number(b_, t_.columns())), [&] { with(false); },
          [&] { with(true); });
    };
    if (odd_rows == 0) return call(t_.rows);
    if (row_.extent < t_.rows) return call(odd_rows);
    Value* const whole = b_.CreateICmpSGE(b_.CreateSub(row_end_, row), number(b_, t_.rows));
    emit_branch(b_, whole, [&] { call(t_.rows); }, [&] { call(odd_rows); });
  }

  // --- Panels are fetched ahead: with one tile of rows a panel's own products, with several the
  // next block of panels while this one is computed with.

  bool is_ahead_in_panel() const { return t_.rows_a_group == t_.rows; }

  // Bytes for each row and product; 0: nothing is fetched.
  int64_t ahead_of_row() const {
    constexpr int64_t kFar = 1 << 20;  // bytes of an operand that leaves a near cache
    const int64_t line = t_.columns() * rhs_elements_.bytes();
    if (loops_.panel == 0 || loops_.panel != t_.columns()) return 0;
    if (is_ahead_in_panel()) return divided(line, t_.rows);
    return sum_.extent * column_.extent * rhs_elements_.bytes() >= kFar
               ? divided(line, t_.rows_a_group)
               : 0;
  }

  Value* fetched_ahead(Value* b, Value* count, Value* sum, Value* row) {
    constexpr int64_t kProductsAhead = 16;
    if (ahead_of_row() == 0) return b;
    if (is_ahead_in_panel()) return rhs_elements_.at(b, kProductsAhead * sum_.rhs);
    // The next workgroup's rows may be others, of the first panels again.
    Value* const is_last = b_.CreateICmpSGE(column_end_, number(b_, column_.extent));
    Value* const to_next = b_.CreateSelect(is_last, times(column_begin_, -column_.rhs),
                                           number(b_, t_.panels * t_.columns() * column_.rhs));
    Value* const has_more = b_.CreateICmpSLT(b_.CreateAdd(sum, count), number(b_, sum_.extent));
    Value* const next = b_.CreateSelect(has_more, number(b_, t_.sums_a_block * sum_.rhs),
                                        b_.CreateSub(to_next, times(sum, sum_.rhs)));
    Value* const done = b_.CreateMul(b_.CreateSub(row, row_begin_), count);
    return b_.CreateGEP(b_.getInt8Ty(), rhs_elements_.at(b, next), times(done, ahead_of_row()));
  }

  // void (a, b, c, count, sum, ahead): c (+)= a · b over `count` products; starts from zero if
  // `sum`, the index of the first one, is 0. `last`: for the columns after all full tiles.
  llvm::Function* micro_kernel(int64_t rows, bool last) {
    const std::string name =
        fmt::format("{}.{}{}", function_->getName().str(), rows, last ? ".last" : "");
    if (llvm::Function* const made = module_.getFunction(name)) return made;
    llvm::Type* const pointer = b_.getPtrTy();
    llvm::Type* const integer = b_.getInt64Ty();
    llvm::Type* const types[] = {pointer, pointer, pointer, integer, integer, pointer};
    llvm::Function* const micro =
        llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                               llvm::Function::InternalLinkage, name, module_);
    micro->setDoesNotThrow();
    micro->addFnAttr(llvm::Attribute::NoInline);
    for (unsigned i = 0; i < 3; ++i) micro->addParamAttr(i, llvm::Attribute::NoAlias);
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", micro));
    fill(*micro, rows, last);
    b_.CreateRetVoid();
    return micro;
  }

  void fill(llvm::Function& micro, int64_t rows, bool last) {
    Value* const adds =
        t_.sums_a_block < sum_.extent ? b_.CreateICmpNE(micro.getArg(4), number(b_, 0)) : nullptr;
    MicroTile tile;
    tile.rows = rows;
    tile.vectors = t_.vectors;
    tile.width = t_.width;
    tile.a_row = t_.packs_lhs ? packing_.lhs_row() : row_.lhs;
    tile.a_sum = t_.packs_lhs ? packing_.lhs_sum() : sum_.lhs;
    tile.b_sum = t_.packs_rhs ? t_.columns() : sum_.rhs;
    tile.c_row = t_.keeps_sums ? columns_a_group() : row_.result;
    tile.along_memory = t_.streams;
    tile.ahead = rows * ahead_of_row();
    tile.ahead_is_next = is_ahead_in_panel();
    std::vector<Value*> masks;
    if (last) {
      const int64_t columns = column_.extent % t_.columns();
      tile.vectors = divided(columns, t_.width);
      masks.resize(static_cast<size_t>(tile.vectors));
      const int64_t odd = columns % t_.width;
      if (odd != 0) masks.back() = mask_of(b_, number(b_, odd), t_.width);
    }
    const TileElements elements = {t_.packs_lhs ? sum_elements_ : lhs_elements_,
                                   t_.packs_rhs ? sum_elements_ : rhs_elements_,
                                   t_.keeps_sums ? sum_elements_ : result_elements_};
    emit_micro_kernel(b_, tile, elements, micro.getArg(0), micro.getArg(1), micro.getArg(2),
                      micro.getArg(3), adds, masks, /*reads_all=*/t_.packs_rhs,
                      tile.ahead > 0 ? micro.getArg(5) : nullptr);
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const ContractionLoops& loops_;
  const ContractionLoop row_, column_, sum_;
  const Tiling t_;
  llvm::IRBuilder<> b_;
  const Elements lhs_elements_, rhs_elements_, result_elements_, sum_elements_;
  const Packing packing_;
  int64_t together_ = 1;  // Workgroups that are computed as one.
  llvm::Function* function_ = nullptr;
  // Addresses and bounds of the current workgroup.
  Value* lhs_ = nullptr;
  Value* rhs_ = nullptr;
  Value* result_ = nullptr;
  Value* row_begin_ = nullptr;
  Value* row_end_ = nullptr;
  Value* column_begin_ = nullptr;
  Value* column_end_ = nullptr;
};

}  // namespace

ContractionFunction emit_contraction(llvm::Module& module, const ContractionLoops& loops,
                                     const std::string& name, int64_t vector_bytes) {
  return ContractionEmitter(module, loops, vector_bytes).run(name);
}

}  // namespace tenon::cpu
