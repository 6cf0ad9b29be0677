#include "frameworks/pjrt/ffi/frame.h"

#include <algorithm>
#include <array>

namespace tenon::pjrt {
namespace {

struct FfiTypePair {
  ElementType type;
  XLA_FFI_DataType data_type;
};
constexpr auto kFfiTypes = std::to_array<FfiTypePair>({
    {ElementType::kPred, XLA_FFI_DataType_PRED},
    {ElementType::kS2, XLA_FFI_DataType_S2},
    {ElementType::kS4, XLA_FFI_DataType_S4},
    {ElementType::kS8, XLA_FFI_DataType_S8},
    {ElementType::kS16, XLA_FFI_DataType_S16},
    {ElementType::kS32, XLA_FFI_DataType_S32},
    {ElementType::kS64, XLA_FFI_DataType_S64},
    {ElementType::kU2, XLA_FFI_DataType_U2},
    {ElementType::kU4, XLA_FFI_DataType_U4},
    {ElementType::kU8, XLA_FFI_DataType_U8},
    {ElementType::kU16, XLA_FFI_DataType_U16},
    {ElementType::kU32, XLA_FFI_DataType_U32},
    {ElementType::kU64, XLA_FFI_DataType_U64},
    {ElementType::kF4E2M1FN, XLA_FFI_DataType_F4E2M1FN},
    {ElementType::kF8E3M4, XLA_FFI_DataType_F8E3M4},
    {ElementType::kF8E4M3, XLA_FFI_DataType_F8E4M3},
    {ElementType::kF8E4M3FN, XLA_FFI_DataType_F8E4M3FN},
    {ElementType::kF8E4M3FNUZ, XLA_FFI_DataType_F8E4M3FNUZ},
    {ElementType::kF8E4M3B11FNUZ, XLA_FFI_DataType_F8E4M3B11FNUZ},
    {ElementType::kF8E5M2, XLA_FFI_DataType_F8E5M2},
    {ElementType::kF8E5M2FNUZ, XLA_FFI_DataType_F8E5M2FNUZ},
    {ElementType::kF8E8M0FNU, XLA_FFI_DataType_F8E8M0FNU},
    {ElementType::kBF16, XLA_FFI_DataType_BF16},
    {ElementType::kF16, XLA_FFI_DataType_F16},
    {ElementType::kF32, XLA_FFI_DataType_F32},
    {ElementType::kF64, XLA_FFI_DataType_F64},
    {ElementType::kC64, XLA_FFI_DataType_C64},
    {ElementType::kC128, XLA_FFI_DataType_C128},
});

// The name at `depth` of a path.
std::string_view name_at(std::string_view path, size_t depth) {
  for (size_t i = 0; i < depth; ++i) path.remove_prefix(path.find(program::kWithin) + 1);
  return path.substr(0, path.find(program::kWithin));
}

bool is_within(std::string_view path, size_t depth) {
  return static_cast<size_t>(std::ranges::count(path, program::kWithin)) > depth;
}

}  // namespace

Result<XLA_FFI_DataType> ffi_type_of(ElementType type) {
  const auto* found = std::ranges::find(kFfiTypes, type, &FfiTypePair::type);
  if (found != kFfiTypes.end()) return found->data_type;
  return unimplemented("foreign functions have no arrays of {}", name_of(type));
}

// --- Attributes

Status FfiAttributes::add(std::span<const program::ForeignAttribute> attributes) {
  return add_dictionary(attributes, 0);
}

Status FfiAttributes::add_dictionary(std::span<const program::ForeignAttribute> attributes,
                                     size_t depth) {
  for (size_t i = 0; i < attributes.size();) {
    const std::string_view name = name_at(attributes[i].path, depth);
    if (!is_within(attributes[i].path, depth)) {
      TENON_TRY(add_value(attributes[i]));
      add_name(name);
      ++i;
      continue;
    }
    size_t end = i;
    while (end < attributes.size() && is_within(attributes[end].path, depth) &&
           name_at(attributes[end].path, depth) == name) {
      ++end;
    }
    FfiAttributes& inner = dictionaries_.emplace_back();
    TENON_TRY(inner.add_dictionary(attributes.subspan(i, end - i), depth + 1));
    types_.push_back(XLA_FFI_AttrType_DICTIONARY);
    values_.push_back(&inner.view_);
    add_name(name);
    i = end;
  }
  view_ = {sizeof(XLA_FFI_Attrs), nullptr,       static_cast<int64_t>(types_.size()),
           types_.data(),         names_.data(), values_.data()};
  return {};
}

void FfiAttributes::add_name(std::string_view name) {
  const std::string& kept = texts_.emplace_back(name);
  names_.push_back(&spans_.emplace_back(XLA_FFI_ByteSpan{kept.data(), kept.size()}));
}

Status FfiAttributes::add_value(const program::ForeignAttribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    const std::string& kept = texts_.emplace_back(*text);
    types_.push_back(XLA_FFI_AttrType_STRING);
    values_.push_back(&spans_.emplace_back(XLA_FFI_ByteSpan{kept.data(), kept.size()}));
    return {};
  }
  Literal& literal = literals_.emplace_back(std::get<Literal>(attribute.value));
  TENON_ASSIGN(const XLA_FFI_DataType type, ffi_type_of(literal.element_type()));
  void* const data = literal.mutable_data().data();
  if (literal.shape().rank() == 0) {
    types_.push_back(XLA_FFI_AttrType_SCALAR);
    values_.push_back(&scalars_.emplace_back(XLA_FFI_Scalar{type, data}));
    return {};
  }
  const auto size = static_cast<size_t>(literal.element_count());
  types_.push_back(XLA_FFI_AttrType_ARRAY);
  values_.push_back(&arrays_.emplace_back(XLA_FFI_Array{type, size, data}));
  return {};
}

// --- Arrays

Status FfiArrays::add_buffer(const Shape& shape, bool is_token, const std::byte* data,
                             std::vector<void*>& to) {
  XLA_FFI_Buffer buffer = {};
  buffer.struct_size = sizeof(XLA_FFI_Buffer);
  buffer.dtype = XLA_FFI_DataType_TOKEN;
  if (!is_token) {
    TENON_ASSIGN(buffer.dtype, ffi_type_of(shape.element_type()));
    Dims& dims = dims_.emplace_back(shape.dims());
    buffer.rank = static_cast<int64_t>(dims.size());
    buffer.dims = dims.data();
    buffer.data = const_cast<std::byte*>(data);  // Handlers only read arguments.
  }
  to.push_back(&buffers_.emplace_back(buffer));
  return {};
}

Status FfiArrays::add(const runtime::HostCallFrame& frame) {
  for (const runtime::HostOperand& each : frame.operands) {
    TENON_TRY(add_buffer(each.shape, each.is_token, each.bytes.data(), arguments_));
  }
  for (const runtime::HostResult& each : frame.results) {
    TENON_TRY(add_buffer(each.shape, each.is_token, each.bytes.data(), results_));
  }
  argument_types_.assign(arguments_.size(), XLA_FFI_ArgType_BUFFER);
  result_types_.assign(results_.size(), XLA_FFI_RetType_BUFFER);
  return {};
}

XLA_FFI_Args FfiArrays::arguments() {
  return {sizeof(XLA_FFI_Args), nullptr, static_cast<int64_t>(arguments_.size()),
          argument_types_.data(), arguments_.data()};
}

XLA_FFI_Rets FfiArrays::results() {
  return {sizeof(XLA_FFI_Rets), nullptr, static_cast<int64_t>(results_.size()),
          result_types_.data(), results_.data()};
}

}  // namespace tenon::pjrt
