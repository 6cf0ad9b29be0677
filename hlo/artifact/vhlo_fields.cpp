// Converts the fields of VHLO ops to the attributes of StableHLO ops.

#include <algorithm>
#include <optional>

#include "hlo/artifact/vhlo_ops.h"

namespace tenon::hlo::bytecode {
namespace {

std::string_view kind_words(FieldKind kind) {
  switch (kind) {
    case FieldKind::kI64:
      return "an i64 integer";
    case FieldKind::kI32:
      return "an i32 integer";
    case FieldKind::kInteger:
      return "an integer";
    case FieldKind::kF32:
      return "an f32 number";
    case FieldKind::kBool:
      return "a bool";
    case FieldKind::kString:
      return "a string";
    case FieldKind::kSymbol:
      return "the name of a function";
    case FieldKind::kSymbols:
      return "an array of names of functions";
    case FieldKind::kFunctionType:
      return "a function type";
    case FieldKind::kDict:
      return "a dictionary";
    case FieldKind::kDicts:
      return "an array of dictionaries";
    case FieldKind::kStringOrDict:
      return "a string or a dictionary";
    case FieldKind::kI64s:
      return "a list of i64";
    case FieldKind::kI64Matrix:
      return "a matrix of i64";
    case FieldKind::kBools:
      return "a list of bools";
    case FieldKind::kLayouts:
      return "an array of index lists";
    case FieldKind::kTilings:
      return "an array of arrays of index lists";
    case FieldKind::kDense:
      return "a constant array";
    case FieldKind::kReplicaGroups:
      return "a matrix of i64 or mesh axes";
    case FieldKind::kAliases:
      return "an array of aliases";
    case FieldKind::kPrecisions:
      return "an array of precisions";
    case FieldKind::kAccuracy:
      return "a result accuracy";
    case FieldKind::kDirection:
      return "a comparison direction";
    case FieldKind::kComparison:
      return "a comparison type";
    case FieldKind::kApiVersion:
      return "an API version";
    case FieldKind::kFft:
      return "an FFT type";
    case FieldKind::kAlgorithm:
      return "an RNG algorithm";
    case FieldKind::kDistribution:
      return "an RNG distribution";
    case FieldKind::kTranspose:
      return "a transpose kind";
    case FieldKind::kArray:
      return "an array";
    case FieldKind::kAny:
      return "an attribute";
  }
  return "?";
}

bool is_enum(const Attribute& a, EnumKind kind) {
  const auto* value = a.get<EnumAttr>();
  return value != nullptr && value->kind == kind;
}
bool is_integer_of(const Attribute& a, ElementType type) {
  const auto* value = a.get<IntegerAttr>();
  return value != nullptr && value->type == type;
}
template <class Predicate>
bool all_of_array(const Attribute& a, Predicate predicate) {
  const auto* elements = a.get<ArrayAttr>();
  return elements != nullptr && std::all_of(elements->begin(), elements->end(), predicate);
}

// Whether the attribute of the table has kind `kind` without conversion.
bool fits(const Attribute& a, FieldKind kind) {
  switch (kind) {
    case FieldKind::kI64:
      return is_integer_of(a, ElementType::kS64);
    case FieldKind::kI32:
      return is_integer_of(a, ElementType::kS32);
    case FieldKind::kInteger:
      return a.get<IntegerAttr>() != nullptr;
    case FieldKind::kF32:
      return a.get<FloatAttr>() && a.get<FloatAttr>()->type == ElementType::kF32;
    case FieldKind::kBool:
      return a.get<bool>() != nullptr;
    case FieldKind::kString:
      return a.get<std::string>() != nullptr;
    case FieldKind::kFunctionType:
      return a.get<Type>() && a.get<Type>()->kind() == TypeKind::kFunction;
    case FieldKind::kDict:
      return a.get<Dict>() != nullptr;
    case FieldKind::kStringOrDict:
      return a.get<std::string>() || a.get<Dict>();
    case FieldKind::kDense:
      return a.get<DenseAttr>() != nullptr;
    case FieldKind::kAccuracy:
      return a.get<ResultAccuracy>() != nullptr;
    case FieldKind::kDirection:
      return is_enum(a, EnumKind::kComparisonDirection);
    case FieldKind::kComparison:
      return is_enum(a, EnumKind::kComparisonType);
    case FieldKind::kApiVersion:
      return is_enum(a, EnumKind::kCustomCallApiVersion);
    case FieldKind::kFft:
      return is_enum(a, EnumKind::kFftType);
    case FieldKind::kAlgorithm:
      return is_enum(a, EnumKind::kRngAlgorithm);
    case FieldKind::kDistribution:
      return is_enum(a, EnumKind::kRngDistribution);
    case FieldKind::kTranspose:
      return is_enum(a, EnumKind::kTranspose);
    case FieldKind::kArray:
      return a.get<ArrayAttr>() != nullptr;
    case FieldKind::kPrecisions:
      return all_of_array(a, [](const Attribute& e) { return is_enum(e, EnumKind::kPrecision); });
    case FieldKind::kAliases:
      return all_of_array(
          a, [](const Attribute& e) { return e.get<OutputOperandAlias>() != nullptr; });
    case FieldKind::kDicts:
      return all_of_array(a, [](const Attribute& e) { return e.get<Dict>() != nullptr; });
    case FieldKind::kAny:
      return true;
    default:
      return false;
  }
}

// Whether `a`, made by BytecodeReader::list, has the form of the given list kind.
bool list_fits(const Attribute& a, FieldKind kind) {
  switch (kind) {
    case FieldKind::kI64s:
      return a.get<I64s>() != nullptr;
    case FieldKind::kBools:
      return a.get<BoolsAttr>() != nullptr;
    // An absent source_target_pairs of send and recv is written as an empty list.
    default:
      return a.get<I64Matrix>() || (a.get<I64s>() && a.get<I64s>()->empty());
  }
}

std::optional<Attribute> to_symbol(const Attribute& a) {
  if (const auto* name = a.get<std::string>()) return Attribute(SymbolAttr{*name});
  if (a.get<SymbolAttr>() != nullptr) return a;
  return std::nullopt;
}

// Converts every array element of `a`, `depth` arrays deep, to an index list.
Result<Attribute> to_lists(BytecodeReader& reader, const Attribute& a, int depth) {
  if (depth == 0) return reader.to_list(a);
  const auto* elements = a.get<ArrayAttr>();
  if (elements == nullptr) {
    return invalid_argument("artifact of {}: an array of lists is expected",
                            reader.container().producer);
  }
  ArrayAttr lists;
  for (const Attribute& element : *elements) {
    TENON_ASSIGN(Attribute list, to_lists(reader, element, depth - 1));
    lists.push_back(std::move(list));
  }
  return Attribute(std::move(lists));
}

class Gatherer {
 public:
  Gatherer(BytecodeReader& reader, const OpPlan& plan, std::span<const FieldValue> values)
      : reader_(reader), plan_(plan), values_(values) {}

  Result<Dict> run() {
    out_.reserve(values_.size());
    for (const FieldValue& value : values_) {
      if (!value.present) continue;
      TENON_ASSIGN(Attribute attribute, convert(value));
      // Fields are sorted by name.
      out_.emplace_back(std::string(value.field->name), std::move(attribute));
    }
    switch (plan_.grouping) {
      case VhloGrouping::kNone:
        break;
      case VhloGrouping::kChannel:
        gather_channel();
        break;
      case VhloGrouping::kChannelHandle:
        gather_channel_handle();
        break;
      case VhloGrouping::kDot:
        gather_dot();
        break;
      case VhloGrouping::kDotAlgorithm:
        TENON_TRY(gather_algorithm());
        gather_dot();
        break;
      case VhloGrouping::kGather:
        gather_gather();
        break;
      case VhloGrouping::kScatter:
        gather_scatter();
        break;
      case VhloGrouping::kConv:
        gather_conv();
        break;
      case VhloGrouping::kFunc:
        gather_func();
        break;
    }
    return std::move(out_);
  }

 private:
  Error wrong(const Field& field) const {
    return invalid_argument("artifact of {}: {} of {} is not {}", reader_.container().producer,
                            field.name, plan_.name, kind_words(field.kind));
  }

  Result<Attribute> convert(const FieldValue& value) {
    const FieldKind kind = value.field->kind;
    TENON_ASSIGN(const Attribute* const attribute, reader_.attribute(value.attribute));
    switch (kind) {
      case FieldKind::kReplicaGroups:
        if (attribute->get<OpaqueAttr>() != nullptr) return copy(*attribute);
        [[fallthrough]];
      case FieldKind::kI64s:
      case FieldKind::kI64Matrix:
      case FieldKind::kBools: {
        if (attribute->get<DenseAttr>() == nullptr && attribute->get<I64s>() == nullptr &&
            attribute->get<BoolsAttr>() == nullptr) {
          return wrong(*value.field);
        }
        TENON_ASSIGN(const Attribute* const list, reader_.list(value.attribute));
        if (!list_fits(*list, kind)) return wrong(*value.field);
        if (kind != FieldKind::kI64s && list->get<I64s>() != nullptr) return Attribute(I64Matrix{});
        return copy(*list);
      }
      case FieldKind::kLayouts:
        return to_lists(reader_, *attribute, 1);
      case FieldKind::kTilings:
        return to_lists(reader_, *attribute, 2);
      case FieldKind::kSymbol: {
        auto symbol = to_symbol(*attribute);
        if (!symbol) return wrong(*value.field);
        return *std::move(symbol);
      }
      case FieldKind::kSymbols: {
        const auto* elements = attribute->get<ArrayAttr>();
        if (elements == nullptr) return wrong(*value.field);
        ArrayAttr symbols;
        for (const Attribute& element : *elements) {
          auto symbol = to_symbol(element);
          if (!symbol) return wrong(*value.field);
          TENON_TRY(reader_.pay_for_copy(*symbol));
          symbols.push_back(*std::move(symbol));
        }
        return Attribute(std::move(symbols));
      }
      default:
        if (!fits(*attribute, kind)) return wrong(*value.field);
        return copy(*attribute);
    }
  }

  Result<Attribute> copy(const Attribute& attribute) {
    TENON_TRY(reader_.pay_for_copy(attribute));
    return attribute;
  }

  // Removes field `name` from the result and returns its value.
  Attribute take(std::string_view name) {
    const auto place =
        std::find_if(out_.begin(), out_.end(), [&](const auto& e) { return e.first == name; });
    if (place == out_.end()) return {};
    Attribute value = std::move(place->second);
    out_.erase(place);
    return value;
  }
  // Old versions of an op lack fields: their values are zero or empty.
  int64_t take_i64(std::string_view name) {
    const Attribute value = take(name);
    return value.get<IntegerAttr>() ? value.get<IntegerAttr>()->value : 0;
  }
  I64s take_list(std::string_view name) {
    const Attribute value = take(name);
    return value.get<I64s>() ? *value.get<I64s>() : I64s();
  }

  void gather_channel() {
    // 0 means no channel; the format does not contain the type of a collective's handle.
    const int64_t id = take_i64("channel_id");
    if (id != 0) insert(out_, "channel_handle", ChannelHandle{id, 0});
  }

  void gather_channel_handle() {
    ChannelHandle handle;
    handle.handle = take_i64("channel_id");
    handle.type = take_i64("channel_type");
    insert(out_, "channel_handle", handle);
    const Attribute* pairs = find(out_, "source_target_pairs");
    if (pairs != nullptr && pairs->get<I64Matrix>()->values.empty()) take("source_target_pairs");
  }

  void gather_dot() {
    DotDims dims;
    dims.lhs_batching = take_list("lhs_batching_dimensions");
    dims.rhs_batching = take_list("rhs_batching_dimensions");
    dims.lhs_contracting = take_list("lhs_contracting_dimensions");
    dims.rhs_contracting = take_list("rhs_contracting_dimensions");
    insert(out_, "dot_dimension_numbers", std::move(dims));
  }

  Status precision_type(std::string_view name, PrecisionType& out) {
    const Attribute value = take(name);
    const auto* text = value.get<OpaqueAttr>();
    const auto type = text ? element_type_from_mlir_name(text->text) : std::nullopt;
    if (text != nullptr && text->text == "tf32") {
      out.is_tf32 = true;
    } else if (type && is_float(*type)) {
      out.type = *type;
    } else {
      return invalid_argument("artifact of {}: {} of {} is not a float type",
                              reader_.container().producer, name, plan_.name);
    }
    return {};
  }

  Status algorithm_count(std::string_view name, int64_t& out) {
    const Attribute value = take(name);
    if (!is_integer_of(value, ElementType::kS64)) {
      return invalid_argument("artifact of {}: {} of {} is not an i64 integer",
                              reader_.container().producer, name, plan_.name);
    }
    out = value.get<IntegerAttr>()->value;
    return {};
  }

  // If there is no algorithm, all seven fields are the type "none".
  Status gather_algorithm() {
    constexpr std::string_view kFields[] = {
        "accumulation_type",  "allow_imprecise_accumulation", "lhs_component_count",
        "lhs_precision_type", "num_primitive_operations",     "rhs_component_count",
        "rhs_precision_type"};
    const auto is_none = [this](std::string_view name) {
      const Attribute* value = find(out_, name);
      return value == nullptr ||
             (value->get<Type>() && value->get<Type>()->kind() == TypeKind::kNone);
    };
    if (std::all_of(std::begin(kFields), std::end(kFields), is_none)) {
      for (const std::string_view name : kFields) take(name);
      return {};
    }
    DotAlgorithm algorithm;
    TENON_TRY(precision_type("lhs_precision_type", algorithm.lhs_precision));
    TENON_TRY(precision_type("rhs_precision_type", algorithm.rhs_precision));
    TENON_TRY(precision_type("accumulation_type", algorithm.accumulation));
    TENON_TRY(algorithm_count("lhs_component_count", algorithm.lhs_component_count));
    TENON_TRY(algorithm_count("rhs_component_count", algorithm.rhs_component_count));
    TENON_TRY(algorithm_count("num_primitive_operations", algorithm.num_primitive_operations));
    const Attribute imprecise = take("allow_imprecise_accumulation");
    if (imprecise.get<bool>() == nullptr) {
      return invalid_argument("artifact of {}: allow_imprecise_accumulation of {} is not a bool",
                              reader_.container().producer, plan_.name);
    }
    algorithm.allow_imprecise_accumulation = *imprecise.get<bool>();
    insert(out_, "algorithm", algorithm);
    return {};
  }

  void gather_gather() {
    GatherDims dims;
    dims.offset_dims = take_list("offset_dims");
    dims.collapsed_slice_dims = take_list("collapsed_slice_dims");
    dims.operand_batching_dims = take_list("operand_batching_dims");
    dims.start_indices_batching_dims = take_list("start_indices_batching_dims");
    dims.start_index_map = take_list("start_index_map");
    dims.index_vector_dim = take_i64("index_vector_dim");
    insert(out_, "dimension_numbers", std::move(dims));
  }

  void gather_scatter() {
    ScatterDims dims;
    dims.update_window_dims = take_list("update_window_dims");
    dims.inserted_window_dims = take_list("inserted_window_dims");
    dims.input_batching_dims = take_list("input_batching_dims");
    dims.scatter_indices_batching_dims = take_list("scatter_indices_batching_dims");
    dims.scatter_dims_to_operand_dims = take_list("scatter_dims_to_operand_dims");
    dims.index_vector_dim = take_i64("index_vector_dim");
    insert(out_, "scatter_dimension_numbers", std::move(dims));
  }

  void gather_conv() {
    ConvDims dims;
    dims.input_batch = take_i64("input_batch_dimension");
    dims.input_feature = take_i64("input_feature_dimension");
    dims.input_spatial = take_list("input_spatial_dimensions");
    dims.kernel_input_feature = take_i64("kernel_input_feature_dimension");
    dims.kernel_output_feature = take_i64("kernel_output_feature_dimension");
    dims.kernel_spatial = take_list("kernel_spatial_dimensions");
    dims.output_batch = take_i64("output_batch_dimension");
    dims.output_feature = take_i64("output_feature_dimension");
    dims.output_spatial = take_list("output_spatial_dimensions");
    insert(out_, "dimension_numbers", std::move(dims));
    // The padding of a dynamic convolution is an operand; the op's first version also had an
    // attribute.
    if (plan_.name == "stablehlo.dynamic_conv") take("padding");
  }

  void gather_func() {
    for (const char* name : {"arg_attrs", "res_attrs"}) {
      const Attribute* value = find(out_, name);
      const auto is_empty = [](const Attribute& dict) { return dict.get<Dict>()->empty(); };
      if (value != nullptr && all_of_array(*value, is_empty)) take(name);
    }
    const Attribute* visibility = find(out_, "sym_visibility");
    if (visibility != nullptr && visibility->get<std::string>()->empty()) take("sym_visibility");
  }

  BytecodeReader& reader_;
  const OpPlan& plan_;
  std::span<const FieldValue> values_;
  Dict out_;
};

}  // namespace

Result<Dict> gather_attributes(BytecodeReader& reader, const OpPlan& plan,
                               std::span<const FieldValue> values) {
  return Gatherer(reader, plan, values).run();
}

}  // namespace tenon::hlo::bytecode
