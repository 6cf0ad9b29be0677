// conformance/cases/programs/: cases of programs of many ops: patterns, random ones, repeated ones.
//
// Composite patterns: what models are made of, as one program each, of which only the result is
// compared. Passes may fuse and a device may take what it recognizes.
#include "conformance/cases/text_program.h"

namespace tenon::conformance {
namespace {

using enum ElementType;

struct ModelPattern {
  std::string_view name;
  TextTemplate program;
};

constexpr std::string_view kAdd = R"(
func.func private @sum_rows(%x: tensor<4x9x$T>) -> tensor<4x$T> {
 %z = stablehlo.constant dense<0.0> : tensor<$T>
 %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x9x$T>, tensor<$T>) -> tensor<4x$T>
 return %s : tensor<4x$T>
}
func.func private @greatest_of_rows(%x: tensor<4x9x$T>) -> tensor<4x$T> {
 %z = stablehlo.constant dense<-240.0> : tensor<$T>
 %s = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<4x9x$T>, tensor<$T>) -> tensor<4x$T>
 return %s : tensor<4x$T>
}
)";

constexpr ModelPattern kPatterns[] = {
    {"softmax",
     {"rows", "4x9x$T", "4x9x$T", "data", R"(
 %m = func.call @greatest_of_rows(%a) : (tensor<4x9x$T>) -> tensor<4x$T>
 %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4x$T>) -> $A
 %d = stablehlo.subtract %a, %mb : $A
 %e = stablehlo.exponential %d : $A
 %s = func.call @sum_rows(%e) : (tensor<4x9x$T>) -> tensor<4x$T>
 %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4x$T>) -> $A
 %r = stablehlo.divide %e, %sb : $A)",
      kAdd}},
    {"log_softmax",
     {"rows", "4x9x$T", "4x9x$T", "data", R"(
 %m = func.call @greatest_of_rows(%a) : (tensor<4x9x$T>) -> tensor<4x$T>
 %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4x$T>) -> $A
 %d = stablehlo.subtract %a, %mb : $A
 %e = stablehlo.exponential %d : $A
 %s = func.call @sum_rows(%e) : (tensor<4x9x$T>) -> tensor<4x$T>
 %l = stablehlo.log %s : tensor<4x$T>
 %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<4x$T>) -> $A
 %r = stablehlo.subtract %d, %lb : $A)",
      kAdd}},
    {"layer_norm",
     {"rows", "4x9x$T, 9x$T, 9x$T", "4x9x$T", "data", R"(
 %n = stablehlo.constant dense<9.0> : tensor<4x$T>
 %eps = stablehlo.constant dense<0.01> : tensor<4x$T>
 %s = func.call @sum_rows(%a) : (tensor<4x9x$T>) -> tensor<4x$T>
 %mean = stablehlo.divide %s, %n : tensor<4x$T>
 %mb = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<4x$T>) -> $A
 %d = stablehlo.subtract %a, %mb : $A
 %q = stablehlo.multiply %d, %d : $A
 %v = func.call @sum_rows(%q) : (tensor<4x9x$T>) -> tensor<4x$T>
 %var = stablehlo.divide %v, %n : tensor<4x$T>
 %ve = stablehlo.add %var, %eps : tensor<4x$T>
 %i = stablehlo.rsqrt %ve : tensor<4x$T>
 %ib = stablehlo.broadcast_in_dim %i, dims = [0] : (tensor<4x$T>) -> $A
 %y = stablehlo.multiply %d, %ib : $A
 %g = stablehlo.broadcast_in_dim %b, dims = [1] : ($B) -> $A
 %o = stablehlo.broadcast_in_dim %c, dims = [1] : ($C) -> $A
 %z = stablehlo.multiply %y, %g : $A
 %r = stablehlo.add %z, %o : $A)",
      kAdd}},
    {"rms_norm",
     {"rows", "4x9x$T, 9x$T", "4x9x$T", "data", R"(
 %n = stablehlo.constant dense<9.0> : tensor<4x$T>
 %eps = stablehlo.constant dense<0.01> : tensor<4x$T>
 %q = stablehlo.multiply %a, %a : $A
 %v = func.call @sum_rows(%q) : (tensor<4x9x$T>) -> tensor<4x$T>
 %var = stablehlo.divide %v, %n : tensor<4x$T>
 %ve = stablehlo.add %var, %eps : tensor<4x$T>
 %i = stablehlo.rsqrt %ve : tensor<4x$T>
 %ib = stablehlo.broadcast_in_dim %i, dims = [0] : (tensor<4x$T>) -> $A
 %y = stablehlo.multiply %a, %ib : $A
 %g = stablehlo.broadcast_in_dim %b, dims = [1] : ($B) -> $A
 %r = stablehlo.multiply %y, %g : $A)",
      kAdd}},
    {"attention", {"causal", "2x3x9x4x$T, 2x3x9x4x$T, 2x3x9x4x$T", "2x3x9x4x$T", "unit", R"(
 %s = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : ($A, $B) -> tensor<2x3x9x9x$T>
 %h = stablehlo.constant dense<0.5> : tensor<2x3x9x9x$T>
 %t = stablehlo.multiply %s, %h : tensor<2x3x9x9x$T>
 %i = stablehlo.iota dim = 2 : tensor<2x3x9x9xi32>
 %j = stablehlo.iota dim = 3 : tensor<2x3x9x9xi32>
 %p = stablehlo.compare GE, %i, %j : (tensor<2x3x9x9xi32>, tensor<2x3x9x9xi32>) -> tensor<2x3x9x9xi1>
 %low = stablehlo.constant dense<-240.0> : tensor<2x3x9x9x$T>
 %u = stablehlo.select %p, %t, %low : tensor<2x3x9x9xi1>, tensor<2x3x9x9x$T>
 %z = stablehlo.constant dense<0.0> : tensor<$T>
 %y = stablehlo.constant dense<-240.0> : tensor<$T>
 %m = stablehlo.reduce(%u init: %y) applies stablehlo.maximum across dimensions = [3] : (tensor<2x3x9x9x$T>, tensor<$T>) -> tensor<2x3x9x$T>
 %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<2x3x9x$T>) -> tensor<2x3x9x9x$T>
 %d = stablehlo.subtract %u, %mb : tensor<2x3x9x9x$T>
 %e = stablehlo.exponential %d : tensor<2x3x9x9x$T>
 %n = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [3] : (tensor<2x3x9x9x$T>, tensor<$T>) -> tensor<2x3x9x$T>
 %nb = stablehlo.broadcast_in_dim %n, dims = [0, 1, 2] : (tensor<2x3x9x$T>) -> tensor<2x3x9x9x$T>
 %w = stablehlo.divide %e, %nb : tensor<2x3x9x9x$T>
 %r = stablehlo.dot_general %w, %c, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x9x9x$T>, $C) -> $R)"}},
    // Many scores, which a device need not keep.
    {"attention", {"long", "1x2x400x4x$T, 1x2x340x4x$T, 1x2x340x4x$T", "1x2x400x4x$T", "unit", R"(
 %s = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : ($A, $B) -> tensor<1x2x400x340x$T>
 %h = stablehlo.constant dense<0.5> : tensor<1x2x400x340x$T>
 %t = stablehlo.multiply %s, %h : tensor<1x2x400x340x$T>
 %i = stablehlo.iota dim = 2 : tensor<1x2x400x340xi32>
 %j = stablehlo.iota dim = 3 : tensor<1x2x400x340xi32>
 %p = stablehlo.compare GE, %i, %j : (tensor<1x2x400x340xi32>, tensor<1x2x400x340xi32>) -> tensor<1x2x400x340xi1>
 %low = stablehlo.constant dense<-240.0> : tensor<1x2x400x340x$T>
 %u = stablehlo.select %p, %t, %low : tensor<1x2x400x340xi1>, tensor<1x2x400x340x$T>
 %z = stablehlo.constant dense<0.0> : tensor<$T>
 %y = stablehlo.constant dense<-240.0> : tensor<$T>
 %m = stablehlo.reduce(%u init: %y) applies stablehlo.maximum across dimensions = [3] : (tensor<1x2x400x340x$T>, tensor<$T>) -> tensor<1x2x400x$T>
 %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<1x2x400x$T>) -> tensor<1x2x400x340x$T>
 %d = stablehlo.subtract %u, %mb : tensor<1x2x400x340x$T>
 %e = stablehlo.exponential %d : tensor<1x2x400x340x$T>
 %n = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [3] : (tensor<1x2x400x340x$T>, tensor<$T>) -> tensor<1x2x400x$T>
 %nb = stablehlo.broadcast_in_dim %n, dims = [0, 1, 2] : (tensor<1x2x400x$T>) -> tensor<1x2x400x340x$T>
 %w = stablehlo.divide %e, %nb : tensor<1x2x400x340x$T>
 %r = stablehlo.dot_general %w, %c, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<1x2x400x340x$T>, $C) -> $R)"}},
    {"lstm_cell", {"step", "3x5x$T, 3x4x$T, 3x4x$T, 9x16x$T, 16x$T", "3x4x$T, 3x4x$T", "unit", R"(
 %x = stablehlo.concatenate %a, %b, dim = 1 : ($A, $B) -> tensor<3x9x$T>
 %m = stablehlo.dot_general %x, %d, contracting_dims = [1] x [0] : (tensor<3x9x$T>, $D) -> tensor<3x16x$T>
 %eb = stablehlo.broadcast_in_dim %e, dims = [1] : ($E) -> tensor<3x16x$T>
 %g = stablehlo.add %m, %eb : tensor<3x16x$T>
 %g0 = stablehlo.slice %g [0:3, 0:4] : (tensor<3x16x$T>) -> $B
 %g1 = stablehlo.slice %g [0:3, 4:8] : (tensor<3x16x$T>) -> $B
 %g2 = stablehlo.slice %g [0:3, 8:12] : (tensor<3x16x$T>) -> $B
 %g3 = stablehlo.slice %g [0:3, 12:16] : (tensor<3x16x$T>) -> $B
 %i = stablehlo.logistic %g0 : $B
 %f = stablehlo.logistic %g1 : $B
 %t = stablehlo.tanh %g2 : $B
 %o = stablehlo.logistic %g3 : $B
 %k = stablehlo.multiply %f, %c : $C
 %l = stablehlo.multiply %i, %t : $B
 %s = stablehlo.add %k, %l : $C
 %n = stablehlo.tanh %s : $C
 %r = stablehlo.multiply %o, %n : $B)"}},
    {"gelu", {"tanh_form", "4x9x$T", "4x9x$T", "data", R"(
 %half = stablehlo.constant dense<0.5> : $A
 %one = stablehlo.constant dense<1.0> : $A
 %c0 = stablehlo.constant dense<0.044715> : $A
 %c1 = stablehlo.constant dense<0.797884583> : $A
 %x2 = stablehlo.multiply %a, %a : $A
 %x3 = stablehlo.multiply %x2, %a : $A
 %k = stablehlo.multiply %c0, %x3 : $A
 %l = stablehlo.add %a, %k : $A
 %m = stablehlo.multiply %c1, %l : $A
 %t = stablehlo.tanh %m : $A
 %n = stablehlo.add %one, %t : $A
 %h = stablehlo.multiply %half, %a : $A
 %r = stablehlo.multiply %h, %n : $A)"}},
    {"linear_relu", {"batch", "33x17x$T, 17x9x$T, 9x$T", "33x9x$T", "data", R"(
 %m = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R
 %cb = stablehlo.broadcast_in_dim %c, dims = [1] : ($C) -> $R
 %s = stablehlo.add %m, %cb : $R
 %z = stablehlo.constant dense<0.0> : $R
 %r = stablehlo.maximum %s, %z : $R)"}},
    {"convolution_block", {"pooled", "2x8x8x3x$T, 3x3x3x4x$T, 4x$T", "2x4x4x4x$T", "data", R"(
 %m = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> tensor<2x8x8x4x$T>
 %cb = stablehlo.broadcast_in_dim %c, dims = [3] : ($C) -> tensor<2x8x8x4x$T>
 %s = stablehlo.add %m, %cb : tensor<2x8x8x4x$T>
 %z = stablehlo.constant dense<0.0> : tensor<2x8x8x4x$T>
 %p = stablehlo.maximum %s, %z : tensor<2x8x8x4x$T>
 %y = stablehlo.constant dense<0.0> : tensor<$T>
 %r = "stablehlo.reduce_window"(%p, %y) ({
  ^bb0(%u: tensor<$T>, %v: tensor<$T>):
   %w = stablehlo.maximum %u, %v : tensor<$T>
   stablehlo.return %w : tensor<$T>
 }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<2x8x8x4x$T>, tensor<$T>) -> $R)"}},
    {"cumulative_sum", {"window", "3x21x$T", "3x21x$T", "data", R"(
 %y = stablehlo.constant dense<0.0> : tensor<$T>
 %r = "stablehlo.reduce_window"(%a, %y) ({
  ^bb0(%u: tensor<$T>, %v: tensor<$T>):
   %w = stablehlo.add %u, %v : tensor<$T>
   stablehlo.return %w : tensor<$T>
 }) {window_dimensions = array<i64: 1, 21>, padding = dense<[[0, 0], [20, 0]]> : tensor<2x2xi64>} : ($A, tensor<$T>) -> $R)"}},
    {"adam",
     {"step", "37x$T, 37x$T, 37x$T, 37x$T", "37x$T, 37x$T, 37x$T", "unit unit unit positive", R"(
 %b1 = stablehlo.constant dense<0.875> : $A
 %c1 = stablehlo.constant dense<0.125> : $A
 %b2 = stablehlo.constant dense<0.9375> : $A
 %c2 = stablehlo.constant dense<0.0625> : $A
 %eps = stablehlo.constant dense<0.01> : $A
 %lr = stablehlo.constant dense<0.0625> : $A
 %k = stablehlo.multiply %b1, %c : $A
 %l = stablehlo.multiply %c1, %b : $A
 %s = stablehlo.add %k, %l : $A
 %q = stablehlo.multiply %b, %b : $A
 %m = stablehlo.multiply %b2, %d : $A
 %n = stablehlo.multiply %c2, %q : $A
 %u = stablehlo.add %m, %n : $A
 %t = stablehlo.sqrt %u : $A
 %w = stablehlo.add %t, %eps : $A
 %o = stablehlo.divide %s, %w : $A
 %p = stablehlo.multiply %lr, %o : $A
 %r = stablehlo.subtract %a, %p : $A)"}},
    {"cross_entropy",
     {"mean", "4x9x$T, 4xi32", "$T", "data ints:0:8", R"(
 %m = func.call @greatest_of_rows(%a) : (tensor<4x9x$T>) -> tensor<4x$T>
 %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4x$T>) -> $A
 %d = stablehlo.subtract %a, %mb : $A
 %e = stablehlo.exponential %d : $A
 %s = func.call @sum_rows(%e) : (tensor<4x9x$T>) -> tensor<4x$T>
 %l = stablehlo.log %s : tensor<4x$T>
 %i = stablehlo.iota dim = 1 : tensor<4x9xi32>
 %k = stablehlo.broadcast_in_dim %b, dims = [0] : ($B) -> tensor<4x9xi32>
 %p = stablehlo.compare EQ, %i, %k : (tensor<4x9xi32>, tensor<4x9xi32>) -> tensor<4x9xi1>
 %z = stablehlo.constant dense<0.0> : $A
 %c = stablehlo.select %p, %d, %z : tensor<4x9xi1>, $A
 %t = func.call @sum_rows(%c) : (tensor<4x9x$T>) -> tensor<4x$T>
 %u = stablehlo.subtract %l, %t : tensor<4x$T>
 %y = stablehlo.constant dense<0.0> : tensor<$T>
 %v = stablehlo.reduce(%u init: %y) applies stablehlo.add across dimensions = [0] : (tensor<4x$T>, tensor<$T>) -> tensor<$T>
 %f = stablehlo.constant dense<0.25> : tensor<$T>
 %r = stablehlo.multiply %v, %f : tensor<$T>)",
      kAdd}},
    {"embedding",
     {"lookup_and_gradient", "11x6x$T, 5xi32, 5x6x$T", "5x6x$T, 11x6x$T", "data ints:0:10 data", R"(
 %i = stablehlo.reshape %b : ($B) -> tensor<5x1xi32>
 %g = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, indices_are_sorted = false} : ($A, tensor<5x1xi32>) -> $R
 %r = stablehlo.add %g, %g : $R
 %z = stablehlo.constant dense<0.0> : $A
 %s = "stablehlo.scatter"(%z, %i, %c) ({
  ^bb0(%u: tensor<$T>, %v: tensor<$T>):
   %w = stablehlo.add %u, %v : tensor<$T>
   stablehlo.return %w : tensor<$T>
 }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : ($A, tensor<5x1xi32>, $C) -> $S)"}},
    {"recurrence", {"loop", "3x4x$T, 4x4x$T, 7x3x4x$T", "3x4x$T, 7x3x4x$T", "unit", R"(
 %zero = stablehlo.constant dense<0> : tensor<i32>
 %one = stablehlo.constant dense<1> : tensor<i32>
 %end = stablehlo.constant dense<7> : tensor<i32>
 %o = stablehlo.constant dense<0.0> : $C
 %r, %s, %k = stablehlo.while(%h = %a, %y = %o, %i = %zero) : $A, $C, tensor<i32>
  cond {
   %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
  } do {
   %x = stablehlo.dynamic_slice %c, %i, %zero, %zero, sizes = [1, 3, 4] : ($C, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x4x$T>
   %xr = stablehlo.reshape %x : (tensor<1x3x4x$T>) -> $A
   %m = stablehlo.dot_general %h, %b, contracting_dims = [1] x [0] : ($A, $B) -> $A
   %n = stablehlo.add %m, %xr : $A
   %t = stablehlo.tanh %n : $A
   %u = stablehlo.reshape %t : ($A) -> tensor<1x3x4x$T>
   %v = stablehlo.dynamic_update_slice %y, %u, %i, %zero, %zero : ($C, tensor<1x3x4x$T>, tensor<i32>, tensor<i32>, tensor<i32>) -> $C
   %l = stablehlo.add %i, %one : tensor<i32>
   stablehlo.return %t, %v, %l : $A, $C, tensor<i32>
  })"}},
    {"newton", {"square_root", "7x$T", "7x$T", "positive", R"(
 %zero = stablehlo.constant dense<0> : tensor<i32>
 %one = stablehlo.constant dense<1> : tensor<i32>
 %end = stablehlo.constant dense<8> : tensor<i32>
 %half = stablehlo.constant dense<0.5> : $A
 %r, %k = stablehlo.while(%x = %a, %i = %zero) : $A, tensor<i32>
  cond {
   %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
  } do {
   %q = stablehlo.divide %a, %x : $A
   %t = stablehlo.add %x, %q : $A
   %y = stablehlo.multiply %t, %half : $A
   %l = stablehlo.add %i, %one : tensor<i32>
   stablehlo.return %y, %l : $A, tensor<i32>
  })"}},
    {"sorted_pairs", {"keys_and_values", "5x19x$T, 5x19xi32", "5x19x$T, 5x19xi32", "data", R"(
 %r, %t = "stablehlo.sort"(%a, %b) ({
  ^bb0(%x: tensor<$T>, %y: tensor<$T>, %u: tensor<i32>, %v: tensor<i32>):
   %p = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<$T>, tensor<$T>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
 }) {dimension = 1 : i64, is_stable = true} : ($A, $B) -> ($R, $S)
 %s = stablehlo.negate %t : $S)"}},
    {"variance",
     {"two_passes", "4x9x$T", "4x$T", "data", R"(
 %n = stablehlo.constant dense<9.0> : tensor<4x$T>
 %m = func.call @sum_rows(%a) : (tensor<4x9x$T>) -> tensor<4x$T>
 %mean = stablehlo.divide %m, %n : tensor<4x$T>
 %mb = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<4x$T>) -> $A
 %d = stablehlo.subtract %a, %mb : $A
 %q = stablehlo.multiply %d, %d : $A
 %v = func.call @sum_rows(%q) : (tensor<4x9x$T>) -> tensor<4x$T>
 %r = stablehlo.divide %v, %n : tensor<4x$T>)",
      kAdd}},
    {"dropout", {"mask_from_bits", "33x5x$T, 2xui64", "33x5x$T", "data", R"(
 %k, %bits = stablehlo.rng_bit_generator %b, algorithm = THREE_FRY : ($B) -> (tensor<2xui64>, tensor<33x5xui32>)
 %l = stablehlo.constant dense<2147483648> : tensor<33x5xui32>
 %p = stablehlo.compare LT, %bits, %l : (tensor<33x5xui32>, tensor<33x5xui32>) -> tensor<33x5xi1>
 %z = stablehlo.constant dense<0.0> : $A
 %two = stablehlo.constant dense<2.0> : $A
 %m = stablehlo.multiply %a, %two : $A
 %r = stablehlo.select %p, %m, %z : tensor<33x5xi1>, $A)"}},
    {"mlp_gradient", {"two_layers", "8x5x$T, 5x6x$T, 6x3x$T, 8x3x$T", "5x6x$T, 6x3x$T", "unit", R"(
 %h = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> tensor<8x6x$T>
 %t = stablehlo.tanh %h : tensor<8x6x$T>
 %y = stablehlo.dot_general %t, %c, contracting_dims = [1] x [0] : (tensor<8x6x$T>, $C) -> $D
 %e = stablehlo.subtract %y, %d : $D
 %s = stablehlo.dot_general %t, %e, contracting_dims = [0] x [0] : (tensor<8x6x$T>, $D) -> $C
 %g = stablehlo.dot_general %e, %c, contracting_dims = [1] x [1] : ($D, $C) -> tensor<8x6x$T>
 %q = stablehlo.multiply %t, %t : tensor<8x6x$T>
 %one = stablehlo.constant dense<1.0> : tensor<8x6x$T>
 %u = stablehlo.subtract %one, %q : tensor<8x6x$T>
 %v = stablehlo.multiply %g, %u : tensor<8x6x$T>
 %r = stablehlo.dot_general %a, %v, contracting_dims = [0] x [0] : ($A, tensor<8x6x$T>) -> $B)"}},
    {"reflections", {"qr", "7x4x$T", "7x4x$T, 7x4x$T", "unit", R"(
 %r, %t = stablehlo.custom_call @Qr(%a) : ($A) -> ($R, tensor<4x$T>)
 %s = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%r, %t) : ($R, tensor<4x$T>) -> $S)"}},
    {"eigenvalues", {"square_root", "6x6x$T", "6x6x$T, 6x$T", "spd", R"(
 %v, %s = stablehlo.custom_call @Eigh(%a) {backend_config = "1,1,100,1e-6"} : ($A) -> ($A, $S)
 %q = stablehlo.sqrt %s : $S
 %b = stablehlo.broadcast_in_dim %q, dims = [1] : ($S) -> $A
 %m = stablehlo.multiply %v, %b : $A
 %r = stablehlo.dot_general %m, %v, contracting_dims = [1] x [1] : ($A, $A) -> $R)"}},
    {"singular_values", {"polar_factor", "5x3x$T", "5x3x$T, 3x$T", "unit", R"(
 %u, %s, %v = stablehlo.custom_call @tenon.svd(%a) : ($A) -> ($A, $S, tensor<3x3x$T>)
 %r = stablehlo.dot_general %u, %v, contracting_dims = [1] x [0] : ($A, tensor<3x3x$T>) -> $R)"}},
};

}  // namespace

void add_pattern_cases(CaseList& list) {
  for (const ModelPattern& pattern : kPatterns) {
    VariantCases added{
        "pattern/" + std::string(pattern.name), {}, {kBF16, kF16, kF32, kF64}, kOrdinaryValues};
    added.variants.push_back({std::string(pattern.program.variant), [&pattern](ElementType type) {
                                return MakeProgram(
                                    [&pattern, type](ValueClass values, uint64_t seed) {
                                      TextTemplate whole = pattern.program;
                                      whole.comparison = Comparison::kWhole;
                                      return make_text_program(whole, type, values, seed);
                                    });
                              }});
    add_variants(list, added);
  }
}

}  // namespace tenon::conformance
