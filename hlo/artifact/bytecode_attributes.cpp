// Attributes, types and locations of MLIR's builtin dialect.

#include <cstring>

#include "hlo/artifact/bytecode_reader.h"

namespace tenon::hlo::bytecode {
namespace {

enum BuiltinAttributeCode : uint64_t {
  kBuiltinArray,
  kBuiltinDictionary,
  kBuiltinString,
  kBuiltinStringWithType,
  kBuiltinFlatSymbolRef,
  kBuiltinSymbolRef,
  kBuiltinTypeAttr,
  kBuiltinUnit,
  kBuiltinInteger,
  kBuiltinFloat,
  kBuiltinCallSiteLocation,
  kBuiltinFileLocation,
  kBuiltinFusedLocation,
  kBuiltinFusedLocationWithMetadata,
  kBuiltinNameLocation,
  kBuiltinUnknownLocation,
  kBuiltinDenseResource,
  kBuiltinDenseArray,
  kBuiltinDenseElements,
  kBuiltinDenseStrings,
  kBuiltinSparse,
  kBuiltinDistinct,
  kBuiltinFileRangeLocation,
};

enum BuiltinTypeCode : uint64_t {
  kBuiltinIntegerType,
  kBuiltinIndexType,
  kBuiltinFunctionType,
  kBuiltinBf16,
  kBuiltinF16,
  kBuiltinF32,
  kBuiltinF64,
  kBuiltinF80,
  kBuiltinF128,
  kBuiltinComplexType,
  kBuiltinMemRef,
  kBuiltinMemRefWithSpace,
  kBuiltinNoneType,
  kBuiltinTensor,
  kBuiltinTensorWithEncoding,
  kBuiltinTuple,
  kBuiltinUnrankedMemRef,
  kBuiltinUnrankedMemRefWithSpace,
  kBuiltinUnrankedTensor,
  kBuiltinVector,
  kBuiltinScalableVector,
};

Result<Attribute> read_dictionary(BytecodeReader& reader, Cursor& cursor) {
  const size_t n = cursor.count(2);
  Dict entries;
  entries.reserve(n);
  for (size_t i = 0; i < n && !cursor.failed(); ++i) {
    TENON_ASSIGN(const std::string_view name, reader.text_at(cursor));
    TENON_ASSIGN(const Attribute* const value, reader.attribute_at(cursor));
    TENON_TRY(reader.pay(name.size()));
    TENON_TRY(reader.pay_for_copy(*value));
    entries.emplace_back(std::string(name), *value);
  }
  return reader.dict_of(cursor, std::move(entries));
}

Result<Attribute> read_symbol(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const std::string_view root, reader.text_at(cursor));
  std::string name(root);
  const size_t n = cursor.count();
  for (size_t i = 0; i < n && !cursor.failed(); ++i) {
    TENON_ASSIGN(const Attribute* const nested, reader.attribute_at(cursor));
    const auto* symbol = nested->get<SymbolAttr>();
    if (symbol == nullptr) return reader.error(cursor, "a nested symbol is expected");
    TENON_TRY(reader.pay(symbol->name.size()));
    name += "::@" + symbol->name;
  }
  return Attribute(SymbolAttr{std::move(name)});
}

// Data in the resource section: all elements, one byte each for i1.
Result<Attribute> read_resource(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const Type* const type, reader.value_type_at(cursor));
  const std::vector<BytecodeResource>& resources = reader.container().resources;
  const size_t number = cursor.index(resources.size(), "resource");
  if (cursor.failed()) return reader.container().fault(cursor);
  const BytecodeResource& resource = resources[number];
  if (resource.kind != ResourceKind::kBlob || !type->is_tensor() || !type->shape().is_static()) {
    return reader.error(cursor, "resource {} cannot be a constant of type {}", quoted(resource.key),
                        type->to_mlir());
  }
  Cursor data = reader.container().cursor(resource.span, "resource data");
  const uint64_t alignment = data.varint();
  const uint64_t size = data.varint();
  data.align(alignment);
  const std::string_view blob = data.bytes(size);
  if (data.failed() || !data.at_end()) {
    return reader.error(data, "resource {} has {} bytes left over", quoted(resource.key),
                        data.remaining());
  }
  TENON_TRY(reader.pay(blob.size()));
  auto dense = dense_from_blob(type->shape(), blob, reader.limits().max_constant_bytes);
  if (!dense) return reader.error(data, "{}", dense.error().message());
  return Attribute(std::move(*dense));
}

Result<Attribute> read_dense_array(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const ElementType type, reader.element_type_at(cursor));
  const uint64_t n = cursor.varint();
  const std::string_view blob = cursor.blob();
  if (cursor.failed()) return reader.container().fault(cursor);
  if (n > blob.size() || n * storage_bytes(type) != blob.size()) {
    return reader.error(cursor, "an array of {} {} in {} bytes", n, name_of(type), blob.size());
  }
  if (type == ElementType::kS64) {
    I64s values(n);
    if (n != 0) std::memcpy(values.data(), blob.data(), blob.size());
    return Attribute(std::move(values));
  }
  if (is_pred(type)) {
    BoolsAttr bools;
    for (const char c : blob) bools.values.push_back(c != 0);
    return Attribute(std::move(bools));
  }
  auto dense = dense_from_blob(Shape(type, {static_cast<int64_t>(n)}), blob,
                               reader.limits().max_constant_bytes);
  if (!dense) return reader.error(cursor, "{}", dense.error().message());
  return Attribute(std::move(*dense));
}

std::string_view kind_name(uint64_t code) {
  switch (code) {
    case kBuiltinDenseStrings:
      return "dense strings";
    case kBuiltinSparse:
      return "sparse elements";
    case kBuiltinDistinct:
      return "distinct";
    default:
      return "a location";
  }
}

Result<TableType> read_integer_type(BytecodeReader& reader, Cursor& cursor) {
  const uint64_t u = cursor.varint();
  const uint64_t width = u >> 2;
  const uint64_t signedness = u & 3;
  constexpr uint64_t kUnsigned = 2;
  const auto type =
      element_type_from_mlir_name(fmt::format("{}{}", signedness == kUnsigned ? "ui" : "i", width));
  if (!type || signedness > kUnsigned) {
    return reader.error(cursor, "integers of {} bits and signedness {} cannot be read", width,
                        signedness);
  }
  return TableType::of(*type);
}

Result<TableType> read_function_type(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(std::vector<Type> inputs, reader.value_types_at(cursor));
  TENON_ASSIGN(std::vector<Type> results, reader.value_types_at(cursor));
  return TableType::of(Type::function(std::move(inputs), std::move(results)));
}

Result<std::shared_ptr<LocationNode>> node(BytecodeReader& reader, LocationKind kind,
                                           std::string_view name) {
  TENON_TRY(reader.pay(name.size()));
  auto result = std::make_shared<LocationNode>();
  result->kind = kind;
  result->name = name;
  return result;
}

Result<Location> read_file_range(BytecodeReader& reader, Cursor& cursor) {
  TENON_ASSIGN(const std::string_view file, reader.text_at(cursor));
  TENON_ASSIGN(auto result, node(reader, LocationKind::kFile, file));
  const size_t n = cursor.count();
  if (n > 4) return reader.error(cursor, "a file range of {} numbers", n);
  uint32_t numbers[4] = {};
  for (size_t i = 0; i < n; ++i) numbers[i] = static_cast<uint32_t>(cursor.varint());
  result->line = numbers[0];
  result->column = numbers[1];
  if (n >= 3) {
    result->end_line = n == 3 ? numbers[0] : numbers[2];
    result->end_column = numbers[n - 1];
  }
  return Location(std::move(result));
}

}  // namespace

Result<Attribute> decode_builtin_attribute(BytecodeReader& reader, uint64_t code, Cursor& cursor) {
  switch (code) {
    case kBuiltinArray: {
      TENON_ASSIGN(ArrayAttr elements, reader.attributes_at(cursor));
      return Attribute(std::move(elements));
    }
    case kBuiltinDictionary:
      return read_dictionary(reader, cursor);
    case kBuiltinString:
    case kBuiltinStringWithType: {
      const std::string_view text = reader.string_at(cursor);
      if (code == kBuiltinStringWithType) cursor.varint();
      TENON_TRY(reader.pay(text.size()));
      return Attribute(std::string(text));
    }
    case kBuiltinFlatSymbolRef: {
      TENON_ASSIGN(const std::string_view name, reader.text_at(cursor));
      TENON_TRY(reader.pay(name.size()));
      return Attribute(SymbolAttr{std::string(name)});
    }
    case kBuiltinSymbolRef:
      return read_symbol(reader, cursor);
    case kBuiltinTypeAttr:
      return reader.type_attribute_at(cursor);
    case kBuiltinUnit:
      return Attribute(Unit{});
    case kBuiltinInteger:
      return reader.integer_at(cursor);
    case kBuiltinFloat:
      return reader.float_at(cursor);
    case kBuiltinDenseResource:
      return read_resource(reader, cursor);
    case kBuiltinDenseArray:
      return read_dense_array(reader, cursor);
    case kBuiltinDenseElements:
      return reader.dense_at(cursor);
    case kBuiltinDenseStrings:
    case kBuiltinSparse:
    case kBuiltinDistinct:
    case kBuiltinCallSiteLocation:
    case kBuiltinFileLocation:
    case kBuiltinFusedLocation:
    case kBuiltinFusedLocationWithMetadata:
    case kBuiltinNameLocation:
    case kBuiltinUnknownLocation:
    case kBuiltinFileRangeLocation:
      return unimplemented("artifact of {}: an attribute of kind '{}' cannot be read",
                           reader.container().producer, kind_name(code));
    default:
      return reader.unknown(fmt::format("attribute {} of dialect builtin", code));
  }
}

Result<TableType> decode_builtin_type(BytecodeReader& reader, uint64_t code, Cursor& cursor) {
  switch (code) {
    case kBuiltinIntegerType:
      return read_integer_type(reader, cursor);
    case kBuiltinIndexType:
      return TableType::of(ElementType::kS64);
    case kBuiltinFunctionType:
      return read_function_type(reader, cursor);
    case kBuiltinBf16:
      return TableType::of(ElementType::kBF16);
    case kBuiltinF16:
      return TableType::of(ElementType::kF16);
    case kBuiltinF32:
      return TableType::of(ElementType::kF32);
    case kBuiltinF64:
      return TableType::of(ElementType::kF64);
    case kBuiltinComplexType: {
      TENON_ASSIGN(const ElementType part, reader.element_type_at(cursor));
      const auto type = complex_of(part);
      if (!type) return reader.error(cursor, "complex<{}> does not exist", name_of(part));
      return TableType::of(*type);
    }
    case kBuiltinNoneType:
      return TableType::of(Type::none());
    case kBuiltinTensor:
    case kBuiltinTensorWithEncoding: {
      Dims bounds;
      if (code == kBuiltinTensorWithEncoding) {
        TENON_ASSIGN(bounds, reader.bounds_at(cursor));
      }
      TENON_ASSIGN(Type type, reader.shaped_type_at(cursor, std::move(bounds), false));
      return TableType::of(std::move(type));
    }
    case kBuiltinTuple: {
      TENON_ASSIGN(std::vector<Type> types, reader.value_types_at(cursor));
      return TableType::of(Type::tuple(std::move(types)));
    }
    case kBuiltinF80:
    case kBuiltinF128:
    case kBuiltinMemRef:
    case kBuiltinMemRefWithSpace:
    case kBuiltinUnrankedMemRef:
    case kBuiltinUnrankedMemRefWithSpace:
    case kBuiltinUnrankedTensor:
    case kBuiltinVector:
    case kBuiltinScalableVector: {
      constexpr const char* kNames[] = {
          "f80",    "f128",  "", "memref",          "memref",          "",
          "",       "",      "", "unranked memref", "unranked memref", "unranked tensor",
          "vector", "vector"};
      return unimplemented("artifact of {}: a type of kind '{}' cannot be read",
                           reader.container().producer, kNames[code - kBuiltinF80]);
    }
    default:
      return reader.unknown(fmt::format("type {} of dialect builtin", code));
  }
}

Result<Location> decode_builtin_location(BytecodeReader& reader, uint64_t code, Cursor& cursor) {
  switch (code) {
    case kBuiltinUnknownLocation:
      return Location();
    case kBuiltinFileLocation: {
      TENON_ASSIGN(const std::string_view file, reader.text_at(cursor));
      TENON_ASSIGN(auto result, node(reader, LocationKind::kFile, file));
      result->line = static_cast<uint32_t>(cursor.varint());
      result->column = static_cast<uint32_t>(cursor.varint());
      return Location(std::move(result));
    }
    case kBuiltinFileRangeLocation:
      return read_file_range(reader, cursor);
    case kBuiltinNameLocation: {
      TENON_ASSIGN(const std::string_view name, reader.text_at(cursor));
      TENON_ASSIGN(auto result, node(reader, LocationKind::kName, name));
      TENON_ASSIGN(Location child, reader.location(cursor.varint()));
      if (child != nullptr) result->children.push_back(std::move(child));
      return Location(std::move(result));
    }
    case kBuiltinCallSiteLocation: {
      TENON_ASSIGN(auto result, node(reader, LocationKind::kCallSite, ""));
      for (int i = 0; i < 2; ++i) {
        TENON_ASSIGN(Location child, reader.location(cursor.varint()));
        result->children.push_back(std::move(child));
      }
      return Location(std::move(result));
    }
    case kBuiltinFusedLocation:
    case kBuiltinFusedLocationWithMetadata: {
      TENON_ASSIGN(auto result, node(reader, LocationKind::kFused, ""));
      const size_t n = cursor.count();
      result->children.reserve(n);
      for (size_t i = 0; i < n && !cursor.failed(); ++i) {
        TENON_ASSIGN(Location child, reader.location(cursor.varint()));
        result->children.push_back(std::move(child));
      }
      if (code == kBuiltinFusedLocationWithMetadata) cursor.varint();
      return Location(std::move(result));
    }
    default:
      return reader.error(cursor, "attribute {} of dialect builtin is not a location", code);
  }
}

}  // namespace tenon::hlo::bytecode
