// Nearly valid modules through the builder, the passes, lowering and legalisation for each kind of
// target. Readers are skipped; the other fuzzers cover them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/kernel/legalize/legalize.h"
#include "fuzz/raw_module.h"
#include "fuzz/targets.h"
#include "hlo/import/import.h"
#include "hlo/ir/inline.h"
#include "hlo/lower/lower.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

// A violated invariant becomes a crash, which the fuzzer saves.
[[noreturn]] void broken(const Module& module, const std::string& promise, const Status& error) {
  std::fprintf(stderr, "%s: %s\n%s\n", promise.c_str(), error.to_string().c_str(),
               print_module(module).c_str());
  std::abort();
}

// Runs passes one by one. A pass may refuse a Module; its result must be valid.
bool run(Module& module, const Module& original, std::span<const std::string_view> passes) {
  for (const std::string_view name : passes) {
    Result<bool> changed = find_pass(name)->run(module, {});
    if (!changed) {
      if (changed.error().code() == ErrorCode::kInternal) {
        broken(original, "pass " + std::string(name), changed.error());
      }
      return false;
    }
    const Status status = verify(module);
    if (!status.ok()) broken(original, "after pass " + std::string(name), status);
  }
  return true;
}

struct Target {
  const char* form;  ///< Empty: kernels are not legalised.
  int64_t scratch_bytes;
};
constexpr Target kTargets[] = {
    {"", 48 << 10},
    {"least", 48 << 10},
    {"s64,u64,f64,fma,dimensions", 48 << 10},
    {"s8,u8,s16,u16,s64,u64,bf16,f16,f64,math,fma,tiles,scans,private_memory,atomics,dimensions",
     256},
};

// The estimated number of operations after legalisation: on a target without f64 or fma, hundreds
// replace each operation on f64, fma and math function.
size_t cost_of(const kernel::Kernel& kernel, const kernel::TargetFeatures& form) {
  const auto has = [&](ElementType type) {
    return std::ranges::any_of(kernel.values,
                               [&](const kernel::Value& value) { return value.type == type; });
  };
  const bool soft = !form.computes(ElementType::kF64) && has(ElementType::kF64);
  const bool pairs =
      !form.computes(ElementType::kU64) && (has(ElementType::kS64) || has(ElementType::kU64));
  size_t cost = 0;
  for (const kernel::Node& node : kernel.nodes) {
    const bool is_function = kernel::is_scalar_op(node.op) && kernel::is_math(node.op);
    const bool is_fma = node.op == kernel::OpCode::kFma || is_function;
    const bool is_long = soft || (is_fma && !form.fma);
    cost += is_long ? (is_function ? 1500 : 400) : pairs ? 8 : 1;
  }
  return cost;
}

void lower(const Module& module, const Module& original, const Target& target) {
  LowerOptions options;
  options.limits.scratch_bytes = target.scratch_bytes;
  std::optional<kernel::TargetFeatures> form;
  if (target.form[0] != '\0') {
    form = kernel::TargetFeatures::parse(target.form).value();
    options.limits.fma = form->fma;
    options.limits.private_memory = form->private_memory;
  }
  const std::string what = std::string("for '") + target.form + "'";
  const auto program = lower_module(module, options);
  if (!program) {
    if (program.error().code() == ErrorCode::kInternal) {
      broken(original, "lowering " + what, program.error());
    }
    return;
  }
  if (!form) return;
  size_t budget = 2000;
  for (const kernel::Kernel& kernel : program->kernels) {
    const size_t cost = cost_of(kernel, *form);
    if (cost > budget) continue;
    budget -= cost;
    const auto legal = kernel::legalize(kernel, *form);
    if (!legal && legal.error().code() == ErrorCode::kInternal) {
      broken(original, "legalising " + what, legal.error());
    }
  }
}

// `choice` selects the passes and the target: one of each, since all would take long. False if the
// builder refuses the module.
bool check(const RawModule& raw, uint8_t choice) {
  const auto module = build_module(raw);
  if (!module) return false;
  const std::unique_ptr<Module> copy = (*module)->clone();
  const auto passes = choice % 2 != 0 ? optimizing_passes() : lowering_passes();
  if (run(*copy, **module, passes)) {
    lower(*copy, **module, kTargets[choice / 2 % std::size(kTargets)]);
  }
  return true;
}

}  // namespace
}  // namespace tenon::hlo

bool tenon::fuzz::fuzz_raw_module(std::string_view bytes) {
  if (bytes.size() < 2) return false;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  return hlo::check(hlo::raw_module_of(data + 1, bytes.size() - 1), data[0]);
}
