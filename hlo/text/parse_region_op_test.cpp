// Ops with regions, calls, structure and communication.
#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

using testing::Form;

class RegionForm : public ::testing::TestWithParam<Form> {};
TEST_P(RegionForm, IsReadAndRoundTrips) {
  const auto module = testing::read(testing::program(GetParam().text));
  ASSERT_TRUE(module);
  EXPECT_EQ(testing::body_of(*module), GetParam().hlo);
  testing::expect_round_trip(*module);
}

const Form kRegionForms[] = {
    Form{
        "ReduceApplies",
        R"(%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>)",
        R"(%0 = stablehlo.reduce(%arg0, %arg4) {dimensions = [0]} ({
^bb0(%arg8: f32[], %arg9: f32[]):
  %1 = stablehlo.add(%arg8, %arg9) : f32[]
  stablehlo.return(%1)
}) : f32[3]
)"},
    Form{
        "ReduceRegion",
        R"(%0 = stablehlo.reduce(%a init: %s) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
 reducer(%x: tensor<f32>, %y: tensor<f32>) {
 %1 = stablehlo.maximum %x, %y : tensor<f32>
 stablehlo.return %1 : tensor<f32>
 })",
        R"(%0 = stablehlo.reduce(%arg0, %arg4) {dimensions = [1]} ({
^bb0(%arg8: f32[], %arg9: f32[]):
  %1 = stablehlo.maximum(%arg8, %arg9) : f32[]
  stablehlo.return(%1)
}) : f32[2]
)"},
    Form{"ReduceVariadic", R"(%z = stablehlo.constant dense<0> : tensor<i32>
%0:2 = stablehlo.reduce(%a init: %s), (%n init: %z) across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
 reducer(%x: tensor<f32>, %y: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>) {
 stablehlo.return %y, %u : tensor<f32>, tensor<i32>
 })",
         R"(%0 = stablehlo.constant() {value = dense<0> : s32[]} : s32[]
%1:2 = stablehlo.reduce(%arg0, %arg3, %arg4, %0) {dimensions = [0, 1]} ({
^bb0(%arg8: f32[], %arg9: s32[], %arg10: f32[], %arg11: s32[]):
  stablehlo.return(%arg10, %arg9)
}) : f32[], s32[]
)"},
    Form{
        "While",
        R"(%0:2 = stablehlo.while(%k = %i, %x = %s) : tensor<i64>, tensor<f32> attributes {note = "n"}
 cond {
 %1 = stablehlo.compare LT, %k, %i : (tensor<i64>, tensor<i64>) -> tensor<i1>
 stablehlo.return %1 : tensor<i1>
 } do {
 %1 = stablehlo.add %x, %x : tensor<f32>
 stablehlo.return %k, %1 : tensor<i64>, tensor<f32>
 })",
        R"(%0:2 = stablehlo.while(%arg5, %arg4) {note = "n"} ({
^bb0(%arg8: s64[], %arg9: f32[]):
  %1 = stablehlo.compare(%arg8, %arg5) {comparison_direction = LT} : pred[]
  stablehlo.return(%1)
}, {
^bb0(%arg10: s64[], %arg11: f32[]):
  %2 = stablehlo.add(%arg11, %arg11) : f32[]
  stablehlo.return(%arg10, %2)
}) : s64[], f32[]
)"},
    Form{"WhileWithoutState", R"(%0 = stablehlo.constant dense<false> : tensor<i1>
stablehlo.while()
 cond {
 stablehlo.return %0 : tensor<i1>
 } do {
 stablehlo.return
 })",
         R"(%0 = stablehlo.constant() {value = dense<false> : pred[]} : pred[]
stablehlo.while() ({
  stablehlo.return(%0)
}, {
  stablehlo.return()
})
)"},
    Form{"Tuple", R"(%0 = stablehlo.tuple %a, %t : tuple<tensor<2x3xf32>, !stablehlo.token>
%1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<2x3xf32>, !stablehlo.token>) -> !stablehlo.token)",
         R"(%0 = stablehlo.tuple(%arg0, %arg7) : tuple<f32[2,3], token>
%1 = stablehlo.get_tuple_element(%0) {index = 1} : token
)"},
    Form{"OptimizationBarrier",
         R"(%0:2 = stablehlo.optimization_barrier %a, %n : tensor<2x3xf32>, tensor<2x3xi32>)",
         R"(%0:2 = stablehlo.optimization_barrier(%arg0, %arg3) : f32[2,3], s32[2,3]
)"},
    Form{"OptimizationBarrierEmpty", R"(stablehlo.optimization_barrier())",
         R"(stablehlo.optimization_barrier()
)"},
    Form{"AfterAll", R"(%0 = stablehlo.after_all %t, %t : !stablehlo.token)",
         R"(%0 = stablehlo.after_all(%arg7, %arg7) : token
)"},
    Form{"AfterAllNothing", R"(%0 = stablehlo.after_all : !stablehlo.token)",
         R"(%0 = stablehlo.after_all() : token
)"},
    Form{"CreateToken", R"(%0 = stablehlo.create_token : !stablehlo.token)",
         R"(%0 = stablehlo.create_token() : token
)"},
    Form{"ReplicaId", R"(%0 = stablehlo.replica_id : tensor<ui32>)",
         R"(%0 = stablehlo.replica_id() : u32[]
)"},
    Form{"PartitionId", R"(%0 = stablehlo.partition_id : tensor<ui32>)",
         R"(%0 = stablehlo.partition_id() : u32[]
)"},
    Form{
        "CustomCall",
        R"(%0 = stablehlo.custom_call @foo(%a) {api_version = 2 : i32, backend_config = "cfg", has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>)",
        R"(%0 = stablehlo.custom_call(%arg0) {api_version = API_VERSION_STATUS_RETURNING, backend_config = "cfg", call_target_name = "foo", has_side_effect = true, operand_layouts = [[0, 1]], result_layouts = [[1, 0]]} : f32[2,3]
)"},
    Form{
        "CustomCallQuoted",
        R"(%0:2 = stablehlo.custom_call @"a b"(%a) {api_version = 4 : i32, backend_config = {k = 1 : i32}, output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<i1>))",
        R"(%0:2 = stablehlo.custom_call(%arg0) {api_version = API_VERSION_TYPED_FFI, backend_config = {k = 1 : i32}, call_target_name = "a b", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]} : f32[2,3], pred[]
)"},
    Form{
        "CustomCallNothing",
        R"(stablehlo.custom_call @foo() {api_version = 1 : i32, called_computations = [@g]} : () -> ())",
        R"(stablehlo.custom_call() {call_target_name = "foo", called_computations = [@g]}
)"},
    Form{
        "Composite",
        R"(%0 = stablehlo.composite "my.op" %a, %b {composite_attributes = {k = 1 : i64}, decomposition = @g2, version = 1 : i32} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)",
        R"(%0 = stablehlo.composite(%arg0, %arg1) {composite_attributes = {k = 1 : i64}, decomposition = @g2, name = "my.op", version = 1} : f32[2,3]
)"},
    Form{"CallPlain",
         R"(%0 = call @g2(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)",
         R"(%0 = func.call(%arg0, %arg1) {callee = @g2} : f32[2,3]
)"},
    Form{
        "CallDialect",
        R"(%0 = func.call @g2(%a, %b) {k} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)",
        R"(%0 = func.call(%arg0, %arg1) {callee = @g2, k} : f32[2,3]
)"},
    Form{"If", R"(%0 = stablehlo.constant dense<true> : tensor<i1>
%1 = "stablehlo.if"(%0) ({
 stablehlo.return %a : tensor<2x3xf32>
 }, {
 "stablehlo.return"(%b) : (tensor<2x3xf32>) -> ()
 }) : (tensor<i1>) -> tensor<2x3xf32>)",
         R"(%0 = stablehlo.constant() {value = dense<true> : pred[]} : pred[]
%1 = stablehlo.if(%0) ({
  stablehlo.return(%arg0)
}, {
  stablehlo.return(%arg1)
}) : f32[2,3]
)"},
    Form{"Case", R"(%0 = stablehlo.constant dense<0> : tensor<i32>
%1 = "stablehlo.case"(%0) ({
 stablehlo.return %a : tensor<2x3xf32>
 }) {note} : (tensor<i32>) -> tensor<2x3xf32>)",
         R"(%0 = stablehlo.constant() {value = dense<0> : s32[]} : s32[]
%1 = stablehlo.case(%0) {note} ({
  stablehlo.return(%arg0)
}) : f32[2,3]
)"},
    Form{"Sort", R"(%0 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
 %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
 stablehlo.return %1 : tensor<i1>
 }) : (tensor<2x3xf32>) -> tensor<2x3xf32>)",
         R"(%0 = stablehlo.sort(%arg0) {dimension = 1, is_stable = true} ({
^bb0(%arg8: f32[], %arg9: f32[]):
  %1 = stablehlo.compare(%arg8, %arg9) {comparison_direction = LT} : pred[]
  stablehlo.return(%1)
}) : f32[2,3]
)"},
    Form{"SortOld", R"(%0 = "stablehlo.sort"(%a) ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
 %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
 stablehlo.return %1 : tensor<i1>
 }) {dimension = -1 : i64, is_stable = false} : (tensor<2x3xf32>) -> tensor<2x3xf32>)",
         R"(%0 = stablehlo.sort(%arg0) ({
^bb0(%arg8: f32[], %arg9: f32[]):
  %1 = stablehlo.compare(%arg8, %arg9) {comparison_direction = LT} : pred[]
  stablehlo.return(%1)
}) : f32[2,3]
)"},
    Form{"Map", R"(%0 = "stablehlo.map"(%a) ({
^bb0(%x: tensor<f32>):
 stablehlo.return %x : tensor<f32>
 }) {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>)",
         R"(%0 = stablehlo.map(%arg0) {dimensions = [0, 1]} ({
^bb0(%arg8: f32[]):
  stablehlo.return(%arg8)
}) : f32[2,3]
)"},
    Form{
        "ReduceWindow",
        R"(%0 = "stablehlo.reduce_window"(%a, %s) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 1>, padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
 %1 = stablehlo.add %x, %y : tensor<f32>
 stablehlo.return %1 : tensor<f32>
 }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<1x3xf32>)",
        R"(%0 = stablehlo.reduce_window(%arg0, %arg4) {padding = [[0, 0], [1, 0]], window_dimensions = [2, 2]} ({
^bb0(%arg8: f32[], %arg9: f32[]):
  %1 = stablehlo.add(%arg8, %arg9) : f32[]
  stablehlo.return(%1)
}) : f32[1,3]
)"},
    Form{
        "AllReduce",
        R"(%0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
 %1 = stablehlo.add %x, %y : tensor<f32>
 stablehlo.return %1 : tensor<f32>
 }) : (tensor<2x3xf32>) -> tensor<2x3xf32>)",
        R"(%0 = stablehlo.all_reduce(%arg0) {channel_handle = 1, replica_groups = [[0, 1]], use_global_device_ids = true} ({
^bb0(%arg8: f32[], %arg9: f32[]):
  %1 = stablehlo.add(%arg8, %arg9) : f32[]
  stablehlo.return(%1)
}) : f32[2,3]
)"},
    Form{"Gather", R"(%0 = stablehlo.constant dense<0> : tensor<4x1xi64>
%1 = "stablehlo.gather"(%a, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<4x3xf32>)",
         R"(%0 = stablehlo.constant() {value = dense<0> : s64[4,1]} : s64[4,1]
%1 = stablehlo.gather(%arg0, %0) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = [1, 3]} : f32[4,3]
)"},
    Form{"TriangularSolve", R"(%0 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
%1 = "stablehlo.triangular_solve"(%0, %a) {left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false} : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)",
         R"(%0 = stablehlo.constant() {value = dense<1.0> : f32[2,2]} : f32[2,2]
%1 = stablehlo.triangular_solve(%0, %arg0) {left_side = true, lower = true, transpose_a = NO_TRANSPOSE, unit_diagonal = false} : f32[2,3]
)"},
    Form{
        "Infeed",
        R"(%0:2 = "stablehlo.infeed"(%t) {infeed_config = "c", layout = [[0, 1]]} : (!stablehlo.token) -> (tensor<2x3xf32>, !stablehlo.token))",
        R"(%0:2 = stablehlo.infeed(%arg7) {infeed_config = "c", layout = [[0 : i64, 1 : i64]]} : f32[2,3], token
)"},
    Form{
        "Send",
        R"(%0 = "stablehlo.send"(%a, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true} : (tensor<2x3xf32>, !stablehlo.token) -> !stablehlo.token)",
        R"(%0 = stablehlo.send(%arg0, %arg7) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true} : token
)"}};
INSTANTIATE_TEST_SUITE_P(Table, RegionForm, ::testing::ValuesIn(kRegionForms),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace tenon::hlo
