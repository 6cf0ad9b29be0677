#include "hlo/artifact/vhlo_ops.h"

#include <algorithm>
#include <iterator>

namespace tenon::hlo::bytecode {
namespace {

// Fields are written "name:kind", in the order of properties, which is that of their names. A kind
// that ends in '?' may be absent.
struct OpRow {
  std::string_view name;
  std::string_view fields = {};
  Gather gather = Gather::kNone;
};

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

// Sorted by name. An op of an old version lacks newer fields and needs no upgrade: StableHLO's
// defaults are the values that the format's own upgrades fill in.
constexpr OpRow kVhloOps[] = {
    {"abs_v1"},
    {"add_v1"},
    {"after_all_v1"},
    {"all_gather_v1",
     "all_gather_dim:i64 channel_id:i64 replica_groups:groups use_global_device_ids:bool",
     Gather::kChannel},
    {"all_gather_v2",
     "all_gather_dim:i64 channel_id:i64 replica_groups:groups use_global_device_ids:bool",
     Gather::kChannel},
    {"all_reduce_v1", "channel_id:i64 replica_groups:groups use_global_device_ids:bool",
     Gather::kChannel},
    {"all_reduce_v2", "channel_id:i64 replica_groups:groups use_global_device_ids:bool",
     Gather::kChannel},
    {"all_to_all_v1",
     "channel_id:i64 concat_dimension:i64 replica_groups:groups split_count:i64 "
     "split_dimension:i64",
     Gather::kChannel},
    {"all_to_all_v2",
     "channel_id:i64 concat_dimension:i64 replica_groups:groups split_count:i64 "
     "split_dimension:i64",
     Gather::kChannel},
    {"and_v1"},
    {"async_done_v1"},
    {"async_start_v1"},
    {"atan2_v1"},
    {"batch_norm_grad_v1", "epsilon:f32 feature_index:i64"},
    {"batch_norm_inference_v1", "epsilon:f32 feature_index:i64"},
    {"batch_norm_training_v1", "epsilon:f32 feature_index:i64"},
    {"bitcast_convert_v1"},
    {"broadcast_in_dim_v1", "broadcast_dimensions:i64s"},
    {"broadcast_v1", "broadcast_sizes:i64s"},
    {"call_v1", "callee:symbol"},
    {"case_v1"},
    {"cbrt_v1"},
    {"cbrt_v2", "result_accuracy:accuracy"},
    {"ceil_v1"},
    {"cholesky_v1", "lower:bool"},
    {"clamp_v1"},
    {"collective_broadcast_v1", "channel_id:i64 replica_groups:groups", Gather::kChannel},
    {"collective_broadcast_v2", "channel_id:i64 has_dynamic_root:bool replica_groups:groups",
     Gather::kChannel},
    {"collective_permute_v1", "channel_id:i64 source_target_pairs:matrix", Gather::kChannel},
    {"collective_reduce_v1",
     "channel_id:i64 has_dynamic_root:bool replica_groups:groups use_global_device_ids:bool",
     Gather::kChannel},
    {"compare_v1", "compare_type:comparison comparison_direction:direction"},
    {"complex_v1"},
    {"composite_v1", "composite_attributes:dict decomposition:symbol name:str version:int"},
    {"composite_v2", "composite_attributes:dict decomposition:symbol name:str version:int"},
    {"concatenate_v1", "dimension:i64"},
    {"constant_v1", "value:dense"},
    {"convert_v1"},
    {"convolution_v1", kConvWithPadding, Gather::kConv},
    {"cosine_v1"},
    {"cosine_v2", "result_accuracy:accuracy"},
    {"count_leading_zeros_v1"},
    {"create_token_v1"},
    {"cross-replica-sum_v1", "replica_groups:groups"},
    {"custom_call_v1",
     "api_version:api backend_config:str_or_dict call_target_name:str called_computations:symbols "
     "has_side_effect:bool operand_layouts:layouts output_operand_aliases:aliases "
     "result_layouts:layouts"},
    {"custom_call_v2",
     "api_version:api backend_config:str_or_dict call_target_name:str called_computations:symbols "
     "has_side_effect:bool operand_layouts:layouts output_operand_aliases:aliases "
     "result_layouts:layouts result_tilings:tilings"},
    {"divide_v1"},
    {"dot_general_v1",
     "lhs_batching_dimensions:i64s lhs_contracting_dimensions:i64s precision_config:precisions "
     "rhs_batching_dimensions:i64s rhs_contracting_dimensions:i64s",
     Gather::kDot},
    {"dot_general_v2",
     "accumulation_type:any allow_imprecise_accumulation:any lhs_batching_dimensions:i64s "
     "lhs_component_count:any lhs_contracting_dimensions:i64s lhs_precision_type:any "
     "num_primitive_operations:any precision_config:precisions rhs_batching_dimensions:i64s "
     "rhs_component_count:any rhs_contracting_dimensions:i64s rhs_precision_type:any",
     Gather::kDotAlgorithm},
    {"dot_v1", "precision_config:precisions"},
    {"dynamic_broadcast_in_dim_v1",
     "broadcast_dimensions:i64s known_expanding_dimensions:i64s "
     "known_nonexpanding_dimensions:i64s"},
    {"dynamic_conv_v1", kConvWithPadding, Gather::kConv},
    {"dynamic_conv_v2", kConvWithoutPadding, Gather::kConv},
    {"dynamic_gather_v1",
     "collapsed_slice_dims:i64s index_vector_dim:i64 indices_are_sorted:bool offset_dims:i64s "
     "start_index_map:i64s",
     Gather::kGather},
    {"dynamic_gather_v2",
     "collapsed_slice_dims:i64s index_vector_dim:i64 indices_are_sorted:bool offset_dims:i64s "
     "operand_batching_dims:i64s start_index_map:i64s start_indices_batching_dims:i64s",
     Gather::kGather},
    {"dynamic_iota_v1", "iota_dimension:i64"},
    {"dynamic_pad_v1"},
    {"dynamic_reshape_v1"},
    {"dynamic_slice_v1", "slice_sizes:i64s"},
    {"dynamic_update_slice_v1"},
    {"einsum_v1", "einsum_config:str"},
    {"exponential_minus_one_v1"},
    {"exponential_minus_one_v2", "result_accuracy:accuracy"},
    {"exponential_v1"},
    {"exponential_v2", "result_accuracy:accuracy"},
    {"fft_v1", "fft_length:i64s fft_type:fft"},
    {"floor_v1"},
    {"func_v1",
     "arg_attrs:dicts function_type:function res_attrs:dicts sym_name:str sym_visibility:str",
     Gather::kFunc},
    {"gather_v1",
     "collapsed_slice_dims:i64s index_vector_dim:i64 indices_are_sorted:bool offset_dims:i64s "
     "slice_sizes:i64s start_index_map:i64s",
     Gather::kGather},
    {"gather_v2",
     "collapsed_slice_dims:i64s index_vector_dim:i64 indices_are_sorted:bool offset_dims:i64s "
     "operand_batching_dims:i64s slice_sizes:i64s start_index_map:i64s "
     "start_indices_batching_dims:i64s",
     Gather::kGather},
    {"get_dimension_size_v1", "dimension:i64"},
    {"get_tuple_element_v1", "index:i32"},
    {"if_v1"},
    {"imag_v1"},
    {"infeed_v1", "infeed_config:str layout:array"},
    {"iota_v1", "iota_dimension:i64"},
    {"is_finite_v1"},
    {"log_plus_one_v1"},
    {"log_plus_one_v2", "result_accuracy:accuracy"},
    {"log_v1"},
    {"log_v2", "result_accuracy:accuracy"},
    {"logistic_v1"},
    {"logistic_v2", "result_accuracy:accuracy"},
    {"map_v1", "dimensions:i64s"},
    {"maximum_v1"},
    {"minimum_v1"},
    {"multiply_v1"},
    {"negate_v1"},
    {"not_v1"},
    {"optimization_barrier_v1"},
    {"or_v1"},
    {"outfeed_v1", "outfeed_config:str"},
    {"pad_v1", "edge_padding_high:i64s edge_padding_low:i64s interior_padding:i64s"},
    {"partition_id_v1"},
    {"popcnt_v1"},
    {"power_v1"},
    {"real_dynamic_slice_v1"},
    {"real_v1"},
    {"recv_v1", "channel_id:i64 channel_type:i64 is_host_transfer:bool", Gather::kChannelHandle},
    {"recv_v2", "channel_id:i64 channel_type:i64 is_host_transfer:bool source_target_pairs:matrix",
     Gather::kChannelHandle},
    {"reduce_precision_v1", "exponent_bits:i32 mantissa_bits:i32"},
    {"reduce_scatter_v1",
     "channel_id:i64 replica_groups:groups scatter_dimension:i64 use_global_device_ids:bool",
     Gather::kChannel},
    {"reduce_v1", "dimensions:i64s"},
    {"reduce_window_v1",
     "base_dilations:i64s padding:matrix window_dilations:i64s window_dimensions:i64s "
     "window_strides:i64s"},
    {"remainder_v1"},
    {"replica_id_v1"},
    {"reshape_v1"},
    {"return_v1"},
    {"reverse_v1", "dimensions:i64s"},
    {"rng_bit_generator_v1", "rng_algorithm:algorithm"},
    {"rng_v1", "rng_distribution:distribution"},
    {"round_nearest_afz_v1"},
    {"round_nearest_even_v1"},
    {"rsqrt_v1"},
    {"rsqrt_v2", "result_accuracy:accuracy"},
    {"scatter_v1",
     "index_vector_dim:i64 indices_are_sorted:bool inserted_window_dims:i64s "
     "scatter_dims_to_operand_dims:i64s unique_indices:bool update_window_dims:i64s",
     Gather::kScatter},
    {"scatter_v2",
     "index_vector_dim:i64 indices_are_sorted:bool input_batching_dims:i64s "
     "inserted_window_dims:i64s scatter_dims_to_operand_dims:i64s "
     "scatter_indices_batching_dims:i64s unique_indices:bool update_window_dims:i64s",
     Gather::kScatter},
    {"select_and_scatter_v1", "padding:matrix window_dimensions:i64s window_strides:i64s"},
    {"select_v1"},
    {"send_v1", "channel_id:i64 channel_type:i64 is_host_transfer:bool", Gather::kChannelHandle},
    {"send_v2", "channel_id:i64 channel_type:i64 is_host_transfer:bool source_target_pairs:matrix",
     Gather::kChannelHandle},
    {"set_dimension_size_v1", "dimension:i64"},
    {"shift_left_v1"},
    {"shift_right_arithmetic_v1"},
    {"shift_right_logical_v1"},
    {"sign_v1"},
    {"sine_v1"},
    {"sine_v2", "result_accuracy:accuracy"},
    {"slice_v1", "limit_indices:i64s start_indices:i64s strides:i64s"},
    {"sort_v1", "dimension:i64 is_stable:bool"},
    {"sqrt_v1"},
    {"sqrt_v2", "result_accuracy:accuracy"},
    {"subtract_v1"},
    {"tan_v1"},
    {"tan_v2", "result_accuracy:accuracy"},
    {"tanh_v1"},
    {"tanh_v2", "result_accuracy:accuracy"},
    {"torch_index_select_v1", "batch_dims:i64 dim:i64"},
    {"transpose_v1", "permutation:i64s"},
    {"triangular_solve_v1", "left_side:bool lower:bool transpose_a:transpose unit_diagonal:bool"},
    {"tuple_v1"},
    {"unary_einsum_v1", "einsum_config:str"},
    {"uniform_dequantize_v1"},
    {"uniform_quantize_v1"},
    {"while_v1"},
    {"xor_v1"},
};

// Ops of other dialects that stand in mixed artifacts.
constexpr OpRow kForeignOps[] = {
    {"builtin.module", "sym_name:str? sym_visibility:str?"},
    {"builtin.unrealized_conversion_cast"},
    {"sdy.all_gather", "gathering_axes:any out_sharding:any"},
    {"sdy.all_slice", "out_sharding:any slicing_axes:any"},
    {"sdy.all_to_all", "out_sharding:any params:any"},
    {"sdy.collective_permute", "out_sharding:any"},
    {"sdy.manual_computation", "in_shardings:any manual_axes:any out_shardings:any"},
    {"sdy.mesh", "mesh:any sym_name:str"},
    {"sdy.named_computation", "in_shardings:any? name:str out_shardings:any?"},
    {"sdy.reshard", "sharding:any"},
    {"sdy.return"},
    {"sdy.sharding_constraint", "sharding:any"},
    {"sdy.sharding_group", "group_id:i64"},
};

constexpr bool by_name(const OpRow& a, const OpRow& b) { return a.name < b.name; }
static_assert(std::is_sorted(std::begin(kVhloOps), std::end(kVhloOps), by_name));
static_assert(std::is_sorted(std::begin(kForeignOps), std::end(kForeignOps), by_name));

const OpRow* find_row(std::span<const OpRow> rows, std::string_view name) {
  const auto row = std::lower_bound(rows.begin(), rows.end(), OpRow{name}, by_name);
  return row != rows.end() && row->name == name ? &*row : nullptr;
}

constexpr std::pair<std::string_view, FieldKind> kFieldKinds[] = {
    {"i64", FieldKind::kI64},
    {"i32", FieldKind::kI32},
    {"int", FieldKind::kInteger},
    {"f32", FieldKind::kF32},
    {"bool", FieldKind::kBool},
    {"str", FieldKind::kString},
    {"symbol", FieldKind::kSymbol},
    {"symbols", FieldKind::kSymbols},
    {"function", FieldKind::kFunctionType},
    {"dict", FieldKind::kDict},
    {"dicts", FieldKind::kDicts},
    {"str_or_dict", FieldKind::kStringOrDict},
    {"i64s", FieldKind::kI64s},
    {"matrix", FieldKind::kI64Matrix},
    {"bools", FieldKind::kBools},
    {"layouts", FieldKind::kLayouts},
    {"tilings", FieldKind::kTilings},
    {"dense", FieldKind::kDense},
    {"groups", FieldKind::kReplicaGroups},
    {"aliases", FieldKind::kAliases},
    {"precisions", FieldKind::kPrecisions},
    {"accuracy", FieldKind::kAccuracy},
    {"direction", FieldKind::kDirection},
    {"comparison", FieldKind::kComparison},
    {"api", FieldKind::kApiVersion},
    {"fft", FieldKind::kFft},
    {"algorithm", FieldKind::kAlgorithm},
    {"distribution", FieldKind::kDistribution},
    {"transpose", FieldKind::kTranspose},
    {"array", FieldKind::kArray},
    {"any", FieldKind::kAny},
};

std::vector<Field> parse_fields(std::string_view text) {
  std::vector<Field> fields;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const size_t colon = word.find(':');
    Field field{word.substr(0, colon)};
    std::string_view kind = word.substr(colon + 1);
    if (kind.ends_with('?')) {
      field.optional = true;
      kind.remove_suffix(1);
    }
    for (const auto& [name, value] : kFieldKinds) {
      if (name == kind) field.kind = value;
    }
    fields.push_back(field);
  }
  return fields;
}

OpPlan plan_of(const OpRow& row, std::string name) {
  OpPlan plan;
  plan.name = std::move(name);
  plan.fields = parse_fields(row.fields);
  plan.gather = row.gather;
  plan.resolved = true;
  return plan;
}

}  // namespace

Result<OpPlan> plan_op(const BytecodeReader& reader, std::string_view dialect,
                       std::string_view name) {
  if (dialect == "vhlo") {
    const OpRow* row = find_row(kVhloOps, name);
    if (row == nullptr) return reader.unknown(fmt::format("op vhlo.{}", name));
    const std::string_view plain = name.substr(0, name.rfind("_v"));
    OpPlan plan = plan_of(
        *row,
        fmt::format("{}.{}", plain == "func" || plain == "call" ? "func" : "stablehlo", plain));
    if (plain == "func") {
      plan.name = "func.func";
      plan.is_function = true;
    }
    plan.is_return = plain == "return";
    return plan;
  }
  std::string full = fmt::format("{}.{}", dialect, name);
  if (const OpRow* row = find_row(kForeignOps, full)) return plan_of(*row, std::move(full));
  if (dialect == "stablehlo" || dialect == "func") {
    return unimplemented(
        "artifact of {}: op {} is bytecode of StableHLO itself, which no version keeps readable; "
        "serialize a portable artifact (VHLO) or give the text",
        reader.container().producer, full);
  }
  OpPlan plan;
  plan.name = std::move(full);
  plan.resolved = true;
  plan.has_known_properties = false;
  return plan;
}

}  // namespace tenon::hlo::bytecode
