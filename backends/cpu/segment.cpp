// Compiles a Program to native code: its steps in sequence, with direct calls of kernels. Long
// Programs become several functions (segment_plan.h).
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/cpu/code.h"
#include "backends/cpu/compiling.h"
#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/lapack/lapack.h"
#include "backends/cpu/segment_plan.h"
#include "backends/llvm/host.h"
#include "backends/llvm/operations.h"
#include "core/base/digest.h"

namespace tenon::cpu {
namespace {

using program::BufferId;
using program::Program;
using program::SequenceId;
using program::Step;

std::optional<ContractionLoops> loops_of(const codegen::TargetCpu& cpu, const Program& program,
                                         const program::LibraryCallStep& call) {
  const auto shape = [&](BufferId id) {
    return Shape(program.buffer(id).type, program.buffer(id).dims);
  };
  if (!std::holds_alternative<program::Contraction>(call.call)) return std::nullopt;
  const Shape operands[] = {shape(call.operands[0]), shape(call.operands[1])};
  return contraction_loops_of(cpu, call.call, operands, shape(call.results[0]));
}

using MakeContraction =
    std::function<Result<std::shared_ptr<const CpuCode>>(const ContractionLoops& loops)>;

// The call of a step that LAPACK computes, where it is there.
std::optional<LapackCall> lapack_of(const Program& program, const program::LibraryCallStep& call) {
  const auto shapes = [&](const std::vector<BufferId>& ids) {
    std::vector<Shape> found;
    for (const BufferId id : ids) {
      found.emplace_back(program.buffer(id).type, program.buffer(id).dims);
    }
    return found;
  };
  return lapack_call_of(call.call, shapes(call.operands), shapes(call.results));
}

// `make_lapack`: null where code is for other machines.
Result<SegmentContractions> contractions_of(
    const codegen::TargetCpu& cpu, const Program& program, const MakeContraction& make,
    Result<std::shared_ptr<const CpuCode>> (*make_lapack)(const LapackCall& call) = nullptr) {
  SegmentContractions found;
  Status outcome;
  program::for_each_step(
      program, {}, [&](const Step&) { return true; },
      [&](const Step& step) {
        const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
        if (call == nullptr || !outcome.ok()) return;
        const auto loops = loops_of(cpu, program, *call);
        const auto lapack = make_lapack == nullptr ? std::nullopt : lapack_of(program, *call);
        if (!loops && !lapack) return;
        auto code = lapack ? make_lapack(*lapack) : make(*loops);
        if (code) {
          found[call] = {*std::move(code), std::nullopt};
          if (loops) found[call].rows = row_groups_of(*loops, cpu.vector_bytes);
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
  const SegmentEmission& emission;

  int64_t vector_bytes() const { return emission.cpu.vector_bytes; }
  bool has_tasks(const CpuKernelCode& kernel) const {
    return emission.has_tasks && kernel.workgroups > kernel.grain;
  }
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
    const size_t symbol =
        segment_.emission.first_number + number_ * segment_.program.kernels.size() + k;
    EmittedKernel& emitted =
        in_place_.emplace(k, emit_kernel(module_, kernel, symbol, segment_.vector_bytes()))
            .first->second;
    if (segment_.plan.is_shared(k)) emitted.function->addFnAttr(llvm::Attribute::NoInline);
    // If a kernel is never split into tasks, nothing outside the module calls its functions.
    if (!segment_.has_tasks(emitted.code)) {
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
    llvm::FunctionCallee known = module_.getOrInsertFunction(
        direct_symbol(segment_.emission.first_number + k),
        llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false));
    return llvm::cast<llvm::Function>(known.getCallee());
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
    function_ = make_entry_function(module_, segment_.emission.symbol);
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
    llvm::FunctionCallee found =
        module_.getOrInsertFunction(part_symbol(segment_.emission.first_number + number), type);
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
      case program::BufferKind::kConstant: {
        const std::vector<llvm::Constant*>& known = segment_.emission.constants;
        llvm::Constant* const address = known.empty() ? nullptr : known[buffer.index];
        return address != nullptr ? address : memory(constants + buffer.index);
      }
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
        emit_epilogue_fusion(
            sequence, std::get<program::LibraryCallStep>(sequence.steps[s].action), epilogue,
            fmt::format("tenon_epilogue_{}_{}", segment_.emission.first_number + id, s));
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
    if (segment_.has_tasks(code)) make_entry(module_, function, buffers.size(), {}, code.symbol);
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
    std::vector<llvm::Type*> types(contraction.kernel().buffers.size(), pointer);
    types.insert(types.end(), {number, number, pointer, pointer});
    auto* const type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
    llvm::FunctionCallee function =
        module_.getOrInsertFunction(direct_symbol_of(contraction.kernel().symbol), type);
    return llvm::cast<llvm::Function>(function.getCallee());
  }

  void run_workgroups(const CpuKernelCode& kernel, llvm::Function* function,
                      const std::vector<BufferId>& buffers,
                      const std::vector<llvm::Constant*>& scalars) {
    if (segment_.has_tasks(kernel)) return run_tasks(kernel, buffers, scalars);
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

  // A caller may pass the memory of a donated argument as that of a result.
  bool may_be_one(const program::Copy& copy) const {
    const program::Buffer& from = program_.buffer(program_.root(copy.source));
    return from.kind == program::BufferKind::kParameter &&
           std::ranges::find(program_.donated, from.index) != program_.donated.end();
  }

  void emit(const program::Copy& copy) {
    const int64_t bytes = program_.buffer(copy.destination).bytes();
    llvm::Value* const to = pointer(copy.destination);
    llvm::Value* const from = pointer(copy.source);
    llvm::BasicBlock* const after = may_be_one(copy) ? block("copied") : nullptr;
    if (after != nullptr) {
      llvm::BasicBlock* const apart = block("apart");
      b_.CreateCondBr(b_.CreateICmpEQ(to, from), after, apart);
      b_.SetInsertPoint(apart);
    }
    b_.CreateMemCpy(to, {}, from, {}, static_cast<uint64_t>(bytes));
    if (after == nullptr) return;
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
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

  llvm::Value* context_slot(ContextSlot slot) {
    return b_.CreateLoad(b_.getPtrTy(),
                         b_.CreateConstGEP1_64(b_.getPtrTy(), stops_, static_cast<uint64_t>(slot)));
  }

  // By a function that the caller gives; never part of a segment for the JIT, where the host runs
  // it. int (ptr user, ptr operands, ptr results): if that is not 0, it is the outcome of the
  // whole.
  void emit(const program::CustomCall& call) {
    const auto known = segment_.emission.calls.find(call.target);
    if (known == segment_.emission.calls.end()) return;
    const auto places = [&](const std::vector<BufferId>& ids) {
      llvm::Value* const list = array(b_.getPtrTy(), ids.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        b_.CreateStore(pointer(ids[i]), b_.CreateConstGEP1_64(b_.getPtrTy(), list, i));
      }
      return list;
    };
    llvm::Value* const arguments[] = {context_slot(ContextSlot::kUser), places(call.operands),
                                      places(call.results)};
    llvm::Value* const function = b_.CreateLoad(
        b_.getPtrTy(),
        b_.CreateConstGEP1_64(b_.getPtrTy(), context_slot(ContextSlot::kCalls), known->second));
    auto* const type = llvm::FunctionType::get(
        b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy()}, false);
    llvm::Value* const outcome = b_.CreateCall(type, function, arguments);
    llvm::BasicBlock* const next = block("called");
    llvm::BasicBlock* const failed = block("failed");
    b_.CreateCondBr(b_.CreateICmpEQ(outcome, b_.getInt32(0)), next, failed);
    b_.SetInsertPoint(failed);
    b_.CreateStore(outcome, context_slot(ContextSlot::kStatus));
    b_.CreateBr(exit_);
    b_.SetInsertPoint(next);
  }

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

std::optional<ContractionLoops> contraction_loops_of(const codegen::TargetCpu& cpu,
                                                     const program::LibraryCall& call,
                                                     std::span<const Shape> operands,
                                                     const Shape& result) {
  const auto* contraction = std::get_if<program::Contraction>(&call);
  // Without an fma instruction each product would be a call of fmaf.
  if (contraction == nullptr || !cpu.fused) return std::nullopt;
  const auto is_soft = [&](const Shape& shape) {
    return shape.element_type() == ElementType::kF16 && !cpu.converts_half;
  };
  if (is_soft(operands[0]) || is_soft(operands[1]) || is_soft(result)) return std::nullopt;
  auto loops = loops_of(*contraction, operands, result);
  if (!loops) return loops;
  loops->unit = matrix_unit_of(cpu, *loops);
  loops->multiplies_two = cpu.multiplies_two;
  return loops;
}

Result<CpuCode> compile_segment(const Program& program, int64_t threads) {
  SegmentEmission emission;
  emission.cpu = codegen::host();
  emission.symbol = kSegmentSymbol;
  emission.has_tasks = true;
  TENON_ASSIGN(const SegmentContractions contractions,
               contractions_of(emission.cpu, program, contraction_code, lapack_code));
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
                     emit_kernel(module, program.kernels[k], k, emission.cpu.vector_bytes).code;
               }));
  CpuKernelCode segment;
  segment.symbol = kSegmentSymbol;
  segment.buffers = program::memory_sizes(program);
  for (const uint32_t k : apart) {
    segment.scratch_bytes = std::max(segment.scratch_bytes, kernels[k].scratch_bytes);
  }
  TENON_ASSIGN(
      std::vector<std::string> functions,
      compile_functions({program, contractions, plan, kernels, emission}, segment.scratch_bytes));
  std::ranges::move(functions, std::back_inserter(code.objects));
  std::set<std::string> distinct;
  for (const auto& [call, contraction] : contractions) {
    const CpuCode& own = *contraction.code;
    if (distinct.insert(own.kernels[0].symbol).second) code.objects.push_back(own.objects[0]);
  }
  code.kernels.push_back(std::move(segment));
  return code;
}

EmittedSegment emit_segment(llvm::Module& module, const Program& program,
                            const SegmentEmission& emission) {
  const auto make = [&](const ContractionLoops& loops) -> Result<std::shared_ptr<const CpuCode>> {
    CpuCode code;
    const std::string name = "tenon_contraction_" + serial::digest_of(save(loops));
    const auto known = emission.contractions->find(name);
    if (known != emission.contractions->end()) return known->second;
    code.kernels = {emit_contraction_code(module, loops, name, emission.cpu.vector_bytes)};
    module.getFunction(name)->addFnAttr(llvm::Attribute::NoInline);
    return emission.contractions->emplace(name, std::make_shared<const CpuCode>(std::move(code)))
        .first->second;
  };
  const SegmentContractions contractions = contractions_of(emission.cpu, program, make).value();
  std::vector<CpuKernelCode> kernels(program.kernels.size());
  const std::vector<uint32_t> launched = kernels_of(program, contractions);
  for (const uint32_t k : launched) kernels[k] = describe(program.kernels[k], k);
  const SegmentPlan plan(program, contractions, kernels, emission.has_tasks ? 2 : 1);
  EmittedSegment emitted;
  const auto count = [&](int64_t bytes) {
    emitted.scratch_bytes = std::max(emitted.scratch_bytes, bytes);
  };
  for (const uint32_t k : launched) {
    if (plan.is_in_place(k)) continue;
    const EmittedKernel apart = emit_kernel(module, program.kernels[k], emission.first_number + k,
                                            emission.cpu.vector_bytes);
    // One call would be reason enough to copy it into a function that is large by itself.
    apart.function->addFnAttr(llvm::Attribute::NoInline);
    kernels[k] = apart.code;
    count(apart.code.scratch_bytes);
  }
  const SegmentSource source = {program, contractions, plan, kernels, emission};
  ModuleKernels in_module(module, source, 0);
  count(FunctionEmitter(module, source, in_module).whole());
  for (size_t p = 0; p < plan.parts().size(); ++p) {
    count(FunctionEmitter(module, source, in_module).part(p));
    module.getFunction(part_symbol(emission.first_number + p))
        ->addFnAttr(llvm::Attribute::NoInline);
  }
  count(in_module.scratch_bytes());
  emitted.function = module.getFunction(emission.symbol);
  emitted.next_number =
      emission.first_number +
      std::max({program.kernels.size(), plan.parts().size(), program.sequences.size()});
  return emitted;
}

}  // namespace tenon::cpu
