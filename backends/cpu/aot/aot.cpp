#include "backends/cpu/aot/aot.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <map>

#include "backends/cpu/aot/entries.h"
#include "backends/cpu/compiling.h"
#include "backends/llvm/host.h"
#include "backends/llvm/jit.h"
#include "core/base/digest.h"
#include "core/program/segment.h"
#include "core/program/serial.h"

namespace tenon::cpu {
namespace {

using llvm::Constant;

Result<codegen::TargetCpu> resolve(const AotTarget& target) {
  return codegen::target_cpu(target.triple, target.cpu, target.features);
}

// Compiles nothing: its Programs are compiled as wholes.
class AotBackend final : public backend::Backend {
 public:
  explicit AotBackend(codegen::TargetCpu cpu) : cpu_(std::move(cpu)) {}

  std::string_view name() const override { return "cpu-aot"; }
  std::string_view version() const override { return "1"; }
  Result<std::vector<backend::DeviceInfo>> devices() override {
    backend::TargetInfo target;
    target.name = cpu_.cpu;
    target.compiler_id = fmt::format("{} {} {}", cpu_.triple, cpu_.cpu, cpu_.features);
    target.features = features_of(cpu_);
    for (size_t i = 0; i < static_cast<size_t>(kernel::kScalarOpCount); ++i) {
      const auto op = static_cast<kernel::OpCode>(i);
      if (!kernel::is_math(op)) continue;
      for (const ElementType type : {ElementType::kF32, ElementType::kF64}) {
        target.math.push_back({std::string(kernel::op_name(op)), type, 0});
      }
    }
    target.vector_bytes = cpu_.vector_bytes;
    target.narrow_products = cpu_.dots_words ? kLeastMatrixLines : 0;
    target.scratch_bytes = 256 << 10;
    target.spaces[0].host_visible = true;
    target.spaces[0].host_writable = true;
    target.spaces[0].alignment = kAotAlignment;
    return std::vector<backend::DeviceInfo>{{"cpu-aot:0", target}};
  }
  Result<std::unique_ptr<backend::Device>> open(size_t) override {
    return unimplemented("code that is compiled ahead of time has no device");
  }
  Result<backend::Compiled> compile(const backend::TargetInfo&, backend::Kernels) override {
    return backend::Compiled{"ahead", {}};
  }
  Result<backend::LibraryCallPlan> plan(const backend::TargetInfo& target,
                                        const backend::LibraryCallSite& site) override {
    const bool is_contraction = std::holds_alternative<program::Contraction>(site.call);
    if (!is_contraction || !contraction_loops_of(cpu_, site.call, site.operands, site.results[0])) {
      return Backend::plan(target, site);
    }
    backend::LibraryCallPlan plan;
    plan.plan = "ahead";
    return plan;
  }

 private:
  const codegen::TargetCpu cpu_;
};

std::string identifier(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    name += is_good ? c : '_';
  }
  return name;
}

// 64 bits, as tenon_aot_hash() of tenon_aot.h computes them.
std::string fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

// The constants of all functions: equal ones are one.
class Constants {
 public:
  Constants(llvm::Module& module, const AotOptions& options, AotModel& model)
      : module_(module), options_(options), model_(model) {}

  ConstantPlaces place(const program::Program& program, const std::vector<bool>& used) {
    ConstantPlaces places;
    for (size_t i = 0; i < program.constants.size(); ++i) {
      places.addresses.push_back(nullptr);
      places.offsets.push_back(-1);
      if (!used[i]) continue;
      const KnownConstant& known = find(program.constants[i]);
      places.addresses.back() = known.address;
      places.offsets.back() = known.offset;
    }
    return places;
  }

 private:
  // Smaller ones stay in the object: a page of a file is no gain.
  static constexpr size_t kLeastInFile = 256;
  struct KnownConstant {
    Constant* address = nullptr;
    int64_t offset = -1;
  };

  const KnownConstant& find(const Literal& literal) {
    const std::string_view bytes(reinterpret_cast<const char*>(literal.data().data()),
                                 literal.data().size());
    const auto [at, added] = known_.try_emplace(serial::digest_of(bytes));
    KnownConstant& known = at->second;
    if (!added) return known;
    AotConstant row;
    row.name = fmt::format("{}_constant_{}", options_.name, model_.constants.size());
    row.shape = literal.shape();
    row.bytes = static_cast<int64_t>(bytes.size());
    if (options_.weights_in_file && bytes.size() >= kLeastInFile) {
      constexpr auto kUnit = static_cast<size_t>(kAotAlignment);
      model_.weights.resize((model_.weights.size() + kUnit - 1) / kUnit * kUnit);
      row.offset = known.offset = static_cast<int64_t>(model_.weights.size());
      model_.weights += bytes;
    } else {
      embed(row.name, bytes, known);
    }
    model_.constants.push_back(std::move(row));
    return known;
  }

  void embed(const std::string& name, std::string_view bytes, KnownConstant& known) {
    Constant* const data =
        llvm::ConstantDataArray::getRaw(llvm::StringRef(bytes.data(), bytes.size()), bytes.size(),
                                        llvm::Type::getInt8Ty(module_.getContext()));
    auto* const global = new llvm::GlobalVariable(module_, data->getType(), true,
                                                  llvm::GlobalValue::InternalLinkage, data, name);
    global->setAlignment(llvm::Align(kAotAlignment));
    known.address = global;
  }

  llvm::Module& module_;
  const AotOptions& options_;
  AotModel& model_;
  std::map<std::string, KnownConstant> known_;
};

// Constants that steps read; a library call's other steps may read some that it does not.
std::vector<bool> used_constants(const program::Program& program,
                                 const std::function<bool(const program::Step&)>& descends) {
  std::vector<bool> used(program.constants.size());
  const auto note = [&](program::BufferId id) {
    const program::Buffer& buffer = program.buffer(program.root(id));
    if (buffer.kind == program::BufferKind::kConstant) used[buffer.index] = true;
  };
  program::for_each_step(program, {}, descends,
                         [&](const program::Step& step) { program::for_each_buffer(step, note); });
  return used;
}

Status check_steps(const AotFunction& function, const AotOptions& options) {
  Status outcome;
  program::for_each_step(
      *function.program, {}, [](const program::Step&) { return true; },
      [&](const program::Step& step) {
        const auto* call = std::get_if<program::CustomCall>(&step.action);
        if (call == nullptr || !outcome.ok()) return;
        const bool is_given = std::ranges::find(options.calls, call->target) != options.calls.end();
        if (is_given) return;
        outcome = Status(unimplemented(
            "{}: {}", step.label,
            call->target == "tenon.host"
                ? "the op runs on a host, which code ahead of time does not have"
                : fmt::format("the custom call @{0} needs a function of the caller's: --call {0}",
                              call->target)));
      });
  return outcome;
}

class ModelCompiler {
 public:
  ModelCompiler(std::span<const AotFunction> functions, const AotOptions& options,
                codegen::TargetCpu cpu)
      : functions_(functions),
        options_(options),
        cpu_(std::move(cpu)),
        module_(options.name, context_) {}

  Result<AotModel> run() {
    TENON_ASSIGN(const auto machine, codegen::make_object_machine(cpu_));
    codegen::set_target(module_, *machine);
    module_.setPICLevel(llvm::PICLevel::BigPIC);
    mark_unstoppable(module_);
    model_.target = {cpu_.triple, cpu_.cpu, cpu_.features};
    std::string made_from = fmt::format("{} {} {} {} {}", cpu_.triple, cpu_.cpu, cpu_.features,
                                        options_.version, options_.is_small);
    Constants constants(module_, options_, model_);
    std::vector<AotEmitted> emitted;
    int64_t scratch = 0;
    for (const AotFunction& each : functions_) {
      TENON_TRY(check_steps(each, options_));
      made_from += program::save(*each.program);
      emitted.push_back(emit(each, constants));
      scratch = std::max(scratch, emitted.back().segment.scratch_bytes);
    }
    constexpr int64_t kMost = int64_t{1} << 30;
    int64_t embedded = 0;
    for (const AotConstant& each : model_.constants) embedded += each.offset < 0 ? each.bytes : 0;
    if (embedded > kMost) {
      return Error(
          resource_exhausted("{} bytes of constants are more than an object can hold: "
                             "write them to a file with --weights file",
                             embedded));
    }
    model_.hash = serial::digest_of(made_from);
    model_.weights_hash = fnv1a(model_.weights);
    for (size_t i = 0; i < functions_.size(); ++i) {
      model_.entries.push_back(emit_entry(
          module_,
          {functions_[i], options_, emitted[i].constants, emitted[i].segment.function,
           std::max(emitted[i].segment.scratch_bytes, options_.threads > 0 ? scratch : 0)}));
    }
    emit_task_function(module_, scratch);
    emit_descriptor(module_, functions_, options_, model_);
    finish();
    TENON_ASSIGN(model_.object, codegen::compile_to_object(module_, *machine,
                                                           codegen::next_dump("TENON_CPU_DUMP")));
    return std::move(model_);
  }

 private:
  struct AotEmitted {
    EmittedSegment segment;
    ConstantPlaces constants;
  };

  AotEmitted emit(const AotFunction& function, Constants& constants) {
    const program::Program& program = *function.program;
    const auto shape = [&](program::BufferId id) {
      return Shape(program.buffer(id).type, program.buffer(id).dims);
    };
    const auto descends = [&](const program::Step& step) {
      const auto& call = std::get<program::LibraryCallStep>(step.action);
      if (!std::holds_alternative<program::Contraction>(call.call)) return true;
      const Shape operands[] = {shape(call.operands[0]), shape(call.operands[1])};
      return !contraction_loops_of(cpu_, call.call, operands, shape(call.results[0]));
    };
    AotEmitted emitted;
    emitted.constants = constants.place(program, used_constants(program, descends));
    SegmentEmission emission;
    emission.cpu = cpu_;
    emission.symbol = fmt::format("{}.{}", options_.name, function.name);
    emission.first_number = next_number_;
    emission.has_tasks = options_.threads > 0;
    emission.constants = emitted.constants.addresses;
    for (size_t i = 0; i < options_.calls.size(); ++i) emission.calls[options_.calls[i]] = i;
    emission.contractions = &contractions_;
    emitted.segment = emit_segment(module_, program, emission);
    rename_kernels(program);
    next_number_ = emitted.segment.next_number;
    return emitted;
  }

  // Names that tell what a function of the object does.
  void rename_kernels(const program::Program& program) {
    for (size_t k = 0; k < program.kernels.size(); ++k) {
      llvm::Function* const function = module_.getFunction(direct_symbol(next_number_ + k));
      if (function == nullptr) continue;
      function->setName(fmt::format("{}.kernel.{}.{}", options_.name, next_number_ + k,
                                    identifier(program.kernels[k].name)));
    }
  }

  // A contraction's digest says nothing to people.
  void rename_contractions() {
    size_t number = 0;
    for (const auto& [digest, code] : contractions_) {
      const std::string name = fmt::format("{}.contraction.{}", options_.name, number++);
      for (llvm::Function& each : module_) {
        if (!each.getName().starts_with(digest)) continue;
        each.setName(name + each.getName().substr(digest.size()).str());
      }
    }
  }

  // Only the entries are seen from outside, and what they do not reach goes.
  void finish() {
    std::vector<std::string> kept;
    for (const AotEntry& each : model_.entries) {
      kept.push_back(each.symbol);
      kept.push_back(each.symbol + "_run");
    }
    std::vector<llvm::Function*> defined;
    for (llvm::Function& each : module_) {
      if (each.isDeclaration() || std::ranges::find(kept, each.getName()) != kept.end()) continue;
      each.setLinkage(llvm::GlobalValue::InternalLinkage);
      each.setVisibility(llvm::GlobalValue::DefaultVisibility);
      each.setDSOLocal(true);
      defined.push_back(&each);
    }
    for (bool any = true; any;) {
      any = false;
      for (llvm::Function*& each : defined) {
        if (each == nullptr || !each->use_empty()) continue;
        each->eraseFromParent();
        each = nullptr;
        any = true;
      }
    }
    rename_contractions();
    if (!options_.is_small) return;
    for (llvm::Function& each : module_) {
      if (each.isDeclaration()) continue;
      each.addFnAttr(llvm::Attribute::OptimizeForSize);
      if (each.hasLocalLinkage() && !each.hasOneUse()) each.addFnAttr(llvm::Attribute::NoInline);
    }
  }

  std::span<const AotFunction> functions_;
  const AotOptions& options_;
  const codegen::TargetCpu cpu_;
  llvm::LLVMContext context_;
  llvm::Module module_;
  AotModel model_;
  std::map<std::string, std::shared_ptr<const CpuCode>> contractions_;
  size_t next_number_ = 0;
};

class LoadedModel final : public AotLoaded {
 public:
  explicit LoadedModel(std::unique_ptr<codegen::LoadedObjects> objects)
      : objects_(std::move(objects)) {}
  void* address(const std::string& symbol) override {
    const auto found = objects_->address(symbol);
    return found ? *found : nullptr;
  }

 private:
  std::unique_ptr<codegen::LoadedObjects> objects_;
};

}  // namespace

Result<std::shared_ptr<backend::Backend>> make_aot_backend(const AotTarget& target) {
  TENON_ASSIGN(codegen::TargetCpu cpu, resolve(target));
  return std::make_shared<AotBackend>(std::move(cpu));
}

Result<AotModel> compile_ahead(std::span<const AotFunction> functions, const AotOptions& options) {
  TENON_ASSIGN(codegen::TargetCpu cpu, resolve(options.target));
  return ModelCompiler(functions, options, std::move(cpu)).run();
}

Result<std::unique_ptr<AotLoaded>> load_ahead(const AotModel& model) {
  TENON_ASSIGN(auto objects, codegen::load_objects({&model.object, 1}, {}));
  return std::make_unique<LoadedModel>(std::move(objects));
}

}  // namespace tenon::cpu
