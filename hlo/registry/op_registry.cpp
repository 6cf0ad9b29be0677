// hlo/registry/: ties the rows of the op table to the functions that they name.
//
// Defines op_info() and all_ops(), which hlo/ops declares. This folder includes the folders that
// define the functions, so that hlo/ops need not.

#include "hlo/decomposition/decomposition.h"
#include "hlo/evaluator/error_bound.h"
#include "hlo/evaluator/ops/rules.h"
#include "hlo/inference/infer.h"
#include "hlo/lower/elements/rules.h"
#include "hlo/lower/library_calls.h"
#include "hlo/lower/schedules/own_kernels.h"
#include "hlo/ops/ops.h"
#include "hlo/sample/sampler.h"

namespace tenon::hlo {
namespace {

namespace calls = lower::calls;
namespace emit = lower::emit;

namespace vhlo {
constexpr std::string_view kConvWithPadding =
    "batch_group_count:i64 feature_group_count:i64 input_batch_dimension:i64 "
    "input_feature_dimension:i64 "
    "input_spatial_dimensions:i64s kernel_input_feature_dimension:i64 "
    "kernel_output_feature_dimension:i64 kernel_spatial_dimensions:i64s lhs_dilation:i64s "
    "output_batch_dimension:i64 output_feature_dimension:i64 output_spatial_dimensions:i64s "
    "padding:matrix precision_config:precisions rhs_dilation:i64s window_reversal:bools "
    "window_strides:i64s";
constexpr std::string_view kConvWithoutPadding =
    "batch_group_count:i64 feature_group_count:i64 input_batch_dimension:i64 "
    "input_feature_dimension:i64 "
    "input_spatial_dimensions:i64s kernel_input_feature_dimension:i64 "
    "kernel_output_feature_dimension:i64 kernel_spatial_dimensions:i64s lhs_dilation:i64s "
    "output_batch_dimension:i64 output_feature_dimension:i64 output_spatial_dimensions:i64s "
    "precision_config:precisions rhs_dilation:i64s window_reversal:bools window_strides:i64s";
}  // namespace vhlo

constexpr OpInfo kOps[] = {
#define TENON_OP(id, op_name, ...) OpInfo{.code = OpCode::k##id, .name = op_name, __VA_ARGS__},
#include "hlo/ops/op_table.inc"
#undef TENON_OP
};

// --- Requirements on rows; each check returns the index of the first wrong row, so that the error
// shows it

constexpr int kNoRow = -1;

template <class Holds>
consteval int first_without(const Holds& holds) {
  int index = 0;
  for (const OpInfo& op : kOps) {
    if (!holds(op)) return index;
    ++index;
  }
  return kNoRow;
}

constexpr bool is_structural(const OpInfo& op) {
  return op.code == OpCode::kParameter || op.code == OpCode::kReturn;
}
// Decomposed in every instance. fft is lowered directly if its lengths are powers of two.
constexpr bool is_always_decomposed(const OpInfo& op) {
  return op.decompose != nullptr && op.step == StepKind::kUnset;
}

static_assert(first_without([](const OpInfo& op) { return op.infer != nullptr; }) == kNoRow,
              "an op has no shape rule");
static_assert(first_without([](const OpInfo& op) {
                return op.evaluate != nullptr || op.scalar != nullptr || op.decompose != nullptr ||
                       is_structural(op);
              }) == kNoRow,
              "an op has no meaning: .scalar, .evaluate or .decompose");
static_assert(first_without([](const OpInfo& op) {
                return is_always_decomposed(op) ||
                       (op.step != StepKind::kUnset && op.fusion != FusionKind::kUnset);
              }) == kNoRow,
              "an op that is not decomposed lacks .step or .fusion");
static_assert(first_without([](const OpInfo& op) {
                return op.step != StepKind::kCompute || op.element != nullptr ||
                       op.kernels != nullptr;
              }) == kNoRow,
              "an op that is computed has no lowering: .element or .kernels");
static_assert(first_without([](const OpInfo& op) { return op.ulp_bound != kAccuracyUnset; }) ==
                  kNoRow,
              "an op states no accuracy: .ulp_bound");
static_assert(first_without([](const OpInfo& op) {
                return op.ulp_bound != kOrderDependent || op.step != StepKind::kCompute ||
                       op.decompose != nullptr || op.terms != nullptr;
              }) == kNoRow,
              "the error of an op depends on the order of its terms, and it states no number: "
              ".terms");
static_assert(first_without([](const OpInfo& op) {
                return (op.sample != nullptr) != !op.not_sampled.empty();
              }) == kNoRow,
              "an op has neither .sample nor a reason for .not_sampled, or both");
static_assert(first_without([](const OpInfo& op) {
                return op.vhlo[0].name.empty() == (op.dialect() != "stablehlo") ||
                       op.code == OpCode::kCall;
              }) == kNoRow,
              "a StableHLO op names no version of VHLO, or another one does: .vhlo");

}  // namespace

const OpInfo& op_info(OpCode code) { return kOps[static_cast<size_t>(code)]; }
std::span<const OpInfo> all_ops() { return kOps; }

}  // namespace tenon::hlo
