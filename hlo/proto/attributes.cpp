// Names and attributes of ops: what differs between HLO and StableHLO by its spelling alone.
#include <algorithm>
#include <functional>

#include "hlo/proto/converter.h"

namespace tenon::hlo {
namespace proto {
namespace {

namespace field = instruction_field;

// Ops without attributes, and their names in StableHLO or CHLO.
constexpr std::pair<std::string_view, std::string_view> kPlain[] = {
    {"abs", "stablehlo.abs"},
    {"acos", "chlo.acos"},
    {"acosh", "chlo.acosh"},
    {"add", "stablehlo.add"},
    {"after-all", "stablehlo.after_all"},
    {"and", "stablehlo.and"},
    {"asin", "chlo.asin"},
    {"asinh", "chlo.asinh"},
    {"atan2", "stablehlo.atan2"},
    {"atanh", "chlo.atanh"},
    {"bitcast-convert", "stablehlo.bitcast_convert"},
    {"cbrt", "stablehlo.cbrt"},
    {"ceil", "stablehlo.ceil"},
    {"clamp", "stablehlo.clamp"},
    {"complex", "stablehlo.complex"},
    {"convert", "stablehlo.convert"},
    {"cosh", "chlo.cosh"},
    {"cosine", "stablehlo.cosine"},
    {"count-leading-zeros", "stablehlo.count_leading_zeros"},
    {"divide", "stablehlo.divide"},
    {"dynamic-update-slice", "stablehlo.dynamic_update_slice"},
    {"erf", "chlo.erf"},
    {"exponential", "stablehlo.exponential"},
    {"exponential-minus-one", "stablehlo.exponential_minus_one"},
    {"floor", "stablehlo.floor"},
    {"imag", "stablehlo.imag"},
    {"is-finite", "stablehlo.is_finite"},
    {"log", "stablehlo.log"},
    {"log-plus-one", "stablehlo.log_plus_one"},
    {"logistic", "stablehlo.logistic"},
    {"maximum", "stablehlo.maximum"},
    {"minimum", "stablehlo.minimum"},
    {"multiply", "stablehlo.multiply"},
    {"negate", "stablehlo.negate"},
    {"not", "stablehlo.not"},
    {"opt-barrier", "stablehlo.optimization_barrier"},
    {"or", "stablehlo.or"},
    {"partition-id", "stablehlo.partition_id"},
    {"popcnt", "stablehlo.popcnt"},
    {"power", "stablehlo.power"},
    {"real", "stablehlo.real"},
    {"remainder", "stablehlo.remainder"},
    {"replica-id", "stablehlo.replica_id"},
    {"reshape", "stablehlo.reshape"},
    {"round-nearest-afz", "stablehlo.round_nearest_afz"},
    {"round-nearest-even", "stablehlo.round_nearest_even"},
    {"rsqrt", "stablehlo.rsqrt"},
    {"select", "stablehlo.select"},
    {"shift-left", "stablehlo.shift_left"},
    {"shift-right-arithmetic", "stablehlo.shift_right_arithmetic"},
    {"shift-right-logical", "stablehlo.shift_right_logical"},
    {"sign", "stablehlo.sign"},
    {"sine", "stablehlo.sine"},
    {"sinh", "chlo.sinh"},
    {"sqrt", "stablehlo.sqrt"},
    {"subtract", "stablehlo.subtract"},
    {"tan", "stablehlo.tan"},
    {"tanh", "stablehlo.tanh"},
    {"xor", "stablehlo.xor"},
};

// Functions of their own: what an attribute is made and destroyed by is long.
[[gnu::noinline]] void set_list(Dict& to, const char* key, I64s value) {
  insert(to, key, std::move(value));
}
[[gnu::noinline]] void set_integer(Dict& to, const char* key, int64_t value) {
  insert(to, key, value);
}
[[gnu::noinline]] void set_flag(Dict& to, const char* key, bool value) { insert(to, key, value); }
[[gnu::noinline]] void set_text(Dict& to, const char* key, std::string_view value) {
  insert(to, key, std::string(value));
}

Result<EnumAttr> word(EnumKind kind, std::string_view text) {
  const auto found = enum_from_word(kind, text);
  if (!found) return damaged("'{}' is no {}", text, enum_kind_name(kind));
  return *found;
}

Result<EnumAttr> number(EnumKind kind, int64_t value) {
  if (value < 0 || static_cast<size_t>(value) >= enum_size(kind)) {
    return damaged("{} is no {}", value, enum_kind_name(kind));
  }
  return EnumAttr{kind, static_cast<uint8_t>(value)};
}

[[gnu::noinline]] Status set_enum(Dict& to, const char* key, Result<EnumAttr> value) {
  if (!value) return value.error();
  insert(to, key, *value);
  return {};
}

Result<Attribute> only_dimension(const HloInstruction& op) {
  const I64s dimensions = op.dimensions();
  if (dimensions.size() != 1) return damaged("{} has {} dimensions", op.opcode, dimensions.size());
  return Attribute(dimensions[0]);
}

// DotDimensionNumbers
Attribute dot_dims(const HloInstruction& op) {
  const ProtoMessage dims = op.proto.message(field::kDotDims);
  return DotDims{dims.integers(3), dims.integers(4), dims.integers(1), dims.integers(2)};
}

// GatherDimensionNumbers
Attribute gather_dims(const HloInstruction& op) {
  const ProtoMessage dims = op.proto.message(field::kGatherDims);
  return GatherDims{dims.integers(1), dims.integers(2), dims.integers(5),
                    dims.integers(6), dims.integers(3), dims.integer(4)};
}

// ScatterDimensionNumbers
Attribute scatter_dims(const HloInstruction& op) {
  const ProtoMessage dims = op.proto.message(field::kScatterDims);
  return ScatterDims{dims.integers(1), dims.integers(2), dims.integers(5),
                     dims.integers(6), dims.integers(3), dims.integer(4)};
}

// ConvolutionDimensionNumbers
Attribute convolution_dims(const HloInstruction& op) {
  const ProtoMessage dims = op.proto.message(field::kConvolutionDims);
  ConvDims read;
  read.input_batch = dims.integer(7);
  read.input_feature = dims.integer(8);
  read.input_spatial = dims.integers(11);
  read.kernel_input_feature = dims.integer(3);
  read.kernel_output_feature = dims.integer(4);
  read.kernel_spatial = dims.integers(6);
  read.output_batch = dims.integer(9);
  read.output_feature = dims.integer(10);
  read.output_spatial = dims.integers(12);
  return read;
}

// Window, a WindowDimension for each dimension.
struct ProtoWindow {
  explicit ProtoWindow(const HloInstruction& op) {
    for (const ProtoMessage& each : op.proto.message(field::kWindow).messages(1)) {
      sizes.push_back(each.integer(1));
      strides.push_back(each.integer(2));
      padding.values.push_back(each.integer(3));
      padding.values.push_back(each.integer(4));
      window_dilations.push_back(each.integer(5));
      base_dilations.push_back(each.integer(6));
      reversal.values.push_back(each.flag(7) ? 1 : 0);
    }
    padding.rows = static_cast<int64_t>(sizes.size());
    padding.columns = 2;
  }
  I64s sizes, strides, window_dilations, base_dilations;
  I64Matrix padding;
  BoolsAttr reversal;
};

void set_precision(const HloInstruction& op, Dict& to) {
  ArrayAttr precisions;
  for (const int64_t each : op.proto.message(field::kPrecision).integers(1)) {
    const int64_t known = each >= 0 && each <= 2 ? each : 0;
    precisions.emplace_back(EnumAttr{EnumKind::kPrecision, static_cast<uint8_t>(known)});
  }
  if (!precisions.empty()) insert(to, "precision_config", std::move(precisions));
}

Status dot(const HloInstruction& op, Dict& to) {
  insert(to, "dot_dimension_numbers", dot_dims(op));
  set_precision(op, to);
  return {};
}

Status convolution(const HloInstruction& op, Dict& to) {
  ProtoWindow window(op);
  set_list(to, "window_strides", std::move(window.strides));
  insert(to, "padding", std::move(window.padding));
  set_list(to, "lhs_dilation", std::move(window.base_dilations));
  set_list(to, "rhs_dilation", std::move(window.window_dilations));
  insert(to, "window_reversal", std::move(window.reversal));
  insert(to, "dimension_numbers", convolution_dims(op));
  set_integer(to, "feature_group_count", std::max<int64_t>(op.integer(field::kFeatureGroups), 1));
  set_integer(to, "batch_group_count", std::max<int64_t>(op.integer(field::kBatchGroups), 1));
  set_precision(op, to);
  return {};
}

Status reduce_window(const HloInstruction& op, Dict& to) {
  ProtoWindow window(op);
  set_list(to, "window_dimensions", std::move(window.sizes));
  set_list(to, "window_strides", std::move(window.strides));
  set_list(to, "base_dilations", std::move(window.base_dilations));
  set_list(to, "window_dilations", std::move(window.window_dilations));
  insert(to, "padding", std::move(window.padding));
  return {};
}

Status select_and_scatter(const HloInstruction& op, Dict& to) {
  ProtoWindow window(op);
  set_list(to, "window_dimensions", std::move(window.sizes));
  set_list(to, "window_strides", std::move(window.strides));
  insert(to, "padding", std::move(window.padding));
  return {};
}

Status slice(const HloInstruction& op, Dict& to) {
  I64s starts, limits, strides;
  for (const ProtoMessage& each : op.proto.messages(field::kSliceDims)) {
    starts.push_back(each.integer(1));
    limits.push_back(each.integer(2));
    strides.push_back(each.integer(3, 1));
  }
  set_list(to, "start_indices", std::move(starts));
  set_list(to, "limit_indices", std::move(limits));
  set_list(to, "strides", std::move(strides));
  return {};
}

Status pad(const HloInstruction& op, Dict& to) {
  I64s low, high, interior;
  for (const ProtoMessage& each : op.proto.message(field::kPadding).messages(1)) {
    low.push_back(each.integer(1));
    high.push_back(each.integer(2));
    interior.push_back(each.integer(3));
  }
  set_list(to, "edge_padding_low", std::move(low));
  set_list(to, "edge_padding_high", std::move(high));
  set_list(to, "interior_padding", std::move(interior));
  return {};
}

Status compare(const HloInstruction& op, Dict& to) {
  TENON_ASSIGN(const EnumAttr direction,
               word(EnumKind::kComparisonDirection, op.proto.text(field::kDirection)));
  insert(to, "comparison_direction", direction);
  const std::string_view type = op.proto.text(field::kComparisonType);
  if (type.empty()) return {};
  return set_enum(to, "compare_type", word(EnumKind::kComparisonType, type));
}

Status fft(const HloInstruction& op, Dict& to) {
  TENON_ASSIGN(const EnumAttr type, number(EnumKind::kFftType, op.integer(field::kFftType)));
  insert(to, "fft_type", type);
  set_list(to, "fft_length", op.proto.integers(field::kFftLength));
  return {};
}

Status gather(const HloInstruction& op, Dict& to) {
  insert(to, "dimension_numbers", gather_dims(op));
  set_list(to, "slice_sizes", op.proto.integers(field::kGatherSliceSizes));
  set_flag(to, "indices_are_sorted", op.proto.flag(field::kIndicesAreSorted));
  return {};
}

// XLA drops a window that is partly out of range.
Status scatter(const HloInstruction& op, Dict& to) {
  insert(to, "scatter_dimension_numbers", scatter_dims(op));
  set_flag(to, "indices_are_sorted", op.proto.flag(field::kIndicesAreSorted));
  set_flag(to, "unique_indices", op.proto.flag(field::kUniqueIndices));
  set_flag(to, "whole_windows", true);
  return {};
}

Status batch_norm(const HloInstruction& op, Dict& to) {
  insert(to, "epsilon", FloatAttr::of(ElementType::kF32, op.proto.real(field::kEpsilon)));
  set_integer(to, "feature_index", op.integer(field::kFeatureIndex));
  return {};
}

Status triangular_solve(const HloInstruction& op, Dict& to) {
  const ProtoMessage options = op.proto.message(field::kTriangularSolve);
  set_flag(to, "left_side", options.flag(1));
  set_flag(to, "lower", options.flag(2));
  set_flag(to, "unit_diagonal", options.flag(3));
  return set_enum(to, "transpose_a", number(EnumKind::kTranspose, options.integer(4)));
}

Status cholesky(const HloInstruction& op, Dict& to) {
  set_flag(to, "lower", op.proto.message(field::kCholesky).flag(1));
  return {};
}

Status sort(const HloInstruction& op, Dict& to) {
  TENON_ASSIGN(Attribute dimension, only_dimension(op));
  insert(to, "dimension", std::move(dimension));
  set_flag(to, "is_stable", op.proto.flag(field::kIsStable));
  return {};
}

Status reduce_precision(const HloInstruction& op, Dict& to) {
  insert(to, "exponent_bits", IntegerAttr{op.integer(field::kExponentBits), ElementType::kS32});
  insert(to, "mantissa_bits", IntegerAttr{op.integer(field::kMantissaBits), ElementType::kS32});
  return {};
}

Status rng_bit_generator(const HloInstruction& op, Dict& to) {
  return set_enum(to, "rng_algorithm",
                  number(EnumKind::kRngAlgorithm, op.integer(field::kRngAlgorithm)));
}

Status custom_call(const HloInstruction& op, Dict& to) {
  set_text(to, "call_target_name", op.proto.text(field::kCustomCallTarget));
  set_text(to, "backend_config", op.proto.text(field::kBackendConfig));
  set_flag(to, "has_side_effect", op.proto.flag(field::kHasSideEffect));
  return set_enum(to, "api_version",
                  number(EnumKind::kCustomCallApiVersion, op.integer(field::kApiVersion)));
}

Status top_k(const HloInstruction& op, Dict& to) {
  if (!op.proto.flag(field::kIsLargest)) return unimplemented("the least elements");
  set_integer(to, "k", op.integer(field::kTopK));
  return {};
}

// An attribute that is the list of dimensions, or the only one.
template <const char* const& name>
Status dimensions_as(const HloInstruction& op, Dict& to) {
  set_list(to, name, op.dimensions());
  return {};
}
template <const char* const& name>
Status dimension_as(const HloInstruction& op, Dict& to) {
  TENON_ASSIGN(Attribute dimension, only_dimension(op));
  insert(to, name, std::move(dimension));
  return {};
}
constexpr const char* kBroadcastDimensionsKey = "broadcast_dimensions";
constexpr const char* kDimensionsKey = "dimensions";
constexpr const char* kDimensionKey = "dimension";
constexpr const char* kIotaDimensionKey = "iota_dimension";
constexpr const char* kPermutationKey = "permutation";

Status dynamic_slice(const HloInstruction& op, Dict& to) {
  set_list(to, "slice_sizes", op.proto.integers(field::kDynamicSliceSizes));
  return {};
}

struct ProtoOpRow {
  std::string_view opcode;
  std::string_view name;
  Status (*attributes)(const HloInstruction&, Dict&);
};

constexpr ProtoOpRow kRows[] = {
    {"batch-norm-grad", "stablehlo.batch_norm_grad", &batch_norm},
    {"batch-norm-inference", "stablehlo.batch_norm_inference", &batch_norm},
    {"batch-norm-training", "stablehlo.batch_norm_training", &batch_norm},
    {"broadcast", "stablehlo.broadcast_in_dim", &dimensions_as<kBroadcastDimensionsKey>},
    {"cholesky", "stablehlo.cholesky", &cholesky},
    {"compare", "stablehlo.compare", &compare},
    {"concatenate", "stablehlo.concatenate", &dimension_as<kDimensionKey>},
    {"convolution", "stablehlo.convolution", &convolution},
    {"custom-call", "stablehlo.custom_call", &custom_call},
    {"dot", "stablehlo.dot_general", &dot},
    {"dynamic-slice", "stablehlo.dynamic_slice", &dynamic_slice},
    {"fft", "stablehlo.fft", &fft},
    {"gather", "stablehlo.gather", &gather},
    {"get-dimension-size", "stablehlo.get_dimension_size", &dimension_as<kDimensionKey>},
    {"iota", "stablehlo.iota", &dimension_as<kIotaDimensionKey>},
    {"map", "stablehlo.map", &dimensions_as<kDimensionsKey>},
    {"pad", "stablehlo.pad", &pad},
    {"reduce", "stablehlo.reduce", &dimensions_as<kDimensionsKey>},
    {"reduce-precision", "stablehlo.reduce_precision", &reduce_precision},
    {"reduce-window", "stablehlo.reduce_window", &reduce_window},
    {"reverse", "stablehlo.reverse", &dimensions_as<kDimensionsKey>},
    {"rng-bit-generator", "stablehlo.rng_bit_generator", &rng_bit_generator},
    {"scatter", "stablehlo.scatter", &scatter},
    {"select-and-scatter", "stablehlo.select_and_scatter", &select_and_scatter},
    {"slice", "stablehlo.slice", &slice},
    {"sort", "stablehlo.sort", &sort},
    {"topk", "chlo.top_k", &top_k},
    {"transpose", "stablehlo.transpose", &dimensions_as<kPermutationKey>},
    {"triangular-solve", "stablehlo.triangular_solve", &triangular_solve},
};

}  // namespace
}  // namespace proto

Result<NamedAttributes> attributes_of(const HloInstruction& op) {
  NamedAttributes named;
  for (const auto& [opcode, name] : proto::kPlain) {
    if (opcode == op.opcode) named.name = name;
  }
  const auto* const row = std::ranges::find(proto::kRows, op.opcode, &proto::ProtoOpRow::opcode);
  if (row == std::end(proto::kRows)) return named;
  named.name = row->name;
  TENON_TRY(row->attributes(op, named.attributes));
  return named;
}

}  // namespace tenon::hlo
