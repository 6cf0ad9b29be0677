#include "backends/cpu/aot/entries.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/TargetParser/Triple.h>

namespace tenon::cpu {
namespace {

using llvm::Constant;
using llvm::Value;

constexpr uint32_t kAbi = 1;
// The members of tenon_aot_context, by number: all are pointers.
enum class ContextMember : uint64_t { kWeights, kCalls, kUser, kParallelFor, kPool };

int64_t arena_aligned(int64_t bytes) {
  return (bytes + kAotAlignment - 1) / kAotAlignment * kAotAlignment;
}

// The entry of a function that takes its arrays as an array of pointers.
class RunEmitter {
 public:
  RunEmitter(llvm::Module& module, const EntrySource& source)
      : module_(module), source_(source), b_(module.getContext()) {}

  AotEntry run() {
    const program::Program& program = *source_.function.program;
    const AotOptions& options = source_.options;
    AotEntry entry;
    entry.symbol = entry_symbol(options, source_.function);
    entry.temporary_bytes = arena_aligned(program.temporary_bytes);
    const int64_t threads = std::max<int64_t>(options.threads, 1);
    const int64_t bytes = entry.temporary_bytes + threads * arena_aligned(source_.scratch_bytes);
    entry.arena_bytes = options.stack_arena ? 0 : bytes;
    entry.aliases = program::parameters_of_results(program);
    llvm::Type* const types[] = {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy()};
    function_ =
        llvm::Function::Create(llvm::FunctionType::get(b_.getInt32Ty(), types, false),
                               llvm::Function::ExternalLinkage, entry.symbol + "_run", module_);
    function_->setDoesNotThrow();
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", function_));
    Value* arena = function_->getArg(1);
    if (options.stack_arena && bytes > 0) {
      llvm::AllocaInst* const block =
          b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes)));
      block->setAlignment(llvm::Align(kAotAlignment));
      arena = block;
    }
    Value* const scratch =
        b_.CreateConstGEP1_64(b_.getInt8Ty(), arena, static_cast<uint64_t>(entry.temporary_bytes));
    Value* const memories = make_memories(arena);
    Value* const context = make_context(scratch);
    Value* const mode = default_float_mode();
    b_.CreateCall(source_.body, {memories, llvm::ConstantPointerNull::get(b_.getPtrTy()),
                                 b_.getInt64(0), b_.getInt64(1), scratch, context});
    restore_float_mode(mode);
    Value* outcome = b_.getInt32(0);
    if (status_ != nullptr) outcome = b_.CreateLoad(b_.getInt32Ty(), status_);
    b_.CreateRet(outcome);
    return entry;
  }

 private:
  Value* slot(Value* list, uint64_t i) { return b_.CreateConstGEP1_64(b_.getPtrTy(), list, i); }

  Value* pointer_array(size_t count) {
    return b_.CreateAlloca(llvm::ArrayType::get(b_.getPtrTy(), std::max<size_t>(count, 1)));
  }

  Value* member(ContextMember which) {
    return b_.CreateLoad(b_.getPtrTy(), slot(function_->getArg(2), static_cast<uint64_t>(which)));
  }

  // The memories in the order of memory_sizes(): arrays, constants of the file, temporaries.
  Value* make_memories(Value* arena) {
    const program::Program& program = *source_.function.program;
    const size_t arrays = program.parameters.size() + program.results.size();
    const std::vector<int64_t>& offsets = source_.constants.offsets;
    Value* const memories = pointer_array(arrays + offsets.size() + 1);
    for (size_t i = 0; i < arrays; ++i) {
      b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), slot(function_->getArg(0), i)),
                     slot(memories, i));
    }
    Value* weights = nullptr;
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] < 0) continue;
      if (weights == nullptr) weights = member(ContextMember::kWeights);
      b_.CreateStore(
          b_.CreateConstGEP1_64(b_.getInt8Ty(), weights, static_cast<uint64_t>(offsets[i])),
          slot(memories, arrays + i));
    }
    b_.CreateStore(arena, slot(memories, arrays + offsets.size()));
    return memories;
  }

  // The array to which `stops` of functions points (ContextSlot).
  Value* make_context(Value* scratch) {
    const AotOptions& options = source_.options;
    const bool calls = !options.calls.empty();
    const bool threads = options.threads > 0;
    if (!calls && !threads) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    Value* const slots = pointer_array(kContextSlots);
    const auto set = [&](ContextSlot which, Value* value) {
      b_.CreateStore(value, slot(slots, static_cast<uint64_t>(which)));
    };
    if (calls) {
      status_ = b_.CreateAlloca(b_.getInt32Ty());
      b_.CreateStore(b_.getInt32(0), status_);
      set(ContextSlot::kStatus, status_);
      set(ContextSlot::kCalls, member(ContextMember::kCalls));
      set(ContextSlot::kUser, member(ContextMember::kUser));
    }
    if (threads) {
      set(ContextSlot::kParallelFor, member(ContextMember::kParallelFor));
      set(ContextSlot::kPool, member(ContextMember::kPool));
      set(ContextSlot::kScratch, scratch);
    }
    return slots;
  }

  // Code counts on rounding to nearest and denormals that are kept: a program linked with
  // -ffast-math has them flushed.
  bool has_float_mode() const {
    return llvm::Triple(module_.getTargetTriple()).getArch() == llvm::Triple::x86_64;
  }
  Value* default_float_mode() {
    if (!has_float_mode()) return nullptr;
    constexpr uint32_t kDefault = 0x1f80;  // All exceptions masked.
    Value* const before = b_.CreateAlloca(b_.getInt32Ty());
    Value* const ours = b_.CreateAlloca(b_.getInt32Ty());
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {before});
    b_.CreateStore(b_.getInt32(kDefault), ours);
    b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {ours});
    return before;
  }
  void restore_float_mode(Value* before) {
    if (before != nullptr) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {before});
  }

  llvm::Module& module_;
  const EntrySource& source_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  Value* status_ = nullptr;
};

// [int] NAME(arrays one by one [, arena] [, context])
void emit_typed_entry(llvm::Module& module, const EntrySource& source, const AotEntry& entry) {
  const AotOptions& options = source.options;
  const program::Program& program = *source.function.program;
  const size_t arrays = program.parameters.size() + program.results.size();
  llvm::IRBuilder<> b(module.getContext());
  const size_t extra = (options.stack_arena ? 0 : 1) + (takes_context(options) ? 1 : 0);
  const std::vector<llvm::Type*> types(arrays + extra, b.getPtrTy());
  llvm::Type* const outcome = has_outcome(options) ? b.getInt32Ty() : b.getVoidTy();
  auto* const function =
      llvm::Function::Create(llvm::FunctionType::get(outcome, types, false),
                             llvm::Function::ExternalLinkage, entry.symbol, module);
  function->setDoesNotThrow();
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", function));
  Value* const list =
      b.CreateAlloca(llvm::ArrayType::get(b.getPtrTy(), std::max<size_t>(arrays, 1)));
  for (unsigned i = 0; i < arrays; ++i) {
    b.CreateStore(function->getArg(i), b.CreateConstGEP1_64(b.getPtrTy(), list, i));
  }
  Value* const null = llvm::ConstantPointerNull::get(b.getPtrTy());
  auto next = static_cast<unsigned>(arrays);
  Value* const arena = options.stack_arena ? null : function->getArg(next++);
  Value* const context = takes_context(options) ? function->getArg(next++) : null;
  llvm::CallInst* const call =
      b.CreateCall(module.getFunction(entry.symbol + "_run"), {list, arena, context});
  call->setIsNoInline();  // So that the code exists once, not twice.
  if (has_outcome(options)) {
    b.CreateRet(call);
  } else {
    b.CreateRetVoid();
  }
}

// Constants of the types that tenon_aot.h declares.
class DescriptorEmitter {
 public:
  DescriptorEmitter(llvm::Module& module, const AotOptions& options, const AotModel& model)
      : module_(module), options_(options), model_(model), b_(module.getContext()) {}

  void run(std::span<const AotFunction> functions) {
    std::vector<Constant*> rows;
    for (size_t i = 0; i < functions.size(); ++i) rows.push_back(row(functions[i], i));
    std::vector<Constant*> calls;
    for (const std::string& each : options_.calls) calls.push_back(text(each));
    std::string target = model_.target.triple + " " + model_.target.cpu;
    const uint64_t weights = model_.weights.size();
    Constant* const members[] = {
        b_.getInt32(kAbi),
        b_.getInt32(static_cast<uint32_t>(kAotAlignment)),
        text(options_.name),
        text(options_.version),
        text(model_.hash),
        text(target),
        number(static_cast<int64_t>(weights)),
        text(weights == 0 ? "" : model_.weights_hash),
        list(rows),
        list(calls),
        b_.getInt32(static_cast<uint32_t>(rows.size())),
        b_.getInt32(static_cast<uint32_t>(calls.size())),
        b_.getInt32(static_cast<uint32_t>(options_.threads)),
        b_.getInt32(0),
    };
    Constant* const model = llvm::ConstantStruct::getAnon(members);
    auto* const global = new llvm::GlobalVariable(module_, model->getType(), true,
                                                  llvm::GlobalValue::ExternalLinkage, model,
                                                  options_.name + "_model");
    global->setAlignment(llvm::Align(8));
  }

 private:
  Constant* number(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

  Constant* hidden(Constant* value, const char* name) {
    auto* const global = new llvm::GlobalVariable(module_, value->getType(), true,
                                                  llvm::GlobalValue::PrivateLinkage, value, name);
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return global;
  }

  Constant* text(const std::string& text) {
    Constant*& known = texts_[text];
    if (known == nullptr) {
      known = hidden(llvm::ConstantDataArray::getString(module_.getContext(), text), "text");
    }
    return known;
  }

  Constant* list(const std::vector<Constant*>& members) {
    if (members.empty()) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    return hidden(llvm::ConstantArray::get(
                      llvm::ArrayType::get(members[0]->getType(), members.size()), members),
                  "list");
  }

  Constant* array(const program::Buffer& buffer, const std::string& name, int64_t shared) {
    std::vector<Constant*> dims;
    for (const int64_t each : buffer.dims) dims.push_back(number(each));
    return llvm::ConstantStruct::getAnon({text(name), text(std::string(name_of(buffer.type))),
                                          list(dims), number(buffer.bytes()),
                                          b_.getInt32(static_cast<uint32_t>(buffer.dims.size())),
                                          b_.getInt32(static_cast<uint32_t>(shared))});
  }

  Constant* row(const AotFunction& function, size_t index) {
    const program::Program& program = *function.program;
    const AotEntry& entry = model_.entries[index];
    std::vector<int64_t> result_of(program.parameters.size(), -1);
    for (size_t r = 0; r < entry.aliases.size(); ++r) {
      if (entry.aliases[r] != program::kNone) result_of[entry.aliases[r]] = static_cast<int64_t>(r);
    }
    std::vector<Constant*> parameters;
    for (size_t i = 0; i < program.parameters.size(); ++i) {
      parameters.push_back(
          array(program.buffer(program.parameters[i]), function.parameters[i], result_of[i]));
    }
    std::vector<Constant*> results;
    for (size_t i = 0; i < program.results.size(); ++i) {
      const uint32_t from = entry.aliases[i];
      results.push_back(array(program.buffer(program.results[i]), function.results[i],
                              from == program::kNone ? -1 : static_cast<int64_t>(from)));
    }
    return llvm::ConstantStruct::getAnon({text(function.name), list(parameters), list(results),
                                          b_.getInt32(static_cast<uint32_t>(parameters.size())),
                                          b_.getInt32(static_cast<uint32_t>(results.size())),
                                          number(entry.arena_bytes),
                                          module_.getFunction(entry.symbol + "_run")});
  }

  llvm::Module& module_;
  const AotOptions& options_;
  const AotModel& model_;
  llvm::IRBuilder<> b_;
  std::map<std::string, Constant*> texts_;
};

}  // namespace

std::string entry_symbol(const AotOptions& options, const AotFunction& function) {
  return options.name + "_" + function.name;
}

bool takes_context(const AotOptions& options) {
  return options.weights_in_file || options.threads > 0 || has_outcome(options);
}

bool has_outcome(const AotOptions& options) { return !options.calls.empty(); }

AotEntry emit_entry(llvm::Module& module, const EntrySource& source) {
  AotEntry entry = RunEmitter(module, source).run();
  emit_typed_entry(module, source, entry);
  return entry;
}

// i1 kTaskFunction(ptr entry, ptr buffers, ptr scalars, i64 workgroups, i64 grain, i64, ptr
// context) calls parallel_for(pool, parts, task, &arguments), and task(&arguments, part, worker)
// entry; without a parallel_for, entry.
void emit_task_function(llvm::Module& module, int64_t scratch_bytes) {
  llvm::Function* const run = module.getFunction(kTaskFunction);
  if (run == nullptr) return;
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type* const ptr = b.getPtrTy();
  llvm::Type* const i64 = b.getInt64Ty();
  auto* const work = llvm::StructType::get(context, {ptr, ptr, ptr, i64, i64, ptr});
  const auto member = [&](Value* of, unsigned i) {
    return b.CreateLoad(work->getElementType(i), b.CreateStructGEP(work, of, i));
  };
  auto* const task =
      llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, i64, i64}, false),
                             llvm::Function::InternalLinkage, "tenon_task", module);
  task->setDoesNotThrow();
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", task));
  Value* const data = task->getArg(0);
  Value* const slots = member(data, 5);
  Value* const begin = b.CreateMul(task->getArg(1), member(data, 4));
  Value* const end = b.CreateAdd(begin, member(data, 4));
  Value* const all = member(data, 3);
  Value* const scratch = b.CreateLoad(
      ptr, b.CreateConstGEP1_64(ptr, slots, static_cast<uint64_t>(ContextSlot::kScratch)));
  Value* const own =
      b.CreateGEP(b.getInt8Ty(), scratch,
                  b.CreateMul(task->getArg(2),
                              b.getInt64(static_cast<uint64_t>(arena_aligned(scratch_bytes)))));
  b.CreateCall(entry_type(context), member(data, 0),
               {member(data, 1), member(data, 2), begin,
                b.CreateSelect(b.CreateICmpULT(end, all), end, all), own, slots});
  b.CreateRetVoid();

  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", run));
  Value* const given = run->getArg(6);
  Value* const arguments = b.CreateAlloca(work);
  const unsigned sources[] = {0, 1, 2, 3, 4, 6};
  for (unsigned i = 0; i < 6; ++i) {
    b.CreateStore(run->getArg(sources[i]), b.CreateStructGEP(work, arguments, i));
  }
  const auto slot = [&](ContextSlot which) {
    return b.CreateLoad(ptr, b.CreateConstGEP1_64(ptr, given, static_cast<uint64_t>(which)));
  };
  Value* const parallel_for = slot(ContextSlot::kParallelFor);
  auto* const alone = llvm::BasicBlock::Create(context, "alone", run);
  auto* const shared = llvm::BasicBlock::Create(context, "shared", run);
  b.CreateCondBr(b.CreateIsNull(parallel_for), alone, shared);
  b.SetInsertPoint(alone);
  b.CreateCall(entry_type(context), run->getArg(0),
               {run->getArg(1), run->getArg(2), b.getInt64(0), run->getArg(3),
                slot(ContextSlot::kScratch), given});
  b.CreateRet(b.getTrue());
  b.SetInsertPoint(shared);
  Value* const grain = run->getArg(4);
  Value* const parts =
      b.CreateUDiv(b.CreateSub(b.CreateAdd(run->getArg(3), grain), b.getInt64(1)), grain);
  b.CreateCall(llvm::FunctionType::get(b.getVoidTy(), {ptr, i64, ptr, ptr}, false), parallel_for,
               {slot(ContextSlot::kPool), parts, task, arguments});
  b.CreateRet(b.getTrue());
  run->setLinkage(llvm::GlobalValue::InternalLinkage);
}

void emit_descriptor(llvm::Module& module, std::span<const AotFunction> functions,
                     const AotOptions& options, const AotModel& model) {
  DescriptorEmitter(module, options, model).run(functions);
}

}  // namespace tenon::cpu
