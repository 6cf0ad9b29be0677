// The function of a contraction and the launches that follow it row by row.
#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/contraction/epilogue.h"
#include "backends/llvm/loops.h"

namespace tenon::cpu {
namespace {

using codegen::number;
using llvm::Value;

constexpr size_t kContractionBuffers = 3;

class EpilogueEmitter {
 public:
  EpilogueEmitter(llvm::Module& module, const RowGroups& rows)
      : module_(module), rows_(rows), b_(module.getContext()) {}

  llvm::Function* run(const std::string& name, llvm::Function* contraction,
                      const std::vector<EpilogueKernel>& parts) {
    buffers_ = kContractionBuffers;
    for (const EpilogueKernel& part : parts) buffers_ += part.buffers;
    make_function(name);
    codegen::emit_loop(b_, argument(buffers_), argument(buffers_ + 1), 1, {},
                       [&](Value* group, const codegen::LlvmValues&) {
                         emit_group(group, contraction, parts);
                         return codegen::LlvmValues{};
                       });
    b_.CreateRetVoid();
    return function_;
  }

 private:
  void make_function(const std::string& name) {
    std::vector<llvm::Type*> types(buffers_, b_.getPtrTy());
    types.insert(types.end(), {b_.getInt64Ty(), b_.getInt64Ty(), b_.getPtrTy(), b_.getPtrTy()});
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                       llvm::Function::InternalLinkage, name, module_);
    function_->setDoesNotThrow();
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", function_));
  }

  Value* argument(size_t i) { return function_->getArg(static_cast<unsigned>(i)); }
  Value* times(Value* x, int64_t by) { return b_.CreateMul(x, number(b_, by)); }

  void emit_group(Value* group, llvm::Function* contraction,
                  const std::vector<EpilogueKernel>& parts) {
    call({contraction, kContractionBuffers, {}, 1}, 0, times(group, rows_.workgroups_a_group),
         times(b_.CreateAdd(group, number(b_, 1)), rows_.workgroups_a_group));
    Value* const groups = number(b_, rows_.groups_a_turn());
    Value* const first = times(b_.CreateURem(group, groups), rows_.rows_a_group);
    Value* const last = b_.CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, b_.CreateAdd(first, number(b_, rows_.rows_a_group)),
        number(b_, rows_.rows));
    Value* const before = times(b_.CreateUDiv(group, groups), rows_.rows);
    size_t buffer = kContractionBuffers;
    for (const EpilogueKernel& part : parts) {
      call(part, buffer, times(b_.CreateAdd(before, first), part.workgroups_a_row),
           times(b_.CreateAdd(before, last), part.workgroups_a_row));
      buffer += part.buffers;
    }
  }

  void call(const EpilogueKernel& part, size_t buffer, Value* begin, Value* end) {
    std::vector<Value*> arguments;
    for (size_t i = 0; i < part.buffers; ++i) arguments.push_back(argument(buffer + i));
    arguments.insert(arguments.end(), part.scalars.begin(), part.scalars.end());
    arguments.insert(arguments.end(), {begin, end, argument(buffers_ + 2), argument(buffers_ + 3)});
    b_.CreateCall(part.function, arguments);
  }

  llvm::Module& module_;
  const RowGroups& rows_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  size_t buffers_ = 0;
};

}  // namespace

llvm::Function* make_fused_contraction(llvm::Module& module, const std::string& name,
                                       const RowGroups& rows, llvm::Function* contraction,
                                       const std::vector<EpilogueKernel>& parts) {
  return EpilogueEmitter(module, rows).run(name, contraction, parts);
}

}  // namespace tenon::cpu
