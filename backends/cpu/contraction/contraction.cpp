#include "backends/cpu/contraction/contraction.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/contraction/contraction_frame.h"
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

class ContractionEmitter final : public ContractionFrame {
 public:
  ContractionEmitter(llvm::Module& module, const ContractionLoops& loops, int64_t vector_bytes)
      : ContractionFrame(module, loops, vector_bytes), packing_(b_, loops_, t_) {}

 private:
  // --- Scratch memory: panels of the right operand, rows of the left one, sums.
  int64_t scratch_lhs() const {
    return aligned(t_.packs_rhs ? t_.panels * packing_.panel_bytes() : 0);
  }
  int64_t scratch_sums() const {
    return scratch_lhs() + aligned(t_.packs_lhs ? packing_.lhs_bytes() : 0);
  }
  int64_t sums_bytes() const { return t_.rows_a_group * columns_a_group() * sum_elements_.bytes(); }
  int64_t scratch_bytes() const override {
    return scratch_sums() + (t_.keeps_sums ? sums_bytes() : 0);
  }

  void emit_workgroup() override {
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

  const Packing packing_;
};

}  // namespace

ContractionFunction emit_contraction(llvm::Module& module, const ContractionLoops& loops,
                                     const std::string& name, int64_t vector_bytes) {
  return loops.unit == MatrixUnit::kNone
             ? ContractionEmitter(module, loops, vector_bytes).run(name)
             : emit_matrix_contraction(module, loops, name, vector_bytes);
}

}  // namespace tenon::cpu
