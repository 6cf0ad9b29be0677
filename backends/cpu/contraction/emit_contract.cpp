// `contract` statements as tiles of sums in registers.
#include <algorithm>

#include "backends/cpu/codegen/emitter.h"
#include "backends/cpu/contraction/micro_kernel.h"
#include "backends/cpu/contraction/tiling.h"
#include "backends/llvm/loops.h"
#include "core/kernel/legalize/tiles.h"
#include "core/kernel/transform/simplify.h"

namespace tenon::cpu {

using kernel::Kernel;
using kernel::Memory;
using kernel::Node;
using kernel::OpCode;

namespace {

// A product of tiles as loops over register tiles. Strides are in elements.
struct Product {
  // The groups of rows and columns that lanes own, which are contiguous.
  int64_t row_groups = 1;
  int64_t column_groups = 1;
  int64_t rows = 1;  // Rows of a group.
  int64_t columns = 1;
  int64_t a_row = 0;
  MicroTile tile;
};

// Determines the rows and columns of the sums; false if the statement covers only a part of private
// sums.
bool shape_of_sums(const Kernel& kernel, const Node& n, Product& product) {
  const Memory& c = kernel.memory(n.memories[0]);
  if (c.space != kernel::Space::kPrivate) {
    const Dims strides = c.resolved_strides();
    product.rows = n.extents[0];
    product.columns = n.extents[1];
    product.tile.c_row = strides[strides.size() - 2];
    return strides.back() == 1;
  }
  product.row_groups = c.dims[0];
  product.column_groups = c.dims[1];
  product.rows = c.dims[2];
  product.columns = c.dims[3];
  product.tile.c_row = c.dims[3];
  return kernel::covers_private_sums(kernel, n);
}

std::optional<Product> product_of(const Kernel& kernel, const Node& n, int64_t vector_bytes) {
  const Memory& c = kernel.memory(n.memories[0]);
  const Memory& a = kernel.memory(n.memories[1]);
  const Memory& b = kernel.memory(n.memories[2]);
  const Dims a_strides = a.resolved_strides();
  const Dims b_strides = b.resolved_strides();
  Product product;
  const bool plain = !n.transpose_b && b_strides.back() == 1 && !a.packed && !b.packed;
  if (!plain || sum_type(a.type, b.type, c.type) != c.type) return std::nullopt;
  if (!shape_of_sums(kernel, n, product)) return std::nullopt;
  MicroTile& tile = product.tile;
  const auto bytes = static_cast<int64_t>(storage_bytes(c.type));
  tile.width = std::max<int64_t>(vector_bytes / bytes, 1);
  while (tile.width > 1 && product.columns % tile.width != 0) tile.width /= 2;
  constexpr int64_t kNarrowest = 16;
  if (tile.width * bytes < std::min(kNarrowest, vector_bytes)) return std::nullopt;
  tile.vectors = product.columns % (2 * tile.width) == 0 ? 2 : 1;
  const int64_t registers = vector_bytes >= 64 ? 32 : 16;
  tile.rows = divided(product.rows, divided(product.rows, (registers - 4) / tile.vectors));
  const int64_t a_rows = a_strides[a_strides.size() - 2];
  product.a_row = n.transpose_a ? a_strides.back() : a_rows;
  tile.a_row = product.a_row;
  tile.a_sum = n.transpose_a ? a_rows : a_strides.back();
  tile.b_sum = b_strides[b_strides.size() - 2];
  return product;
}

}  // namespace

Kernel with_native_tiles(const Kernel& kernel, int64_t vector_bytes) {
  if (!kernel::has_tiles(kernel)) return kernel;
  const auto is_native = [&](const Node& n) {
    return n.op == OpCode::kContract && product_of(kernel, n, vector_bytes).has_value();
  };
  return kernel::simplify(kernel::expand_tiles(kernel, false, is_native));
}

// void (a, b, c, ahead): c += a · b over `count` products. What the kernel keeps in registers
// around it would leave it too few.
llvm::Function* CpuKernelEmitter::micro_kernel(const MicroTile& tile, const TileElements& elements,
                                               int64_t count) {
  const std::vector<llvm::Type*> pointers(4, b_.getPtrTy());
  llvm::Function* const micro = llvm::Function::Create(
      llvm::FunctionType::get(b_.getVoidTy(), pointers, false), llvm::Function::InternalLinkage,
      function_->getName() + ".contract", function_->getParent());
  micro->setDoesNotThrow();
  micro->addFnAttr(llvm::Attribute::NoInline);
  for (unsigned i = 0; i < 3; ++i) micro->addParamAttr(i, llvm::Attribute::NoAlias);
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", micro));
  emit_micro_kernel(b_, tile, elements, micro->getArg(0), micro->getArg(1), micro->getArg(2),
                    number(count), b_.getTrue(), {}, false,
                    tile.ahead > 0 ? micro->getArg(3) : nullptr);
  b_.CreateRetVoid();
  return micro;
}

void CpuKernelEmitter::contract(const Node& n) {
  const Product product = *product_of(kernel_, n, vector_bytes_);
  MicroTile tile = product.tile;
  const ElementType type = kernel_.memory(n.memories[0]).type;
  const bool is_private = kernel_.memory(n.memories[0]).space == kernel::Space::kPrivate;
  const size_t c_rank = is_private ? 2 : kernel_.memory(n.memories[0]).dims.size();
  const size_t a_rank = kernel_.memory(n.memories[1]).dims.size();
  const TileElements elements = {Elements(b_, kernel_.memory(n.memories[1]).type, type),
                                 Elements(b_, kernel_.memory(n.memories[2]).type, type),
                                 Elements(b_, type, type)};
  Value* const c =
      is_private ? memories_[n.memories[0]] : address(n.memories[0], n.operands, 0).pointer;
  Value* const a = address(n.memories[1], n.operands, c_rank).pointer;
  Value* const b = address(n.memories[2], n.operands, c_rank + a_rank).pointer;
  const auto each = [&](int64_t count, int64_t step, const std::function<void(Value*)>& body) {
    loop(number(0), number(count), step, body);
  };
  const auto at = [&](Value* x, int64_t by) {
    return b_.CreateMul(x, number(by), "", false, true);
  };
  tile.along_memory = kernel_.memory(n.memories[2]).space == kernel::Space::kScratch;
  const int64_t group = product.rows * product.columns;
  // Panels: the next one is behind this one, and is fetched meanwhile.
  const bool in_panels = kernel_.memory(n.memories[2]).space == kernel::Space::kBuffer &&
                         tile.b_sum == product.columns && product.column_groups == 1 &&
                         product.columns == tile.vectors * tile.width;
  const int64_t ahead_of_row =
      in_panels ? divided(tile.b_sum * elements.b.bytes(), product.rows) : 0;
  const auto micro_of = [&](int64_t rows) {
    MicroTile part = tile;
    part.rows = rows;
    part.ahead = rows * ahead_of_row;
    return micro_kernel(part, elements, n.extents[2]);
  };
  llvm::Function* const whole = micro_of(tile.rows);
  // As many tiles as fit all rows; the last ones have one row less if those do not fill all.
  const int64_t tiles = divided(product.rows, tile.rows);
  const int64_t smaller = tiles * tile.rows - product.rows;
  const int64_t in_whole = (tiles - smaller) * tile.rows;
  llvm::Function* const less = smaller > 0 ? micro_of(tile.rows - 1) : nullptr;
  Value* const next = elements.b.at(b, number(n.extents[2] * tile.b_sum));
  each(product.row_groups, 1, [&](Value* i) {
    each(product.column_groups, 1, [&](Value* j) {
      Value* const of_group = b_.CreateAdd(at(i, product.column_groups * group), at(j, group));
      // The lines of b that a column of register tiles reads stay in the nearest cache.
      each(product.columns, tile.vectors * tile.width, [&](Value* s) {
        const auto call = [&](llvm::Function* micro, Value* r) {
          Value* const row = b_.CreateAdd(at(i, product.rows), r);
          Value* const column = b_.CreateAdd(at(j, product.columns), s);
          Value* const in_group = b_.CreateAdd(at(r, tile.c_row), s);
          Value* const ahead =
              in_panels ? b_.CreateGEP(b_.getInt8Ty(), next, at(r, ahead_of_row * n.extents[2]))
                        : b;
          b_.CreateCall(micro, {elements.a.at(a, at(row, product.a_row)), elements.b.at(b, column),
                                elements.c.at(c, b_.CreateAdd(of_group, in_group)), ahead});
        };
        each(in_whole, tile.rows, [&](Value* r) { call(whole, r); });
        if (less == nullptr) return;
        loop(number(in_whole), number(product.rows), tile.rows - 1,
             [&](Value* r) { call(less, r); });
      });
    });
  });
}

}  // namespace tenon::cpu
