#include "hlo/artifact/bytecode_reader.h"

#include <algorithm>

#include "core/types/float_convert.h"

namespace tenon::hlo::bytecode {
namespace {

// Bytes that a copy of `attribute` allocates in addition to its fixed size; boxed values are
// shared.
uint64_t copied_bytes(const Attribute& attribute) {
  if (const auto* text = attribute.get<std::string>()) return text->size();
  if (const auto* text = attribute.get<OpaqueAttr>()) return text->text.size();
  if (const auto* text = attribute.get<SymbolAttr>()) return text->name.size();
  if (const auto* list = attribute.get<I64s>()) return list->size() * sizeof(int64_t);
  if (const auto* list = attribute.get<BoolsAttr>()) return list->values.size();
  return 0;
}

uint64_t copied_bytes(const Type& type) {
  return (type.dims().size() + type.shape().bounds().size()) * sizeof(int64_t);
}
uint64_t copied_bytes(const TableType& type) { return copied_bytes(type.value); }
uint64_t copied_bytes(const Location& location) {
  return location == nullptr ? 0 : location->name.size();
}

constexpr uint64_t kAllowanceBase = uint64_t{64} << 20;
constexpr uint64_t kAllowancePerByte = 64;
// The approximate size of one node of an attribute, type or location when written out.
constexpr uint64_t kNodeBytes = 16;
constexpr int64_t kLongestSplatList = 1 << 20;

}  // namespace

std::string TableType::to_string() const {
  switch (kind) {
    case DecodedTypeKind::kValue:
      return value.to_mlir();
    case DecodedTypeKind::kElement:
      return std::string(element_type_info(element).mlir_name);
    case DecodedTypeKind::kQuantized:
      return "!quant.uniform";
    case DecodedTypeKind::kTf32:
      return "tf32";
  }
  return "?";
}

BytecodeReader::BytecodeReader(Container container, const ImportLimits& limits)
    : container_(std::move(container)),
      limits_(limits),
      attributes_(container_.attributes.size()),
      types_(container_.types.size()),
      allowance_(kAllowanceBase + kAllowancePerByte * container_.file.size()) {}

Status BytecodeReader::pay(uint64_t bytes) {
  if (bytes > allowance_) {
    return resource_exhausted(
        "artifact of {}: its lists and texts repeat out of proportion to its {} bytes",
        container_.producer, container_.file.size());
  }
  allowance_ -= bytes;
  return {};
}

Status BytecodeReader::pay_for_copy(const Attribute& attribute) {
  return pay(copied_bytes(attribute));
}
Status BytecodeReader::pay_for_copy(const Type& type) { return pay(copied_bytes(type)); }

template <class S, class Decode>
Result<S*> BytecodeReader::decode_once(std::vector<S>& slots,
                                       const std::vector<EncodedEntry>& entries, uint64_t index,
                                       const char* what, Decode decode) {
  if (index >= slots.size()) {
    return invalid_argument("artifact of {}: {} {} does not exist; there are {}",
                            container_.producer, what, index, slots.size());
  }
  S& slot = slots[index];
  if (slot.state != DecodeState::kDone) {
    const EncodedEntry& entry = entries[index];
    Cursor cursor = container_.cursor(entry.span, "attribute and type data");
    if (slot.state == DecodeState::kActive)
      return error(cursor, "{} {} contains itself", what, index);
    if (active_ >= limits_.max_depth) {
      return error(cursor, "attributes and types are nested deeper than {}", limits_.max_depth);
    }
    const DecodedExtent outer = std::exchange(extent_, DecodedExtent{});
    slot.state = DecodeState::kActive;
    ++active_;
    auto value = decode(entry, cursor);
    --active_;
    slot.state = DecodeState::kUnread;
    if (cursor.failed()) return container_.fault(cursor);
    if (!value) return Error(std::move(value.error()));
    if (!cursor.at_end()) {
      return error(cursor, "{} {} has {} bytes left over", what, index, cursor.remaining());
    }
    slot.value = std::move(*value);
    slot.extent = {extent_.depth + 1, extent_.bytes + kNodeBytes + copied_bytes(slot.value)};
    slot.state = DecodeState::kDone;
    extent_ = outer;
    if (slot.extent.depth > static_cast<uint32_t>(limits_.max_depth)) {
      return error(cursor, "{} {} is nested deeper than {}", what, index, limits_.max_depth);
    }
    if (slot.extent.bytes > kAllowanceBase + kAllowancePerByte * container_.file.size()) {
      return error(cursor, "{} {} is too large when written out", what, index);
    }
  }
  extent_.depth = std::max(extent_.depth, slot.extent.depth);
  extent_.bytes += slot.extent.bytes;
  return &slot;
}

bool BytecodeReader::is_binary_of(const EncodedEntry& entry, std::string_view dialect) const {
  return entry.binary && container_.dialects[entry.dialect] == dialect;
}

Result<const Attribute*> BytecodeReader::attribute(uint64_t index) {
  TENON_ASSIGN(
      AttributeSlot * slot,
      decode_once(attributes_, container_.attributes, index, "attribute",
                  [this](const EncodedEntry& e, Cursor& c) { return decode_attribute(e, c); }));
  return &slot->value;
}

Result<const TableType*> BytecodeReader::type(uint64_t index) {
  TENON_ASSIGN(DecodeSlot<TableType> * slot,
               decode_once(types_, container_.types, index, "type",
                           [this](const EncodedEntry& e, Cursor& c) { return decode_type(e, c); }));
  return &slot->value;
}

Result<const Type*> BytecodeReader::value_type(uint64_t index) {
  TENON_ASSIGN(const TableType* const found, type(index));
  if (found->kind != TableType::DecodedTypeKind::kValue) {
    return invalid_argument("artifact of {}: type {} is {}, which no value has",
                            container_.producer, index, found->to_string());
  }
  return &found->value;
}

Result<Location> BytecodeReader::location(uint64_t index) {
  if (locations_.empty()) locations_.resize(attributes_.size());
  // Locations that are too deep are dropped: they must not prevent a program from being read.
  if (active_ + 1 >= limits_.max_depth) return Location();
  TENON_ASSIGN(
      DecodeSlot<Location> * slot,
      decode_once(locations_, container_.attributes, index, "location",
                  [this](const EncodedEntry& e, Cursor& c) { return decode_location(e, c); }));
  if (slot->extent.depth + 1 >= static_cast<uint32_t>(limits_.max_depth)) {
    slot->value = nullptr;
    slot->extent = {};
  }
  return slot->value;
}

Result<Attribute> BytecodeReader::decode_attribute(const EncodedEntry& entry, Cursor& cursor) {
  const std::string_view dialect = container_.dialects[entry.dialect];
  if (!entry.binary) {
    const std::string_view text = cursor.c_string();
    TENON_TRY(pay(text.size()));
    return Attribute(OpaqueAttr{std::string(text)});
  }
  if (dialect == "builtin") return decode_builtin_attribute(*this, cursor.varint(), cursor);
  if (dialect == "vhlo") return decode_vhlo_attribute(*this, cursor.varint(), cursor);
  if (dialect == "sdy") return decode_sdy_attribute(*this, cursor.varint(), cursor);
  if (dialect == "stablehlo") {
    // Bounds of builtin tensor types, in mixed artifacts.
    constexpr uint64_t kTypeExtensions = 13;
    const uint64_t code = cursor.varint();
    if (code == kTypeExtensions) return Attribute(svarints_at(cursor));
    return unknown(fmt::format("attribute {} of dialect stablehlo", code));
  }
  // The binary encoding of a foreign dialect is unknown: the bytes are kept as text that says so.
  const std::string_view bytes = cursor.bytes(cursor.remaining());
  TENON_TRY(pay(bytes.size() * 2));
  std::string text = fmt::format("#{}<bytecode \"", dialect);
  for (const char c : bytes) text += fmt::format("{:02X}", static_cast<uint8_t>(c));
  return Attribute(OpaqueAttr{text + "\">"});
}

Result<TableType> BytecodeReader::decode_type(const EncodedEntry& entry, Cursor& cursor) {
  const std::string_view dialect = container_.dialects[entry.dialect];
  if (entry.binary) {
    if (dialect == "builtin") return decode_builtin_type(*this, cursor.varint(), cursor);
    if (dialect == "vhlo") return decode_vhlo_type(*this, cursor.varint(), cursor);
    if (dialect == "stablehlo" && cursor.varint() == 0) return TableType::of(Type::token());
    return unimplemented("artifact of {}: types of dialect {} cannot be read", container_.producer,
                         dialect);
  }
  const std::string_view text = cursor.c_string();
  if (text == "tf32") return TableType{TableType::DecodedTypeKind::kTf32, {}, {}, nullptr};
  if (const auto element = element_type_from_mlir_name(text)) return TableType::of(*element);
  if (text == "!stablehlo.token") return TableType::of(Type::token());
  return unimplemented("artifact of {}: type {} cannot be read", container_.producer, text);
}

Result<Location> BytecodeReader::decode_location(const EncodedEntry& entry, Cursor& cursor) {
  if (!is_binary_of(entry, "builtin")) {
    cursor.bytes(cursor.remaining());
    return Location();
  }
  return decode_builtin_location(*this, cursor.varint(), cursor);
}

Result<std::string_view> BytecodeReader::text(uint64_t index) {
  if (index < container_.attributes.size()) {
    const EncodedEntry& entry = container_.attributes[index];
    Cursor cursor = container_.cursor(entry.span, "attribute and type data");
    constexpr uint64_t kBuiltinString = 2;
    constexpr uint64_t kVhloString = 14;
    if ((is_binary_of(entry, "builtin") && cursor.varint() == kBuiltinString) ||
        (is_binary_of(entry, "vhlo") && cursor.varint() == kVhloString)) {
      const std::string_view text = string_at(cursor);
      if (!cursor.failed() && cursor.at_end()) return text;
    }
  }
  return invalid_argument("artifact of {}: attribute {} is not a string", container_.producer,
                          index);
}

Result<std::vector<BytecodeReader::NamedIndex>> BytecodeReader::dictionary(uint64_t index) {
  if (index >= container_.attributes.size()) {
    return invalid_argument("artifact of {}: attribute {} does not exist; there are {}",
                            container_.producer, index, container_.attributes.size());
  }
  const EncodedEntry& entry = container_.attributes[index];
  Cursor cursor = container_.cursor(entry.span, "attribute and type data");
  constexpr uint64_t kBuiltinDictionary = 1;
  if (!is_binary_of(entry, "builtin") || cursor.varint() != kBuiltinDictionary) {
    return error(cursor, "attribute {} is not a dictionary", index);
  }
  const size_t n = cursor.count(2);
  TENON_TRY(pay(n * sizeof(NamedIndex)));
  std::vector<NamedIndex> entries;
  entries.reserve(n);
  for (size_t i = 0; i < n && !cursor.failed(); ++i) {
    TENON_ASSIGN(const std::string_view name, text_at(cursor));
    entries.push_back({name, cursor.varint()});
  }
  if (cursor.failed() || !cursor.at_end()) {
    return error(cursor, "attribute {} has {} bytes left over", index, cursor.remaining());
  }
  return entries;
}

Result<const Attribute*> BytecodeReader::list(uint64_t index) {
  TENON_ASSIGN(const Attribute* const dense, attribute(index));
  AttributeSlot& slot = attributes_[index];
  if (slot.list == 0) {
    TENON_ASSIGN(Attribute value, to_list(*dense));
    lists_.push_back(std::make_unique<Attribute>(std::move(value)));
    slot.list = static_cast<uint32_t>(lists_.size());
  }
  return lists_[slot.list - 1].get();
}

Result<Attribute> BytecodeReader::to_list(const Attribute& attribute) {
  if (attribute.get<I64s>() != nullptr || attribute.get<BoolsAttr>() != nullptr) return attribute;
  const auto* dense = attribute.get<DenseAttr>();
  if (dense == nullptr) {
    return invalid_argument("artifact of {}: a list of numbers is expected", container_.producer);
  }
  const Shape& shape = dense->shape;
  const int64_t n = shape.element_count();
  if (dense->is_splat() && n > kLongestSplatList) {
    return resource_exhausted("artifact of {}: a list of {} equal numbers is longer than {}",
                              container_.producer, n, kLongestSplatList);
  }
  TENON_TRY(pay(static_cast<uint64_t>(n) * sizeof(int64_t)));
  const Literal all = dense->expanded();
  if (shape.rank() == 1 && shape.element_type() == ElementType::kPred) {
    BoolsAttr bools;
    for (const std::byte b : all.data()) bools.values.push_back(static_cast<uint8_t>(b));
    return Attribute(std::move(bools));
  }
  if (shape.element_type() == ElementType::kS64 && (shape.rank() == 1 || shape.rank() == 2)) {
    I64s values(static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = all.get<int64_t>(static_cast<int64_t>(i));
    if (shape.rank() == 1) return Attribute(std::move(values));
    return Attribute(I64Matrix{shape.dim(0), shape.dim(1), std::move(values)});
  }
  return invalid_argument("artifact of {}: a list of numbers is expected, but {} came",
                          container_.producer, shape.to_string());
}

std::string_view BytecodeReader::string_at(Cursor& cursor) {
  const size_t i = cursor.index(container_.strings.size(), "string");
  return cursor.failed() ? std::string_view() : container_.strings[i];
}

I64s BytecodeReader::svarints_at(Cursor& cursor) {
  I64s values(cursor.count());
  for (int64_t& value : values) value = cursor.svarint();
  return values;
}

Result<ArrayAttr> BytecodeReader::attributes_at(Cursor& cursor) {
  const size_t n = cursor.count();
  ArrayAttr elements;
  elements.reserve(n);
  for (size_t i = 0; i < n && !cursor.failed(); ++i) {
    TENON_ASSIGN(const Attribute* const element, attribute_at(cursor));
    TENON_TRY(pay_for_copy(*element));
    elements.push_back(*element);
  }
  return elements;
}

Result<std::vector<Type>> BytecodeReader::value_types_at(Cursor& cursor) {
  const size_t n = cursor.count();
  std::vector<Type> types;
  types.reserve(n);
  for (size_t i = 0; i < n && !cursor.failed(); ++i) {
    TENON_ASSIGN(const Type* const type, value_type_at(cursor));
    TENON_TRY(pay_for_copy(*type));
    types.push_back(*type);
  }
  return types;
}

Result<ElementType> BytecodeReader::element_type_at(Cursor& cursor) {
  TENON_ASSIGN(const TableType* const found, type_at(cursor));
  if (found->kind != TableType::DecodedTypeKind::kElement) {
    return error(cursor, "an element type is expected, but {} came", found->to_string());
  }
  return found->element;
}

Result<Dims> BytecodeReader::bounds_at(Cursor& cursor) {
  TENON_ASSIGN(const Attribute* const encoding, attribute_at(cursor));
  const auto* bounds = encoding->get<I64s>();
  if (bounds == nullptr) {
    const auto* opaque = encoding->get<OpaqueAttr>();
    return unimplemented("artifact of {}: the tensor encoding {} cannot be read",
                         container_.producer, opaque ? opaque->text : "of this kind");
  }
  return *bounds;
}

Result<Type> BytecodeReader::shaped_type_at(Cursor& cursor, Dims bounds, bool is_buffer) {
  Dims dims = svarints_at(cursor);
  TENON_ASSIGN(const TableType* const element, type_at(cursor));
  if (cursor.failed()) return container_.fault(cursor);
  const bool quantized = element->kind == TableType::DecodedTypeKind::kQuantized;
  if (!quantized && element->kind != TableType::DecodedTypeKind::kElement) {
    return error(cursor, "{} cannot be the element of an array", element->to_string());
  }
  const ElementType type = quantized ? element->quantized->storage : element->element;
  for (const int64_t dim : dims) {
    if (dim < 0 && dim != kDynamic) return error(cursor, "a dimension of size {}", dim);
  }
  if (!bounds.empty() && bounds.size() != dims.size()) {
    return error(cursor, "{} bounds for {} dimensions", bounds.size(), dims.size());
  }
  for (const int64_t bound : bounds) {
    if (bound < 0 && bound != kDynamic) return error(cursor, "a bound of {}", bound);
  }
  if (std::find(dims.begin(), dims.end(), kDynamic) == dims.end()) {
    if (auto count = checked_element_count(dims, static_cast<int64_t>(storage_bytes(type)));
        !count) {
      return error(cursor, "{}", count.error().message());
    }
  }
  if (std::all_of(bounds.begin(), bounds.end(), [](int64_t b) { return b == kDynamic; })) {
    bounds.clear();
  }
  if (quantized) {
    if (element->quantized->axis >= static_cast<int64_t>(dims.size())) {
      return error(cursor, "quantization dimension {} of {} dimensions", element->quantized->axis,
                   dims.size());
    }
    TENON_TRY(pay(element->quantized->scales.size() * 16));
    Type result = Type::quantized_tensor(dims, *element->quantized);
    result.mutable_shape() = Shape(type, std::move(dims), std::move(bounds));
    return result;
  }
  Shape shape(type, std::move(dims), std::move(bounds));
  return is_buffer ? Type::buffer(std::move(shape)) : Type(std::move(shape));
}

Result<Attribute> BytecodeReader::integer_at(Cursor& cursor) {
  TENON_ASSIGN(const ElementType type, element_type_at(cursor));
  if (is_pred(type)) return Attribute(cursor.apint(1) != 0);
  if (!is_integer(type)) return error(cursor, "an integer of type {}", name_of(type));
  const auto bits = static_cast<int64_t>(cursor.apint(static_cast<unsigned>(bit_width(type))));
  return Attribute(IntegerAttr{wrap_integer(type, bits), type});
}

Result<Attribute> BytecodeReader::float_at(Cursor& cursor) {
  TENON_ASSIGN(const ElementType type, element_type_at(cursor));
  if (!is_float(type)) return error(cursor, "a float of type {}", name_of(type));
  return Attribute(FloatAttr{cursor.apint(static_cast<unsigned>(bit_width(type))), type});
}

Result<Attribute> BytecodeReader::dense_at(Cursor& cursor) {
  TENON_ASSIGN(const Type* const type, value_type_at(cursor));
  const std::string_view blob = cursor.blob();
  if (cursor.failed()) return container_.fault(cursor);
  if (!type->is_tensor() || !type->shape().is_static()) {
    return error(cursor, "a constant of type {}", type->to_mlir());
  }
  auto dense = dense_from_blob(type->shape(), blob, limits_.max_constant_bytes);
  if (!dense) return error(cursor, "{}", dense.error().message());
  return Attribute(std::move(*dense));
}

Result<Attribute> BytecodeReader::type_attribute_at(Cursor& cursor) {
  TENON_ASSIGN(const TableType* const type, type_at(cursor));
  if (type->kind == TableType::DecodedTypeKind::kValue) return Attribute(type->value);
  return Attribute(OpaqueAttr{type->to_string()});
}

Result<Attribute> BytecodeReader::dict_of(const Cursor& cursor, Dict entries) const {
  const auto by_key = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(entries.begin(), entries.end(), by_key)) {
    std::sort(entries.begin(), entries.end(), by_key);
  }
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].first == entries[i - 1].first) {
      return error(cursor, "key {} stands twice in a dictionary", quoted(entries[i].first));
    }
  }
  return Attribute(std::move(entries));
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '"' || u < 0x20 || u >= 0x7F) {
      out += fmt::format("\\{:02X}", u);
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace tenon::hlo::bytecode
