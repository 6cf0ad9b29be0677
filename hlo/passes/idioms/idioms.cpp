// The table of idioms, and the matching of their patterns.
#include <algorithm>
#include <unordered_set>

#include "hlo/passes/idioms/idiom.h"

namespace tenon::hlo::idioms {
namespace {

using rewrite::Match;
using rewrite::Pattern;
using rewrite::PatternDefinition;
using rewrite::VariableNames;

// clang-format off
constexpr PatternDefinition kDefinitions[] = {
    // One number per row, broadcast along the rows; frameworks keep the dimension that they reduce.
    {"along(v)", "broadcast_in_dim(v)"},
    {"along(v)", "broadcast_in_dim(reshape(v))"},
    {"kept(v)", "v"},
    {"kept(v)", "broadcast_in_dim(v)"},
    {"kept(v)", "reshape(v)"},
    {"row_max(x)", "reduce[maximum](x, -inf)"},
    {"row_max(x)", "maximum(reduce[maximum](x, -inf), -inf)"},
    // Narrow floats are summed in f32.
    {"row_sum(x)", "reduce[add](x, 0)"},
    {"row_sum(x)", "convert(kept(reduce[add](convert(x), 0)))"},
    {"mean(x)", "divide(kept(row_sum(x)), count)"},
    {"mean(x)", "multiply(kept(row_sum(x)), inverse_count)"},

    {"softmax(x)", "divide(e=exponential(subtract(x, along(kept(row_max(x))))), along(kept(row_sum(e))))"},

    {"variance(c)", "mean(multiply(c, c))"},
    {"layer_norm(x)", "multiply(c=subtract(x, along(mean(x))), along(rsqrt(add(variance(c), epsilon))))"},
    {"layer_norm(x)", "divide(c=subtract(x, along(mean(x))), along(sqrt(add(variance(c), epsilon))))"},

    {"product(q, k)", "p=dot_general(q, k)"},
    {"product(q, k)", "convert(p=dot_general(q, k))"},
    {"scores(q, k)", "product(q, k)"},
    {"scores(q, k)", "multiply(product(q, k), scale)"},
    {"scores(q, k)", "divide(product(q, k), divisor)"},
    {"weights(s)", "w=softmax(s)"},
    {"weights(s)", "convert(w=softmax(s))"},
    {"weigh(s, v)", "dot_general(weights(s), v)"},
    {"weigh(s, v)", "dot_general(v, weights(s))"},
};
// clang-format on

constexpr std::string_view kDimension = "`dimension`: the normalized dimension";
constexpr std::string_view kAttention =
    "`scale`: the factor of the scores; `scores_lhs_batch`, `scores_rhs_batch`, "
    "`scores_lhs_contracting`, `scores_rhs_contracting`: dimensions of q and k in the first "
    "product; `output_lhs_batch`, `output_rhs_batch`, `output_lhs_contracting`, "
    "`output_rhs_contracting`: dimensions in the second; `weights_first`: whether the weights are "
    "its "
    "lhs; `fill`: the score where a mask is false";

std::vector<Idiom> table() {
  return {
      {.name = "tenon.attention",
       .summary = "softmax(scale · q·k) · v, with the softmax along the dimension of the scores "
                  "that the second product contracts",
       .signature = "(q, k, v) -> y",
       .attributes = kAttention,
       .pattern = "weigh(scores(q, k), v)",
       .operands = {"q", "k", "v"},
       .attributes_of = attention,
       .example = R"(
func.func @main(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x5xf32>) -> tensor<2x4x5xf32> {
  %scale = stablehlo.constant dense<0.25> : tensor<2x4x6xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x4x8xf32>, tensor<2x6x8xf32>) -> tensor<2x4x6xf32>
  %s = stablehlo.multiply %p, %scale : tensor<2x4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x6xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x4x6xf32>
  %e = stablehlo.exponential %d : tensor<2x4x6xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x6xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x4x6xf32>
  %y = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x6xf32>, tensor<2x6x5xf32>) -> tensor<2x4x5xf32>
  return %y : tensor<2x4x5xf32>
})"},
      {.name = "tenon.attention_with_bias",
       .summary = "the same, with a bias of the shape of the scores added to the scores",
       .signature = "(q, k, v, bias) -> y",
       .attributes = "those of tenon.attention",
       .pattern = "weigh(add(scores(q, k), bias), v)",
       .operands = {"q", "k", "v", "bias"},
       .attributes_of = attention,
       .example = R"(
func.func @main(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %bias: tensor<4x6xf32>) -> tensor<4x5xf32> {
  %eight = stablehlo.constant dense<8.0> : tensor<4x6xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %scaled = stablehlo.divide %p, %eight : tensor<4x6xf32>
  %s = stablehlo.add %scaled, %bias : tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %mk = stablehlo.reshape %m : (tensor<4xf32>) -> tensor<4x1xf32>
  %mb = stablehlo.broadcast_in_dim %mk, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
  %d = stablehlo.subtract %s, %mb : tensor<4x6xf32>
  %e = stablehlo.exponential %d : tensor<4x6xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %w = stablehlo.divide %e, %tb : tensor<4x6xf32>
  %y = stablehlo.dot_general %v, %w, contracting_dims = [0] x [1] : (tensor<6x5xf32>, tensor<4x6xf32>) -> tensor<5x4xf32>
  %r = stablehlo.transpose %y, dims = [1, 0] : (tensor<5x4xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
})"},
      {.name = "tenon.attention_with_mask",
       .summary = "the same, with scores of `fill` where the mask is false",
       .signature = "(q, k, v, mask) -> y",
       .attributes = "those of tenon.attention",
       .pattern = "weigh(select(mask, scores(q, k), fill), v)",
       .operands = {"q", "k", "v", "mask"},
       .attributes_of = attention,
       .example = R"(
func.func @main(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %mask: tensor<4x6xi1>) -> tensor<4x5xf32> {
  %fill = stablehlo.constant dense<-1.0e9> : tensor<4x6xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %s = stablehlo.select %mask, %p, %fill : tensor<4x6xi1>, tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %d = stablehlo.subtract %s, %mb : tensor<4x6xf32>
  %e = stablehlo.exponential %d : tensor<4x6xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  %w = stablehlo.divide %e, %tb : tensor<4x6xf32>
  %y = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
})"},
      {.name = "tenon.softmax",
       .summary = "exp(x - max x) / Σ exp(x - max x) of each row",
       .signature = "(x) -> y",
       .attributes = kDimension,
       .pattern = "softmax(x)",
       .operands = {"x"},
       .attributes_of = softmax,
       .example = R"(
func.func @main(%x: tensor<3x7xf32>) -> tensor<3x7xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<3x7xf32>, tensor<f32>) -> tensor<3xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3xf32>) -> tensor<3x7xf32>
  %d = stablehlo.subtract %x, %mb : tensor<3x7xf32>
  %e = stablehlo.exponential %d : tensor<3x7xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x7xf32>, tensor<f32>) -> tensor<3xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<3xf32>) -> tensor<3x7xf32>
  %y = stablehlo.divide %e, %tb : tensor<3x7xf32>
  return %y : tensor<3x7xf32>
})"},
      {.name = "tenon.layer_norm",
       .summary = "(x - mean x) / √(variance of x + epsilon) of each row; ops that scale "
                  "and shift the rows afterwards are not part of it",
       .signature = "(x) -> y",
       .attributes = "`dimension`: the normalized dimension; `epsilon`: a number",
       .pattern = "layer_norm(x)",
       .operands = {"x"},
       .attributes_of = layer_norm,
       .example = R"(
func.func @main(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %eight = stablehlo.constant dense<8.0> : tensor<3x1xf32>
  %epsilon = stablehlo.constant dense<1.0e-5> : tensor<3x1xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x8xf32>, tensor<f32>) -> tensor<3xf32>
  %sk = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
  %mean = stablehlo.divide %sk, %eight : tensor<3x1xf32>
  %mb = stablehlo.broadcast_in_dim %mean, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x8xf32>
  %c = stablehlo.subtract %x, %mb : tensor<3x8xf32>
  %cc = stablehlo.multiply %c, %c : tensor<3x8xf32>
  %v = stablehlo.reduce(%cc init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x8xf32>, tensor<f32>) -> tensor<3xf32>
  %vk = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
  %variance = stablehlo.divide %vk, %eight : tensor<3x1xf32>
  %ve = stablehlo.add %variance, %epsilon : tensor<3x1xf32>
  %r = stablehlo.rsqrt %ve : tensor<3x1xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x8xf32>
  %y = stablehlo.multiply %c, %rb : tensor<3x8xf32>
  return %y : tensor<3x8xf32>
})"},
      {.name = "tenon.top_k",
       .summary = "the first k elements of each row in order, and their indices in it if the "
                  "program uses them; of equal elements the first comes first",
       .signature = "(x) -> (values, indices?)",
       .attributes = "`dimension`: of the rows; `k`; `descending`: whether the greatest come "
                     "first; `total_order`: for floats, -NaN < -inf … -0 < 0 … inf < NaN",
       .root = OpCode::kSort,
       .find = top_k,
       .example = R"(
func.func @main(%x: tensor<3x9xf32>) -> (tensor<3x4xf32>, tensor<3x4xi32>) {
  %places = stablehlo.iota dim = 1 : tensor<3x9xi32>
  %s:2 = "stablehlo.sort"(%x, %places) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %c = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x9xf32>, tensor<3x9xi32>) -> (tensor<3x9xf32>, tensor<3x9xi32>)
  %values = stablehlo.slice %s#0 [0:3, 0:4] : (tensor<3x9xf32>) -> tensor<3x4xf32>
  %indices = stablehlo.slice %s#1 [0:3, 0:4] : (tensor<3x9xi32>) -> tensor<3x4xi32>
  return %values, %indices : tensor<3x4xf32>, tensor<3x4xi32>
})"},
      {.name = "tenon.scan",
       .summary = "element i of each row combines the elements up to i, in any order of "
                  "combination (jax.lax.associative_scan of one op; `reduce_window` over "
                  "prefixes is a separate library call)",
       .signature = "(x) -> y",
       .attributes = "`combiner`: add, multiply, minimum, maximum, and, or, xor; `dimension`: of "
                     "the rows",
       .root = OpCode::kAdd,
       .find = scan,
       .example = R"(
func.func @main(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.slice %x [0:2, 0:4:2] : (tensor<2x5xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.slice %x [0:2, 1:5:2] : (tensor<2x5xf32>) -> tensor<2x2xf32>
  %pairs = stablehlo.maximum %0, %1 : tensor<2x2xf32>
  %2 = stablehlo.slice %pairs [0:2, 0:1] : (tensor<2x2xf32>) -> tensor<2x1xf32>
  %3 = stablehlo.slice %pairs [0:2, 1:2] : (tensor<2x2xf32>) -> tensor<2x1xf32>
  %last = stablehlo.maximum %2, %3 : tensor<2x1xf32>
  %4 = stablehlo.pad %2, %zero, low = [0, 0], high = [0, 1], interior = [0, 1] : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x2xf32>
  %5 = stablehlo.pad %last, %zero, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x2xf32>
  %odd = stablehlo.add %4, %5 : tensor<2x2xf32>
  %6 = stablehlo.slice %x [0:2, 2:5:2] : (tensor<2x5xf32>) -> tensor<2x2xf32>
  %7 = stablehlo.maximum %odd, %6 : tensor<2x2xf32>
  %8 = stablehlo.slice %x [0:2, 0:1] : (tensor<2x5xf32>) -> tensor<2x1xf32>
  %even = stablehlo.concatenate %8, %7, dim = 1 : (tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  %9 = stablehlo.pad %even, %zero, low = [0, 0], high = [0, 0], interior = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x5xf32>
  %10 = stablehlo.pad %odd, %zero, low = [0, 1], high = [0, 1], interior = [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x5xf32>
  %y = stablehlo.add %9, %10 : tensor<2x5xf32>
  return %y : tensor<2x5xf32>
})"},
  };
}

// --- Matching

struct CompiledIdiom {
  Pattern pattern;
  VariableNames names;
  std::vector<OpCode> roots;  // Of the pattern.
};

void append_roots(const Pattern& pattern, std::vector<OpCode>& roots) {
  if (pattern.kind == Pattern::Kind::kOp) roots.push_back(pattern.code);
  for (const Pattern& each : pattern.operands) {
    if (pattern.kind == Pattern::Kind::kEither) append_roots(each, roots);
  }
}

struct CompiledTable {
  std::vector<CompiledIdiom> idioms;
  Status status;
};

const CompiledTable& compiled() {
  static const CompiledTable kTable = [] {
    CompiledTable table;
    for (const Idiom& idiom : all_idioms()) {
      CompiledIdiom& made = table.idioms.emplace_back();
      if (idiom.root) {
        made.roots = {*idiom.root};
        continue;
      }
      auto pattern = rewrite::parse_pattern(idiom.pattern, made.names, kDefinitions);
      if (!pattern) {
        table.status = Status(std::move(pattern.error())).in_stage(std::string(idiom.name));
        break;
      }
      made.pattern = std::move(*pattern);
      append_roots(made.pattern, made.roots);
    }
    return table;
  }();
  return kTable;
}

}  // namespace

Value PatternCaptures::operator[](std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  return found == names_.end() ? Value() : match_.variables[found - names_.begin()];
}

std::span<const Idiom> all_idioms() {
  static const std::vector<Idiom> kTable = table();
  return kTable;
}

std::span<const PatternDefinition> definitions() { return kDefinitions; }

Status check_idioms() { return compiled().status; }

std::optional<Instance> find_instance(const Idiom& idiom, Instruction& op) {
  const CompiledTable& table = compiled();
  if (!table.status.ok()) return {};
  const CompiledIdiom& made = table.idioms[static_cast<size_t>(&idiom - all_idioms().data())];
  if (std::ranges::find(made.roots, op.code()) == made.roots.end()) return {};
  if (idiom.find != nullptr) return idiom.find(op);
  Match match;
  if (!rewrite::matches(made.pattern, op, match)) return {};
  const PatternCaptures captures(made.names, match, op);
  std::optional<Dict> attributes = idiom.attributes_of(captures);
  if (!attributes) return {};
  Instance instance;
  for (const std::string_view name : idiom.operands) instance.operands.push_back(captures[name]);
  instance.results = {op.result(0)};
  instance.attributes = std::move(*attributes);
  instance.anchor = &op;
  return instance;
}

}  // namespace tenon::hlo::idioms
