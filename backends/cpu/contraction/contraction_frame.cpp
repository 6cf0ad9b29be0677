#include "backends/cpu/contraction/contraction_frame.h"

#include <algorithm>

#include "backends/llvm/loops.h"

namespace tenon::cpu {

using codegen::number;
using llvm::Value;

namespace {

// More columns would make their sums, which each block of lines reads again, leave the cache.
constexpr int64_t kColumnsTogether = 1 << 14;

}  // namespace

ContractionFrame::ContractionFrame(llvm::Module& module, const ContractionLoops& loops,
                                   int64_t vector_bytes)
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
      sum_elements_(b_, loops.sum, loops.sum) {}

ContractionFunction ContractionFrame::run(const std::string& name) {
  ContractionFunction made;
  make_function(name);
  const int64_t row_groups = divided(row_.extent, t_.rows_a_group);
  const int64_t column_groups = divided(column_.extent, columns_a_group());
  // The loops over workgroups, outermost first.
  std::vector<ContractionLoop> outer = loops_.batch;
  outer.insert(outer.end(), loops_.rows.begin(), loops_.rows.end() - 1);
  outer.insert(outer.end(), loops_.columns.begin(), loops_.columns.end() - 1);
  outer.push_back({row_groups, 0, 0, 0});
  outer.push_back({column_groups, 0, 0, 0});
  for (const ContractionLoop& loop : outer) made.workgroups *= loop.extent;
  if (t_.joins) together_ = kColumnsTogether / columns_a_group();
  made.joins_workgroups = t_.joins;
  emit_begin();
  each(function_->getArg(3), function_->getArg(4), together_, [&](Value* place) {
    find_workgroup(place, outer);
    emit_workgroup();
  });
  emit_end();
  b_.CreateRetVoid();
  made.kernel = {function_, scratch_bytes()};
  const int64_t rows = std::min(row_.extent, t_.rows_a_group);
  const int64_t columns = std::min(column_.extent, columns_a_group());
  made.flops_a_workgroup =
      2.0 * static_cast<double>(rows * columns) * static_cast<double>(sum_.extent);
  return made;
}

int64_t ContractionFrame::aligned(int64_t bytes) {
  return divided(bytes, kCacheLineBytes) * kCacheLineBytes;
}

Value* ContractionFrame::scratch(int64_t byte) {
  return b_.CreateConstGEP1_64(b_.getInt8Ty(), function_->getArg(5), static_cast<uint64_t>(byte));
}

Value* ContractionFrame::times(Value* x, int64_t by) {
  return b_.CreateMul(x, number(b_, by), "", false, true);
}

Value* ContractionFrame::least(Value* x, Value* y) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
}

void ContractionFrame::each(Value* low, Value* high, int64_t step,
                            const std::function<void(Value*)>& body) {
  codegen::emit_loop(b_, low, high, step, {}, [&](Value* i, const codegen::LlvmValues&) {
    body(i);
    return codegen::LlvmValues{};
  });
}

Value* ContractionFrame::result_at(Value* row, Value* column) {
  return result_elements_.at(result_,
                             b_.CreateAdd(times(row, row_.result), times(column, column_.result)));
}

void ContractionFrame::make_function(const std::string& name) {
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

void ContractionFrame::find_workgroup(Value* place, const std::vector<ContractionLoop>& outer) {
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
  row_end_ = least(b_.CreateAdd(row_begin_, number(b_, t_.rows_a_group)), number(b_, row_.extent));
  column_end_ = number(b_, column_.extent);
  if (together_ == 1) {
    column_end_ = least(b_.CreateAdd(column_begin_, number(b_, columns_a_group())), column_end_);
  } else {
    Value* const end = least(b_.CreateAdd(place, number(b_, together_)), function_->getArg(4));
    column_end_ = least(times(end, columns_a_group()), column_end_);
  }
}

}  // namespace tenon::cpu
