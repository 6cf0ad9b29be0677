// Converts attributes and types of VHLO to the corresponding ones of StableHLO.

#include <bit>

#include "core/types/float_convert.h"
#include "hlo/artifact/bytecode_reader.h"

namespace tenon::hlo::bytecode {
namespace {

enum VhloAttributeCode : uint64_t {
  kVhloArray = 1,
  kVhloBool,
  kVhloComparisonDirection,
  kVhloComparisonType,
  kVhloApiVersion,
  kVhloDict,
  kVhloFftType,
  kVhloFloat,
  kVhloInteger,
  kVhloOutputOperandAlias,
  kVhloPrecision,
  kVhloRngAlgorithm,
  kVhloRngDistribution,
  kVhloString,
  kVhloTensor,
  kVhloTranspose,
  kVhloType,
  kVhloTypeExtensions,
  kVhloResultAccuracyMode,
  kVhloResultAccuracy,
  kVhloSubAxisInfo,
  kVhloAxisRef,
  kVhloReplicaGroupMeshAxes,
  kVhloMeshAxis,
  kVhloMesh,
};

enum VhloTypeCode : uint64_t {
  kVhloComplexType = 1,
  kVhloFunctionType = 8,
  kVhloTensorType = 20,
  kVhloTensorWithEncodingType = 21,
  kVhloTokenType = 22,
  kVhloTupleType = 23,
  kVhloQuantizedType = 24,
  kVhloUnrankedTensorType = 25,
  kVhloWitnessType = 26,
  kVhloQuantizedPerAxisType = 30,
  kVhloNoneType = 33,
  kVhloTf32Type = 34,
  kVhloBufferType = 41,
  kVhloFutureType = 42,
};

// Element types by code; kPred means i1 at index 0, and "not an element type" elsewhere.
using enum ElementType;
constexpr ElementType kElementTypes[] = {
    kPred,     kPred,     kBF16,       kF16,        kF32,
    kF64,      kF8E4M3FN, kF8E5M2,     kPred,       kS64 /* index */,
    kS4,       kS8,       kS16,        kS32,        kS64,
    kU4,       kU8,       kU16,        kU32,        kU64,
    kPred,     kPred,     kPred,       kPred,       kPred,
    kPred,     kPred,     kF8E4M3FNUZ, kF8E5M2FNUZ, kF8E4M3B11FNUZ,
    kPred,     kS2,       kU2,         kPred,       kPred,
    kF8E4M3,   kF8E3M4,   kF4E2M1FN,   kF6E2M3FN,   kF6E3M2FN,
    kF8E8M0FNU};

Result<Attribute> read_enum(BytecodeReader& reader, EnumKind kind, Cursor& cursor) {
  const uint64_t value = cursor.varint();
  const EnumAttr attr{kind, static_cast<uint8_t>(value)};
  if (value >= enum_size(kind) || enum_word(attr).empty()) {
    return reader.error(cursor, "{} {} does not exist", enum_kind_name(kind), value);
  }
  return Attribute(attr);
}

Result<Attribute> read_dict(BytecodeReader& reader, Cursor& cursor) {
  const size_t n = cursor.count(2);
  Dict entries;
  entries.reserve(n);
  for (size_t i = 0; i < n && !cursor.failed(); ++i) {
    TENON_ASSIGN(const std::string_view key, reader.text_at(cursor));
    TENON_ASSIGN(const Attribute* const value, reader.attribute_at(cursor));
    TENON_TRY(reader.pay(key.size()));
    TENON_TRY(reader.pay_for_copy(*value));
    entries.emplace_back(std::string(key), *value);
  }
  return reader.dict_of(cursor, std::move(entries));
}

double read_f64(Cursor& cursor) { return std::bit_cast<double>(cursor.apint(64)); }

Result<Attribute> read_result_accuracy(BytecodeReader& reader, Cursor& cursor) {
  ResultAccuracy accuracy;
  accuracy.atol = read_f64(cursor);
  accuracy.rtol = read_f64(cursor);
  accuracy.ulps = cursor.svarint();
  TENON_ASSIGN(const Attribute* const mode, reader.attribute_at(cursor));
  const auto* word = mode->get<EnumAttr>();
  if (word == nullptr || word->kind != EnumKind::kResultAccuracyMode) {
    return reader.error(cursor, "a result accuracy without mode");
  }
  accuracy.mode = static_cast<ResultAccuracyMode>(word->value);
  return Attribute(accuracy);
}

// Mesh axes are kept as StableHLO text, because they are not interpreted.
Result<std::string_view> opaque_text_at(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const Attribute* const attribute, reader.attribute_at(cursor));
  const auto* opaque = attribute->get<OpaqueAttr>();
  if (opaque == nullptr) return reader.error(cursor, "a part of a mesh is expected");
  TENON_TRY(reader.pay(opaque->text.size()));
  return std::string_view(opaque->text);
}

Result<std::string> opaque_list_at(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const Attribute* const attribute, reader.attribute_at(cursor));
  const auto* elements = attribute->get<ArrayAttr>();
  if (elements == nullptr) return reader.error(cursor, "an array of axes is expected");
  std::string out;
  for (const Attribute& element : *elements) {
    const auto* opaque = element.get<OpaqueAttr>();
    if (opaque == nullptr) return reader.error(cursor, "an axis of a mesh is expected");
    TENON_TRY(reader.pay(opaque->text.size() + 2));
    out += (out.empty() ? "" : ", ") + opaque->text;
  }
  return out;
}

Result<Attribute> read_axis_ref(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const std::string_view name, reader.text_at(cursor));
  std::string text = fmt::format("#stablehlo.axis_ref<name = {}", quoted(name));
  if (cursor.varint() != 0) {
    TENON_ASSIGN(const std::string_view sub_axis, opaque_text_at(reader, cursor));
    text += fmt::format(", sub_axis_info = {}", sub_axis);
  }
  TENON_TRY(reader.pay(text.size()));
  return Attribute(OpaqueAttr{text + ">"});
}

Result<Attribute> read_replica_group_mesh_axes(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const Attribute* const mesh, reader.attribute_at(cursor));
  TENON_ASSIGN(const std::string axes, opaque_list_at(reader, cursor));
  std::string mesh_text;
  if (const auto* symbol = mesh->get<std::string>()) {
    mesh_text = "@" + *symbol;
  } else if (const auto* inline_mesh = mesh->get<OpaqueAttr>()) {
    mesh_text = inline_mesh->text;
  } else {
    return reader.error(cursor, "replica groups without mesh");
  }
  TENON_TRY(reader.pay(mesh_text.size()));
  return Attribute(OpaqueAttr{
      fmt::format("#stablehlo.replica_group_mesh_axes<mesh = {}, axes = [{}]>", mesh_text, axes)});
}

Result<Attribute> read_mesh(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const std::string axes, opaque_list_at(reader, cursor));
  std::string text = fmt::format("#stablehlo.mesh<axes = [{}]", axes);
  const Cursor::Flagged ids = cursor.varint_flag();
  if (ids.flag) {
    TENON_ASSIGN(const Attribute* const list, reader.list(ids.value));
    const auto* values = list->get<I64s>();
    if (values == nullptr) return reader.error(cursor, "a list of device ids is expected");
    TENON_TRY(reader.pay(values->size() * 20));
    text += fmt::format(", device_ids = dense<[{}]> : tensor<{}xi64>", fmt::join(*values, ", "),
                        values->size());
  }
  return Attribute(OpaqueAttr{text + ">"});
}

Result<TableType> read_quantized(BytecodeReader& reader, bool per_axis, Cursor& cursor) {
  QuantizedType quantized;
  const uint64_t flags = cursor.varint();
  TENON_ASSIGN(const ElementType storage, reader.element_type_at(cursor));
  TENON_ASSIGN(quantized.expressed, reader.element_type_at(cursor));
  if (!is_integer(storage) || !is_float(quantized.expressed)) {
    return reader.error(cursor, "a quantized type of {} stored as {}", name_of(quantized.expressed),
                        name_of(storage));
  }
  // The flags state the signedness, not the storage type.
  const auto with_sign = element_type_from_mlir_name(
      fmt::format("{}{}", (flags & 1) != 0 ? "i" : "ui", bit_width(storage)));
  quantized.storage = *with_sign;
  if (!per_axis) {
    quantized.scales[0] = read_f64(cursor);
    quantized.zero_points[0] = cursor.svarint();
    quantized.storage_min = cursor.svarint();
    quantized.storage_max = cursor.svarint();
  } else {
    const uint64_t axis = cursor.varint();
    quantized.axis = static_cast<int64_t>(axis);
    quantized.storage_min = cursor.svarint();
    quantized.storage_max = cursor.svarint();
    quantized.scales.resize(cursor.count());
    for (double& scale : quantized.scales) scale = read_f64(cursor);
    quantized.zero_points = reader.svarints_at(cursor);
    if (axis > 0x7FFFFFFF || quantized.scales.empty() ||
        quantized.scales.size() != quantized.zero_points.size()) {
      return reader.error(cursor, "a quantized type of axis {}, {} scales and {} zero points", axis,
                          quantized.scales.size(), quantized.zero_points.size());
    }
  }
  TableType type;
  type.kind = TableType::DecodedTypeKind::kQuantized;
  type.quantized = std::make_shared<const QuantizedType>(std::move(quantized));
  return type;
}

}  // namespace

Result<Attribute> decode_vhlo_attribute(BytecodeReader& reader, uint64_t code, Cursor& cursor) {
  switch (code) {
    case kVhloArray: {
      TENON_ASSIGN(ArrayAttr elements, reader.attributes_at(cursor));
      return Attribute(std::move(elements));
    }
    case kVhloBool: {
      const uint64_t value = cursor.varint();
      if (value > 1) return reader.error(cursor, "{} is neither false nor true", value);
      return Attribute(value == 1);
    }
    case kVhloComparisonDirection:
      return read_enum(reader, EnumKind::kComparisonDirection, cursor);
    case kVhloComparisonType:
      return read_enum(reader, EnumKind::kComparisonType, cursor);
    case kVhloApiVersion:
      return read_enum(reader, EnumKind::kCustomCallApiVersion, cursor);
    case kVhloFftType:
      return read_enum(reader, EnumKind::kFftType, cursor);
    case kVhloPrecision:
      return read_enum(reader, EnumKind::kPrecision, cursor);
    case kVhloRngAlgorithm:
      return read_enum(reader, EnumKind::kRngAlgorithm, cursor);
    case kVhloRngDistribution:
      return read_enum(reader, EnumKind::kRngDistribution, cursor);
    case kVhloTranspose:
      return read_enum(reader, EnumKind::kTranspose, cursor);
    case kVhloResultAccuracyMode:
      return read_enum(reader, EnumKind::kResultAccuracyMode, cursor);
    case kVhloDict:
      return read_dict(reader, cursor);
    case kVhloFloat:
      return reader.float_at(cursor);
    case kVhloInteger:
      return reader.integer_at(cursor);
    case kVhloOutputOperandAlias: {
      OutputOperandAlias alias;
      alias.output_tuple_indices = reader.svarints_at(cursor);
      alias.operand_index = cursor.svarint();
      alias.operand_tuple_indices = reader.svarints_at(cursor);
      return Attribute(std::move(alias));
    }
    case kVhloString: {
      const std::string_view text = reader.string_at(cursor);
      TENON_TRY(reader.pay(text.size()));
      return Attribute(std::string(text));
    }
    case kVhloTensor:
      return reader.dense_at(cursor);
    case kVhloType:
      return reader.type_attribute_at(cursor);
    case kVhloTypeExtensions:
      return Attribute(reader.svarints_at(cursor));
    case kVhloResultAccuracy:
      return read_result_accuracy(reader, cursor);
    case kVhloSubAxisInfo: {
      const int64_t pre_size = cursor.svarint();
      return Attribute(OpaqueAttr{fmt::format("({}){}", pre_size, cursor.svarint())});
    }
    case kVhloAxisRef:
      return read_axis_ref(reader, cursor);
    case kVhloReplicaGroupMeshAxes:
      return read_replica_group_mesh_axes(reader, cursor);
    case kVhloMeshAxis: {
      TENON_ASSIGN(const std::string_view name, reader.text_at(cursor));
      TENON_TRY(reader.pay(name.size() * 3));
      return Attribute(OpaqueAttr{fmt::format("#stablehlo.mesh_axis<name = {}, size = {}>",
                                              quoted(name), cursor.svarint())});
    }
    case kVhloMesh:
      return read_mesh(reader, cursor);
    default:
      return reader.unknown(fmt::format("attribute {} of dialect vhlo", code));
  }
}

Result<TableType> decode_vhlo_type(BytecodeReader& reader, uint64_t code, Cursor& cursor) {
  switch (code) {
    case kVhloComplexType: {
      TENON_ASSIGN(const ElementType part, reader.element_type_at(cursor));
      const auto type = complex_of(part);
      if (!type) return reader.error(cursor, "complex<{}> does not exist", name_of(part));
      return TableType::of(*type);
    }
    case kVhloFunctionType: {
      TENON_ASSIGN(std::vector<Type> inputs, reader.value_types_at(cursor));
      TENON_ASSIGN(std::vector<Type> results, reader.value_types_at(cursor));
      return TableType::of(Type::function(std::move(inputs), std::move(results)));
    }
    case kVhloTensorType:
    case kVhloTensorWithEncodingType:
    case kVhloBufferType: {
      Dims bounds;
      if (code == kVhloTensorWithEncodingType) {
        TENON_ASSIGN(bounds, reader.bounds_at(cursor));
      }
      TENON_ASSIGN(Type type,
                   reader.shaped_type_at(cursor, std::move(bounds), code == kVhloBufferType));
      return TableType::of(std::move(type));
    }
    case kVhloTokenType:
      return TableType::of(Type::token());
    case kVhloNoneType:
      return TableType::of(Type::none());
    case kVhloTf32Type:
      return TableType{TableType::DecodedTypeKind::kTf32, {}, {}, nullptr};
    case kVhloTupleType:
    case kVhloFutureType: {
      TENON_ASSIGN(std::vector<Type> types, reader.value_types_at(cursor));
      return TableType::of(code == kVhloTupleType ? Type::tuple(std::move(types))
                                                  : Type::future(std::move(types)));
    }
    case kVhloQuantizedType:
      return read_quantized(reader, false, cursor);
    case kVhloQuantizedPerAxisType:
      return read_quantized(reader, true, cursor);
    case kVhloUnrankedTensorType:
    case kVhloWitnessType:
      return unimplemented("artifact of {}: a type of kind '{}' cannot be read",
                           reader.container().producer,
                           code == kVhloWitnessType ? "witness" : "unranked tensor");
    default:
      if (code < std::size(kElementTypes)) return TableType::of(kElementTypes[code]);
      return reader.unknown(fmt::format("type {} of dialect vhlo", code));
  }
}

}  // namespace tenon::hlo::bytecode
