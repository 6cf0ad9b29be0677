#include "hlo/driver/compile.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <unordered_set>

#include "core/kernel/verify/verifier.h"
#include "hlo/buffers/assign.h"
#include "hlo/driver/target_model.h"
#include "hlo/ir/inline.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

using backend::Declined;
using program::Program;
using program::Step;

// Whether the target has all math functions on all floats that it computes with, each with the bits
// of the shared expansion: an error of 0.
bool has_shared_math(const backend::TargetInfo& target) {
  const auto has = [&](kernel::OpCode op, ElementType type) {
    return std::ranges::any_of(target.math, [&](const backend::MathInfo& math) {
      return math.ulp == 0 && math.type == type && math.function == kernel::op_name(op);
    });
  };
  for (int i = 0; i < kernel::kScalarOpCount; ++i) {
    const auto op = static_cast<kernel::OpCode>(i);
    if (!kernel::is_math(op)) continue;
    for (size_t t = 0; t < kElementTypeCount; ++t) {
      const auto type = static_cast<ElementType>(t);
      if (is_float(type) && target.features.computes(type) && !has(op, type)) return false;
    }
  }
  return true;
}

kernel::TargetFeatures features_of(const backend::TargetInfo& target, bool native_math) {
  kernel::TargetFeatures features = target.features;
  features.math = features.math && (native_math || has_shared_math(target));
  return features;
}

class ProgramCompiler {
 public:
  ProgramCompiler(backend::Backend& backend, const backend::TargetInfo& target,
                  const CompileOptions& options)
      : backend_(backend),
        target_(target),
        options_(options),
        features_(features_of(target, options.native_math)),
        lower_(options.lower) {
    if (target.scratch_bytes > 0) lower_.limits.scratch_bytes = target.scratch_bytes;
    if (target.vector_bytes > 0) lower_.limits.vector_bytes = target.vector_bytes;
    lower_.limits.alignment = std::max(lower_.limits.alignment, target.spaces[0].alignment);
    lower_.limits.fma = target.accepts_all || features_.fma;
    lower_.limits.private_memory = target.accepts_all || features_.private_memory;
    lower_.limits.cost = cost_model_of(target);
    lower_.tuning.prefer(std::string(lower::parameters::kLanes.name), lower_.limits.cost.lanes);
    failed_ = apply_tuning(target, lower_.tuning);
    if (lower_.takes_call == nullptr) {
      lower_.takes_call = [this](const program::LibraryCall& call, std::span<const Shape> operands,
                                 std::span<const Shape> results, std::string_view label) {
        const std::vector<bool> constant(operands.size());
        const backend::LibraryCallSite site = {call, operands, results, constant};
        const auto plan = backend_.plan(target_, site);
        if (plan) return true;
        if (plan.error().code() != ErrorCode::kUnimplemented) failed_ = plan.error();
        note_declined(site, label, plan.error());
        return false;
      };
    }
  }

  Result<Compilation> run(const Module& module) {
    TENON_TRY(failed_);
    while (true) {
      declined_calls_.clear();
      TENON_ASSIGN(result_.compiled.program, lower_module(module, lower_));
      TENON_TRY(failed_);
      TENON_TRY(attempt());
      if (!raise_fallback_levels()) break;
      ++result_.attempts;
    }
    return finish();
  }

  Result<Compilation> run(const Program& program) {
    result_.compiled.program = program;
    if (lower_.limits.alignment > program::kAlignment) {
      assign_buffers(result_.compiled.program, lower_.limits.alignment);
      program::find_dependencies(result_.compiled.program);
    }
    TENON_TRY(attempt());
    return finish();
  }

 private:
  Result<Compilation> finish() {
    TENON_TRY(on_host());
    place();
    if (options_.strict) TENON_TRY(strict());
    return std::move(result_);
  }

  // Records why the steps with this label are no call, unless the backend takes no calls at all.
  void note_declined(const backend::LibraryCallSite& site, std::string_view label,
                     const Status& why) {
    const auto unasked = backend_.Backend::plan(target_, site);
    if (!unasked && unasked.error() == why) return;
    declined_calls_[std::string(label)] =
        fmt::format("{} declined: {}", program::name_of(site.call), why.message());
  }

  Result<kernel::Kernel> legalized(const kernel::Kernel& kernel) const {
    if (target_.accepts_all) return kernel;
    return kernel::legalize(kernel, features_);
  }

  // Legalises each kernel and lets the backend compile all; records what is declined.
  Status attempt() {
    declined_.clear();
    const Program& program = result_.compiled.program;
    legal_.clear();
    for (uint32_t k = 0; k < program.kernels.size(); ++k) {
      auto legal = legalized(program.kernels[k]);
      if (!legal) {
        if (legal.error().code() != ErrorCode::kUnimplemented) return legal.error();
        decline({k, backend::Reason::kOther, legal.error().message()});
        legal = program.kernels[k];
      }
      legal_.push_back(*std::move(legal));
    }
    TENON_TRY(plan_calls());
    TENON_TRY(compile_segments());
    return compile_kernels();
  }

  bool is_planned(const Step& step) const {
    const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
    return call != nullptr && result_.compiled.plans.contains(call->lowered);
  }

  // Calls visit(step) for the steps that are run outside of `segments`.
  template <class Visit>
  void for_each_step(const std::vector<program::StepRange>& segments, const Visit& visit) const {
    program::for_each_step(
        result_.compiled.program, segments, [&](const Step& step) { return !is_planned(step); },
        visit);
  }

  Status plan_calls() {
    runtime::CompiledProgram& compiled = result_.compiled;
    compiled.plans.clear();
    Status failed;
    for_each_step({}, [&](const Step& step) {
      const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
      if (call == nullptr || !failed.ok()) return;
      const auto shapes = [&](const std::vector<program::BufferId>& ids) {
        std::vector<Shape> list;
        for (const program::BufferId id : ids) {
          list.emplace_back(compiled.program.buffer(id).type, compiled.program.buffer(id).dims);
        }
        return list;
      };
      const std::vector<Shape> operands = shapes(call->operands);
      const std::vector<Shape> results = shapes(call->results);
      std::vector<bool> constant;
      for (const program::BufferId id : call->operands) {
        const program::Program& program = compiled.program;
        constant.push_back(program.buffer(program.root(id)).kind == program::BufferKind::kConstant);
      }
      const backend::LibraryCallSite site = {call->call, operands, results, constant};
      auto plan = backend_.plan(target_, site);
      if (plan) {
        compiled.plans[call->lowered] = *std::move(plan);
      } else if (plan.error().code() == ErrorCode::kUnimplemented) {
        note_declined(site, step.label, plan.error());
      } else {
        failed = plan.error();
      }
    });
    return failed;
  }

  // Compiles segments with the calls that the backend takes; if it declines a segment, without
  // them.
  Status compile_segments() {
    if (!backend_.takes_segments()) {
      result_.compiled.segments.clear();
      return {};
    }
    TENON_ASSIGN(const bool all, compile_segments(true));
    if (!all && !result_.compiled.plans.empty()) {
      TENON_ASSIGN(std::ignore, compile_segments(false));
    }
    return {};
  }

  // Whether the step copies a donated argument to a result: the two may share memory.
  bool copies_donated(const Step& step) const {
    const auto* copy = std::get_if<program::Copy>(&step.action);
    if (copy == nullptr) return false;
    const Program& program = result_.compiled.program;
    const program::Buffer& from = program.buffer(program.root(copy->source));
    const program::Buffer& to = program.buffer(program.root(copy->destination));
    return from.kind == program::BufferKind::kParameter &&
           to.kind == program::BufferKind::kResult && donated_.contains(from.index);
  }

  std::string name_of_range(const program::StepRange& range) const {
    const std::vector<Step>& steps = result_.compiled.program.sequences[range.sequence].steps;
    const size_t count = range.end - range.begin;
    if (range.sequence == 0 && count == steps.size()) {
      return fmt::format("the whole program, {} {}", count, count == 1 ? "step" : "steps");
    }
    const std::string& label = steps[range.begin].label;
    return count == 1 ? label : fmt::format("{} and {} more", label, count - 1);
  }

  // Compiles the segments; true if none was declined.
  Result<bool> compile_segments(bool with_calls) {
    runtime::CompiledProgram& compiled = result_.compiled;
    compiled.segments.clear();
    donated_ = {compiled.program.donated.begin(), compiled.program.donated.end()};
    result_.declined_segments.clear();
    bool all = true;
    Program legal = compiled.program;
    legal.kernels = legal_;
    const auto apart = [&](const Step& step) {
      const auto* launch = std::get_if<program::Launch>(&step.action);
      return std::holds_alternative<program::CustomCall>(step.action) || copies_donated(step) ||
             (!with_calls && is_planned(step)) ||
             (launch != nullptr && is_declined(launch->kernel));
    };
    for (const program::StepRange& range : program::segments_of(legal, apart)) {
      program::Segment segment = program::segment_of(legal, range);
      auto binary = backend_.compile_segment(target_, segment.program);
      if (binary) {
        compiled.segments.push_back({range, std::move(segment.memories), *std::move(binary)});
      } else if (binary.error().code() == ErrorCode::kUnimplemented) {
        all = false;
        result_.declined_segments.push_back(
            fmt::format("{}: {}", name_of_range(range), binary.error().message()));
      } else {
        return tl::make_unexpected(binary.error());
      }
    }
    return all;
  }

  std::vector<program::StepRange> ranges() const {
    std::vector<program::StepRange> list;
    for (const runtime::CompiledSegment& each : result_.compiled.segments) {
      list.push_back(each.range);
    }
    return list;
  }

  void decline(Declined declined) { declined_.emplace(declined.kernel, std::move(declined)); }
  bool is_declined(uint32_t kernel) const { return declined_.contains(kernel); }

  // Compiles the kernels that are launched outside of segments and have not been declined.
  Status compile_kernels() {
    std::vector<runtime::KernelPlacement>& placements = result_.compiled.kernel_placements;
    placements.assign(legal_.size(), runtime::KernelPlacement::kInlined);
    for_each_step(ranges(), [&](const Step& step) {
      const auto* launch = std::get_if<program::Launch>(&step.action);
      if (launch == nullptr) return;
      placements[launch->kernel] = is_declined(launch->kernel) ? runtime::KernelPlacement::kHost
                                                               : runtime::KernelPlacement::kDevice;
    });
    std::vector<const kernel::Kernel*> kernels;
    std::vector<uint32_t> numbers;
    for (uint32_t k = 0; k < legal_.size(); ++k) {
      if (placements[k] != runtime::KernelPlacement::kDevice) continue;
      kernels.push_back(&legal_[k]);
      numbers.push_back(k);
    }
    result_.compiled.binary.clear();
    if (kernels.empty()) return {};
    TENON_ASSIGN(backend::Compiled compiled, backend_.compile(target_, kernels));
    for (Declined& each : compiled.declined) {
      if (each.kernel >= numbers.size()) {
        return Status(internal_error("B13: {} declines kernel {} of {}", backend_.name(),
                                     each.kernel, numbers.size()));
      }
      each.kernel = numbers[each.kernel];
      decline(std::move(each));
    }
    result_.compiled.binary = std::move(compiled.binary);
    return {};
  }

  // Whether another lowering may do better: some declined op has not reached the last fallback
  // level.
  bool raise_fallback_levels() {
    bool any = false;
    if (declined_.empty()) return false;
    for_each_step({}, [&](const Step& step) {
      const auto* launch = std::get_if<program::Launch>(&step.action);
      if (launch == nullptr || !is_declined(launch->kernel)) return;
      int& level = lower_.fallback_levels[step.label];
      if (level >= kLastLevel || reached_.contains({step.label, result_.attempts})) return;
      reached_.insert({step.label, result_.attempts});
      ++level;
      any = true;
    });
    return any;
  }

  // Kernels that are still declined stay as they were before legalisation: the host interprets
  // them.
  Status on_host() {
    Program& program = result_.compiled.program;
    const size_t refused = declined_.size();
    if (refused > 0) TENON_TRY(compile_kernels());
    if (declined_.size() != refused) {
      return Status(internal_error("B13: {} declines kernels that it took", backend_.name()));
    }
    for (uint32_t k = 0; k < program.kernels.size(); ++k) {
      if (!is_declined(k)) program.kernels[k] = std::move(legal_[k]);
    }
    return program::validate(program);
  }

  std::string reason_of(uint32_t kernel) const {
    const auto found = declined_.find(kernel);
    if (found == declined_.end()) return "";
    return fmt::format("{}: {}", name_of(found->second.reason), found->second.text);
  }

  void place() {
    const Program& program = result_.compiled.program;
    std::set<const Step*> alone;
    for_each_step(ranges(), [&](const Step& step) { alone.insert(&step); });
    for_each_step({}, [&](const Step& step) {
      Placement placement;
      placement.label = step.label;
      if (!alone.contains(&step)) placement.reason = "within a segment";
      if (const auto* launch = std::get_if<program::Launch>(&step.action)) {
        placement.kernel = program.kernels[launch->kernel].name;
        if (alone.contains(&step) && is_declined(launch->kernel)) {
          placement.kind = PlacementKind::kHost;
          placement.reason = reason_of(launch->kernel);
        }
        if (const auto call = declined_calls_.find(step.label); call != declined_calls_.end()) {
          placement.reason += (placement.reason.empty() ? "" : "; ") + call->second;
        }
      } else if (is_planned(step)) {
        placement.kind = PlacementKind::kNative;
        placement.reason = to_string(std::get<program::LibraryCallStep>(step.action).call);
      } else if (const auto* call = std::get_if<program::CustomCall>(&step.action)) {
        placement.kind = PlacementKind::kHost;
        placement.reason = fmt::format("custom call @{}", call->target);
      } else {
        return;
      }
      const program::Accesses accesses = program::accesses_of(program, step);
      for (const auto* list : {&accesses.reads, &accesses.writes}) {
        for (const program::BufferId id : *list) placement.bytes += program.buffer(id).bytes();
      }
      result_.placement.push_back(std::move(placement));
    });
  }

  Status strict() const {
    const Placement* const declined = first_declined(result_.placement);
    if (declined == nullptr) return {};
    return Status(failed_precondition("{} would run on the host: {}", declined->label,
                                      declined->reason))
        .in_stage("compile");
  }

  static constexpr int kLastLevel = LowerOptions::kPerOpLevel;

  backend::Backend& backend_;
  const backend::TargetInfo& target_;
  const CompileOptions& options_;
  const kernel::TargetFeatures features_;
  LowerOptions lower_;
  std::vector<kernel::Kernel> legal_;
  std::map<uint32_t, Declined> declined_;              // By kernel.
  std::unordered_set<uint32_t> donated_;               // Parameters of the Program.
  Status failed_;                                      // Error of a plan, other than declining.
  std::map<std::string, std::string> declined_calls_;  // By label, with the backend's reason.
  std::set<std::pair<std::string, int>> reached_;      // Label, attempt that raised its level.
  Compilation result_;
};

}  // namespace

std::string_view name_of(PlacementKind kind) {
  switch (kind) {
    case PlacementKind::kNative:
      return "native";
    case PlacementKind::kKernel:
      return "kernel";
    case PlacementKind::kHost:
      break;
  }
  return "host";
}

std::string summary(const std::vector<Placement>& placement) {
  const auto count = [&](PlacementKind kind) {
    return std::ranges::count(placement, kind, &Placement::kind);
  };
  return fmt::format("native {}, kernel {}, host {} of {}", count(PlacementKind::kNative),
                     count(PlacementKind::kKernel), count(PlacementKind::kHost), placement.size());
}

const Placement* first_declined(const std::vector<Placement>& placement) {
  const auto found = std::ranges::find_if(placement, [](const Placement& each) {
    return each.kind == PlacementKind::kHost && !each.kernel.empty();
  });
  return found == placement.end() ? nullptr : &*found;
}

Result<Compilation> compile(const Module& module, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options) {
  const std::unique_ptr<Module> copy = module.clone();
  TENON_TRY(select_entry(*copy, options.lower.entry));
  int64_t folded = 0;
  TENON_TRY(
      run_passes(*copy, optimizing_passes(),
                 {.rewrites = options.rewrites, .cost = cost_model_of(target), .folded = &folded}));
  TENON_ASSIGN(Compilation compilation, ProgramCompiler(backend, target, options).run(*copy));
  compilation.folded = folded;
  return compilation;
}

Result<Compilation> compile(const program::Program& program, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options) {
  return ProgramCompiler(backend, target, options).run(program);
}

Result<program::Program> compile_to_program(const Module& module, const LowerOptions& options) {
  const std::unique_ptr<Module> copy = module.clone();
  TENON_TRY(select_entry(*copy, options.entry));
  TENON_TRY(run_passes(*copy, lowering_passes()));
  return lower_module(*copy, options);
}

}  // namespace tenon::hlo
