// Compiles a Program to native code: its steps in sequence, with direct calls of kernels. Long
// Programs become several functions (segment_plan.h).
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/cpu/code.h"
#include "backends/cpu/compiling.h"
#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/segment_plan.h"
#include "backends/llvm/host.h"
#include "backends/llvm/operations.h"

namespace tenon::cpu {
namespace {

using program::BufferId;
using program::Program;
using program::SequenceId;
using program::Step;

std::optional<ContractionLoops> loops_of(const Program& program,
                                         const program::LibraryCallStep& call) {
  const auto* contraction = std::get_if<program::Contraction>(&call.call);
  // As in CpuBackend::plan: without an fma instruction each product would be a call of fmaf.
  if (contraction == nullptr || !codegen::host().fused) return std::nullopt;
  const auto shape = [&](BufferId id) {
    return Shape(program.buffer(id).type, program.buffer(id).dims);
  };
  const Shape operands[] = {shape(call.operands[0]), shape(call.operands[1])};
  return cpu::loops_of(*contraction, operands, shape(call.results[0]));
}

Result<SegmentContractions> contractions_of(const Program& program) {
  SegmentContractions found;
  Status outcome;
  program::for_each_step(
      program, {}, [&](const Step&) { return true; },
      [&](const Step& step) {
        const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
        const auto loops = call == nullptr ? std::nullopt : loops_of(program, *call);
        if (!loops || !outcome.ok()) return;
        auto code = contraction_code(*loops);
        if (code) {
          found[call] = {*std::move(code), row_groups_of(*loops, codegen::host().vector_bytes)};
        } else {
          outcome = code.error();
        }
      });
  if (!outcome.ok()) return tl::make_unexpected(outcome);
  return found;
}

std::string part_symbol(size_t number) { return fmt::format("tenon_part_{}", number); }

// The inputs shared by all functions of a segment.
struct SegmentSource {
  const Program& program;
  const SegmentContractions& contractions;
  const SegmentPlan& plan;
  const std::vector<CpuKernelCode>& kernels;  ///< Complete for kernels compiled in other modules.
};

// The kernels of a module: those compiled in it, and declarations of others.
class ModuleKernels {
 public:
  /// `number` distinguishes the symbols of this module from those of others.
  ModuleKernels(llvm::Module& module, const SegmentSource& segment, size_t number)
      : module_(module), segment_(segment), number_(number) {}

  const CpuKernelCode& code(uint32_t kernel) {
    static_cast<void>(function(kernel));
    const auto found = in_place_.find(kernel);
    return found == in_place_.end() ? segment_.kernels[kernel] : found->second.code;
  }

  llvm::Function* function(uint32_t kernel) {
    llvm::Function*& known = functions_[kernel];
    if (known == nullptr) known = make(kernel);
    return known;
  }

  /// The largest scratch memory of a kernel compiled in this module.
  int64_t scratch_bytes() const {
    int64_t bytes = 0;
    for (const auto& [kernel, emitted] : in_place_) {
      bytes = std::max(bytes, emitted.code.scratch_bytes);
    }
    return bytes;
  }

 private:
  llvm::Function* make(uint32_t k) {
    const kernel::Kernel& kernel = segment_.program.kernels[k];
    if (!segment_.plan.is_in_place(k)) return declare(kernel, k);
    const size_t symbol = number_ * segment_.program.kernels.size() + k;
    EmittedKernel& emitted =
        in_place_.emplace(k, emit_kernel(module_, kernel, symbol, codegen::host().vector_bytes))
            .first->second;
    if (segment_.plan.is_shared(k)) emitted.function->addFnAttr(llvm::Attribute::NoInline);
    // If a kernel is never split into tasks, nothing outside the module calls its functions.
    if (emitted.code.workgroups <= emitted.code.grain) {
      module_.getFunction(emitted.code.symbol)->eraseFromParent();
      emitted.function->setLinkage(llvm::GlobalValue::InternalLinkage);
      emitted.function->setVisibility(llvm::GlobalValue::DefaultVisibility);
    }
    return emitted.function;
  }

  llvm::Function* declare(const kernel::Kernel& kernel, uint32_t k) {
    llvm::LLVMContext& context = module_.getContext();
    llvm::Type* const pointer = llvm::PointerType::getUnqual(context);
    llvm::Type* const number = llvm::Type::getInt64Ty(context);
    std::vector<llvm::Type*> types(kernel.buffer_count, pointer);
    for (const kernel::ValueId each : kernel.scalars) {
      types.push_back(codegen::type_of(context, kernel.value(each).type));
    }
    types.insert(types.end(), {number, number, pointer, pointer});
    return llvm::Function::Create(
        llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false),
        llvm::Function::ExternalLinkage, direct_symbol(k), module_);
  }

  llvm::Module& module_;
  const SegmentSource& segment_;
  const size_t number_;
  std::map<uint32_t, llvm::Function*> functions_;
  std::map<uint32_t, EmittedKernel> in_place_;
};

// One function: that of the whole segment, or of a part.
class FunctionEmitter {
 public:
  FunctionEmitter(llvm::Module& module, const SegmentSource& segment, ModuleKernels& kernels)
      : module_(module),
        segment_(segment),
        program_(segment.program),
        kernels_(kernels),
        b_(module.getContext()) {}

  /// Emits the whole segment as a function of type Entry. Returns the bytes of scratch memory that
  /// its calls need.
  int64_t whole() {
    function_ = make_entry_function(module_, kSegmentSymbol);
    begin(function_->getArg(0), function_->getArg(4), function_->getArg(5));
    sequence(0);
    end([&](bool) { b_.CreateRetVoid(); });
    return scratch_bytes_;
  }

  /// i1 (ptr memories, ptr scratch, ptr stops): whether the work continues.
  int64_t part(size_t number) {
    function_ = part_function(number);
    begin(function_->getArg(0), function_->getArg(1), function_->getArg(2));
    const program::StepRange& range = segment_.plan.parts()[number];
    steps(range.sequence, range.begin, range.end);
    end([&](bool goes_on) { b_.CreateRet(b_.getInt1(goes_on)); });
    return scratch_bytes_;
  }

 private:
  llvm::LLVMContext& context() { return module_.getContext(); }

  // The first block loads the addresses that are used.
  void begin(llvm::Value* memories, llvm::Value* scratch, llvm::Value* stops) {
    memories_ = memories;
    scratch_ = scratch;
    stops_ = stops;
    entry_ = block("");
    exit_ = block("exit");
    body_ = block("body");
    b_.SetInsertPoint(body_);
  }

  template <class Return>
  void end(const Return& make_return) {
    make_return(true);
    b_.SetInsertPoint(exit_);
    make_return(false);
    b_.SetInsertPoint(entry_);
    b_.CreateBr(body_);
  }

  llvm::Function* part_function(size_t number) {
    llvm::Type* const types[] = {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy()};
    auto* const type = llvm::FunctionType::get(b_.getInt1Ty(), types, false);
    llvm::FunctionCallee found = module_.getOrInsertFunction(part_symbol(number), type);
    auto* const function = llvm::cast<llvm::Function>(found.getCallee());
    function->setDoesNotThrow();
    return function;
  }

  // --- Memory, in the order of memory_sizes()

  llvm::Value* memory(uint64_t number) {
    llvm::Value*& pointer = pointers_[number];
    if (pointer != nullptr) return pointer;
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_);
    pointer = b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), memories_, number));
    return pointer;
  }

  llvm::Value* pointer(BufferId id) {
    const program::Buffer& buffer = program_.buffer(program_.root(id));
    const size_t results = program_.parameters.size();
    const size_t constants = results + program_.results.size();
    switch (buffer.kind) {
      case program::BufferKind::kParameter:
        return memory(buffer.index);
      case program::BufferKind::kResult:
        return memory(results + buffer.index);
      case program::BufferKind::kConstant:
        return memory(constants + buffer.index);
      case program::BufferKind::kTemporary:
        break;
    }
    // An empty buffer may have no block that contains it.
    if (program_.temporary_bytes == 0) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), memory(constants + program_.constants.size()),
                                 static_cast<uint64_t>(buffer.offset));
  }

  // --- Sequences

  void sequence(SequenceId id) {
    const std::vector<uint32_t>& parts = segment_.plan.parts_of(id);
    if (parts.empty()) {
      steps(id, 0, program_.sequences[id].steps.size());
      return;
    }
    for (const uint32_t number : parts) {
      llvm::Value* const goes_on =
          b_.CreateCall(part_function(number), {memories_, scratch_, stops_});
      llvm::BasicBlock* const next = block("next");
      b_.CreateCondBr(goes_on, next, exit_);
      b_.SetInsertPoint(next);
    }
  }

  void steps(SequenceId id, size_t begin, size_t end) {
    const program::Sequence& sequence = program_.sequences[id];
    for (size_t s = begin; s < end; ++s) {
      if (segment_.plan.is_epilogue(id, s)) continue;
      const std::vector<EpilogueLaunch>& epilogue = segment_.plan.epilogue_at(id, s);
      if (epilogue.empty()) {
        std::visit([&](const auto& action) { emit(action); }, sequence.steps[s].action);
      } else {
        emit_epilogue_fusion(sequence, std::get<program::LibraryCallStep>(sequence.steps[s].action),
                             epilogue, fmt::format("tenon_epilogue_{}_{}", id, s));
      }
    }
  }

  // --- Contractions with epilogues

  void emit_epilogue_fusion(const program::Sequence& sequence, const program::LibraryCallStep& call,
                            const std::vector<EpilogueLaunch>& epilogue, const std::string& name) {
    const SegmentContraction& contraction = segment_.contractions.at(&call);
    std::vector<BufferId> buffers = buffers_of(call);
    std::vector<EpilogueKernel> parts;
    CpuKernelCode code = contraction.kernel();
    for (const EpilogueLaunch& each : epilogue) {
      const auto& launch = std::get<program::Launch>(sequence.steps[each.step].action);
      const CpuKernelCode& launched = kernels_.code(launch.kernel);
      parts.push_back({kernels_.function(launch.kernel), launch.buffers.size(), scalars_of(launch),
                       each.workgroups_a_row});
      buffers.insert(buffers.end(), launch.buffers.begin(), launch.buffers.end());
      code.scratch_bytes = std::max(code.scratch_bytes, launched.scratch_bytes);
      code.nanoseconds += launched.nanoseconds;
    }
    llvm::Function* const function = make_fused_contraction(
        module_, name, *contraction.rows, contraction_function(contraction), parts);
    code.symbol = name + ".entry";
    code.workgroups = contraction.rows->groups();
    code.grain = grain_of(code.nanoseconds, code.workgroups);
    scratch_bytes_ = std::max(scratch_bytes_, code.scratch_bytes);
    if (code.workgroups > code.grain) {
      make_entry(module_, function, buffers.size(), {}, code.symbol);
    }
    run_workgroups(code, function, buffers, {});
  }

  static std::vector<BufferId> buffers_of(const program::LibraryCallStep& call) {
    std::vector<BufferId> buffers = call.operands;
    buffers.insert(buffers.end(), call.results.begin(), call.results.end());
    return buffers;
  }

  void emit(const program::Launch& launch) {
    run_workgroups(kernels_.code(launch.kernel), kernels_.function(launch.kernel), launch.buffers,
                   scalars_of(launch));
  }

  std::vector<llvm::Constant*> scalars_of(const program::Launch& launch) {
    const kernel::Kernel& source = program_.kernels[launch.kernel];
    std::vector<llvm::Constant*> scalars;
    for (size_t i = 0; i < launch.scalars.size(); ++i) {
      scalars.push_back(
          codegen::constant(context(), source.value(source.scalars[i]).type, launch.scalars[i]));
    }
    return scalars;
  }

  llvm::Function* contraction_function(const SegmentContraction& contraction) {
    llvm::Type* const pointer = b_.getPtrTy();
    llvm::Type* const number = b_.getInt64Ty();
    auto* const type = llvm::FunctionType::get(
        b_.getVoidTy(), {pointer, pointer, pointer, number, number, pointer, pointer}, false);
    llvm::FunctionCallee function =
        module_.getOrInsertFunction(direct_symbol_of(contraction.kernel().symbol), type);
    return llvm::cast<llvm::Function>(function.getCallee());
  }

  void run_workgroups(const CpuKernelCode& kernel, llvm::Function* function,
                      const std::vector<BufferId>& buffers,
                      const std::vector<llvm::Constant*>& scalars) {
    if (kernel.workgroups > kernel.grain) return run_tasks(kernel, buffers, scalars);
    std::vector<llvm::Value*> arguments;
    for (const BufferId id : buffers) arguments.push_back(pointer(id));
    arguments.insert(arguments.end(), scalars.begin(), scalars.end());
    arguments.insert(
        arguments.end(),
        {b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(kernel.workgroups)), scratch_, stops_});
    b_.CreateCall(function, arguments);
  }

  // Through kTaskFunction, which distributes workgroups over threads.
  void run_tasks(const CpuKernelCode& kernel, const std::vector<BufferId>& ids,
                 const std::vector<llvm::Constant*>& numbers) {
    llvm::Value* const buffers = array(b_.getPtrTy(), ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      b_.CreateStore(pointer(ids[i]), b_.CreateConstGEP1_64(b_.getPtrTy(), buffers, i));
    }
    llvm::Value* const scalars = array(b_.getInt64Ty(), numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      b_.CreateStore(numbers[i], b_.CreateConstGEP1_64(b_.getInt64Ty(), scalars, i));
    }
    const auto entry =
        module_.getOrInsertFunction(kernel.symbol, entry_type(context())).getCallee();
    const auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
    llvm::Value* const arguments[] = {entry,
                                      buffers,
                                      scalars,
                                      number(kernel.workgroups),
                                      number(kernel.grain),
                                      number(kernel.scratch_bytes),
                                      stops_};
    std::vector<llvm::Type*> types;
    for (const llvm::Value* each : arguments) types.push_back(each->getType());
    b_.CreateCall(module_.getOrInsertFunction(
                      kTaskFunction, llvm::FunctionType::get(b_.getInt1Ty(), types, false)),
                  arguments);
  }

  llvm::Value* array(llvm::Type* element, size_t count) {
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_, entry_->begin());
    return b_.CreateAlloca(element, b_.getInt64(std::max<size_t>(count, 1)));
  }

  void emit(const program::Copy& copy) {
    const int64_t bytes = program_.buffer(copy.destination).bytes();
    b_.CreateMemCpy(pointer(copy.destination), {}, pointer(copy.source), {},
                    static_cast<uint64_t>(bytes));
  }

  llvm::Value* predicate(BufferId id) {
    return b_.CreateTrunc(b_.CreateLoad(b_.getInt8Ty(), pointer(id)), b_.getInt1Ty());
  }

  llvm::BasicBlock* block(const char* name) {
    return llvm::BasicBlock::Create(context(), name, function_);
  }

  void emit(const program::While& loop) {
    llvm::BasicBlock* const test = block("test");
    llvm::BasicBlock* const turn = block("turn");
    llvm::BasicBlock* const after = block("after");
    b_.CreateBr(test);
    b_.SetInsertPoint(test);
    sequence(loop.condition);
    b_.CreateCondBr(predicate(loop.predicate), turn, after);
    b_.SetInsertPoint(turn);
    sequence(loop.body);
    b_.CreateCondBr(emit_poll(b_, stops_), test, exit_);
    b_.SetInsertPoint(after);
  }

  // If the index is a pred, true selects branch 0; a number out of range selects the last branch.
  void emit(const program::Conditional& conditional) {
    const bool is_truth = is_pred(program_.buffer(conditional.index).type);
    llvm::BasicBlock* const after = block("after");
    std::vector<llvm::BasicBlock*> branches;
    for (size_t i = 0; i < conditional.branches.size(); ++i) branches.push_back(block("branch"));
    llvm::Value* const which =
        is_truth
            ? b_.CreateZExt(b_.CreateNot(predicate(conditional.index)), b_.getInt32Ty())
            : static_cast<llvm::Value*>(b_.CreateLoad(b_.getInt32Ty(), pointer(conditional.index)));
    llvm::SwitchInst* const jump = b_.CreateSwitch(which, branches.back());
    for (size_t i = 0; i + 1 < branches.size(); ++i) {
      jump->addCase(b_.getInt32(static_cast<uint32_t>(i)), branches[i]);
    }
    for (size_t i = 0; i < branches.size(); ++i) {
      b_.SetInsertPoint(branches[i]);
      sequence(conditional.branches[i]);
      b_.CreateBr(after);
    }
    b_.SetInsertPoint(after);
  }

  // Calls separate code if it is a contraction that has some.
  void emit(const program::LibraryCallStep& call) {
    const auto found = segment_.contractions.find(&call);
    if (found == segment_.contractions.end()) return sequence(call.lowered);
    const CpuKernelCode& kernel = found->second.kernel();
    scratch_bytes_ = std::max(scratch_bytes_, kernel.scratch_bytes);
    run_workgroups(kernel, contraction_function(found->second), buffers_of(call), {});
  }
  // Never part of a segment: the host runs it.
  template <class Action>
    requires(Action::kOnHost)
  void emit(const Action&) {}

  llvm::Module& module_;
  const SegmentSource& segment_;
  const Program& program_;
  ModuleKernels& kernels_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  llvm::BasicBlock* body_ = nullptr;
  llvm::BasicBlock* exit_ = nullptr;
  llvm::Value* memories_ = nullptr;
  llvm::Value* scratch_ = nullptr;
  llvm::Value* stops_ = nullptr;
  std::map<uint64_t, llvm::Value*> pointers_;
  int64_t scratch_bytes_ = 0;
};

// The kernels that steps launch, without the steps of library calls with separate functions.
std::vector<uint32_t> kernels_of(const Program& program, const SegmentContractions& contractions) {
  std::set<uint32_t> used;
  program::for_each_step(
      program, {},
      [&](const Step& step) {
        return !contractions.contains(&std::get<program::LibraryCallStep>(step.action));
      },
      [&](const Step& step) {
        if (const auto* launch = std::get_if<program::Launch>(&step.action)) {
          used.insert(launch->kernel);
        }
      });
  return {used.begin(), used.end()};
}

// Compiles the functions: several parts per module, the whole segment in a module of its own. Adds
// their scratch memory to `scratch`.
Result<std::vector<std::string>> compile_functions(const SegmentSource& segment, int64_t& scratch) {
  constexpr size_t kPartsAModule = 8;
  const size_t parts = segment.plan.parts().size();
  const size_t modules = 1 + (parts + kPartsAModule - 1) / kPartsAModule;
  std::vector<int64_t> taken(modules);
  auto objects = compile_objects(
      modules,
      [&](llvm::Module& module, size_t m) {
        ModuleKernels kernels(module, segment, m);
        const auto count = [&](int64_t bytes) { taken[m] = std::max(taken[m], bytes); };
        if (m == 0) {
          count(FunctionEmitter(module, segment, kernels).whole());
        } else {
          for (size_t p = (m - 1) * kPartsAModule; p < std::min(m * kPartsAModule, parts); ++p) {
            count(FunctionEmitter(module, segment, kernels).part(p));
          }
        }
        count(kernels.scratch_bytes());
      },
      1);
  for (const int64_t bytes : taken) scratch = std::max(scratch, bytes);
  return objects;
}

}  // namespace

Result<CpuCode> compile_segment(const Program& program, int64_t threads) {
  TENON_ASSIGN(const SegmentContractions contractions, contractions_of(program));
  std::vector<CpuKernelCode> kernels(program.kernels.size());
  const std::vector<uint32_t> launched = kernels_of(program, contractions);
  for (const uint32_t k : launched) {
    kernels[k] = describe(program.kernels[k], k);
  }
  const SegmentPlan plan(program, contractions, kernels, threads);
  std::vector<uint32_t> apart;
  std::ranges::copy_if(launched, std::back_inserter(apart),
                       [&](uint32_t k) { return !plan.is_in_place(k); });
  CpuCode code;
  TENON_ASSIGN(code.objects, compile_objects(apart.size(), [&](llvm::Module& module, size_t i) {
                 const uint32_t k = apart[i];
                 kernels[k] =
                     emit_kernel(module, program.kernels[k], k, codegen::host().vector_bytes).code;
               }));
  CpuKernelCode segment;
  segment.symbol = kSegmentSymbol;
  segment.buffers = program::memory_sizes(program);
  for (const uint32_t k : apart) {
    segment.scratch_bytes = std::max(segment.scratch_bytes, kernels[k].scratch_bytes);
  }
  TENON_ASSIGN(std::vector<std::string> functions,
               compile_functions({program, contractions, plan, kernels}, segment.scratch_bytes));
  std::ranges::move(functions, std::back_inserter(code.objects));
  std::set<std::string> distinct;
  for (const auto& [call, contraction] : contractions) {
    const CpuCode& own = *contraction.code;
    if (distinct.insert(own.kernels[0].symbol).second) code.objects.push_back(own.objects[0]);
  }
  code.kernels.push_back(std::move(segment));
  return code;
}

}  // namespace tenon::cpu
