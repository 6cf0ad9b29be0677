// A Program as one function: its steps in a row, kernels called in place.
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/cpu/chain.h"
#include "backends/cpu/code.h"
#include "backends/cpu/compiling.h"
#include "backends/cpu/contraction.h"
#include "backends/llvm/host.h"
#include "backends/llvm/operations.h"
#include "core/program/segment.h"

namespace tenon::cpu {
namespace {

using program::BufferId;
using program::Program;
using program::SequenceId;
using program::Step;

std::optional<ContractionLoops> loops_of(const Program& program, const program::Call& call) {
  const auto* contraction = std::get_if<program::Contraction>(&call.call);
  // Without the instruction each product would be a call of fmaf, as for CpuBackend::plan.
  if (contraction == nullptr || !codegen::host().fused) return std::nullopt;
  const auto shape = [&](BufferId id) {
    return Shape(program.buffer(id).type, program.buffer(id).dims);
  };
  const Shape operands[] = {shape(call.operands[0]), shape(call.operands[1])};
  return cpu::loops_of(*contraction, operands, shape(call.results[0]));
}

// A call that has code of its own.
struct Contraction {
  std::shared_ptr<const Code> code;
  std::optional<RowGroups> rows;
  const KernelCode& kernel() const { return code->kernels[0]; }
};
using Contractions = std::map<const program::Call*, Contraction>;

Result<Contractions> contractions_of(const Program& program) {
  Contractions found;
  Status outcome;
  program::for_each_step(
      program, {}, [&](const Step&) { return true; },
      [&](const Step& step) {
        const auto* call = std::get_if<program::Call>(&step.action);
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

// Kernels of more nodes are compiled in other modules, some in each, by several threads.
constexpr size_t kMostNodesInPlace = 150;

class SegmentEmitter {
 public:
  SegmentEmitter(llvm::Module& module, const Program& program,
                 const std::vector<KernelCode>& kernels, std::vector<llvm::Function*> in_place,
                 const Contractions& contractions, int64_t threads)
      : module_(module),
        program_(program),
        kernels_(kernels),
        functions_(std::move(in_place)),
        contractions_(contractions),
        threads_(threads),
        b_(module.getContext()) {}

  /// Bytes of scratch memory that calls take.
  int64_t run(const std::string& symbol) {
    function_ = make_entry_function(module_, symbol);
    b_.SetInsertPoint(llvm::BasicBlock::Create(context(), "", function_));
    exit_ = llvm::BasicBlock::Create(context(), "exit", function_);
    load_memories();
    sequence(0);
    b_.CreateBr(exit_);
    b_.SetInsertPoint(exit_);
    b_.CreateRetVoid();
    return scratch_bytes_;
  }

 private:
  llvm::LLVMContext& context() { return module_.getContext(); }
  llvm::Value* scratch() { return function_->getArg(4); }
  llvm::Value* stops() { return function_->getArg(5); }

  // In the order of memory_sizes().
  void load_memories() {
    uint64_t next = 0;
    const auto load = [&] {
      return b_.CreateLoad(b_.getPtrTy(),
                           b_.CreateConstGEP1_64(b_.getPtrTy(), function_->getArg(0), next++));
    };
    for (size_t i = 0; i < program_.parameters.size(); ++i) parameters_.push_back(load());
    for (size_t i = 0; i < program_.results.size(); ++i) results_.push_back(load());
    for (size_t i = 0; i < program_.constants.size(); ++i) constants_.push_back(load());
    if (program_.temporary_bytes > 0) temporaries_ = load();
  }

  llvm::Value* pointer(BufferId id) {
    const program::Buffer& buffer = program_.buffer(program_.root(id));
    switch (buffer.kind) {
      case program::MemoryKind::kParameter:
        return parameters_[buffer.index];
      case program::MemoryKind::kResult:
        return results_[buffer.index];
      case program::MemoryKind::kConstant:
        return constants_[buffer.index];
      case program::MemoryKind::kTemporary:
        break;
    }
    // An empty one may have no block to lie in.
    if (temporaries_ == nullptr) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), temporaries_,
                                 static_cast<uint64_t>(buffer.offset));
  }

  void sequence(SequenceId id) {
    const program::Sequence& sequence = program_.sequences[id];
    std::set<size_t> done;
    for (size_t s = 0; s < sequence.steps.size(); ++s) {
      if (done.contains(s)) continue;
      const std::vector<ChainedLaunch> chain = chain_behind(sequence, s);
      for (const ChainedLaunch& each : chain) done.insert(each.step);
      if (chain.empty()) {
        std::visit([&](const auto& action) { emit(action); }, sequence.steps[s].action);
      } else {
        emit_chain(sequence, std::get<program::Call>(sequence.steps[s].action), chain);
      }
    }
  }

  // --- Contractions with what goes through their rows

  // Where the result is too large for a near cache, and there are groups of rows enough for all
  // threads, if the work is worth several.
  std::vector<ChainedLaunch> chain_behind(const program::Sequence& sequence, size_t step) {
    const auto* call = std::get_if<program::Call>(&sequence.steps[step].action);
    const auto found = call == nullptr ? contractions_.end() : contractions_.find(call);
    if (found == contractions_.end() || !found->second.rows) return {};
    constexpr int64_t kLarge = 1 << 20;
    const RowGroups& rows = *found->second.rows;
    if (rows.groups() < 2 || rows.turns * rows.rows * rows.row_bytes < kLarge) return {};
    std::vector<ChainedLaunch> chain = chained_launches(program_, sequence, step, rows);
    bool several = found->second.kernel().workgroups > found->second.kernel().grain;
    for (const ChainedLaunch& each : chain) {
      const auto& launch = std::get<program::Launch>(sequence.steps[each.step].action);
      several |= kernels_[launch.kernel].workgroups > kernels_[launch.kernel].grain;
    }
    if (several && rows.groups() < 2 * threads_) return {};
    return chain;
  }

  void emit_chain(const program::Sequence& sequence, const program::Call& call,
                  const std::vector<ChainedLaunch>& chain) {
    const Contraction& contraction = contractions_.at(&call);
    std::vector<BufferId> buffers = buffers_of(call);
    std::vector<ChainPart> parts;
    KernelCode code = contraction.kernel();
    for (const ChainedLaunch& each : chain) {
      const auto& launch = std::get<program::Launch>(sequence.steps[each.step].action);
      parts.push_back({launch_function(launch), launch.buffers.size(), scalars_of(launch),
                       each.workgroups_a_row});
      buffers.insert(buffers.end(), launch.buffers.begin(), launch.buffers.end());
      code.scratch_bytes = std::max(code.scratch_bytes, kernels_[launch.kernel].scratch_bytes);
      code.nanoseconds += kernels_[launch.kernel].nanoseconds;
    }
    const std::string name = fmt::format("tenon_chain_{}", chains_++);
    llvm::Function* const function = make_chain_function(module_, name, *contraction.rows,
                                                         contraction_function(contraction), parts);
    code.symbol = name + ".entry";
    code.workgroups = contraction.rows->groups();
    code.grain = grain_of(code.nanoseconds, code.workgroups);
    scratch_bytes_ = std::max(scratch_bytes_, code.scratch_bytes);
    if (code.workgroups > code.grain) {
      make_entry(module_, function, buffers.size(), {}, code.symbol);
    }
    run_workgroups(code, function, buffers, {});
  }

  static std::vector<BufferId> buffers_of(const program::Call& call) {
    std::vector<BufferId> buffers = call.operands;
    buffers.insert(buffers.end(), call.results.begin(), call.results.end());
    return buffers;
  }

  void emit(const program::Launch& launch) {
    run_workgroups(kernels_[launch.kernel], launch_function(launch), launch.buffers,
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

  // That of a kernel of another module is declared; it may be launched again.
  llvm::Function* launch_function(const program::Launch& launch) {
    llvm::Function*& function = functions_[launch.kernel];
    if (function != nullptr) return function;
    std::vector<llvm::Type*> types(launch.buffers.size(), b_.getPtrTy());
    for (const llvm::Constant* each : scalars_of(launch)) types.push_back(each->getType());
    types.insert(types.end(), {b_.getInt64Ty(), b_.getInt64Ty(), b_.getPtrTy(), b_.getPtrTy()});
    const auto type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
    function = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                      direct_symbol(launch.kernel), module_);
    return function;
  }

  llvm::Function* contraction_function(const Contraction& contraction) {
    llvm::Type* const pointer = b_.getPtrTy();
    llvm::Type* const number = b_.getInt64Ty();
    auto* const type = llvm::FunctionType::get(
        b_.getVoidTy(), {pointer, pointer, pointer, number, number, pointer, pointer}, false);
    llvm::FunctionCallee function =
        module_.getOrInsertFunction(direct_symbol_of(contraction.kernel().symbol), type);
    return llvm::cast<llvm::Function>(function.getCallee());
  }

  void run_workgroups(const KernelCode& kernel, llvm::Function* function,
                      const std::vector<BufferId>& buffers,
                      const std::vector<llvm::Constant*>& scalars) {
    if (kernel.workgroups > kernel.grain) return run_tasks(kernel, buffers, scalars);
    std::vector<llvm::Value*> arguments;
    for (const BufferId id : buffers) arguments.push_back(pointer(id));
    arguments.insert(arguments.end(), scalars.begin(), scalars.end());
    arguments.insert(arguments.end(),
                     {b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(kernel.workgroups)),
                      scratch(), stops()});
    b_.CreateCall(function, arguments);
  }

  // Through kTaskFunction: workgroups shared out among threads.
  void run_tasks(const KernelCode& kernel, const std::vector<BufferId>& ids,
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
        module_.getOrInsertFunction(kernel.symbol, function_->getFunctionType()).getCallee();
    const auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
    llvm::Value* const arguments[] = {entry,
                                      buffers,
                                      scalars,
                                      number(kernel.workgroups),
                                      number(kernel.grain),
                                      number(kernel.scratch_bytes),
                                      stops()};
    std::vector<llvm::Type*> types;
    for (const llvm::Value* each : arguments) types.push_back(each->getType());
    b_.CreateCall(module_.getOrInsertFunction(
                      kTaskFunction, llvm::FunctionType::get(b_.getInt1Ty(), types, false)),
                  arguments);
  }

  llvm::Value* array(llvm::Type* element, size_t count) {
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    llvm::BasicBlock& entry = function_->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.begin());
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
    b_.CreateCondBr(emit_poll(b_, stops()), test, exit_);
    b_.SetInsertPoint(after);
  }

  // Of pred true is branch 0; a number out of range is the last branch.
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

  // By code of its own if it is a contraction that has some.
  void emit(const program::Call& call) {
    const auto found = contractions_.find(&call);
    if (found == contractions_.end()) return sequence(call.lowered);
    const KernelCode& kernel = found->second.kernel();
    scratch_bytes_ = std::max(scratch_bytes_, kernel.scratch_bytes);
    run_workgroups(kernel, contraction_function(found->second), buffers_of(call), {});
  }
  // Stands outside of segments.
  void emit(const program::CustomCall&) {}

  llvm::Module& module_;
  const Program& program_;
  const std::vector<KernelCode>& kernels_;
  std::vector<llvm::Function*> functions_;
  const Contractions& contractions_;
  const int64_t threads_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* exit_ = nullptr;
  std::vector<llvm::Value*> parameters_, results_, constants_;
  llvm::Value* temporaries_ = nullptr;
  int64_t scratch_bytes_ = 0;
  size_t chains_ = 0;
};

// Those that are launched, other than for calls that have functions of their own.
std::vector<uint32_t> kernels_of(const Program& program, const Contractions& contractions) {
  std::set<uint32_t> used;
  program::for_each_step(
      program, {},
      [&](const Step& step) {
        return !contractions.contains(&std::get<program::Call>(step.action));
      },
      [&](const Step& step) {
        if (const auto* launch = std::get_if<program::Launch>(&step.action)) {
          used.insert(launch->kernel);
        }
      });
  return {used.begin(), used.end()};
}

}  // namespace

Result<Code> compile_segment(const Program& program, int64_t threads) {
  std::vector<KernelCode> kernels(program.kernels.size());
  std::vector<uint32_t> apart;
  std::vector<uint32_t> in_place;
  TENON_ASSIGN(const Contractions contractions, contractions_of(program));
  for (const uint32_t k : kernels_of(program, contractions)) {
    const bool small = program.kernels[k].nodes.size() <= kMostNodesInPlace;
    (small ? in_place : apart).push_back(k);
  }
  Code code;
  TENON_ASSIGN(code.objects, compile_objects(apart.size(), [&](llvm::Module& module, size_t i) {
                 const uint32_t k = apart[i];
                 kernels[k] =
                     emit_kernel(module, program.kernels[k], k, codegen::host().vector_bytes).code;
               }));
  int64_t scratch = 0;
  const auto whole = [&](llvm::Module& module, size_t) {
    std::vector<llvm::Function*> functions(program.kernels.size());
    for (const uint32_t k : in_place) {
      EmittedKernel emitted =
          emit_kernel(module, program.kernels[k], k, codegen::host().vector_bytes);
      functions[k] = emitted.function;
      kernels[k] = std::move(emitted.code);
      // Of a kernel that is never cut into tasks nothing is called from outside.
      if (kernels[k].workgroups > kernels[k].grain) continue;
      module.getFunction(kernels[k].symbol)->eraseFromParent();
      functions[k]->setLinkage(llvm::GlobalValue::InternalLinkage);
      functions[k]->setVisibility(llvm::GlobalValue::DefaultVisibility);
    }
    scratch = SegmentEmitter(module, program, kernels, std::move(functions), contractions, threads)
                  .run(kSegmentSymbol);
  };
  TENON_ASSIGN(std::vector<std::string> last, compile_objects(1, whole));
  code.objects.push_back(std::move(last[0]));
  std::set<std::string> distinct;
  for (const auto& [call, contraction] : contractions) {
    const Code& own = *contraction.code;
    if (distinct.insert(own.kernels[0].symbol).second) code.objects.push_back(own.objects[0]);
  }
  KernelCode segment;
  segment.symbol = kSegmentSymbol;
  segment.buffers = program::memory_sizes(program);
  segment.scratch_bytes = scratch;
  for (const KernelCode& kernel : kernels) {
    segment.scratch_bytes = std::max(segment.scratch_bytes, kernel.scratch_bytes);
  }
  code.kernels.push_back(std::move(segment));
  return code;
}

}  // namespace tenon::cpu
