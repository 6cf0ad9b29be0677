// Random programs: graphs of all ops, of integers that hide values in fusions, of exact elementwise
// ops, and loops that update their state in place. Each case has a seed of its own.
#include <fmt/format.h>

#include "conformance/cases/case_list.h"
#include "conformance/compare/differential.h"
#include "conformance/compare/tolerance.h"
#include "conformance/generate/elementwise.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/random_fusions.h"
#include "conformance/generate/random_loop.h"
#include "core/base/random.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

// Two thirds of the values are not results.
void hide_values(hlo::Module& module, Random& random) {
  hlo::Instruction* const end = module.entry()->return_instruction();
  std::vector<hlo::Value> kept;
  std::vector<hlo::Type> types;
  for (const hlo::Value value : end->operands()) {
    if (!kept.empty() && !random.one_in(3)) continue;
    kept.push_back(value);
    types.push_back(value.type());
  }
  end->set_operands(kept);
  module.entry()->set_declared_result_types(std::move(types));
}

Result<CaseProgram> graph(uint64_t seed, bool fused) {
  CaseProgram made;
  GeneratorOptions options;
  options.seed = seed;
  made.module = generate(options);
  made.arguments = generate_arguments(*made.module, seed);
  if (fused) {
    made.compared = made.module->clone();  // Results and their order do not change.
    fuse_at_random(*made.module, seed);
  }
  return made;
}

Result<CaseProgram> integers(uint64_t seed) {
  CaseProgram made;
  made.comparison = Comparison::kBits;
  GeneratorOptions options;
  options.seed = seed;
  options.integers = true;
  made.module = generate(options);
  Random random(seed);
  hide_values(*made.module, random);
  made.arguments = generate_arguments(*made.module, seed);
  return made;
}

Result<CaseProgram> loop(uint64_t seed) {
  CaseProgram made;
  made.comparison = Comparison::kBits;
  TENON_ASSIGN(made.module, hlo::import_module(random_loop(seed, seed % 8 == 1), "random_loop"));
  made.arguments = generate_arguments(*made.module, seed);
  return made;
}

// Whether the values of each op are the evaluator's in every bit: functions have bounds, and most
// operations of complex numbers are judged by the distance.
bool is_exact(const hlo::Module& module) {
  for (const hlo::Instruction& op : *module.entry()) {
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      if (tolerance_of(op, r).kind != Tolerance::ToleranceKind::kExact) return false;
    }
  }
  return true;
}

Result<CaseProgram> elementwise(uint64_t seed) {
  static const WithoutOps inexact = [] {
    WithoutOps ops;
    for (const hlo::OpInfo& op : hlo::all_ops()) {
      if (op.ulp_bound != 0) ops.push_back(op.code);
    }
    return ops;
  }();
  ElementwiseProgram program;
  // Some programs have empty arrays, on which nothing can be wrong.
  do {
    program = random_elementwise_program(seed, 20, inexact);
    seed = mix_bits(seed);
  } while (program.arguments.empty() || program.arguments[0].element_count() == 0 ||
           !is_exact(*program.module));
  CaseProgram made;
  made.module = std::move(program.module);
  made.arguments = std::move(program.arguments);
  made.comparison = Comparison::kBits;
  return made;
}

using Make = Result<CaseProgram> (*)(uint64_t seed);

// Draws again while passes leave nothing for the device to compute.
CaseResult run(Make make, CaseContext& context) {
  constexpr int kDraws = 16;
  CaseResult result;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    result = run_program_case([=](ValueClass, uint64_t seed) { return make(seed + draw); },
                              ValueClass::kMixed, context);
    if (result.outcome != Outcome::kNotRun) break;
  }
  return result;
}

struct RandomKind {
  std::string_view name;
  int count;
  Make make;
};
constexpr RandomKind kKinds[] = {
    {"graph", 200, [](uint64_t seed) { return graph(seed, false); }},
    {"fused_graph", 100, [](uint64_t seed) { return graph(seed, true); }},
    {"integers", 100, integers},
    {"elementwise", 100, elementwise},
    {"loop", 60, loop},
};

}  // namespace

void add_random_cases(CaseList& list) {
  for (const RandomKind& kind : kKinds) {
    for (int i = 0; i < kind.count; ++i) {
      ConformanceCase one;
      one.name = fmt::format("random/{}/{:03}", kind.name, i);
      one.tier = i == 0 ? Tier::kSmoke : i < 10 ? Tier::kQuick : Tier::kFull;
      one.run = [make = kind.make](CaseContext& context) { return run(make, context); };
      list.cases.push_back(std::move(one));
    }
  }
}

}  // namespace tenon::conformance
