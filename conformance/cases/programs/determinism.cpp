// Determinism: the same program on the same arguments gives the same bits, in every run (B22), also
// while the host's cores are busy.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "conformance/cases/text_program.h"
#include "conformance/generate/elementwise.h"

namespace tenon::conformance {
namespace {

using enum ElementType;

constexpr TextTemplate kPrograms[] = {
    {"sum_long", "100003x$T", "$T", "data",
     "%z = stablehlo.constant dense<0.0> : tensor<$T>\n"
     "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : "
     "($A, tensor<$T>) -> $R"},
    {"sum_columns", "513x129x$T", "129x$T", "data",
     "%z = stablehlo.constant dense<0.0> : tensor<$T>\n"
     "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : "
     "($A, tensor<$T>) -> $R"},
    {"dot_long", "5x4099x$T, 4099x7x$T", "5x7x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"dot_square", "97x97x$T, 97x97x$T", "97x97x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"convolution", "2x17x17x8x$T, 3x3x8x8x$T", "2x15x15x8x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
     "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"scatter_add", "7x$T, 300x1xi32, 300x$T", "7x$T", "data ints:0:6 data",
     "%r = \"stablehlo.scatter\"(%a, %b, %c) ({\n ^bb0(%u: tensor<$T>, %v: tensor<$T>):\n"
     "  %w = stablehlo.add %u, %v : tensor<$T>\n  stablehlo.return %w : tensor<$T>\n"
     "}) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, "
     "unique_indices = false} : ($A, $B, $C) -> $R"},
    {"softmax", "65x257x$T", "65x257x$T", "data", R"(
 %y = stablehlo.constant dense<-240.0> : tensor<$T>
 %z = stablehlo.constant dense<0.0> : tensor<$T>
 %m = stablehlo.reduce(%a init: %y) applies stablehlo.maximum across dimensions = [1] : ($A, tensor<$T>) -> tensor<65x$T>
 %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<65x$T>) -> $A
 %d = stablehlo.subtract %a, %mb : $A
 %e = stablehlo.exponential %d : $A
 %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : ($A, tensor<$T>) -> tensor<65x$T>
 %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<65x$T>) -> $A
 %r = stablehlo.divide %e, %sb : $A)"},
    {"sort", "5x1027x$T", "5x1027x$T", "data", R"(
 %t = "stablehlo.sort"(%a) ({
  ^bb0(%x: tensor<$T>, %y: tensor<$T>):
   %p = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<$T>, tensor<$T>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
 }) {dimension = 1 : i64, is_stable = true} : ($A) -> $A
 %r = stablehlo.negate %t : $A)"},
};

// Threads that compute until it is destroyed.
class Load {
 public:
  explicit Load(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        uint64_t number = 1;
        while (!stop_.load(std::memory_order_relaxed)) number = mix_bits(number);
        sink_ += number;
      });
    }
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() {
    stop_ = true;
    for (std::thread& each : threads_) each.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> sink_ = 0;
  std::vector<std::thread> threads_;
};

CaseResult run_repeatedly(const TextTemplate& program, ElementType type, bool loaded,
                          CaseContext& context) {
  CaseResult result;
  TextTemplate whole = program;
  whole.comparison = Comparison::kWhole;
  auto made = make_text_program(whole, type, ValueClass::kOrdinary, context.seed);
  if (!made) {
    result.outcome = Outcome::kHarnessError;
    result.message = made.error().to_string();
    return result;
  }
  constexpr int kRuns = 4;
  std::optional<std::vector<Literal>> first;
  std::string declined;
  for (int run = 0; run < kRuns; ++run) {
    std::optional<Load> load;
    if (loaded && run > 0) load.emplace(2 * std::max(1U, std::thread::hardware_concurrency()));
    auto ran = context.target.run(*made->module, made->arguments);
    if (!ran) return failed_run(ran.error());
    result.steps = ran->steps;
    declined = declined_step(ran->placement);
    if (!first) {
      first = std::move(ran->results);
      continue;
    }
    for (size_t r = 0; r < first->size(); ++r) {
      const int64_t at = first_difference((*first)[r], ran->results[r]);
      if (at < 0) continue;
      result.outcome = Outcome::kFail;
      result.message = fmt::format(
          "run {} gives other bits than the first: result {} element {}: {}, then {} (B22)",
          run + 1, r, at, (*first)[r].element_to_string(at), ran->results[r].element_to_string(at));
      return result;
    }
  }
  return with_steps_judged(std::move(result), context.target, declined);
}

}  // namespace

void add_determinism_cases(CaseList& list) {
  for (const TextTemplate& program : kPrograms) {
    for (const ElementType type : {kBF16, kF32}) {
      for (const bool loaded : {false, true}) {
        ConformanceCase one;
        one.name = fmt::format("determinism/{}/{}/{}", program.variant, name_of(type),
                               loaded ? "under_load" : "repeated");
        one.tier = type == kF32 && !loaded ? Tier::kQuick : Tier::kFull;
        one.alone = loaded;
        one.run = [&program, type, loaded](CaseContext& context) {
          return run_repeatedly(program, type, loaded, context);
        };
        list.cases.push_back(std::move(one));
      }
    }
  }
}

}  // namespace tenon::conformance
