// Contractions of narrow numbers by MatrixUnit.
//
// Operands are packed, a block of products at a time (matrix_packing.h): the columns of a
// workgroup, and its rows where they do not lie as tiles are read. Then up to two tiles of rows are
// multiplied by up to two tiles of columns. AMX has eight registers for tiles: four of sums, two of
// each operand. The instructions on vectors read the same tiles: vectors of a group of each column,
// and a group of a row, broadcast.
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "backends/cpu/contraction/contraction_frame.h"
#include "backends/cpu/contraction/matrix_packing.h"
#include "backends/llvm/loops.h"

namespace tenon::cpu {
namespace {

using codegen::emit_branch;
using codegen::emit_loop;
using codegen::LlvmValues;
using codegen::number;
using llvm::Value;

// The products of tiles: sums, of so many tiles of rows and of columns, in memory.
struct MatrixProduct {
  int64_t row_tiles = 1;
  int64_t column_tiles = 1;
  int64_t panel_tiles = 1;  // Tiles of columns that lie side by side.
  int64_t a_line = 0;       // Bytes from one row to the next,
  int64_t a_tile = 0;       // from one tile of rows to the next,
  int64_t a_step = 0;       // and from one tile of products to the next.
};

// Emits c (+)= a * b by one kind of instruction.
class MatrixMicroKernel {
 public:
  MatrixMicroKernel(llvm::IRBuilder<>& b, const ContractionLoops& loops,
                    const MatrixProduct& product)
      : b_(b), loops_(loops), p_(product), sums_(b, loops.sum, loops.sum) {}

  /// `steps`: tiles of products; `stride`: bytes between lines of c; `adds`: an i1.
  void emit(Value* a, Value* b, Value* c, Value* stride, Value* steps, Value* adds) {
    if (has_tiles(loops_.unit)) return with_tiles(a, b, c, stride, steps, adds);
    // Two vectors of columns share what is broadcast, eight rows at a time; one takes 16.
    const int64_t rows = kMatrixLines / p_.column_tiles;
    for (int64_t row = 0; row < p_.row_tiles * kMatrixLines; row += rows) {
      const int64_t at = row / kMatrixLines * p_.a_tile + row % kMatrixLines * p_.a_line;
      Value* const line = b_.CreateMul(stride, number(b_, row));
      with_vectors(rows, byte(a, at), b, b_.CreateGEP(b_.getInt8Ty(), c, line), stride, steps,
                   adds);
    }
  }

 private:
  Value* byte(Value* base, int64_t at) {
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), base, static_cast<uint64_t>(at));
  }
  Value* step_at(Value* base, Value* step, int64_t bytes) {
    return b_.CreateGEP(b_.getInt8Ty(), base, b_.CreateMul(step, number(b_, bytes)));
  }
  int64_t panel_bytes() const { return p_.panel_tiles * kMatrixTileBytes; }

  // --- AMX: registers 0 to 3 are sums, 4 and 5 rows, 6 and 7 columns.
  static unsigned sum_tile(int64_t i, int64_t j) { return static_cast<unsigned>(2 * i + j); }
  Value* tile(unsigned index) { return b_.getInt8(static_cast<uint8_t>(index)); }
  void call(llvm::Intrinsic::ID id, const std::vector<Value*>& arguments) {
    b_.CreateIntrinsic(id, {}, arguments);
  }

  llvm::Intrinsic::ID multiply() const {
    if (loops_.unit == MatrixUnit::kTilesBf16) return llvm::Intrinsic::x86_tdpbf16ps;
    const bool a_signed = is_signed_integer(loops_.lhs), b_signed = is_signed_integer(loops_.rhs);
    if (a_signed) return b_signed ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbsud;
    return b_signed ? llvm::Intrinsic::x86_tdpbusd : llvm::Intrinsic::x86_tdpbuud;
  }

  void each_sum(const std::function<void(unsigned tile, int64_t i, int64_t j)>& body) {
    for (int64_t i = 0; i < p_.row_tiles; ++i) {
      for (int64_t j = 0; j < p_.column_tiles; ++j) body(sum_tile(i, j), i, j);
    }
  }

  void with_tiles(Value* a, Value* b, Value* c, Value* stride, Value* steps, Value* adds) {
    const auto place = [&](int64_t i, int64_t j) {
      Value* const row = b_.CreateMul(stride, number(b_, i * kMatrixLines));
      return byte(b_.CreateGEP(b_.getInt8Ty(), c, row), j * kCacheLineBytes);
    };
    emit_branch(
        b_, adds,
        [&] {
          each_sum([&](unsigned sum, int64_t i, int64_t j) {
            call(llvm::Intrinsic::x86_tileloadd64, {tile(sum), place(i, j), stride});
          });
        },
        [&] {
          each_sum([&](unsigned sum, int64_t, int64_t) {
            call(llvm::Intrinsic::x86_tilezero, {tile(sum)});
          });
        });
    emit_loop(b_, number(b_, 0), steps, 1, {}, [&](Value* step, const LlvmValues&) {
      step_of_tiles(step_at(a, step, p_.a_step), step_at(b, step, panel_bytes()));
      return LlvmValues{};
    });
    each_sum([&](unsigned sum, int64_t i, int64_t j) {
      call(llvm::Intrinsic::x86_tilestored64, {tile(sum), place(i, j), stride});
    });
  }

  void step_of_tiles(Value* a, Value* b) {
    constexpr unsigned kRows = 4, kColumns = 6;
    Value* const line = number(b_, kCacheLineBytes);
    for (int64_t j = 0; j < p_.column_tiles; ++j) {
      call(llvm::Intrinsic::x86_tileloadd64,
           {tile(kColumns + static_cast<unsigned>(j)), byte(b, j * kMatrixTileBytes), line});
    }
    for (int64_t i = 0; i < p_.row_tiles; ++i) {
      const auto rows = kRows + static_cast<unsigned>(i);
      call(llvm::Intrinsic::x86_tileloadd64,
           {tile(rows), byte(a, i * p_.a_tile), number(b_, p_.a_line)});
      for (int64_t j = 0; j < p_.column_tiles; ++j) {
        call(multiply(),
             {tile(sum_tile(i, j)), tile(rows), tile(kColumns + static_cast<unsigned>(j))});
      }
    }
  }

  // --- Instructions on vectors

  Value* multiply_add(Value* sum, Value* a, Value* b) {
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpwssd_512, {}, {sum, a, b});
  }

  void with_vectors(int64_t rows, Value* a, Value* b, Value* c, Value* stride, Value* steps,
                    Value* adds) {
    const auto place = [&](int64_t r, int64_t j) {
      Value* const row = b_.CreateMul(stride, number(b_, r));
      return byte(b_.CreateGEP(b_.getInt8Ty(), c, row), j * kCacheLineBytes);
    };
    LlvmValues sums = codegen::emit_if(b_, adds, [&](size_t side) {
      LlvmValues starts;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = 0; j < p_.column_tiles; ++j) {
          starts.push_back(side == 0 ? sums_.load(place(r, j), kMatrixLines)
                                     : sums_.zeros(kMatrixLines));
        }
      }
      return starts;
    });
    auto* const groups = llvm::FixedVectorType::get(b_.getInt32Ty(), kMatrixLines);
    // A tile has 16 groups of each line.
    Value* const count = b_.CreateMul(steps, number(b_, kMatrixLines));
    sums = emit_loop(b_, number(b_, 0), count, 1, sums, [&](Value* k, const LlvmValues& before) {
      Value* const step = b_.CreateLShr(k, 4);
      Value* const group = b_.CreateAnd(k, number(b_, kMatrixLines - 1));
      Value* const a_at = step_at(step_at(a, step, p_.a_step), group, sizeof(int32_t));
      Value* const b_at = step_at(step_at(b, step, panel_bytes()), group, kCacheLineBytes);
      LlvmValues columns, next;
      for (int64_t j = 0; j < p_.column_tiles; ++j) {
        columns.push_back(b_.CreateAlignedLoad(groups, byte(b_at, j * kMatrixTileBytes),
                                               llvm::Align(kCacheLineBytes)));
      }
      for (int64_t r = 0; r < rows; ++r) {
        Value* const one =
            b_.CreateAlignedLoad(b_.getInt32Ty(), byte(a_at, r * p_.a_line), llvm::Align(1));
        Value* const all = b_.CreateVectorSplat(kMatrixLines, one);
        for (Value* const column : columns)
          next.push_back(multiply_add(before[next.size()], all, column));
      }
      return next;
    });
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < p_.column_tiles; ++j)
        sums_.store(sums[static_cast<size_t>(r * p_.column_tiles + j)], place(r, j));
    }
  }

  llvm::IRBuilder<>& b_;
  const ContractionLoops& loops_;
  const MatrixProduct p_;
  const Elements sums_;
};

class MatrixContractionEmitter final : public ContractionFrame {
 public:
  MatrixContractionEmitter(llvm::Module& module, const ContractionLoops& loops,
                           int64_t vector_bytes)
      : ContractionFrame(module, loops, vector_bytes),
        rows_(b_, {loops.lhs, row_.extent, sum_.extent, row_.lhs, sum_.lhs}, loops.unit,
              /*by_groups=*/false, {1, row_tile_bytes(), kMatrixTileBytes}),
        columns_(b_, {loops.rhs, column_.extent, sum_.extent, column_.rhs, sum_.rhs}, loops.unit,
                 /*by_groups=*/true, {t_.vectors, panel_bytes(), t_.vectors * kMatrixTileBytes}) {}

 private:
  // --- Scratch memory: tiles of columns, tiles of rows, sums.
  int64_t products_a_tile() const { return kMatrixLines * matrix_group(loops_.unit); }
  int64_t steps_a_block() const {
    return divided(std::min(sum_.extent, t_.sums_a_block), products_a_tile());
  }
  // Panels and tiles of rows are padded, so that they begin in different sets of a cache.
  int64_t panel_bytes() const { return t_.vectors * row_tile_bytes(); }
  int64_t row_tile_bytes() const { return steps_a_block() * kMatrixTileBytes + kCacheLineBytes; }
  int64_t panels_bytes() const { return t_.panels * panel_bytes(); }
  int64_t rows_bytes() const {
    return t_.packs_lhs ? t_.rows / kMatrixLines * row_tile_bytes() : 0;
  }
  bool has_blocks() const { return t_.sums_a_block < sum_.extent; }
  // Sums of a panel's columns lie one row after the other. One tile of them is enough if they are
  // complete after a block.
  int64_t row_of_sums() const { return t_.columns() * sum_elements_.bytes(); }
  int64_t sums_bytes() const {
    if (!t_.keeps_sums) return 0;
    return has_blocks() ? t_.panels * t_.rows_a_group * row_of_sums() : t_.rows * row_of_sums();
  }
  int64_t scratch_bytes() const override { return panels_bytes() + rows_bytes() + sums_bytes(); }

  void emit_begin() override {
    if (!has_tiles(loops_.unit)) return;
    b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {tile_shapes()});
  }
  void emit_end() override {
    if (has_tiles(loops_.unit)) b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
  }

  // The operand of LDTILECFG: palette 1, eight tiles of 16 rows of 64 bytes.
  llvm::GlobalVariable* tile_shapes() {
    constexpr const char* kName = "tenon.tile_shapes";
    if (auto* const made = module_.getGlobalVariable(kName, true)) return made;
    constexpr size_t kTiles = 8, kWidths = 16, kHeights = 48;
    std::vector<uint8_t> bytes(kCacheLineBytes);
    bytes[0] = 1;
    for (size_t tile = 0; tile < kTiles; ++tile) {
      bytes[kWidths + 2 * tile] = kCacheLineBytes;
      bytes[kHeights + tile] = kMatrixLines;
    }
    auto* const data = llvm::ConstantDataArray::get(context_, bytes);
    auto* const made = new llvm::GlobalVariable(module_, data->getType(), /*isConstant=*/true,
                                                llvm::GlobalValue::InternalLinkage, data, kName);
    made->setAlignment(llvm::Align(kCacheLineBytes));
    return made;
  }

  void emit_workgroup() override {
    each(number(b_, 0), number(b_, sum_.extent), t_.sums_a_block, [&](Value* sum) { block(sum); });
  }

  // Adds a block of products to the workgroup's part of the result.
  void block(Value* sum) {
    Value* const count =
        least(b_.CreateSub(number(b_, sum_.extent), sum), number(b_, t_.sums_a_block));
    const auto from = [&](const Elements& elements, Value* base, Value* line, int64_t by,
                          int64_t by_sum) {
      return elements.at(base, b_.CreateAdd(times(line, by), times(sum, by_sum)));
    };
    columns_.tiles(scratch(0), from(rhs_elements_, rhs_, column_begin_, column_.rhs, sum_.rhs),
                   b_.CreateSub(column_end_, column_begin_), count);
    Value* const steps = b_.CreateUDiv(b_.CreateAdd(count, number(b_, products_a_tile() - 1)),
                                       number(b_, products_a_tile()));
    each(row_begin_, row_end_, t_.rows, [&](Value* row) {
      Value* a = from(lhs_elements_, lhs_, row, row_.lhs, sum_.lhs);
      if (t_.packs_lhs) {
        Value* const end = least(b_.CreateAdd(row, number(b_, t_.rows)), row_end_);
        rows_.tiles(scratch(panels_bytes()), a, b_.CreateSub(end, row), count);
        a = scratch(panels_bytes());
      }
      each(column_begin_, column_end_, t_.columns(),
           [&](Value* panel) { tile(a, row, panel, sum, count, steps); });
    });
  }

  // One product of tiles, and, if it is the last block, what becomes of the sums.
  void tile(Value* a, Value* row, Value* panel, Value* sum, Value* count, Value* steps) {
    Value* const row_in_group = b_.CreateSub(row, row_begin_);
    Value* const panel_in_group =
        b_.CreateUDiv(b_.CreateSub(panel, column_begin_), number(b_, t_.columns()));
    const auto byte_at = [&](Value* base, Value* bytes) {
      return b_.CreateGEP(b_.getInt8Ty(), base, bytes);
    };
    Value* const b = byte_at(scratch(0), times(panel_in_group, panel_bytes()));
    Value* c = nullptr;
    int64_t stride = row_of_sums();
    if (!t_.keeps_sums) {
      c = result_at(row, panel);
      stride = row_.result * sum_elements_.bytes();
    } else {
      c = scratch(panels_bytes() + rows_bytes());
      if (has_blocks()) {
        Value* const line = b_.CreateAdd(times(panel_in_group, t_.rows_a_group), row_in_group);
        c = byte_at(c, times(line, row_of_sums()));
      }
    }
    Value* const adds = b_.CreateICmpNE(sum, number(b_, 0));
    by_size(b_.CreateSub(row_end_, row), row_.extent, t_.rows, [&](int64_t row_tiles) {
      by_size(b_.CreateSub(column_end_, panel), column_.extent, t_.columns(),
              [&](int64_t column_tiles) {
                b_.CreateCall(micro_kernel(row_tiles, column_tiles),
                              {a, b, c, number(b_, stride), steps, adds});
              });
    });
    if (!t_.keeps_sums) return;
    if (!has_blocks()) return finish(c, row, panel);
    Value* const is_last = b_.CreateICmpSGE(b_.CreateAdd(sum, count), number(b_, sum_.extent));
    emit_branch(b_, is_last, [&] { finish(c, row, panel); }, [] {});
  }

  // Calls body with the number of tiles of `left` lines, of which `most` are taken at a time.
  void by_size(Value* left, int64_t extent, int64_t most,
               const std::function<void(int64_t tiles)>& body) {
    const int64_t rest = extent % most;
    if (most == kMatrixLines) return body(1);
    if (rest == 0 || rest > kMatrixLines) return body(2);
    emit_branch(
        b_, b_.CreateICmpSGT(left, number(b_, kMatrixLines)), [&] { body(2); }, [&] { body(1); });
  }

  // Rounds the sums of a tile.
  void finish(Value* c, Value* row, Value* panel) {
    Value* const end = least(b_.CreateAdd(row, number(b_, t_.rows)), row_end_);
    Value* const left = b_.CreateSub(column_end_, panel);
    const bool has_odd = column_.extent % t_.columns() != 0;
    each(row, end, 1, [&](Value* r) {
      Value* const line =
          b_.CreateGEP(b_.getInt8Ty(), c, times(b_.CreateSub(r, row), row_of_sums()));
      for (int64_t v = 0; v < t_.vectors; ++v) {
        Value* const mask =
            has_odd ? mask_of(b_, b_.CreateSub(left, number(b_, v * kMatrixLines)), kMatrixLines)
                    : nullptr;
        Value* const column = b_.CreateAdd(panel, number(b_, v * kMatrixLines));
        result_elements_.store(
            sum_elements_.load(sum_elements_.at(line, v * kMatrixLines), kMatrixLines),
            result_at(r, column), mask);
      }
    });
  }

  // void (a, b, c, stride, steps, adds)
  llvm::Function* micro_kernel(int64_t row_tiles, int64_t column_tiles) {
    const std::string name =
        fmt::format("{}.{}x{}", function_->getName().str(), row_tiles, column_tiles);
    if (llvm::Function* const made = module_.getFunction(name)) return made;
    llvm::Type* const pointer = b_.getPtrTy();
    llvm::Type* const integer = b_.getInt64Ty();
    llvm::Type* const types[] = {pointer, pointer, pointer, integer, integer, b_.getInt1Ty()};
    llvm::Function* const micro =
        llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                               llvm::Function::InternalLinkage, name, module_);
    micro->setDoesNotThrow();
    micro->addFnAttr(llvm::Attribute::NoInline);
    for (unsigned i = 0; i < 3; ++i) micro->addParamAttr(i, llvm::Attribute::NoAlias);
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", micro));
    MatrixProduct product{row_tiles, column_tiles, t_.vectors};
    const int64_t row_bytes = row_.lhs * lhs_elements_.bytes();
    product.a_line = t_.packs_lhs ? kCacheLineBytes : row_bytes;
    product.a_tile = t_.packs_lhs ? row_tile_bytes() : kMatrixLines * row_bytes;
    product.a_step = t_.packs_lhs ? kMatrixTileBytes : kCacheLineBytes;
    MatrixMicroKernel(b_, loops_, product)
        .emit(micro->getArg(0), micro->getArg(1), micro->getArg(2), micro->getArg(3),
              micro->getArg(4), micro->getArg(5));
    b_.CreateRetVoid();
    return micro;
  }

  const MatrixPacking rows_, columns_;
};

}  // namespace

ContractionFunction emit_matrix_contraction(llvm::Module& module, const ContractionLoops& loops,
                                            const std::string& name, int64_t vector_bytes) {
  return MatrixContractionEmitter(module, loops, vector_bytes).run(name);
}

MatrixUnit matrix_unit_of(const codegen::TargetCpu& cpu, const ContractionLoops& loops) {
  using enum ElementType;
  constexpr int64_t kLeastProducts = 16;
  const ContractionLoop &row = loops.rows.back(), &column = loops.columns.back();
  const ContractionLoop& sum = loops.sums[0];
  if (std::min(row.extent, column.extent) < kLeastMatrixLines || sum.extent < kLeastProducts ||
      !has_matrix_lines(row.lhs, sum.lhs) || !has_matrix_lines(column.rhs, sum.rhs)) {
    return MatrixUnit::kNone;
  }
  if (loops.lhs == kBF16 && loops.rhs == kBF16 && loops.sum == kF32)
    return cpu.tiles ? MatrixUnit::kTilesBf16 : MatrixUnit::kNone;
  const auto is_narrow = [](ElementType type, int bits) {
    return is_integer(type) && bit_width(type) <= bits;
  };
  if (!is_integer(loops.sum) || bit_width(loops.sum) != 32) return MatrixUnit::kNone;
  constexpr int kByte = 8, kWord = 16;
  if (cpu.tiles && is_narrow(loops.lhs, kByte) && is_narrow(loops.rhs, kByte))
    return MatrixUnit::kTilesBytes;
  const auto fits_word = [&](ElementType type) {
    return is_narrow(type, kByte) || (is_narrow(type, kWord) && is_signed_integer(type));
  };
  return cpu.dots_words && fits_word(loops.lhs) && fits_word(loops.rhs) ? MatrixUnit::kDotsWords
                                                                        : MatrixUnit::kNone;
}

}  // namespace tenon::cpu
