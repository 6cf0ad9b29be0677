#include "hlo/driver/compile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>

#include "core/kernel/analysis/cost.h"
#include "hlo/buffers/assign.h"
#include "hlo/driver/call_planner.h"
#include "hlo/driver/kernel_pool.h"
#include "hlo/driver/target_model.h"
#include "hlo/ir/inline.h"
#include "hlo/lower/library_calls.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

using backend::Declined;
using program::Program;
using program::Step;

// One lowering of the Module, and what has been made of it. Each stage takes it from the one
// before.
struct Attempt {
  Program program;                         // Its kernels are in their legal forms.
  std::vector<kernel::Kernel> as_lowered;  // The kernels as they were before.
  std::vector<KernelPool::Id> ids;         // For each kernel.
  std::map<program::SequenceId, backend::LibraryCallPlan> plans;
  std::map<uint32_t, std::string> declined_calls;  // By Step::op, with the backend's reason.
  std::vector<runtime::CompiledSegment> segments;
  std::vector<std::string> declined_segments;

  bool is_planned(const Step& step) const {
    const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
    return call != nullptr && plans.contains(call->lowered);
  }
  // Calls visit(step) for the steps that are run outside of `apart`.
  template <class Visit>
  void for_each_step(const std::vector<program::StepRange>& apart, const Visit& visit) const {
    program::for_each_step(
        program, apart, [&](const Step& step) { return !is_planned(step); }, visit);
  }
  // Calls visit(kernel, step) for the launches among them.
  template <class Visit>
  void for_each_launch(const std::vector<program::StepRange>& apart, const Visit& visit) const {
    for_each_step(apart, [&](const Step& step) {
      const auto* launch = std::get_if<program::Launch>(&step.action);
      if (launch != nullptr) visit(launch->kernel, step);
    });
  }
  std::vector<program::StepRange> ranges() const {
    std::vector<program::StepRange> list;
    for (const runtime::CompiledSegment& each : segments) list.push_back(each.range);
    return list;
  }
};

const program::LibraryCallStep& call_of(const Step& step) {
  return std::get<program::LibraryCallStep>(step.action);
}

// Numbers the steps of a Program that was given: a library call and the steps that do the same have
// one number.
void number_steps(Program& program) {
  uint32_t next = 0;
  for (program::Sequence& sequence : program.sequences) {
    for (Step& step : sequence.steps) step.op = next++;
  }
  for (program::Sequence& sequence : program.sequences) {
    for (Step& step : sequence.steps) {
      const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
      if (call == nullptr) continue;
      for (Step& inner : program.sequences[call->lowered].steps) inner.op = step.op;
    }
  }
}

class ProgramCompiler {
 public:
  ProgramCompiler(backend::Backend& backend, const backend::TargetInfo& target,
                  const CompileOptions& options)
      : backend_(backend),
        target_(target),
        strict_(options.strict),
        lower_(options.lower),
        planner_(backend, target),
        pool_(backend, target, features_of(target, options.native_math)) {
    const kernel::TargetFeatures features = features_of(target, options.native_math);
    lower_.limits.scratch_bytes = target.scratch_bytes;
    if (target.vector_bytes > 0) lower_.limits.vector_bytes = target.vector_bytes;
    lower_.limits.alignment = std::max(lower_.limits.alignment, target.spaces[0].alignment);
    lower_.limits.fma = target.accepts_all || features.fma;
    lower_.limits.private_memory = target.accepts_all || features.private_memory;
    lower_.limits.tiles = target.accepts_all || features.tiles;
    lower_.limits.cost = cost_model_of(target);
    lower_.tuning.prefer(std::string(lower::parameters::kLanes.name), lower_.limits.cost.lanes);
    warnings_ = apply_tuning(target, lower_.tuning);
    lower_.cache = &lowering_cache_;
  }

  // Whether the backend takes a composite whole, as far as its types and constants tell.
  Result<bool> takes_composite(const Instruction& composite) {
    const auto site = lower::call_site_of(composite);
    if (!site) return false;
    if (lower_.takes_call != nullptr) {
      TENON_ASSIGN(const bool keeps,
                   lower_.takes_call({site->call, site->operands, site->results, site->constant}));
      return keeps;
    }
    TENON_ASSIGN(const CallAnswer* const answer,
                 planner_.plan({site->call, site->operands, site->results, site->constant}));
    return answer->plan.has_value();
  }

  // Whether the backend takes a product with a constant in panels of `bytes` (the pass
  // factor-panels): what is no plan of the backend's would be a product of three dimensions that no
  // library has.
  Result<bool> reads_panels(int64_t bytes) {
    if (!lower_.limits.lays_out_constants) return false;
    constexpr int64_t kRows = 16, kProducts = 64, kPanels = 2;
    const int64_t columns = bytes / storage_bytes(ElementType::kF32);
    program::Contraction product;
    product.lhs_contracting = product.rhs_contracting = {1};
    const std::vector<Shape> operands = {Shape(ElementType::kF32, {kRows, kProducts}),
                                         Shape(ElementType::kF32, {kPanels, kProducts, columns})};
    const std::vector<Shape> results = {Shape(ElementType::kF32, {kRows, kPanels, columns})};
    const program::LibraryCall call = product;
    const std::vector<bool> constant = {false, true};
    TENON_ASSIGN(const CallAnswer* const answer,
                 planner_.plan({call, operands, results, constant}));
    return answer->plan.has_value();
  }

  Result<Compilation> run(const Module& module) {
    TENON_ASSIGN(Attempt attempt, lower(module));
    return complete(std::move(attempt), &module);
  }

  Result<Compilation> run(Program program) {
    if (lower_.limits.alignment > program::kAlignment) {
      assign_buffers(program, lower_.limits.alignment);
      program::find_dependencies(program);
    }
    number_steps(program);
    Attempt attempt;
    attempt.program = std::move(program);
    TENON_TRY(plan_calls(attempt));
    TENON_TRY(legalize(attempt));
    return complete(std::move(attempt), nullptr);
  }

 private:
  // --- Lowering

  Result<Attempt> lower(const Module& module) {
    Attempt attempt;
    LowerOptions options = lower_;
    options.takes_call = [&](const CallOffer& offer) -> Result<bool> {
      // A hook of the caller's says which calls stay calls, whether the backend takes them or not.
      bool keeps = false;
      if (lower_.takes_call != nullptr) {
        TENON_ASSIGN(keeps, lower_.takes_call(offer));
        if (!keeps) return false;
      }
      const backend::LibraryCallSite site = {offer.call, offer.operands, offer.results,
                                             offer.constant};
      TENON_ASSIGN(const bool planned, plan_call(attempt, site, offer.op, offer.lowered));
      return planned || keeps;
    };
    TENON_ASSIGN(attempt.program, lower_module(module, options));
    TENON_TRY(legalize(attempt));
    return attempt;
  }

  Result<bool> plan_call(Attempt& attempt, const backend::LibraryCallSite& site, uint32_t op,
                         program::SequenceId lowered) {
    TENON_ASSIGN(const CallAnswer* const answer, planner_.plan(site));
    if (answer->plan) {
      attempt.plans[lowered] = *answer->plan;
    } else if (!answer->declined.empty()) {
      attempt.declined_calls[op] = answer->declined;
    }
    return answer->plan.has_value();
  }

  // The same for the calls of a Program that was given.
  Status plan_calls(Attempt& attempt) {
    const Program& program = attempt.program;
    Status failed;
    attempt.for_each_step({}, [&](const Step& step) {
      const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
      if (call == nullptr || !failed.ok()) return;
      const auto shapes = [&](const std::vector<program::BufferId>& ids) {
        std::vector<Shape> list;
        for (const program::BufferId id : ids) {
          list.emplace_back(program.buffer(id).type, program.buffer(id).dims);
        }
        return list;
      };
      const std::vector<Shape> operands = shapes(call->operands);
      const std::vector<Shape> results = shapes(call->results);
      std::vector<bool> constant;
      for (const program::BufferId id : call->operands) {
        constant.push_back(program.buffer(program.root(id)).kind == program::BufferKind::kConstant);
      }
      const auto planned =
          plan_call(attempt, {call->call, operands, results, constant}, step.op, call->lowered);
      if (!planned) failed = planned.error();
    });
    return failed;
  }

  Status legalize(Attempt& attempt) {
    TENON_ASSIGN(attempt.ids, pool_.add(attempt.program.kernels));
    attempt.as_lowered = std::move(attempt.program.kernels);
    attempt.program.kernels.clear();
    for (const KernelPool::Id id : attempt.ids) attempt.program.kernels.push_back(pool_.legal(id));
    return {};
  }

  const Declined* declined(const Attempt& attempt, uint32_t kernel) const {
    return pool_.declined(attempt.ids[kernel]);
  }

  bool any_declined(const Attempt& attempt) const {
    return std::ranges::any_of(attempt.ids,
                               [&](KernelPool::Id id) { return pool_.declined(id) != nullptr; });
  }

  // Whether another lowering may do better: an op with a declined kernel has not reached the last
  // fallback level.
  bool raise_fallback_levels(const Attempt& attempt) {
    std::set<uint32_t> ops;
    attempt.for_each_launch({}, [&](uint32_t kernel, const Step& step) {
      if (declined(attempt, kernel) != nullptr) ops.insert(step.op);
    });
    bool any = false;
    for (const uint32_t op : ops) {
      int& level = lower_.fallback_levels[op];
      if (level >= LowerOptions::kPerOpLevel) continue;
      ++level;
      any = true;
    }
    return any;
  }

  // --- Compiling

  // The kernels from `first` on that are launched outside of `apart` and have not been declined, in
  // the Program's order.
  std::vector<KernelPool::Id> kernels_of(const Attempt& attempt,
                                         const std::vector<program::StepRange>& apart,
                                         KernelPool::Id first = 0) const {
    std::vector<bool> launched(attempt.ids.size());
    attempt.for_each_launch(apart, [&](uint32_t kernel, const Step&) { launched[kernel] = true; });
    std::vector<KernelPool::Id> list;
    for (uint32_t k = 0; k < attempt.ids.size(); ++k) {
      if (launched[k] && attempt.ids[k] >= first && declined(attempt, k) == nullptr) {
        list.push_back(attempt.ids[k]);
      }
    }
    return list;
  }

  // Lets the backend compile an attempt, and lowers `module`, if there is one, again for what it
  // declines.
  Result<Compilation> complete(Attempt attempt, const Module* module) {
    int attempts = 1;
    while (true) {
      TENON_TRY(compile_segments(attempt));
      TENON_TRY(pool_.offer(kernels_of(attempt, attempt.ranges())));
      if (module == nullptr || !raise_fallback_levels(attempt)) {
        TENON_ASSIGN(auto binary, pool_.binary(kernels_of(attempt, attempt.ranges())));
        if (binary) return finish(std::move(attempt), *std::move(binary), attempts);
        continue;  // Some of these kernels are declined now.
      }
      // Segments are compiled again when the kernels are settled, not before.
      do {
        const KernelPool::Id known = pool_.size();
        TENON_ASSIGN(attempt, lower(*module));
        ++attempts;
        TENON_TRY(pool_.offer(kernels_of(attempt, {}, known)));
      } while (raise_fallback_levels(attempt));
    }
  }

  // Compiles segments with the calls that the backend takes; if it declines a segment, without
  // them.
  Status compile_segments(Attempt& attempt) {
    if (!backend_.takes_segments()) return {};
    TENON_ASSIGN(const bool all, compile_segments(attempt, true));
    if (!all && !attempt.plans.empty()) {
      TENON_ASSIGN(std::ignore, compile_segments(attempt, false));
    }
    return {};
  }

  // Whether the step copies a donated argument to a result: the two may share memory.
  static bool copies_donated(const Program& program, const std::unordered_set<uint32_t>& donated,
                             const Step& step) {
    const auto* copy = std::get_if<program::Copy>(&step.action);
    if (copy == nullptr) return false;
    const program::Buffer& from = program.buffer(program.root(copy->source));
    const program::Buffer& to = program.buffer(program.root(copy->destination));
    return from.kind == program::BufferKind::kParameter &&
           to.kind == program::BufferKind::kResult && donated.contains(from.index);
  }

  static std::string name_of_range(const Program& program, const program::StepRange& range) {
    const std::vector<Step>& steps = program.sequences[range.sequence].steps;
    const size_t count = range.end - range.begin;
    if (range.sequence == 0 && count == steps.size()) {
      return fmt::format("the whole program, {} {}", count, count == 1 ? "step" : "steps");
    }
    const std::string& label = steps[range.begin].label;
    return count == 1 ? label : fmt::format("{} and {} more", label, count - 1);
  }

  // True if none was declined.
  Result<bool> compile_segments(Attempt& attempt, bool with_calls) {
    const Program& program = attempt.program;
    const std::unordered_set<uint32_t> donated(program.donated.begin(), program.donated.end());
    attempt.segments.clear();
    attempt.declined_segments.clear();
    const auto apart = [&](const Step& step) {
      const auto* launch = std::get_if<program::Launch>(&step.action);
      return program::is_on_host(step) || copies_donated(program, donated, step) ||
             (!with_calls && attempt.is_planned(step)) ||
             (launch != nullptr && declined(attempt, launch->kernel) != nullptr);
    };
    for (const program::StepRange& range : program::segments_of(program, apart)) {
      program::Segment segment = program::segment_of(program, range);
      auto binary = backend_.compile_segment(target_, segment.program);
      if (binary) {
        attempt.segments.push_back({range, std::move(segment.memories), *std::move(binary)});
      } else if (binary.error().code() == ErrorCode::kUnimplemented) {
        attempt.declined_segments.push_back(
            fmt::format("{}: {}", name_of_range(program, range), binary.error().message()));
      } else {
        return tl::make_unexpected(binary.error());
      }
    }
    return attempt.declined_segments.empty();
  }

  // --- The result

  Result<Compilation> finish(Attempt attempt, std::string binary, int attempts) const {
    Compilation result;
    result.attempts = attempts;
    result.lowered_ops = lowering_cache_.lowered();
    result.placement = place(attempt);
    if (strict_) TENON_TRY(check_strict(result.placement));
    std::vector<runtime::KernelPlacement>& placements = result.compiled.kernel_placements;
    placements.assign(attempt.ids.size(), runtime::KernelPlacement::kInlined);
    attempt.for_each_launch(attempt.ranges(), [&](uint32_t kernel, const Step&) {
      placements[kernel] = declined(attempt, kernel) != nullptr ? runtime::KernelPlacement::kHost
                                                                : runtime::KernelPlacement::kDevice;
    });
    // The host interprets kernels as they were before legalisation.
    for (uint32_t k = 0; k < attempt.ids.size(); ++k) {
      if (declined(attempt, k) == nullptr) continue;
      attempt.program.kernels[k] = std::move(attempt.as_lowered[k]);
    }
    TENON_TRY(program::validate_steps(attempt.program));
    result.compiled.program = std::move(attempt.program);
    result.compiled.binary = std::move(binary);
    result.compiled.segments = std::move(attempt.segments);
    result.compiled.plans = std::move(attempt.plans);
    result.declined_segments = std::move(attempt.declined_segments);
    result.warnings = warnings_;
    TENON_TRY(check_sizes(result.compiled, target_));
    return result;
  }

  std::vector<Placement> place(const Attempt& attempt) const {
    const Program& program = attempt.program;
    std::vector<Placement> list;
    std::set<const Step*> alone;
    attempt.for_each_step(attempt.ranges(), [&](const Step& step) { alone.insert(&step); });
    std::vector<std::optional<kernel::Cost>> costs(attempt.as_lowered.size());
    const auto add_cost = [&](Placement& placement, uint32_t k) {
      if (!costs[k]) costs[k] = kernel::cost_of(attempt.as_lowered[k]);
      placement.flops += costs[k]->flops;
      placement.transcendentals += costs[k]->transcendentals;
    };
    attempt.for_each_step({}, [&](const Step& step) {
      Placement placement;
      placement.label = step.label;
      if (!alone.contains(&step)) placement.reason = "within a segment";
      if (const auto* launch = std::get_if<program::Launch>(&step.action)) {
        placement.kernel = program.kernels[launch->kernel].name;
        add_cost(placement, launch->kernel);
        const Declined* const refused = declined(attempt, launch->kernel);
        if (alone.contains(&step) && refused != nullptr) {
          placement.kind = PlacementKind::kHost;
          placement.reason = fmt::format("{}: {}", name_of(refused->reason), refused->text);
        }
        if (const auto call = attempt.declined_calls.find(step.op);
            call != attempt.declined_calls.end()) {
          placement.reason += (placement.reason.empty() ? "" : "; ") + call->second;
        }
      } else if (attempt.is_planned(step)) {
        placement.kind = PlacementKind::kNative;
        // A call does the work of the steps that it replaces.
        for (const Step& instead : program.sequences[call_of(step).lowered].steps) {
          const auto* replaced = std::get_if<program::Launch>(&instead.action);
          if (replaced != nullptr) add_cost(placement, replaced->kernel);
        }
        placement.reason = to_string(call_of(step).call);
      } else if (program::is_on_host(step)) {
        const auto* call = std::get_if<program::CustomCall>(&step.action);
        placement.kind = PlacementKind::kHost;
        placement.reason = call != nullptr ? fmt::format("custom call @{}", call->target)
                                           : std::string(program::name_of(step));
      } else {
        return;
      }
      const program::Accesses accesses = program::accesses_of(program, step);
      for (const auto* ids : {&accesses.reads, &accesses.writes}) {
        for (const program::BufferId id : *ids) placement.bytes += program.buffer(id).bytes();
      }
      list.push_back(std::move(placement));
    });
    return list;
  }

  static Status check_strict(const std::vector<Placement>& placement) {
    const Placement* const refused = first_declined(placement);
    if (refused == nullptr) return {};
    return Status(
               failed_precondition("{} would run on the host: {}", refused->label, refused->reason))
        .in_stage("compile");
  }

  backend::Backend& backend_;
  const backend::TargetInfo& target_;
  const bool strict_;
  LowerOptions lower_;
  std::vector<std::string> warnings_;
  lower::LoweringCache lowering_cache_;
  CallPlanner planner_;
  KernelPool pool_;
};

}  // namespace

Result<Compilation> compile(std::unique_ptr<Module> module, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options) {
  TENON_TRY(select_entry(*module, options.lower.entry));
  int64_t folded = 0;
  ProgramCompiler compiler(backend, target, options);
  PassOptions passes;
  passes.rewrites = options.rewrites;
  passes.cost = cost_model_of(target);
  passes.reads_panels = [&] { return compiler.reads_panels(passes.cost.panel_bytes); };
  passes.folded = &folded;
  passes.takes_composite = [&](const Instruction& op) { return compiler.takes_composite(op); };
  TENON_TRY(run_passes(*module, optimizing_passes(), passes));
  TENON_ASSIGN(Compilation compilation, compiler.run(*module));
  compilation.folded = folded;
  return compilation;
}

Result<Compilation> compile(const Module& module, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options) {
  return compile(module.clone(), backend, target, options);
}

Result<Compilation> compile(const program::Program& program, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options) {
  return ProgramCompiler(backend, target, options).run(program);
}

Result<program::Program> compile_to_program(const Module& module, const LowerOptions& options) {
  const std::unique_ptr<Module> copy = module.clone();
  TENON_TRY(select_entry(*copy, options.entry));
  PassOptions passes;
  if (options.takes_call != nullptr) {
    passes.takes_composite = [&](const Instruction& op) -> Result<bool> {
      const auto site = lower::call_site_of(op);
      if (!site) return false;
      return options.takes_call({site->call, site->operands, site->results, site->constant});
    };
  }
  TENON_TRY(run_passes(*copy, lowering_passes(), passes));
  return lower_module(*copy, options);
}

}  // namespace tenon::hlo
