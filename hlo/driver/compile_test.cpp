// Further attempts: if a backend declines a kernel, its op is lowered again with less scratch
// memory, then op by op, then run on the host.
#include "hlo/driver/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/registry/registry.h"
#include "core/kernel/text/text.h"
#include "hlo/driver/host_calls.h"
#include "hlo/driver/run.h"
#include "hlo/driver/target_model.h"
#include "hlo/import/import.h"
#include "hlo/passes/fusion/fuse.h"

namespace tenon::hlo {
namespace {

using backend::Declined;
using backend::Reason;

// `interp`, except that it declines the kernels that a test names.
class Choosy final : public backend::Backend {
 public:
  using Decline = std::function<std::optional<Declined>(const kernel::Kernel&)>;
  explicit Choosy(Decline decline) : decline_(std::move(decline)) {}

  std::string_view name() const override { return "choosy"; }
  std::string_view version() const override { return "1"; }
  Result<std::vector<backend::DeviceInfo>> devices() override { return interp_->devices(); }
  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    return interp_->open(index);
  }
  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    ++compiled;
    batches.push_back(kernels.size());
    if (before_each) before_each();
    backend::Compiled refused;
    for (uint32_t k = 0; k < kernels.size(); ++k) {
      std::optional<Declined> declined = decline_(*kernels[k]);
      if (!declined) continue;
      declined->kernel = k;
      refused.declined.push_back(*std::move(declined));
    }
    return refused.declined.empty() ? interp_->compile(target, kernels) : refused;
  }

  int compiled = 0;
  std::vector<size_t> batches;        ///< Kernels of each call of compile.
  std::function<void()> before_each;  ///< Called first by compile.

 private:
  const Decline decline_;
  const std::unique_ptr<backend::Backend> interp_ = backend::make_interpreter_backend();
};

int64_t scratch_of(const kernel::Kernel& kernel) {
  int64_t bytes = 0;
  for (const kernel::Memory& m : kernel.memories) {
    if (m.space == kernel::Space::kScratch) bytes += Shape(m.type, {m.span()}).byte_size();
  }
  return bytes;
}

struct Outcome {
  std::vector<Literal> results;
  RunInfo info;
  int compiled = 0;
};

Outcome run(const Module& module, const std::vector<Literal>& arguments, Choosy::Decline decline,
            const CompileOptions& options = {}) {
  auto backend = std::make_shared<Choosy>(std::move(decline));
  RunTarget target;
  target.client = *runtime::Client::open(backend);
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  Outcome outcome;
  auto results =
      run_on_device(target, module, arguments, Checks(&failures, &checks), options, &outcome.info);
  EXPECT_TRUE(results) << results.error().to_string();
  if (results) outcome.results = *std::move(results);
  outcome.compiled = backend->compiled;
  return outcome;
}

// A sort of 100 numbers, and a sum.
const char* const kSort =
    R"(func.func @main(%x: tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>) {
  %y = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<100xf32>) -> tensor<100xf32>
  %z = stablehlo.add %x, %y : tensor<100xf32>
  return %y, %z : tensor<100xf32>, tensor<100xf32>
})";

Literal numbers(int64_t count) {
  Literal x(Shape(ElementType::kF32, {count}));
  for (int64_t i = 0; i < count; ++i) x.set_double(i, static_cast<double>(i * 37 % 101));
  return x;
}

TEST(Compile, NothingIsDeclined) {
  const auto module = import_module(kSort, "t").value();
  const Outcome outcome = run(*module, {numbers(100)}, [](const auto&) { return std::nullopt; });
  EXPECT_EQ(outcome.compiled, 1);
  EXPECT_EQ(summary(outcome.info.placement), "native 0, kernel 2, host 0 of 2");
  EXPECT_EQ(outcome.info.placement[0].label, "stablehlo.sort at t:2:8");
  EXPECT_EQ(outcome.info.placement[1].bytes, 1200);
  // Results; the argument belongs to the caller.
  EXPECT_GE(outcome.info.memory.peak_bytes_in_use, 800);
}

// Rows in scratch become passes through memory; the sum does not change.
TEST(Compile, TooMuchScratchIsLoweredSmaller) {
  const auto module = import_module(kSort, "t").value();
  const auto whole = run(*module, {numbers(100)}, [](const auto&) { return std::nullopt; });
  const auto small = run(*module, {numbers(100)}, [](const kernel::Kernel& kernel) {
    return scratch_of(kernel) > 200
               ? std::optional(Declined{0, Reason::kTooMuchScratch, "200 bytes are all"})
               : std::nullopt;
  });
  EXPECT_EQ(small.results, whole.results);
  EXPECT_GT(small.compiled, 1);
  EXPECT_EQ(summary(small.info.placement), "native 0, kernel 7, host 0 of 7");
}

// A fusion is split; an op that is still declined alone runs on the host.
TEST(Compile, AFusionIsTakenApart) {
  const auto module = import_module(R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.negate %x : tensor<4xf32>
  %b = stablehlo.exponential %a : tensor<4xf32>
  %c = stablehlo.add %b, %x : tensor<4xf32>
  return %c : tensor<4xf32>
})",
                                    "t")
                          .value();
  std::vector<Instruction*> ops;
  for (Instruction& op : *module->entry()) {
    if (op.code() != OpCode::kReturn) ops.push_back(&op);
  }
  ASSERT_TRUE(fuse(ops));
  const auto whole = run(*module, {numbers(4)}, [](const auto&) { return std::nullopt; });
  EXPECT_EQ(summary(whole.info.placement), "native 0, kernel 1, host 0 of 1");
  const auto has = [](const kernel::Kernel& kernel, kernel::OpCode code) {
    return std::ranges::any_of(kernel.nodes, [&](const auto& node) { return node.op == code; });
  };
  const Choosy::Decline no_exp = [&](const kernel::Kernel& kernel) {
    return has(kernel, kernel::OpCode::kExp)
               ? std::optional(Declined{0, Reason::kNoSuchOperation, "exp"})
               : std::nullopt;
  };
  const auto apart = run(*module, {numbers(4)}, no_exp);
  EXPECT_EQ(apart.results, whole.results);
  EXPECT_EQ(summary(apart.info.placement), "native 0, kernel 2, host 1 of 3");
  const auto host = std::ranges::find(apart.info.placement, PlacementKind::kHost, &Placement::kind);
  EXPECT_EQ(host->label, "stablehlo.exponential at t:3:8");
  EXPECT_EQ(host->reason, "an operation that it does not have: exp");
  CompileOptions strict;
  strict.strict = true;
  Choosy backend(no_exp);
  const auto target = backend.devices().value()[0].target;
  EXPECT_EQ(compile(*module, backend, target, strict).error().message(),
            "stablehlo.exponential at t:3:8 would run on the host: an operation that it does not "
            "have: exp");
}

TEST(Compile, EverythingMayBeTheHosts) {
  const auto module = import_module(kSort, "t").value();
  const auto whole = run(*module, {numbers(100)}, [](const auto&) { return std::nullopt; });
  const auto none = run(*module, {numbers(100)}, [](const auto&) {
    return std::optional(Declined{0, Reason::kOther, "no compiler here"});
  });
  EXPECT_EQ(none.results, whole.results);
  for (const Placement& each : none.info.placement) {
    EXPECT_EQ(each.kind, PlacementKind::kHost);
    EXPECT_EQ(each.reason, "another reason: no compiler here");
  }
}

// A backend may take a kernel alone but decline it together with more kernels: that is an ordinary
// decline.
TEST(Compile, AKernelMayBeDeclinedBesideMoreKernels) {
  const auto module = import_module(kSort, "t").value();
  const auto whole = run(*module, {numbers(100)}, [](const auto&) { return std::nullopt; });
  std::set<std::string> taken;
  int again = 0;
  const auto outcome =
      run(*module, {numbers(100)}, [&](const kernel::Kernel& kernel) -> std::optional<Declined> {
        if (scratch_of(kernel) > 200) {
          return Declined{0, Reason::kTooMuchScratch, "200 bytes are all"};
        }
        if (taken.insert(kernel::print(kernel)).second) return std::nullopt;
        ++again;
        return Declined{0, Reason::kOther, "once is enough"};
      });
  EXPECT_EQ(outcome.results, whole.results);
  EXPECT_GT(again, 0);
  EXPECT_TRUE(std::ranges::any_of(outcome.info.placement, [](const Placement& each) {
    return each.kind == PlacementKind::kHost && each.reason == "another reason: once is enough";
  }));
}

// A backend need not report all the kernels that it declines at once.
TEST(Compile, ABackendMayDeclineOneKernelAfterTheOther) {
  const auto module = import_module(kSort, "t").value();
  const auto whole = run(*module, {numbers(100)}, [](const auto&) { return std::nullopt; });
  std::set<std::string> declined;
  bool first = true;
  auto backend = std::make_shared<Choosy>([&](const kernel::Kernel& kernel) {
    if (!first) return std::optional<Declined>();
    first = false;
    declined.insert(kernel.name);
    return std::optional(Declined{0, Reason::kOther, "this one, for the moment"});
  });
  backend->before_each = [&] { first = true; };
  RunTarget target;
  target.client = *runtime::Client::open(backend);
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  RunInfo info;
  const auto results = run_on_device(target, *module, std::vector{numbers(100)},
                                     Checks(&failures, &checks), {}, &info);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ(*results, whole.results);
  EXPECT_GT(declined.size(), 1U);
  for (const Placement& each : info.placement) EXPECT_EQ(each.kind, PlacementKind::kHost);
}

// --- The cost of another attempt

// 98 reversals of arrays of different lengths, and two sorts at one source location: a hundred
// kernels, of which that of the long sort needs too much scratch.
std::unique_ptr<Module> hundred_kernels() {
  std::string parameters;
  std::string body;
  std::string results;
  std::string types;
  const auto add = [&](int64_t length, const std::string& op, const std::string& tail) {
    const std::string type = fmt::format("tensor<{}xf32>", length);
    const std::string separator = parameters.empty() ? "" : ", ";
    parameters += fmt::format("{}%x{}: {}", separator, length, type);
    body += fmt::format("  %y{} = {}{}\n", length, fmt::format(fmt::runtime(op), length), tail);
    results += fmt::format("{}%y{}", separator, length);
    types += separator + type;
  };
  for (int64_t i = 1; i <= 98; ++i) {
    add(1000 + i, "stablehlo.reverse %x{}, dims = [0]", fmt::format(" : tensor<{}xf32>", 1000 + i));
  }
  for (const int64_t length : {100, 20}) {
    add(length,
        R"("stablehlo.sort"(%x{}) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }}))",
        fmt::format(" : (tensor<{0}xf32>) -> tensor<{0}xf32> loc(\"model.py\":7:1)", length));
  }
  const std::string text = fmt::format("func.func @main({}) -> ({}) {{\n{}  return {} : {}\n}}",
                                       parameters, types, body, results, types);
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  return *std::move(module);
}

TEST(Attempts, OnlyTheDeclinedKernelIsMadeAgain) {
  const auto module = hundred_kernels();
  const auto declines = [](const kernel::Kernel& kernel) {
    return scratch_of(kernel) > 200 ? std::optional(Declined{0, Reason::kTooMuchScratch, "200"})
                                    : std::nullopt;
  };
  Choosy backend(declines);
  const auto target = backend.devices().value()[0].target;
  const auto compiled = compile(*module, backend, target);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  const size_t kernels = compiled->compiled.program.kernels.size();
  ASSERT_GT(backend.batches.size(), 2U);
  EXPECT_EQ(backend.batches.front(), 100U);
  EXPECT_EQ(backend.batches.back(), kernels);
  // Only the passes of the long sort are offered between the first and the last call.
  size_t handed = 0;
  for (const size_t each : backend.batches) handed += each;
  const size_t retried = kernels - 99;
  const size_t blocks = 2;  // of the sort, which need too much scratch memory as well
  EXPECT_LE(handed, 100 + blocks + retried + kernels);
  EXPECT_GT(compiled->attempts, 1);
  EXPECT_EQ(compiled->lowered_ops, 100 + compiled->attempts - 1);
  // The short sort, at the same source location, is one kernel as before.
  std::map<int64_t, int> launches;  // By the number of elements of the array that is written.
  for (const Placement& each : compiled->placement) {
    if (each.label.starts_with("stablehlo.sort")) {
      EXPECT_EQ(each.label, "stablehlo.sort at model.py:7:1");
      ++launches[each.bytes];
    }
  }
  EXPECT_EQ(launches[2 * 20 * 4], 1);
  EXPECT_EQ(launches.size(), 2U);
  EXPECT_GT(launches.rbegin()->second, 1);
}

// The sort is between two checks; the segments around it are compiled after the first lowering and
// after the last.
TEST(Attempts, SegmentsAreCompiledOnceMore) {
  class Counting final : public backend::ForwardingBackend {
   public:
    Counting() : ForwardingBackend(backend::make_interpreter_backend()) {}
    Result<std::string> compile_segment(const backend::TargetInfo& target,
                                        const program::Program& segment) override {
      ++segments;
      return ForwardingBackend::compile_segment(target, segment);
    }
    Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                      backend::Kernels kernels) override {
      backend::Compiled refused;
      for (uint32_t k = 0; k < kernels.size(); ++k) {
        if (scratch_of(*kernels[k]) > 200) {
          refused.declined.push_back({k, Reason::kTooMuchScratch, "200"});
        }
      }
      return refused.declined.empty() ? ForwardingBackend::compile(target, kernels) : refused;
    }
    int segments = 0;
  };
  const auto module = import_module(R"(func.func @main(%x: tensor<100xf32>) -> tensor<100xf32> {
  %0 = stablehlo.sine %x : tensor<100xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<100xf32>
  check.expect_almost_eq %1, %1 : tensor<100xf32>
  %2 = "stablehlo.sort"(%1) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<100xf32>) -> tensor<100xf32>
  check.expect_almost_eq %2, %2 : tensor<100xf32>
  %3 = stablehlo.cosine %2 : tensor<100xf32>
  %4 = stablehlo.reverse %3, dims = [0] : tensor<100xf32>
  return %4 : tensor<100xf32>
})",
                                    "t");
  ASSERT_TRUE(module) << module.error().to_string();
  Counting backend;
  const auto target = backend.devices().value()[0].target;
  const auto compiled = compile(**module, backend, target);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  EXPECT_GT(compiled->attempts, 2);
  // The passes of the sort end up in a segment of their own.
  EXPECT_EQ(compiled->compiled.segments.size(), 3U);
  EXPECT_EQ(backend.segments, 2 + 3);
}

// --- Library calls and segments that a backend takes whole

std::vector<Literal> run_on(const std::shared_ptr<backend::Backend>& backend, const char* text,
                            const std::vector<Literal>& arguments, RunInfo* info = nullptr) {
  const auto module = import_module(text, "t.mlir");
  EXPECT_TRUE(module) << module.error().to_string();
  RunTarget target;
  target.client = *runtime::Client::open(backend);
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  auto results = run_on_device(target, **module, arguments, Checks(&failures, &checks), {}, info);
  EXPECT_TRUE(results) << results.error().to_string();
  EXPECT_TRUE(failures.empty());
  return results ? *results : std::vector<Literal>();
}

Literal numbers(const Dims& dims) {
  Literal literal(Shape(ElementType::kF32, dims));
  for (int64_t i = 0; i < literal.element_count(); ++i) literal.set_double(i, double(i % 5) - 2);
  return literal;
}

// A check on the host splits the program in two.
TEST(Segments, EndAtWhatTheHostDoes) {
  const char* const parted = R"(func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = stablehlo.sine %x : tensor<2x3xf32>
  %1 = stablehlo.dot_general %c, %0, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.cosine %1 : tensor<2x3xf32>
  check.expect_almost_eq %2, %2 : tensor<2x3xf32>
  %3 = stablehlo.dot_general %c, %2, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = stablehlo.tanh %3 : tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
})";
  RunInfo whole;
  const std::vector<Literal> arguments = {numbers({2, 3})};
  const auto results = run_on(backend::make_interpreter_backend(), parted, arguments, &whole);
  backend::InterpreterConfig walked;
  walked.segments = false;
  RunInfo steps;
  EXPECT_EQ(run_on(backend::make_interpreter_backend(walked), parted, arguments, &steps), results);
  const auto within = [](const RunInfo& info) {
    return std::ranges::count(info.placement, "within a segment", &Placement::reason);
  };
  EXPECT_EQ(within(steps), 0);
  EXPECT_GE(within(whole), 4);
  EXPECT_EQ(whole.placement.size(), steps.placement.size());
}

// No segment is made for a backend that would decline it.
TEST(Segments, AreNotMadeForThoseWhoTakeNone) {
  class Refusing final : public backend::ForwardingBackend {
   public:
    Refusing() : ForwardingBackend(backend::make_interpreter_backend()) {}
    bool takes_segments() const override { return false; }
    Result<std::string> compile_segment(const backend::TargetInfo&,
                                        const program::Program&) override {
      ADD_FAILURE() << "it was asked";
      return internal_error("it was asked");
    }
  };
  RunInfo info;
  const char* const program = R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<4xf32>
  return %1 : tensor<4xf32>
})";
  run_on(std::make_shared<Refusing>(), program, {numbers(4)}, &info);
}

// Takes contractions as calls, and segments without calls; with calls only if it is set to.
class TakesCalls final : public backend::ForwardingBackend {
 public:
  TakesCalls(bool in_segments, ErrorCode refusal)
      : ForwardingBackend(backend::make_interpreter_backend()),
        in_segments_(in_segments),
        refusal_(refusal) {}

  Result<backend::LibraryCallPlan> plan(const backend::TargetInfo&,
                                        const backend::LibraryCallSite& site) override {
    if (!std::holds_alternative<program::Contraction>(site.call)) return unimplemented("no call");
    if (refusal_ != ErrorCode::kOk) return make_error(refusal_, "no such product");
    return backend::LibraryCallPlan{"product", 0, {}, 0};
  }
  bool takes_segments() const override { return true; }
  Result<std::string> compile_segment(const backend::TargetInfo&,
                                      const program::Program& segment) override {
    const bool holds_call = std::ranges::any_of(segment.sequences[0].steps, [](const auto& step) {
      return std::holds_alternative<program::LibraryCallStep>(step.action);
    });
    asked.push_back(holds_call);
    if (holds_call && !in_segments_) return unimplemented("no segments with calls");
    return "a segment";
  }

  std::vector<bool> asked;  ///< Whether each segment contained a call.

 private:
  const bool in_segments_;
  const ErrorCode refusal_;
};

Result<Compilation> compiled_product(TakesCalls& backend) {
  const char* const text = R"(func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.cholesky %x : tensor<2x2xf32>
  %1 = stablehlo.cholesky %0 : tensor<2x2xf32>
  %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = stablehlo.cholesky %2 : tensor<2x2xf32>
  %4 = stablehlo.cholesky %3 : tensor<2x2xf32>
  return %4 : tensor<2x2xf32>
})";
  return compile(*import_module(text, "t").value(), backend, backend.devices().value()[0].target);
}

TEST(Segments, AreAskedForWithCallsThenWithout) {
  TakesCalls all(true, ErrorCode::kOk);
  const auto whole = compiled_product(all);
  ASSERT_TRUE(whole) << whole.error().to_string();
  EXPECT_EQ(all.asked, std::vector{true});
  EXPECT_EQ(whole->compiled.segments.size(), 1U);
  TakesCalls some(false, ErrorCode::kOk);
  const auto parted = compiled_product(some);
  ASSERT_TRUE(parted) << parted.error().to_string();
  EXPECT_EQ(some.asked, (std::vector{true, false, false}));
  EXPECT_EQ(parted->compiled.segments.size(), 2U);
  EXPECT_TRUE(parted->declined_segments.empty());
  EXPECT_EQ(parted->compiled.plans.size(), 1U);
}

// The backend's reason for declining a segment is reported.
TEST(Segments, ThatAreDeclinedSayWhy) {
  class Declining final : public backend::ForwardingBackend {
   public:
    Declining() : ForwardingBackend(backend::make_interpreter_backend()) {}
    Result<std::string> compile_segment(const backend::TargetInfo&,
                                        const program::Program&) override {
      return unimplemented("too long for the chip");
    }
  };
  const auto module = import_module(R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<4xf32>
  return %1 : tensor<4xf32>
})",
                                    "t");
  Declining backend;
  const auto compiled = compile(**module, backend, backend.devices().value()[0].target);
  ASSERT_TRUE(compiled);
  ASSERT_EQ(compiled->declined_segments.size(), 1U);
  const std::string& said = compiled->declined_segments[0];
  EXPECT_TRUE(said.starts_with("the whole program, ")) << said;
  EXPECT_TRUE(said.ends_with(": too long for the chip")) << said;
}

// An error of plan is a decline if it is kUnimplemented; any other error is an error of
// compilation.
TEST(Calls, AnErrorOfAPlanIsOneOfCompiling) {
  TakesCalls declines(true, ErrorCode::kUnimplemented);
  const auto kernels = compiled_product(declines);
  ASSERT_TRUE(kernels) << kernels.error().to_string();
  EXPECT_TRUE(kernels->compiled.plans.empty());
  EXPECT_EQ(declines.asked, std::vector{false});
  const auto product = std::ranges::find_if(kernels->placement, [](const Placement& each) {
    return each.label.starts_with("stablehlo.dot_general");
  });
  ASSERT_NE(product, kernels->placement.end());
  EXPECT_EQ(product->reason, "within a segment; contraction declined: no such product");
  TakesCalls fails(true, ErrorCode::kInvalidArgument);
  const auto failed = compiled_product(fails);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(failed.error().message(), "no such product");
}

// Takes contractions whose second operand is a constant, and declines kernels by their scratch.
class CountsPlans final : public backend::ForwardingBackend {
 public:
  CountsPlans() : ForwardingBackend(backend::make_interpreter_backend()) {}
  Result<backend::LibraryCallPlan> plan(const backend::TargetInfo&,
                                        const backend::LibraryCallSite& site) override {
    std::string text(program::name_of(site.call));
    for (size_t i = 0; i < site.operands.size(); ++i) {
      text += ' ' + site.operands[i].to_string() + (site.constant[i] ? " constant" : "");
    }
    asked.push_back(text);
    if (!std::holds_alternative<program::Contraction>(site.call) || !site.constant[1]) {
      return unimplemented("no constant");
    }
    return backend::LibraryCallPlan{text, 0, {}, 0};
  }
  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    backend::Compiled refused;
    for (uint32_t k = 0; k < kernels.size(); ++k) {
      if (scratch_of(*kernels[k]) <= 200) continue;
      refused.declined.push_back({k, Reason::kTooMuchScratch, "200"});
    }
    return refused.declined.empty() ? ForwardingBackend::compile(target, kernels) : refused;
  }
  bool takes_segments() const override { return false; }

  std::vector<std::string> asked;
};

// The factors: a constant, a view of one, an argument twice, a splat that a kernel stores.
const char* const kFactors =
    R"(func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>, %s: tensor<100xf32>, %z: tensor<2x20xf32>)
    -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x20xf32>, tensor<100xf32>) {
  %c = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]> : tensor<3x2xf32>
  %d = stablehlo.constant dense<[2.0, 1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<6xf32>
  %v = stablehlo.reshape %d : (tensor<6xf32>) -> tensor<3x2xf32>
  %f = stablehlo.constant dense<1.0> : tensor<20x20xf32>
  %0 = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %3 = stablehlo.negate %x : tensor<2x3xf32>
  %4 = stablehlo.dot_general %3, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %5 = stablehlo.dot_general %z, %f, contracting_dims = [1] x [0] : (tensor<2x20xf32>, tensor<20x20xf32>) -> tensor<2x20xf32>
  %6 = "stablehlo.sort"(%s) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<100xf32>) -> tensor<100xf32>
  return %0, %1, %2, %4, %5, %6 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x20xf32>, tensor<100xf32>
})";

// The first answer is final, also if the Module is lowered again because of the sort.
TEST(Calls, AreAskedForOnce) {
  const std::vector<std::string> sites = {"contraction f32[2,3] f32[3,2] constant",
                                          "contraction f32[2,3] f32[3,2]",
                                          "contraction f32[2,20] f32[20,20]"};
  CountsPlans backend;
  const auto target = backend.devices().value()[0].target;
  const auto module = import_module(kFactors, "t.mlir");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto compiled = compile(**module, backend, target);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  EXPECT_GT(compiled->attempts, 1);
  EXPECT_EQ(backend.asked, sites);
  EXPECT_EQ(compiled->compiled.plans.size(), 2U);
  for (const auto& [lowered, plan] : compiled->compiled.plans) EXPECT_EQ(plan.plan, sites[0]);
  const auto products = [](const Compilation& compilation) {
    std::vector<std::string> reasons;
    for (const Placement& each : compilation.placement) {
      if (each.label.starts_with("stablehlo.dot_general")) reasons.push_back(each.reason);
    }
    return reasons;
  };
  EXPECT_EQ(products(*compiled),
            (std::vector<std::string>{"contraction lhs_contracting=[1] rhs_contracting=[0]",
                                      "contraction lhs_contracting=[1] rhs_contracting=[0]",
                                      "contraction declined: no constant",
                                      "contraction declined: no constant",
                                      "contraction declined: no constant"}));
  // A Program that was lowered for any device has all the calls, even those that no backend takes.
  LowerOptions all;
  all.takes_call = [](const CallOffer&) { return true; };
  const auto program = compile_to_program(**module, all);
  ASSERT_TRUE(program) << program.error().to_string();
  CountsPlans again;
  const auto of_program = compile(*program, again, target);
  ASSERT_TRUE(of_program) << of_program.error().to_string();
  EXPECT_EQ(again.asked, sites);
  EXPECT_EQ(of_program->compiled.plans.size(), 2U);
  EXPECT_EQ(products(*of_program), products(*compiled));
}

// The target's own functions are used if they give the shared expansion's bits; others only if
// native functions are allowed, else the shared expansion is used.
TEST(Driver, MathFunctionsOfTheTargetsOwn) {
  const std::shared_ptr<backend::Backend> interp = backend::make_interpreter_backend();
  backend::TargetInfo target = interp->devices().value()[0].target;
  target.accepts_all = false;
  target.features.math = true;
  const auto module = import_module(R"(func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
})",
                                    "t")
                          .value();
  class Looking final : public backend::ForwardingBackend {
   public:
    using ForwardingBackend::ForwardingBackend;
    Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                      backend::Kernels kernels) override {
      text = kernel::print(*kernels[0]);
      return ForwardingBackend::compile(target, kernels);
    }
    bool takes_segments() const override { return false; }
    std::string text;
  };
  const auto has_tanh = [&](std::optional<double> ulp, bool native_math) {
    target.math.clear();
    for (int i = 0; ulp && i < kernel::kScalarOpCount; ++i) {
      const auto op = static_cast<kernel::OpCode>(i);
      for (const ElementType type :
           {ElementType::kBF16, ElementType::kF16, ElementType::kF32, ElementType::kF64}) {
        if (kernel::is_math(op))
          target.math.push_back({std::string(kernel::op_name(op)), type, *ulp});
      }
    }
    Looking looking(interp);
    CompileOptions options;
    options.native_math = native_math;
    EXPECT_TRUE(compile(*module, looking, target, options));
    return looking.text.find("= tanh ") != std::string::npos;
  };
  EXPECT_TRUE(has_tanh(0, false));
  EXPECT_FALSE(has_tanh(1, false));
  EXPECT_FALSE(has_tanh({}, false));
  EXPECT_TRUE(has_tanh(1, true));
  // One that lacks another function, as a plug-in of an older release, keeps those that it states.
  target.math = {{"tanh", ElementType::kF32, 0}, {"exp", ElementType::kF32, 1}};
  const kernel::TargetFeatures features = features_of(target, false);
  EXPECT_TRUE(features.has_math(kernel::OpCode::kTanh, ElementType::kF32));
  EXPECT_FALSE(features.has_math(kernel::OpCode::kErf, ElementType::kF32));
  EXPECT_FALSE(features.has_math(kernel::OpCode::kExp, ElementType::kF32));
  EXPECT_TRUE(features_of(target, true).has_math(kernel::OpCode::kExp, ElementType::kF32));
}

// validate detects a buffer that is not aligned as the device requires (B17).
TEST(Driver, BuffersLieAsTheDeviceAsks) {
  const char* const text = R"(func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = stablehlo.sine %x : tensor<5xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<5xf32>
  %2 = stablehlo.cosine %1 : tensor<5xf32>
  %3 = stablehlo.reverse %2, dims = [0] : tensor<5xf32>
  %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<5xf32>, tensor<5xf32>) -> tensor<10xf32>
  %5 = stablehlo.slice %4 [2:7] : (tensor<10xf32>) -> tensor<5xf32>
  return %5 : tensor<5xf32>
})";
  backend::InterpreterConfig config;
  config.segments = false;
  const std::vector<Literal> arguments = {numbers(5)};
  const auto expected = run_on(backend::make_interpreter_backend(config), text, arguments);
  config.alignment = 1024;
  const std::shared_ptr<backend::Backend> wide = backend::make_interpreter_backend(config);
  EXPECT_EQ(run_on(backend::make_validate_layer(wide), text, arguments), expected);
  const auto module = import_module(text, "t").value();
  const auto target = wide->devices().value()[0].target;
  const Compilation compilation = compile(*module, *wide, target).value();
  for (const program::Buffer& each : compilation.compiled.program.buffers) {
    EXPECT_EQ(each.offset % 1024, 0);
  }
  EXPECT_GT(compilation.compiled.program.temporary_bytes, 1024);
}

TEST(Calls, ArePlannedPackedAndCalled) {
  const auto backend = backend::load_plugin(TENON_CALLS_PLUGIN);
  ASSERT_TRUE(backend) << backend.error().to_string();
  const char* const text =
      R"(func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %c = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]> : tensor<3x2xf32>
  %0 = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %2 = stablehlo.dot_general %1, %0, contracting_dims = [0] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1, %2 : tensor<2x2xf32>, tensor<2x2xf32>
})";
  const std::vector<Literal> arguments = {numbers({2, 3}), numbers({3, 2})};
  RunInfo kernels;
  RunInfo calls;
  const auto expected = run_on(backend::make_interpreter_backend(), text, arguments, &kernels);
  EXPECT_EQ(run_on(*backend, text, arguments, &calls), expected);
  EXPECT_EQ(run_on(backend::make_validate_layer(*backend), text, arguments, &calls), expected);
  // The third is transposed, which the backend does not take.
  EXPECT_EQ(summary(calls.placement), "native 2, kernel 1, host 0 of 3");
  EXPECT_EQ(calls.placement[0].reason, "contraction lhs_contracting=[1] rhs_contracting=[0]");
  EXPECT_EQ(summary(kernels.placement), "native 0, kernel 3, host 0 of 3");
  // The backend's reason is shown with the kernel; `interp`, which takes no calls, gives no reason.
  EXPECT_TRUE(calls.placement[2].reason.starts_with("contraction declined: "))
      << calls.placement[2].reason;
  for (const Placement& each : kernels.placement) {
    EXPECT_EQ(each.reason.find("declined"), std::string::npos) << each.reason;
  }
}

// Host steps are parsed when the program is loaded, and never by an execution.
TEST(HostSteps, AreParsedOnce) {
  const auto module = import_module(R"(func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.outfeed"(%x, %t) {outfeed_config = ""} : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  return %x : tensor<2xf32>
})",
                                    "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto client = runtime::Client::open(backend::make_interpreter_backend()).value();
  const auto& device = client->devices()[0];
  Compilation compilation = compile(**module, client->backend(), device->info().target).value();
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  const int64_t before = HostSteps::parsed();
  auto calls = host_calls(compilation.compiled.program, Checks(&failures, &checks), nullptr, {});
  ASSERT_TRUE(calls) << calls.error().to_string();
  const auto executable =
      runtime::Executable::load(device, std::move(compilation.compiled), *std::move(calls)).value();
  const Literal x = numbers(2);
  for (int i = 0; i < 3; ++i) {
    const auto buffer = runtime::buffer_from_host(device, runtime::MemoryKind::kDevice,
                                                  {x.data().data(), x.shape(), {}, {}});
    const auto run = executable->execute(std::vector{buffer->buffer});
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_TRUE(run->done.await().ok()) << run->done.await().to_string();
  }
  EXPECT_EQ(HostSteps::parsed(), before + 1);
}

TEST(HostSteps, ThatDoNotParseAreErrorsOfTheLoad) {
  program::Program program;
  program.sequences.emplace_back().steps.emplace_back().action =
      program::CustomCall{std::string(kHostTarget),
                          {{"module", std::string("no text")}, {"function", std::string("f")}},
                          {},
                          {}};
  const auto calls = host_calls(program, Checks(nullptr, nullptr), nullptr, {});
  ASSERT_FALSE(calls);
  EXPECT_EQ(calls.error().code(), ErrorCode::kInvalidArgument) << calls.error().to_string();
}

}  // namespace
}  // namespace tenon::hlo
