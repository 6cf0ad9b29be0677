// Code that calls LAPACK: a description of the call, and a function with the form of a
// contraction's.
#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/compiling.h"
#include "backends/cpu/lapack/lapack.h"
#include "core/base/digest.h"

namespace tenon::cpu {
namespace {

// A guess of the time of one matrix on one thread; tasks are cut by it.
double lapack_nanoseconds(const LapackCall& call) {
  const auto rows = static_cast<double>(call.rows), columns = static_cast<double>(call.columns);
  return 5000 + rows * columns * static_cast<double>(std::min(call.rows, call.columns)) * 0.3;
}

void emit_lapack_call(llvm::Module& module, const CpuKernelCode& code,
                      const std::vector<int64_t>& numbers) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  const size_t count = code.buffers.size();
  std::vector<llvm::Type*> types(count, b.getPtrTy());
  types.insert(types.end(), {b.getInt64Ty(), b.getInt64Ty(), b.getPtrTy(), b.getPtrTy()});
  auto* const function = llvm::Function::Create(
      llvm::FunctionType::get(b.getVoidTy(), types, false), llvm::Function::ExternalLinkage,
      direct_symbol_of(code.symbol), module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
  const std::vector<uint64_t> words(numbers.begin(), numbers.end());
  auto* const data = llvm::ConstantDataArray::get(context, words);
  auto* const description =
      new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage,
                               data, code.symbol + ".call");
  llvm::Value* const buffers = b.CreateAlloca(b.getPtrTy(), b.getInt64(count));
  for (unsigned i = 0; i < count; ++i) {
    b.CreateStore(function->getArg(i), b.CreateConstGEP1_64(b.getPtrTy(), buffers, i));
  }
  const auto callee = module.getOrInsertFunction(
      kLapackFunction,
      llvm::FunctionType::get(b.getVoidTy(),
                              {b.getPtrTy(), b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty()}, false));
  const auto at = static_cast<unsigned>(count);
  b.CreateCall(callee, {description, buffers, function->getArg(at), function->getArg(at + 1)});
  b.CreateRetVoid();
  make_entry(module, function, count, {}, code.symbol);
}

}  // namespace

Result<std::shared_ptr<const CpuCode>> lapack_code(const LapackCall& call) {
  const std::vector<int64_t> numbers = {static_cast<int64_t>(call.function),
                                        static_cast<int64_t>(call.type),
                                        call.batch,
                                        call.rows,
                                        call.columns,
                                        call.reads_lower,
                                        call.full_matrices};
  std::string key;
  for (const int64_t number : numbers) key += std::to_string(number) + ",";
  CpuKernelCode kernel;
  kernel.symbol = "tenon_lapack_" + serial::digest_of(key);
  kernel.workgroups = call.batch;
  kernel.nanoseconds = lapack_nanoseconds(call) * static_cast<double>(call.batch);
  kernel.grain = grain_of(kernel.nanoseconds, kernel.workgroups);
  kernel.buffers = call.buffers;
  CpuCode code;
  TENON_ASSIGN(code.objects, compile_objects(1, [&](llvm::Module& module, size_t) {
                 emit_lapack_call(module, kernel, numbers);
               }));
  code.kernels = {std::move(kernel)};
  return std::make_shared<const CpuCode>(std::move(code));
}

}  // namespace tenon::cpu
