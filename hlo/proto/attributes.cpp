// Names and attributes of ops: what differs between HLO and StableHLO by its spelling alone.
#include <algorithm>
#include <functional>

#include "hlo/proto/converter.h"

namespace tenon::hlo {
namespace proto {
namespace {

namespace field = instruction_field;

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

Status dynamic_slice(const HloInstruction& op, Dict& to) {
  set_list(to, "slice_sizes", op.proto.integers(field::kDynamicSliceSizes));
  return {};
}

// An op that differs by its spelling alone.
struct ProtoOpRow {
  std::string_view opcode;
  std::string_view name;             ///< In StableHLO or CHLO.
  const char* dimensions = nullptr;  ///< The attribute that its list of dimensions is.
  const char* dimension = nullptr;   ///< The attribute that its only dimension is.
  Status (*attributes)(const HloInstruction&, Dict&) = nullptr;
  size_t regions = 0;  ///< Computations that it applies.
};

constexpr ProtoOpRow kRows[] = {
    {.opcode = "abs", .name = "stablehlo.abs"},
    {.opcode = "acos", .name = "chlo.acos"},
    {.opcode = "acosh", .name = "chlo.acosh"},
    {.opcode = "add", .name = "stablehlo.add"},
    {.opcode = "after-all", .name = "stablehlo.after_all"},
    {.opcode = "and", .name = "stablehlo.and"},
    {.opcode = "asin", .name = "chlo.asin"},
    {.opcode = "asinh", .name = "chlo.asinh"},
    {.opcode = "atan2", .name = "stablehlo.atan2"},
    {.opcode = "atanh", .name = "chlo.atanh"},
    {.opcode = "batch-norm-grad", .name = "stablehlo.batch_norm_grad", .attributes = &batch_norm},
    {.opcode = "batch-norm-inference",
     .name = "stablehlo.batch_norm_inference",
     .attributes = &batch_norm},
    {.opcode = "batch-norm-training",
     .name = "stablehlo.batch_norm_training",
     .attributes = &batch_norm},
    {.opcode = "bitcast-convert", .name = "stablehlo.bitcast_convert"},
    {.opcode = "broadcast",
     .name = "stablehlo.broadcast_in_dim",
     .dimensions = "broadcast_dimensions"},
    {.opcode = "cbrt", .name = "stablehlo.cbrt"},
    {.opcode = "ceil", .name = "stablehlo.ceil"},
    {.opcode = "cholesky", .name = "stablehlo.cholesky", .attributes = &cholesky},
    {.opcode = "clamp", .name = "stablehlo.clamp"},
    {.opcode = "compare", .name = "stablehlo.compare", .attributes = &compare},
    {.opcode = "complex", .name = "stablehlo.complex"},
    {.opcode = "concatenate", .name = "stablehlo.concatenate", .dimension = "dimension"},
    {.opcode = "convert", .name = "stablehlo.convert"},
    {.opcode = "convolution", .name = "stablehlo.convolution", .attributes = &convolution},
    {.opcode = "cosh", .name = "chlo.cosh"},
    {.opcode = "cosine", .name = "stablehlo.cosine"},
    {.opcode = "count-leading-zeros", .name = "stablehlo.count_leading_zeros"},
    {.opcode = "custom-call", .name = "stablehlo.custom_call", .attributes = &custom_call},
    {.opcode = "divide", .name = "stablehlo.divide"},
    {.opcode = "dot", .name = "stablehlo.dot_general", .attributes = &dot},
    {.opcode = "dynamic-slice", .name = "stablehlo.dynamic_slice", .attributes = &dynamic_slice},
    {.opcode = "dynamic-update-slice", .name = "stablehlo.dynamic_update_slice"},
    {.opcode = "erf", .name = "chlo.erf"},
    {.opcode = "exponential", .name = "stablehlo.exponential"},
    {.opcode = "exponential-minus-one", .name = "stablehlo.exponential_minus_one"},
    {.opcode = "fft", .name = "stablehlo.fft", .attributes = &fft},
    {.opcode = "floor", .name = "stablehlo.floor"},
    {.opcode = "gather", .name = "stablehlo.gather", .attributes = &gather},
    {.opcode = "get-dimension-size",
     .name = "stablehlo.get_dimension_size",
     .dimension = "dimension"},
    {.opcode = "imag", .name = "stablehlo.imag"},
    {.opcode = "iota", .name = "stablehlo.iota", .dimension = "iota_dimension"},
    {.opcode = "is-finite", .name = "stablehlo.is_finite"},
    {.opcode = "log", .name = "stablehlo.log"},
    {.opcode = "log-plus-one", .name = "stablehlo.log_plus_one"},
    {.opcode = "logistic", .name = "stablehlo.logistic"},
    {.opcode = "map", .name = "stablehlo.map", .dimensions = "dimensions", .regions = 1},
    {.opcode = "maximum", .name = "stablehlo.maximum"},
    {.opcode = "minimum", .name = "stablehlo.minimum"},
    {.opcode = "multiply", .name = "stablehlo.multiply"},
    {.opcode = "negate", .name = "stablehlo.negate"},
    {.opcode = "not", .name = "stablehlo.not"},
    {.opcode = "opt-barrier", .name = "stablehlo.optimization_barrier"},
    {.opcode = "or", .name = "stablehlo.or"},
    {.opcode = "pad", .name = "stablehlo.pad", .attributes = &pad},
    {.opcode = "partition-id", .name = "stablehlo.partition_id"},
    {.opcode = "popcnt", .name = "stablehlo.popcnt"},
    {.opcode = "power", .name = "stablehlo.power"},
    {.opcode = "real", .name = "stablehlo.real"},
    {.opcode = "reduce", .name = "stablehlo.reduce", .dimensions = "dimensions", .regions = 1},
    {.opcode = "reduce-precision",
     .name = "stablehlo.reduce_precision",
     .attributes = &reduce_precision},
    {.opcode = "reduce-window",
     .name = "stablehlo.reduce_window",
     .attributes = &reduce_window,
     .regions = 1},
    {.opcode = "remainder", .name = "stablehlo.remainder"},
    {.opcode = "replica-id", .name = "stablehlo.replica_id"},
    {.opcode = "reshape", .name = "stablehlo.reshape"},
    {.opcode = "reverse", .name = "stablehlo.reverse", .dimensions = "dimensions"},
    {.opcode = "rng-bit-generator",
     .name = "stablehlo.rng_bit_generator",
     .attributes = &rng_bit_generator},
    {.opcode = "round-nearest-afz", .name = "stablehlo.round_nearest_afz"},
    {.opcode = "round-nearest-even", .name = "stablehlo.round_nearest_even"},
    {.opcode = "rsqrt", .name = "stablehlo.rsqrt"},
    {.opcode = "scatter", .name = "stablehlo.scatter", .attributes = &scatter, .regions = 1},
    {.opcode = "select", .name = "stablehlo.select"},
    {.opcode = "select-and-scatter",
     .name = "stablehlo.select_and_scatter",
     .attributes = &select_and_scatter,
     .regions = 2},
    {.opcode = "shift-left", .name = "stablehlo.shift_left"},
    {.opcode = "shift-right-arithmetic", .name = "stablehlo.shift_right_arithmetic"},
    {.opcode = "shift-right-logical", .name = "stablehlo.shift_right_logical"},
    {.opcode = "sign", .name = "stablehlo.sign"},
    {.opcode = "sine", .name = "stablehlo.sine"},
    {.opcode = "sinh", .name = "chlo.sinh"},
    {.opcode = "slice", .name = "stablehlo.slice", .attributes = &slice},
    {.opcode = "sort", .name = "stablehlo.sort", .attributes = &sort, .regions = 1},
    {.opcode = "sqrt", .name = "stablehlo.sqrt"},
    {.opcode = "subtract", .name = "stablehlo.subtract"},
    {.opcode = "tan", .name = "stablehlo.tan"},
    {.opcode = "tanh", .name = "stablehlo.tanh"},
    {.opcode = "topk", .name = "chlo.top_k", .attributes = &top_k},
    {.opcode = "transpose", .name = "stablehlo.transpose", .dimensions = "permutation"},
    {.opcode = "triangular-solve",
     .name = "stablehlo.triangular_solve",
     .attributes = &triangular_solve},
    {.opcode = "xor", .name = "stablehlo.xor"},
};

}  // namespace
}  // namespace proto

Result<NamedAttributes> attributes_of(const HloInstruction& op) {
  NamedAttributes named;
  const auto* const row = std::ranges::find(proto::kRows, op.opcode, &proto::ProtoOpRow::opcode);
  if (row == std::end(proto::kRows)) return named;
  named.name = row->name;
  named.regions = row->regions;
  if (row->dimensions != nullptr)
    proto::set_list(named.attributes, row->dimensions, op.dimensions());
  if (row->dimension != nullptr) {
    TENON_ASSIGN(const Attribute only, proto::only_dimension(op));
    insert(named.attributes, row->dimension, only);
  }
  if (row->attributes != nullptr) TENON_TRY(row->attributes(op, named.attributes));
  return named;
}

}  // namespace tenon::hlo
